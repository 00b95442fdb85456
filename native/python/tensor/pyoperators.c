/* SPDX-License-Identifier: MIT
 * pyoperators.c: the operators of a tensor, straight from the interpreter to an op.
 *
 * What is not for the ops goes on to the function of Python that `operators` was given, which computes with NumPy.
 */
#include "python/tensor/pyops.h"

enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, MATMUL, NEGATIVE, OPERATORS };
static const char *const names[OPERATORS] = {"add", "subtract", "multiply", "divide", "power", "matmul", "negative"};
static int rows[OPERATORS]; /* -1: no such row */
static PyObject *others[OPERATORS];

static PyObject *operate(int which, uint32_t count, PyObject *const *operands)
{
    if (others[which] == NULL)
        Py_RETURN_NOTIMPLEMENTED;
    ops_call call;
    call.params.count = 0;
    PyObject *made = tlmi_ops_apply(rows[which], count, operands, &call, 0);
    if (made != Py_NotImplemented)
        return made;
    Py_DECREF(made);
    return PyObject_Vectorcall(others[which], operands, count, NULL);
}

PyObject *tlmi_operator_add(PyObject *left, PyObject *right)
{
    return operate(ADD, 2, (PyObject *[]){left, right});
}

PyObject *tlmi_operator_subtract(PyObject *left, PyObject *right)
{
    return operate(SUBTRACT, 2, (PyObject *[]){left, right});
}

PyObject *tlmi_operator_multiply(PyObject *left, PyObject *right)
{
    return operate(MULTIPLY, 2, (PyObject *[]){left, right});
}

PyObject *tlmi_operator_divide(PyObject *left, PyObject *right)
{
    return operate(DIVIDE, 2, (PyObject *[]){left, right});
}

PyObject *tlmi_operator_power(PyObject *left, PyObject *right, PyObject *modulus)
{
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    return operate(POWER, 2, (PyObject *[]){left, right});
}

PyObject *tlmi_operator_matmul(PyObject *left, PyObject *right)
{
    return operate(MATMUL, 2, (PyObject *[]){left, right});
}

PyObject *tlmi_operator_negative(PyObject *value)
{
    return operate(NEGATIVE, 1, &value);
}

static PyObject *take_operators(PyObject *self, PyObject *given)
{
    (void)self;
    if (!PyDict_Check(given))
        return PyErr_Format(PyExc_TypeError, "expected a dict of functions by name of the op");
    for (int i = 0; i < OPERATORS; i++) {
        PyObject *function = PyDict_GetItemString(given, names[i]);
        if (function == NULL)
            return PyErr_Format(PyExc_KeyError, "%s", names[i]);
        rows[i] = ops_row_named(names[i]);
        Py_INCREF(function);
        Py_XSETREF(others[i], function);
    }
    Py_RETURN_NONE;
}

PyMethodDef tlmi_operators_methods[] = {
    {"operators", take_operators, METH_O, "operators(functions): what computes an operator that is not for the ops."},
    {NULL, NULL, 0, NULL},
};
