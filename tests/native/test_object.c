/* SPDX-License-Identifier: MIT
 * test_object.c: an object has as many holders as its count says, ends with the last, and its handle is stale from then on.
 *
 * tlm-test: sources=core */
#include <string.h>

#include "trace.h"

STAND_IN_FOR_SAMPLER

static const tlm_holder FLOATING = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);
static const tlm_holder ME = TLM_HOLDER(TLM_HOLDER_HANDLE, 1), YOU = TLM_HOLDER(TLM_HOLDER_FOREIGN, 2);

static tlm_object make(uint64_t bytes)
{
    tlm_object object = 0;
    CHECK(tlm_object_alloc(TLM_DEVICE_CPU, bytes, &object) == TLM_OK && object != 0);
    return object;
}

static tlm_runtime_statistics stats(void)
{
    tlm_runtime_statistics out;
    tlm_runtime_stats(0, &out);
    CHECK(out.total_count - out.freed_count == out.current_count);
    CHECK(out.total_bytes - out.freed_bytes == out.current_bytes);
    return out;
}

static void check_life_of_an_object(void)
{
    trace_begin(TRACE_OBJECTS);
    tlm_object x = make(100);
    CHECK(tlm_move(x, FLOATING, ME) == TLM_OK);
    CHECK(tlm_acquire(x, YOU) == TLM_OK);
    CHECK(tlm_release(x, ME) == TLM_OK);
    CHECK(tlm_move(x, YOU, ME) == TLM_OK);
    CHECK(tlm_release(x, ME) == TLM_OK);
    trace_end();
    TRACE({TLM_KIND_ALLOC, x, 100, 1}, {TLM_KIND_REGISTER, x, ME, 1}, {TLM_KIND_ACQUIRE, x, YOU, 2},
          {TLM_KIND_RELEASE, x, ME, 1}, {TLM_KIND_UNREGISTER, x, YOU, 1}, {TLM_KIND_REGISTER, x, ME, 1},
          {TLM_KIND_RELEASE, x, ME, 0}, {TLM_KIND_FREE, x, 0, 0});
    CHECK(stats().current_count == 0 && stats().floating == 0);
}

static void check_stale_handles_are_told(void)
{
    tlm_object x = make(8);
    CHECK(tlm_payload(x) != NULL && (uintptr_t)tlm_payload(x) % 64 == 0 && tlm_check(x) == TLM_OK);
    CHECK(tlm_free(x) == TLM_OK);
    tlm_object_info info;
    CHECK(tlm_object_describe(x, &info) == TLM_OK && !info.alive && info.bytes == 8 && info.count == 0);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_check(x) == TLM_FREED && tlm_payload(x) == NULL && tlm_acquire(x, ME) == TLM_FREED);
    CHECK(tlm_free(x) == TLM_FREED && tlm_release(x, ME) == TLM_FREED && tlm_move(x, FLOATING, ME) == TLM_FREED);
    trace_end();
    TRACE({TLM_KIND_MISUSE, x, 0, TLM_MISUSE_USE_AFTER_FREE}, {TLM_KIND_MISUSE, x, 0, TLM_MISUSE_USE_AFTER_FREE},
          {TLM_KIND_MISUSE, x, ME, TLM_MISUSE_USE_AFTER_FREE}, {TLM_KIND_MISUSE, x, 0, TLM_MISUSE_DOUBLE_FREE},
          {TLM_KIND_MISUSE, x, ME, TLM_MISUSE_DOUBLE_FREE}, {TLM_KIND_MISUSE, x, FLOATING, TLM_MISUSE_USE_AFTER_FREE});
    tlm_failure failure;
    tlm_failure_last(&failure);
    CHECK(failure.status == TLM_FREED && failure.object == x && failure.holder == FLOATING);
    tlm_object y = make(8);
    for (int i = 0; i < 1000 && (uint32_t)y << 4 != (uint32_t)x << 4; i++) {
        tlm_free(y);
        y = make(8);
    }
    CHECK(y != x && tlm_check(x) == TLM_FREED && tlm_object_describe(x, &info) == TLM_FREED);
    tlm_free(y);
    CHECK(tlm_check(TLM_HOLDER(200, 5)) == TLM_FREED); /* not a handle at all */
    CHECK(tlm_check((UINT64_C(1) << 56) - 1) == TLM_FREED && tlm_check(UINT64_MAX) == TLM_FREED);
}

