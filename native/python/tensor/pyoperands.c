/* SPDX-License-Identifier: MIT
 * pyoperands.c: operands from Python: tensors, and numbers, which become tensors without memory.
 *
 * A number gets the dtype that the tensors have. Owns the block of a call with many operands; all under the GIL.
 */
#include "python/tensor/pyoperands.h"

#include "python/tensor/pyrules.h"

#include <float.h>
#include <math.h>

bool tlmi_operands_begin(tlmi_operands *all, uint32_t count)
{
    all->count = count;
    all->block = NULL;
    all->references = all->few_references;
    all->tensors = all->few_tensors;
    all->needs = all->few_needs;
    all->pins = all->few_pins;
    if (tlmi_likely(count <= FEW_INPUTS))
        return true;
    size_t each = sizeof(tlm_tensor) + sizeof(tlmi_reference *) + sizeof(tlm_object) + 1;
    char *block = all->block = PyMem_Malloc(count * each);
    if (block == NULL) {
        PyErr_NoMemory();
        return false;
    }
    all->tensors = (tlm_tensor *)block;
    all->references = (tlmi_reference **)(all->tensors + count);
    all->pins = (tlm_object *)(all->references + count);
    all->needs = (uint8_t *)(all->pins + count);
    return true;
}

/* A number as Python's arithmetic means it; false: none that a dtype with fractions has. */
static bool number_of(PyObject *object, uint8_t dtype, double *out)
{
    if (PyFloat_CheckExact(object))
        *out = PyFloat_AS_DOUBLE(object);
    else if (PyLong_Check(object) || PyFloat_Check(object))
        *out = PyFloat_AsDouble(object);
    else if (tlmi_side.number_class != NULL && PyObject_TypeCheck(object, tlmi_side.number_class)) {
        PyObject *plain = PyObject_CallMethod(object, "item", NULL);
        bool is_number = plain != NULL && (PyLong_Check(plain) || PyFloat_Check(plain));
        *out = is_number ? PyFloat_AsDouble(plain) : 0;
        Py_XDECREF(plain);
        if (!is_number) {
            PyErr_Clear();
            return false;
        }
    } else
        return false;
    if (*out == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return dtype == TLM_FLOAT64 || !isfinite(*out) || fabs(*out) <= FLT_MAX;
}

/* The operands that are tensors: alive, on one device. The dtype of the first with fractions, 0: none; or one of above. */
static int read_tensors(tlmi_operands *all, int row, PyObject *const *given, uint32_t *device)
{
    int dtype = 0;
    const tlm_tensor *first = NULL;
    for (uint32_t i = 0; i < all->count; i++) {
        all->references[i] = NULL;
        if (!tlmi_ops_is_tensor(given[i]))
            continue;
        tlmi_reference *reference = all->references[i] = (tlmi_reference *)given[i];
        tlm_status status = tlmi_reference_check(reference);
        if (tlmi_unlikely(status != TLM_OK)) {
            tlmi_ops_raise((int)status, ops_row_at(row)->name, 1, given + i, "");
            return TLMI_RAISED;
        }
        const tlm_tensor *tensor = tlmi_tensor_described(reference);
        if (tensor == NULL)
            return TLMI_NOT_FOR_OPS;
        if (first == NULL) {
            first = tensor;
            *device = tensor->device;
        } else if (first->device != tensor->device)
            return TLMI_NOT_FOR_OPS;
        if (dtype == 0 && (tensor->dtype == TLM_FLOAT32 || tensor->dtype == TLM_FLOAT64))
            dtype = tensor->dtype;
        all->tensors[i] = *tensor;
    }
    return first != NULL ? dtype : TLMI_NOT_FOR_OPS;
}

static bool read_numbers(tlmi_operands *all, PyObject *const *given, int dtype, uint32_t device)
{
    for (uint32_t i = 0; i < all->count; i++) {
        double value;
        if (all->references[i] != NULL)
            continue;
        if (dtype == 0 || !number_of(given[i], (uint8_t)dtype, &value))
            return false;
        ops_constant(value, (uint8_t)dtype, 0, NULL, &all->tensors[i]);
        all->tensors[i].device = device;
    }
    return true;
}

int tlmi_operands_read(tlmi_operands *all, int row, PyObject *const *given)
{
    uint32_t device = 0;
    int dtype = read_tensors(all, row, given, &device);
    if (dtype < 0)
        return dtype;
    return read_numbers(all, given, dtype, device) ? 0 : TLMI_NOT_FOR_OPS;
}

bool tlmi_operands_need(tlmi_operands *all)
{
    bool any = false;
    if (!tlm_grad_mode_current()) {
        for (uint32_t i = 0; tlmi_unlikely(tlmi_watching) && i < all->count; i++)
            if (all->references[i] != NULL && (all->references[i]->slot != 0 || all->references[i]->requires_grad))
                tlmi_watch_need(all->references[i]);
        return false;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        const tlmi_reference *reference = all->references[i];
        all->needs[i] = reference != NULL && (reference->slot != 0 || reference->requires_grad);
        any |= all->needs[i];
    }
    return any;
}
