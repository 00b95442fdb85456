/* SPDX-License-Identifier: MIT
 * backend.h: what a driver of memory offers to device.c. One table of functions a driver; preconditions are stated here once.
 *
 * Stands alone: backend_metal.m is built by compilers whose Objective-C does not know C11's atomics.
 * All functions may be called from any thread at once, hold no lock when they return, and call nothing of the runtime.
 */
#ifndef TLMI_BACKEND_H
#define TLMI_BACKEND_H

#include <stdbool.h>

#include "tlmem.h"
#pragma GCC visibility push(hidden)

typedef struct {
    const char *name;
    /* NULL when it can be used here and now; else why not, in static storage. */
    const char *(*missing)(void);
    /* Memory of `bytes` (above 0, a multiple of 64), aligned to 64, readable and writable by the processor. `*token` is the
     * driver's own name for it. false: there is none; nothing has changed. */
    bool (*alloc)(uint64_t bytes, void **memory, void **token);
    /* Takes back what `alloc` gave, with the same token and the same bytes; nobody uses it any more. */
    void (*free)(void *memory, void *token, uint64_t bytes);
    /* The contents from byte `kept` on are not needed any more; the memory stays the caller's, with zeros or anything there.
     * Whole pages of it stop being resident where the system can do that. */
    void (*drop)(void *memory, void *token, uint64_t bytes, uint64_t kept);
    /* What the driver holds of the system's memory, handed out or kept. Never calls malloc: the sampler asks. */
    uint64_t (*driver_bytes)(void);
    int policy;        /* what happens to freed buffers unless somebody says otherwise: tlm_buffers_policy */
    bool preallocates; /* TLMEM_GPU_PREALLOCATE_MB is meant for it */
} tlmi_backend;

extern const tlmi_backend tlmi_backend_cpu, tlmi_backend_metal, tlmi_backend_sim_metal;
#pragma GCC visibility pop
#endif
