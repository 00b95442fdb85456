/* SPDX-License-Identifier: MIT
 * tape_grads.c: gradients: what arrives at a slot during a pass, what leaves and kept slots have afterwards.
 *
 * What arrives may share its object with others and have strides of 0: it is only read, and added to in place only when nobody
 * else holds it. What is stored has memory of its own.
 */
#include "tape/tape.h"

static tlm_holder incoming_holder(const tlmi_tape_slot *slot)
{
    return tlmi_tape_holder(TLMI_OP_GRADIENT, slot->sequence);
}

static tlm_holder stored_holder(const tlmi_tape_slot *slot)
{
    return tlmi_tape_holder(TLMI_OP_STORED, slot->sequence);
}

static int64_t item_bytes(const tlm_tensor *tensor)
{
    return tensor->dtype == TLM_FLOAT32 || tensor->dtype == TLM_INT32 ? 4 : tensor->dtype == TLM_BOOL ? 1 : 8;
}

int64_t tlmi_tensor_elements(const tlm_tensor *tensor)
{
    int64_t elements = 1;
    for (int axis = 0; axis < tensor->axes; axis++)
        elements *= tensor->shape[axis];
    return elements;
}

bool tlmi_tensor_is_dense(const tlm_tensor *tensor)
{
    int64_t step = item_bytes(tensor);
    if (!tensor->object)
        return false;
    for (int axis = tensor->axes - 1; axis >= 0; axis--) {
        if (tensor->shape[axis] != 1 && tensor->strides[axis] != step)
            return false;
        step *= tensor->shape[axis];
    }
    return true;
}

/* Nobody else's, and each element in a place of its own: what is added to it in place changes nothing else. */
static bool may_add_to(const tlm_tensor *tensor)
{
    for (int axis = 0; axis < tensor->axes; axis++)
        if (tensor->shape[axis] > 1 && tensor->strides[axis] == 0)
            return false;
    return tlmi_is_sole(tensor->object);
}

/* Memory of its own, nobody else's, no larger than it needs; in whatever order its elements lie. */
static bool is_own(const tlm_tensor *tensor)
{
    tlm_object_info info;
    return may_add_to(tensor) && tlm_object_describe(tensor->object, &info) == TLM_OK &&
           info.bytes == (uint64_t)(tlmi_tensor_elements(tensor) * item_bytes(tensor));
}

static void free_floating(const tlm_tensor *made)
{
    if (made->object)
        tlm_free(made->object);
}

/* sum = one + other, in memory of its own, floating. */
static tlm_status add_beside(const tlm_tape *tape, const tlm_tensor *one, const tlm_tensor *other, tlm_tensor *sum)
{
    tlm_status status = tape->arithmetic.copy(one, sum);
    if (status != TLM_OK)
        return status;
    status = tape->arithmetic.add(sum, other);
    if (status != TLM_OK)
        free_floating(sum);
    return status;
}

/* What has arrived is replaced by a floating tensor. */
static tlm_status replace(tlmi_tape_slot *slot, const tlm_tensor *by)
{
    tlm_status status = tlmi_hold(by->object, incoming_holder(slot), true);
    if (status != TLM_OK)
        return status;
    tlmi_let_go(slot->incoming.object, incoming_holder(slot));
    slot->incoming = *by;
    return TLM_OK;
}

static tlm_status add_to_incoming(tlm_tape *tape, tlmi_tape_slot *slot, const tlm_tensor *gradient, bool owned)
{
    tlm_tensor *incoming = &slot->incoming;
    tlm_tensor sum;
    tlm_status status;
    if (tlmi_tensor_is_dense(incoming) && incoming->object != gradient->object && tlmi_is_sole(incoming->object)) {
        status = tape->arithmetic.add(incoming, gradient);
        if (owned)
            free_floating(gradient);
        return status;
    }
    if (owned && tlmi_tensor_is_dense(gradient) && tlmi_is_sole(gradient->object)) {
        status = tape->arithmetic.add(gradient, incoming);
        if (status == TLM_OK)
            status = replace(slot, gradient);
        if (status != TLM_OK)
            free_floating(gradient);
        return status;
    }
    status = add_beside(tape, incoming, gradient, &sum);
    if (owned)
        free_floating(gradient);
    if (status == TLM_OK)
        status = replace(slot, &sum);
    return status;
}

