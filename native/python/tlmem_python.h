/* SPDX-License-Identifier: MIT
 * tlmem_python.h: what only the extension module has: sources inside the interpreter, its stacks, its forks.
 *
 * Not installed: the C library knows nothing of Python. interpreter.c says how both meet.
 */
#ifndef TLMEM_PYTHON_H
#define TLMEM_PYTHON_H

#include "tlmem_tape.h"

/* cffi: begin */
/* ---- sources (source_*.c) ---- */
/* Wraps NumPy's default data allocator in place, for every thread. NumPy must be imported; takes the GIL itself.
 * TLM_UNSUPPORTED: no usable NumPy. Uninstall restores the former functions; arrays made meanwhile stay valid. */
tlm_status tlm_numpy_install(void);
tlm_status tlm_numpy_uninstall(void);
/* Counts Python's arenas and raw allocations from now on; takes the GIL itself. */
tlm_status tlm_pyheap_install(void);
tlm_status tlm_pyheap_uninstall(void);

/* ---- sites (site.c, pystack.c) ---- */
/* "3.11 private frames", "public API": how stacks are walked in this build; static storage. */
const char *tlm_site_method(void);

/* ---- running a program (outermost.c) ---- */
/* Calls Python code with no frame below it, in the calling thread; takes the GIL itself. callable: id() of a code object,
 * then arguments is id() of its globals; or of anything else that is called, then of its argument tuple. Appends None, or
 * the exception that came out, to the list whose id() is outcome. TLM_UNSUPPORTED: nothing was called. */
tlm_status tlm_call_outermost(uint64_t callable, uint64_t arguments, uint64_t outcome);

/* ---- objects of Python and objects of ours (pydrop.c, pyreference.c, pyplace.c, pybuffer.c) ---- */
/* For the `drop` of adopted memory, from any thread; the context comes from tlm_python_keep. They let go of a Python object,
 * or call it without arguments and then let go of it; an exception of the call is reported as unraisable. */
void tlm_python_drop_reference(void *context);
void tlm_python_drop_call(void *context);
/* A reference to the object with this id(), as the context of a drop; the caller has one too. Cannot fail. */
void *tlm_python_keep(uint64_t owner);
/* Appends the types Reference and Lent to the list whose id() it is. The folder, id() of a text, has the files that are never
 * the place where a tensor is made. TLM_NO_MEMORY. */
tlm_status tlm_python_types(uint64_t folder, uint64_t list);

/* ---- fork (pyfork.c) ---- */
/* In place of tlm_fork_after_in_parent, by a Python handler in the main thread: does it as soon as the interpreter is back
 * from the fork, so that Python does not count our thread (pyfork.c). Settle does it at once if it is still to be done; call
 * it before the next fork and before the end of the recording. Cannot fail. */
void tlm_fork_after_in_parent_soon(void);
void tlm_fork_settle(void);

/* ---- measuring (pybench.c) ---- */
/* Records `count` events in a C loop and returns the nanoseconds it took. stack: 0 none, 1 the current stack each time. */
uint64_t tlm_bench_events(uint64_t count, int stack);
/* cffi: end */

#endif
