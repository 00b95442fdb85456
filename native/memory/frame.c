/* SPDX-License-Identifier: MIT
 * frame.c: the memory of one call: a scope with numbered slots, whose buffers end with it, and never before.
 *
 * A slot's buffer is an object that the frame holds. When a slot needs more room its old buffer stays until the frame's end,
 * since the caller may still look into it. At the end the scope lets go of its records first, then the slots' buffers go,
 * then those that were replaced. A buffer that somebody else holds then goes all the same, and that is recorded.
 */
#include <string.h>

#include "memory/memory.h"

enum { FIRST_REPLACED = 4 };

static tlm_holder holder_of(const tlmi_scope *frame)
{
    return TLM_HOLDER(TLM_HOLDER_FRAME, frame->id);
}

static uint16_t short_count(uint32_t number)
{
    return (uint16_t)(number < 65535 ? number : 65535);
}

/* One block for both arrays, buffers first. */
static size_t slots_bytes(uint32_t slots)
{
    return (size_t)slots * (sizeof(tlm_object) + sizeof(uint64_t));
}

tlm_status tlm_frame_enter(tlm_label label, uint32_t slots, uint64_t *id)
{
    tlm_object *buffers = slots ? tlmi_slab_alloc(slots_bytes(slots)) : NULL;
    if (slots && !buffers)
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, slots_bytes(slots), 0);
    tlmi_scope *frame = NULL;
    tlm_status status = tlmi_scope_open(label, &frame);
    if (status != TLM_OK) {
        tlmi_slab_free(buffers, slots_bytes(slots));
        return status;
    }
    frame->is_frame = true;
    frame->slots = slots;
    frame->buffers = buffers;
    frame->capacities = buffers ? buffers + slots : NULL;
    frame->replaced = NULL;
    frame->replaced_room = frame->replaced_used = 0;
    frame->outer_frame = frame->context->frame;
    frame->context->frame = frame;
    if (tlmi_probe_on())
        tlmi_event_append(TLM_KIND_FRAME_ENTER, TLM_DEVICE_NONE, frame->id, slots, tlmi_site_here(), 0);
    *id = frame->id;
    return TLM_OK;
}

/* ---- slots ---- */

static bool is_alive(tlm_object buffer)
{
    tlmi_slot_of_object *slot = tlmi_object_lock(buffer);
    if (slot)
        tlmi_object_unlock(slot);
    return slot != NULL;
}

static bool make_room_for_replaced(tlmi_scope *frame)
{
    if (frame->replaced_used < frame->replaced_room)
        return true;
    uint32_t room = frame->replaced_room ? frame->replaced_room * 2 : FIRST_REPLACED;
    tlm_object *bigger = tlmi_slab_alloc(room * sizeof *bigger);
    if (!bigger)
        return false;
    if (frame->replaced_used)
        memcpy(bigger, frame->replaced, frame->replaced_used * sizeof *bigger);
    tlmi_slab_free(frame->replaced, frame->replaced_room * sizeof *bigger);
    frame->replaced = bigger;
    frame->replaced_room = room;
    return true;
}

static tlm_status make_buffer(tlmi_scope *frame, uint64_t bytes, uint32_t site, tlm_object *out)
{
    tlmi_slot_of_object *slot = tlmi_object_create(TLM_OBJECT_BUFFER, TLM_DEVICE_CPU);
    if (!slot)
        return TLM_NO_MEMORY;
    tlm_status status = tlmi_arena_payload(&frame->context->arena, true, slot, bytes);
    if (status != TLM_OK) {
        tlmi_object_cancel(slot);
        return status;
    }
    *out = tlmi_object_publish(slot, site);
    slot = tlmi_object_lock(*out);
    tlmi_hand_over(slot, TLM_HOLDER(TLM_HOLDER_FLOATING, 0), holder_of(frame), site);
    tlmi_object_unlock(slot);
    return TLM_OK;
}

static void record_slot(tlm_kind kind, const tlmi_scope *frame, uint32_t slot, uint32_t site)
{
    if (tlmi_probe_on())
        tlmi_event_append((uint8_t)kind, TLM_DEVICE_CPU, frame->buffers[slot], frame->id, site, short_count(slot));
}

