/* SPDX-License-Identifier: MIT
 * test_device.c: every device keeps the contract, adaptors limit and fail exactly, and what is reserved is there.
 *
 * tlm-test: sources=core */
#include "device_contract.h"

STAND_IN_FOR_SAMPLER

static void check_every_size_has_one_class(void)
{
    uint64_t least = 1;
    for (uint32_t class = 0; class < TLMI_CLASSES; class++) {
        uint64_t most = tlmi_class_bytes(class);
        CHECK(tlmi_class_of(least) == class && tlmi_class_of(most) == class && most % 64 == 0);
        CHECK(most < 16 * KB || most % 4096 == 0);
        CHECK(class < 4 || most - least < most / 4 + 1); /* at most a fifth is lost */
        least = most + 1;
    }
    CHECK(least == TLMI_MOST_BYTES + 1);
}

static void check_what_is_no_device(void)
{
    static const uint32_t numbers[] = {0, 1, 15, 19, 31, 32, 255, 256, UINT32_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char *reason = NULL;
        void *payload = &payload;
        uint32_t made = 0;
        CHECK(tlm_device_name(numbers[i]) == NULL && !tlm_device_available(numbers[i], &reason) && reason);
        CHECK(tlmi_buffers_alloc(numbers[i], 8, &payload) == TLM_NO_DEVICE && payload == NULL);
        CHECK(tlmi_buffers_alloc(numbers[i], 0, &payload) == TLM_NO_DEVICE);
        CHECK(tlm_device_limit(numbers[i], 0, 0, &made) == TLM_NO_DEVICE && made == 0);
        CHECK(tlm_device_policy(numbers[i], TLM_BUFFERS_DIRECT, 0) == TLM_NO_DEVICE);
        CHECK(tlm_device_preallocate(numbers[i], 8) == TLM_NO_DEVICE && tlm_device_trim(numbers[i]) == 0);
        CHECK(tlm_device_fail_nth(numbers[i], 1) == TLM_NO_DEVICE && tlm_device_close(numbers[i]) == TLM_NO_DEVICE);
        CHECK(driver_of(numbers[i]).total_count == 0 && buffers_of(numbers[i]).misses == 0);
        CHECK(tlm_buffers_dump(numbers[i], NULL, 0) == 0);
        tlm_failure failure;
        tlm_failure_last(&failure);
        CHECK(failure.status == TLM_NO_DEVICE && failure.detail == numbers[i]);
    }
    CHECK(tlm_device_close(TLM_DEVICE_CPU) == TLM_NO_DEVICE); /* only adaptors end */
    CHECK(tlm_device_fail_nth(TLM_DEVICE_CPU, 1) == TLM_NO_DEVICE);
}

static uint32_t limit(uint32_t inner, uint64_t limit_bytes, uint64_t fail_nth)
{
    uint32_t device = 0;
    CHECK(tlm_device_limit(inner, limit_bytes, fail_nth, &device) == TLM_OK && device >= 32);
    return device;
}

static void check_limit_counts_what_was_asked_for(uint32_t inner)
{
    uint32_t device = limit(inner, 1000, 0);
    void *payload = take(device, 999), *other = NULL;
    CHECK(tlmi_buffers_alloc(device, 2, &other) == TLM_OUT_OF_MEMORY && other == NULL);
    void *last = take(device, 1);
    CHECK(driver_of(device).current_bytes == 1000 && driver_of(device).failed_count == 1);
    CHECK(tlm_device_close(device) == TLM_STILL_HELD && tlm_device_name(device) != NULL);
    tlmi_buffers_free(device, payload, 999);
    CHECK(driver_of(device).current_bytes == 1 && driver_of(device).peak_bytes == 1000);
    CHECK(driver_of(device).current_count == 1 && driver_of(device).total_bytes == 1000);
    tlmi_buffers_free(device, last, 1);
    CHECK(tlmi_buffers_alloc(device, UINT64_MAX, &other) == TLM_OVERFLOW && driver_of(device).failed_count == 1);
    CHECK(tlm_device_close(device) == TLM_OK && tlm_device_name(device) == NULL);
    CHECK(tlmi_buffers_alloc(device, 1, &other) == TLM_NO_DEVICE && tlm_device_close(device) == TLM_NO_DEVICE);
}

static void check_the_nth_request_fails(uint32_t inner)
{
    uint32_t device = limit(inner, 0, 3);
    for (int round = 1; round <= 10; round++) {
        void *payload = NULL;
        tlm_status status = tlmi_buffers_alloc(device, 100, &payload);
        CHECK(status == (round == 3 || round == 8 ? TLM_OUT_OF_MEMORY : TLM_OK));
        CHECK((payload != NULL) == (status == TLM_OK));
        tlmi_buffers_free(device, payload, 100);
        CHECK(tlmi_buffers_alloc(device, 0, &payload) == TLM_OK); /* asks nobody for memory: not counted */
        if (round == 5)
            CHECK(tlm_device_fail_nth(device, 3) == TLM_OK);
    }
    CHECK(driver_of(device).failed_count == 2 && driver_of(device).current_count == 0);
    CHECK(tlm_device_close(device) == TLM_OK);
}

