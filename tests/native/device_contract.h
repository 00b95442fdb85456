/* SPDX-License-Identifier: MIT
 * device_contract.h: what every device promises, whatever its driver: one function for each promise, for any device.
 *
 * Include it once, after trace.h, in a test with sources=core. CONTRACT(device) checks everything but preallocation, which
 * happens once in a process.
 */
#ifndef TLMEM_DEVICE_CONTRACT_H
#define TLMEM_DEVICE_CONTRACT_H

#include <string.h>

#include "memory/devices/device.h"
#include "trace.h"

enum { KB = 1024, MB = 1 << 20 };

static inline tlm_device_statistics driver_of(uint32_t device)
{
    tlm_device_statistics out;
    tlm_device_stats(device, &out);
    return out;
}

static inline tlm_buffers_statistics buffers_of(uint32_t device)
{
    tlm_buffers_statistics out;
    tlm_buffers_stats(device, &out);
    return out;
}

/* The device that has the driver: an adaptor's events and buffers are those of the device below. */
static inline uint32_t base_of(uint32_t device)
{
    return tlmi_device_number(tlmi_device_of(device));
}

static inline void *take(uint32_t device, uint64_t bytes)
{
    void *payload = NULL;
    CHECK(tlmi_buffers_alloc(device, bytes, &payload) == TLM_OK && payload != NULL);
    return payload;
}

static inline void set_policy(uint32_t device, int policy, uint64_t budget_bytes)
{
    CHECK(tlm_device_policy(device, TLM_BUFFERS_DIRECT, 0) == TLM_OK); /* what was kept goes back */
    CHECK(tlm_device_policy(device, policy, budget_bytes) == TLM_OK);
}

/* What the classes count is what the driver counts, at any moment when nobody is inside a call. */
static inline void check_books(uint32_t device)
{
    tlm_device_statistics driver = driver_of(base_of(device));
    tlm_buffers_statistics buffers = buffers_of(device);
    CHECK(driver.current_bytes == buffers.active_bytes + buffers.free_bytes);
    CHECK(driver.driver_bytes >= driver.current_bytes);
    CHECK(driver.peak_bytes >= driver.current_bytes && driver.total_bytes >= driver.peak_bytes);
}

static inline void contract_payloads_are_aligned_writable_and_apart(uint32_t device)
{
    static const uint64_t sizes[] = {1, 63, 64, 65, 255, 256, 257, 320, 321, 1000, 4096, 16385, 100000, 1 << 20};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    uint8_t *payloads[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        payloads[i] = take(device, sizes[i]);
        CHECK((uintptr_t)payloads[i] % 64 == 0);
        memset(payloads[i], (int)i + 1, sizes[i]);
    }
    check_books(device);
    for (size_t i = 0; i < SIZES; i++) {
        CHECK(payloads[i][0] == i + 1 && payloads[i][sizes[i] - 1] == i + 1);
        tlmi_buffers_free(device, payloads[i], sizes[i]);
    }
    check_books(device);
}

static inline void contract_sizes_have_ends(uint32_t device)
{
    void *payload = &payload;
    tlm_device_statistics before = driver_of(device);
    CHECK(tlmi_buffers_alloc(device, 0, &payload) == TLM_OK && payload == NULL);
    tlmi_buffers_free(device, NULL, 0);
    for (uint64_t bytes = UINT64_MAX; bytes > TLMI_MOST_BYTES; bytes /= 2) {
        payload = &payload;
        CHECK(tlmi_buffers_alloc(device, bytes, &payload) == TLM_OVERFLOW && payload == NULL);
    }
    tlm_device_statistics after = driver_of(device);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
}

