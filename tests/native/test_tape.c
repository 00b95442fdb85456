/* SPDX-License-Identifier: MIT
 * test_tape.c: what a tape holds, from the record until its rule has run; who lets go of what, and what an error leaves.
 *
 * tlm-test: sources=core */
#include "starve.h"
#include "taping.h"

STAND_IN_FOR_SAMPLER

static int64_t before;

static void begin_check(void)
{
    before = live_objects();
    forgotten = 0;
    tlm_tape_statistics now = sums();
    CHECK(now.records == 0 && now.leaves == 0 && now.saved_bytes == 0 && now.grads == 0 && now.grad_bytes == 0);
}

static void end_check(void)
{
    tlm_tape_statistics now = sums();
    CHECK(live_objects() == before);
    CHECK(now.records == 0 && now.leaves == 0 && now.saved_bytes == 0 && now.saved_objects == 0);
    CHECK(now.grads == 0 && now.grad_bytes == 0);
}

/* S56, S60, S61: z = x * sin(x) + x. */
static void check_gradients(void)
{
    begin_check();
    value x = leaf(0.5), s = apply(op_sin, &x, NULL), m = apply(op_multiply, &x, &s), z = apply(op_add, &m, &x);
    CHECK(x.slot != s.slot && s.slot != m.slot && m.slot != z.slot);
    CHECK(sums().records == 3 && sums().leaves == 1 && !has_grad(&x));
    CHECK(backward(&z) == TLM_OK);
    for (int i = 0; i < LENGTH; i++) {
        double at = data(&x.tensor)[i];
        CHECK(is_near(grad_at(&x, i), sin(at) + at * cos(at) + 1));
    }
    CHECK(!has_grad(&s) && !has_grad(&m) && !has_grad(&z)); /* B14 */
    CHECK(sums().saved_bytes == 0 && sums().records == 0 && forgotten == 3 && sums().grads == 1);
    CHECK(is_near(data(&m.tensor)[1],
                  data(&x.tensor)[1] * sin(data(&x.tensor)[1]))); /* B7: what the program holds stays */
    double once = grad_at(&x, 2);
    value y = apply(op_add, &x, &x);
    CHECK(backward(&y) == TLM_OK && is_near(grad_at(&x, 2), once + 2)); /* C10: accumulates */
    CHECK(tlm_tape_zero_grads(tape, zero_all) == 1 && grad_at(&x, 2) == 0);
    CHECK(tlm_tape_clear_grads(tape) == 1 && !has_grad(&x) && tlm_tape_clear_grads(tape) == 0);
    drop(&x), drop(&s), drop(&m), drop(&z), drop(&y);
    end_check();
}

/* S59: nothing is recorded when no input needs a gradient, or the mode says so. */
static void check_what_is_not_recorded(void)
{
    begin_check();
    uint64_t recorded = sums().recorded;
    value c = constant(1), d = apply(op_multiply, &c, &c), x = leaf(2);
    CHECK(d.slot == 0 && tlm_grad_mode(0) == 1 && tlm_grad_mode_current() == 0);
    value e = apply(op_multiply, &x, &d);
    CHECK(e.slot == 0 && tlm_grad_mode(1) == 0 && sums().recorded == recorded);
    value f = apply(op_multiply, &x, &d);
    CHECK(f.slot != 0 && sums().recorded == recorded + 1);
    CHECK(backward(&f) == TLM_OK && grad_at(&x, 0) == data(&d.tensor)[0]);
    drop(&c), drop(&d), drop(&x), drop(&e), drop(&f);
    end_check();
}

/* S32, S34: a graph that sees no backward goes with its last name; what others need stays. */
static void check_abandoned_graphs(void)
{
    begin_check();
    value x = leaf(1), s = apply(op_sin, &x, NULL), a = apply(op_exp, &s, NULL), b = apply(op_multiply, &s, &s);
    CHECK(sums().records == 3 && sums().saved_objects == 3);
    drop(&a);
    CHECK(sums().records == 2 && sums().saved_objects == 2);
    drop(&s); /* b needs it still */
    CHECK(sums().records == 2 && live_objects() == before + 3);
    CHECK(backward(&b) == TLM_OK);
    double at = data(&x.tensor)[0];
    CHECK(is_near(grad_at(&x, 0), 2 * sin(at) * cos(at)) && live_objects() == before + 3);
    drop(&b), drop(&x);
    end_check();
}

