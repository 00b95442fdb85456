/* SPDX-License-Identifier: MIT
 * device.c: the devices there are, and the one way to their drivers: counted, and recorded while something is recorded.
 *
 * DEVICE_ALLOC is recorded after the driver gave memory and DEVICE_FREE before it gets it back, so that the events of one
 * address alternate, whatever threads they come from.
 */
#include <sched.h>
#include <stdlib.h>

#include "memory/devices/device.h"

static tlmi_device devices[TLMI_DEVICES] = {
    [TLM_DEVICE_CPU - TLMI_FIRST_DEVICE] = {.backend = &tlmi_backend_cpu},
    [TLM_DEVICE_METAL - TLMI_FIRST_DEVICE] = {.backend = &tlmi_backend_metal},
    [TLM_DEVICE_SIM_METAL - TLMI_FIRST_DEVICE] = {.backend = &tlmi_backend_sim_metal},
};

enum { DEFAULT_BUDGET_BYTES = 32 << 20 };

static tlmi_device *own_device(uint32_t number)
{
    return number - TLMI_FIRST_DEVICE < TLMI_DEVICES ? &devices[number - TLMI_FIRST_DEVICE] : NULL;
}

tlmi_device *tlmi_device_of(uint32_t number)
{
    while (number >= TLMI_FIRST_LIMIT)
        number = tlmi_limit_inner(number);
    return own_device(number);
}

uint32_t tlmi_device_number(const tlmi_device *device)
{
    return (uint32_t)(device - devices) + TLMI_FIRST_DEVICE;
}

/* A variable of the environment as a number; `otherwise` when it is not set or not such a number. A bad value is not
 * worth ending a program for, but is said: in the recording and by tlm_buffers_dump. */
static uint64_t environment_number(tlmi_device *device, const char *name, uint64_t most, uint64_t otherwise)
{
    const char *text = getenv(name);
    if (text == NULL || *text == 0)
        return otherwise;
    char *rest;
    uint64_t value = strtoull(text, &rest, 10);
    if (*text >= '0' && *text <= '9' && *rest == 0 && value <= most)
        return value;
    device->ignored = name;
    tlm_note(name, "ignored: not a whole number, or too large");
    return otherwise;
}

