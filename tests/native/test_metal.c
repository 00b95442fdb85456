/* SPDX-License-Identifier: MIT
 * test_metal.c: the Metal backend keeps the contract of every device, over a stand-in for the framework, and leaks none of
 * the driver's own objects.
 *
 * tlm-test: sources=core,-backend_absent.c,backend_metal.m,metal/stand_in.m modes=address,thread,valgrind */
#include <sys/wait.h>

#include "device_contract.h"
#include "metal/stand_in.h"

STAND_IN_FOR_SAMPLER

/* Objective-C's runtime keeps its tables to the end and takes its own locks in either order; the driver's objects are
 * counted below. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libobjc\nleak:libgnustep-base\n";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}

enum { METAL = TLM_DEVICE_METAL };

/* B19: what no count of tensors shows. */
static void check_helpers_of_the_driver_do_not_pile_up(void)
{
    CHECK(stand_in_helpers() == 0);
    CHECK(stand_in_use_carelessly(500) == 501); /* the pattern itself: one for each call, until some pool is drained */
    CHECK(stand_in_helpers() == 0);
    set_policy(METAL, TLM_BUFFERS_DIRECT, 0);
    for (int i = 0; i < 500; i++) {
        tlmi_buffers_free(METAL, take(METAL, 100), 100);
        CHECK(stand_in_helpers() == 0 && stand_in_buffers() == 0);
    }
    set_policy(METAL, TLM_BUFFERS_PERSISTENT, 0);
    tlmi_buffers_free(METAL, take(METAL, 100), 100);
    CHECK(stand_in_helpers() == 0 && stand_in_buffers() == 1);
    set_policy(METAL, TLM_BUFFERS_DIRECT, 0);
    CHECK(stand_in_buffers() == 0 && driver_of(METAL).driver_bytes == 0);
}

static void check_refusals_are_told(void)
{
    void *payload;
    tlm_device_statistics before = driver_of(METAL);
    stand_in_refuse(true);
    CHECK(tlmi_buffers_alloc(METAL, 100, &payload) == TLM_OUT_OF_MEMORY && payload == NULL);
    CHECK(tlm_device_preallocate(METAL, MB) == TLM_OUT_OF_MEMORY); /* not done, and can be tried again */
    stand_in_refuse(false);
    CHECK(tlmi_buffers_alloc(METAL, STAND_IN_WORKING_SET_BYTES, &payload) ==
          TLM_OUT_OF_MEMORY); /* no room for the block */
    CHECK(driver_of(METAL).failed_count == before.failed_count + 3 && stand_in_helpers() == 0);
    void *half = take(METAL, STAND_IN_WORKING_SET_BYTES / 2);
    CHECK(tlmi_buffers_alloc(METAL, STAND_IN_WORKING_SET_BYTES / 2, &payload) == TLM_OUT_OF_MEMORY);
    tlmi_buffers_free(METAL, half, STAND_IN_WORKING_SET_BYTES / 2);
    CHECK(driver_of(METAL).current_count == before.current_count);
}

/* When the driver has no more, what was kept for reuse goes back to it before the request fails. */
static void check_kept_buffers_make_room(void)
{
    set_policy(METAL, TLM_BUFFERS_BOUNDED, STAND_IN_WORKING_SET_BYTES);
    tlmi_buffers_free(METAL, take(METAL, STAND_IN_WORKING_SET_BYTES / 2), STAND_IN_WORKING_SET_BYTES / 2);
    CHECK(stand_in_buffers() == 1);
    void *payload = take(METAL, STAND_IN_WORKING_SET_BYTES / 4 * 3);
    CHECK(stand_in_buffers() == 1 && buffers_of(METAL).free_count == 0);
    tlmi_buffers_free(METAL, payload, STAND_IN_WORKING_SET_BYTES / 4 * 3);
    set_policy(METAL, TLM_BUFFERS_DIRECT, 0);
}

static void check_forked_child_leaves_the_driver_alone(void)
{
    void *payload = take(METAL, 100);
    pid_t child = fork();
    if (child == 0) {
        const char *reason = NULL;
        void *other;
        CHECK(!tlm_device_available(METAL, &reason) && strstr(reason, "forked"));
        CHECK(tlmi_buffers_alloc(METAL, 100, &other) == TLM_NO_DEVICE && other == NULL);
        tlmi_buffers_free(METAL, payload, 100);
        CHECK(stand_in_buffers() == 1 && driver_of(METAL).driver_bytes == 0);
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    tlmi_buffers_free(METAL, payload, 100);
    CHECK(stand_in_buffers() == 0);
}

static void check_a_system_without_a_gpu(void)
{
    pid_t child = fork();
    if (child == 0) {
        const char *reason = NULL;
        stand_in_without_device(true);
        CHECK(!tlm_device_available(METAL, &reason) && strstr(reason, "no Metal device"));
        CHECK(tlmi_buffers_alloc(METAL, 100, (void *[]){NULL}) == TLM_NO_DEVICE);
        CHECK(stand_in_helpers() == 0);
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    check_a_system_without_a_gpu(); /* before the first use */
    CHECK(tlm_device_available(METAL, NULL));
    check_helpers_of_the_driver_do_not_pile_up();
    contract_holds_for(METAL);
    CHECK(stand_in_buffers() == 0 && stand_in_helpers() == 0);
    uint32_t adaptor = 0;
    CHECK(tlm_device_limit(METAL, 64 * MB, 0, &adaptor) == TLM_OK);
    contract_holds_for(adaptor);
    CHECK(tlm_device_close(adaptor) == TLM_OK && stand_in_buffers() == 0 && stand_in_helpers() == 0);
    check_refusals_are_told();
    check_kept_buffers_make_room();
    check_forked_child_leaves_the_driver_alone();
    contract_preallocation_is_real_and_once(METAL);
    CHECK(stand_in_buffers() == 1 && stand_in_helpers() == 0);
    trace_forget();
    return 0;
}