static void check_a_release_by_somebody_else_changes_nothing(void)
{
    tlm_object x = make(16);
    CHECK(tlm_move(x, FLOATING, ME) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_release(x, YOU) == TLM_NOT_A_HOLDER && tlm_move(x, YOU, ME) == TLM_NOT_A_HOLDER);
    CHECK(tlm_acquire(x, FLOATING) == TLM_BAD_ARGUMENT && tlm_acquire(x, 0) == TLM_BAD_ARGUMENT);
    CHECK(tlm_move(x, ME, TLM_HOLDER(TLM_HOLDER_SCOPE, 1)) == TLM_BAD_ARGUMENT);
    trace_end();
    TRACE({TLM_KIND_MISUSE, x, YOU, TLM_MISUSE_OVER_RELEASE}, {TLM_KIND_MISUSE, x, YOU, TLM_MISUSE_OVER_RELEASE});
    tlm_object_info info;
    CHECK(tlm_object_describe(x, &info) == TLM_OK && info.alive && info.count == 1);
    CHECK(tlm_release(x, ME) == TLM_OK);
}

static void check_freeing_unless_somebody_borrows(void)
{
    tlm_object x = make(8);
    tlm_holder borrower = TLM_HOLDER(TLM_HOLDER_EXPORT, 9);
    for (uint64_t i = 1; i <= 4; i++)
        CHECK(tlm_acquire(x, TLM_HOLDER(TLM_HOLDER_FIELD, i)) == TLM_OK);
    CHECK(tlm_acquire(x, borrower) == TLM_OK && tlm_free_unless(x, TLM_HOLDER_EXPORT) == TLM_STILL_HELD);
    CHECK(tlm_object_holders(x, NULL, 0) == 6 && tlm_release(x, borrower) == TLM_OK);
    CHECK(tlm_free_unless(x, TLM_HOLDER_EXPORT) == TLM_OK && tlm_free_unless(x, TLM_HOLDER_EXPORT) == TLM_FREED);
}

static void check_pinned_memory_stays(void)
{
    tlm_object x = make(64), view, pinned, again, none;
    CHECK(tlm_object_view(x, &view) == TLM_OK);
    char *payload = tlm_pin(x, &pinned);
    CHECK(payload == tlm_payload(x) && tlm_pin(view, &again) == payload && again == x);
    CHECK(tlm_free(view) == TLM_OK && tlm_free(x) == TLM_OK && stats().current_count == 0);
    payload[63] = 1; /* the sanitizer would tell */
    tlm_unpin(pinned);
    payload[0] = 1;
    CHECK(tlm_pin(x, &none) == NULL && none == 0);
    tlm_unpin(again);
    tlm_unpin(0);
    tlm_object y = make(64);
    CHECK(tlm_pin(y, &pinned) != NULL);
    tlm_unpin(pinned);
    CHECK(tlm_free(y) == TLM_OK && stats().current_count == 0);
}

static void check_many_holders(void)
{
    enum { HOLDERS = 300 };
    tlm_object x = make(4);
    for (uint64_t i = 1; i <= HOLDERS; i++)
        CHECK(tlm_acquire(x, TLM_HOLDER(TLM_HOLDER_FIELD, i % 100)) == TLM_OK);
    tlm_holder found[HOLDERS + 1];
    CHECK(tlm_object_holders(x, found, HOLDERS + 1) == HOLDERS + 1 && tlm_object_holders(x, NULL, 0) == HOLDERS + 1);
    for (uint64_t i = 1; i <= HOLDERS; i++)
        CHECK(tlm_release(x, TLM_HOLDER(TLM_HOLDER_FIELD, i % 100)) == TLM_OK);
    CHECK(tlm_release(x, TLM_HOLDER(TLM_HOLDER_FIELD, 1)) == TLM_NOT_A_HOLDER);
    CHECK(tlm_object_holders(x, found, 2) == 1 && found[0] == FLOATING);
    CHECK(tlm_release(x, FLOATING) == TLM_OK && stats().current_count == 0 && stats().floating == 0);
}

static void check_the_null_object_owns_nothing(void)
{
    tlm_runtime_statistics before = stats();
    trace_begin(TRACE_ALL);
    for (int i = 0; i < 1000; i++) {
        CHECK(tlm_acquire(0, ME) == TLM_OK && tlm_release(0, ME) == TLM_OK && tlm_release(0, ME) == TLM_OK);
        CHECK(tlm_move(0, ME, YOU) == TLM_OK && tlm_free(0) == TLM_OK && tlm_check(0) == TLM_OK);
        CHECK(tlm_register(0) == TLM_OK && tlm_unregister(0) == TLM_OK && tlm_promote(0) == TLM_OK);
        CHECK(tlm_escape(0, ME) == TLM_OK && tlm_payload(0) == NULL && tlm_object_holders(0, NULL, 0) == 0);
    }
    tlm_object view = 1;
    CHECK(tlm_object_view(0, &view) == TLM_OK && view == 0);
    trace_end();
    TRACE_NOTHING();
    CHECK(stats().total_count == before.total_count && stats().acquires == before.acquires);
}

