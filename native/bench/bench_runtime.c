/* SPDX-License-Identifier: MIT
 * bench_runtime.c: loops that measure what the runtime's operations cost, and what its bookkeeping takes.
 */
#include <stdlib.h>

#include "memory/memory.h"

enum { PER_SCOPE = 100, POOL_KEY = 1, PAGE_BYTES = 4096, MOST_THREADS = 64 };
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

/* `PER_SCOPE` objects, each held by the holder; false: not all could be had. */
static bool make_held(tlm_object *objects, tlm_holder holder, uint64_t bytes)
{
    bool good = true;
    for (int i = 0; i < PER_SCOPE && good; i++)
        good = tlm_object_alloc(TLM_DEVICE_CPU, bytes, &objects[i]) == TLM_OK &&
               tlm_move(objects[i], floating, holder) == TLM_OK;
    return good;
}

static void free_held(const tlm_object *objects)
{
    for (int i = 0; i < PER_SCOPE; i++)
        tlm_free(objects[i]);
}

/* Objects that others hold as well: what is measured is the record and the count, not the allocation. */
static uint64_t run_registered(uint64_t count, bool with_exit)
{
    tlm_object objects[PER_SCOPE] = {0};
    bool good = make_held(objects, TLM_HOLDER(TLM_HOLDER_HANDLE, tlm_holder_number(1)), 0);
    uint64_t taken = 0, id;
    for (uint64_t i = 0; i < count && good; i += PER_SCOPE) {
        uint64_t begin = tlmi_clock_ns();
        good = tlm_scope_enter(0, &id) == TLM_OK;
        uint64_t entered = with_exit ? begin : tlmi_clock_ns();
        for (uint64_t j = 0; j < PER_SCOPE && i + j < count && good; j++)
            good = tlm_register(objects[j]) == TLM_OK;
        uint64_t registered = tlmi_clock_ns();
        good = tlm_scope_exit(id, NULL) == TLM_OK && good;
        taken += (with_exit ? tlmi_clock_ns() : registered) - entered;
    }
    free_held(objects);
    return good ? taken : 0;
}

static uint64_t bench_registered(uint64_t count, uint64_t bytes)
{
    (void)bytes;
    return run_registered(count, true);
}

