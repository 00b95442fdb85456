/* SPDX-License-Identifier: MIT
 * tape.c: tapes as a whole: made, reset, destroyed, and what they hold in sums.
 */
#include "tape/tape.h"

enum { MOST_TAPES = 255 };

static tlmi_spin making;
static _Atomic uint32_t highest; /* number that a tape ever had */

/* Takes a number that no tape has; 0: there is none. Under the lock. */
static uint32_t free_number(void)
{
    for (uint32_t number = 1; number <= MOST_TAPES; number++)
        if (!tlmi_tape_numbered(number)->exists)
            return number;
    return 0;
}

tlm_status tlm_tape_create(tlm_label label, const tlm_arithmetic *arithmetic, tlm_tape **out)
{
    if (!arithmetic || !arithmetic->add || !arithmetic->copy)
        return tlmi_fail(TLM_BAD_ARGUMENT, 0, 0, 0, 0);
    tlmi_spin_lock(&making);
    uint32_t number = free_number();
    tlm_tape *tape = tlmi_tape_numbered(number);
    if (number) {
        tlmi_spin_lock(&tape->lock);
        tape->number = number;
        tape->first_generation = tape->first_generation ? tape->first_generation : 1;
        tape->label = label;
        tape->arithmetic = *arithmetic;
        tape->exists = true;
        if (number > atomic_load_explicit(&highest, memory_order_relaxed))
            atomic_store_explicit(&highest, number, memory_order_relaxed);
        tlmi_spin_unlock(&tape->lock);
        *out = tape;
    }
    tlmi_spin_unlock(&making);
    return number ? TLM_OK : tlmi_fail(TLM_OVERFLOW, 0, 0, 0, MOST_TAPES);
}

/* Everything that is referred to becomes dying, whoever refers to it; locked. */
static uint32_t end_all(tlm_tape *tape)
{
    uint32_t dying = 0;
    for (uint32_t index = 1; index <= tape->slots; index++) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        if (slot->references == 0)
            continue;
        slot->references = 0;
        slot->generation++;
        slot->next = dying;
        dying = index;
    }
    return dying;
}

/* Records do not let go of each other here: all of them go. */
static void forget_links(tlmi_tape_slot *slot)
{
    uint32_t *inputs = tlmi_slot_inputs(slot), sources = tlmi_slot_source_count(slot);
    for (uint32_t i = 0; i < slot->input_count; i++)
        inputs[i] = 0;
    for (uint32_t i = 0; i < slot->save_count; i++)
        tlmi_slot_saves(slot)[i].link = 0;
    for (uint32_t i = 0; i < sources; i++)
        tlmi_slot_sources(slot)[i].link = 0;
}

tlm_status tlm_tape_reset(tlm_tape *tape)
{
    tlmi_spin_lock(&tape->lock);
    if (tlmi_tape_is_running(tape)) {
        tlmi_spin_unlock(&tape->lock);
        return tlmi_fail(TLM_BUSY, 0, 0, 0, tape->number);
    }
    uint64_t records = tape->sums.records;
    uint32_t dying = end_all(tape);
    for (uint32_t index = dying; index; index = tlmi_tape_at(tape, index)->next)
        if (!tlmi_tape_at(tape, index)->is_leaf)
            forget_links(tlmi_tape_at(tape, index));
    tlmi_spin_unlock(&tape->lock);
    if (tlmi_probe_on())
        tlmi_event_append(TLM_KIND_RESET, TLM_DEVICE_NONE, tape->number, records, tlmi_site_here(), 0);
    tlmi_slot_bury(tape, dying);
    return TLM_OK;
}

/* Gives the memory of slots and tables back; locked. */
static void give_back(tlm_tape *tape)
{
    for (uint32_t index = 1; index <= tape->slots; index++) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        if (slot->generation >= tape->first_generation)
            tape->first_generation = slot->generation + 1;
        if (slot->block)
            tlmi_slab_free(slot->block, slot->block_bytes);
        if (slot->stored)
            tlmi_slab_free(slot->stored, sizeof *slot->stored);
    }
    for (int chunk = 0; chunk < TLMI_TAPE_CHUNKS && tape->chunks[chunk]; chunk++) {
        tlmi_own_free(tape->chunks[chunk], ((size_t)TLMI_TAPE_FIRST << chunk) * sizeof(tlmi_tape_slot));
        tape->chunks[chunk] = NULL;
    }
    if (tape->ready)
        tlmi_slab_free(tape->ready, tape->ready_room * sizeof *tape->ready);
    if (tape->by_op)
        tlmi_slab_free(tape->by_op, tape->by_op_room * sizeof *tape->by_op);
    if (tape->saved)
        tlmi_slab_free(tape->saved, tape->saved_room * sizeof *tape->saved);
    tape->ready = NULL;
    tape->by_op = NULL;
    tape->saved = NULL;
    tape->ready_room = tape->by_op_room = tape->saved_room = tape->saved_used = 0;
    tape->slots = tape->free = 0;
    tape->capacity = tape->own_bytes = 0;
    tape->sums = (tlm_tape_statistics){0};
    tlmi_tape_show_bytes(tape);
}