/* Fills an empty slot, or one whose buffer has too little room. */
static tlm_status fill_slot(tlmi_scope *frame, uint32_t slot, uint64_t bytes, uint32_t site)
{
    bool grows = frame->buffers[slot] != 0;
    tlm_object buffer = 0;
    if (grows && !make_room_for_replaced(frame))
        return TLM_NO_MEMORY;
    tlm_status status = make_buffer(frame, bytes, site, &buffer);
    if (status != TLM_OK)
        return status;
    if (grows)
        frame->replaced[frame->replaced_used++] = frame->buffers[slot];
    frame->buffers[slot] = buffer;
    frame->capacities[slot] = bytes;
    record_slot(grows ? TLM_KIND_SLOT_GROW : TLM_KIND_SLOT_GET, frame, slot, site);
    return TLM_OK;
}

tlm_status tlm_frame_buffer(uint32_t slot, uint64_t bytes, tlm_object *out)
{
    uint32_t site = tlmi_site_for_events();
    tlmi_scope *frame = tlmi_context_here()->frame;
    if (!frame) {
        tlmi_misuse(TLM_MISUSE_NO_FRAME, TLM_DEVICE_NONE, 0, 0, site);
        return tlmi_fail(TLM_NO_FRAME, 0, 0, bytes, slot);
    }
    if (slot >= frame->slots)
        return tlmi_fail(TLM_BAD_SLOT, 0, holder_of(frame), bytes, slot);
    tlm_object buffer = frame->buffers[slot];
    if (buffer && !is_alive(buffer))
        buffer = frame->buffers[slot] = 0; /* freed behind the frame's back */
    if (buffer && bytes <= frame->capacities[slot]) {
        record_slot(TLM_KIND_SLOT_GET, frame, slot, site);
    } else {
        tlm_status status = fill_slot(frame, slot, bytes, site);
        if (status != TLM_OK)
            return tlmi_fail(status, buffer, holder_of(frame), bytes, slot);
    }
    *out = frame->buffers[slot];
    return TLM_OK;
}

/* ---- end ---- */

/* Who holds the object besides the frame. Under its lock. */
static tlm_holder other_holder(const tlmi_slot_of_object *slot, tlm_holder frame)
{
    bool first = slot->holders[0] && slot->holders[0] != frame;
    return first ? slot->holders[0] : slot->holders[1];
}

/* 1 when there was a buffer to free. */
static uint32_t end_buffer(const tlmi_scope *frame, tlm_object buffer, uint32_t site)
{
    tlm_holder holder = holder_of(frame);
    tlmi_slot_of_object *slot = tlmi_object_lock(buffer);
    if (!slot)
        return 0;
    bool is_sole = atomic_load_explicit(&slot->count, memory_order_relaxed) == 1 && tlmi_holder_remove(slot, holder);
    if (is_sole) {
        tlmi_object_let_go(slot, holder, site);
    } else {
        tlmi_misuse(TLM_MISUSE_OUTLIVES_FRAME, slot->device, buffer, other_holder(slot, holder), site);
        tlmi_object_end(slot, site);
    }
    return 1;
}

uint32_t tlmi_frame_end(tlmi_scope *frame, uint32_t site)
{
    uint32_t freed = 0;
    for (uint32_t i = frame->slots; i-- > 0;)
        freed += end_buffer(frame, frame->buffers[i], site);
    for (uint32_t i = frame->replaced_used; i-- > 0;)
        freed += end_buffer(frame, frame->replaced[i], site);
    tlmi_slab_free(frame->buffers, slots_bytes(frame->slots));
    tlmi_slab_free(frame->replaced, frame->replaced_room * sizeof *frame->replaced);
    frame->buffers = frame->replaced = NULL;
    frame->slots = 0;
    return freed;
}

static bool is_frame_here(uint64_t id)
{
    const tlmi_scope *frame = tlmi_context_here()->frame;
    while (frame && frame->id != id)
        frame = frame->outer_frame;
    return frame != NULL;
}

tlm_status tlm_frame_exit(uint64_t id, tlm_scope_statistics *out)
{
    if (!is_frame_here(id)) {
        tlmi_misuse(TLM_MISUSE_UNBALANCED_FRAME, TLM_DEVICE_NONE, 0, TLM_HOLDER(TLM_HOLDER_FRAME, id),
                    tlmi_site_for_events());
        return tlmi_fail(TLM_NOT_IN_SCOPE, 0, TLM_HOLDER(TLM_HOLDER_FRAME, id), 0, id);
    }
    return tlm_scope_exit(id, out);
}

uint64_t tlm_frame_current(void)
{
    const tlmi_scope *frame = tlmi_context_here()->frame;
    return frame ? frame->id : 0;
}

uint32_t tlm_frame_depth(void)
{
    uint32_t depth = 0;
    for (const tlmi_scope *frame = tlmi_context_here()->frame; frame; frame = frame->outer_frame)
        depth++;
    return depth;
}
