/* SPDX-License-Identifier: MIT
 * pyaxes.c: functions along axes, straight from what the program says of the axes to the op.
 *
 * An axis is an integer, axes are a tuple of them or None, which is all. What is said in another way, and what is wrong, is left
 * to Python, which also says what is wrong. Keeps nothing; under the GIL.
 */
#include <string.h>

#include "python/tensor/pyops.h"

/* The axis of a tensor with so many that an integer means; -1: it is left to Python. */
static int axis_of(PyObject *given, int axes)
{
    if (!PyLong_CheckExact(given))
        return -1;
    int overflow;
    long axis = PyLong_AsLongAndOverflow(given, &overflow);
    if (overflow || axis < -axes || axis >= axes)
        return -1;
    return (int)(axis < 0 ? axis + axes : axis);
}

/* Axes as bits; false: they are left to Python. */
static bool mask_of(PyObject *given, int axes, int64_t *mask)
{
    *mask = 0;
    if (given == Py_None) {
        *mask = (INT64_C(1) << axes) - 1;
        return true;
    }
    bool many = PyTuple_CheckExact(given);
    for (Py_ssize_t i = 0; i < (many ? PyTuple_GET_SIZE(given) : 1); i++) {
        int axis = axis_of(many ? PyTuple_GET_ITEM(given, i) : given, axes);
        if (axis < 0 || *mask >> axis & 1)
            return false;
        *mask |= INT64_C(1) << axis;
    }
    return true;
}

/* The row, and how many axes the tensor has; -1: it is left to Python. */
static int begin(PyObject *const *given, long *row)
{
    *row = PyLong_AsLong(given[0]);
    const tlm_tensor *tensor = tlmi_ops_is_tensor(given[1]) ? tlmi_tensor_described((tlmi_reference *)given[1]) : NULL;
    return tensor != NULL ? tensor->axes : -1;
}

PyObject *tlmi_axes_reduce(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    ops_call call;
    long row, last = count == 5 ? PyLong_AsLong(given[4]) : 0;
    if (count < 4 || count > 5)
        return PyErr_Format(PyExc_TypeError, "expected a row, a tensor, axes, a truth value and at most one number");
    int axes = begin(given, &row);
    if (PyErr_Occurred())
        return NULL;
    if (axes < 0 || !PyBool_Check(given[3]) || !mask_of(given[2], axes, &call.params.n[0]))
        Py_RETURN_NOTIMPLEMENTED;
    memset(call.params.x, 0, sizeof call.params.x);
    call.params.n[1] = given[3] == Py_True;
    call.params.n[2] = last;
    call.params.count = count == 5 ? 3 : 2;
    return tlmi_ops_apply((int)row, 1, given + 1, &call, 0);
}

PyObject *tlmi_axes_along(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    ops_call call;
    long row;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "expected a row, a tensor and an axis");
    int axes = begin(given, &row), axis = axes > 0 ? axis_of(given[2], axes) : -1;
    if (PyErr_Occurred())
        return NULL;
    if (axis < 0)
        Py_RETURN_NOTIMPLEMENTED;
    memset(call.params.x, 0, sizeof call.params.x);
    call.params.n[0] = axis;
    call.params.count = 1;
    return tlmi_ops_apply((int)row, 1, given + 1, &call, 0);
}
