/* SPDX-License-Identifier: MIT
 * tape_slots.c: slots by number: taken, referred to, and ended with all that only they referred to, without recursion.
 */
#include <string.h>

#include "tape/tape.h"

enum { MOST_TAPES = 256, INDEX_BITS = 28, INDEX_MASK = (1 << INDEX_BITS) - 1, MOST_GENERATION = (1 << 28) - 1 };

static tlm_tape tapes[MOST_TAPES]; /* 0 is none. Never moved: a late caller may look at one that is gone */

tlm_tape *tlmi_tape_numbered(uint32_t number)
{
    return &tapes[number];
}

/* Chunk k begins at index 256 * (2^k - 1) + 1. */
static inline int chunk_of(uint32_t index, uint32_t *within)
{
    uint32_t at = index - 1 + TLMI_TAPE_FIRST;
    int chunk = 31 - __builtin_clz(at) - 8;
    *within = at - ((uint32_t)TLMI_TAPE_FIRST << chunk);
    return chunk;
}

tlmi_tape_slot *tlmi_tape_at(const tlm_tape *tape, uint32_t index)
{
    uint32_t within;
    int chunk = chunk_of(index, &within);
    return &tape->chunks[chunk][within];
}

tlmi_tape_slot *tlmi_slot_find(const tlm_tape *tape, tlm_slot number)
{
    uint32_t index = (uint32_t)number & INDEX_MASK, generation = (uint32_t)(number >> INDEX_BITS) & MOST_GENERATION;
    if (tlmi_unlikely(!tape->exists || index == 0 || index > tape->slots))
        return NULL;
    tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
    return tlmi_likely(slot->generation == generation && slot->references > 0) ? slot : NULL;
}

tlmi_tape_slot *tlmi_slot_lock(tlm_slot number, tlm_tape **out)
{
    tlm_tape *tape = &tapes[number >> 56];
    tlmi_spin_lock(&tape->lock);
    tlmi_tape_slot *slot = tlmi_slot_find(tape, number);
    if (tlmi_likely(slot != NULL))
        *out = tape;
    else
        tlmi_spin_unlock(&tape->lock);
    return slot;
}

/* Room for one more slot; locked. */
static bool grow(tlm_tape *tape)
{
    uint32_t within;
    int chunk = chunk_of((uint32_t)tape->capacity + 1, &within);
    size_t count = (size_t)TLMI_TAPE_FIRST << chunk;
    if (chunk >= TLMI_TAPE_CHUNKS)
        return false;
    tape->chunks[chunk] = tlmi_own_alloc(count * sizeof(tlmi_tape_slot));
    if (!tape->chunks[chunk])
        return false;
    tape->capacity += count;
    tape->own_bytes += count * sizeof(tlmi_tape_slot);
    return true;
}

static bool reserve_block(tlm_tape *tape, tlmi_tape_slot *slot, uint32_t bytes)
{
    if (tlmi_likely(bytes <= slot->block_bytes))
        return true;
    uint32_t room = 64;
    while (room < bytes)
        room *= 2;
    uint8_t *block = tlmi_slab_alloc(room);
    if (!block)
        return false;
    if (slot->block)
        tlmi_slab_free(slot->block, slot->block_bytes);
    tape->own_bytes += room - slot->block_bytes;
    slot->block = block;
    slot->block_bytes = room;
    return true;
}

/* Puts a slot nobody refers to among the free ones; its number is never used again. Locked. */
static void put_back(tlm_tape *tape, tlmi_tape_slot *slot)
{
    if (slot->generation >= MOST_GENERATION)
        return;
    slot->next = tape->free;
    tape->free = slot->index;
}

tlmi_tape_slot *tlmi_slot_take(tlm_tape *tape, uint32_t block_bytes)
{
    uint32_t index = tape->free;
    tlmi_tape_slot *slot;
    if (tlmi_likely(index != 0)) {
        slot = tlmi_tape_at(tape, index);
        tape->free = slot->next;
    } else {
        if (tape->slots == tape->capacity && !grow(tape))
            return NULL;
        index = ++tape->slots;
        slot = tlmi_tape_at(tape, index);
        slot->index = index;
        slot->generation = tape->first_generation;
    }
    if (!reserve_block(tape, slot, block_bytes)) {
        put_back(tape, slot);
        return NULL;
    }
    slot->references = 1;
    slot->next = 0;
    slot->op = 0;
    slot->is_leaf = slot->is_spent = slot->keeps_grad = slot->recomputes = false;
    slot->has_incoming = slot->has_stored = false;
    slot->place = (tlm_place){0};
    slot->input_count = slot->save_count = slot->params_bytes = 0;
    slot->saved_bytes = 0;
    slot->pass = slot->pending = slot->reached_next = 0;
    return slot;
}

