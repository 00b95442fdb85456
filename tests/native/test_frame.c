/* SPDX-License-Identifier: MIT
 * test_frame.c: slots of a call: made once, grown without harm to who looks into the old buffer, gone with the call.
 *
 * tlm-test: sources=core */
#include <string.h>

#include "starve.h"
#include "trace.h"

STAND_IN_FOR_SAMPLER

enum { CAPACITY = 1 << 16, DEEP = 50, THREADS = 8 };

static const tlm_holder ME = TLM_HOLDER(TLM_HOLDER_HANDLE, 1);

static uint64_t enter(uint32_t slots)
{
    uint64_t id = 0;
    CHECK(tlm_frame_enter(tlm_label_of("frame"), slots, &id) == TLM_OK && id != 0);
    CHECK(tlm_frame_current() == id && tlm_scope_current() == id);
    return id;
}

static void leave(uint64_t id)
{
    CHECK(tlm_frame_exit(id, NULL) == TLM_OK);
}

static tlm_object buffer(uint32_t slot, uint64_t bytes)
{
    tlm_object object = 0;
    CHECK(tlm_frame_buffer(slot, bytes, &object) == TLM_OK && object != 0);
    return object;
}

static tlm_object_info about(tlm_object object)
{
    tlm_object_info info;
    CHECK(tlm_object_describe(object, &info) == TLM_OK);
    return info;
}

static tlm_arena_statistics arena(void)
{
    tlm_arena_statistics out;
    tlm_arena_stats(&out);
    return out;
}

static tlm_holder frame_holder(uint64_t id)
{
    return TLM_HOLDER(TLM_HOLDER_FRAME, id);
}

static void check_nothing_is_left(void)
{
    tlm_runtime_statistics out;
    tlm_runtime_stats(0, &out);
    CHECK(out.total_count - out.freed_count == 0 && out.total_bytes - out.freed_bytes == 0);
    CHECK(out.current_count == 0 && out.current_bytes == 0 && out.floating == 0);
    CHECK(tlm_scope_depth() == 0 && tlm_frame_depth() == 0 && tlm_frame_current() == 0 && tlm_scope_current() == 0);
    CHECK(arena().scope_bytes == 0 && arena().slot_bytes == 0);
}

static void check_without_a_frame(void)
{
    tlm_object object = 42;
    tlm_failure failure;
    uint64_t id;
    CHECK(tlm_scope_enter(0, &id) == TLM_OK); /* a scope is no frame */
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_frame_buffer(3, 64, &object) == TLM_NO_FRAME && object == 42);
    CHECK(tlm_frame_exit(id, NULL) == TLM_NOT_IN_SCOPE);
    trace_end();
    TRACE({TLM_KIND_MISUSE, 0, 0, TLM_MISUSE_NO_FRAME},
          {TLM_KIND_MISUSE, 0, frame_holder(id), TLM_MISUSE_UNBALANCED_FRAME});
    CHECK(tlm_frame_buffer(3, 64, &object) == TLM_NO_FRAME);
    tlm_failure_last(&failure);
    CHECK(failure.status == TLM_NO_FRAME && failure.bytes == 64 && failure.detail == 3);
    CHECK(tlm_scope_exit(id, NULL) == TLM_OK);
    check_nothing_is_left();
}

static void check_bad_slots_and_sizes(void)
{
    tlm_object object = 42;
    tlm_failure failure;
    uint64_t id = enter(2);
    CHECK(tlm_frame_buffer(2, 64, &object) == TLM_BAD_SLOT && object == 42);
    tlm_failure_last(&failure);
    CHECK(failure.status == TLM_BAD_SLOT && failure.detail == 2 && failure.holder == frame_holder(id));
    tlm_object old = buffer(1, 100);
    uint64_t overflows = arena().overflows, used = arena().slot_bytes;
    trace_begin(TRACE_ALL);
    CHECK(tlm_frame_buffer(0, UINT64_MAX, &object) == TLM_OVERFLOW && object == 42);
    CHECK(tlm_frame_buffer(1, UINT64_MAX - 5, &object) == TLM_OVERFLOW && object == 42);
    trace_end();
    TRACE_NOTHING();
    CHECK(arena().overflows == overflows && arena().slot_bytes == used && buffer(1, 100) == old);
    leave(id);
    id = enter(0);
    CHECK(tlm_frame_buffer(0, 1, &object) == TLM_BAD_SLOT);
    leave(id);
    check_nothing_is_left();
}

