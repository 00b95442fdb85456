/* SPDX-License-Identifier: MIT
 * backend_cpu.c: memory of the host, from the C library's allocator.
 *
 * The one place besides own_memory.c that calls it: payloads are the program's memory, and belong in the allocator's statistics.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/devices/device.h"
#include "memory/devices/quarantine.h"

static _Atomic uint64_t held_bytes;

static const char *missing(void)
{
    return NULL;
}

static bool alloc_memory(uint64_t bytes, void **memory, void **token)
{
    *token = NULL;
    *memory = NULL;
    if (tlmi_quarantine_active())
        *memory = tlmi_quarantine_alloc(bytes, TLMI_BLOCK_BYTES, 64, TLM_DEVICE_CPU, tlmi_site_for_events());
    if (*memory == NULL && posix_memalign(memory, 64, bytes) != 0)
        return false;
    atomic_fetch_add_explicit(&held_bytes, bytes, memory_order_relaxed);
    return true;
}

static void free_to_allocator(void *memory, uint64_t bytes)
{
    (void)bytes;
    free(memory);
}

static void free_memory(void *memory, void *token, uint64_t bytes)
{
    (void)token;
    atomic_fetch_sub_explicit(&held_bytes, bytes, memory_order_relaxed);
    if (tlmi_quarantine_was_active()) {
        tlmi_freed freed = {.memory = memory,
                            .bytes = bytes,
                            .header = TLMI_BLOCK_BYTES,
                            .device = TLM_DEVICE_CPU,
                            .release = free_to_allocator};
        if (tlmi_quarantine_put(&freed))
            return;
    }
    free(memory);
}

static void drop(void *memory, void *token, uint64_t bytes, uint64_t kept)
{
    (void)token;
    tlmi_system_drop_pages(memory, bytes, kept);
}

/* Only what it handed out: what it keeps of freed memory is the sampler's to ask (TLM_METRIC_MALLOC_FREE). */
static uint64_t driver_bytes(void)
{
    return atomic_load_explicit(&held_bytes, memory_order_relaxed);
}

const tlmi_backend tlmi_backend_cpu = {
    .name = "cpu",
    .missing = missing,
    .alloc = alloc_memory,
    .free = free_memory,
    .drop = drop,
    .driver_bytes = driver_bytes,
    .policy = TLM_BUFFERS_BOUNDED,
};