static inline void contract_direct_gives_back_at_once(uint32_t device)
{
    set_policy(device, TLM_BUFFERS_DIRECT, 0);
    tlm_device_statistics before = driver_of(device);
    tlm_buffers_statistics kept = buffers_of(device);
    trace_begin(TRACE_ALL);
    tlmi_buffers_free(device, take(device, 5000), 5000);
    trace_end();
    tlm_device_statistics after = driver_of(device);
    CHECK(after.current_bytes == before.current_bytes && after.current_count == before.current_count);
    CHECK(after.total_count == before.total_count + 1 && after.total_bytes >= before.total_bytes + 5000);
    CHECK(trace_used == 2 && trace_events[0].kind == TLM_KIND_DEVICE_ALLOC);
    CHECK(trace_events[1].kind == TLM_KIND_DEVICE_FREE && trace_events[1].object == trace_events[0].object);
    CHECK(trace_events[0].arg == trace_events[1].arg && trace_events[0].arg >= 5000);
    CHECK(trace_events[0].device == base_of(device) && trace_events[1].device == base_of(device));
    CHECK(buffers_of(device).hits == kept.hits && buffers_of(device).misses == kept.misses); /* no pool was asked */
}

static inline void contract_bounded_hands_out_the_last_given_first(uint32_t device)
{
    set_policy(device, TLM_BUFFERS_BOUNDED, MB);
    void *first = take(device, 1000), *second = take(device, 1000);
    tlm_buffers_statistics before = buffers_of(device);
    trace_begin(TRACE_ALL);
    tlmi_buffers_free(device, first, 1000);
    tlmi_buffers_free(device, second, 1000);
    CHECK(take(device, 900) == second); /* of the same class, up to 1024 bytes */
    CHECK(take(device, 1024) == first);
    void *third = take(device, 1000);
    trace_end();
    CHECK(trace_count(TLM_KIND_POOL_PUT, 0) == 2 && trace_count(TLM_KIND_POOL_HIT, 0) == 2);
    CHECK(trace_count(TLM_KIND_POOL_MISS, 0) == 1 && trace_count(TLM_KIND_DEVICE_ALLOC, TRACE_ANY) == 1);
    CHECK(trace_used == 6 && trace_count(TLM_KIND_DEVICE_FREE, TRACE_ANY) == 0);
    CHECK(trace_sum(TLM_KIND_POOL_PUT) == trace_sum(TLM_KIND_POOL_HIT));
    tlm_buffers_statistics after = buffers_of(device);
    CHECK(after.hits == before.hits + 2 && after.misses == before.misses + 1);
    tlmi_buffers_free(device, first, 1024);
    tlmi_buffers_free(device, second, 900);
    tlmi_buffers_free(device, third, 1000);
    CHECK(buffers_of(device).free_count == before.free_count + 3);
    check_books(device);
}

/* B13: what is put is found again although its size is not quite the same, and what is kept has a bound. */
static inline void contract_bounded_keeps_no_more_than_its_budget(uint32_t device)
{
    enum { BUDGET = 100 * KB };
    set_policy(device, TLM_BUFFERS_BOUNDED, BUDGET);
    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 300; round++) {
        void *payloads[8];
        uint64_t sizes[8];
        for (int i = 0; i < 8; i++)
            payloads[i] = take(device, sizes[i] = next_random(&state) % (30 * KB) + 1);
        for (int i = 0; i < 8; i++) {
            tlmi_buffers_free(device, payloads[i], sizes[i]);
            CHECK(buffers_of(device).free_bytes <= BUDGET);
        }
    }
    tlm_buffers_statistics now = buffers_of(device);
    CHECK(now.hits > now.misses / 4 && now.free_bytes > BUDGET / 2);
    trace_begin(TRACE_ALL);
    void *large = take(device, BUDGET);
    tlmi_buffers_free(device, large, BUDGET); /* larger than the budget: not kept, and nothing else goes for it */
    trace_end();
    CHECK(trace_count(TLM_KIND_POOL_DROP, 0) == 1 && trace_count(TLM_KIND_POOL_PRUNE, 0) == 0);
    CHECK(buffers_of(device).free_bytes == now.free_bytes);
    check_books(device);
}

