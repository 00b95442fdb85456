/* SPDX-License-Identifier: MIT
 * buffers.c: payloads for objects, and what becomes of them afterwards: back to the driver, or kept for reuse.
 *
 * Under TLM_BUFFERS_BOUNDED a device keeps at most its budget, at every moment: room is set aside before a block is put.
 * A block's state is checked when it is given back. While its memory is ours a second one is refused; memory that went
 * back to the driver cannot be recognised here, only by the object that had it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "memory/devices/device.h"
#include "memory/devices/quarantine.h"

static bool reuses(int policy)
{
    return policy == TLM_BUFFERS_BOUNDED || policy == TLM_BUFFERS_PERSISTENT_REUSING;
}

static bool is_persistent(int policy)
{
    return policy == TLM_BUFFERS_PERSISTENT || policy == TLM_BUFFERS_PERSISTENT_REUSING;
}

/* What goes into quarantine must not be handed out again by the lists. */
static int policy_in_force(const tlmi_device *device)
{
    if (tlmi_quarantine_active() && device->backend == &tlmi_backend_cpu)
        return TLM_BUFFERS_DIRECT;
    return atomic_load_explicit(&device->policy, memory_order_relaxed);
}

/* ---- taking ---- */

static tlmi_block *take_kept(tlmi_device *device, uint32_t number)
{
    tlmi_size_class *class = &device->classes[number];
    tlmi_spin_lock(&class->lock);
    tlmi_block *block = class->newest;
    if (block) {
        tlmi_class_unlink(device, block);
        block->state = TLMI_BLOCK_ACTIVE;
        class->active_count++;
        class->hits++;
    }
    tlmi_spin_unlock(&class->lock);
    if (block)
        atomic_fetch_sub_explicit(&device->kept_bytes, block->bytes, memory_order_relaxed);
    return block;
}

/* From the driver. When it has no more, what is kept for reuse is given back first, and it is asked once again. */
static tlmi_block *take_new(tlmi_device *device, uint64_t bytes, int policy)
{
    tlmi_block *block = tlmi_device_alloc(device, bytes);
    if (block == NULL && policy == TLM_BUFFERS_BOUNDED && tlmi_class_shrink(device, 0))
        block = tlmi_device_alloc(device, bytes);
    return block;
}

static tlmi_block *take_otherwise(tlmi_device *device, uint32_t number, int policy)
{
    tlmi_size_class *class = &device->classes[number];
    uint64_t bytes = tlmi_class_bytes(number) + TLMI_BLOCK_BYTES;
    tlmi_block *block = NULL;
    if (atomic_load_explicit(&device->reserve.bytes, memory_order_acquire))
        block = tlmi_reserve_alloc(&device->reserve, bytes);
    bool is_hit = block != NULL;
    if (!is_hit)
        block = take_new(device, bytes, policy);
    if (block == NULL)
        return NULL;
    block->class = (uint16_t)number;
    block->device = (uint8_t)tlmi_device_number(device);
    block->state = TLMI_BLOCK_ACTIVE;
    tlmi_spin_lock(&class->lock);
    class->active_count++;
    class->hits += is_hit;
    class->misses += !is_hit && policy != TLM_BUFFERS_DIRECT;
    tlmi_spin_unlock(&class->lock);
    if (is_hit || policy != TLM_BUFFERS_DIRECT)
        tlmi_buffers_event(device, is_hit ? TLM_KIND_POOL_HIT : TLM_KIND_POOL_MISS, bytes);
    return block;
}

tlm_status tlmi_buffers_alloc(uint32_t number, uint64_t bytes, void **payload)
{
    *payload = NULL;
    if (number >= TLMI_FIRST_LIMIT)
        return tlmi_limit_alloc(number, bytes, payload);
    tlmi_device *device = tlmi_device_ready(number);
    if (tlmi_unlikely(device == NULL))
        return TLM_NO_DEVICE;
    if (tlmi_unlikely(bytes - 1 >= TLMI_MOST_BYTES))
        return bytes ? TLM_OVERFLOW : TLM_OK;
    int policy = policy_in_force(device);
    uint32_t class = tlmi_class_of(bytes);
    tlmi_block *block = reuses(policy) ? take_kept(device, class) : NULL;
    if (tlmi_likely(block != NULL)) {
        tlmi_buffers_event(device, TLM_KIND_POOL_HIT, block->bytes);
    } else {
        block = take_otherwise(device, class, policy);
        if (block == NULL)
            return device->backend->missing() ? TLM_NO_DEVICE : TLM_OUT_OF_MEMORY;
    }
    block->asked = bytes;
    block->owner = (uint8_t)number;
    *payload = tlmi_block_payload(block);
    return TLM_OK;
}

