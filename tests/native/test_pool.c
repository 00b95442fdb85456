/* SPDX-License-Identifier: MIT
 * test_pool.c: what is put comes out once, last in first out, to one caller; what a pool is told is counted exactly.
 *
 * tlm-test: sources=core */
#include "pooling.h"

STAND_IN_FOR_SAMPLER

/* S42, S44, S45: by exact key, last in first out, counted. */
static void check_put_and_acquire(void)
{
    uint32_t pool = make_pool(16);
    CHECK(get(pool, A) == 0 && stats(pool).misses == 1);
    tlm_object x = make(8), y = make(8), z = make(8);
    void *payload = tlm_payload(y);
    CHECK(put(pool, A, x) && put(pool, A, y) && put(pool, B, z) && stats(pool).size == 3);
    CHECK(get(pool, C) == 0 && get(pool, A) == y && get(pool, B) == z && get(pool, A) == x && get(pool, A) == 0);
    CHECK(tlm_payload(y) == payload); /* the memory itself comes back */
    tlm_pool_statistics out = stats(pool);
    CHECK(out.size == 0 && out.hits == 3 && out.misses == 3 && out.puts == 3 && out.drops == 0);
    CHECK(about(x).count == 1 && about(x).flags == 0 && tlm_acquire(x, ME) == TLM_OK && tlm_release(x, ME) == TLM_OK);
    CHECK(put(pool, A, x) && put(pool, A, y) && put(pool, A, z));
    CHECK(tlm_pool_reset_counters(pool) == TLM_OK && stats(pool).size == 3 && stats(pool).puts == 0);
    finish(pool);
}

static void check_the_trace(void)
{
    uint32_t pool = make_pool(1);
    tlm_object x = make(8), y = make(8);
    CHECK(tlm_move(x, FLOATING, ME) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_pool_put(pool, A, x, ME, NULL) == TLM_OK && get(pool, A) == x && get(pool, A) == 0);
    CHECK(put(pool, A, x) && !put(pool, A, y) && prune(pool, 0) == 1);
    CHECK(put_item(pool, B, 7) && !put_item(pool, B, 8) && get(pool, B) == 7);
    CHECK(put_item(pool, B, 9) && prune(pool, 0) == 1);
    trace_end();
    tlm_holder by = pool_holder(pool);
    TRACE({TLM_KIND_UNREGISTER, x, ME, 1}, {TLM_KIND_REGISTER, x, by, 1}, {TLM_KIND_POOL_PUT, x, by, 1},
          {TLM_KIND_UNREGISTER, x, by, 1}, {TLM_KIND_POOL_HIT, x, by, 1}, {TLM_KIND_POOL_MISS, 0, by, 0},
          {TLM_KIND_REGISTER, x, by, 1}, {TLM_KIND_POOL_PUT, x, by, 1}, {TLM_KIND_POOL_DROP, y, by, 1},
          {TLM_KIND_RELEASE, y, FLOATING, 0}, {TLM_KIND_FREE, y, 0, 0}, {TLM_KIND_POOL_PRUNE, x, by, 1},
          {TLM_KIND_RELEASE, x, by, 0}, {TLM_KIND_FREE, x, 0, 0}, {TLM_KIND_POOL_PUT, 7, by, 0},
          {TLM_KIND_POOL_DROP, 8, by, 0}, {TLM_KIND_POOL_HIT, 7, by, 0}, {TLM_KIND_POOL_PUT, 9, by, 0},
          {TLM_KIND_POOL_PRUNE, 9, by, 0});
    finish(pool);
}

/* S43: the incoming one goes, the older ones stay. */
static void check_a_full_key(void)
{
    uint32_t pool = make_pool(2);
    tlm_object x = make(8), y = make(8), z = make(8);
    CHECK(put(pool, A, x) && put(pool, A, y) && !put(pool, A, z) && tlm_check(z) == TLM_FREED);
    CHECK(stats(pool).size == 2 && stats(pool).drops == 1 && stats(pool).puts == 2);
    CHECK(put(pool, B, make(8)) && get(pool, A) == y && get(pool, A) == x);
    CHECK(put(pool, A, x) && put(pool, A, y));
    finish(pool);
}

