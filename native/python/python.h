/* SPDX-License-Identifier: MIT
 * python.h: what the files beside it share. They and the core meet in interpreter.c's table (internal.h).
 */
#ifndef TLMI_PYTHON_H
#define TLMI_PYTHON_H

#include "platform/internal.h"
#include "python/tlmem_python.h"

/* ---- pystack.c: the walk of interpreter frames ---- */
uint32_t tlmi_pystack_site(void);         /* site of the calling thread's Python stack; 0: none. Needs no GIL */
uint32_t tlmi_pystack_whole_site(void);   /* the same; 0 when a part of it is new and cannot be named without the GIL */
uint32_t tlmi_pystack_patient_site(void); /* the same with the GIL, waiting for it; 0 without an interpreter or stack */
void tlmi_pystack_init(uint32_t stack_depth);
void tlmi_pystack_reset(void);

/* ---- source_numpy.c, source_pyheap.c ---- */
uint64_t tlmi_numpy_untouched_bytes(uint64_t budget_ns, bool *known);
int64_t tlmi_numpy_live_bytes(void); /* allocated less freed since the source was installed, to about 16 kB a thread */
uint64_t tlmi_pyheap_arena_bytes(bool *known);
uint64_t tlmi_pyheap_large_bytes(bool *known);
uint64_t tlmi_pyheap_module_count(bool *known);

/* ---- holders_when.c ---- */
void tlmi_holders_tick(void); /* by the service thread: asks for a snapshot of holders when one is due */

/* ---- numpy_loops.c ---- */
/* Puts NumPy's inner loops where the ops find them (ops.h), and imports NumPy for that. 0, or -1 with an exception. Needs the
 * GIL; once is enough, again is harmless. */
int tlmi_numpy_loops_init(void);

/* True while NumPy allocates, resizes or frees array data in this thread. From NumPy 2.5 on that goes through Python's raw
 * allocator; it is tracked as arrays and must not count as Python's heap as well. */
extern __thread bool tlmi_pyheap_is_array;
#endif
