/* SPDX-License-Identifier: MIT
 * sources.h: what NumPy's array data and Python's own heap take. source_numpy.c and source_pyheap.c count it.
 */
#ifndef TLMI_SOURCES_H
#define TLMI_SOURCES_H

#include "log/log.h"
#include "tlmem_python.h"

/* ---- source_numpy.c ---- */
uint64_t tlmi_numpy_untouched_bytes(uint64_t budget_ns, bool *known);
int64_t tlmi_numpy_live_bytes(void); /* allocated less freed since the source was installed, to about 16 kB a thread */

/* ---- source_pyheap.c ---- */
uint64_t tlmi_pyheap_arena_bytes(bool *known);
uint64_t tlmi_pyheap_large_bytes(bool *known);
uint64_t tlmi_pyheap_module_count(bool *known);

/* True while NumPy allocates, resizes or frees array data in this thread. From NumPy 2.5 on that goes through Python's raw
 * allocator; it is tracked as arrays and must not count as Python's heap as well. */
extern __thread bool tlmi_pyheap_is_array;
#endif
