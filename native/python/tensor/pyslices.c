/* SPDX-License-Identifier: MIT
 * pyslices.c: what stands between the brackets of a tensor, as parameters of the op that gives the part.
 *
 * Integers, slices, None and ... are for it; anything else, and what is out of range, is left to Python.
 */
#include "python/tensor/pyops.h"

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