/* S54: no recursion, and no memory in the steady state. */
static void check_long_chains(void)
{
    enum { LINKS = 100000 };
    begin_check();
    uint64_t own = 0;
    for (int round = 0; round < 3; round++) {
        value x = leaf(0), at = apply(op_add, &x, &x);
        for (int i = 1; i < LINKS; i++) {
            value next = apply(op_add, &at, &x);
            drop(&at);
            at = next;
        }
        CHECK(sums().records == LINKS && live_objects() == before + 2);
        if (round != 1)
            CHECK(backward(&at) == TLM_OK && grad_at(&x, 0) == LINKS + 1);
        drop(&at);
        CHECK(sums().records == 0);
        drop(&x);
        CHECK(round < 2 || sums().own_bytes == own);
        own = sums().own_bytes;
    }
    end_check();
}

static tlm_status watched_status;
static uint64_t watched[8], watches;
static tlm_status watching_rule(tlm_pass *pass)
{
    watched[watches++] = (uint64_t)live_objects();
    return watched_status == TLM_OK ? give_product(pass, 0, tlm_pass_saved(pass, 0), cos) : watched_status;
}

/* S63: memory falls while the pass runs. */
static void check_early_release(void)
{
    begin_check();
    uint32_t op = op_sin;
    tlm_op row = {.name = "watched", .rule = watching_rule};
    CHECK(tlm_op_define(&row, &op_sin) == TLM_OK);
    watches = 0;
    value x = leaf(1), at = apply(op_sin, &x, NULL);
    for (int i = 0; i < 4; i++) {
        data(&at.tensor)[0] = 0;
        value next = apply(op_sin, &at, NULL);
        drop(&at);
        at = next;
    }
    CHECK(backward(&at) == TLM_OK && watches == 5);
    for (int i = 2; i < 5; i++)
        CHECK(watched[i] < watched[i - 1]);
    op_sin = op;
    drop(&at), drop(&x);
    end_check();
}

/* S66, C8: once, or as often as it was retained. */
static void check_second_backward(void)
{
    begin_check();
    value x = leaf(1), m = apply(op_multiply, &x, &x);
    CHECK(tlm_backward(m.slot, NULL, 1) == TLM_OK && sums().saved_bytes == 32 && grad_at(&x, 0) == 2);
    CHECK(tlm_backward(m.slot, NULL, 0) == TLM_OK && sums().saved_bytes == 0 && grad_at(&x, 0) == 4);
    trace_begin(TRACE_OBJECTS);
    CHECK(backward(&m) == TLM_SECOND_BACKWARD);
    trace_end();
    TRACE({TLM_KIND_MISUSE, m.tensor.object, TRACE_ANY, TLM_MISUSE_SECOND_BACKWARD});
    CHECK(grad_at(&x, 0) == 4);
    drop(&x), drop(&m);
    end_check();
}

/* An error in a rule: no leaf has changed, nothing of the pass is left. */
static void check_failing_rules(void)
{
    begin_check();
    value x = leaf(1), y = leaf(2), m = apply(op_multiply, &x, &y);
    CHECK(backward(&m) == TLM_OK && grad_at(&x, 0) == 2);
    drop(&m);
    value f = apply(op_fail, &x, NULL), s = apply(op_sin, &f, NULL), t = apply(op_multiply, &s, &y);
    drop(&f), drop(&s);
    int64_t live = live_objects();
    CHECK(backward(&t) == TLM_RULE_FAILED && grad_at(&x, 0) == 2 && grad_at(&y, 0) == 1);
    CHECK(backward(&t) == TLM_SECOND_BACKWARD && live_objects() < live);
    drop(&t);
    CHECK(sums().records == 0 && sums().saved_bytes == 0);
    drop(&x), drop(&y);
    end_check();
}

