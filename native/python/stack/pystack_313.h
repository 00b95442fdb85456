/* SPDX-License-Identifier: MIT
 * pystack_313.h: CPython 3.13's private layout of interpreter frames; the contract is in pystack.c.
 *
 * As 3.12, but the current frame hangs on the thread state and instr_ptr is the instruction that runs.
 */
#define Py_BUILD_CORE 1
#include "internal/pycore_frame.h"
#undef Py_BUILD_CORE

#define PYSTACK_METHOD "3.13 private frames"
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
    if (frame->owner == FRAME_OWNED_BY_CSTACK)
        return NULL;
    PyObject *code = frame->f_executable;
    return ((PyCodeObject *)code)->co_flags & CO_NO_MONITORING_EVENTS ? NULL : code;
}

/* The first argument of a function that has one and keeps it there; borrowed. */
static inline PyObject *pyframe_first_local(pyframe *frame)
{
    return frame->localsplus[0];
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