/* After the first call of each slot a loop allocates nothing at all. */
static void check_a_loop_allocates_nothing(void)
{
    uint64_t id = enter(3);
    tlm_object first[3];
    for (uint32_t slot = 0; slot < 3; slot++)
        first[slot] = buffer(slot, 1000 * (slot + 1));
    void *payload = tlm_payload(first[1]);
    trace_begin(TRACE_ALL);
    for (uint32_t i = 0; i < 999; i++)
        CHECK(buffer(i % 3, i) == first[i % 3]);
    trace_end();
    CHECK(trace_used == 999 && trace_count(TLM_KIND_SLOT_GET, TRACE_ANY) == 999);
    CHECK(tlm_payload(first[1]) == payload && about(first[1]).bytes == 2000 && about(first[1]).count == 1);
    leave(id);
    check_nothing_is_left();
}

static void check_the_trace(void)
{
    trace_begin(TRACE_ALL);
    uint64_t id = enter(2);
    tlm_object x = buffer(0, 100), y = buffer(1, 100), wider = buffer(0, 200), local = 0;
    CHECK(tlm_object_alloc(TLM_DEVICE_CPU, 0, &local) == TLM_OK && tlm_register(local) == TLM_OK);
    tlm_scope_statistics left;
    CHECK(tlm_frame_exit(id, &left) == TLM_OK && left.id == id && left.allocations == 1 && left.frees == 1);
    trace_end();
    tlm_holder by = frame_holder(id), scope = TLM_HOLDER(TLM_HOLDER_SCOPE, id);
    TRACE({TLM_KIND_SCOPE_ENTER, id, tlm_label_of("frame"), 1}, {TLM_KIND_FRAME_ENTER, id, 2, 0},
          {TLM_KIND_ALLOC, x, 100, 1}, {TLM_KIND_REGISTER, x, by, 1}, {TLM_KIND_SLOT_GET, x, id, 0},
          {TLM_KIND_ALLOC, y, 100, 1}, {TLM_KIND_REGISTER, y, by, 1}, {TLM_KIND_SLOT_GET, y, id, 1},
          {TLM_KIND_ALLOC, wider, 200, 1}, {TLM_KIND_REGISTER, wider, by, 1}, {TLM_KIND_SLOT_GROW, wider, id, 0},
          {TLM_KIND_ALLOC, local, 0, 1}, {TLM_KIND_REGISTER, local, scope, 1},
          /* the scope's own first, then the slots' buffers, then what was replaced */
          {TLM_KIND_RELEASE, local, scope, 0}, {TLM_KIND_FREE, local, 0, 0}, {TLM_KIND_SCOPE_EXIT, id, 1, 0},
          {TLM_KIND_RELEASE, y, by, 0}, {TLM_KIND_FREE, y, 0, 0}, {TLM_KIND_RELEASE, wider, by, 0},
          {TLM_KIND_FREE, wider, 0, 0}, {TLM_KIND_RELEASE, x, by, 0}, {TLM_KIND_FREE, x, 0, 0},
          {TLM_KIND_FRAME_EXIT, id, 3, 0});
    check_nothing_is_left();
}

/* B5: who looks into a buffer goes on doing so when the slot grows. */
/* B5: pointers that were taken before the slot grew stay good. */
static void check_growth_keeps_what_was(void)
{
    enum { GROWTHS = 20 };
    uint64_t id = enter(1);
    tlm_object made[GROWTHS];
    uint8_t *payload[GROWTHS];
    for (int i = 0; i < GROWTHS; i++) {
        made[i] = buffer(0, 100 * (uint64_t)(i + 1));
        payload[i] = tlm_payload(made[i]);
        memset(payload[i], i, 100 * (size_t)(i + 1));
    }
    for (int i = 0; i < GROWTHS; i++) {
        CHECK(tlm_check(made[i]) == TLM_OK && tlm_payload(made[i]) == payload[i]);
        for (int at = 0; at < 100 * (i + 1); at++)
            CHECK(payload[i][at] == i);
        CHECK(i == 0 || made[i] != made[i - 1]);
    }
    CHECK(buffer(0, 1) == made[GROWTHS - 1]); /* it never shrinks */
    leave(id);
    for (int i = 0; i < GROWTHS; i++)
        CHECK(tlm_check(made[i]) == TLM_FREED);
    check_nothing_is_left();
}

