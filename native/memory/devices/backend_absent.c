/* SPDX-License-Identifier: MIT
 * backend_absent.c: stands for Metal where there is no Metal, and says why not. On macOS backend_metal.m is built instead.
 */
#include <stddef.h>

#include "memory/devices/backend.h"

static const char *missing(void)
{
    return "Metal is part of macOS; the device sim-metal behaves like its driver on any system";
}

static bool alloc_memory(uint64_t bytes, void **memory, void **token)
{
    (void)bytes, (void)memory, (void)token;
    return false;
}

static void free_memory(void *memory, void *token, uint64_t bytes)
{
    (void)memory, (void)token, (void)bytes;
}

static void drop(void *memory, void *token, uint64_t bytes, uint64_t kept)
{
    (void)memory, (void)token, (void)bytes, (void)kept;
}

static uint64_t driver_bytes(void)
{
    return 0;
}

const tlmi_backend tlmi_backend_metal = {
    .name = "metal",
    .missing = missing,
    .alloc = alloc_memory,
    .free = free_memory,
    .drop = drop,
    .driver_bytes = driver_bytes,
    .policy = TLM_BUFFERS_DIRECT,
    .preallocates = true,
};
