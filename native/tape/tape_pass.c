/* SPDX-License-Identifier: MIT
 * tape_pass.c: one walk of rules from a root back to the leaves.
 *
 * First every record that the root came from is found, referred to once, and counted how often it is read. Then rules run,
 * the youngest first, each after all that read its output; a record lets go of what it saved as soon as its rule has run. A
 * reference of the pass keeps every slot it reached until the end, so nothing ends while it is in a list.
 */
#include <time.h>

#include "tape/tape.h"

/* ---- one pass at a time ---- */

/* What a pass of another thread had reached when this process was forked: that thread is not here. Locked. */
static uint32_t abandon(tlm_tape *tape)
{
    uint32_t dying = 0;
    tape->running = NULL;
    for (uint32_t index = 1; index <= tape->slots; index++) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        if (slot->references == 0 || slot->pass == 0)
            continue;
        slot->pass = 0;
        tlmi_grad_drop_incoming(slot);
        tlmi_slot_drop(tape, slot, &dying);
    }
    return dying;
}

bool tlmi_tape_is_running(tlm_tape *tape)
{
    uint32_t epoch = atomic_load_explicit(&tlmi_fork_epoch, memory_order_relaxed);
    if (tlmi_unlikely(tape->running && tape->running_epoch != epoch)) {
        tape->running_epoch = epoch;
        uint32_t dying = pthread_equal(tape->runner, pthread_self()) ? 0 : abandon(tape);
        tlmi_spin_unlock(&tape->lock);
        tlmi_slot_bury(tape, dying);
        tlmi_spin_lock(&tape->lock);
    }
    return tape->running != NULL;
}

/* Waits for the pass of another thread; locked before and after. */
static void wait_for_turn(tlm_tape *tape)
{
    const struct timespec moment = {.tv_nsec = 50000};
    while (tlmi_tape_is_running(tape) && !pthread_equal(tape->runner, pthread_self())) {
        tlmi_spin_unlock(&tape->lock);
        nanosleep(&moment, NULL);
        tlmi_spin_lock(&tape->lock);
    }
}

/* ---- the heap of records whose rules may run: the youngest on top ---- */

static inline bool is_younger(const tlm_tape *tape, uint32_t one, uint32_t other)
{
    return tlmi_tape_at(tape, one)->sequence > tlmi_tape_at(tape, other)->sequence;
}

static bool reserve_ready(tlm_tape *tape, uint32_t room)
{
    if (tlmi_likely(room <= tape->ready_room))
        return true;
    uint32_t bigger = tape->ready_room ? tape->ready_room : 256;
    while (bigger < room)
        bigger *= 2;
    uint32_t *ready = tlmi_slab_alloc(bigger * sizeof *ready);
    if (!ready)
        return false;
    for (uint32_t i = 0; i < tape->ready_room; i++)
        ready[i] = tape->ready[i];
    if (tape->ready)
        tlmi_slab_free(tape->ready, tape->ready_room * sizeof *ready);
    tape->own_bytes += (bigger - tape->ready_room) * sizeof *ready;
    tape->ready = ready;
    tape->ready_room = bigger;
    return true;
}

