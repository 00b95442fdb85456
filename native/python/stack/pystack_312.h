/* SPDX-License-Identifier: MIT
 * pystack_312.h: CPython 3.12's private layout of interpreter frames; the contract is in pystack.c.
 *
 * Calls from C into Python put a frame of owner CSTACK between, which stands for no code.
 */
#define Py_BUILD_CORE 1
#include "internal/pycore_frame.h"
#undef Py_BUILD_CORE

#define PYSTACK_METHOD "3.12 private frames"
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
    return frame->owner == FRAME_OWNED_BY_CSTACK ? NULL : (PyObject *)frame->f_code;
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