/* ---- giving ---- */

/* Sets room aside in the budget; false: there is none. */
static bool find_room(tlmi_device *device, uint64_t bytes)
{
    uint64_t kept = atomic_load_explicit(&device->kept_bytes, memory_order_relaxed);
    for (;;) {
        uint64_t budget = atomic_load_explicit(&device->budget_bytes, memory_order_relaxed);
        if (bytes > budget)
            return false;
        if (kept + bytes > budget) {
            if (!tlmi_class_return_oldest(device))
                return false; /* all of it is being put just now */
            kept = atomic_load_explicit(&device->kept_bytes, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&device->kept_bytes, &kept, kept + bytes, memory_order_relaxed,
                                                         memory_order_relaxed)) {
            return true;
        }
    }
}

/* What was reserved stays resident: that is what it was reserved for. */
static void drop_contents(tlmi_device *device, tlmi_block *block)
{
    if (block->reserved)
        memset(block + 1, 0, block->bytes - TLMI_BLOCK_BYTES);
    else
        device->backend->drop(block, block->token, block->bytes, TLMI_BLOCK_BYTES);
}

/* Whether the list takes the block; its bytes are then counted as kept. */
static bool is_to_be_kept(tlmi_device *device, tlmi_block *block, int policy)
{
    if (policy == TLM_BUFFERS_DIRECT || (block->reserved && policy != TLM_BUFFERS_PERSISTENT))
        return false;
    if (policy == TLM_BUFFERS_BOUNDED)
        return find_room(device, block->bytes);
    if (policy == TLM_BUFFERS_PERSISTENT)
        drop_contents(device, block);
    atomic_fetch_add_explicit(&device->kept_bytes, block->bytes, memory_order_relaxed);
    return true;
}

/* Gives back what the policy in force does not keep. */
static void keep_to_policy(tlmi_device *device)
{
    int policy = atomic_load(&device->policy);
    if (!is_persistent(policy))
        tlmi_class_shrink(device, policy == TLM_BUFFERS_BOUNDED ? atomic_load(&device->budget_bytes) : 0);
}

/* The object's time with the block ends here. false: it was given back before, and nothing changed. */
static bool retire_block(tlmi_device *device, tlmi_block *block, bool is_kept)
{
    tlmi_size_class *class = &device->classes[block->class];
    tlmi_spin_lock(&class->lock);
    bool is_first = block->state == TLMI_BLOCK_ACTIVE;
    if (is_first) {
        class->active_count--;
        block->state = TLMI_BLOCK_GONE;
        if (is_kept)
            tlmi_class_push(device, block);
    }
    tlmi_spin_unlock(&class->lock);
    return is_first;
}

static void tell_misuse(tlm_misuse what, uint32_t device, void *payload)
{
    tlmi_misuse(what, (uint8_t)device, 0, TLM_HOLDER(TLM_HOLDER_FOREIGN, (uintptr_t)payload), tlmi_site_for_events());
}

static bool is_block(const tlmi_block *block)
{
    return (block->state == TLMI_BLOCK_ACTIVE || block->state == TLMI_BLOCK_FREE) &&
           block->device - TLMI_FIRST_DEVICE < TLMI_DEVICES && block->class < TLMI_CLASSES;
}