/* S55, S67: everything is stale, capacity stays. */
static void check_reset(void)
{
    begin_check();
    value x = leaf(1), s = apply(op_sin, &x, NULL), m = apply(op_multiply, &s, &x);
    CHECK(backward(&m) == TLM_OK);
    value n = apply(op_multiply, &s, &x);
    uint64_t capacity = sums().capacity, own = sums().own_bytes;
    CHECK(tlm_tape_reset(tape) == TLM_OK && sums().records == 0 && sums().leaves == 0 && sums().grads == 0);
    CHECK(sums().capacity == capacity && sums().own_bytes == own);
    CHECK(!tlm_slot_alive(x.slot) && tlm_slot_acquire(s.slot) == TLM_STALE_SLOT && backward(&n) == TLM_STALE_SLOT);
    value out;
    CHECK(try_apply(op_sin, &n, NULL, 0, &out) == TLM_STALE_SLOT);
    drop(&x), drop(&s), drop(&m), drop(&n);
    end_check();
}

/* S65: what was saved and then written is not read. */
static void check_writes_in_place(void)
{
    begin_check();
    int code = 0, kept;
    tlm_holder holder;
    value x = leaf(1), c = constant(3), m = apply(op_multiply, &x, &c);
    CHECK(tlm_object_saved(c.tensor.object, &holder) && TLM_TAPE_HOLDER_OP(holder) == op_multiply);
    CHECK(tlm_object_written(c.tensor.object, (tlm_place){&code, 9}, &kept) == 1 && kept == 1);
    CHECK(backward(&m) == TLM_CHANGED && !has_grad(&x));
    tlm_conflict conflict;
    tlm_tape_conflict(&conflict);
    CHECK(conflict.object == c.tensor.object && conflict.saved_by == holder && conflict.written.instruction == 9);
    CHECK(conflict.saved.instruction == 1);
    CHECK(!tlm_object_saved(c.tensor.object, &holder) && !tlm_object_written(c.tensor.object, (tlm_place){0}, &kept));
    drop(&x), drop(&c), drop(&m);
    end_check();
}

/* Freed by hand, whoever held it: an error, never freed memory. */
static void check_freed_saves(void)
{
    begin_check();
    value x = leaf(1), s = apply(op_sin, &x, NULL), m = apply(op_multiply, &s, &x);
    tlm_free(s.tensor.object);
    CHECK(backward(&m) == TLM_FREED && !has_grad(&x));
    s.tensor.object = 0;
    drop(&x), drop(&s), drop(&m);
    end_check();
}

/* S62: outputs that are computed again, also through several of them, and what they hold meanwhile. */
static void check_recomputing(void)
{
    enum { LINKS = 50 };
    double expected = 0;
    for (uint32_t recompute = 0; recompute < 2; recompute++) {
        begin_check();
        uint64_t replays = sums().replays, peak = 0;
        value x = leaf(0.5), at = x;
        for (int i = 0; i < LINKS; i++) {
            value next;
            CHECK(try_apply(i % 3 == 2 ? op_multiply : op_sin, &at, i % 3 == 2 ? &at : NULL, recompute, &next) ==
                  TLM_OK);
            if (i > 0)
                drop(&at);
            at = next;
            peak = sums().saved_objects > peak ? sums().saved_objects : peak;
        }
        CHECK(peak == (recompute ? 1 : LINKS) && sums().records == LINKS);
        CHECK(backward(&at) == TLM_OK);
        CHECK(recompute ? sums().replays > replays + LINKS : sums().replays == replays);
        CHECK(!recompute || grad_at(&x, 1) == expected);
        expected = grad_at(&x, 1);
        drop(&at), drop(&x);
        end_check();
    }
}