void tlmi_slot_drop(tlm_tape *tape, tlmi_tape_slot *slot, uint32_t *dying)
{
    (void)tape;
    if (--slot->references > 0)
        return;
    slot->generation++; /* from here on its number is stale */
    slot->next = *dying;
    *dying = slot->index;
}

void tlmi_record_release(tlm_tape *tape, tlmi_tape_slot *slot, bool forgets, uint32_t *dying)
{
    tlm_holder holder = tlmi_tape_holder(slot->op, slot->sequence);
    const tlm_op *op = tlmi_op(slot->op);
    tlmi_saved *saves = tlmi_slot_saves(slot), *sources = tlmi_slot_sources(slot);
    uint32_t held_sources = slot->recomputes ? slot->input_count : 0;
    for (uint32_t i = 0; i < slot->save_count; i++)
        tlmi_unsave(tape, &saves[i], holder);
    for (uint32_t i = 0; i < held_sources; i++)
        tlmi_unsave(tape, &sources[i], holder);
    if (forgets && op && op->forget)
        op->forget(op->context, tlmi_slot_params(slot));

    tlmi_spin_lock(&tape->lock);
    for (uint32_t i = 0; i < slot->save_count; i++)
        if (saves[i].link && saves[i].link != slot->index)
            tlmi_slot_drop(tape, tlmi_tape_at(tape, saves[i].link), dying);
    for (uint32_t i = 0; i < held_sources; i++)
        if (sources[i].link)
            tlmi_slot_drop(tape, tlmi_tape_at(tape, sources[i].link), dying);
    const uint32_t *inputs = tlmi_slot_inputs(slot);
    for (uint32_t i = 0; i < slot->input_count; i++)
        if (inputs[i])
            tlmi_slot_drop(tape, tlmi_tape_at(tape, inputs[i]), dying);
    tape->sums.records--;
    tlmi_tape_show_bytes(tape);
    tape->by_op[slot->op].records--;
    tape->by_op[slot->op].saved_bytes -= slot->saved_bytes;
    slot->input_count = slot->save_count = slot->params_bytes = 0;
    slot->recomputes = false;
    slot->is_spent = true;
    tlmi_spin_unlock(&tape->lock);
}

void tlmi_slot_bury(tlm_tape *tape, uint32_t dying)
{
    while (dying) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, dying);
        dying = slot->next;
        if (!slot->is_leaf && !slot->is_spent)
            tlmi_record_release(tape, slot, true, &dying);
        tlmi_grad_drop_incoming(slot);
        tlmi_grad_drop_stored(tape, slot);
        tlmi_place_drop(slot->place);
        slot->place = (tlm_place){0};
        tlmi_spin_lock(&tape->lock);
        tape->sums.leaves -= slot->is_leaf;
        put_back(tape, slot);
        tlmi_spin_unlock(&tape->lock);
    }
}

tlm_status tlm_slot_acquire(tlm_slot number)
{
    tlm_tape *tape;
    if (number == 0)
        return TLM_OK;
    tlmi_tape_slot *slot = tlmi_slot_lock(number, &tape);
    if (!slot)
        return tlmi_fail(TLM_STALE_SLOT, 0, 0, 0, number);
    slot->references++;
    tlmi_spin_unlock(&tape->lock);
    return TLM_OK;
}

void tlm_slot_release(tlm_slot number)
{
    tlm_tape *tape;
    uint32_t dying = 0;
    tlmi_tape_slot *slot = number ? tlmi_slot_lock(number, &tape) : NULL;
    if (!slot)
        return;
    tlmi_slot_drop(tape, slot, &dying);
    tlmi_spin_unlock(&tape->lock);
    tlmi_slot_bury(tape, dying);
}

int tlm_slot_alive(tlm_slot number)
{
    return tlm_slot_tape(number) != NULL;
}

tlm_tape *tlm_slot_tape(tlm_slot number)
{
    tlm_tape *tape;
    if (number == 0 || !tlmi_slot_lock(number, &tape))
        return NULL;
    tlmi_spin_unlock(&tape->lock);
    return tape;
}

tlm_status tlm_slot_describe(tlm_slot number, tlm_slot_info *out)
{
    tlm_tape *tape;
    tlmi_tape_slot *slot = tlmi_slot_lock(number, &tape);
    if (!slot)
        return tlmi_fail(TLM_STALE_SLOT, 0, 0, 0, number);
    *out = (tlm_slot_info){
        .slot = number,
        .sequence = slot->sequence,
        .op = slot->op,
        .references = slot->references,
        .inputs = slot->input_count,
        .saves = slot->save_count,
        .leaf = slot->is_leaf,
        .spent = slot->is_spent,
        .retains_grad = slot->keeps_grad,
        .has_grad = slot->has_stored,
        .place = slot->place,
    };
    tlmi_spin_unlock(&tape->lock);
    return TLM_OK;
}
