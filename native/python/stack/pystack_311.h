/* SPDX-License-Identifier: MIT
 * pystack_311.h: CPython 3.11's private layout of interpreter frames; the contract is in pystack.c.
 *
 * Before 3.12 there are no frames without code. prev_instr is the code unit before the next one, or just before the first
 * one in a frame that has not begun; both lie inside the code object.
 */
#define Py_BUILD_CORE 1
#include "internal/pycore_frame.h"
#undef Py_BUILD_CORE

#define PYSTACK_METHOD "3.11 private frames"
typedef struct _PyInterpreterFrame pyframe;

static inline pyframe *pyframe_current(PyThreadState *tstate)
{
    return tstate->cframe->current_frame;
}

static inline pyframe *pyframe_outer(pyframe *frame)
{
    return frame->previous;
}

static inline uintptr_t pyframe_position(pyframe *frame)
{
    return (uintptr_t)frame->prev_instr;
}

static inline PyObject *pyframe_code(pyframe *frame)
{
    return (PyObject *)frame->f_code;
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
