/* SPDX-License-Identifier: MIT
 * tape_record.c: ops by number, leaves and records: what is held from the moment an operation has run, and what is not.
 *
 * Ops are never taken away; readers of them need no lock.
 */
#include <stdio.h>
#include <string.h>

#include "tape/tape.h"

/* ---- ops ---- */

enum { MOST_OPS = 65536, CHUNK = 256 };

typedef struct {
    tlm_op op;
    _Atomic uint64_t named_in; /* epoch of the recording that has its name */
} known_op;

static known_op *_Atomic chunks[MOST_OPS / CHUNK];
static struct {
    tlmi_spin lock;
    uint32_t next;
} registry = {.next = TLMI_OP_FIRST};
static known_op own[TLMI_OP_FIRST] = {
    [TLMI_OP_GRADIENT] = {.op = {.name = "gradient"}},
    [TLMI_OP_STORED] = {.op = {.name = "leaf-gradient"}},
    [TLMI_OP_RECOMPUTED] = {.op = {.name = "recomputed"}},
};

static known_op *find(uint32_t number)
{
    if (number < TLMI_OP_FIRST)
        return &own[number];
    known_op *chunk = number < MOST_OPS ? atomic_load_explicit(&chunks[number / CHUNK], memory_order_acquire) : NULL;
    return chunk && chunk[number % CHUNK].op.name ? &chunk[number % CHUNK] : NULL;
}

const tlm_op *tlmi_op(uint32_t number)
{
    const known_op *known = find(number);
    return known ? &known->op : NULL;
}

const char *tlm_op_name(uint32_t number)
{
    const tlm_op *op = tlmi_op(number);
    return op && op->name ? op->name : "";
}

static known_op *next_place(void)
{
    if (registry.next >= MOST_OPS)
        return NULL;
    known_op *chunk = atomic_load_explicit(&chunks[registry.next / CHUNK], memory_order_relaxed);
    if (!chunk) {
        chunk = tlmi_own_alloc(CHUNK * sizeof *chunk);
        atomic_store_explicit(&chunks[registry.next / CHUNK], chunk, memory_order_release);
    }
    return chunk ? &chunk[registry.next % CHUNK] : NULL;
}

tlm_status tlm_op_define(const tlm_op *op, uint32_t *number)
{
    tlm_label label = op->name ? tlm_label_of(op->name) : 0;
    if (!label || !op->rule)
        return tlmi_fail(op->name && op->rule ? TLM_NO_MEMORY : TLM_BAD_ARGUMENT, 0, 0, 0, 0);
    tlmi_spin_lock(&registry.lock);
    known_op *place = next_place();
    if (place) {
        place->op = *op;
        place->op.name = tlm_label_text(label);
        *number = registry.next++;
    }
    tlmi_spin_unlock(&registry.lock);
    return place ? TLM_OK : tlmi_fail(TLM_NO_MEMORY, 0, 0, sizeof *place, 0);
}

/* Holders say an op's number; a note says once in each recording what it is called. */
static void write_name(uint32_t number, uint64_t recording)
{
    known_op *known = find(number);
    char key[24];
    if (!known || !known->op.name ||
        atomic_exchange_explicit(&known->named_in, recording, memory_order_relaxed) == recording)
        return;
    snprintf(key, sizeof key, "op.%u", number);
    tlmi_meta_note(key, known->op.name);
}

void tlmi_op_write_names(uint32_t number)
{
    uint64_t recording = atomic_load_explicit(&tlmi_recording_epoch, memory_order_relaxed);
    const known_op *known = find(number);
    if (!known || atomic_load_explicit(&known->named_in, memory_order_relaxed) == recording)
        return;
    for (uint32_t each = TLMI_OP_GRADIENT; each <= TLMI_OP_RECOMPUTED; each++)
        write_name(each, recording);
    write_name(number, recording);
}

/* ---- records ---- */