tlm_status tlmi_grad_arrive(tlm_tape *tape, tlmi_tape_slot *slot, const tlm_tensor *gradient, bool owned)
{
    if (slot->has_incoming)
        return add_to_incoming(tape, slot, gradient, owned);
    tlm_status status = tlmi_hold(gradient->object, incoming_holder(slot), owned);
    if (status != TLM_OK) {
        if (owned)
            free_floating(gradient);
        return status;
    }
    slot->incoming = *gradient;
    slot->has_incoming = true;
    return TLM_OK;
}

void tlmi_grad_drop_incoming(tlmi_tape_slot *slot)
{
    if (!slot->has_incoming)
        return;
    slot->has_incoming = false;
    tlmi_let_go(slot->incoming.object, incoming_holder(slot));
}

/* Room for what is stored, which stays with the slot; locked. false: no memory. */
static bool reserve_stored(tlm_tape *tape, tlmi_tape_slot *slot)
{
    if (slot->stored)
        return true;
    slot->stored = tlmi_slab_alloc(sizeof *slot->stored);
    tape->own_bytes += slot->stored ? sizeof *slot->stored : 0;
    return slot->stored != NULL;
}

static tlm_status no_room(const tlmi_tape_slot *slot)
{
    return tlmi_fail(TLM_NO_MEMORY, slot->value.object, stored_holder(slot), sizeof *slot->stored, 0);
}

/* What is stored becomes `by`, whose count is the slot's already, or nothing (NULL). Returns the object that was stored, whose
 * count is the caller's now; other threads may clear and set gradients at the same time, and one of them gets it. Locked. */
static tlm_object exchange_stored(tlm_tape *tape, tlmi_tape_slot *slot, const tlm_tensor *by)
{
    uint64_t bytes = (uint64_t)(tlmi_tensor_elements(&slot->value) * item_bytes(&slot->value));
    tlm_object former = slot->has_stored ? slot->stored->object : 0;
    if (slot->has_stored != (by != NULL)) {
        tape->sums.grads += by ? 1 : UINT64_MAX;
        tape->sums.grad_bytes += by ? bytes : -bytes;
    }
    slot->has_stored = by != NULL;
    if (by)
        *slot->stored = *by;
    return former;
}

static void store(tlm_tape *tape, tlmi_tape_slot *slot, const tlm_tensor *gradient)
{
    tlmi_spin_lock(&tape->lock);
    tlm_object former = exchange_stored(tape, slot, gradient);
    tlmi_spin_unlock(&tape->lock);
    tlmi_let_go(former, stored_holder(slot));
}

void tlmi_grad_drop_stored(tlm_tape *tape, tlmi_tape_slot *slot)
{
    store(tape, slot, NULL);
}

/* What is stored, in memory that stays until tlm_unpin, whoever clears gradients meanwhile; false: nothing is. Locked. */
static bool pin_stored(const tlmi_tape_slot *slot, tlm_tensor *stored, tlm_object *pinned)
{
    *pinned = 0;
    if (!slot->has_stored)
        return false;
    *stored = *slot->stored;
    if (stored->object)
        (void)tlm_pin(stored->object, pinned);
    return true;
}

