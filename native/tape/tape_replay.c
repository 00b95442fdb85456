/* SPDX-License-Identifier: MIT
 * tape_replay.c: values that were not saved are computed again from what was, when a rule wants them (docs/seed-map.md, S62).
 *
 * Only the pass under way comes here, so nobody else looks at the slots' replay fields. What has to be computed is found
 * first, in an order in which inputs come before outputs; each value is let go as soon as the last one that reads it is there.
 */
#include "tape/tape.h"

static tlm_holder replay_holder(uint64_t sequence)
{
    return tlmi_tape_holder(TLMI_OP_RECOMPUTED, sequence);
}

/* Where the value of a slot stands while it is computed again. */
static tlmi_saved *again(const tlmi_tape_slot *slot)
{
    return &tlmi_slot_sources(slot)[slot->input_count];
}

static void let_go_again(tlmi_tape_slot *slot)
{
    tlmi_saved *value = again(slot);
    tlmi_let_go(value->tensor.object, replay_holder(slot->sequence));
    value->tensor.object = 0;
}

/* Slots whose values are needed for that of `root`, inputs first; linked by replay_next. Counts how often each is read. */
static uint32_t plan(const tlm_tape *tape, uint32_t root)
{
    uint32_t stack = root, first = 0, last = 0;
    tlmi_tape_slot *slot = tlmi_tape_at(tape, root);
    slot->replay_next = 0;
    slot->replay_cursor = 0;
    slot->replay_uses = 1;
    while (stack) {
        slot = tlmi_tape_at(tape, stack);
        if (slot->replay_cursor < slot->input_count) {
            uint32_t link = tlmi_slot_sources(slot)[slot->replay_cursor++].link;
            tlmi_tape_slot *source = link ? tlmi_tape_at(tape, link) : NULL;
            if (source && source->replay_uses++ == 0) {
                source->replay_cursor = 0;
                source->replay_next = stack;
                stack = link;
            }
            continue;
        }
        stack = slot->replay_next;
        slot->replay_next = 0;
        if (last)
            tlmi_tape_at(tape, last)->replay_next = slot->index;
        else
            first = slot->index;
        last = slot->index;
    }
    return first;
}

/* One count less of what a computed value is needed for. */
static void use_up(tlmi_tape_slot *slot)
{
    if (--slot->replay_uses == 0)
        let_go_again(slot);
}

static tlm_status compute(tlm_tape *tape, tlmi_tape_slot *slot)
{
    enum { FEW = 8 };
    tlm_tensor few[FEW], out = {0};
    const tlm_op *op = tlmi_op(slot->op);
    tlmi_saved *sources = tlmi_slot_sources(slot);
    size_t bytes = slot->input_count * sizeof(tlm_tensor);
    tlm_tensor *inputs = slot->input_count <= FEW ? few : tlmi_slab_alloc(bytes);
    tlm_status status = inputs ? TLM_OK : tlmi_fail(TLM_NO_MEMORY, 0, 0, bytes, 0);
    bool is_view = false;
    for (uint32_t i = 0; i < slot->input_count && status == TLM_OK; i++) {
        status = tlmi_saved_check(&sources[i], slot);
        inputs[i] = sources[i].link ? again(tlmi_tape_at(tape, sources[i].link))->tensor : sources[i].tensor;
    }
    if (status == TLM_OK)
        status = op->replay(op->context, tlmi_slot_params(slot), inputs, slot->input_count, &out);
    for (uint32_t i = 0; i < slot->input_count && status == TLM_OK; i++)
        is_view = is_view || (out.object && out.object == inputs[i].object);
    if (status == TLM_OK)
        status = tlmi_hold(out.object, replay_holder(slot->sequence), !is_view);
    if (status == TLM_OK)
        again(slot)->tensor = out;
    if (inputs && inputs != few)
        tlmi_slab_free(inputs, bytes);
    tlmi_spin_lock(&tape->lock);
    tape->sums.replays++;
    tlmi_spin_unlock(&tape->lock);
    return status;
}

tlm_status tlmi_replay_link(tlm_tape *tape, tlmi_saved *saved)
{
    uint32_t first = plan(tape, saved->link);
    tlm_status status = TLM_OK;
    for (uint32_t index = first; index;) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        index = slot->replay_next;
        if (status == TLM_OK)
            status = compute(tape, slot);
        if (status != TLM_OK)
            continue;
        const tlmi_saved *sources = tlmi_slot_sources(slot);
        for (uint32_t i = 0; i < slot->input_count; i++)
            if (sources[i].link)
                use_up(tlmi_tape_at(tape, sources[i].link));
    }
    for (uint32_t index = first; index;) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        index = slot->replay_next;
        if (status != TLM_OK || slot->index != saved->link) {
            if (slot->replay_uses > 0)
                let_go_again(slot);
        }
        slot->replay_uses = 0;
    }
    if (status != TLM_OK)
        return status;
    tlmi_saved *value = again(tlmi_tape_at(tape, saved->link));
    saved->tensor = value->tensor;
    value->tensor.object = 0; /* its count is the caller's until tlmi_replay_end */
    return TLM_OK;
}

void tlmi_replay_end(tlmi_saved *saved, uint64_t sequence)
{
    tlmi_let_go(saved->tensor.object, replay_holder(sequence));
    saved->tensor.object = 0;
}
