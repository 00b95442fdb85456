/* SPDX-License-Identifier: MIT
 * numpy_loops.c: finds the inner loops of NumPy's ufuncs for the ops, once, at import.
 *
 * A ufunc is a public struct of NumPy's C interface: for each signature of types it has a loop over one row of elements. They
 * belong to NumPy, which stays loaded as long as the process. Needs the GIL; ops_loops are written before any op runs.
 */
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/ndarraytypes.h>
#include <numpy/ufuncobject.h>

#include "ops/ops.h"
#include "python/tensor/pyops.h"

_Static_assert(sizeof(intptr_t) == sizeof(npy_intp), "the loops of NumPy count in pointers");

#define NAME_OF_LOOP(number, name) [number] = (name),
static const char *const names[OPS_LOOPS] = {OPS_NUMPY_LOOPS(NAME_OF_LOOP)};

/* The loop whose operands and results are all of the type; false: there is none. */
static bool loop_of(const PyUFuncObject *ufunc, char type, ops_loop *out)
{
    for (int i = 0; i < ufunc->ntypes; i++) {
        const char *types = ufunc->types + (ptrdiff_t)i * ufunc->nargs;
        int same = 0;
        while (same < ufunc->nargs && types[same] == type)
            same++;
        if (same < ufunc->nargs || !ufunc->functions[i])
            continue;
        out->call = (ops_loop_call)ufunc->functions[i];
        out->data = ufunc->data ? (void *)ufunc->data[i] : NULL;
        return true;
    }
    return false;
}

/* Fills the two loops of a ufunc; false with an exception. */
static bool take_loops(PyObject *numpy, PyTypeObject *ufunc_type, const char *name, ops_loop out[2])
{
    PyObject *ufunc = PyObject_GetAttrString(numpy, name);
    if (!ufunc)
        return false;
    bool found = Py_TYPE(ufunc) == ufunc_type;
    found = found && loop_of((PyUFuncObject *)ufunc, NPY_FLOAT, &out[OPS_FLOAT32]) &&
            loop_of((PyUFuncObject *)ufunc, NPY_DOUBLE, &out[OPS_FLOAT64]);
    if (!found)
        PyErr_Format(PyExc_ImportError,
                     "numpy.%s of this NumPy has no loops for float32 and float64; tlmem needs NumPy 2", name);
    Py_DECREF(ufunc);
    return found;
}

int tlmi_numpy_loops_init(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *type = numpy ? PyObject_GetAttrString(numpy, "ufunc") : NULL;
    bool is_done = type && PyType_Check(type);
    for (int name = 0; is_done && name < OPS_LOOPS; name++)
        is_done = take_loops(numpy, (PyTypeObject *)type, names[name], ops_loops[name]);
    is_done = is_done && take_loops(numpy, (PyTypeObject *)type, "matmul", ops_matmul_loops);
    Py_XDECREF(type);
    Py_XDECREF(numpy);
    return is_done ? 0 : -1;
}
