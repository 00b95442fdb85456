/* SPDX-License-Identifier: MIT
 * outermost.c: calls Python code as the outermost frame, as the interpreter itself calls a script.
 *
 * The frames of whoever calls are taken off the thread's chain and put back afterwards; they are owned and kept alive by
 * their callers, which wait below on the C stack. So stacks, warnings and the recursion limit are those of a plain run.
 */
#include <Python.h>

#include "tlmem_python.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030F0000

#if PY_VERSION_HEX < 0x030D0000
#define CURRENT_FRAME(tstate) ((tstate)->cframe->current_frame)
#else
#define CURRENT_FRAME(tstate) ((tstate)->current_frame)
#endif
#if PY_VERSION_HEX < 0x030C0000
#define RECURSION_LIMIT(tstate) ((tstate)->recursion_limit)
#define RECURSION_REMAINING(tstate) ((tstate)->recursion_remaining)
#else
#define RECURSION_LIMIT(tstate) ((tstate)->py_recursion_limit)
#define RECURSION_REMAINING(tstate) ((tstate)->py_recursion_remaining)
#endif

/* The exception that is set, with its traceback; a new reference. */
static PyObject *take_exception(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
#endif
}

tlm_status tlm_call_outermost(uint64_t callable, uint64_t arguments, uint64_t outcome)
{
    PyObject *called = (PyObject *)(uintptr_t)callable;
    PyObject *given = (PyObject *)(uintptr_t)arguments;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyThreadState *tstate = PyThreadState_Get();

    Py_INCREF(called);
    Py_INCREF(given);
    void *callers = CURRENT_FRAME(tstate);
    int depth = RECURSION_LIMIT(tstate) - RECURSION_REMAINING(tstate);
    CURRENT_FRAME(tstate) = NULL;
    RECURSION_REMAINING(tstate) = RECURSION_LIMIT(tstate);

    PyObject *result =
        PyCode_Check(called) ? PyEval_EvalCode(called, given, given) : PyObject_CallObject(called, given);
    PyObject *error = result == NULL ? take_exception() : NULL;

    CURRENT_FRAME(tstate) = callers;
    RECURSION_REMAINING(tstate) = RECURSION_LIMIT(tstate) - depth; /* the limit may be another by now */
    Py_DECREF(called);
    Py_DECREF(given);
    Py_XDECREF(result);
    tlm_status status =
        PyList_Append((PyObject *)(uintptr_t)outcome, error == NULL ? Py_None : error) == 0 ? TLM_OK : TLM_NO_MEMORY;
    PyErr_Clear();
    Py_XDECREF(error);
    PyGILState_Release(gil);
    return status;
}

#else

tlm_status tlm_call_outermost(uint64_t callable, uint64_t arguments, uint64_t outcome)
{
    (void)callable;
    (void)arguments;
    (void)outcome;
    return TLM_UNSUPPORTED;
}

#endif
