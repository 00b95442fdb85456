/* SPDX-License-Identifier: MIT
 * probes.c: what a probe of tlmem_probe.h costs, in nanoseconds, the best of some rounds.
 *
 *     cc -O2 $(tlmem doctor --cflags) -o probes benchmarks/programs/probes.c
 *     ./probes                                               no tlmem in the process
 *     cc ... $(tlmem doctor --libs) -DLINKED && ./probes     there, but nothing recorded
 *     TLMEM_RECORD=p.tlm TLMEM_LIBRARY=... ./probes          recorded
 */
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "tlmem_probe.h"
#ifdef LINKED
#include "tlmem.h"
#endif

enum { COUNT = 50000, ROUNDS = 15, OBJECTS = 1024 };

static char objects[OBJECTS][64];

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Lets what was recorded be compacted, so that each round finds the log as a program of ordinary pace does. */
static void settle(void)
{
    struct timespec pause = {0, 30000000};
    nanosleep(&pause, NULL);
}

#define MEASURE(name, probe)                                                                                           \
    do {                                                                                                               \
        uint64_t best = UINT64_MAX;                                                                                    \
        for (int round = 0; round < ROUNDS; round++) {                                                                 \
            settle();                                                                                                  \
            uint64_t begin = now_ns();                                                                                 \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                char *it = objects[i % OBJECTS];                                                                       \
                probe;                                                                                                 \
                __asm__ volatile("" : : "r"(it) : "memory");                                                           \
            }                                                                                                          \
            uint64_t took = now_ns() - begin;                                                                          \
            best = took < best ? took : best;                                                                          \
        }                                                                                                              \
        printf("%-22s %6.2f ns\n", name, (double)best / COUNT);                                                        \
    } while (0)

int main(void)
{
    uint64_t scope;
#ifdef LINKED
    (void)tlm_scope_current(); /* so that the linker keeps the library */
#endif
    MEASURE("the loop itself", (void)0);
    MEASURE("acquire", TLM_PROBE_ACQUIRE(it, tlm_probe_owner(objects), 2));
    MEASURE("acquire by name", TLM_PROBE_ACQUIRE(it, tlm_probe_name("cache"), 2));
    MEASURE("acquire in a call", TLM_PROBE_CALL(TLM_PROBE_ACQUIRE(it, tlm_probe_owner(objects), 2)));
    MEASURE("free", TLM_PROBE_FREE(it));
    MEASURE("alloc", TLM_PROBE_ALLOC(it, 64));
    MEASURE("alloc with", TLM_PROBE_ALLOC_WITH(it, 64, "heap"));
    MEASURE("scope, in and out", TLM_PROBE_SCOPE_ENTER(scope, "step"); TLM_PROBE_SCOPE_EXIT(scope, 0));
    return 0;
}
