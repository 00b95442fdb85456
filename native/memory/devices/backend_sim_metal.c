/* SPDX-License-Identifier: MIT
 * backend_sim_metal.c: a driver that keeps what is freed, as some GPU drivers seem to: resident memory grows without a leak.
 *
 * Memory is cut from heaps that are mapped and never unmapped; what is given back is never handed out again and its pages
 * stay resident. driver_bytes says so, which is how a report tells this growth from a leak.
 */
#include <sys/mman.h>

#include "log/log.h"
#include "memory/devices/backend.h"

enum { HEAP_BYTES = 4 << 20, GRANULE = 256 };

static tlmi_spin lock;
static uint8_t *heap;
static uint64_t heap_left;
static _Atomic uint64_t held_bytes;

static const char *missing(void)
{
    return NULL;
}

static void *map_pages(uint64_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

/* From the heap in use; a new one when it is used up, whose rest is given up. What is left is counted down before the heap
 * moves on, so that a child that is forked in between cannot cut beyond its end. */
static void *cut_from_heap(uint64_t bytes)
{
    void *memory = NULL;
    tlmi_spin_lock(&lock);
    if (heap_left < bytes) {
        uint8_t *fresh = map_pages(HEAP_BYTES);
        heap_left = 0;
        __atomic_store_n(&heap, fresh, __ATOMIC_RELEASE);
        __atomic_store_n(&heap_left, fresh ? HEAP_BYTES : 0, __ATOMIC_RELEASE);
    }
    if (heap_left >= bytes) {
        memory = heap;
        heap_left -= bytes;
        __atomic_store_n(&heap, heap + bytes, __ATOMIC_RELEASE);
    }
    tlmi_spin_unlock(&lock);
    return memory;
}

static bool alloc_memory(uint64_t bytes, void **memory, void **token)
{
    uint64_t whole = (bytes + GRANULE - 1) / GRANULE * GRANULE;
    *token = NULL;
    *memory = whole > HEAP_BYTES / 4 ? map_pages(whole) : cut_from_heap(whole);
    if (*memory == NULL)
        return false;
    atomic_fetch_add_explicit(&held_bytes, whole, memory_order_relaxed);
    return true;
}

static void free_memory(void *memory, void *token, uint64_t bytes)
{
    (void)memory, (void)token, (void)bytes; /* kept for ever: that is the point */
}

static void drop(void *memory, void *token, uint64_t bytes, uint64_t kept)
{
    (void)token;
    tlmi_system_drop_pages(memory, bytes, kept);
}

static uint64_t driver_bytes(void)
{
    return atomic_load_explicit(&held_bytes, memory_order_relaxed);
}

const tlmi_backend tlmi_backend_sim_metal = {
    .name = "sim-metal",
    .missing = missing,
    .alloc = alloc_memory,
    .free = free_memory,
    .drop = drop,
    .driver_bytes = driver_bytes,
    .policy = TLM_BUFFERS_DIRECT,
    .preallocates = true,
};
