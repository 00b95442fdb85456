/* SPDX-License-Identifier: MIT
 * pyguard.c: whether tensors are of the kinds that a compiled function was specialised for; asked at each of its calls.
 *
 * A kind is what `kind` found of one tensor, as bytes; kinds of several tensors are joined. Keeps nothing; under the GIL.
 */
#include <string.h>

#include "python/tensor/pyops.h"

enum { WANTS_NONE, WANTS_ONE, WANTS_ANY };

typedef struct {
    uint32_t device;
    uint8_t dtype, axes;
    uint8_t gradient; /* whether it needs one: WANTS_... */
    uint8_t in_rows;  /* 1: it must have memory of its own, or lie row by row */
    int64_t shape[TLM_MOST_AXES];
} tensor_kind;

PyObject *tlmi_fits_kind(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    long gradient = count == 3 ? PyLong_AsLong(given[1]) : -1, in_rows = count == 3 ? PyLong_AsLong(given[2]) : -1;
    if (gradient < WANTS_NONE || gradient > WANTS_ANY || in_rows < 0 || in_rows > 1 || !tlmi_ops_is_tensor(given[0]))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected a tensor, 0 to 2, and 0 or 1");
    const tlm_tensor *tensor = tlmi_tensor_described((tlmi_reference *)given[0]);
    if (tensor == NULL)
        Py_RETURN_NONE;
    tensor_kind kind;
    memset(&kind, 0, sizeof kind);
    kind.device = tensor->device;
    kind.dtype = tensor->dtype;
    kind.axes = tensor->axes;
    kind.gradient = (uint8_t)gradient;
    kind.in_rows = (uint8_t)in_rows;
    memcpy(kind.shape, tensor->shape, tensor->axes * sizeof *kind.shape);
    return PyBytes_FromStringAndSize((const char *)&kind, sizeof kind);
}

static bool fits(const tensor_kind *kind, PyObject *value)
{
    tlmi_reference *reference = (tlmi_reference *)value;
    if (Py_TYPE(value) != tlmi_side.tensor_class)
        return false;
    const tlm_tensor *tensor = tlmi_tensor_described(reference);
    if (tensor == NULL || tensor->dtype != kind->dtype || tensor->axes != kind->axes || tensor->device != kind->device)
        return false;
    for (int axis = 0; axis < kind->axes; axis++)
        if (tensor->shape[axis] != kind->shape[axis])
            return false;
    if (kind->gradient != WANTS_ANY && (reference->slot != 0 || reference->requires_grad) != kind->gradient)
        return false;
    return !kind->in_rows || reference->base == 0 || ops_is_dense(tensor);
}

PyObject *tlmi_fits(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    if (count < 1 || !PyBytes_Check(given[0]) || PyBytes_GET_SIZE(given[0]) != (count - 1) * (long)sizeof(tensor_kind))
        return PyErr_Format(PyExc_TypeError, "expected kinds and as many values");
    const char *kinds = PyBytes_AS_STRING(given[0]);
    for (Py_ssize_t i = 1; i < count; i++, kinds += sizeof(tensor_kind)) {
        tensor_kind kind; /* bytes need not be aligned */
        memcpy(&kind, kinds, sizeof kind);
        if (!fits(&kind, given[i]))
            Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}