static inline void contract_bounded_gives_up_what_was_free_longest(uint32_t device)
{
    set_policy(device, TLM_BUFFERS_BOUNDED, 40 * KB);
    static const uint64_t sizes[] = {8000, 16000, 4000, 24000};
    void *payloads[4];
    for (int i = 0; i < 4; i++)
        payloads[i] = take(device, sizes[i]);
    for (int i = 0; i < 3; i++)
        tlmi_buffers_free(device, payloads[i], sizes[i]);
    CHECK(buffers_of(device).free_count == 3);
    trace_begin(TRACE_ALL);
    tlmi_buffers_free(device, payloads[3], sizes[3]); /* 8 + 16 go although 4 is smaller and 16 larger than either */
    trace_end();
    CHECK(trace_count(TLM_KIND_POOL_PRUNE, 0) == 2 && trace_count(TLM_KIND_DEVICE_FREE, TRACE_ANY) == 2);
    CHECK(trace_events[0].arg > 8000 && trace_events[0].arg < 16000); /* the oldest first */
    CHECK(take(device, sizes[2]) == payloads[2] && take(device, sizes[3]) == payloads[3]);
    tlmi_buffers_free(device, payloads[2], sizes[2]);
    tlmi_buffers_free(device, payloads[3], sizes[3]);
}

static inline void contract_trim_gives_everything_back(uint32_t device)
{
    set_policy(device, TLM_BUFFERS_BOUNDED, 8 * MB);
    tlm_buffers_statistics before = buffers_of(device);
    void *payloads[10];
    for (int i = 0; i < 10; i++)
        payloads[i] = take(device, (uint64_t)(i + 1) * 3000);
    for (int i = 0; i < 10; i++)
        tlmi_buffers_free(device, payloads[i], (uint64_t)(i + 1) * 3000);
    uint64_t kept = buffers_of(device).free_bytes - before.free_bytes;
    CHECK(kept > 165000 && tlm_device_trim(device) == kept && tlm_device_trim(device) == 0);
    CHECK(buffers_of(device).free_bytes == before.free_bytes);
    check_books(device);
}

/* S25 */
static inline void contract_persistent_keeps_and_never_uses_again(uint32_t device)
{
    enum { ROUNDS = 20, BYTES = 100000 };
    set_policy(device, TLM_BUFFERS_PERSISTENT, 0);
    tlm_buffers_statistics before = buffers_of(device);
    uint8_t *seen[ROUNDS];
    trace_begin(TRACE_ALL);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t bytes = round % 2 ? BYTES : 100;
        seen[round] = take(device, bytes);
        for (int i = 0; i < round; i++)
            CHECK(seen[i] != seen[round]);
        memset(seen[round], 0xAB, bytes);
        tlmi_buffers_free(device, seen[round], bytes);
        CHECK(seen[round][0] != 0xAB &&
              seen[round][bytes - 1] != 0xAB); /* the contents are dropped, the memory is kept */
    }
    trace_end();
    tlm_buffers_statistics after = buffers_of(device);
    CHECK(after.hits == before.hits && after.misses == before.misses + ROUNDS);
    CHECK(after.free_count == before.free_count + ROUNDS && after.active_count == before.active_count);
    CHECK(trace_count(TLM_KIND_POOL_MISS, 0) == ROUNDS && trace_count(TLM_KIND_POOL_PUT, 0) == ROUNDS);
    CHECK(trace_count(TLM_KIND_DEVICE_ALLOC, TRACE_ANY) == ROUNDS && trace_count(TLM_KIND_DEVICE_FREE, TRACE_ANY) == 0);
    CHECK(tlm_device_trim(device) == 0); /* nothing goes back */
    check_books(device);
}

