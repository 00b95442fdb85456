/* SPDX-License-Identifier: MIT
 * bench_runtime.c: loops that measure what the runtime's operations cost, and what its bookkeeping takes.
 */
#include <stdlib.h>

#include "runtime.h"

enum { PER_SCOPE = 100, POOL_KEY = 1 };
static const tlm_holder floating = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);

/* Each does `count` rounds and returns the nanoseconds; 0: something it needs could not be had. */
typedef uint64_t bench(uint64_t count, uint64_t bytes);

static uint64_t bench_scope(uint64_t count, uint64_t bytes)
{
    (void)bytes;
    uint64_t begin = tlmi_clock_ns(), id;
    for (uint64_t i = 0; i < count; i++)
        if (tlm_scope_enter(0, &id) != TLM_OK || tlm_scope_exit(id, NULL) != TLM_OK)
            return 0;
    return tlmi_clock_ns() - begin;
}

/* Objects that others hold as well: what is measured is the record, the count and the release, not the allocation. */
static uint64_t bench_registered(uint64_t count, uint64_t bytes)
{
    (void)bytes;
    tlm_object objects[PER_SCOPE] = {0};
    tlm_holder holder = TLM_HOLDER(TLM_HOLDER_HANDLE, tlm_holder_number(1));
    uint64_t id;
    bool good = true;
    for (int i = 0; i < PER_SCOPE && good; i++)
        good = tlm_object_alloc(TLM_DEVICE_CPU, 0, &objects[i]) == TLM_OK &&
               tlm_move(objects[i], floating, holder) == TLM_OK;
    uint64_t begin = tlmi_clock_ns();
    for (uint64_t i = 0; i < count && good; i += PER_SCOPE) {
        good = tlm_scope_enter(0, &id) == TLM_OK;
        for (uint64_t j = 0; j < PER_SCOPE && i + j < count && good; j++)
            good = tlm_register(objects[j]) == TLM_OK;
        good = tlm_scope_exit(id, NULL) == TLM_OK && good;
    }
    uint64_t taken = tlmi_clock_ns() - begin;
    for (int i = 0; i < PER_SCOPE; i++)
        tlm_free(objects[i]);
    return good ? taken : 0;
}

static uint64_t bench_counts(uint64_t count, uint64_t bytes)
{
    tlm_object object;
    tlm_holder holder = TLM_HOLDER(TLM_HOLDER_HANDLE, tlm_holder_number(1));
    if (tlm_object_alloc(TLM_DEVICE_CPU, bytes, &object) != TLM_OK)
        return 0;
    uint64_t begin = tlmi_clock_ns();
    for (uint64_t i = 0; i < count; i++) {
        tlm_acquire(object, holder);
        tlm_release(object, holder);
    }
    uint64_t taken = tlmi_clock_ns() - begin;
    tlm_free(object);
    return taken;
}

static uint64_t bench_object(uint64_t count, uint64_t bytes)
{
    uint64_t begin = tlmi_clock_ns();
    for (uint64_t i = 0; i < count; i++) {
        tlm_object object;
        if (tlm_object_alloc(TLM_DEVICE_CPU, bytes, &object) != TLM_OK)
            return 0;
        tlm_release(object, floating);
    }
    return tlmi_clock_ns() - begin;
}

static uint64_t bench_pool_hit(uint64_t count, uint64_t bytes)
{
    uint32_t pool;
    tlm_object object;
    if (tlm_pool_create(0, 1, &pool) != TLM_OK)
        return 0;
    bool good = tlm_object_alloc(TLM_DEVICE_CPU, bytes, &object) == TLM_OK;
    uint64_t begin = tlmi_clock_ns();
    for (uint64_t i = 0; i < count && good; i++)
        good = tlm_pool_put(pool, POOL_KEY, object, floating, NULL) == TLM_OK &&
               tlm_pool_acquire(pool, POOL_KEY, &object) == TLM_OK && object != 0;
    uint64_t taken = tlmi_clock_ns() - begin;
    if (good)
        tlm_free(object);
    tlm_pool_destroy(pool);
    return good ? taken : 0;
}

static uint64_t bench_pool_miss(uint64_t count, uint64_t bytes)
{
    (void)bytes;
    uint32_t pool;
    uint64_t item;
    if (tlm_pool_create(0, 1, &pool) != TLM_OK)
        return 0;
    uint64_t begin = tlmi_clock_ns();
    for (uint64_t i = 0; i < count; i++)
        tlm_pool_acquire(pool, POOL_KEY, &item);
    uint64_t taken = tlmi_clock_ns() - begin;
    tlm_pool_destroy(pool);
    return taken;
}

/* The scope's end is in it, where the object is freed. */
static uint64_t bench_arena(uint64_t count, uint64_t bytes)
{
    bool good = true;
    uint64_t begin = tlmi_clock_ns(), id;
    for (uint64_t i = 0; i < count && good; i += PER_SCOPE) {
        if (tlm_scope_enter(0, &id) != TLM_OK)
            return 0;
        for (uint64_t j = 0; j < PER_SCOPE && i + j < count && good; j++) {
            tlm_object object;
            good = tlm_arena_object(bytes, &object) == TLM_OK;
        }
        tlm_scope_exit(id, NULL);
    }
    return good ? tlmi_clock_ns() - begin : 0;
}

static uint64_t bench_malloc(uint64_t count, uint64_t bytes)
{
    uint64_t begin = tlmi_clock_ns();
    for (uint64_t i = 0; i < count; i++) {
        void *block = malloc(bytes);                    /* tlm-lint: ok, what ours is compared with */
        __asm__ volatile("" : : "r"(block) : "memory"); /* keeps the compiler from leaving the pair out */
        free(block);                                    /* tlm-lint: ok */
    }
    return tlmi_clock_ns() - begin;
}

static uint64_t bench_frame(uint64_t count, uint64_t bytes)
{
    uint64_t begin = tlmi_clock_ns(), id;
    for (uint64_t i = 0; i < count; i++) {
        tlm_object buffer;
        if (tlm_frame_enter(0, 1, &id) != TLM_OK)
            return 0;
        bool good = tlm_frame_buffer(0, bytes, &buffer) == TLM_OK;
        tlm_frame_exit(id, NULL);
        if (!good)
            return 0;
    }
    return tlmi_clock_ns() - begin;
}

uint64_t tlm_bench_runtime(int what, uint64_t count, uint64_t bytes)
{
    static bench *const benches[] = {bench_scope,     bench_registered, bench_counts, bench_object, bench_pool_hit,
                                     bench_pool_miss, bench_arena,      bench_malloc, bench_frame};
    bool known = what >= 0 && (size_t)what < sizeof benches / sizeof *benches;
    return known ? benches[what](count, bytes) : 0;
}

uint64_t tlm_bench_sizes(int what)
{
    switch (what) {
    case 0:
        return sizeof(tlmi_scope);
    case 1:
        return sizeof(tlmi_slot_of_object);
    case 2:
        return sizeof(tlm_object);
    case 3:
        return tlmi_pool_key_bytes();
    case 4:
        return sizeof(tlm_strand);
    default:
        return 0;
    }
}
