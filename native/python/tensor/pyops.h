/* SPDX-License-Identifier: MIT
 * pyops.h: what pyops.c, pytape.c, pytensor.c and pyoperators.c share: ops on Python tensors, and the tape in force.
 */
#ifndef TLMI_PYOPS_H
#define TLMI_PYOPS_H

#include "ops/ops.h"
#include "python/tensor/pyreference.h"

/* Python functions and types that the C side calls; set once, borrowed for ever. See the method `connect`. */
typedef struct {
    PyTypeObject *tensor_class; /* of results */
    PyTypeObject *number_class; /* numpy.generic */
    PyObject *threads;          /* dict of the threads that Python knows */
    PyObject *settle;           /* puts the context of the running task in force */
    PyObject *failed;           /* (status, what, operands, message): raises */
    PyObject *float_error;      /* (name, flags): warns or raises as numpy.errstate says */
} tlmi_python_side;
extern tlmi_python_side tlmi_side;

/* ---- pyops.c ---- */
/* The module of functions that Python calls; a new reference, NULL with an exception. */
PyObject *tlmi_ops_module(void);
/* How: what is not for the ops raises; the result belongs to its handle, scope or not; it is computed as if gradients were
 * not recorded now; a view is only a name of the memory it shows, with no object and no event, and keeps the tensor. */
enum { TLMI_STRICTLY = 1, TLMI_IN_NO_SCOPE = 2, TLMI_UNRECORDED = 4, TLMI_SEEN = 8 };
/* Computes a row with operands that are tensors and numbers, makes the tensor, records it on the tape. Py_NotImplemented:
 * not for the ops, unless TLMI_STRICTLY. NULL with an exception. Of `call` only the parameters are filled in before. */
PyObject *tlmi_ops_apply(int row, uint32_t count, PyObject *const *operands, ops_call *call, unsigned how);
/* Likewise into the memory of `out`, which is returned: the bits are those of a result of its own. Py_NotImplemented also when
 * an operand wants a gradient, or `out` is not a tensor that the result may be written to; nothing was written then, nor with an
 * exception, but for one that numpy.errstate asks for: the result is there when its flags are known. `out` may be an operand,
 * or share memory with one. */
PyObject *tlmi_ops_apply_into(int row, uint32_t count, PyObject *const *operands, ops_call *call, unsigned how,
                              PyObject *out);
/* Raises what a status says through `failed`; NULL. The operands may be NULL. */
PyObject *tlmi_ops_raise(int status, const char *what, uint32_t count, PyObject *const *operands, const char *message);
/* Whether `object` is a tensor. */
bool tlmi_ops_is_tensor(PyObject *object);
static inline bool tlmi_other_threads(void)
{
    return tlmi_side.threads != NULL && PyDict_GET_SIZE(tlmi_side.threads) > 1;
}

/* ---- pyresults.c ---- */
/* Gives the context of the running task its turn. 0, or -1 with an exception. */
int tlmi_ops_settle(void);
/* A Python tensor over a fresh floating object, or (view_of) over that one's memory; NULL with an exception: the
 * floating count is then given back. */
tlmi_reference *tlmi_ops_tensor(const tlm_tensor *out, tlmi_reference *view_of, uint64_t scope);
/* A Python tensor that shows memory of another one, and holds that tensor of Python, no count of its own; NULL with an
 * exception. */
tlmi_reference *tlmi_ops_name_seen(const tlm_tensor *tensor, tlmi_reference *other);
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
/* A Python tensor in no scope that holds one more count of what the tensor is over; of one number a copy. NULL with an
 * exception. */
PyObject *tlmi_tape_named(const tlm_tensor *tensor);
enum { TLMI_WRITABLE, TLMI_DIFFERENTIABLE, TLMI_SAVED };
/* Before a tensor is written in place: whether that may be, and if so the tape hears of it; *holder: who saved it. */
int tlmi_tape_about_to_write(const tlmi_reference *tensor, tlm_holder *holder);
int tlmi_tape_init(void); /* 0, or -1 with an exception */

/* ---- pyoperators.c ---- */
/* part(tensor, index): the view that an index of integers, slices, None and ... gives; NotImplemented otherwise. */
PyObject *tlmi_slices_part(PyObject *self, PyObject *const *given, Py_ssize_t count);
PyObject *tlmi_slices_seen(PyObject *self, PyObject *const *given, Py_ssize_t count); /* TLMI_SEEN */
/* reduce(row, tensor, axes, keepdims[, number]) and along(row, tensor, axis): the result of an op over axes; NotImplemented:
 * the axes are said in another way or are wrong, or it is not for the ops. */
PyObject *tlmi_axes_reduce(PyObject *self, PyObject *const *given, Py_ssize_t count);
PyObject *tlmi_axes_along(PyObject *self, PyObject *const *given, Py_ssize_t count);

/* ---- pyguard.c ---- */
/* kind(tensor, gradient, in_rows): its kind as bytes; None: not for the ops. gradient: 0 it needs none, 1 it does, 2: not
 * asked. in_rows: 1: others must have memory of their own or lie row by row. */
PyObject *tlmi_fits_kind(PyObject *self, PyObject *const *given, Py_ssize_t count);
/* fits(kinds, *values): whether each is a tensor of its kind. */
PyObject *tlmi_fits(PyObject *self, PyObject *const *given, Py_ssize_t count);

/* ---- pyoperators.c ---- */
extern PyMethodDef tlmi_operators_methods[];
PyObject *tlmi_operator_add(PyObject *left, PyObject *right);
PyObject *tlmi_operator_subtract(PyObject *left, PyObject *right);
PyObject *tlmi_operator_multiply(PyObject *left, PyObject *right);
PyObject *tlmi_operator_divide(PyObject *left, PyObject *right);
PyObject *tlmi_operator_power(PyObject *left, PyObject *right, PyObject *modulus);
PyObject *tlmi_operator_matmul(PyObject *left, PyObject *right);
PyObject *tlmi_operator_negative(PyObject *value);

/* ---- numpy_loops.c ---- */
/* Puts NumPy's inner loops where the ops find them (ops.h), and imports NumPy for that. 0, or -1 with an exception. Needs the
 * GIL; once is enough, again is harmless. */
int tlmi_numpy_loops_init(void);
#endif