void tlmi_buffers_free(uint32_t number, void *payload, uint64_t bytes)
{
    if (payload == NULL)
        return;
    tlmi_block *block = tlmi_block_of(payload);
    if (!is_block(block)) { /* of another allocator: ours to leave alone */
        tell_misuse(TLM_MISUSE_WRONG_DEVICE, number, payload);
        return;
    }
    if (block->state == TLMI_BLOCK_FREE) { /* before room is made, which could be by giving up this very block */
        tell_misuse(TLM_MISUSE_DOUBLE_POOL, number, payload);
        return;
    }
    uint32_t owner = block->owner; /* read now: once it is put, it may be another's */
    bool is_reserved = block->reserved;
    uint64_t asked = block->asked, whole = block->bytes;
    if (owner != number || asked != bytes) /* it goes back where it came from all the same */
        tell_misuse(TLM_MISUSE_WRONG_DEVICE, number, payload);
    tlmi_device *device = tlmi_device_of(block->device);
    int policy = policy_in_force(device);
    bool is_kept = is_to_be_kept(device, block, policy);
    if (!retire_block(device, block, is_kept)) { /* two threads gave it at the same moment */
        if (is_kept)
            atomic_fetch_sub_explicit(&device->kept_bytes, whole, memory_order_relaxed);
        tell_misuse(TLM_MISUSE_DOUBLE_POOL, number, payload);
        return;
    }
    if (is_kept || is_reserved)
        tlmi_buffers_event(device, TLM_KIND_POOL_PUT, whole);
    else if (policy == TLM_BUFFERS_BOUNDED)
        tlmi_buffers_event(device, TLM_KIND_POOL_DROP, whole);
    if (!is_kept)
        tlmi_class_return(device, block);
    else if (tlmi_unlikely(atomic_load_explicit(&device->policy, memory_order_relaxed) != policy))
        keep_to_policy(device); /* it was changed meanwhile, and this block came too late for that */
    while (owner >= TLMI_FIRST_LIMIT)
        owner = tlmi_limit_leave(owner, asked);
}

/* ---- what a program can say about it ---- */

tlm_status tlm_device_policy(uint32_t number, int policy, uint64_t budget_bytes)
{
    tlmi_device *device = tlmi_device_ready(number);
    if (device == NULL)
        return tlmi_fail_bytes(TLM_NO_DEVICE, 0, number);
    if (policy < TLM_BUFFERS_DIRECT || policy > TLM_BUFFERS_PERSISTENT_REUSING)
        return tlmi_fail_bytes(TLM_BAD_ARGUMENT, 0, (uint64_t)policy);
    if (policy == TLM_BUFFERS_BOUNDED)
        atomic_store(&device->budget_bytes, budget_bytes);
    atomic_store(&device->policy, policy);
    keep_to_policy(device);
    return TLM_OK;
}

uint64_t tlm_device_trim(uint32_t number)
{
    tlmi_device *device = tlmi_device_ready(number);
    if (device == NULL || is_persistent(atomic_load(&device->policy)))
        return 0;
    return tlmi_class_shrink(device, 0);
}

/* Touches each page: memory that is only promised is not reserved. */
static void touch_pages(tlmi_block *block)
{
    enum { LEAST_PAGE_BYTES = 4096 };
    for (uint64_t at = LEAST_PAGE_BYTES; at < block->bytes; at += LEAST_PAGE_BYTES)
        ((volatile uint8_t *)block)[at] = 0;
}

tlm_status tlm_device_preallocate(uint32_t number, uint64_t bytes)
{
    tlmi_device *device = tlmi_device_ready(number);
    if (device == NULL)
        return tlmi_fail_bytes(TLM_NO_DEVICE, bytes, number);
    uint64_t whole = (bytes + 63) & ~UINT64_C(63);
    if (bytes == 0)
        return tlmi_fail_bytes(TLM_BAD_ARGUMENT, bytes, number);
    if (bytes > TLMI_MOST_BYTES)
        return tlmi_fail_bytes(TLM_OVERFLOW, bytes, number);
    if (atomic_exchange(&device->reserving, 1))
        return TLM_OK;
    tlmi_block *memory = tlmi_device_alloc(device, whole);
    if (memory == NULL) {
        atomic_store(&device->reserving, 0);
        return tlmi_fail_bytes(TLM_OUT_OF_MEMORY, bytes, number);
    }
    touch_pages(memory);
    tlmi_reserve_open(&device->reserve, memory);
    tlmi_buffers_event(device, TLM_KIND_POOL_RESERVE, whole);
    return TLM_OK;
}