static void check_adaptors_over_adaptors(void)
{
    uint32_t wide = limit(TLM_DEVICE_CPU, 1000, 0), narrow = limit(wide, 500, 0);
    CHECK(strcmp(tlm_device_name(wide), "limit(cpu)") == 0 &&
          strcmp(tlm_device_name(narrow), "limit(limit(cpu))") == 0);
    void *of_wide = take(wide, 600), *payload = NULL;
    CHECK(tlmi_buffers_alloc(narrow, 450, &payload) ==
          TLM_OUT_OF_MEMORY); /* refused below, and set aside no more above */
    CHECK(driver_of(narrow).current_bytes == 0 && driver_of(narrow).failed_count == 1);
    payload = take(narrow, 400);
    CHECK(driver_of(wide).current_bytes == 1000 && driver_of(narrow).current_bytes == 400);
    CHECK(tlm_device_close(wide) == TLM_STILL_HELD);
    tlmi_buffers_free(narrow, payload, 400);
    tlmi_buffers_free(wide, of_wide, 600);
    CHECK(driver_of(wide).current_bytes == 0 && driver_of(narrow).current_count == 0);
    CHECK(tlm_device_close(wide) == TLM_STILL_HELD); /* another stands before it */
    CHECK(tlm_device_close(narrow) == TLM_OK && tlm_device_close(wide) == TLM_OK);
}

static void check_numbers_of_adaptors_run_out_and_come_back(void)
{
    uint32_t made[TLMI_LIMITS], device = 0;
    for (int i = 0; i < TLMI_LIMITS; i++)
        made[i] = limit(TLM_DEVICE_CPU, 0, 0);
    CHECK(tlm_device_limit(TLM_DEVICE_CPU, 0, 0, &device) == TLM_NO_MEMORY && device == 0);
    CHECK(tlm_device_close(made[5]) == TLM_OK && limit(TLM_DEVICE_CPU, 0, 0) == made[5]);
    for (int i = 0; i < TLMI_LIMITS; i++)
        CHECK(made[i] >= 32 && made[i] <= 255 && tlm_device_close(made[i]) == TLM_OK);
}

/* ---- adaptors and threads ---- */

enum { WORKERS = 8, REQUESTS = 500, AT_ONCE = 4, BYTES = 100 };
static uint32_t shared_device;
static _Atomic int holding;
static _Atomic uint64_t refused, served;

static void *take_and_give(void *unused)
{
    for (int i = 0; i < REQUESTS; i++) {
        void *payload;
        if (tlmi_buffers_alloc(shared_device, BYTES, &payload) != TLM_OK) {
            refused++;
            continue;
        }
        CHECK(++holding <= AT_ONCE);
        served++;
        holding--;
        tlmi_buffers_free(shared_device, payload, BYTES);
    }
    return unused;
}

static void run_workers(void)
{
    pthread_t threads[WORKERS];
    refused = served = 0;
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_and_give, NULL) == 0);
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    tlm_device_statistics now = driver_of(shared_device);
    CHECK(now.current_bytes == 0 && now.current_count == 0);
    CHECK(now.total_count == served && now.failed_count == refused);
    CHECK(served + refused == (uint64_t)WORKERS * REQUESTS && now.peak_bytes <= AT_ONCE * BYTES);
}

static void check_limit_is_exact_with_threads(void)
{
    shared_device = limit(TLM_DEVICE_CPU, AT_ONCE * BYTES, 0);
    run_workers();
    CHECK(tlm_device_close(shared_device) == TLM_OK);
    shared_device = limit(TLM_DEVICE_CPU, AT_ONCE * BYTES - 1, 0);
    void *most[AT_ONCE - 1], *payload;
    for (int i = 0; i < AT_ONCE - 1; i++)
        most[i] = take(shared_device, BYTES);
    CHECK(tlmi_buffers_alloc(shared_device, BYTES, &payload) == TLM_OUT_OF_MEMORY); /* by one byte */
    payload = take(shared_device, BYTES - 1);
    tlmi_buffers_free(shared_device, payload, BYTES - 1);
    for (int i = 0; i < AT_ONCE - 1; i++)
        tlmi_buffers_free(shared_device, most[i], BYTES);
    CHECK(tlm_device_close(shared_device) == TLM_OK);
}

static void *take_and_give_freely(void *unused)
{
    for (int i = 0; i < REQUESTS; i++) {
        void *payload;
        if (tlmi_buffers_alloc(shared_device, BYTES, &payload) != TLM_OK)
            refused++;
        else
            tlmi_buffers_free(shared_device, payload, BYTES);
    }
    return unused;
}

static void check_exactly_one_request_of_many_threads_fails(void)
{
    shared_device = limit(TLM_DEVICE_SIM_METAL, 0, WORKERS * REQUESTS / 2);
    refused = 0;
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_and_give_freely, NULL) == 0);
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(refused == 1 && driver_of(shared_device).failed_count == 1);
    CHECK(tlm_device_close(shared_device) == TLM_OK);
}

int main(void)
{
    check_every_size_has_one_class();
    check_what_is_no_device();
    CHECK(tlm_device_available(TLM_DEVICE_CPU, NULL) && tlm_device_available(TLM_DEVICE_SIM_METAL, NULL));
    for (uint32_t device = TLM_DEVICE_CPU; device <= TLM_DEVICE_SIM_METAL; device++) {
        const char *reason;
        if (!tlm_device_available(device, &reason)) {
            printf("%s: %s\n", tlm_device_name(device), reason);
            continue;
        }
        contract_holds_for(device);
        check_limit_counts_what_was_asked_for(device);
        check_the_nth_request_fails(device);
        uint32_t adaptor = limit(device, 64 * MB, 0);
        contract_holds_for(adaptor);
        contract_preallocation_is_real_and_once(device == TLM_DEVICE_CPU ? adaptor : device);
        CHECK(tlm_device_close(adaptor) == TLM_OK);
    }
    check_adaptors_over_adaptors();
    check_numbers_of_adaptors_run_out_and_come_back();
    check_limit_is_exact_with_threads();
    check_exactly_one_request_of_many_threads_fails();
    trace_forget();
    return 0;
}