static void check_views_hold_the_first_base(void)
{
    tlm_object base = make(64), view, inner;
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_object_view(base, &view) == TLM_OK && tlm_object_view(view, &inner) == TLM_OK);
    CHECK(tlm_payload(inner) == tlm_payload(base));
    CHECK(tlm_release(base, FLOATING) == TLM_OK && tlm_check(base) == TLM_OK);
    CHECK(tlm_release(view, FLOATING) == TLM_OK && tlm_check(base) == TLM_OK);
    CHECK(tlm_release(inner, FLOATING) == TLM_OK && tlm_check(base) == TLM_FREED);
    trace_end();
    tlm_holder by_view = TLM_HOLDER(TLM_HOLDER_VIEW, view), by_inner = TLM_HOLDER(TLM_HOLDER_VIEW, inner);
    TRACE({TLM_KIND_ACQUIRE, base, by_view, 2}, {TLM_KIND_ALLOC, view, 0, 1}, {TLM_KIND_ACQUIRE, base, by_inner, 3},
          {TLM_KIND_ALLOC, inner, 0, 1}, {TLM_KIND_RELEASE, base, FLOATING, 2}, {TLM_KIND_RELEASE, view, FLOATING, 0},
          {TLM_KIND_RELEASE, base, by_view, 1}, {TLM_KIND_FREE, view, 0, 0}, {TLM_KIND_RELEASE, inner, FLOATING, 0},
          {TLM_KIND_RELEASE, base, by_inner, 0}, {TLM_KIND_FREE, base, 0, 0}, {TLM_KIND_FREE, inner, 0, 0},
          {TLM_KIND_MISUSE, base, 0, TRACE_ANY_COUNT});
    CHECK(tlm_object_view(base, &view) == TLM_FREED && stats().current_count == 0);
}

static int dropped;

static void drop(void *context)
{
    dropped += *(int *)context;
}

static void check_adopted_and_foreign_memory(void)
{
    int one = 1;
    char memory[32];
    tlm_object x, again, second;
    CHECK(tlm_object_adopt(TLM_DEVICE_CPU, memory, 0, drop, &one, &x) == TLM_OK && tlm_payload(x) == memory);
    CHECK(tlm_free(x) == TLM_OK && dropped == 1);
    CHECK(tlm_foreign_register(memory, 32, drop, &one, &x) == TLM_OK && tlm_foreign_find(memory) == x);
    CHECK(tlm_foreign_register(memory, 32, drop, &one, &again) == TLM_ALREADY_REGISTERED && again == x);
    CHECK(tlm_free(x) == TLM_OK && dropped == 2 && tlm_foreign_find(memory) == 0);
    CHECK(tlm_foreign_register(memory, 32, drop, &one, &x) == TLM_OK && tlm_foreign_gone(memory) == TLM_OK);
    CHECK(dropped == 2 && tlm_check(x) == TLM_FREED && tlm_foreign_gone(memory) == TLM_FREED);
    CHECK(tlm_foreign_register(memory, 32, drop, &one, &second) == TLM_OK && second != x);
    CHECK(tlm_free(second) == TLM_OK && dropped == 3 && tlm_foreign_register(NULL, 1, NULL, NULL, &x) != TLM_OK);
    CHECK(stats().current_count == 0);
}

/* An outer scope's record of memory that its owner took back must not release whoever lives there now. */
static void check_a_stale_record_at_a_reused_address(void)
{
    char memory[16];
    uint64_t outer, inner;
    tlm_object old, fresh;
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_scope_enter(0, &outer) == TLM_OK && tlm_foreign_register(memory, 16, NULL, NULL, &old) == TLM_OK);
    CHECK(tlm_register(old) == TLM_OK && tlm_foreign_gone(memory) == TLM_OK);
    CHECK(tlm_scope_enter(0, &inner) == TLM_OK && tlm_foreign_register(memory, 16, NULL, NULL, &fresh) == TLM_OK);
    CHECK(tlm_register(fresh) == TLM_OK && tlm_scope_exit(inner, NULL) == TLM_OK);
    tlm_scope_statistics left;
    CHECK(tlm_scope_exit(outer, &left) == TLM_OK && left.frees == 1 && left.leaked == 0);
    trace_end();
    tlm_holder stale = TLM_HOLDER(TLM_HOLDER_SCOPE, outer), by = TLM_HOLDER(TLM_HOLDER_SCOPE, inner);
    TRACE({TLM_KIND_SCOPE_ENTER, outer, 0, 1}, {TLM_KIND_ALLOC, old, 16, 1}, {TLM_KIND_REGISTER, old, stale, 1},
          {TLM_KIND_FREE, old, 1, 0}, {TLM_KIND_SCOPE_ENTER, inner, 0, 2},
          {TLM_KIND_MISUSE, old, stale, TLM_MISUSE_STALE_RECORD}, {TLM_KIND_ALLOC, fresh, 16, 1},
          {TLM_KIND_REGISTER, fresh, by, 1}, {TLM_KIND_RELEASE, fresh, by, 0}, {TLM_KIND_FREE, fresh, 0, 0},
          {TLM_KIND_SCOPE_EXIT, inner, 1, 0}, {TLM_KIND_SCOPE_EXIT, outer, 1, 0});
    /* Nobody took the address: the exit finds the record and says so. */
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_scope_enter(0, &outer) == TLM_OK && tlm_foreign_register(memory, 16, NULL, NULL, &old) == TLM_OK);
    CHECK(tlm_register(old) == TLM_OK && tlm_foreign_gone(memory) == TLM_OK);
    CHECK(tlm_scope_exit(outer, NULL) == TLM_OK);
    trace_end();
    CHECK(trace_count(TLM_KIND_RELEASE, old) == 0 && trace_count(TLM_KIND_MISUSE, old) == 1);
    CHECK(stats().current_count == 0);
}

