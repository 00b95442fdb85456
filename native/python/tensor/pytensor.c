/* SPDX-License-Identifier: MIT
 * pytensor.c: what a tensor has in C: its shape and dtype, where its elements are, its slot on a tape, and its operators.
 *
 * The shape is a tuple that Python gave, or lengths in `tensor` that an op gave; either is made from the other when it is
 * first asked for. So are offset and strides: those of an array that Python laid over the memory, else row by row.
 */
#include <stddef.h>

#include "python/tensor/pyops.h"

PyObject *tlmi_dtype_names[TLMI_DTYPES];
static const uint8_t item_bytes[TLMI_DTYPES] = {0, 4, 8, 8, 1, 4};

/* ---- where the elements are ---- */

static uint8_t dtype_of(const tlmi_reference *self)
{
    for (uint8_t i = 1; i < TLMI_DTYPES; i++)
        if (self->dtype == tlmi_dtype_names[i])
            return i;
    for (uint8_t i = 1; self->dtype != NULL && PyUnicode_Check(self->dtype) && i < TLMI_DTYPES; i++)
        if (PyUnicode_Compare(self->dtype, tlmi_dtype_names[i]) == 0)
            return i;
    return 0;
}

/* Lengths as Python gave them, and strides row by row. */
static bool describe_rows(PyObject *shape, tlm_tensor *out)
{
    if (shape == NULL || !PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > TLM_MOST_AXES)
        return false;
    out->axes = (uint8_t)PyTuple_GET_SIZE(shape);
    int64_t step = item_bytes[out->dtype];
    for (int axis = out->axes - 1; axis >= 0; axis--) {
        out->shape[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, axis));
        if (out->shape[axis] < 0) {
            PyErr_Clear();
            return false;
        }
        out->strides[axis] = step;
        step *= out->shape[axis];
    }
    return true;
}

/* Offset and strides of an array over the payload. */
static bool describe_array(PyObject *array, const void *payload, tlm_tensor *out)
{
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_STRIDES) < 0) {
        PyErr_Clear();
        return false;
    }
    bool fits = view.ndim == out->axes;
    for (int axis = 0; fits && axis < view.ndim; axis++)
        out->strides[axis] = view.strides[axis];
    if (fits && view.len > 0 && payload != NULL)
        out->at.offset = (uint64_t)((char *)view.buf - (char *)payload);
    PyBuffer_Release(&view);
    return fits;
}

static bool describe(tlmi_reference *self)
{
    tlm_tensor *tensor = &self->tensor;
    tensor->object = self->base != 0 ? self->base : self->object;
    tensor->at.offset = 0;
    tensor->device = (uint32_t)self->device;
    tensor->dtype = dtype_of(self);
    if (tensor->object == 0 || tensor->dtype == 0 || !describe_rows(self->shape, tensor))
        return false;
    if (self->array != NULL && self->array != Py_None) {
        /* Who computes with what was freed says so, once; looking at it here does not count as a use. */
        tlm_object_info known;
        if (tlm_object_describe(tensor->object, &known) != TLM_OK || !known.alive ||
            !describe_array(self->array, tlm_payload(tensor->object), tensor))
            return false;
    }
    self->described = 1;
    return true;
}

const tlm_tensor *tlmi_tensor_described(tlmi_reference *self)
{
    return tlmi_likely(self->described) || describe(self) ? &self->tensor : NULL;
}

PyObject *tlmi_tensor_shape(tlmi_reference *self)
{
    if (self->shape == NULL) {
        if (!self->described) {
            PyErr_SetString(PyExc_AttributeError, "it has no shape yet");
            return NULL;
        }
        PyObject *shape = PyTuple_New(self->tensor.axes);
        for (int axis = 0; shape != NULL && axis < self->tensor.axes; axis++) {
            PyObject *length = PyLong_FromLongLong(self->tensor.shape[axis]);
            if (length == NULL)
                Py_CLEAR(shape);
            else
                PyTuple_SET_ITEM(shape, axis, length);
        }
        self->shape = shape;
    }
    Py_XINCREF(self->shape);
    return self->shape;
}

/* ---- attributes ---- */

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    return tlmi_tensor_shape((tlmi_reference *)self);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *dtype = ((tlmi_reference *)self)->dtype;
    if (dtype == NULL)
        PyErr_SetString(PyExc_AttributeError, "it has no dtype yet");
    Py_XINCREF(dtype);
    return dtype;
}

static int set_named(tlmi_reference *self, PyObject **place, PyObject *value)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "a tensor cannot be without its shape and dtype");
        return -1;
    }
    Py_INCREF(value);
    Py_XSETREF(*place, value);
    self->described = 0;
    return 0;
}

static int set_shape(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    return set_named((tlmi_reference *)self, &((tlmi_reference *)self)->shape, value);
}

static int set_dtype(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    return set_named((tlmi_reference *)self, &((tlmi_reference *)self)->dtype, value);
}

/* () for elements that lie row by row from the beginning, else (offset, strides). */
static PyObject *layout(PyObject *object, PyObject *unused)
{
    (void)unused;
    tlmi_reference *self = (tlmi_reference *)object;
    if (!self->described)
        return PyTuple_New(0);
    const tlm_tensor *tensor = &self->tensor;
    if ((tensor->at.offset == 0 && ops_is_dense(tensor)) || ops_elements(tensor) == 0)
        return PyTuple_New(0);
    PyObject *strides = PyTuple_New(tensor->axes);
    for (int axis = 0; strides != NULL && axis < tensor->axes; axis++)
        PyTuple_SET_ITEM(strides, axis, PyLong_FromLongLong(tensor->strides[axis]));
    return strides != NULL ? Py_BuildValue("(KN)", (unsigned long long)tensor->at.offset, strides) : NULL;
}

static PyMethodDef methods[] = {
    {"_layout", layout, METH_NOARGS,
     "Where an op laid its elements: () row by row from the beginning, else (offset, strides) in bytes."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"_slot", T_ULONGLONG, offsetof(tlmi_reference, slot), READONLY, "Its slot on a tape; 0: none."},
    {"_requires_grad", T_BOOL, offsetof(tlmi_reference, requires_grad), READONLY, "Whether it is a leaf."},
    {"_readonly", T_BOOL, offsetof(tlmi_reference, readonly), 0, "Whether its memory must not be written to."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"shape", get_shape, set_shape, "Lengths of its axes.", NULL},
    {"dtype", get_dtype, set_dtype, "Name of its dtype.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "What a tensor has in C: shape, dtype, its slot on a tape, and operators."},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {Py_nb_add, tlmi_operator_add},
    {Py_nb_subtract, tlmi_operator_subtract},
    {Py_nb_multiply, tlmi_operator_multiply},
    {Py_nb_true_divide, tlmi_operator_divide},
    {Py_nb_power, tlmi_operator_power},
    {Py_nb_matrix_multiply, tlmi_operator_matmul},
    {Py_nb_negative, tlmi_operator_negative},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tlmem._native.Operand",
    .basicsize = sizeof(tlmi_reference),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

PyObject *tlmi_operand_type(PyObject *reference_type)
{
    static const char *const names[TLMI_DTYPES] = {"", "float32", "float64", "int64", "bool", "int32"};
    for (int i = 0; i < TLMI_DTYPES; i++)
        if (tlmi_dtype_names[i] == NULL && (tlmi_dtype_names[i] = PyUnicode_InternFromString(names[i])) == NULL)
            return NULL;
    return PyType_FromSpecWithBases(&spec, reference_type);
}
