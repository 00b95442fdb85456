/* SPDX-License-Identifier: MIT
 * pystack_314.h: CPython 3.14's and 3.15's private layout of interpreter frames; the contract is in pystack.c.
 *
 * As 3.13, but f_executable and the values of a frame are tagged references, and the frames that stand for no code have other
 * owners.
 */
#define Py_BUILD_CORE 1
#include "internal/pycore_interpframe_structs.h"
#undef Py_BUILD_CORE

#if PY_VERSION_HEX < 0x030F0000
#define PYSTACK_METHOD "3.14 private frames"
#else
#define PYSTACK_METHOD "3.15 private frames"
#endif
typedef struct _PyInterpreterFrame pyframe;

static inline pyframe *pyframe_current(PyThreadState *tstate)
{
    return tstate->current_frame;
}

static inline pyframe *pyframe_outer(pyframe *frame)
{
    return frame->previous;
}

static inline uintptr_t pyframe_position(pyframe *frame)
{
    return (uintptr_t)frame->instr_ptr;
}

/* NULL also for the constant code that calls an inlined __init__: it lies in memory that cannot be written. */
static inline PyObject *pyframe_code(pyframe *frame)
{
    if (frame->owner >= FRAME_OWNED_BY_INTERPRETER)
        return NULL;
    /* Objects are aligned to 8 at least: whatever the tag means, it is in the lowest bits. */
    PyObject *code = (PyObject *)(frame->f_executable.bits & ~(uintptr_t)7);
    return ((PyCodeObject *)code)->co_flags & CO_NO_MONITORING_EVENTS ? NULL : code;
}

/* A value of a frame, counted by it or by who called it; borrowed, NULL: none, or something else than an object. */
static inline PyObject *pyframe_value(pyframe *frame, int index)
{
    uintptr_t bits = frame->localsplus[index].bits;
    return (bits & 2) != 0 ? NULL : (PyObject *)(bits & ~(uintptr_t)7);
}

/* The first argument of a function that has one and keeps it there. */
static inline PyObject *pyframe_first_local(pyframe *frame)
{
    return pyframe_value(frame, 0);
}

/* A release would be needed if frames were counted references. */
static inline void pyframe_release(pyframe *frame)
{
    (void)frame;
}

static inline int pyframe_offset(PyCodeObject *code, uintptr_t position)
{
    return (int)((intptr_t)position - (intptr_t)code->co_code_adaptive);
}