static void recurse(int depth)
{
    uint64_t id = enter(1), outer_depth = tlm_frame_depth();
    uint8_t *mine = tlm_payload(buffer(0, 200));
    memset(mine, depth, 200);
    if (depth > 1)
        recurse(depth - 1);
    CHECK(tlm_frame_current() == id && tlm_frame_depth() == outer_depth && tlm_payload(buffer(0, 200)) == mine);
    for (int i = 0; i < 200; i++)
        CHECK(mine[i] == depth);
    leave(id);
}

static void check_calls_have_their_own_slots(void)
{
    recurse(DEEP);
    check_nothing_is_left();
}

/* A buffer made while inner scopes are entered belongs to the frame, and so does its memory. */
static void check_inner_scopes_leave_slots_alone(void)
{
    uint64_t id = enter(2), inner, block;
    CHECK(tlm_scope_enter(0, &inner) == TLM_OK);
    uint8_t *early = tlm_payload(buffer(0, 500));
    memset(early, 7, 500);
    CHECK(tlm_arena_object(500, &block) == TLM_OK && tlm_scope_exit(inner, NULL) == TLM_OK);
    CHECK(tlm_scope_enter(0, &inner) == TLM_OK);
    uint8_t *late = tlm_payload(buffer(1, 500));
    CHECK(tlm_arena_object(500, &block) == TLM_OK);
    memset(tlm_payload(block), 1, 500);
    memset(late, 2, 500);
    CHECK(tlm_scope_exit(inner, NULL) == TLM_OK && tlm_frame_current() == id && arena().slot_bytes == 1024);
    for (int i = 0; i < 500; i++)
        CHECK(early[i] == 7 && late[i] == 2);
    leave(id);
    check_nothing_is_left();
}

/* Ways out of nested blocks that forget the inner ones. */
static void check_leaving_out_of_order(void)
{
    uint64_t outer = enter(1), inner = enter(1), scope;
    CHECK(tlm_scope_enter(0, &scope) == TLM_OK);
    tlm_object x = buffer(0, 10);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_frame_exit(outer, NULL) == TLM_UNBALANCED);
    trace_end();
    tlm_holder by = frame_holder(inner);
    TRACE({TLM_KIND_MISUSE, 0, TLM_HOLDER(TLM_HOLDER_SCOPE, scope), TLM_MISUSE_UNBALANCED_SCOPE},
          {TLM_KIND_SCOPE_EXIT, scope, 0, 0},
          {TLM_KIND_MISUSE, 0, TLM_HOLDER(TLM_HOLDER_SCOPE, inner), TLM_MISUSE_UNBALANCED_FRAME},
          {TLM_KIND_SCOPE_EXIT, inner, 0, 0}, {TLM_KIND_RELEASE, x, by, 0}, {TLM_KIND_FREE, x, 0, 0},
          {TLM_KIND_FRAME_EXIT, inner, 1, 0}, {TLM_KIND_SCOPE_EXIT, outer, 0, 0}, {TLM_KIND_FRAME_EXIT, outer, 0, 0});
    CHECK(tlm_frame_exit(outer, NULL) == TLM_NOT_IN_SCOPE && tlm_frame_exit(inner, NULL) == TLM_NOT_IN_SCOPE);
    uint64_t id = enter(1);
    CHECK(tlm_scope_exit(id, NULL) == TLM_OK); /* a frame is a scope, too */
    check_nothing_is_left();
}

/* B6: whichever way the body of a loop is left, every round begins as the first one did. */
static void check_every_way_out_is_balanced(void)
{
    uint64_t bytes = tlmi_own_current_bytes();
    for (int i = 0; i < 1000; i++) {
        uint64_t id = enter(2), inner;
        buffer(0, 64);
        if (i % 5 == 0) {
            leave(id);
            continue;
        }
        CHECK(tlm_scope_enter(0, &inner) == TLM_OK);
        buffer(1, 1 + (uint64_t)i * 40);
        if (i % 5 == 1) {
            CHECK(tlm_frame_exit(id, NULL) == TLM_UNBALANCED);
        } else {
            CHECK(tlm_scope_exit(inner, NULL) == TLM_OK);
            leave(id);
        }
        check_nothing_is_left();
        if (i == 10)
            bytes = tlmi_own_current_bytes();
    }
    CHECK(tlmi_own_current_bytes() == bytes);
}