/* B4: what is in a pool cannot be put again, and no two callers get the same. */
static void check_double_pooling_is_refused(void)
{
    uint32_t pool = make_pool(16), second = make_pool(16);
    tlm_object x = make(8);
    tlm_failure failure;
    CHECK(put(pool, A, x) && put_item(pool, A, 7) && about(x).flags == TLM_FLAG_POOLED);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_pool_put(pool, A, x, FLOATING, NULL) == TLM_ALREADY_POOLED);
    CHECK(tlm_pool_put(second, B, x, pool_holder(pool), NULL) == TLM_ALREADY_POOLED);
    tlm_failure_last(&failure);
    CHECK(failure.status == TLM_ALREADY_POOLED && failure.object == x && failure.holder == pool_holder(pool));
    CHECK(tlm_pool_put_item(pool, A, 7, NULL) == TLM_ALREADY_POOLED);
    CHECK(tlm_pool_put_item(pool, B, 7, NULL) == TLM_ALREADY_POOLED); /* under another key, too */
    trace_end();
    TRACE({TLM_KIND_MISUSE, x, FLOATING, TLM_MISUSE_DOUBLE_POOL},
          {TLM_KIND_MISUSE, x, pool_holder(pool), TLM_MISUSE_DOUBLE_POOL},
          {TLM_KIND_MISUSE, 7, pool_holder(pool), TLM_MISUSE_DOUBLE_POOL},
          {TLM_KIND_MISUSE, 7, pool_holder(pool), TLM_MISUSE_DOUBLE_POOL});
    CHECK(stats(pool).size == 2 && stats(pool).puts == 2 && stats(second).size == 0);
    CHECK(put_item(second, A, 7) && put_item(pool, A, x)); /* another pool's, and a number that looks like a handle */
    CHECK(get(pool, A) == x && get(pool, A) == 7 && get(pool, A) == x && get(pool, A) == 0);
    CHECK(tlm_release(x, FLOATING) == TLM_OK && prune(second, 0) == 1 && tlm_pool_destroy(second) == TLM_OK);
    finish(pool);
}

static void check_refusals_change_nothing(void)
{
    uint32_t pool = make_pool(16);
    int dropped = 42;
    tlm_object x = make(8), gone = make(8);
    CHECK(tlm_move(x, FLOATING, ME) == TLM_OK && tlm_acquire(x, OTHER) == TLM_OK);
    CHECK(tlm_release(gone, FLOATING) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_pool_put(pool, A, x, ME, &dropped) == TLM_STILL_HELD && dropped == 0);
    CHECK(tlm_pool_put(pool, A, x, FLOATING, NULL) == TLM_NOT_A_HOLDER);
    CHECK(tlm_pool_put(pool, A, x, TLM_HOLDER(TLM_HOLDER_SCOPE, 1), NULL) == TLM_NOT_A_HOLDER);
    CHECK(tlm_pool_put(pool, A, gone, FLOATING, NULL) == TLM_FREED);
    trace_end();
    TRACE({TLM_KIND_MISUSE, x, ME, TLM_MISUSE_POOLED_WHILE_HELD},
          {TLM_KIND_MISUSE, x, FLOATING, TLM_MISUSE_OVER_RELEASE},
          {TLM_KIND_MISUSE, x, TLM_HOLDER(TLM_HOLDER_SCOPE, 1), TLM_MISUSE_OVER_RELEASE},
          {TLM_KIND_MISUSE, gone, FLOATING, TLM_MISUSE_USE_AFTER_FREE});
    CHECK(stats(pool).size == 0 && stats(pool).puts == 0 && about(x).count == 2 && about(x).flags == 0);
    tlm_holder held[2];
    CHECK(tlm_acquire(x, ME) == TLM_OK && tlm_release(x, ME) == TLM_OK && tlm_release(x, ME) == TLM_OK);
    CHECK(tlm_object_holders(x, held, 2) == 1 && held[0] == OTHER); /* not in the first of its places */
    CHECK(tlm_pool_put(pool, A, x, 0, NULL) == TLM_NOT_A_HOLDER &&
          tlm_pool_put(pool, A, x, ME, NULL) == TLM_NOT_A_HOLDER);
    CHECK(about(x).flags == 0 && tlm_pool_put(pool, A, x, OTHER, NULL) == TLM_OK && get(pool, A) == x);
    CHECK(tlm_pool_put(pool, A, x, FLOATING, NULL) == TLM_OK);
    CHECK(tlm_release(x, ME) == TLM_NOT_A_HOLDER && about(x).count == 1); /* it is the pool's now */
    finish(pool);
}