static void check_failures_change_nothing(void)
{
    tlm_object x = 77;
    tlm_runtime_statistics before = stats();
    CHECK(tlm_object_alloc(TLM_DEVICE_CPU, UINT64_C(1) << 50, &x) == TLM_OVERFLOW);
    CHECK(tlm_object_alloc(5, 8, &x) == TLM_NO_DEVICE && tlm_object_alloc(300, 8, &x) == TLM_NO_DEVICE);
    CHECK(x == 77 && stats().total_count == before.total_count);
    tlm_object held = make(8);
    for (uint64_t i = 1; i <= 8; i++)
        CHECK(tlm_acquire(held, TLM_HOLDER(TLM_HOLDER_FIELD, i)) == TLM_OK);
    for (int i = 0; i < 20000; i++) { /* until the block of holders needs fresh pages */
        tlm_own_fail_after(1);
        tlm_object_info info;
        uint32_t count = tlm_object_holders(held, NULL, 0);
        tlm_status status = tlm_acquire(held, ME);
        tlm_own_fail_after(0);
        CHECK(tlm_object_describe(held, &info) == TLM_OK && info.count == tlm_object_holders(held, NULL, 0));
        if (status == TLM_NO_MEMORY) {
            CHECK(info.count == count);
            break;
        }
        CHECK(status == TLM_OK);
    }
    CHECK(tlm_free(held) == TLM_OK && stats().current_count == before.current_count);
}

/* ---- many threads ---- */

enum { THREADS = 8, ROUNDS = 4000, SHARED = 16 };
static tlm_object shared[SHARED];

static void *hold_and_let_go(void *argument)
{
    uint64_t me = (uint64_t)(uintptr_t)argument, seed = 0x9E3779B97F4A7C15u * me;
    tlm_object own[8] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t number = next_random(&seed);
        tlm_object with = shared[number % SHARED];
        tlm_holder holder = TLM_HOLDER(TLM_HOLDER_HANDLE, me << 20 | (uint64_t)i);
        CHECK(tlm_acquire(with, holder) == TLM_OK);
        int at = (int)((number >> 8) % 8);
        if (own[at])
            CHECK(tlm_free(own[at]) == TLM_OK);
        own[at] = make(number % 512);
        CHECK(tlm_check(own[at]) == TLM_OK && tlm_release(with, holder) == TLM_OK);
    }
    for (int at = 0; at < 8; at++)
        CHECK(tlm_free(own[at]) == TLM_OK);
    return NULL;
}

static void check_threads_count_exactly(void)
{
    tlm_runtime_statistics before = stats();
    pthread_t threads[THREADS];
    for (int i = 0; i < SHARED; i++)
        shared[i] = make(32);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, hold_and_let_go, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    tlm_object alive[SHARED + 1];
    CHECK(tlm_objects_alive(alive, SHARED + 1) == SHARED);
    for (int i = 0; i < SHARED; i++) {
        CHECK(tlm_object_holders(shared[i], NULL, 0) == 1 && tlm_release(shared[i], FLOATING) == TLM_OK);
    }
    tlm_runtime_statistics after = stats();
    CHECK(after.current_count == before.current_count && after.current_bytes == before.current_bytes);
    CHECK(after.acquires - before.acquires == THREADS * ROUNDS && after.floating == 0);
    CHECK(after.releases - before.releases == THREADS * ROUNDS + SHARED);
}

int main(void)
{
    check_life_of_an_object();
    check_stale_handles_are_told();
    check_a_release_by_somebody_else_changes_nothing();
    check_freeing_unless_somebody_borrows();
    check_pinned_memory_stays();
    check_many_holders();
    check_the_null_object_owns_nothing();
    check_views_hold_the_first_base();
    check_adopted_and_foreign_memory();
    check_a_stale_record_at_a_reused_address();
    check_failures_change_nothing();
    check_threads_count_exactly();
    trace_forget();
    return 0;
}
