/* SPDX-License-Identifier: MIT
 * gpu_pool.c: the statistics of a GPU's buffers as TensorLogic's persistent pool gives them (docs/seed-map.md, S27).
 */
#include <stdio.h>

#include "memory/devices/device.h"

static uint32_t gpu(void)
{
    return tlm_device_available(TLM_DEVICE_METAL, NULL) ? TLM_DEVICE_METAL : TLM_DEVICE_SIM_METAL;
}

static tlm_buffers_statistics statistics(void)
{
    tlm_buffers_statistics found;
    tlm_buffers_stats(gpu(), &found);
    return found;
}

uint64_t tlm_get_gpu_total_allocated_bytes(void)
{
    return statistics().total_allocated_bytes;
}

uint64_t tlm_get_gpu_free_count(void)
{
    return statistics().free_count;
}

uint64_t tlm_get_gpu_free_bytes(void)
{
    return statistics().free_bytes;
}

double tlm_get_gpu_pool_hit_rate(void)
{
    tlm_buffers_statistics found = statistics();
    uint64_t asked = found.hits + found.misses;
    return asked ? (double)found.hits / (double)asked : 0;
}

void tlm_dump_gpu_pool_stats(void)
{
    char text[8192];
    uint64_t whole = tlm_buffers_dump(gpu(), text, sizeof text);
    fputs(text, stderr);
    if (whole >= sizeof text)
        fprintf(stderr, "... %llu bytes more; tlm_buffers_dump gives all\n",
                (unsigned long long)(whole - sizeof text + 1));
}