static void check_held_buffers_end_all_the_same(void)
{
    uint64_t id = enter(4);
    tlm_object shared = buffer(0, 10), taken = buffer(1, 10), old = buffer(2, 10), freed = buffer(3, 10);
    CHECK(tlm_acquire(shared, ME) == TLM_OK && tlm_move(taken, frame_holder(id), ME) == TLM_OK);
    CHECK(tlm_acquire(old, ME) == TLM_OK && tlm_free(freed) == TLM_OK);
    tlm_object wider = buffer(2, 2000);
    trace_begin(TRACE_OBJECTS);
    leave(id);
    trace_end();
    TRACE({TLM_KIND_SCOPE_EXIT, id, 0, 0}, {TLM_KIND_RELEASE, wider, frame_holder(id), 0}, {TLM_KIND_FREE, wider, 0, 0},
          {TLM_KIND_MISUSE, taken, ME, TLM_MISUSE_OUTLIVES_FRAME}, {TLM_KIND_FREE, taken, 1, 0},
          {TLM_KIND_MISUSE, shared, ME, TLM_MISUSE_OUTLIVES_FRAME}, {TLM_KIND_FREE, shared, 2, 0},
          {TLM_KIND_MISUSE, old, ME, TLM_MISUSE_OUTLIVES_FRAME}, {TLM_KIND_FREE, old, 2, 0},
          {TLM_KIND_FRAME_EXIT, id, 4, 0});
    CHECK(tlm_release(shared, ME) == TLM_FREED && tlm_payload(taken) == NULL && tlm_check(old) == TLM_FREED);
    check_nothing_is_left();
}

static void check_a_freed_buffer_is_made_anew(void)
{
    uint64_t id = enter(1);
    tlm_object x = buffer(0, 10);
    CHECK(tlm_free(x) == TLM_OK);
    tlm_object y = buffer(0, 10);
    CHECK(y != x && tlm_check(y) == TLM_OK && tlm_check(x) == TLM_FREED);
    leave(id);
    check_nothing_is_left();
}

static void check_memory_comes_from_the_arena_while_it_lasts(void)
{
    uint64_t id = enter(3), overflows = arena().overflows;
    tlm_object_info small = about(buffer(0, 100)), large = about(buffer(1, CAPACITY)), empty = about(buffer(2, 0));
    CHECK(small.flags == TLM_FLAG_ARENA && small.type == TLM_OBJECT_BUFFER && small.bytes == 100);
    CHECK((uintptr_t)small.payload % 64 == 0 && (uintptr_t)large.payload % 64 == 0 && empty.payload == NULL);
    CHECK(large.flags == 0 && arena().overflows == overflows + 1 && arena().slot_bytes == 128);
    memset(large.payload, 1, CAPACITY);
    memset(small.payload, 2, 100);
    trace_begin(TRACE_ALL);
    leave(id);
    trace_end();
    CHECK(trace_count(TLM_KIND_DEVICE_FREE, TRACE_ANY) <= 1); /* the arena's block stays */
    tlm_buffers_statistics buffers;
    tlm_buffers_stats(TLM_DEVICE_CPU, &buffers);
    CHECK(buffers.active_count == 1);
    check_nothing_is_left();
}

static void check_both_ends_of_the_arena_meet(void)
{
    uint64_t id = enter(2), object;
    uint8_t *slot = tlm_payload(buffer(0, CAPACITY / 2));
    CHECK(tlm_arena_object(CAPACITY / 2, &object) == TLM_OK && about(object).flags == TLM_FLAG_ARENA);
    uint8_t *low = tlm_payload(object);
    CHECK(low + CAPACITY / 2 == slot && arena().scope_bytes + arena().slot_bytes == CAPACITY);
    CHECK(arena().peak_bytes == CAPACITY && about(buffer(1, 1)).flags == 0);
    memset(low, 1, CAPACITY / 2);
    memset(slot, 2, CAPACITY / 2);
    CHECK(low[CAPACITY / 2 - 1] == 1);
    leave(id);
    check_nothing_is_left();
}