static void check_the_null_object(void)
{
    uint32_t pool = make_pool(1);
    int dropped = 42;
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_pool_put(pool, A, 0, ME, &dropped) == TLM_OK && dropped == 0 && put_item(pool, A, 0));
    trace_end();
    TRACE_NOTHING();
    CHECK(stats(pool).size == 0 && stats(pool).puts == 0);
    finish(pool);
}

/* The pool takes what a scope holds out of the scope, so that the scope's exit leaves it alone. */
static void check_an_object_of_a_scope(void)
{
    uint32_t pool = make_pool(1);
    uint64_t id;
    CHECK(tlm_scope_enter(0, &id) == TLM_OK);
    tlm_holder scope = TLM_HOLDER(TLM_HOLDER_SCOPE, id), by = pool_holder(pool);
    tlm_object x = make(8), y = make(8), z = make(8);
    CHECK(tlm_register(x) == TLM_OK && tlm_register(y) == TLM_OK && tlm_register(z) == TLM_OK);
    CHECK(tlm_acquire(z, ME) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_pool_put(pool, A, z, scope, NULL) == TLM_STILL_HELD && about(z).scope == id);
    CHECK(tlm_pool_put(pool, A, x, scope, NULL) == TLM_OK && about(x).scope == 0);
    CHECK(tlm_pool_put(pool, A, y, scope, NULL) == TLM_OK && tlm_check(y) == TLM_FREED); /* dropped */
    trace_end();
    TRACE({TLM_KIND_MISUSE, z, scope, TLM_MISUSE_POOLED_WHILE_HELD}, {TLM_KIND_UNREGISTER, x, scope, 1},
          {TLM_KIND_REGISTER, x, by, 1}, {TLM_KIND_POOL_PUT, x, by, 1}, {TLM_KIND_POOL_DROP, y, by, 1},
          {TLM_KIND_RELEASE, y, scope, 0}, {TLM_KIND_FREE, y, 0, 0},
          {TLM_KIND_MISUSE, y, 0, TLM_MISUSE_USE_AFTER_FREE});
    tlm_scope_statistics left;
    CHECK(tlm_scope_exit(id, &left) == TLM_OK);
    CHECK(left.allocations == 3 && left.escaped == 1 && left.frees == 1 && left.leaked == 1);
    CHECK(tlm_check(x) == TLM_OK && get(pool, A) == x && tlm_release(x, FLOATING) == TLM_OK);
    CHECK(tlm_release(z, ME) == TLM_OK);
    finish(pool);
}

