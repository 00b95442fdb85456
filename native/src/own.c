/* SPDX-License-Identifier: MIT
 * own.c: memory for our own bookkeeping, straight from the kernel.
 *
 * Never malloc: the program's allocator, its arenas and its statistics must look as they would without us. Every byte is
 * counted, so that a report can subtract it. Thread-safe. For tests, the n-th next request can be made to fail.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

static _Atomic uint64_t current_bytes;
static _Atomic uint64_t fail_countdown;

static size_t round_to_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static bool fails_on_demand(void)
{
    uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    while (tlmi_unlikely(left)) {
        if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
            return left == 1;
    }
    return false;
}

void *tlmi_own_alloc(size_t bytes)
{
    if (bytes == 0 || fails_on_demand())
        return NULL;
    size_t whole = round_to_pages(bytes);
    void *start = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    atomic_fetch_add_explicit(&current_bytes, whole, memory_order_relaxed);
    return start;
}

void tlmi_own_free(void *start, size_t bytes)
{
    if (!start)
        return;
    size_t whole = round_to_pages(bytes);
    munmap(start, whole);
    atomic_fetch_sub_explicit(&current_bytes, whole, memory_order_relaxed);
}

uint64_t tlmi_own_current_bytes(void)
{
    return atomic_load_explicit(&current_bytes, memory_order_relaxed);
}

void tlm_own_fail_after(uint64_t n)
{
    atomic_store(&fail_countdown, n);
}
