/* SPDX-License-Identifier: MIT
 * test_arena.c: memory of a scope is taken in a line and given back in one step; what does not fit comes from the heap.
 *
 * tlm-test: sources=core */
#include <string.h>

#include "starve.h"
#include "tlmem_poison.h"
#include "trace.h"

STAND_IN_FOR_SAMPLER

enum { CAPACITY = 1 << 16, DEPTH = 6, ROUNDS = 3000, THREADS = 8 };

static const tlm_holder FLOATING = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);
static const tlm_holder ME = TLM_HOLDER(TLM_HOLDER_HANDLE, 1);

static uint64_t enter(void)
{
    uint64_t id = 0;
    CHECK(tlm_scope_enter(tlm_label_of("scope"), &id) == TLM_OK);
    return id;
}

static void leave(uint64_t id)
{
    CHECK(tlm_scope_exit(id, NULL) == TLM_OK);
}

static tlm_object take(uint64_t bytes)
{
    tlm_object object = 0;
    CHECK(tlm_arena_object(bytes, &object) == TLM_OK && object != 0);
    return object;
}

static tlm_object_info about(tlm_object object)
{
    tlm_object_info info;
    CHECK(tlm_object_describe(object, &info) == TLM_OK);
    return info;
}

static tlm_arena_statistics stats(void)
{
    tlm_arena_statistics out;
    tlm_arena_stats(&out);
    return out;
}

static void check_nothing_is_left(void)
{
    tlm_runtime_statistics out;
    tlm_runtime_stats(0, &out);
    CHECK(out.total_count - out.freed_count == 0 && out.total_bytes - out.freed_bytes == 0);
    CHECK(out.current_count == 0 && out.current_bytes == 0 && out.floating == 0 && tlm_scope_depth() == 0);
    CHECK(stats().scope_bytes == 0 && stats().slot_bytes == 0);
}

/* Only AddressSanitizer knows; without it there is nothing to check. */
static bool is_poisoned(const void *at, bool otherwise)
{
#ifdef TLM_POISON_IS_ON
    (void)otherwise;
    return __asan_address_is_poisoned(at);
#else
    (void)at;
    return otherwise;
#endif
}

static void check_a_sanitizer_knows_whose_memory_it_is(void)
{
    uint64_t id = enter();
    tlm_object object = take(100);
    const uint8_t *payload = about(object).payload;
    CHECK(!is_poisoned(payload, false) && !is_poisoned(payload + 99, false));
    CHECK(is_poisoned(payload + 104, true)); /* up to the next object */
    leave(id);
    CHECK(is_poisoned(payload, true) && is_poisoned(payload + 99, true));
    id = enter();
    CHECK(about(take(100)).payload == payload && !is_poisoned(payload, false));
    leave(id);
}

static void check_outside_a_scope_there_is_none(void)
{
    tlm_object object = 42;
    tlm_arena_statistics before = stats(), after;
    trace_begin(TRACE_ALL);
    CHECK(tlm_arena_object(64, &object) == TLM_NOT_IN_SCOPE && object == 42);
    trace_end();
    TRACE_NOTHING();
    after = stats();
    CHECK(memcmp(&before, &after, sizeof before) == 0 && before.capacity_bytes == 1 << 20);
    check_nothing_is_left();
}

static void check_capacity(void)
{
    CHECK(tlm_arena_capacity(4095) == TLM_BAD_ARGUMENT && stats().capacity_bytes == 1 << 20);
    CHECK(tlm_arena_capacity(4096) == TLM_OK && stats().capacity_bytes == 4096 &&
          tlm_arena_capacity(1 << 20) == TLM_OK && stats().capacity_bytes == 1 << 20);
    CHECK(tlm_arena_capacity(4096 + 63) == TLM_OK && stats().capacity_bytes == 4096);
    CHECK(tlm_arena_capacity(CAPACITY) == TLM_OK && stats().capacity_bytes == CAPACITY);
    uint64_t id = enter();
    take(1);
    CHECK(tlm_arena_capacity(2 * CAPACITY) == TLM_OK &&
          stats().capacity_bytes == CAPACITY); /* of those made from now on */
    leave(id);
    check_nothing_is_left();
}

