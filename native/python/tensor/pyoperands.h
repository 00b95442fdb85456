/* SPDX-License-Identifier: MIT
 * pyoperands.h: the operands of one call of an op, as they come from Python: read, checked, and what wants a gradient.
 */
#ifndef TLMI_PYOPERANDS_H
#define TLMI_PYOPERANDS_H

#include "python/tensor/pyops.h"

enum { FEW_INPUTS = 6 };

/* The operands of one call. */
typedef struct {
    uint32_t count;
    bool other_threads;
    tlmi_reference **references; /* NULL: a number */
    tlm_tensor *tensors;
    uint8_t *needs;
    tlm_object *pins;
    tlmi_reference *few_references[FEW_INPUTS];
    tlm_tensor few_tensors[FEW_INPUTS];
    uint8_t few_needs[FEW_INPUTS];
    tlm_object few_pins[FEW_INPUTS];
    void *block; /* of all four when there are many */
} tlmi_operands;

enum { TLMI_NOT_FOR_OPS = -1, TLMI_RAISED = -2 };

/* Room for so many; false: an exception. Give it back with tlmi_operands_end. */
bool tlmi_operands_begin(tlmi_operands *all, uint32_t count);
static inline void tlmi_operands_end(tlmi_operands *all)
{
    if (all->block != NULL)
        PyMem_Free(all->block);
}
/* Fills in the tensors, alive and on one device, and the numbers in their dtype. 0, or one of above. */
int tlmi_operands_read(tlmi_operands *all, int row, PyObject *const *given);
/* Which want a gradient; whether any does. */
bool tlmi_operands_need(tlmi_operands *all);
#endif
