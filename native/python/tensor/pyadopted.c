/* SPDX-License-Identifier: MIT
 * pyadopted.c: what adopted memory does at its end when its owner is a Python object.
 *
 * The core calls these from whatever thread frees the object, with none of its locks held. When the interpreter ends, only
 * the thread that ends it may touch Python objects: for others the owner stays, as all objects do that are alive then.
 */
#include "python/stack/pycode.h"

/* Whether the thread may go on, with the GIL held then; what to give back is in *state, *taken. */
static bool enter_python(PyGILState_STATE *state, bool *taken)
{
    *taken = false;
    if (!Py_IsInitialized())
        return false;
    PyThreadState *own = tlmi_pycode_own_thread();
    if (own != NULL && tlmi_pycode_holds_gil(own))
        return true;
    if (tlmi_python_is_ending())
        return false;
    *state = PyGILState_Ensure();
    *taken = true;
    return true;
}

static void drop_owner(PyObject *owner, bool call)
{
    PyGILState_STATE state;
    bool taken;
    if (!enter_python(&state, &taken))
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (call) {
        PyObject *result = PyObject_CallNoArgs(owner);
        if (result == NULL)
            PyErr_WriteUnraisable(owner);
        Py_XDECREF(result);
    }
    Py_DECREF(owner);
    PyErr_Restore(type, value, trace);
    if (taken)
        PyGILState_Release(state);
}

void tlm_python_drop_reference(void *context)
{
    drop_owner(context, false);
}

void tlm_python_drop_call(void *context)
{
    drop_owner(context, true);
}

void *tlm_python_keep(uint64_t owner)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *kept = (PyObject *)(uintptr_t)owner;
    Py_INCREF(kept);
    PyGILState_Release(state);
    return kept;
}