/* What lies side by side does not overlap, is aligned, and is there until the scope's end. */
static void check_payloads_are_apart(void)
{
    enum { COUNT = 100 };
    uint8_t *payloads[COUNT];
    uint64_t id = enter();
    for (int i = 0; i < COUNT; i++) {
        tlm_object object = take((uint64_t)i + 1);
        payloads[i] = tlm_payload(object);
        CHECK((uintptr_t)payloads[i] % 64 == 0 && about(object).flags == TLM_FLAG_ARENA && about(object).scope == id);
        CHECK(about(object).bytes == (uint64_t)i + 1 && about(object).device == TLM_DEVICE_CPU);
        CHECK(about(object).type == TLM_OBJECT_TENSOR);
        memset(payloads[i], i, (size_t)i + 1);
    }
    for (int i = 0; i < COUNT; i++)
        for (int at = 0; at <= i; at++)
            CHECK(payloads[i][at] == i);
    CHECK(stats().scope_bytes == 64 * (64 + 2 * 36));
    leave(id);
    check_nothing_is_left();
}

static void check_exit_resets_the_mark(void)
{
    uint64_t outer = enter();
    void *first = tlm_payload(take(100));
    uint64_t used = stats().scope_bytes;
    for (int i = 0; i < 100; i++) {
        uint64_t inner = enter();
        CHECK(tlm_payload(take(1000)) == (uint8_t *)first + used);
        take(3000);
        leave(inner);
        CHECK(stats().scope_bytes == used);
    }
    CHECK(stats().peak_bytes >= used + 4000 && stats().overflows == 0);
    leave(outer);
    outer = enter();
    CHECK(tlm_payload(take(1)) == first);
    leave(outer);
    check_nothing_is_left();
}

static void check_the_trace_has_no_device_in_it(void)
{
    trace_begin(TRACE_ALL);
    uint64_t id = enter();
    tlm_object a = take(10), b = take(0);
    leave(id);
    trace_end();
    tlm_holder by = TLM_HOLDER(TLM_HOLDER_SCOPE, id);
    TRACE({TLM_KIND_SCOPE_ENTER, id, tlm_label_of("scope"), 1}, {TLM_KIND_ALLOC, a, 10, 1},
          {TLM_KIND_REGISTER, a, by, 1}, {TLM_KIND_ALLOC, b, 0, 1}, {TLM_KIND_REGISTER, b, by, 1},
          {TLM_KIND_RELEASE, b, by, 0}, {TLM_KIND_FREE, b, 0, 0}, {TLM_KIND_RELEASE, a, by, 0},
          {TLM_KIND_FREE, a, 0, 0}, {TLM_KIND_SCOPE_EXIT, id, 2, 0});
    check_nothing_is_left();
}

static void check_overflow_goes_to_the_heap(void)
{
    tlm_buffers_statistics before, during, after;
    tlm_buffers_stats(TLM_DEVICE_CPU, &before);
    uint64_t id = enter(), overflows = stats().overflows;
    tlm_object whole = take(CAPACITY);
    CHECK(about(whole).flags == TLM_FLAG_ARENA && stats().scope_bytes == CAPACITY && stats().overflows == overflows);
    tlm_object more = take(1);
    memset(tlm_payload(more), 1, 1);
    CHECK(about(more).flags == 0 && about(more).scope == id && stats().overflows == overflows + 1);
    CHECK((uintptr_t)tlm_payload(more) % 64 == 0 && stats().scope_bytes == CAPACITY);
    tlm_buffers_stats(TLM_DEVICE_CPU, &during);
    CHECK(during.active_count == before.active_count + 1);
    leave(id);
    tlm_buffers_stats(TLM_DEVICE_CPU, &after); /* the one of the heap is given back, the arena's is not */
    CHECK(after.active_count == before.active_count && after.active_bytes == before.active_bytes);
    id = enter();
    CHECK(about(take(CAPACITY + 1)).flags == 0 && stats().overflows == overflows + 2);
    leave(id);
    check_nothing_is_left();
}

