/* SPDX-License-Identifier: MIT
 * bench.c: the public calls about sites that Python makes, and the loops that measure what an event costs.
 *
 * cffi lets go of the GIL around each call, while sites are found best with it; so they take it back.
 */
#include "pycode.h"

uint32_t tlm_site_current(void)
{
    PyThreadState *own = tlmi_pycode_own_thread();
    if (own == NULL || tlmi_python_is_ending())
        return 0;
    PyGILState_STATE state = PyGILState_Ensure();
    uint32_t site = tlmi_pystack_site();
    PyGILState_Release(state);
    return site;
}

/* As source_numpy.c records an array that is made and freed again, two events. */
static void append_pairs(uint64_t pairs, int stack)
{
    for (uint64_t i = 0; i < pairs; i++) {
        uint64_t address = 0x10000000u + (i & 63) * 4096;
        tlmi_event_append(TLM_KIND_ALLOC, TLM_DEVICE_PROBE, address, 2048, stack ? tlmi_pystack_site() : 0, 1);
        tlmi_event_append(TLM_KIND_FREE, TLM_DEVICE_PROBE, address, 0, stack ? tlmi_pystack_site() : 0, 0);
    }
}

uint64_t tlm_bench_events(uint64_t count, int stack)
{
    if (!tlmi_probe_on())
        return 0;
    PyGILState_STATE state = {0};
    if (stack)
        state = PyGILState_Ensure();
    uint64_t begin = tlmi_clock_ns();
    append_pairs(count / 2, stack);
    uint64_t end = tlmi_clock_ns();
    if (stack)
        PyGILState_Release(state);
    return end - begin;
}

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