static _Atomic uint64_t next_sequence = 1;

uint64_t tlmi_tape_next_sequence(void)
{
    return atomic_load_explicit(&next_sequence, memory_order_relaxed);
}

int tlm_grad_mode_current(void)
{
    return !tlmi_context_here()->records_nothing;
}

int tlm_grad_mode(int on)
{
    tlm_context *context = tlmi_context_here();
    int former = !context->records_nothing;
    context->records_nothing = !on;
    return former;
}

/* A slot as far as leaves and records are alike; locked. */
static tlmi_tape_slot *begin_slot(tlm_tape *tape, const tlm_tensor *value, uint32_t block_bytes, uint64_t sequence)
{
    tlmi_tape_slot *slot = tlmi_slot_take(tape, block_bytes);
    if (!slot)
        return NULL;
    slot->value = *value;
    slot->sequence = sequence;
    return slot;
}

tlm_status tlm_tape_leaf(tlm_tape *tape, const tlm_tensor *tensor, tlm_slot *out)
{
    uint64_t sequence = atomic_fetch_add_explicit(&next_sequence, 1, memory_order_relaxed);
    if (tlmi_probe_on())
        tlmi_op_write_names(TLMI_OP_STORED);
    tlmi_spin_lock(&tape->lock);
    tlmi_tape_slot *slot = begin_slot(tape, tensor, 0, sequence);
    if (slot) {
        slot->is_leaf = true;
        slot->op = TLMI_OP_STORED;
        tape->sums.leaves++;
        *out = tlmi_slot_number(tape, slot);
    }
    tlmi_spin_unlock(&tape->lock);
    return slot ? TLM_OK : tlmi_fail(TLM_NO_MEMORY, tensor->object, 0, sizeof *slot, 0);
}

/* ---- the parts of a record ---- */

/* The inputs' slots with one more reference each, as indexes; locked. On failure nothing is referred to. */
static tlm_status refer_to_inputs(tlm_tape *tape, const tlm_record *record, uint32_t *inputs)
{
    for (uint32_t i = 0; i < record->inputs; i++) {
        tlm_slot number = record->slots[i];
        uint32_t index = (uint32_t)number & ((1u << 28) - 1), generation = (uint32_t)(number >> 28) & ((1u << 28) - 1);
        tlmi_tape_slot *slot =
            number && number >> 56 == tape->number && index && index <= tape->slots ? tlmi_tape_at(tape, index) : NULL;
        bool is_there = slot && slot->references > 0 && slot->generation == generation;
        inputs[i] = 0;
        if (is_there) {
            slot->references++;
            inputs[i] = index;
        } else if (number) {
            uint32_t none = 0;
            while (i-- > 0)
                if (inputs[i])
                    tlmi_slot_drop(tape, tlmi_tape_at(tape, inputs[i]), &none); /* the caller has one of each */
            bool is_of_another = number >> 56 != tape->number && tlmi_tape_numbered((uint32_t)(number >> 56))->exists;
            return is_of_another ? TLM_WRONG_TAPE : TLM_STALE_SLOT;
        }
    }
    return TLM_OK;
}

static bool may_recompute(const tlmi_tape_slot *slot)
{
    const tlm_op *op = tlmi_op(slot->op);
    return slot->recomputes && !slot->is_spent && op && op->replay;
}

/* Holds one tensor, or refers to the slot that can compute it again. */
static tlm_status hold(tlm_tape *tape, tlmi_tape_slot *slot, uint32_t producer, const tlm_tensor *tensor, bool owned,
                       tlmi_saved *saved)
{
    tlm_holder holder = tlmi_tape_holder(slot->op, slot->sequence);
    tlmi_spin_lock(&tape->lock);
    tlmi_tape_slot *source = producer ? tlmi_tape_at(tape, producer) : NULL;
    bool is_linked = source && may_recompute(source);
    if (is_linked && source != slot)
        source->references++;
    tlmi_spin_unlock(&tape->lock);
    if (!is_linked)
        return tlmi_save(tape, tensor, owned, holder, saved);
    *saved = (tlmi_saved){.tensor = *tensor, .link = producer};
    saved->tensor.object = 0;
    return TLM_OK;
}

