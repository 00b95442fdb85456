/* SPDX-License-Identifier: MIT
 * pybench.c: the loops that measure what an event costs, with and without a Python stack.
 *
 * cffi lets go of the GIL around each call, while sites are found best with it; so they take it back.
 */
#include "python/stack/pycode.h"
#include "python/stack/pystack.h"
#include "tlmem_python.h"

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