tlm_status tlm_tape_destroy(tlm_tape *tape)
{
    if (!tape)
        return TLM_OK;
    tlm_status status = tlm_tape_reset(tape);
    if (status != TLM_OK)
        return status;
    tlmi_spin_lock(&tape->lock);
    tape->exists = false;
    give_back(tape);
    tlmi_spin_unlock(&tape->lock);
    return TLM_OK;
}

void tlm_detach_record(tlm_object object, tlm_slot slot)
{
    if (tlmi_probe_on())
        tlmi_event_append(TLM_KIND_DETACH, TLM_DEVICE_NONE, object, slot, tlmi_site_here(), 0);
}

/* ---- looking ---- */

/* For the sampler: of the records on all tapes, without a lock. */
static uint64_t record_bytes(void)
{
    uint64_t bytes = 0;
    uint32_t last = atomic_load_explicit(&highest, memory_order_relaxed);
    for (uint32_t number = 1; number <= last; number++)
        bytes += atomic_load_explicit(&tlmi_tape_numbered(number)->shown_bytes, memory_order_relaxed);
    return bytes;
}

__attribute__((constructor(TLMI_GAUGES_PRIORITY))) static void offer_gauge(void)
{
    tlmi_gauges_of_layers.tape_bytes = record_bytes;
}

void tlm_tape_stats(tlm_tape *tape, tlm_tape_statistics *out)
{
    tlmi_spin_lock(&tape->lock);
    *out = tape->sums;
    out->spent = tape->sums.recorded - tape->sums.records;
    out->capacity = tape->capacity;
    out->own_bytes = tape->own_bytes;
    tlmi_spin_unlock(&tape->lock);
}

uint32_t tlm_tape_op_rows(tlm_tape *tape, tlm_tape_op_row *out, uint32_t room)
{
    uint32_t count = 0;
    tlmi_spin_lock(&tape->lock);
    for (uint32_t op = 0; op < tape->by_op_room; op++)
        if (tape->by_op[op].recorded && count++ < room)
            out[count - 1] = tape->by_op[op];
    tlmi_spin_unlock(&tape->lock);
    return count;
}

uint32_t tlm_tape_use_counts(tlm_tape *tape, tlm_tape_use *out, uint32_t room)
{
    tlmi_spin_lock(&tape->lock);
    uint32_t count = tape->slots;
    for (uint32_t index = 1; count <= room && index <= count; index++) {
        const tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        bool is_here = slot->references > 0;
        out[index - 1] = (tlm_tape_use){
            .slot = is_here ? tlmi_slot_number(tape, slot) : 0,
            .sequence = slot->sequence,
            .op = is_here && !slot->is_leaf ? slot->op : 0,
        };
    }
    for (uint32_t index = 1; count <= room && index <= count; index++) {
        const tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        bool will_run = slot->references > 0 && !slot->is_leaf && !slot->is_spent;
        for (uint32_t i = 0; will_run && i < slot->input_count; i++)
            if (tlmi_slot_inputs(slot)[i])
                out[tlmi_slot_inputs(slot)[i] - 1].uses++;
    }
    tlmi_spin_unlock(&tape->lock);
    return count;
}

tlm_place tlm_tape_holder_place(tlm_holder holder)
{
    tlm_place found = {0};
    for (uint32_t number = 1; number <= MOST_TAPES && !found.code; number++) {
        tlm_tape *tape = tlmi_tape_numbered(number);
        tlmi_spin_lock(&tape->lock);
        for (uint32_t index = 1; tape->exists && index <= tape->slots && !found.code; index++) {
            const tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
            if (slot->references > 0 && tlmi_tape_holder(slot->op, slot->sequence) == holder)
                found = slot->place;
        }
        tlmi_spin_unlock(&tape->lock);
    }
    return found;
}
