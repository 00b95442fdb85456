/* SPDX-License-Identifier: MIT
 * pystack_public.h: the walk with CPython's public functions, for versions and builds whose layout is not known here.
 *
 * Creates frame objects, needs the calling thread to be attached to the interpreter, and costs about ten times as much. A
 * position is an address inside the code object that no other instruction has.
 */
#define PYSTACK_METHOD "public API"
#define PYSTACK_NEEDS_GIL 1
typedef PyFrameObject pyframe;

static inline pyframe *pyframe_current(PyThreadState *tstate)
{
    return PyThreadState_GetFrame(tstate);
}

/* Consumes the inner frame's reference. */
static inline pyframe *pyframe_outer(pyframe *frame)
{
    pyframe *outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    return outer;
}

/* Borrowed: the frame, which runs, keeps it alive. */
static inline PyObject *pyframe_code(pyframe *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code);
    return (PyObject *)code;
}

static inline uintptr_t pyframe_position(pyframe *frame)
{
    return (uintptr_t)pyframe_code(frame) + sizeof(PyObject) + (uintptr_t)(PyFrame_GetLasti(frame) + 2);
}

/* Not to be had without creating a dict of locals. */
static inline PyObject *pyframe_first_local(pyframe *frame)
{
    (void)frame;
    return NULL;
}

static inline void pyframe_release(pyframe *frame)
{
    Py_XDECREF(frame);
}

static inline int pyframe_offset(PyCodeObject *code, uintptr_t position)
{
    return (int)(position - (uintptr_t)code - sizeof(PyObject)) - 2;
}
