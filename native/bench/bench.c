/* SPDX-License-Identifier: MIT
 * bench.c: the loop that measures what a probe costs while nothing is recorded. pybench.c has the others.
 */
#include "log/log.h"

uint64_t tlm_bench_disabled(uint64_t count)
{
    uint64_t begin = tlmi_clock_ns();
    for (uint64_t i = 0; i < count; i++) {
        if (tlmi_probe_on())
            tlmi_event_append(TLM_KIND_ALLOC, TLM_DEVICE_PROBE, i, 0, 0, 1);
        /* Keeps the compiler from testing the switch once for all rounds. */
        __asm__ volatile("" ::: "memory");
    }
    return tlmi_clock_ns() - begin;
}
