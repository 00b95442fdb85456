/* SPDX-License-Identifier: MIT
 * spin.c: locks of one word, held for some instructions only. In a forked child, a lock of a thread that is not there is
 * taken over: what it protected belongs to a call that will never end. A free lock says who held it last, since only what
 * follows another thread needs the clock to wait.
 */
#include <sched.h>

#include "platform/platform.h"

enum { SPINS_BEFORE_YIELD = 64 };

_Atomic uint32_t tlmi_fork_epoch = 1;
__thread uint32_t tlmi_thread_mark;

static void begin_epoch(void)
{
    atomic_fetch_add(&tlmi_fork_epoch, 2);
}

__attribute__((constructor)) static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, begin_epoch);
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void tlmi_spin_wait(tlmi_spin *lock)
{
    uint32_t epoch = atomic_load_explicit(&tlmi_fork_epoch, memory_order_relaxed);
    for (uint32_t tries = 1;; tries++) {
        uint32_t owner = atomic_load_explicit(&lock->word, memory_order_relaxed);
        if (owner != epoch && atomic_compare_exchange_strong_explicit(&lock->word, &owner, epoch, memory_order_acquire,
                                                                      memory_order_relaxed)) {
            tlmi_clock_order();
            return;
        }
        if (tries % SPINS_BEFORE_YIELD == 0)
            sched_yield();
        else
            pause_briefly();
    }
}
