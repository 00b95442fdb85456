/* SPDX-License-Identifier: MIT
 * arena.c: one block of memory for each context, used from both ends, and objects in it.
 *
 *     0            low                     capacity - high        capacity
 *     | of scopes -> |         free          | <- slots of frames |
 *
 * What a scope takes from below ends when the scope does, what a frame's slots take from above when the frame does: their
 * ends put the marks back to where they were. Nothing in between is ever given back, and nothing here to a device. The block
 * is taken at first need. Only the thread that a context is in force in touches its arena. In a build with AddressSanitizer
 * what is nobody's is poisoned.
 */
#include "memory/memory.h"
#include "tlmem_poison.h"

enum { ALIGNMENT = 64, LEAST_CAPACITY = 4096 };

static _Atomic uint64_t next_capacity = 1 << 20;

static bool has_block(tlmi_arena *arena)
{
    if (tlmi_likely(arena->block != NULL))
        return true;
    void *block = NULL;
    uint64_t capacity = atomic_load_explicit(&next_capacity, memory_order_relaxed);
    if (tlmi_buffers_alloc(TLM_DEVICE_CPU, capacity, &block) != TLM_OK)
        return false;
    arena->block = block;
    arena->capacity = capacity;
    TLM_POISON(block, capacity);
    return true;
}

/* The bytes that a request takes; 0: the arena has no such room. */
static uint64_t room_for(tlmi_arena *arena, uint64_t bytes)
{
    uint64_t whole = (bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
    bool wrapped = whole < bytes;
    if (tlmi_unlikely(wrapped || !has_block(arena) || whole > arena->capacity - arena->low - arena->high)) {
        arena->overflows++;
        return 0;
    }
    return whole;
}

static void raise_peak(tlmi_arena *arena)
{
    uint64_t used = arena->low + arena->high;
    if (used > arena->peak)
        arena->peak = used;
}

void *tlmi_arena_low(tlmi_arena *arena, uint64_t bytes)
{
    uint64_t whole = room_for(arena, bytes);
    if (whole == 0)
        return NULL;
    void *start = arena->block + arena->low;
    arena->low += whole;
    raise_peak(arena);
    TLM_UNPOISON(start, bytes);
    return start;
}

void *tlmi_arena_high(tlmi_arena *arena, uint64_t bytes)
{
    uint64_t whole = room_for(arena, bytes);
    if (whole == 0)
        return NULL;
    arena->high += whole;
    raise_peak(arena);
    void *start = arena->block + arena->capacity - arena->high;
    TLM_UNPOISON(start, bytes);
    return start;
}

void tlmi_arena_end_low(tlmi_arena *arena, uint64_t low)
{
    if (low < arena->low)
        TLM_POISON(arena->block + low, arena->low - low);
    arena->low = low;
}

void tlmi_arena_end_high(tlmi_arena *arena, uint64_t high)
{
    if (high < arena->high)
        TLM_POISON(arena->block + arena->capacity - arena->high, arena->high - high);
    arena->high = high;
}

void tlmi_arena_close(tlmi_arena *arena)
{
    if (arena->block) {
        TLM_UNPOISON(arena->block, arena->capacity);
        tlmi_buffers_free(TLM_DEVICE_CPU, arena->block, arena->capacity);
    }
    *arena = (tlmi_arena){0};
}

tlm_status tlmi_arena_payload(tlmi_arena *arena, bool from_above, tlmi_slot_of_object *slot, uint64_t bytes)
{
    tlmi_object_set_bytes(slot, bytes);
    if (bytes == 0)
        return TLM_OK;
    slot->payload = from_above ? tlmi_arena_high(arena, bytes) : tlmi_arena_low(arena, bytes);
    if (slot->payload) {
        slot->flags |= TLM_FLAG_ARENA;
        return TLM_OK;
    }
    tlm_status status = tlmi_buffers_alloc(TLM_DEVICE_CPU, bytes, &slot->payload);
    if (status != TLM_OK)
        arena->overflows--; /* it went nowhere */
    return status;
}

tlm_status tlm_arena_object(uint64_t bytes, tlm_object *out)
{
    uint32_t site = tlmi_site_for_events();
    tlm_context *context = tlmi_context_here();
    if (!tlmi_scope_innermost(context))
        return tlmi_fail(TLM_NOT_IN_SCOPE, 0, 0, bytes, 0);
    uint64_t low = context->arena.low;
    tlmi_slot_of_object *slot = tlmi_object_create(TLM_OBJECT_TENSOR, TLM_DEVICE_CPU);
    if (!slot)
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, bytes, 0);
    tlm_status status = tlmi_arena_payload(&context->arena, false, slot, bytes);
    if (status != TLM_OK) {
        tlmi_object_cancel(slot);
        return tlmi_fail(status, 0, 0, bytes, 0);
    }
    tlm_object object = tlmi_object_publish(slot, site);
    status = tlm_register(object);
    if (status != TLM_OK) {
        tlm_free(object);
        tlmi_arena_end_low(&context->arena, low);
        return tlmi_fail(status, 0, 0, bytes, 0);
    }
    *out = object;
    return TLM_OK;
}

tlm_status tlm_arena_capacity(uint64_t bytes)
{
    if (bytes < LEAST_CAPACITY)
        return tlmi_fail(TLM_BAD_ARGUMENT, 0, 0, bytes, LEAST_CAPACITY);
    atomic_store_explicit(&next_capacity, bytes & ~(uint64_t)(ALIGNMENT - 1), memory_order_relaxed);
    return TLM_OK;
}

void tlm_arena_stats(tlm_arena_statistics *out)
{
    const tlmi_arena *arena = &tlmi_context_here()->arena;
    *out = (tlm_arena_statistics){
        .capacity_bytes = arena->block ? arena->capacity : atomic_load_explicit(&next_capacity, memory_order_relaxed),
        .scope_bytes = arena->low,
        .slot_bytes = arena->high,
        .peak_bytes = arena->peak,
        .overflows = arena->overflows,
    };
}