/* ---- statistics ----
 *
 * What is active and free is counted class by class, what came from the driver by device.c: that the one is the sum of the
 * others is a check of both, and not an identity.
 */

static void add_class(tlmi_device *device, uint32_t number, tlm_buffers_statistics *out)
{
    tlmi_size_class *class = &device->classes[number];
    uint64_t bytes = tlmi_class_bytes(number) + TLMI_BLOCK_BYTES;
    tlmi_spin_lock(&class->lock);
    out->active_count += class->active_count;
    out->active_bytes += class->active_count * bytes;
    out->free_count += class->free_count;
    out->free_bytes += class->free_count * bytes;
    out->hits += class->hits;
    out->misses += class->misses;
    tlmi_spin_unlock(&class->lock);
}

void tlm_buffers_stats(uint32_t number, tlm_buffers_statistics *out)
{
    *out = (tlm_buffers_statistics){0};
    tlmi_device *device = tlmi_device_of(number);
    if (device == NULL)
        return;
    for (uint32_t i = 0; i < TLMI_CLASSES; i++)
        add_class(device, i, out);
    tlmi_reserve *reserve = &device->reserve;
    tlmi_spin_lock(&reserve->lock);
    out->reserved_bytes = atomic_load_explicit(&reserve->bytes, memory_order_relaxed);
    out->free_bytes += reserve->free_bytes;
    out->free_count += reserve->stretches;
    tlmi_spin_unlock(&reserve->lock);
    tlmi_spin_lock(&device->lock);
    out->total_allocated_bytes = device->counted.total_bytes;
    tlmi_spin_unlock(&device->lock);
}

typedef struct {
    char *out;
    uint64_t room, length;
} text_writer;

__attribute__((format(printf, 2, 3))) static void write_line(text_writer *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    uint64_t left = text->length < text->room ? text->room - text->length : 0;
    int wanted = vsnprintf(left ? text->out + text->length : NULL, left, format, values);
    va_end(values);
    text->length += wanted > 0 ? (uint64_t)wanted : 0;
}

static void write_class(text_writer *text, tlmi_device *device, uint32_t number)
{
    tlmi_size_class *class = &device->classes[number];
    tlmi_spin_lock(&class->lock);
    tlmi_size_class now = *class;
    tlmi_spin_unlock(&class->lock);
    if (now.active_count || now.free_count || now.hits || now.misses)
        write_line(text, "  up to %llu bytes: %llu active, %u free, %llu hits, %llu misses\n",
                   (unsigned long long)tlmi_class_bytes(number), (unsigned long long)now.active_count, now.free_count,
                   (unsigned long long)now.hits, (unsigned long long)now.misses);
}

uint64_t tlm_buffers_dump(uint32_t number, char *out, uint64_t room)
{
    static const char *const policies[] = {"direct", "bounded", "persistent", "persistent, reusing"};
    text_writer text = {out, room, 0};
    if (room)
        out[0] = 0;
    tlmi_device *device = tlmi_device_ready(number);
    if (device == NULL)
        return 0;
    tlm_buffers_statistics now;
    tlm_buffers_stats(number, &now);
    write_line(&text, "buffers of %s: %s\n", device->backend->name, policies[atomic_load(&device->policy)]);
    write_line(&text, "  taken from the driver: %llu bytes, of them reserved: %llu\n",
               (unsigned long long)now.total_allocated_bytes, (unsigned long long)now.reserved_bytes);
    write_line(&text, "  active: %llu bytes in %llu; free: %llu bytes in %llu; hits: %llu; misses: %llu\n",
               (unsigned long long)now.active_bytes, (unsigned long long)now.active_count,
               (unsigned long long)now.free_bytes, (unsigned long long)now.free_count, (unsigned long long)now.hits,
               (unsigned long long)now.misses);
    if (device->ignored)
        write_line(&text, "  %s is ignored: not a whole number, or too large\n", device->ignored);
    for (uint32_t i = 0; i < TLMI_CLASSES; i++)
        write_class(&text, device, i);
    return text.length;
}