static tlm_status push_ready(tlm_pass *pass, uint32_t index)
{
    tlm_tape *tape = pass->tape;
    if (!reserve_ready(tape, pass->ready_begin + pass->ready_count + 1))
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, tape->ready_room * sizeof *tape->ready, 0);
    uint32_t *heap = tape->ready + pass->ready_begin, at = pass->ready_count++;
    while (at > 0 && is_younger(tape, index, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = index;
    return TLM_OK;
}

static uint32_t pop_ready(tlm_pass *pass)
{
    const tlm_tape *tape = pass->tape;
    uint32_t *heap = tape->ready + pass->ready_begin, top = heap[0], count = --pass->ready_count, at = 0;
    uint32_t last = heap[count];
    for (uint32_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_younger(tape, heap[child + 1], heap[child]))
            child++;
        if (!is_younger(tape, heap[child], last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* ---- finding what the root came from ---- */

static void reach(tlm_pass *pass, tlmi_tape_slot *slot, uint32_t *stack)
{
    slot->references++;
    slot->pending = 0;
    slot->reached_next = pass->reached;
    pass->reached = slot->index;
    if (slot->is_leaf)
        return;
    slot->next = *stack;
    *stack = slot->index;
}

/* Counts how often each record is read by others that are reached. Locked. */
static tlm_status find_records(tlm_pass *pass, tlmi_tape_slot *root)
{
    tlm_tape *tape = pass->tape;
    uint32_t stack = 0;
    tlm_status status = TLM_OK;
    root->pass = pass->number;
    reach(pass, root, &stack);
    while (stack) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, stack);
        stack = slot->next;
        slot->next = 0;
        if (slot->is_spent)
            status = TLM_SECOND_BACKWARD;
        const uint32_t *inputs = tlmi_slot_inputs(slot);
        for (uint32_t i = 0; i < slot->input_count; i++) {
            tlmi_tape_slot *input = inputs[i] ? tlmi_tape_at(tape, inputs[i]) : NULL;
            if (!input)
                continue;
            if (input->pass != pass->number) {
                /* Leaves may be shared with the pass around this one; what it is going through may not. */
                if (input->pass && !input->is_leaf) {
                    status = TLM_BUSY;
                    continue;
                }
                if (!input->pass) {
                    input->pass = pass->number;
                    reach(pass, input, &stack);
                }
            }
            input->pending++;
        }
    }
    return status;
}

/* ---- running rules ---- */

static void finish_links(const tlm_tape *tape, tlmi_tape_slot *slot, uint32_t count)
{
    tlmi_saved *saves = tlmi_slot_saves(slot);
    for (uint32_t i = 0; i < count; i++)
        if (saves[i].link)
            tlmi_replay_end(&saves[i], tlmi_tape_at(tape, saves[i].link)->sequence);
}

enum { MOST_PINS = 12 };

/* What a rule reads stays where it is while it runs, whoever frees it meanwhile. */
static uint32_t pin_all(const tlm_pass *pass, tlm_object pins[MOST_PINS])
{
    uint32_t count = 0;
    const tlmi_saved *saves = tlmi_slot_saves(pass->at);
    for (uint32_t i = 0; i < pass->at->save_count && count < MOST_PINS - 1; i++)
        if (saves[i].tensor.object)
            tlm_pin(saves[i].tensor.object, &pins[count++]);
    if (pass->at->incoming.object)
        tlm_pin(pass->at->incoming.object, &pins[count++]);
    return count;
}

static void count_rule(tlm_pass *pass)
{
    pass->rules++;
    tlmi_spin_lock(&pass->tape->lock);
    pass->tape->sums.rules++;
    pass->tape->by_op[pass->at->op].rules++;
    tlmi_spin_unlock(&pass->tape->lock);
}

static tlm_status run_rule(tlm_pass *pass)
{
    tlmi_tape_slot *slot = pass->at;
    tlmi_saved *saves = tlmi_slot_saves(slot);
    tlm_status status = TLM_OK;
    uint32_t ready = 0;
    for (; ready < slot->save_count && status == TLM_OK; ready++) {
        if (saves[ready].link)
            status = tlmi_replay_link(pass->tape, &saves[ready]);
        else
            status = tlmi_saved_check(&saves[ready], slot);
    }
    if (status == TLM_OK) {
        tlm_object pins[MOST_PINS];
        uint32_t pinned = pin_all(pass, pins);
        status = pass->op->rule(pass);
        while (pinned-- > 0)
            tlm_unpin(pins[pinned]);
        count_rule(pass);
    }
    finish_links(pass->tape, slot, ready);
    if (status == TLM_OK && pass->poisoned != TLM_OK)
        status = pass->poisoned;
    return status;
}

/* After a slot's rule: its gradient goes, unless it is kept; what it saved goes, unless the graph is retained. */
static tlm_status leave(tlm_pass *pass, tlmi_tape_slot *slot)
{
    tlm_tape *tape = pass->tape;
    uint32_t dying = 0;
    tlm_status status = TLM_OK;
    const uint32_t *inputs = tlmi_slot_inputs(slot);
    for (uint32_t i = 0; i < slot->input_count && status == TLM_OK; i++) {
        tlmi_tape_slot *input = inputs[i] ? tlmi_tape_at(tape, inputs[i]) : NULL;
        if (input && --input->pending == 0 && !input->is_leaf)
            status = push_ready(pass, inputs[i]);
    }
    if (!slot->keeps_grad)
        tlmi_grad_drop_incoming(slot);
    if (!pass->retains) {
        tlmi_record_release(tape, slot, true, &dying);
        tlmi_slot_bury(tape, dying);
    }
    return status;
}

static tlm_status run_all(tlm_pass *pass, tlmi_tape_slot *root)
{
    tlm_status status = root->is_leaf ? TLM_OK : push_ready(pass, root->index);
    while (pass->ready_count > 0 && status == TLM_OK) {
        tlmi_tape_slot *slot = tlmi_tape_at(pass->tape, pop_ready(pass));
        pass->at = slot;
        pass->op = tlmi_op(slot->op);
        if (slot->has_incoming)
            status = run_rule(pass);
        tlm_status left = leave(pass, slot);
        status = status == TLM_OK ? left : status;
    }
    pass->at = NULL;
    return status;
}

/* ---- the end ---- */

/* Whether the gradient that arrived here is for this pass to hand over: a leaf that is older than the pass around it gets its
 * gradient when that one succeeds. */
static bool is_to_commit(const tlm_pass *pass, const tlmi_tape_slot *slot)
{
    return (slot->is_leaf || slot->keeps_grad) && (!pass->outer || slot->sequence >= pass->outer->began);
}

static tlm_status hand_over(tlm_pass *pass)
{
    tlm_status status = TLM_OK;
    for (uint32_t index = pass->reached; index && status == TLM_OK;
         index = tlmi_tape_at(pass->tape, index)->reached_next)
        if (is_to_commit(pass, tlmi_tape_at(pass->tape, index)))
            status = tlmi_grad_prepare(pass->tape, tlmi_tape_at(pass->tape, index));
    for (uint32_t index = pass->reached; index && status == TLM_OK;
         index = tlmi_tape_at(pass->tape, index)->reached_next)
        if (is_to_commit(pass, tlmi_tape_at(pass->tape, index)))
            status = tlmi_grad_commit(pass->tape, tlmi_tape_at(pass->tape, index));
    return status;
}

/* Lets go of all that the pass reached; leaves whose gradient waits for the pass around go over to that one. */
static void part(tlm_pass *pass, tlm_status status)
{
    tlm_tape *tape = pass->tape;
    uint32_t dying = 0;
    for (uint32_t index = pass->reached; index;) {
        tlmi_tape_slot *slot = tlmi_tape_at(tape, index);
        index = slot->reached_next;
        bool goes_over = status == TLM_OK && pass->outer && slot->has_incoming && slot->is_leaf;
        if (!goes_over)
            tlmi_grad_drop_incoming(slot);
        tlmi_spin_lock(&tape->lock);
        slot->pass = goes_over ? pass->outer->number : 0;
        if (goes_over) {
            slot->reached_next = pass->outer->reached;
            pass->outer->reached = slot->index;
        } else {
            tlmi_slot_drop(tape, slot, &dying);
        }
        tlmi_spin_unlock(&tape->lock);
    }
    if (pass->outer && pass->rules > 0 && status != TLM_OK)
        pass->outer->poisoned = status;
    tlmi_slot_bury(tape, dying);
}

static void record_event(tlm_kind kind, tlm_slot root, uint64_t arg, tlm_status status)
{
    if (tlmi_probe_on())
        tlmi_event_append((uint8_t)kind, TLM_DEVICE_NONE, root, arg, tlmi_site_here(), (uint16_t)status);
}

/* Enters a pass and finds its records; locked before, not after. TLM_STALE_SLOT: the tape was reset while we waited for the
 * pass of another thread; nothing was entered then. */
static tlm_status begin(tlm_pass *pass, tlmi_tape_slot *root, tlm_slot number)
{
    tlm_tape *tape = pass->tape;
    root->references++; /* it stays while we wait, but for a reset */
    wait_for_turn(tape);
    if (tlmi_unlikely(!tlmi_slot_find(tape, number))) {
        tlmi_spin_unlock(&tape->lock);
        return TLM_STALE_SLOT;
    }
    root->references--;
    pass->outer = tape->running;
    pass->number = ++tape->last_pass ? tape->last_pass : ++tape->last_pass;
    pass->ready_begin = pass->outer ? pass->outer->ready_begin + pass->outer->ready_count : 0;
    pass->began = tlmi_tape_next_sequence();
    tape->running = pass;
    tape->runner = pthread_self();
    tape->running_epoch = atomic_load_explicit(&tlmi_fork_epoch, memory_order_relaxed);
    tlm_status status = root->pass ? TLM_BUSY : find_records(pass, root);
    tlmi_spin_unlock(&tape->lock);
    return status;
}

static tlm_status seed_root(tlm_pass *pass, tlmi_tape_slot *root, const tlm_tensor *seed)
{
    tlm_tensor one = root->value;
    if (seed)
        return tlmi_grad_arrive(pass->tape, root, seed, false);
    one.object = 0;
    one.at.offset = 0;
    if (one.dtype == TLM_FLOAT32)
        one.at.float32 = 1;
    else
        one.at.float64 = 1;
    for (int axis = 0; axis < one.axes; axis++)
        one.strides[axis] = 0;
    return tlmi_grad_arrive(pass->tape, root, &one, false);
}

static tlm_status refuse(tlm_slot root, tlm_status status, const tlmi_tape_slot *slot)
{
    if (status == TLM_SECOND_BACKWARD)
        tlmi_misuse(TLM_MISUSE_SECOND_BACKWARD, (uint8_t)slot->value.device, slot->value.object,
                    tlmi_tape_holder(slot->op, slot->sequence), tlmi_site_for_events());
    return tlmi_fail(status, slot->value.object, tlmi_tape_holder(slot->op, slot->sequence), 0, root);
}

tlm_status tlm_backward(tlm_slot number, const tlm_tensor *seed, int retain_graph)
{
    tlm_pass pass = {.retains = retain_graph};
    tlmi_tape_slot *root = tlmi_slot_lock(number, &pass.tape);
    if (!root)
        return tlmi_fail(TLM_STALE_SLOT, 0, 0, 0, number);
    tlm_status status = begin(&pass, root, number);
    if (status == TLM_STALE_SLOT)
        return tlmi_fail(TLM_STALE_SLOT, 0, 0, 0, number);
    if (status == TLM_OK) {
        record_event(TLM_KIND_BACKWARD_BEGIN, number, root->sequence, TLM_OK);
        status = seed_root(&pass, root, seed);
        if (status == TLM_OK)
            status = run_all(&pass, root);
        if (status == TLM_OK)
            status = hand_over(&pass);
        record_event(TLM_KIND_BACKWARD_END, number, pass.rules, status);
    } else {
        refuse(number, status, root);
    }
    tlm_failure why;
    tlm_failure_last(&why);
    part(&pass, status);
    tlmi_spin_lock(&pass.tape->lock);
    pass.tape->running = pass.outer;
    tlmi_spin_unlock(&pass.tape->lock);
    return status == TLM_OK ? TLM_OK : tlmi_fail(status, why.object, why.holder, why.bytes, why.detail);
}

/* ---- for rules ---- */

void *tlm_pass_context(const tlm_pass *pass)
{
    return pass->op->context;
}

const void *tlm_pass_params(const tlm_pass *pass)
{
    return tlmi_slot_params(pass->at);
}

uint32_t tlm_pass_inputs(const tlm_pass *pass)
{
    return pass->at->input_count;
}

int tlm_pass_wants(const tlm_pass *pass, uint32_t input)
{
    return input < pass->at->input_count && tlmi_slot_inputs(pass->at)[input] != 0;
}

const tlm_tensor *tlm_pass_grad(const tlm_pass *pass)
{
    return &pass->at->incoming;
}

const tlm_tensor *tlm_pass_saved(const tlm_pass *pass, uint32_t index)
{
    return &tlmi_slot_saves(pass->at)[index].tensor;
}

int tlm_pass_may_overwrite_grad(const tlm_pass *pass)
{
    return !pass->at->keeps_grad && tlmi_tensor_is_dense(&pass->at->incoming) &&
           tlmi_is_sole(pass->at->incoming.object);
}

static tlm_status hand(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient, bool owned)
{
    if (tlm_pass_wants(pass, input))
        return tlmi_grad_arrive(pass->tape, tlmi_tape_at(pass->tape, tlmi_slot_inputs(pass->at)[input]), gradient,
                                owned);
    return owned && gradient->object ? tlm_free(gradient->object) : TLM_OK;
}

tlm_status tlm_pass_give(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient)
{
    return hand(pass, input, gradient, true);
}

tlm_status tlm_pass_share(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient)
{
    return hand(pass, input, gradient, false);
}