static void check_contexts_are_apart(void)
{
    tlm_context *context;
    tlm_object object;
    uint64_t here = enter(1);
    CHECK(tlm_context_create(&context) == TLM_OK);
    tlm_context *former = tlm_context_switch(context);
    CHECK(tlm_frame_depth() == 0 && tlm_frame_buffer(0, 1, &object) == TLM_NO_FRAME);
    CHECK(tlm_frame_exit(here, NULL) == TLM_NOT_IN_SCOPE);
    uint64_t there = enter(1);
    tlm_object x = buffer(0, 10);
    tlm_context_switch(former);
    CHECK(tlm_frame_current() == here && buffer(0, 10) != x);
    leave(here);
    CHECK(tlm_check(x) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    tlm_context_destroy(context); /* leaves what is entered */
    trace_end();
    CHECK(trace_events[0].kind == TLM_KIND_MISUSE && trace_events[0].count == TLM_MISUSE_UNBALANCED_FRAME);
    CHECK(trace_count(TLM_KIND_FRAME_EXIT, there) == 1 && tlm_check(x) == TLM_FREED);
    check_nothing_is_left();
}

/* With `left` small blocks of each size and the n-th request for pages failing. */
static bool enter_starved(uint32_t left, uint64_t n)
{
    tlm_context *context;
    uint64_t id = 42;
    CHECK(tlm_context_create(&context) == TLM_OK);
    tlm_context *former = tlm_context_switch(context);
    starve(left);
    tlm_own_fail_after(n);
    tlm_status status = tlm_frame_enter(0, 100, &id);
    feed();
    CHECK(status == TLM_OK || (status == TLM_NO_MEMORY && id == 42 && tlm_scope_depth() == 0 && !tlm_frame_depth()));
    if (status == TLM_OK)
        leave(id);
    tlm_context_switch(former);
    tlm_context_destroy(context);
    return status == TLM_OK;
}

static bool grow_starved(uint32_t left, uint64_t n, uint32_t slots)
{
    uint64_t id = enter(1);
    tlm_object x = buffer(0, 10), y = 42;
    for (int i = 0; i < 4; i++)
        x = buffer(0, 20 * (uint64_t)(i + 1)); /* no room for a fifth that is replaced */
    starve(left);
    starve_slots(slots);
    tlm_own_fail_after(n);
    tlm_status status = tlm_frame_buffer(0, 1000, &y);
    feed();
    feed_slots();
    if (status != TLM_OK) {
        CHECK(status == TLM_NO_MEMORY && y == 42 && about(x).count == 1 && buffer(0, 20) == x);
        CHECK(buffer(0, 1000) != x);
    }
    leave(id);
    check_nothing_is_left();
    return status == TLM_OK;
}

static void check_without_memory_nothing_changes(void)
{
    int failed = 0;
    for (uint32_t left = 0; left < 3; left++)
        for (uint64_t n = 1; n < 4; n++)
            failed += !enter_starved(left, n);
    CHECK(failed == 2); /* the slots, or the scope */
    CHECK(!grow_starved(0, 1, 1) && !grow_starved(1, 1, 0) && grow_starved(1, 1, 1) && grow_starved(0, 2, 1));
    check_nothing_is_left();
}

static void *work(void *unused)
{
    for (int i = 0; i < 20; i++)
        recurse(DEEP);
    return unused;
}

static void check_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    check_nothing_is_left();
}

static void *check_all(void *unused)
{
    CHECK(tlm_arena_capacity(CAPACITY) == TLM_OK);
    check_without_a_frame();
    check_bad_slots_and_sizes();
    check_a_loop_allocates_nothing();
    check_the_trace();
    check_growth_keeps_what_was();
    check_calls_have_their_own_slots();
    check_inner_scopes_leave_slots_alone();
    check_leaving_out_of_order();
    check_every_way_out_is_balanced();
    check_held_buffers_end_all_the_same();
    check_a_freed_buffer_is_made_anew();
    check_memory_comes_from_the_arena_while_it_lasts();
    check_both_ends_of_the_arena_meet();
    check_contexts_are_apart();
    check_without_memory_nothing_changes();
    check_threads();
    trace_forget();
    return unused;
}

/* In a thread of its own, which gives its arena back when it ends. */
int main(void)
{
    pthread_t thread;
    tlm_buffers_statistics after;
    CHECK(pthread_create(&thread, NULL, check_all, NULL) == 0 && pthread_join(thread, NULL) == 0);
    tlm_buffers_stats(TLM_DEVICE_CPU, &after);
    CHECK(after.active_count == 0 && after.active_bytes == 0);
    return 0;
}