/* What is stored, held for a moment, whoever clears gradients meanwhile; false: nothing is. *may_add: nobody else held it. */
static bool hold_stored(tlm_tape *tape, const tlmi_tape_slot *slot, tlm_tensor *stored, bool *may_add)
{
    tlmi_spin_lock(&tape->lock);
    bool is_there = slot->has_stored;
    if (is_there) {
        *stored = *slot->stored;
        *may_add = may_add_to(stored);
        if (stored->object)
            (void)tlm_acquire(stored->object, incoming_holder(slot));
    }
    tlmi_spin_unlock(&tape->lock);
    return is_there;
}

/* What has arrived gets memory of its own. */
static tlm_status make_own(tlm_tape *tape, tlmi_tape_slot *slot)
{
    tlm_tensor whole;
    if (is_own(&slot->incoming))
        return TLM_OK;
    tlm_status status = tape->arithmetic.copy(&slot->incoming, &whole);
    if (status != TLM_OK)
        return status;
    status = replace(slot, &whole);
    if (status != TLM_OK)
        free_floating(&whole);
    return status;
}

tlm_status tlmi_grad_prepare(tlm_tape *tape, tlmi_tape_slot *slot)
{
    bool may_add;
    tlm_tensor whole, stored;
    tlm_status status = TLM_OK;
    slot->adds_in_place = false;
    if (!slot->has_incoming)
        return TLM_OK;
    tlmi_spin_lock(&tape->lock);
    bool has_room = reserve_stored(tape, slot);
    tlmi_spin_unlock(&tape->lock);
    if (!has_room)
        return no_room(slot);
    if (!hold_stored(tape, slot, &stored, &may_add))
        return make_own(tape, slot);
    slot->adds_in_place = may_add; /* when committing */
    if (!slot->adds_in_place)
        status = add_beside(tape, &stored, &slot->incoming, &whole);
    tlmi_let_go(stored.object, incoming_holder(slot));
    if (slot->adds_in_place || status != TLM_OK)
        return status;
    status = replace(slot, &whole);
    if (status != TLM_OK)
        free_floating(&whole);
    return status;
}

tlm_status tlmi_grad_commit(tlm_tape *tape, tlmi_tape_slot *slot)
{
    bool may_add;
    tlm_tensor stored;
    if (!slot->has_incoming)
        return TLM_OK;
    /* As prepared, whoever holds it by now: what arrived may or may not contain what was there. */
    if (slot->adds_in_place && hold_stored(tape, slot, &stored, &may_add)) {
        tlm_status status = tape->arithmetic.add(&stored, &slot->incoming);
        tlmi_let_go(stored.object, incoming_holder(slot));
        tlmi_grad_drop_incoming(slot);
        return status;
    }
    tlm_status status = make_own(tape, slot); /* it is, unless somebody cleared the gradient since */
    if (status != TLM_OK)
        return status;
    slot->has_incoming = false;
    status = tlm_move(slot->incoming.object, incoming_holder(slot), stored_holder(slot));
    if (status == TLM_OK)
        store(tape, slot, &slot->incoming);
    return status;
}

/* ---- what the program asks ---- */

static tlm_status stale(tlm_slot number)
{
    return tlmi_fail(TLM_STALE_SLOT, 0, 0, 0, number);
}

tlm_status tlm_slot_grad(tlm_slot number, tlm_tensor *out)
{
    tlm_tape *tape;
    *out = (tlm_tensor){0};
    tlmi_tape_slot *slot = tlmi_slot_lock(number, &tape);
    if (!slot)
        return stale(number);
    if (slot->has_stored)
        *out = *slot->stored;
    tlmi_spin_unlock(&tape->lock);
    return TLM_OK;
}

tlm_status tlm_slot_retain_grad(tlm_slot number)
{
    tlm_tape *tape;
    tlmi_tape_slot *slot = tlmi_slot_lock(number, &tape);
    if (!slot)
        return stale(number);
    slot->keeps_grad = true;
    tlmi_spin_unlock(&tape->lock);
    return TLM_OK;
}

