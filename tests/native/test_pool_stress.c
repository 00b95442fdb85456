/* SPDX-License-Identifier: MIT
 * test_pool_stress.c: pools without memory, against a model, under eight threads, in recordings, and their benchmarks.
 *
 * tlm-test: sources=core */
#include <sched.h>
#include <string.h>

#include "pooling.h"

STAND_IN_FOR_SAMPLER

enum { THREADS = 8, ROUNDS = 20000, KEYS = 5, MODEL_ROUNDS = 20000 };

/* With `left` small blocks of each size and the n-th request for pages failing. */
static bool put_starved(uint32_t left, uint64_t n)
{
    uint32_t pool = make_pool(16);
    tlm_object x = make(8);
    int dropped = 42;
    CHECK(tlm_move(x, FLOATING, ME) == TLM_OK);
    starve(left);
    tlm_own_fail_after(n);
    trace_begin(TRACE_OBJECTS);
    tlm_status status = tlm_pool_put(pool, A, x, ME, &dropped);
    trace_end();
    feed();
    if (status != TLM_OK) {
        CHECK(status == TLM_NO_MEMORY && dropped == 0 && about(x).count == 1 && about(x).flags == 0);
        CHECK(stats(pool).size == 0 && stats(pool).puts == 0 && tlm_pool_keys(pool, NULL, NULL, 0) == 0);
        TRACE_NOTHING();
        starve(left);
        tlm_own_fail_after(n);
        CHECK(tlm_pool_put_item(pool, A, 7, NULL) == TLM_NO_MEMORY || left || n > 1);
        feed();
        CHECK(tlm_pool_put(pool, A, x, ME, NULL) == TLM_OK);
    }
    CHECK(get(pool, A) == x && tlm_release(x, FLOATING) == TLM_OK);
    finish(pool);
    return status == TLM_OK;
}

static void check_without_memory_nothing_changes(void)
{
    int failed = 0;
    uint32_t pool = 42;
    for (uint32_t left = 0; left < 4; left++)
        for (uint64_t n = 1; n < 5; n++)
            failed += !put_starved(left, n);
    CHECK(failed == 3); /* rows, index, items */
    uint32_t used[300];
    starve(0);
    tlm_own_fail_after(1);
    for (uint32_t i = 0; i < 300; i++) { /* until no destroyed pool is left to serve again */
        tlm_status status = tlm_pool_create(0, 1, &pool);
        if (status != TLM_OK) {
            CHECK(status == TLM_NO_MEMORY && pool == (i ? used[i - 1] : 42));
            used[i] = 0;
            break;
        }
        CHECK(i < 299);
        used[i] = pool;
    }
    feed();
    for (uint32_t i = 0; used[i]; i++)
        CHECK(tlm_pool_destroy(used[i]) == TLM_OK);
}

/* Everything at random against arrays that do the same. */
typedef struct {
    uint64_t items[KEYS][4];
    uint32_t used[KEYS];
    tlm_pool_statistics stats;
} model;

static void step(uint32_t pool, model *m, uint64_t random)
{
    uint32_t key = (uint32_t)(random >> 8) % KEYS, *used = &m->used[key];
    uint64_t *items = m->items[key], item = 0;
    switch (random % 8) {
    case 0:
    case 1:
    case 2:
        item = make(8);
        if (random >> 40 & 1) {
            CHECK(put(pool, key + 1, item) == (*used < 4));
        } else {
            CHECK(tlm_release(item, FLOATING) == TLM_OK && put_item(pool, key + 1, item) == (*used < 4));
        }
        *(*used < 4 ? &m->stats.puts : &m->stats.drops) += 1;
        m->stats.size += *used < 4;
        if (*used < 4)
            items[(*used)++] = item;
        break;
    case 3:
        if (*used && random >> 44 & 1) {
            uint32_t place = (uint32_t)(random >> 20) % *used;
            item = items[place];
            CHECK(tlm_pool_remove(pool, key + 1, item) == 1);
            memmove(&items[place], &items[place + 1], (*used - place - 1) * sizeof *items);
            m->stats.size--;
            --*used;
            break;
        }
        /* fall through */
    default:
        CHECK((item = get(pool, key + 1)) == (*used ? items[*used - 1] : 0));
        *(*used ? &m->stats.hits : &m->stats.misses) += 1;
        m->stats.size -= *used > 0;
        *used -= *used > 0;
    }
    tlm_object_info info;
    if (random % 8 > 2 && item && tlm_object_describe(item, &info) == TLM_OK && info.alive)
        CHECK(tlm_release(item, FLOATING) == TLM_OK);
}

static void check_against_a_model(void)
{
    uint32_t pool = make_pool(4);
    model m = {0};
    uint64_t random = 5;
    for (int i = 0; i < MODEL_ROUNDS; i++) {
        step(pool, &m, next_random(&random));
        tlm_pool_statistics out = stats(pool);
        CHECK(memcmp(&out, &m.stats, sizeof out) == 0);
        for (uint32_t key = 0; key < KEYS; key++)
            CHECK(tlm_pool_key_size(pool, key + 1) == m.used[key]);
    }
    finish(pool);
}

/* Threads share one pool: an object is one thread's at a time, and the counters are exact at the end. */
static uint32_t common;
static _Atomic uint64_t all_hits, all_misses, all_puts, all_drops;

