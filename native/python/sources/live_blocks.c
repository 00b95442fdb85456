/* SPDX-License-Identifier: MIT
 * live_blocks.c: the sum of what arrays and tensors take now, and the sizes of their larger blocks.
 *
 * Each thread adds up on its own first, so that threads seldom meet.
 */
#include <unistd.h>

#include "platform/address_map.h"
#include "python/sources/sources.h"

static tlmi_map kept = TLMI_MAP_EMPTY; /* address -> bytes */
static _Atomic int64_t live_bytes;
static _Atomic uint32_t users;
static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;
__thread int64_t tlmi_live_own;

static void mend_after_fork(void)
{
    tlmi_map_after_fork(&kept);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

static void forget_all(void)
{
    tlmi_map_clear(&kept);
    atomic_store(&live_bytes, 0);
}

void tlmi_live_open(void)
{
    pthread_once(&fork_handler_once, install_fork_handler);
    if (atomic_fetch_add(&users, 1) == 0)
        forget_all();
}

void tlmi_live_close(void)
{
    if (atomic_fetch_sub(&users, 1) == 1)
        forget_all();
}

void tlmi_live_add_up(void)
{
    atomic_fetch_add_explicit(&live_bytes, tlmi_live_own, memory_order_relaxed);
    tlmi_live_own = 0;
}

int64_t tlmi_live_bytes(void)
{
    return atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

void tlmi_live_keep(uintptr_t block, uint64_t bytes)
{
    tlmi_map_put(&kept, block, bytes);
}

uint64_t tlmi_live_forget(uintptr_t block)
{
    return tlmi_map_take(&kept, block);
}

uint64_t tlmi_live_size(uintptr_t block)
{
    return tlmi_map_find(&kept, block);
}

/* Whole pages of the block that are not resident, in bytes; 0 for a block that is gone. */
static uint64_t untouched_of(uintptr_t block, uint64_t bytes, uint64_t page)
{
    uintptr_t first = (block + page - 1) & ~(uintptr_t)(page - 1);
    uintptr_t end = (block + bytes) & ~(uintptr_t)(page - 1);
    return first < end ? tlmi_system_absent_bytes(first, end - first) : 0;
}

uint64_t tlmi_live_untouched_bytes(uint64_t budget_ns, bool *known)
{
    enum { BATCH = 64 };
    uintptr_t blocks[BATCH];
    uint64_t bytes[BATCH], untouched = 0, begin = tlmi_clock_ns();
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint32_t cursor = 0;
    *known = atomic_load(&users) > 0;
    while (*known) {
        size_t count = tlmi_map_copy(&kept, &cursor, BATCH, blocks, bytes);
        if (count == 0)
            break;
        for (size_t i = 0; i < count && *known; i++) {
            if (bytes[i] < TLMI_LARGE_BYTES)
                continue;
            untouched += untouched_of(blocks[i], bytes[i], page);
            *known = tlmi_clock_ns() - begin <= budget_ns;
        }
    }
    return untouched;
}