/* Rules that fail while values are computed again leave nothing. */
static void check_failing_replays(void)
{
    begin_check();
    int kept;
    value x = leaf(0.5), c = constant(1), m, e, s;
    CHECK(try_apply(op_multiply, &x, &c, RECOMPUTED, &m) == TLM_OK &&
          try_apply(op_exp, &m, NULL, RECOMPUTED, &e) == TLM_OK);
    CHECK(try_apply(op_sin, &e, NULL, 0, &s) == TLM_OK);
    drop(&m), drop(&e);
    tlm_object_written(c.tensor.object, (tlm_place){0}, &kept);
    CHECK(backward(&s) == TLM_CHANGED && !has_grad(&x));
    drop(&x), drop(&c), drop(&s);
    end_check();
}

/* A pass inside a rule: new leaves get their gradients at once, shared ones with the outer pass. */
static value inner_x, shared;
static tlm_status inner_status;
static tlm_status nesting_rule(tlm_pass *pass)
{
    inner_x = leaf(1);
    value m = apply(op_multiply, &inner_x, &shared), f = inner_status == TLM_OK ? m : apply(op_fail, &m, NULL);
    CHECK(backward(&f) == inner_status);
    CHECK(inner_status != TLM_OK || grad_at(&inner_x, 0) == data(&shared.tensor)[0]);
    if (inner_status != TLM_OK)
        drop(&f);
    drop(&m), drop(&inner_x);
    return tlm_pass_share(pass, 0, tlm_pass_grad(pass));
}

static void check_nested_passes(void)
{
    uint32_t op;
    tlm_op row = {.name = "nesting", .rule = nesting_rule};
    CHECK(tlm_op_define(&row, &op) == TLM_OK);
    for (int fails = 0; fails < 2; fails++) {
        begin_check();
        inner_status = fails ? TLM_RULE_FAILED : TLM_OK;
        shared = leaf(5);
        value x = leaf(2), n = apply(op, &x, NULL), t = apply(op_multiply, &n, &shared);
        CHECK(backward(&t) == inner_status);
        CHECK(fails ? !has_grad(&shared) : is_near(grad_at(&shared, 0), 1 + data(&n.tensor)[0]));
        drop(&x), drop(&n), drop(&t), drop(&shared);
        end_check();
    }
}

/* What every event says. */
static void check_the_trace(void)
{
    begin_check();
    value x = leaf(1);
    trace_begin(TRACE_OBJECTS);
    value s = apply(op_sin, &x, NULL);
    CHECK(backward(&s) == TLM_OK);
    tlm_tape_clear_grads(tape);
    trace_end();
    tlm_slot_info info;
    CHECK(tlm_slot_describe(s.slot, &info) == TLM_OK && info.spent && tlm_slot_describe(x.slot, &info) == TLM_OK);
    uint64_t leaf_sequence = info.sequence, sequence = leaf_sequence + 1;
    tlm_holder saver = TLM_TAPE_HOLDER(op_sin, sequence), gradient = TLM_TAPE_HOLDER(1, leaf_sequence);
    tlm_holder stored = TLM_TAPE_HOLDER(2, leaf_sequence);
    tlm_object o = s.tensor.object, g = TRACE_ANY;
    TRACE({TLM_KIND_ALLOC, o, 32, 1}, {TLM_KIND_TAPE_RECORD, o, (uint64_t)op_sin << 40 | sequence, 1},
          {TLM_KIND_TAPE_SAVE, x.tensor.object, saver, 0}, {TLM_KIND_ACQUIRE, x.tensor.object, saver, 2},
          {TLM_KIND_REGISTER, o, ME, 1}, {TLM_KIND_BACKWARD_BEGIN, s.slot, sequence, 0}, {TLM_KIND_ALLOC, g, 32, 1},
          {TLM_KIND_REGISTER, g, gradient, 1}, {TLM_KIND_TAPE_UNSAVE, x.tensor.object, saver, 0},
          {TLM_KIND_RELEASE, x.tensor.object, saver, 1}, {TLM_KIND_UNREGISTER, g, gradient, 1},
          {TLM_KIND_REGISTER, g, stored, 1}, {TLM_KIND_BACKWARD_END, s.slot, 1, 0}, {TLM_KIND_RELEASE, g, stored, 0},
          {TLM_KIND_FREE, g, 0, 0}, {TLM_KIND_CLEAR_GRADS, tape->number, 1, 0});
    drop(&x), drop(&s);
    end_check();
}

