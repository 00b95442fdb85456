/* SPDX-License-Identifier: MIT
 * tape_grads.c: gradients: what arrives at a slot during a pass, what leaves and kept slots have afterwards.
 *
 * What arrives may share its object with others and have steps of 0: it is only read, and added to in place only when nobody
 * else holds it. What is stored has memory of its own.
 */
#include "tape.h"

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
    return tensor->dtype == TLM_FLOAT32 ? 4 : tensor->dtype == TLM_BOOL ? 1 : 8;
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
        if (tensor->shape[axis] != 1 && tensor->steps[axis] != step)
            return false;
        step *= tensor->shape[axis];
    }
    return true;
}

/* Memory of its own, nobody else's, no larger than it needs; in whatever order its elements lie. */
static bool is_own(const tlm_tensor *tensor)
{
    tlm_object_info info;
    for (int axis = 0; axis < tensor->axes; axis++)
        if (tensor->shape[axis] > 1 && tensor->steps[axis] == 0)
            return false;
    return tlmi_is_sole(tensor->object) && tlm_object_describe(tensor->object, &info) == TLM_OK &&
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

static void count_stored(tlm_tape *tape, const tlmi_tape_slot *slot, bool more)
{
    uint64_t bytes = (uint64_t)(tlmi_tensor_elements(&slot->value) * item_bytes(&slot->value));
    tlmi_spin_lock(&tape->lock);
    tape->sums.grads += more ? 1 : UINT64_MAX;
    tape->sums.grad_bytes += more ? bytes : -bytes;
    tlmi_spin_unlock(&tape->lock);
}

void tlmi_grad_drop_stored(tlm_tape *tape, tlmi_tape_slot *slot)
{
    if (!slot->has_stored)
        return;
    slot->has_stored = false;
    count_stored(tape, slot, false);
    tlmi_let_go(slot->stored->object, stored_holder(slot));
}

static tlm_status reserve_stored(tlm_tape *tape, tlmi_tape_slot *slot)
{
    if (slot->stored)
        return TLM_OK;
    slot->stored = tlmi_slab_alloc(sizeof *slot->stored);
    if (!slot->stored)
        return tlmi_fail(TLM_NO_MEMORY, slot->value.object, stored_holder(slot), sizeof *slot->stored, 0);
    tlmi_spin_lock(&tape->lock);
    tape->own_bytes += sizeof *slot->stored;
    tlmi_spin_unlock(&tape->lock);
    return TLM_OK;
}

tlm_status tlmi_grad_prepare(tlm_tape *tape, tlmi_tape_slot *slot)
{
    tlm_tensor whole;
    if (!slot->has_incoming)
        return TLM_OK;
    tlm_status status = reserve_stored(tape, slot);
    if (status != TLM_OK)
        return status;
    if (slot->has_stored) {
        if (tlmi_is_sole(slot->stored->object))
            return TLM_OK; /* committing adds in place */
        status = add_beside(tape, slot->stored, &slot->incoming, &whole);
    } else {
        if (is_own(&slot->incoming))
            return TLM_OK;
        status = tape->arithmetic.copy(&slot->incoming, &whole);
    }
    if (status != TLM_OK)
        return status;
    status = replace(slot, &whole);
    if (status != TLM_OK)
        free_floating(&whole);
    return status;
}

tlm_status tlmi_grad_commit(tlm_tape *tape, tlmi_tape_slot *slot)
{
    tlm_status status = TLM_OK;
    if (!slot->has_incoming)
        return TLM_OK;
    if (slot->has_stored && tlmi_is_sole(slot->stored->object)) {
        status = tape->arithmetic.add(slot->stored, &slot->incoming);
        tlmi_grad_drop_incoming(slot);
        return status;
    }
    tlmi_grad_drop_stored(tape, slot);
    slot->has_incoming = false;
    status = tlm_move(slot->incoming.object, incoming_holder(slot), stored_holder(slot));
    if (status != TLM_OK)
        return status;
    *slot->stored = slot->incoming;
    slot->has_stored = true;
    count_stored(tape, slot, true);
    return TLM_OK;
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

/* The slot with one more reference, so that it stays while the lock is not held. */
static tlmi_tape_slot *refer(tlm_slot number, tlm_tape **tape)
{
    tlmi_tape_slot *slot = tlmi_slot_lock(number, tape);
    if (!slot)
        return NULL;
    slot->references++;
    tlmi_spin_unlock(&(*tape)->lock);
    return slot;
}

static void unrefer(tlm_tape *tape, tlmi_tape_slot *slot)
{
    uint32_t dying = 0;
    tlmi_spin_lock(&tape->lock);
    tlmi_slot_drop(tape, slot, &dying);
    tlmi_spin_unlock(&tape->lock);
    tlmi_slot_bury(tape, dying);
}

tlm_status tlm_slot_set_grad(tlm_slot number, const tlm_tensor *gradient)
{
    tlm_tape *tape;
    tlmi_tape_slot *slot = refer(number, &tape);
    if (!slot)
        return stale(number);
    tlm_status status = reserve_stored(tape, slot);
    if (status == TLM_OK)
        status = tlm_acquire(gradient->object, stored_holder(slot));
    if (status == TLM_OK) {
        tlmi_grad_drop_stored(tape, slot);
        *slot->stored = *gradient;
        slot->has_stored = gradient->object != 0;
        if (slot->has_stored)
            count_stored(tape, slot, true);
    }
    unrefer(tape, slot);
    return status;
}

/* Calls `each` for every slot with a stored gradient; returns how many there were. */
static uint64_t visit_stored(tlm_tape *tape, void (*each)(tlm_tape *, tlmi_tape_slot *, void *), void *argument)
{
    uint64_t count = 0;
    tlmi_spin_lock(&tape->lock);
    for (uint32_t index = 1; index <= tape->slots && tape->sums.grads > 0; index++) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        if (slot->references == 0 || !slot->has_stored)
            continue;
        slot->references++;
        tlmi_spin_unlock(&tape->lock);
        count++;
        each(tape, slot, argument);
        unrefer(tape, slot);
        tlmi_spin_lock(&tape->lock);
    }
    tlmi_spin_unlock(&tape->lock);
    return count;
}

static void drop_stored(tlm_tape *tape, tlmi_tape_slot *slot, void *unused)
{
    (void)unused;
    tlmi_grad_drop_stored(tape, slot);
}

static void record_cleared(const tlm_tape *tape, uint64_t count)
{
    if (tlmi_probe_on() && count)
        tlmi_event_append(TLM_KIND_CLEAR_GRADS, TLM_DEVICE_NONE, tape->number, count, tlmi_site_here(), 0);
}

uint64_t tlm_tape_clear_grads(tlm_tape *tape)
{
    uint64_t count = visit_stored(tape, drop_stored, NULL);
    record_cleared(tape, count);
    return count;
}

typedef struct {
    tlm_status (*zero)(const tlm_tensor *gradient);
} zeroing;

static void zero_stored(tlm_tape *tape, tlmi_tape_slot *slot, void *argument)
{
    const zeroing *how = argument;
    if (!tlmi_is_sole(slot->stored->object) || how->zero(slot->stored) != TLM_OK)
        tlmi_grad_drop_stored(tape, slot);
}

uint64_t tlm_tape_zero_grads(tlm_tape *tape, tlm_status (*zero)(const tlm_tensor *gradient))
{
    zeroing how = {zero};
    uint64_t count = visit_stored(tape, zero_stored, &how);
    record_cleared(tape, count);
    return count;
}