/* S26 */
static inline void contract_persistent_reusing_serves_a_steady_state(uint32_t device)
{
    enum { ROUNDS = 50, EACH = 4, BYTES = 5000 };
    set_policy(device, TLM_BUFFERS_PERSISTENT_REUSING, 0);
    uint64_t first_total = buffers_of(device).total_allocated_bytes, first_kept = buffers_of(device).free_count;
    for (int round = 0; round < ROUNDS; round++) {
        if (round == 1)
            trace_begin(TRACE_ALL); /* the first round has warmed up */
        void *payloads[EACH];
        for (int i = 0; i < EACH; i++) {
            payloads[i] = take(device, BYTES);
            for (int j = 0; j < i; j++)
                CHECK(payloads[i] != payloads[j]);
        }
        for (int i = 0; i < EACH; i++)
            tlmi_buffers_free(device, payloads[i], BYTES);
        void *last = take(device, BYTES);
        CHECK(last == payloads[EACH - 1]);
        tlmi_buffers_free(device, last, BYTES);
        tlm_buffers_statistics now = buffers_of(device);
        CHECK(now.total_allocated_bytes - first_total ==
              EACH * (tlmi_class_bytes(tlmi_class_of(BYTES)) + TLMI_BLOCK_BYTES));
    }
    trace_end();
    CHECK(trace_count(TLM_KIND_POOL_MISS, 0) == 0 && trace_count(TLM_KIND_DEVICE_ALLOC, TRACE_ANY) == 0);
    CHECK(trace_count(TLM_KIND_POOL_HIT, 0) == (ROUNDS - 1) * (EACH + 1));
    CHECK(buffers_of(device).free_count == first_kept + EACH);
    check_books(device);
}

/* B4: pushed twice, a buffer would be two objects'. */
static inline void contract_a_buffer_is_put_once(uint32_t device)
{
    set_policy(device, TLM_BUFFERS_PERSISTENT_REUSING, 0);
    void *payload = take(device, 3000);
    tlmi_buffers_free(device, payload, 3000);
    tlm_buffers_statistics before = buffers_of(device);
    tlm_device_statistics handed_out = driver_of(device);
    trace_begin(TRACE_ALL);
    tlmi_buffers_free(device, payload, 3000);
    trace_end();
    CHECK(trace_used == 1 && trace_events[0].kind == TLM_KIND_MISUSE);
    CHECK(trace_events[0].count == TLM_MISUSE_DOUBLE_POOL);
    CHECK(trace_events[0].arg == TLM_HOLDER(TLM_HOLDER_FOREIGN, (uintptr_t)payload));
    tlm_buffers_statistics after = buffers_of(device);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK(driver_of(device).current_bytes == handed_out.current_bytes);
    void *one = take(device, 3000), *other = take(device, 3000);
    CHECK(one == payload && other != payload);
    tlmi_buffers_free(device, one, 3000);
    tlmi_buffers_free(device, other, 3000);
    set_policy(device, TLM_BUFFERS_BOUNDED, 4000); /* room for one: it must not be given up for itself */
    payload = take(device, 3000);
    tlmi_buffers_free(device, payload, 3000);
    tlmi_buffers_free(device, payload, 3000);
    CHECK(take(device, 3000) == payload);
    tlmi_buffers_free(device, payload, 3000);
}

/* B18: given to a device that it did not come from, memory goes back where it came from, and the mistake is recorded. */
static inline void contract_memory_goes_back_where_it_came_from(uint32_t device)
{
    uint32_t other = base_of(device) == TLM_DEVICE_CPU ? TLM_DEVICE_SIM_METAL : TLM_DEVICE_CPU;
    set_policy(device, TLM_BUFFERS_DIRECT, 0);
    CHECK(tlm_device_policy(other, TLM_BUFFERS_DIRECT, 0) == TLM_OK);
    tlm_device_statistics mine = driver_of(device), others = driver_of(other);
    void *payload = take(device, 700);
    trace_begin(TRACE_ALL);
    tlmi_buffers_free(other, payload, 700);
    static uint64_t not_ours[32] = {1, 2, 3};
    tlmi_buffers_free(device, not_ours + 16, 100); /* of another allocator altogether */
    trace_end();
    CHECK(driver_of(device).current_count == mine.current_count);
    CHECK(driver_of(other).current_count == others.current_count && driver_of(other).total_count == others.total_count);
    CHECK(trace_count(TLM_KIND_MISUSE, 0) == 2 && trace_count(TLM_KIND_DEVICE_FREE, TRACE_ANY) == 1);
    for (uint32_t i = 0; i < trace_used; i++)
        CHECK(trace_events[i].kind != TLM_KIND_MISUSE || trace_events[i].count == TLM_MISUSE_WRONG_DEVICE);
    CHECK(not_ours[0] == 1 && not_ours[15] == 0);
    check_books(device);
}

