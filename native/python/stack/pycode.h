/* SPDX-License-Identifier: MIT
 * pycode.h: which Python thread state is the caller's, and the numbers of code objects. For pystack.c and pybench.c.
 */
#ifndef TLMI_PYCODE_H
#define TLMI_PYCODE_H

#include <Python.h>

#include "log/log.h"

extern _Atomic uint64_t tlmi_pycode_current_epoch;
/* The code that every call of a PyTorch module passes through, Module._wrapped_call_impl; 0: it did not run yet. */
extern _Atomic uintptr_t tlmi_pycode_module_call;

/* The number of a code object the caller runs, from 1. One that was never met is named in the file first. Needs no GIL. 0: no
 * memory or room, another interpreter's, or the interpreter ends. */
uint32_t tlmi_pycode_number(PyObject *code, PyThreadState *tstate);
/* UTF-8 of a str, surrogates passed through; as many whole characters as there is room for. Returns how many bytes. */
size_t tlmi_pycode_text(PyObject *text, char *out, size_t room);
/* Forgets all numbers and begins a new epoch. Needs no GIL. */
void tlmi_pycode_reset(void);

/* Changes whenever addresses of code objects that had a number may mean others. */
static inline uint64_t tlmi_pycode_epoch(void)
{
    return atomic_load_explicit(&tlmi_pycode_current_epoch, memory_order_acquire);
}

static inline bool tlmi_python_is_ending(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* Whether the caller, whose thread state this is, may touch Python objects. */
static inline bool tlmi_pycode_holds_gil(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked() == tstate;
#else
    return _PyThreadState_UncheckedGet() == tstate;
#endif
}

/* The caller's thread state, held or let go of; NULL when there is none that may be looked at. When the interpreter ends it
 * frees the states of other threads, so from then on only the thread that holds the GIL has one. */
static inline PyThreadState *tlmi_pycode_own_thread(void)
{
#if PY_VERSION_HEX >= 0x030C0000
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState *held = PyThreadState_GetUnchecked();
#else
    PyThreadState *held = _PyThreadState_UncheckedGet();
#endif
    if (tlmi_likely(held != NULL))
        return held;
    return tlmi_python_is_ending() ? NULL : PyGILState_GetThisThreadState();
#else
    /* Up to 3.11 the unchecked state is that of whichever thread holds the GIL. */
    PyThreadState *own = PyGILState_GetThisThreadState();
    if (own == NULL || tlmi_likely(_PyThreadState_UncheckedGet() == own))
        return own;
    return tlmi_python_is_ending() ? NULL : own;
#endif
}
#endif