static tlm_status whole_step(void)
{
    value x = {0}, s, m;
    tlm_status status = fresh(LENGTH, &x.tensor);
    if (status == TLM_OK)
        status = tlm_move(x.tensor.object, FLOATING, ME);
    if (status != TLM_OK)
        return status;
    memset(data(&x.tensor), 0, LENGTH * 8);
    status = tlm_tape_leaf(tape, &x.tensor, &x.slot);
    if (status == TLM_OK)
        status = try_apply(op_sin, &x, NULL, RECOMPUTED, &s);
    if (status == TLM_OK) {
        status = try_apply(op_multiply, &s, &x, 0, &m);
        drop(&s);
    }
    if (status == TLM_OK) {
        status = backward(&m);
        drop(&m);
    }
    drop(&x);
    return status;
}

static void check_want_of_memory(void)
{
    uint32_t failed = 0;
    for (uint32_t left = 0; left < 8; left++)
        for (uint64_t nth = 1; nth < 4; nth++) {
            begin_check();
            tlm_tape *kept = tape; /* on a fresh one, which has nothing yet */
            CHECK(tlm_tape_create(0, &arithmetic, &tape) == TLM_OK);
            starve(left);
            starve_slots(left);
            tlm_own_fail_after(nth);
            tlm_status status = whole_step();
            CHECK(status == TLM_OK || status == TLM_NO_MEMORY);
            failed += status != TLM_OK;
            tlm_tape_statistics now = sums();
            CHECK(now.records == 0 && now.saved_objects == 0 && now.grads == 0 && now.leaves == 0);
            feed_slots();
            feed();
            CHECK(tlm_tape_destroy(tape) == TLM_OK);
            tape = kept;
            end_check();
        }
    CHECK(failed > 8);
}

static void *train(void *unused)
{
    for (int i = 0; i < 300; i++)
        CHECK(whole_step() == TLM_OK);
    return unused;
}

/* Ten threads on one tape. */
static void check_threads(void)
{
    pthread_t threads[10];
    begin_check();
    for (int i = 0; i < 10; i++)
        CHECK(pthread_create(&threads[i], NULL, train, NULL) == 0);
    for (int i = 0; i < 10; i++)
        pthread_join(threads[i], NULL);
    end_check();
}

static void check_more_tapes(void)
{
    tlm_tape *first = tape, *other;
    begin_check();
    value x = leaf(1);
    CHECK(tlm_tape_create(0, &arithmetic, &other) == TLM_OK);
    tape = other;
    value y = leaf(1), out;
    CHECK(try_apply(op_multiply, &x, &y, 0, &out) == TLM_WRONG_TAPE && tlm_slot_tape(y.slot) == other);
    value s = apply(op_sin, &y, NULL);
    tlm_slot old = s.slot;
    CHECK(tlm_tape_destroy(other) == TLM_OK && !tlm_slot_alive(y.slot) && backward(&s) == TLM_STALE_SLOT);
    CHECK(tlm_tape_create(0, &arithmetic, &tape) == TLM_OK && tape == other);
    value again = leaf(1), t = apply(op_sin, &again, NULL);
    CHECK(!tlm_slot_alive(old) && t.slot != old);
    drop(&again), drop(&t), drop(&y), drop(&s);
    CHECK(tlm_tape_destroy(tape) == TLM_OK);
    tape = first;
    drop(&x);
    end_check();
}

int main(void)
{
    begin_taping();
    check_gradients();
    check_what_is_not_recorded();
    check_abandoned_graphs();
    check_long_chains();
    check_early_release();
    check_second_backward();
    check_failing_rules();
    check_reset();
    check_writes_in_place();
    check_freed_saves();
    check_recomputing();
    check_failing_replays();
    check_nested_passes();
    check_the_trace();
    check_want_of_memory();
    check_threads();
    check_more_tapes();
    CHECK(tlm_tape_destroy(tape) == TLM_OK);
    return 0;
}
