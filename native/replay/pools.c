/* SPDX-License-Identifier: MIT
 * pools.c: the same events through the runtime's own buffers, their size classes and their policy: no model, the code itself.
 *
 * Owns its table of payloads. The device `cpu` serves: what is not touched of its memory takes no room, so that a trace larger
 * than the machine can be replayed. One replay at a time; other users of the device see another policy meanwhile.
 */
#include "memory/devices/device.h"
#include "replay/replay.h"

typedef struct {
    void *payload;
    uint64_t bytes;
} buffer;

typedef struct {
    uint64_t driver_before, limit;
    tlm_sim_figures figures;
} account;

static uint64_t driver_now(tlm_device_statistics *stats)
{
    tlm_device_stats(TLM_DEVICE_CPU, stats);
    return stats->current_bytes;
}

static void note(account *account)
{
    tlm_device_statistics stats;
    tlm_sim_figures *figures = &account->figures;
    figures->reserved_bytes = driver_now(&stats) - account->driver_before;
    if (figures->reserved_bytes > figures->peak_reserved_bytes) {
        figures->peak_reserved_bytes = figures->reserved_bytes;
        figures->peak_event = figures->events;
    }
}

static tlm_status alloc_one(account *account, buffer *buffer, const tlm_sim_event *event)
{
    if (buffer->payload || event->bytes == 0)
        return TLM_BAD_ARGUMENT;
    tlm_status status = tlmi_buffers_alloc(TLM_DEVICE_CPU, event->bytes, &buffer->payload);
    note(account);
    bool is_over = account->limit && account->figures.reserved_bytes > account->limit;
    if (is_over && tlm_device_trim(TLM_DEVICE_CPU)) {
        account->figures.retries++;
        note(account);
        is_over = account->figures.reserved_bytes > account->limit;
    }
    if (status == TLM_OK)
        buffer->bytes = event->bytes;
    if (status != TLM_OK || is_over) {
        account->figures.failed_bytes = event->bytes;
        return status == TLM_OK || status == TLM_OVERFLOW ? TLM_OUT_OF_MEMORY : status;
    }
    account->figures.requested_bytes += event->bytes;
    if (account->figures.requested_bytes > account->figures.peak_requested_bytes)
        account->figures.peak_requested_bytes = account->figures.requested_bytes;
    return TLM_OK;
}

static void free_one(account *account, buffer *buffer)
{
    tlmi_buffers_free(TLM_DEVICE_CPU, buffer->payload, buffer->bytes);
    account->figures.requested_bytes -= buffer->bytes;
    buffer->payload = NULL;
    note(account);
}

static tlm_status run_all(account *account, buffer *buffers, uint32_t blocks, const tlm_sim_event *events,
                          uint64_t count, tlm_sim_step *steps)
{
    for (uint64_t i = 0; i < count; i++, account->figures.events++) {
        const tlm_sim_event *event = &events[i];
        bool is_of_block = event->kind == TLM_SIM_ALLOC || event->kind == TLM_SIM_FREE;
        tlm_status status = is_of_block && event->block >= blocks ? TLM_BAD_ARGUMENT : TLM_OK;
        if (status == TLM_OK && event->kind == TLM_SIM_ALLOC) {
            status = alloc_one(account, &buffers[event->block], event);
        } else if (status == TLM_OK && event->kind == TLM_SIM_FREE && buffers[event->block].payload) {
            free_one(account, &buffers[event->block]);
        } else if (event->kind == TLM_SIM_EMPTY) {
            tlm_device_trim(TLM_DEVICE_CPU);
            note(account);
        } else if (event->kind != TLM_SIM_WAIT && event->kind != TLM_SIM_IDLE) {
            status = TLM_BAD_ARGUMENT; /* these say nothing of the runtime's pools */
        }
        if (status != TLM_OK)
            return status;
        if (steps)
            steps[i] = (tlm_sim_step){.reserved_bytes = account->figures.reserved_bytes};
    }
    return TLM_OK;
}

/* What is left of the events goes back, and the device does again what it did before. */
static void put_back(buffer *buffers, uint32_t blocks, int policy, uint64_t budget)
{
    tlm_device_policy(TLM_DEVICE_CPU, TLM_BUFFERS_DIRECT, 0);
    for (uint32_t block = 0; block < blocks; block++)
        if (buffers[block].payload)
            tlmi_buffers_free(TLM_DEVICE_CPU, buffers[block].payload, buffers[block].bytes);
    tlm_device_policy(TLM_DEVICE_CPU, policy, budget);
}

tlm_status tlm_sim_pool(int policy, uint64_t budget_bytes, uint64_t capacity_bytes, const tlm_sim_event *events,
                        uint64_t count, uint32_t blocks, tlm_sim_step *steps, tlm_sim_figures *figures)
{
    tlmi_device *device = tlmi_device_ready(TLM_DEVICE_CPU);
    if (!device)
        return TLM_NO_DEVICE;
    if (policy < TLM_BUFFERS_DIRECT || policy > TLM_BUFFERS_PERSISTENT_REUSING)
        return TLM_BAD_ARGUMENT;
    size_t bytes = ((size_t)blocks + 1) * sizeof(buffer);
    buffer *buffers = tlmi_own_alloc(bytes);
    if (!buffers)
        return TLM_NO_MEMORY;
    int policy_before = atomic_load(&device->policy);
    uint64_t budget_before = atomic_load(&device->budget_bytes);
    tlm_device_policy(TLM_DEVICE_CPU, TLM_BUFFERS_DIRECT, 0);
    tlm_device_statistics before, after;
    account account = {.driver_before = driver_now(&before), .limit = capacity_bytes};
    account.figures.peak_event = UINT64_MAX;
    tlm_device_policy(TLM_DEVICE_CPU, policy, budget_bytes);
    tlm_status status = run_all(&account, buffers, blocks, events, count, steps);
    driver_now(&after);
    account.figures.driver_allocs = after.total_count - before.total_count;
    account.figures.segments = after.current_count - before.current_count;
    account.figures.driver_frees = account.figures.driver_allocs - account.figures.segments;
    *figures = account.figures;
    put_back(buffers, blocks, policy_before, budget_before);
    tlmi_own_free(buffers, bytes);
    return status;
}