/* A size that nobody has: as if nothing had been asked. */
static void check_failure_changes_nothing(void)
{
    uint64_t id = enter(), sizes[] = {UINT64_MAX, UINT64_MAX - 62, UINT64_C(1) << 63, UINT64_C(1) << 50};
    take(10);
    tlm_arena_statistics before = stats(), after;
    trace_begin(TRACE_ALL);
    for (int i = 0; i < 4; i++) {
        tlm_object object = 42;
        tlm_failure failure;
        CHECK(tlm_arena_object(sizes[i], &object) == TLM_OVERFLOW && object == 42);
        tlm_failure_last(&failure);
        CHECK(failure.status == TLM_OVERFLOW && failure.bytes == sizes[i]);
        after = stats();
        CHECK(memcmp(&before, &after, sizeof before) == 0);
    }
    trace_end();
    TRACE_NOTHING();
    leave(id);
    check_nothing_is_left();
}

static void check_it_cannot_be_handed_out(void)
{
    uint64_t id = enter();
    uint32_t pool;
    tlm_holder by = TLM_HOLDER(TLM_HOLDER_SCOPE, id);
    tlm_object x = take(10), record;
    int dropped = 5;
    CHECK(tlm_pool_create(0, 1, &pool) == TLM_OK && tlm_struct_create(0, 1, &record) == TLM_OK);
    CHECK(tlm_escape(x, ME) == TLM_IN_ARENA && tlm_promote(x) == TLM_IN_ARENA && tlm_unregister(x) == TLM_IN_ARENA);
    CHECK(tlm_pool_put(pool, 1, x, by, &dropped) == TLM_IN_ARENA && dropped == 0);
    CHECK(tlm_struct_move(record, 0, x, by) == TLM_IN_ARENA);
    CHECK(about(x).count == 1 && about(x).scope == id && about(x).flags == TLM_FLAG_ARENA);
    CHECK(tlm_pool_destroy(pool) == TLM_OK && tlm_release(record, FLOATING) == TLM_OK);
    leave(id);
    CHECK(tlm_check(x) == TLM_FREED);
    check_nothing_is_left();
}

