/* SPDX-License-Identifier: MIT
 * pyops.h: what pyops.c, pytape.c, pytensor.c and pyoperators.c share: ops on Python tensors, and the tape in force.
 */
#ifndef TLMI_PYOPS_H
#define TLMI_PYOPS_H

#include "ops.h"
#include "pyreference.h"

/* Python functions and types that the C side calls; set once, borrowed for ever. See the method `connect`. */
typedef struct {
    PyTypeObject *tensor_class; /* of results */
    PyTypeObject *number_class; /* numpy.generic */
    PyObject *threads;          /* dict of the threads that Python knows */
    PyObject *settle;           /* puts the strand of the running task in force */
    PyObject *failed;           /* (status, what, operands, message): raises */
    PyObject *float_error;      /* (name, flags): warns or raises as numpy.errstate says */
} tlmi_python_side;
extern tlmi_python_side tlmi_side;

/* ---- pyops.c ---- */
/* The module of functions that Python calls; a new reference, NULL with an exception. */
PyObject *tlmi_ops_module(void);
/* How: what is not for the ops raises; the result belongs to its handle, scope or not. */
enum { TLMI_STRICTLY = 1, TLMI_IN_NO_SCOPE = 2 };
/* Computes a row with operands that are tensors and numbers, makes the tensor, records it on the tape. Py_NotImplemented:
 * not for the ops, unless TLMI_STRICTLY. NULL with an exception. Of `call` only the parameters are filled in before. */
PyObject *tlmi_ops_apply(int row, uint32_t count, PyObject *const *operands, ops_call *call, unsigned how);
/* Raises what a status says through `failed`; NULL. The operands may be NULL. */
PyObject *tlmi_ops_raise(int status, const char *what, uint32_t count, PyObject *const *operands, const char *message);
/* Whether `object` is a tensor. */
bool tlmi_ops_is_tensor(PyObject *object);
static inline bool tlmi_other_threads(void)
{
    return tlmi_side.threads != NULL && PyDict_GET_SIZE(tlmi_side.threads) > 1;
}

/* ---- pyresults.c ---- */
/* Gives the strand of the running task its turn. 0, or -1 with an exception. */
int tlmi_ops_settle(void);
/* A Python tensor over a fresh floating object, or (view_of) over that one's memory; NULL with an exception: the
 * floating count is then given back. */
tlmi_reference *tlmi_ops_tensor(const tlm_tensor *out, tlmi_reference *view_of, uint64_t scope);
/* A Python tensor in no scope that holds one more count of what others hold; NULL with an exception. */
PyObject *tlmi_ops_name_held(const tlm_tensor *tensor);

/* ---- pytape.c ---- */
extern PyMethodDef tlmi_tape_methods[];
/* The tape that records now; NULL with an exception. */
tlm_tape *tlmi_tape_in_force(void);
/* Records call->out, which `made` is, and gives `made` its slot. The call owns what is to be saved until TLM_OK.
 * `references`: of the inputs, NULL for a number. */
tlm_status tlmi_tape_keep(int row, ops_call *call, tlmi_reference *const *references, tlmi_reference *made);
/* Records an entry, whose slots are filled in here: leaves among the references that have none get one. */
tlm_status tlmi_tape_record_for(tlm_tape *tape, tlm_record *entry, tlmi_reference *const *references,
                                const uint8_t *needs, tlm_slot *slots, tlm_slot *out);
/* The slot of an operand on this tape, a leaf that has none yet gets one; 0: it needs no gradient. */
tlm_status tlmi_tape_slot_of(tlm_tape *tape, tlmi_reference *reference, tlm_slot *out);
/* A Python tensor in no scope that holds one more count of what the tensor is over; of one number a copy. NULL with an
 * exception. */
PyObject *tlmi_tape_named(const tlm_tensor *tensor);
int tlmi_tape_init(void); /* 0, or -1 with an exception */

/* ---- pyslices.c ---- */
/* part(tensor, index): the view that an index of integers, slices, None and ... gives; NotImplemented otherwise. */
PyObject *tlmi_slices_part(PyObject *self, PyObject *const *given, Py_ssize_t count);

/* ---- pyoperators.c ---- */
extern PyMethodDef tlmi_operators_methods[];
PyObject *tlmi_operator_add(PyObject *left, PyObject *right);
PyObject *tlmi_operator_subtract(PyObject *left, PyObject *right);
PyObject *tlmi_operator_multiply(PyObject *left, PyObject *right);
PyObject *tlmi_operator_divide(PyObject *left, PyObject *right);
PyObject *tlmi_operator_power(PyObject *left, PyObject *right, PyObject *modulus);
PyObject *tlmi_operator_matmul(PyObject *left, PyObject *right);
PyObject *tlmi_operator_negative(PyObject *value);
#endif