/* Freed, acquired or moved away by somebody who kept the handle: never handed out. */
static void check_what_is_done_behind_its_back(void)
{
    uint32_t pool = make_pool(16);
    tlm_holder by = pool_holder(pool);
    tlm_object good = make(8), freed = make(8), shared = make(8), moved = make(8);
    CHECK(put(pool, A, good) && put(pool, A, freed) && put(pool, A, shared) && put(pool, A, moved));
    CHECK(tlm_free(freed) == TLM_OK && tlm_acquire(shared, OTHER) == TLM_OK && tlm_move(moved, by, OTHER) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    CHECK(get(pool, A) == good);
    trace_end();
    TRACE({TLM_KIND_MISUSE, moved, by, TLM_MISUSE_POOLED_WHILE_HELD},
          {TLM_KIND_MISUSE, shared, by, TLM_MISUSE_POOLED_WHILE_HELD}, {TLM_KIND_RELEASE, shared, by, 1},
          {TLM_KIND_MISUSE, freed, by, TLM_MISUSE_STALE_RECORD}, {TLM_KIND_UNREGISTER, good, by, 1},
          {TLM_KIND_POOL_HIT, good, by, 1});
    CHECK(stats(pool).hits == 1 && stats(pool).misses == 0 && stats(pool).size == 0);
    CHECK(about(moved).flags == 0 && about(shared).flags == 0 && about(moved).count == 1 && about(shared).count == 1);
    CHECK(tlm_pool_put(pool, A, moved, OTHER, NULL) == TLM_OK && tlm_pool_put(pool, A, shared, OTHER, NULL) == TLM_OK);
    CHECK(tlm_free(moved) == TLM_OK && tlm_free(shared) == TLM_OK && get(pool, A) == 0);
    CHECK(stats(pool).hits == 1 && stats(pool).misses == 1 && tlm_release(good, FLOATING) == TLM_OK);
    finish(pool);
}

/* S46, S47: from the most recent end, keys in the order of their first put. */
static void check_prune(void)
{
    uint32_t pool = make_pool(16);
    uint64_t items[8] = {0}, removed = 42;
    tlm_label keys[8] = {0};
    tlm_object a1 = make(8), b1 = make(8), a3 = make(8);
    CHECK(put(pool, B, b1) && put(pool, A, a1) && put_item(pool, A, 12) && put(pool, A, a3) && put_item(pool, B, 22));
    uint64_t sizes[2];
    CHECK(tlm_pool_keys(pool, keys, sizes, 2) == 2 && keys[0] == B && keys[1] == A && sizes[0] == 2 && sizes[1] == 3);
    CHECK(tlm_pool_keys(pool, keys, NULL, 1) == 2 && tlm_pool_key_size(pool, A) == 3 &&
          tlm_pool_key_size(pool, C) == 0);
    CHECK(tlm_pool_prune(pool, 7, items, keys, 8, &removed) == TLM_OK && removed == 0 && stats(pool).size == 5);
    CHECK(tlm_pool_prune(pool, 1, items, keys, 2, &removed) == TLM_OK && removed == 2 && stats(pool).size == 3);
    CHECK(items[0] == 22 && keys[0] == B && items[1] == b1 && keys[1] == B && tlm_check(b1) == TLM_FREED);
    CHECK(tlm_pool_prune(pool, 1, items, keys, 2, &removed) == TLM_OK && removed == 2 && stats(pool).size == 1);
    CHECK(items[0] == a3 && items[1] == 12 && keys[1] == A && tlm_check(a3) == TLM_FREED && tlm_check(a1) == TLM_OK);
    CHECK(tlm_pool_prune(pool, 1, items, keys, 2, &removed) == TLM_OK && removed == 0);
    CHECK(tlm_pool_keys(pool, keys, NULL, 8) == 1 && keys[0] == A && stats(pool).puts == 5);
    finish(pool);
}

static void check_clear_and_remove(void)
{
    uint32_t pool = make_pool(200);
    uint64_t items[128], removed = 42;
    tlm_object kept = make(8), x = make(8), y = make(8);
    CHECK(put(pool, B, kept) && put(pool, A, x) && put(pool, A, y) && put_item(pool, A, 5));
    CHECK(tlm_pool_remove(pool, A, 6) == 0 && tlm_pool_remove(pool, B, x) == 0 && tlm_pool_remove(pool, C, x) == 0);
    CHECK(tlm_pool_remove(pool, A, x) == 1 && tlm_pool_remove(pool, A, x) == 0 && stats(pool).size == 3);
    CHECK(tlm_release(x, FLOATING) == TLM_OK && tlm_pool_remove(pool, A, 5) == 1 && get(pool, A) == y);
    CHECK(put(pool, A, y));
    for (uint64_t i = 1; i <= 150; i++)
        CHECK(put_item(pool, A, i));
    CHECK(tlm_pool_clear_key(pool, C, items, 128, &removed) == TLM_OK && removed == 0);
    CHECK(tlm_pool_clear_key(pool, A, items, 128, &removed) == TLM_OK && removed == 128 && items[0] == 150);
    CHECK(tlm_pool_clear_key(pool, A, items, 128, &removed) == TLM_OK && removed == 23 && items[22] == y);
    CHECK(tlm_pool_clear_key(pool, A, items, 128, &removed) == TLM_OK && removed == 0 && tlm_check(y) == TLM_FREED);
    CHECK(tlm_pool_key_size(pool, A) == 0 && tlm_pool_keys(pool, NULL, NULL, 0) == 1 && stats(pool).puts == 155);
    CHECK(get(pool, B) == kept && tlm_release(kept, FLOATING) == TLM_OK);
    for (int i = 0; i < 200; i++)
        CHECK(put(pool, A, make(8)));
    CHECK(prune(pool, 3) == 197); /* more than fit one batch */
    finish(pool);
}

static void check_pools_themselves(void)
{
    uint32_t pool = make_pool(1), out = 42;
    uint64_t item = 42, removed = 42;
    tlm_pool_statistics empty;
    tlm_object x = make(8);
    CHECK(tlm_pool_create(0, 0, &out) == TLM_BAD_ARGUMENT && out == 42);
    CHECK(put(pool, A, x) && put_item(pool, B, 3) && tlm_pool_destroy(pool) == TLM_STILL_HELD && stats(pool).size == 2);
    CHECK(get(pool, A) == x && tlm_pool_destroy(pool) == TLM_OK); /* numbers of the caller's are no reason to stay */
    uint32_t gone[] = {pool, 0, 1u << 23, UINT32_MAX};
    for (int i = 0; i < 4; i++) {
        CHECK(tlm_pool_destroy(gone[i]) == TLM_BAD_ARGUMENT && tlm_pool_acquire(gone[i], A, &item) == TLM_BAD_ARGUMENT);
        CHECK(tlm_pool_put(gone[i], A, x, FLOATING, NULL) == TLM_BAD_ARGUMENT && about(x).count == 1 &&
              !about(x).flags);
        CHECK(tlm_pool_put_item(gone[i], A, 3, NULL) == TLM_BAD_ARGUMENT && tlm_pool_remove(gone[i], A, 3) == 0);
        CHECK(tlm_pool_prune(gone[i], 0, NULL, NULL, 0, &removed) == TLM_BAD_ARGUMENT && removed == 42 && item == 42);
        CHECK(tlm_pool_clear_key(gone[i], A, NULL, 0, &removed) == TLM_BAD_ARGUMENT && removed == 42);
        CHECK(tlm_pool_stats(gone[i], &empty) == TLM_BAD_ARGUMENT && tlm_pool_key_size(gone[i], A) == 0);
        CHECK(tlm_pool_reset_counters(gone[i]) == TLM_BAD_ARGUMENT && tlm_pool_keys(gone[i], NULL, NULL, 0) == 0);
    }
    uint64_t bytes = 0;
    for (int i = 0; i < 10000; i++) {
        uint32_t next = make_pool(1);
        CHECK(next > pool && put_item(next, A, 1) && stats(next).puts == 1);
        pool = next;
        CHECK(tlm_pool_destroy(pool) == TLM_OK);
        if (i == 100)
            bytes = tlmi_own_current_bytes();
    }
    CHECK(tlmi_own_current_bytes() <= bytes + 3 * 65536); /* eight bytes for each number */
    pool = make_pool(1);
    CHECK(put(pool, A, x));
    finish(pool);
}

/* B13: keys that never come twice do not make the pool grow, whether items are taken or not. */
static void check_the_pool_stays_small(void)
{
    uint32_t pool = make_pool(1);
    uint64_t bytes = 0;
    for (uint32_t i = 1; i <= 50000; i++) {
        CHECK(put_item(pool, i, i) && get(pool, i) == i);
        if (i == 1000)
            bytes = tlmi_own_current_bytes();
    }
    CHECK(tlmi_own_current_bytes() == bytes && stats(pool).hits == 50000 && stats(pool).size == 0);
    for (uint32_t i = 1; i <= 2000; i++)
        CHECK(put_item(pool, i, i)); /* and all of them are found when they stay */
    for (uint32_t i = 1; i <= 2000; i++)
        CHECK(tlm_pool_key_size(pool, i) == 1 && get(pool, i) == i);
    finish(pool);
}

/* A key keeps its place while its item is out; pruning forgets keys without items. */
static void check_the_order_of_keys(void)
{
    uint32_t pool = make_pool(2);
    tlm_label keys[3];
    CHECK(put_item(pool, C, 1) && put_item(pool, A, 2) && put_item(pool, B, 3) && get(pool, C) == 1);
    CHECK(tlm_pool_keys(pool, keys, NULL, 3) == 2 && keys[0] == A && keys[1] == B);
    CHECK(put_item(pool, C, 4) && tlm_pool_keys(pool, keys, NULL, 3) == 3 && keys[0] == C && keys[2] == B);
    CHECK(prune(pool, 0) == 3 && put_item(pool, B, 3) && put_item(pool, C, 1) && put_item(pool, A, 2));
    CHECK(tlm_pool_keys(pool, keys, NULL, 3) == 3 && keys[0] == B && keys[1] == C && keys[2] == A);
    finish(pool);
}

int main(void)
{
    check_put_and_acquire();
    check_the_trace();
    check_a_full_key();
    check_double_pooling_is_refused();
    check_refusals_change_nothing();
    check_the_null_object();
    check_an_object_of_a_scope();
    check_what_is_done_behind_its_back();
    check_prune();
    check_clear_and_remove();
    check_pools_themselves();
    check_the_pool_stays_small();
    check_the_order_of_keys();
    trace_forget();
    return 0;
}