static void check_it_ends_although_it_is_held(void)
{
    uint64_t id = enter();
    tlm_object x = take(10);
    CHECK(tlm_acquire(x, ME) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    leave(id);
    trace_end();
    TRACE({TLM_KIND_MISUSE, x, ME, TLM_MISUSE_OUTLIVES_FRAME}, {TLM_KIND_FREE, x, 2, 0},
          {TLM_KIND_SCOPE_EXIT, id, 1, 0});
    CHECK(tlm_release(x, ME) == TLM_FREED && tlm_payload(x) == NULL);
    check_nothing_is_left();
}

static void check_contexts_have_their_own(void)
{
    tlm_context *one, *other;
    CHECK(tlm_context_create(&one) == TLM_OK && tlm_context_create(&other) == TLM_OK);
    tlm_context *former = tlm_context_switch(one);
    uint64_t a = enter();
    uint8_t *x = tlm_payload(take(100));
    memset(x, 1, 100);
    CHECK(tlm_context_switch(other) == one);
    uint64_t b = enter();
    uint8_t *y = tlm_payload(take(200));
    memset(y, 2, 200);
    CHECK(stats().scope_bytes == 256);
    tlm_context_switch(one);
    CHECK(stats().scope_bytes == 128);
    leave(a);
    tlm_context_switch(other);
    CHECK(stats().scope_bytes == 256 && y[199] == 2);
    leave(b);
    tlm_context_switch(former);
    tlm_buffers_statistics before, after;
    tlm_buffers_stats(TLM_DEVICE_CPU, &before);
    tlm_context_destroy(one);
    tlm_context_destroy(other);
    tlm_buffers_stats(TLM_DEVICE_CPU, &after);
    CHECK(before.active_count == after.active_count + 2); /* the blocks went back */
    check_nothing_is_left();
}

/* No device has a block of that size: every request is served by the heap, and counted. */
static void check_without_a_block(void)
{
    tlm_context *context;
    CHECK(tlm_context_create(&context) == TLM_OK && tlm_arena_capacity(UINT64_C(1) << 50) == TLM_OK);
    tlm_context *former = tlm_context_switch(context);
    uint64_t id = enter();
    tlm_object x = take(10);
    CHECK(about(x).flags == 0 && about(x).payload && stats().overflows == 1 && stats().scope_bytes == 0);
    leave(id);
    tlm_context_switch(former);
    tlm_context_destroy(context);
    CHECK(tlm_arena_capacity(CAPACITY) == TLM_OK);
    check_nothing_is_left();
}

static void check_without_memory_nothing_changes(void)
{
    tlm_context *context;
    CHECK(tlm_context_create(&context) == TLM_OK);
    tlm_context *former = tlm_context_switch(context);
    uint64_t id = enter();
    for (int i = 0; i < 12; i++)
        take(1); /* the next record of a scope that was never used before needs more room */
    tlm_arena_statistics before = stats(), after;
    tlm_object object = 42;
    starve(0);
    tlm_own_fail_after(1);
    CHECK(tlm_arena_object(10, &object) == TLM_NO_MEMORY && object == 42);
    feed();
    after = stats();
    CHECK(before.scope_bytes == after.scope_bytes && before.overflows == after.overflows);
    starve_slots(0);
    tlm_own_fail_after(1);
    CHECK(tlm_arena_object(10, &object) == TLM_NO_MEMORY && object == 42);
    feed_slots();
    after = stats();
    CHECK(before.scope_bytes == after.scope_bytes && tlm_arena_object(10, &object) == TLM_OK);
    leave(id);
    tlm_context_switch(former);
    tlm_context_destroy(context);
    check_nothing_is_left();
}

/* Scopes and requests at random, against a model of the mark. */
static void use_at_random(uint64_t seed)
{
    uint64_t ids[DEPTH], marks[DEPTH], random = seed, mark = 0;
    uint8_t *last[DEPTH] = {0};
    int depth = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t choice = next_random(&random) % 8;
        if (depth == 0 || (choice == 0 && depth < DEPTH)) {
            marks[depth] = mark;
            last[depth] = NULL;
            ids[depth++] = enter();
        } else if (choice == 1) {
            CHECK(!last[depth - 1] || *last[depth - 1] == (uint8_t)depth);
            leave(ids[--depth]);
            mark = marks[depth];
        } else {
            uint64_t bytes = 1 + (random >> 20) % (CAPACITY / 8);
            tlm_object object = take(bytes);
            bool fits = mark + (bytes + 63) / 64 * 64 <= stats().capacity_bytes;
            CHECK((about(object).flags == TLM_FLAG_ARENA) == fits);
            mark += fits ? (bytes + 63) / 64 * 64 : 0;
            last[depth - 1] = tlm_payload(object);
            *last[depth - 1] = (uint8_t)depth;
        }
        CHECK(stats().scope_bytes == mark);
    }
    while (depth > 0)
        leave(ids[--depth]);
}

static void *work(void *seed)
{
    use_at_random((uint64_t)(uintptr_t)seed);
    return NULL;
}

static void check_threads_have_their_own(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    check_nothing_is_left();
}

static void *check_all(void *unused)
{
    check_outside_a_scope_there_is_none();
    check_capacity();
    check_payloads_are_apart();
    check_a_sanitizer_knows_whose_memory_it_is();
    check_exit_resets_the_mark();
    check_the_trace_has_no_device_in_it();
    check_overflow_goes_to_the_heap();
    check_failure_changes_nothing();
    check_it_cannot_be_handed_out();
    check_it_ends_although_it_is_held();
    check_contexts_have_their_own();
    check_without_a_block();
    check_without_memory_nothing_changes();
    use_at_random(11);
    check_threads_have_their_own();
    trace_forget();
    return unused;
}

/* In a thread of its own, which gives its block back when it ends. */
int main(void)
{
    pthread_t thread;
    tlm_buffers_statistics after;
    CHECK(pthread_create(&thread, NULL, check_all, NULL) == 0 && pthread_join(thread, NULL) == 0);
    tlm_buffers_stats(TLM_DEVICE_CPU, &after);
    CHECK(after.active_count == 0 && after.active_bytes == 0 && after.misses + after.hits > 0);
    return 0;
}