static uint64_t bytes_of(const tlm_tensor *tensor)
{
    tlm_object_info info;
    return tensor->object && tlm_object_describe(tensor->object, &info) == TLM_OK ? info.bytes : 0;
}

/* Fills saves and sources. On failure what was held so far is counted in slot->save_count and *sources. */
static tlm_status hold_all(tlm_tape *tape, tlmi_tape_slot *slot, const tlm_record *record)
{
    const uint32_t *inputs = tlmi_slot_inputs(slot);
    tlm_status status = TLM_OK;
    tlmi_saved *sources = tlmi_slot_sources(slot), *saves = tlmi_slot_saves(slot);
    for (uint32_t i = 0; slot->recomputes && i < record->inputs && status == TLM_OK; i++)
        status = hold(tape, slot, inputs[i], &record->tensors[i], false, &sources[i]);
    for (uint32_t i = 0; i < record->save_count && status == TLM_OK; i++) {
        const tlm_save *save = &record->saves[i];
        uint32_t producer = save->what == TLM_SAVE_OUTPUT ? slot->index : save->what >= 0 ? inputs[save->what] : 0;
        bool owned = save->what == TLM_SAVE_EXTRA && save->owned;
        status = hold(tape, slot, producer, &save->tensor, owned, &saves[i]);
        slot->saved_bytes += status == TLM_OK && !saves[i].link ? bytes_of(&save->tensor) : 0;
    }
    return status;
}

/* Takes back what hold_all did before it failed. Extras float again; params and place stay the caller's. */
static void undo(tlm_tape *tape, tlmi_tape_slot *slot, const tlm_record *record)
{
    tlmi_saved *saves = tlmi_slot_saves(slot);
    uint32_t dying = 0;
    for (uint32_t i = 0; i < record->save_count; i++)
        if (record->saves[i].what == TLM_SAVE_EXTRA && record->saves[i].owned)
            tlmi_unsave_floating(tape, &saves[i], tlmi_tape_holder(slot->op, slot->sequence));
    slot->saved_bytes = 0;
    tlmi_record_release(tape, slot, false, &dying);
    tlmi_spin_lock(&tape->lock);
    tlmi_slot_drop(tape, slot, &dying);
    tlmi_spin_unlock(&tape->lock);
    tlmi_slot_bury(tape, dying);
}

static bool count_op(tlm_tape *tape, uint32_t op)
{
    if (tlmi_unlikely(op >= tape->by_op_room)) {
        uint32_t room = tape->by_op_room ? tape->by_op_room : 64;
        while (room <= op)
            room *= 2;
        tlm_tape_op_row *rows = tlmi_slab_alloc(room * sizeof *rows);
        if (!rows)
            return false;
        if (tape->by_op) {
            memcpy(rows, tape->by_op, tape->by_op_room * sizeof *rows);
            tlmi_slab_free(tape->by_op, tape->by_op_room * sizeof *rows);
        }
        tape->own_bytes += (room - tape->by_op_room) * sizeof *rows;
        tape->by_op = rows;
        tape->by_op_room = room;
    }
    tape->by_op[op].op = op;
    tape->by_op[op].records++;
    tape->by_op[op].recorded++;
    tape->sums.records++;
    tlmi_tape_show_bytes(tape);
    tape->sums.recorded++;
    if (tape->sums.records > tape->sums.peak_records)
        tape->sums.peak_records = tape->sums.records;
    return true;
}

