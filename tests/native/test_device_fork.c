/* SPDX-License-Identifier: MIT
 * test_device_fork.c: a child of a process whose threads were inside the buffers can use them; the environment is heeded.
 * Not under valgrind: what the threads of the parent had is lost in the child, as it must be.
 *
 * tlm-test: sources=core modes=address */
#include <sys/wait.h>

#include "device_contract.h"

STAND_IN_FOR_SAMPLER

enum { WORKERS = 3, FORKS = 200 };
static _Atomic bool stop;

static void *keep_taking(void *argument)
{
    uint32_t device = *(uint32_t *)argument;
    for (uint64_t bytes = 100; !stop; bytes = bytes * 7 % 5000 + 1)
        tlmi_buffers_free(device, take(device, bytes), bytes);
    return NULL;
}

static void expect_success(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* What the child gets is nobody else's, whatever the threads of its parent were about to do. */
static void use_in_child(uint32_t device)
{
    enum { MOST = 200 };
    uint64_t *payloads[MOST];
    for (uint64_t i = 0; i < MOST; i++) {
        payloads[i] = take(device, i * 25 + 8);
        payloads[i][0] = payloads[i][(i * 25 + 8) / 8 - 1] = i;
    }
    for (uint64_t i = 0; i < MOST; i++) {
        CHECK(payloads[i][0] == i && payloads[i][(i * 25 + 8) / 8 - 1] == i);
        tlmi_buffers_free(device, payloads[i], i * 25 + 8);
    }
}

/* Only with a driver whose memory is not from malloc: AddressSanitizer's is not made for forks. */
static void check_children_of_busy_parents_go_on(void)
{
    uint32_t devices[WORKERS] = {TLM_DEVICE_SIM_METAL, TLM_DEVICE_SIM_METAL, 0};
    CHECK(tlm_device_limit(TLM_DEVICE_SIM_METAL, 64 * MB, 0, &devices[2]) == TLM_OK);
    pthread_t threads[WORKERS];
    stop = false;
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, keep_taking, &devices[i]) == 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(300); /* a lock that nobody will give back must not hang the tests */
            for (int j = 0; j < WORKERS; j++)
                use_in_child(devices[j]);
            CHECK(tlm_device_policy(TLM_DEVICE_SIM_METAL, TLM_BUFFERS_DIRECT, 0) == TLM_OK); /* all lists are emptied */
            _exit(0);
        }
        expect_success(child);
    }
    stop = true;
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    check_books(TLM_DEVICE_SIM_METAL);
    CHECK(tlm_device_close(devices[2]) == TLM_OK);
}

/* Before a device is used first: each case in a child of its own. */
static void with_environment(const char *name, const char *value, void (*check)(void))
{
    pid_t child = fork();
    if (child == 0) {
        CHECK(setenv(name, value, 1) == 0);
        check();
        _exit(0);
    }
    expect_success(child);
}

static uint64_t kept_of(uint64_t bytes)
{
    tlmi_buffers_free(TLM_DEVICE_CPU, take(TLM_DEVICE_CPU, bytes), bytes);
    return buffers_of(TLM_DEVICE_CPU).free_count;
}

static bool text_complains_of(uint32_t device, const char *name)
{
    char text[4096];
    tlm_buffers_dump(device, text, sizeof text);
    return strstr(text, name) && strstr(text, "is ignored");
}

static void budget_is_2000(void)
{
    CHECK(kept_of(3000) == 0 && kept_of(1000) == 1 && !text_complains_of(TLM_DEVICE_CPU, "TLMEM"));
}

static void nothing_is_kept(void)
{
    CHECK(kept_of(1) == 0);
}

static void budget_is_the_default(void)
{
    CHECK(kept_of(31 * MB) == 0 && kept_of(24 * MB) == 1 && text_complains_of(TLM_DEVICE_CPU, "TLMEM_BUFFERS_BYTES"));
}

static void three_megabytes_are_reserved(void)
{
    tlmi_buffers_free(TLM_DEVICE_SIM_METAL, take(TLM_DEVICE_SIM_METAL, 100), 100); /* the first use */
    tlm_buffers_statistics now = buffers_of(TLM_DEVICE_SIM_METAL);
    CHECK(now.reserved_bytes == 3 * MB && now.total_allocated_bytes == 3 * MB && now.hits == 1);
    CHECK(driver_of(TLM_DEVICE_SIM_METAL).total_count == 1);
    CHECK(tlm_device_preallocate(TLM_DEVICE_SIM_METAL, 5 * MB) == TLM_OK); /* once */
    CHECK(buffers_of(TLM_DEVICE_SIM_METAL).reserved_bytes == 3 * MB);
    tlmi_buffers_free(TLM_DEVICE_CPU, take(TLM_DEVICE_CPU, 100), 100);
    CHECK(buffers_of(TLM_DEVICE_CPU).reserved_bytes == 0); /* it is meant for GPUs */
}

static void nothing_is_reserved(void)
{
    take(TLM_DEVICE_SIM_METAL, 100);
    CHECK(buffers_of(TLM_DEVICE_SIM_METAL).reserved_bytes == 0);
    CHECK(text_complains_of(TLM_DEVICE_SIM_METAL, "TLMEM_GPU_PREALLOCATE_MB"));
}

int main(void)
{
    with_environment("TLMEM_BUFFERS_BYTES", "2000", budget_is_2000);
    with_environment("TLMEM_BUFFERS_BYTES", "0", nothing_is_kept);
    with_environment("TLMEM_BUFFERS_BYTES", "32MB", budget_is_the_default);
    with_environment("TLMEM_BUFFERS_BYTES", "-1", budget_is_the_default);
    with_environment("TLMEM_GPU_PREALLOCATE_MB", "3", three_megabytes_are_reserved);
    with_environment("TLMEM_GPU_PREALLOCATE_MB", "many", nothing_is_reserved);
    with_environment("TLMEM_GPU_PREALLOCATE_MB", "99999999999", nothing_is_reserved);
    set_policy(TLM_DEVICE_SIM_METAL, TLM_BUFFERS_PERSISTENT_REUSING, 0);
    check_children_of_busy_parents_go_on(); /* lists of classes */
    set_policy(TLM_DEVICE_SIM_METAL, TLM_BUFFERS_DIRECT, 0);
    CHECK(tlm_device_preallocate(TLM_DEVICE_SIM_METAL, 4 * MB) == TLM_OK);
    check_children_of_busy_parents_go_on(); /* the reserve */
    return 0;
}
