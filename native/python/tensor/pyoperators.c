/* SPDX-License-Identifier: MIT
 * pyoperators.c: operators, brackets and axes, straight from what the program says to an op.
 *
 * What is not for the ops goes on to the function of Python that `operators` was given, which computes with NumPy.
 */
#include <string.h>

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

/* ---- brackets ----
 * Integers, slices, None and ... are for it; anything else, and what is out of range, is left to Python.
 */

enum { NUMBERS_BEFORE = 2, NUMBERS_OF_AXIS = 3 };

typedef struct {
    ops_params *params;
    int axes;    /* of the tensor */
    int indexed; /* of them so far */
    int out;     /* axes of the part so far */
    bool filled; /* whether ... was met */
} brackets;

static bool add_range(brackets *self, int64_t begin, int64_t stop, int64_t step)
{
    uint32_t at = NUMBERS_BEFORE + NUMBERS_OF_AXIS * (uint32_t)self->indexed;
    if (self->indexed >= self->axes || at + NUMBERS_OF_AXIS > OPS_MOST_NUMBERS)
        return false;
    self->params->n[at] = begin;
    self->params->n[at + 1] = stop;
    self->params->n[at + 2] = step;
    self->indexed++;
    self->out += step != 0;
    return true;
}

static bool add_slice(brackets *self, PyObject *slice)
{
    Py_ssize_t begin, stop, step;
    if (PySlice_Unpack(slice, &begin, &stop, &step) == 0)
        return add_range(self, begin, stop, step);
    PyErr_Clear();
    return false;
}

static bool add_integer(brackets *self, PyObject *integer)
{
    Py_ssize_t index = PyNumber_AsSsize_t(integer, PyExc_IndexError);
    if (index != -1 || !PyErr_Occurred())
        return add_range(self, index, 0, 0);
    PyErr_Clear();
    return false;
}

/* Axes that ... stands for: whole ones, as many as what follows leaves. */
static bool fill(brackets *self, int following)
{
    int rest = self->axes - self->indexed - following;
    if (self->filled || rest < 0)
        return false;
    self->filled = true;
    while (rest-- > 0)
        if (!add_range(self, 0, PY_SSIZE_T_MAX, 1))
            return false;
    return true;
}

static bool is_integer(PyObject *key)
{
    if (PyLong_Check(key))
        return !PyBool_Check(key);
    return PyObject_TypeCheck(key, tlmi_side.number_class) && PyIndex_Check(key);
}

static bool takes_axis(PyObject *key)
{
    return PySlice_Check(key) || is_integer(key);
}

static bool add_key(brackets *self, PyObject *const *keys, Py_ssize_t count, Py_ssize_t at)
{
    PyObject *key = keys[at];
    if (PySlice_Check(key))
        return add_slice(self, key);
    if (key == Py_None) {
        if (self->out >= TLM_MOST_AXES)
            return false;
        self->params->n[1] |= INT64_C(1) << self->out++;
        return true;
    }
    if (key == Py_Ellipsis) {
        int following = 0;
        for (Py_ssize_t i = at + 1; i < count; i++)
            following += takes_axis(keys[i]);
        if (at + 1 == count && !self->filled)
            return true; /* the axes that are left stay whole anyway */
        return fill(self, following);
    }
    return is_integer(key) && add_integer(self, key);
}

static PyObject *part(PyObject *const *given, Py_ssize_t count, unsigned how)
{
    if (count != 2 || !tlmi_ops_is_tensor(given[0]))
        return PyErr_Format(PyExc_TypeError, "expected a tensor and an index");
    static int row = -1;
    if (row < 0 && (row = ops_row_named("slice")) < 0)
        Py_RETURN_NOTIMPLEMENTED;
    const tlm_tensor *tensor = tlmi_tensor_described((tlmi_reference *)given[0]);
    if (tensor == NULL) { /* it is freed, or not for the ops: what an op says of such an operand */
        ops_call none = {.params.count = 0};
        return tlmi_ops_apply(row, 1, given, &none, how);
    }
    bool many = PyTuple_Check(given[1]);
    Py_ssize_t keys = many ? PyTuple_GET_SIZE(given[1]) : 1;
    PyObject *const *key = many ? ((PyTupleObject *)given[1])->ob_item : given + 1;
    ops_call call;
    brackets all = {.params = &call.params, .axes = tensor->axes};
    call.params.n[1] = 0;
    for (Py_ssize_t i = 0; i < keys; i++)
        if (!add_key(&all, key, keys, i))
            Py_RETURN_NOTIMPLEMENTED;
    call.params.n[0] = all.indexed;
    call.params.count = NUMBERS_BEFORE + NUMBERS_OF_AXIS * (uint32_t)all.indexed;
    return tlmi_ops_apply(row, 1, given, &call, how);
}

PyObject *tlmi_slices_part(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    return part(given, count, 0);
}

PyObject *tlmi_slices_seen(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    return part(given, count, TLMI_STRICTLY | TLMI_UNRECORDED | TLMI_SEEN);
}

/* ---- axes ----
 * An axis is an integer, axes are a tuple of them or None, which is all. What is said in another way, and what is wrong, is left
 * to Python, which also says what is wrong. Keeps nothing; under the GIL.
 */

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