static void *work(void *argument)
{
    uint64_t random = 99 + (uint64_t)(uintptr_t)argument, got, own_hits = 0, own_misses = 0, own_puts = 0,
             own_drops = 0;
    for (int i = 0; i < ROUNDS; i++) {
        tlm_label key = 1 + (uint32_t)(next_random(&random) % 3);
        CHECK(tlm_pool_acquire(common, key, &got) == TLM_OK);
        *(got ? &own_hits : &own_misses) += 1;
        tlm_object object = got ? got : make(8);
        uint64_t *payload = tlm_payload(object), mark = random;
        *payload = mark;
        CHECK(about(object).count == 1);
        if (random >> 40 & 1)
            sched_yield();
        CHECK(*payload == mark);
        int dropped;
        CHECK(tlm_pool_put(common, key, object, FLOATING, &dropped) == TLM_OK);
        *(dropped ? &own_drops : &own_puts) += 1;
    }
    all_hits += own_hits;
    all_misses += own_misses;
    all_puts += own_puts;
    all_drops += own_drops;
    return NULL;
}

static void check_threads(void)
{
    pthread_t threads[THREADS];
    common = make_pool(3);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    tlm_pool_statistics out = stats(common);
    CHECK(out.hits == all_hits && out.misses == all_misses && out.puts == all_puts && out.drops == all_drops);
    CHECK(out.hits + out.misses == (uint64_t)THREADS * ROUNDS && out.puts + out.drops == (uint64_t)THREADS * ROUNDS);
    CHECK(out.size == out.puts - out.hits && out.size <= 9 && tlm_objects_alive(NULL, 0) == out.size);
    finish(common);
}

/* Pools come and go under threads that know an old number. */
static void *use_old_numbers(void *unused)
{
    uint64_t item;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t number = __atomic_load_n(&common, __ATOMIC_RELAXED);
        if (tlm_pool_put_item(number, A, (uint64_t)i + 1, NULL) == TLM_BAD_ARGUMENT)
            continue;
        tlm_pool_acquire(number, A, &item);
    }
    return unused;
}

static void check_late_callers(void)
{
    pthread_t threads[3];
    common = make_pool(4);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, use_old_numbers, NULL) == 0);
    for (int i = 0; i < 300; i++) {
        uint32_t old = common, fresh = make_pool(4);
        __atomic_store_n(&common, fresh, __ATOMIC_RELAXED);
        CHECK(tlm_pool_destroy(old) == TLM_OK);
    }
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    finish(common);
}

/* Whether a text stands in a file. */
static bool file_has(const char *path, const char *text)
{
    static char data[4 << 20];
    FILE *file = fopen(path, "rb");
    CHECK(file);
    size_t bytes = fread(data, 1, sizeof data, file), length = strlen(text);
    fclose(file);
    for (size_t at = 0; at + length <= bytes; at++)
        if (memcmp(data + at, text, length) == 0)
            return true;
    return false;
}

/* Events say its number, and a note of the recording what it is called: in the first one as in the second. */
static void check_a_recording_knows_the_name(void)
{
    char path[256], note[64];
    uint32_t pool, unused;
    CHECK(tlm_pool_create(tlm_label_of("activations"), 1, &pool) == TLM_OK);
    CHECK(tlm_pool_create(tlm_label_of("never touched"), 1, &unused) == TLM_OK);
    snprintf(note, sizeof note, "pool.%uactivations", pool);
    tlm_recording_options options = {
        .path = temporary_path(path, sizeof path, "pool"), .overwrite = 1, .stack_depth = 8, .compact = 1};
    for (int i = 0; i < 2; i++) {
        CHECK(tlm_recording_start(&options) == TLM_OK);
        CHECK(put_item(pool, A, 1) && get(pool, A) == 1 && get(pool, A) == 0);
        CHECK(tlm_recording_stop(0) == TLM_OK);
        CHECK(file_has(path, note) && !file_has(path, "never touched") && remove(path) == 0);
    }
    CHECK(tlm_pool_destroy(unused) == TLM_OK);
    finish(pool);
}

static void check_benches(void)
{
    for (int what = 0; what <= 14; what++)
        CHECK(tlm_bench_runtime(what, 300, 50) > 0);
    CHECK(tlm_bench_runtime(-1, 1, 1) == 0 && tlm_bench_runtime(15, 1, 1) == 0 && tlm_bench_runtime(14, 1, 65) == 0 &&
          tlm_bench_sizes(5) == 0);
    CHECK(tlm_bench_sizes(0) == sizeof(tlmi_scope) && tlm_bench_sizes(1) == 128 && tlm_bench_sizes(2) == 8);
    CHECK(tlm_bench_sizes(3) > 0 && tlm_bench_sizes(3) <= 100 && tlm_bench_sizes(4) == sizeof(tlm_context));
    CHECK(tlm_scope_depth() == 0 && tlm_objects_alive(NULL, 0) == 0);
}

static void *check_all(void *unused)
{
    check_a_recording_knows_the_name();
    check_without_memory_nothing_changes();
    check_against_a_model();
    check_threads();
    check_late_callers();
    check_benches();
    trace_forget();
    return unused;
}

/* In a thread of its own, which gives its arena back when it ends. */
int main(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, check_all, NULL) == 0 && pthread_join(thread, NULL) == 0);
    return 0;
}