/* Lays the record out in the slot's block; locked. */
static void lay_out(tlmi_tape_slot *slot, const tlm_record *record, const tlm_op *op)
{
    slot->op = record->op;
    slot->recomputes = record->recompute && op->replay && record->tensors;
    slot->save_count = record->save_count;
    slot->input_count = record->inputs;
    slot->params_bytes = record->params_bytes;
    slot->place = (tlm_place){0};
    memset(slot->block, 0, (size_t)((uint8_t *)tlmi_slot_params(slot) - slot->block));
    if (record->params_bytes)
        memcpy(tlmi_slot_params(slot), record->params, record->params_bytes);
}

static tlm_status begin_record(tlm_tape *tape, const tlm_record *record, const tlm_op *op, tlmi_tape_slot **out)
{
    size_t parts = record->save_count + (record->recompute ? record->inputs + 1 : 0);
    size_t bytes = parts * sizeof(tlmi_saved) + record->params_bytes + 8 + record->inputs * sizeof(uint32_t);
    uint64_t sequence = atomic_fetch_add_explicit(&next_sequence, 1, memory_order_relaxed);
    tlm_status status = TLM_NO_MEMORY;
    uint32_t none = 0;
    tlmi_spin_lock(&tape->lock);
    tlmi_tape_slot *slot = begin_slot(tape, record->output, (uint32_t)bytes, sequence);
    if (slot) {
        lay_out(slot, record, op);
        status = refer_to_inputs(tape, record, tlmi_slot_inputs(slot));
        if (status == TLM_OK && !count_op(tape, record->op)) {
            status = TLM_NO_MEMORY;
            for (uint32_t i = 0; i < record->inputs; i++)
                if (tlmi_slot_inputs(slot)[i])
                    tlmi_slot_drop(tape, tlmi_tape_at(tape, tlmi_slot_inputs(slot)[i]), &none);
        }
        if (status != TLM_OK) {
            slot->is_spent = true; /* there is nothing to let go of */
            tlmi_slot_drop(tape, slot, &none);
        }
    }
    tlmi_spin_unlock(&tape->lock);
    tlmi_slot_bury(tape, none);
    *out = slot;
    return status == TLM_OK ? TLM_OK : tlmi_fail(status, record->output->object, 0, bytes, record->op);
}

static void record_events(const tlmi_tape_slot *slot, const tlm_record *record)
{
    const tlm_tensor *output = record->output;
    tlmi_op_write_names(record->op);
    tlmi_event_append(TLM_KIND_TAPE_RECORD, (uint8_t)output->device, output->object,
                      (uint64_t)record->op << 40 | (slot->sequence & UINT64_C(0xFFFFFFFFFF)), tlmi_site_here(),
                      (uint16_t)record->save_count);
}

tlm_status tlm_tape_record(tlm_tape *tape, const tlm_record *record, tlm_slot *out)
{
    const tlm_op *op = tlmi_op(record->op);
    tlmi_tape_slot *slot;
    bool is_wanted = false;
    *out = 0;
    for (uint32_t i = 0; i < record->inputs; i++)
        is_wanted = is_wanted || record->slots[i] != 0;
    if (!is_wanted || !tlm_grad_mode_current())
        return TLM_OK;
    if (!op || !op->rule)
        return tlmi_fail(TLM_BAD_ARGUMENT, record->output->object, 0, 0, record->op);
    tlm_status status = begin_record(tape, record, op, &slot);
    if (status != TLM_OK)
        return status;
    if (tlmi_probe_on())
        record_events(slot, record);
    status = hold_all(tape, slot, record);
    if (status != TLM_OK) {
        tlm_failure why;
        tlm_failure_last(&why);
        undo(tape, slot, record);
        return tlmi_fail(status, why.object, why.holder, why.bytes, why.detail);
    }
    slot->place = record->place;
    tlmi_spin_lock(&tape->lock);
    tape->by_op[slot->op].saved_bytes += slot->saved_bytes;
    *out = tlmi_slot_number(tape, slot);
    tlmi_spin_unlock(&tape->lock);
    return TLM_OK;
}