typedef struct {
    uint32_t device;
    uint64_t seed;
    uint64_t served;
} contract_worker;

/* Takes and gives at random; nobody else may write to what it has. */
static inline void *contract_work(void *argument)
{
    enum { ROUNDS = 400, MOST = 16 };
    contract_worker *worker = argument;
    uint64_t *payloads[MOST] = {0}, sizes[MOST], state = worker->seed;
    for (int round = 0; round < ROUNDS; round++) {
        size_t i = next_random(&state) % MOST;
        if (payloads[i]) {
            CHECK(payloads[i][0] == worker->seed + i);
            tlmi_buffers_free(worker->device, payloads[i], sizes[i]);
            payloads[i] = NULL;
            continue;
        }
        sizes[i] = next_random(&state) % 3000 + 8;
        payloads[i] = take(worker->device, sizes[i]);
        payloads[i][0] = worker->seed + i;
        worker->served++;
    }
    for (size_t i = 0; i < MOST; i++)
        tlmi_buffers_free(worker->device, payloads[i], sizes[i]);
    return NULL;
}

/* S27 */
static inline void contract_numbers_are_exact_after_many_threads(uint32_t device, int policy)
{
    enum { WORKERS = 8 };
    set_policy(device, policy, 10 * KB);
    tlm_device_statistics before = driver_of(device);
    tlm_buffers_statistics counted = buffers_of(device);
    contract_worker workers[WORKERS];
    pthread_t threads[WORKERS];
    for (uint64_t i = 0; i < WORKERS; i++) {
        workers[i] = (contract_worker){device, (i + 1) << 32, 0};
        CHECK(pthread_create(&threads[i], NULL, contract_work, &workers[i]) == 0);
    }
    uint64_t served = 0;
    for (int i = 0; i < WORKERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        served += workers[i].served;
    }
    tlm_buffers_statistics now = buffers_of(device);
    CHECK(now.active_count == counted.active_count && now.active_bytes == counted.active_bytes);
    uint64_t asked = now.hits + now.misses - counted.hits - counted.misses;
    CHECK(asked == (policy == TLM_BUFFERS_DIRECT ? 0 : served));
    if (policy == TLM_BUFFERS_DIRECT)
        CHECK(driver_of(device).total_count == before.total_count + served);
    if (policy == TLM_BUFFERS_BOUNDED)
        CHECK(now.free_bytes - counted.free_bytes <= 10 * KB);
    if (policy == TLM_BUFFERS_PERSISTENT || policy == TLM_BUFFERS_PERSISTENT_REUSING)
        CHECK(now.total_allocated_bytes - counted.total_allocated_bytes == now.free_bytes - counted.free_bytes);
    check_books(device);
}

static inline void contract_the_text_says_what_the_numbers_say(uint32_t device)
{
    char text[64 * KB], wanted[96];
    tlm_buffers_statistics now = buffers_of(device);
    uint64_t length = tlm_buffers_dump(device, text, sizeof text);
    CHECK(length < sizeof text && length == strlen(text));
    snprintf(wanted, sizeof wanted, "free: %llu bytes in %llu; hits: %llu;", (unsigned long long)now.free_bytes,
             (unsigned long long)now.free_count, (unsigned long long)now.hits);
    CHECK(strstr(text, wanted));
    CHECK(tlm_buffers_dump(device, NULL, 0) == length);
    char few[10];
    CHECK(tlm_buffers_dump(device, few, sizeof few) == length && strlen(few) == 9 && memcmp(few, text, 9) == 0);
}

static inline void contract_a_bad_policy_changes_nothing(uint32_t device)
{
    set_policy(device, TLM_BUFFERS_BOUNDED, MB);
    void *payload = take(device, 100);
    tlmi_buffers_free(device, payload, 100);
    CHECK(tlm_device_policy(device, 4, 0) == TLM_BAD_ARGUMENT && tlm_device_policy(device, -1, 0) == TLM_BAD_ARGUMENT);
    CHECK(take(device, 100) == payload);
    tlmi_buffers_free(device, payload, 100);
}