tlm_status tlm_slot_set_grad(tlm_slot number, const tlm_tensor *gradient)
{
    tlm_slot_info info;
    tlm_tape *tape;
    tlm_status status = tlm_slot_describe(number, &info);
    if (status != TLM_OK)
        return status;
    tlm_holder holder = tlmi_tape_holder(TLMI_OP_STORED, info.sequence);
    tlm_object_info object;
    if (gradient->object && tlm_object_describe(gradient->object, &object) == TLM_OK && object.flags & TLM_FLAG_ARENA)
        return tlmi_fail(TLM_IN_ARENA, gradient->object, holder, object.bytes, 0);
    status = tlm_acquire(gradient->object, holder);
    if (status != TLM_OK)
        return status;
    tlmi_tape_slot *slot = tlmi_slot_lock(number, &tape);
    if (!slot) { /* its tape was reset meanwhile */
        tlmi_let_go(gradient->object, holder);
        return stale(number);
    }
    bool has_room = !gradient->object || reserve_stored(tape, slot);
    tlm_object former = gradient->object;
    if (has_room)
        former = exchange_stored(tape, slot, gradient->object ? gradient : NULL);
    status = has_room ? TLM_OK : no_room(slot);
    tlmi_spin_unlock(&tape->lock);
    tlmi_let_go(former, holder);
    return status;
}

/* Lets go of every stored gradient of which `goes` says so, while its memory is pinned. Returns how many were stored. */
static uint64_t visit_stored(tlm_tape *tape, bool (*goes)(const tlm_tensor *, void *), void *argument)
{
    uint64_t count = 0;
    tlmi_spin_lock(&tape->lock);
    for (uint32_t index = 1; index <= tape->slots && tape->sums.grads > 0; index++) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        tlm_tensor stored;
        tlm_object pinned, former = 0;
        if (slot->references == 0 || !pin_stored(slot, &stored, &pinned))
            continue;
        tlm_slot number = tlmi_slot_number(tape, slot);
        tlm_holder holder = stored_holder(slot);
        tlmi_spin_unlock(&tape->lock);
        count++;
        bool is_to_go = goes(&stored, argument);
        tlm_unpin(pinned);
        tlmi_spin_lock(&tape->lock);
        /* The tape may have been reset meanwhile, or another thread may have set another gradient. */
        slot = is_to_go ? tlmi_slot_find(tape, number) : NULL;
        if (slot && slot->has_stored && slot->stored->object == stored.object)
            former = exchange_stored(tape, slot, NULL);
        tlmi_spin_unlock(&tape->lock);
        tlmi_let_go(former, holder);
        tlmi_spin_lock(&tape->lock);
    }
    tlmi_spin_unlock(&tape->lock);
    return count;
}

static bool always_goes(const tlm_tensor *stored, void *unused)
{
    (void)stored, (void)unused;
    return true;
}

static void record_cleared(const tlm_tape *tape, uint64_t count)
{
    if (tlmi_probe_on() && count)
        tlmi_event_append(TLM_KIND_CLEAR_GRADS, TLM_DEVICE_NONE, tape->number, count, tlmi_site_here(), 0);
}

uint64_t tlm_tape_clear_grads(tlm_tape *tape)
{
    uint64_t count = visit_stored(tape, always_goes, NULL);
    record_cleared(tape, count);
    return count;
}

typedef struct {
    tlm_status (*zero)(const tlm_tensor *gradient);
} zeroing;

static bool goes_unless_zeroed(const tlm_tensor *stored, void *argument)
{
    const zeroing *how = argument;
    return !tlmi_is_sole(stored->object) || how->zero(stored) != TLM_OK;
}

uint64_t tlm_tape_zero_grads(tlm_tape *tape, tlm_status (*zero)(const tlm_tensor *gradient))
{
    zeroing how = {zero};
    uint64_t count = visit_stored(tape, goes_unless_zeroed, &how);
    record_cleared(tape, count);
    return count;
}