static uint64_t bench_register(uint64_t count, uint64_t bytes)
{
    (void)bytes;
    return run_registered(count, false);
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

/* One store for each page, as whoever asks for memory does sooner or later. */
static inline void touch(volatile uint8_t *memory, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
        memory[at] = 1;
}

static uint64_t run_object(uint64_t count, uint64_t bytes, bool touched)
{
    uint64_t begin = tlmi_clock_ns();
    for (uint64_t i = 0; i < count; i++) {
        tlm_object object;
        if (tlm_object_alloc(TLM_DEVICE_CPU, bytes, &object) != TLM_OK)
            return 0;
        if (touched)
            touch(tlm_payload(object), bytes);
        tlm_release(object, floating);
    }
    return tlmi_clock_ns() - begin;
}

static uint64_t bench_object(uint64_t count, uint64_t bytes)
{
    return run_object(count, bytes, false);
}

static uint64_t bench_object_touched(uint64_t count, uint64_t bytes)
{
    return run_object(count, bytes, true);
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

/* A pool that is filled and emptied by turns; the time of one of the two. */
static uint64_t run_filled_pool(uint64_t count, uint64_t bytes, bool of_hits)
{
    uint32_t pool;
    tlm_holder holder = TLM_HOLDER(TLM_HOLDER_HANDLE, tlm_holder_number(1));
    tlm_object objects[PER_SCOPE] = {0};
    uint64_t taken[2] = {0};
    if (tlm_pool_create(0, PER_SCOPE, &pool) != TLM_OK)
        return 0;
    bool good = make_held(objects, holder, bytes);
    for (uint64_t i = 0; i < count && good; i += PER_SCOPE) {
        uint64_t begin = tlmi_clock_ns();
        for (int j = 0; j < PER_SCOPE && good; j++)
            good = tlm_pool_put(pool, POOL_KEY, objects[j], i ? floating : holder, NULL) == TLM_OK;
        uint64_t full = tlmi_clock_ns();
        for (int j = 0; j < PER_SCOPE && good; j++)
            good = tlm_pool_acquire(pool, POOL_KEY, &objects[j]) == TLM_OK && objects[j] != 0;
        taken[0] += full - begin;
        taken[1] += tlmi_clock_ns() - full;
    }
    if (good)
        free_held(objects);
    tlm_pool_prune(pool, 0, NULL, NULL, 0, NULL);
    tlm_pool_destroy(pool);
    return good ? taken[of_hits] : 0;
}

static uint64_t bench_pool_only_put(uint64_t count, uint64_t bytes)
{
    return run_filled_pool(count, bytes, false);
}

static uint64_t bench_pool_only_hit(uint64_t count, uint64_t bytes)
{
    return run_filled_pool(count, bytes, true);
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

static uint64_t run_malloc(uint64_t count, uint64_t bytes, bool touched)
{
    uint64_t begin = tlmi_clock_ns();
    for (uint64_t i = 0; i < count; i++) {
        void *block = malloc(bytes); /* tlm-lint: ok, what ours is compared with */
        if (touched && block)
            touch(block, bytes);
        __asm__ volatile("" : : "r"(block) : "memory"); /* keeps the compiler from leaving the pair out */
        free(block);                                    /* tlm-lint: ok */
    }
    return tlmi_clock_ns() - begin;
}

static uint64_t bench_malloc(uint64_t count, uint64_t bytes)
{
    return run_malloc(count, bytes, false);
}

static uint64_t bench_malloc_touched(uint64_t count, uint64_t bytes)
{
    return run_malloc(count, bytes, true);
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

/* ---- one pool, several threads ---- */

typedef struct {
    uint64_t count;
    uint32_t pool;
    bool good;
} sharing;

static void *share_pool(void *context)
{
    sharing *self = context;
    tlm_object object = 0;
    self->good = tlm_object_alloc(TLM_DEVICE_CPU, 0, &object) == TLM_OK;
    for (uint64_t i = 0; i < self->count && self->good; i++)
        self->good = tlm_pool_put(self->pool, POOL_KEY, object, floating, NULL) == TLM_OK &&
                     tlm_pool_acquire(self->pool, POOL_KEY, &object) == TLM_OK && object != 0;
    tlm_free(object);
    return NULL;
}

/* `threads` of them, each with `count` rounds; the start of the threads is in it. */
static uint64_t bench_shared_pool(uint64_t count, uint64_t threads)
{
    pthread_t started[MOST_THREADS];
    sharing states[MOST_THREADS];
    uint32_t pool;
    uint64_t running = 0;
    if (threads == 0 || threads > MOST_THREADS || tlm_pool_create(0, MOST_THREADS, &pool) != TLM_OK)
        return 0;
    uint64_t begin = tlmi_clock_ns();
    for (bool good = true; good && running < threads; running += good) {
        states[running] = (sharing){.count = count, .pool = pool};
        good = pthread_create(&started[running], NULL, share_pool, &states[running]) == 0;
    }
    bool good = running == threads;
    for (uint64_t i = 0; i < running; i++) {
        pthread_join(started[i], NULL);
        good = good && states[i].good;
    }
    uint64_t taken = tlmi_clock_ns() - begin;
    tlm_pool_prune(pool, 0, NULL, NULL, 0, NULL);
    tlm_pool_destroy(pool);
    return good ? taken : 0;
}

uint64_t tlm_bench_runtime(int what, uint64_t count, uint64_t bytes)
{
    static bench *const benches[] = {
        bench_scope,          bench_registered,     bench_counts,        bench_object,        bench_pool_hit,
        bench_pool_miss,      bench_arena,          bench_malloc,        bench_frame,         bench_register,
        bench_object_touched, bench_malloc_touched, bench_pool_only_put, bench_pool_only_hit, bench_shared_pool,
    };
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
        return sizeof(tlm_context);
    default:
        return 0;
    }
}