static inline void contract_holds_for(uint32_t device)
{
    tlm_device_statistics before = driver_of(device);
    contract_payloads_are_aligned_writable_and_apart(device);
    contract_sizes_have_ends(device);
    contract_direct_gives_back_at_once(device);
    contract_bounded_hands_out_the_last_given_first(device);
    contract_bounded_keeps_no_more_than_its_budget(device);
    contract_bounded_gives_up_what_was_free_longest(device);
    contract_trim_gives_everything_back(device);
    contract_persistent_keeps_and_never_uses_again(device);
    contract_persistent_reusing_serves_a_steady_state(device);
    contract_a_buffer_is_put_once(device);
    contract_memory_goes_back_where_it_came_from(device);
    for (int policy = TLM_BUFFERS_DIRECT; policy <= TLM_BUFFERS_PERSISTENT_REUSING; policy++)
        contract_numbers_are_exact_after_many_threads(device, policy);
    contract_the_text_says_what_the_numbers_say(device);
    contract_a_bad_policy_changes_nothing(device);
    set_policy(device, TLM_BUFFERS_DIRECT, 0);
    CHECK(driver_of(device).current_bytes == before.current_bytes);
    CHECK(driver_of(device).current_count == before.current_count);
}

/* S28: the memory is there, is used without asking the driver, joins again when it comes back, and is reserved once. */
static inline void contract_preallocation_is_real_and_once(uint32_t device)
{
    enum { BYTES = 4 * MB };
    set_policy(device, TLM_BUFFERS_DIRECT, 0);
    tlm_buffers_statistics before = buffers_of(device);
    CHECK(before.reserved_bytes == 0 && tlm_device_preallocate(device, 0) == TLM_BAD_ARGUMENT);
    CHECK(tlm_device_preallocate(device, UINT64_MAX) == TLM_OVERFLOW);
    trace_begin(TRACE_ALL);
    CHECK(tlm_device_preallocate(device, BYTES) == TLM_OK && tlm_device_preallocate(device, BYTES) == TLM_OK);
    trace_end();
    CHECK(trace_count(TLM_KIND_POOL_RESERVE, 0) == 1 && trace_sum(TLM_KIND_POOL_RESERVE) == BYTES);
    tlm_buffers_statistics reserved = buffers_of(device);
    CHECK(reserved.reserved_bytes == BYTES && reserved.free_bytes == before.free_bytes + BYTES);
    CHECK(reserved.total_allocated_bytes == before.total_allocated_bytes + BYTES);
    trace_begin(TRACE_ALL);
    for (int round = 0; round < 3; round++) {
        void *pieces[40];
        for (int i = 0; i < 40; i++)
            memset(pieces[i] = take(device, 96 * KB - i), i, 96 * KB - i);
        check_books(device);
        for (int i = 0; i < 40; i++) /* in an order that leaves holes, to be joined */
            tlmi_buffers_free(device, pieces[(i * 7 + round) % 40], 96 * KB - (i * 7 + round) % 40);
        tlmi_buffers_free(device, take(device, 3 * MB), 3 * MB); /* in one piece again */
    }
    trace_end();
    CHECK(trace_count(TLM_KIND_DEVICE_ALLOC, TRACE_ANY) == 0 && trace_count(TLM_KIND_POOL_HIT, 0) == 123);
    CHECK(trace_count(TLM_KIND_POOL_PUT, 0) == 123);
    tlm_buffers_statistics after = buffers_of(device);
    CHECK(after.free_bytes == reserved.free_bytes && after.free_count == reserved.free_count);
    void *beyond = take(device, 5 * MB); /* more than the reserve has: from the driver */
    CHECK(buffers_of(device).total_allocated_bytes > reserved.total_allocated_bytes);
    tlmi_buffers_free(device, beyond, 5 * MB);
    for (int policy = TLM_BUFFERS_BOUNDED; policy <= TLM_BUFFERS_PERSISTENT_REUSING; policy++)
        contract_numbers_are_exact_after_many_threads(device, policy);
    set_policy(device, TLM_BUFFERS_DIRECT, 0);
    CHECK(buffers_of(device).free_bytes == reserved.free_bytes && buffers_of(device).free_count == reserved.free_count);
}
#endif