static void mend_after_fork(void)
{
    for (uint32_t i = 0; i < TLMI_DEVICES; i++) {
        if (!atomic_load(&devices[i].used))
            continue;
        tlmi_class_mend(&devices[i]);
        tlmi_reserve_mend(&devices[i].reserve);
    }
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

static void prepare_device(tlmi_device *device)
{
    static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
    pthread_once(&fork_once, install_fork_handler);
    uint64_t budget = environment_number(device, "TLMEM_BUFFERS_BYTES", TLMI_MOST_BYTES, DEFAULT_BUDGET_BYTES);
    atomic_store(&device->policy, device->backend->policy);
    atomic_store(&device->budget_bytes, budget);
    for (uint32_t i = 0; i < TLMI_CLASSES; i++)
        atomic_store_explicit(&device->oldest[i], UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&device->used, true, memory_order_release);
    if (!device->backend->preallocates)
        return;
    const char *own_name = getenv("TLMEM_GPU_PREALLOCATE_MB"); /* else that of the seeds */
    const char *variable = own_name && *own_name ? "TLMEM_GPU_PREALLOCATE_MB" : "TL_GPU_PREALLOCATE_MB";
    uint64_t megabytes = environment_number(device, variable, TLMI_MOST_BYTES >> 20, 0);
    if (megabytes)
        tlm_device_preallocate(tlmi_device_number(device), megabytes << 20);
}

/* The first caller prepares the device, others wait for it. The lock is not held meanwhile: a note may need other locks.
 * Who had claimed it before a fork is not there any more. */
static void first_use(tlmi_device *device)
{
    uint32_t epoch = atomic_load_explicit(&tlmi_fork_epoch, memory_order_relaxed);
    tlmi_spin_lock(&device->lock);
    bool mine = device->claimed != epoch;
    device->claimed = epoch;
    tlmi_spin_unlock(&device->lock);
    if (mine)
        prepare_device(device);
    while (!atomic_load_explicit(&device->used, memory_order_acquire))
        sched_yield();
}

tlmi_device *tlmi_device_ready(uint32_t number)
{
    tlmi_device *device = tlmi_device_of(number);
    if (device == NULL || tlmi_likely(atomic_load_explicit(&device->used, memory_order_acquire)))
        return device;
    if (device->backend->missing())
        return NULL;
    first_use(device);
    return device;
}

static void count_take(tlm_device_statistics *counted, uint64_t bytes)
{
    counted->current_bytes += bytes;
    counted->total_bytes += bytes;
    if (counted->current_bytes > counted->peak_bytes)
        counted->peak_bytes = counted->current_bytes;
    counted->total_count++;
    if (++counted->current_count > counted->peak_count)
        counted->peak_count = counted->current_count;
}

tlmi_block *tlmi_device_alloc(tlmi_device *device, uint64_t bytes)
{
    void *memory, *token;
    bool given = device->backend->alloc(bytes, &memory, &token);
    tlmi_spin_lock(&device->lock);
    if (given)
        count_take(&device->counted, bytes);
    else
        device->counted.failed_count++;
    tlmi_spin_unlock(&device->lock);
    if (!given)
        return NULL;
    tlmi_block *block = memory;
    *block = (tlmi_block){.token = token, .bytes = bytes};
    if (tlmi_probe_on())
        tlmi_event_append(TLM_KIND_DEVICE_ALLOC, (uint8_t)tlmi_device_number(device), (uintptr_t)block, bytes, 0, 0);
    return block;
}

void tlmi_device_free(tlmi_device *device, tlmi_block *block)
{
    uint64_t bytes = block->bytes;
    block->state = TLMI_BLOCK_GONE;
    if (tlmi_probe_on())
        tlmi_event_append(TLM_KIND_DEVICE_FREE, (uint8_t)tlmi_device_number(device), (uintptr_t)block, bytes, 0, 0);
    device->backend->free(block, block->token, bytes);
    tlmi_spin_lock(&device->lock);
    device->counted.current_bytes -= bytes;
    device->counted.current_count--;
    tlmi_spin_unlock(&device->lock);
}

const char *tlm_device_name(uint32_t number)
{
    tlmi_device *device = own_device(number);
    return device ? device->backend->name : tlmi_limit_name(number);
}

int tlm_device_available(uint32_t number, const char **reason)
{
    tlmi_device *device = tlmi_device_of(number);
    const char *missing = device ? device->backend->missing() : "there is no device of this number";
    if (reason)
        *reason = missing;
    return missing == NULL;
}

void tlm_device_stats(uint32_t number, tlm_device_statistics *out)
{
    *out = (tlm_device_statistics){0};
    tlmi_device *device = tlmi_device_of(number);
    if (device == NULL)
        return;
    if (number >= TLMI_FIRST_LIMIT) {
        tlmi_limit_stats(number, out);
    } else {
        tlmi_spin_lock(&device->lock);
        *out = device->counted;
        tlmi_spin_unlock(&device->lock);
    }
    out->driver_bytes = device->backend->driver_bytes();
}

/* For the sampler: of the drivers of all devices that were used. */
static uint64_t driver_bytes(void)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < TLMI_DEVICES; i++)
        if (atomic_load_explicit(&devices[i].used, memory_order_acquire))
            bytes += devices[i].backend->driver_bytes();
    return bytes;
}

__attribute__((constructor(TLMI_GAUGES_PRIORITY))) static void offer_gauge(void)
{
    tlmi_gauges_of_layers.driver_bytes = driver_bytes;
}
