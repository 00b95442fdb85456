/* SPDX-License-Identifier: MIT
 * pyreference.h: what pyreference.c and pybuffer.c share: the Python object that may hold a count.
 */
#ifndef TLMI_PYREFERENCE_H
#define TLMI_PYREFERENCE_H

#include <Python.h>
#include <structmember.h>

#include "log/log.h"
#include "tlmem_python.h"
#include "tlmem_tape.h"

typedef struct {
    PyObject_HEAD tlm_object object;
    tlm_holder holder; /* the count that it is; 0: it is only a name */
    uint64_t scope;    /* that took the object when it was made; 0: none. For errors */
    tlm_object base;   /* of a view */
    uint64_t span;     /* bytes of the payload that it looks into */
    PyObject *weak;
    PyObject *array, *owner, *ended; /* of the tensor: NumPy's view, the tensor it looks into, where it was freed */
    PyCodeObject *code;              /* with the instruction, where it was made; NULL: not known */
    int instruction;
    int device;
    char escaped;
    char moved; /* its count was given to another one, and it may not be used */
    /* of a tensor (pytensor.c) */
    char readonly;      /* it shows memory that it must not write to */
    char requires_grad; /* said by the program: it is a leaf */
    char described;     /* `tensor` is filled in */
    tlm_slot slot;     /* its own reference to its slot on a tape; 0: it needs no gradient, or is a leaf not used yet */
    PyObject *shape;   /* a tuple; NULL while `tensor` alone says it */
    PyObject *dtype;   /* one of tlmi_dtype_names, or another name */
    tlm_tensor tensor; /* where its elements are; of a view the object is the base */
} tlmi_reference;

/* ---- pyorigin.c ---- */
/* The folder whose files are the runtime's own. */
void tlmi_place_init(PyObject *folder);
/* The innermost code that is not, a new reference, and the instruction in it; NULL: there is none. */
PyCodeObject *tlmi_place_here(int *instruction);

/* ---- pyreference.c ---- */
PyTypeObject *tlmi_reference_type(void); /* borrowed; NULL: the runtime was never imported */
/* Gives its count back if it has one and the object is alive. Keeps the exception that is set. Needs the GIL. */
void tlmi_reference_let_go(tlmi_reference *self);
enum { TLMI_INNERMOST_SCOPE = 0 };
#define TLMI_NO_SCOPE UINT64_MAX /* the Python object takes it, scope or not */
/* A floating object goes to a scope, or to this Python object; on failure it stays floating. */
tlm_status tlmi_reference_take(tlmi_reference *self, tlm_object object, uint64_t scope);
/* TLM_OK while it may be used, and the tensor that it looks into; recorded as misuse otherwise. */
tlm_status tlmi_reference_check(const tlmi_reference *self);

/* ---- pytensor.c ---- */
enum { TLMI_DTYPES = 6 };
extern PyObject *tlmi_dtype_names[TLMI_DTYPES]; /* by tlm_dtype */
/* The type Operand over Reference: what a tensor has in C; NULL with an exception. */
PyObject *tlmi_operand_type(PyObject *reference_type);
/* Where the elements are; NULL: not for the ops (axes, dtype), no exception. Borrowed. */
const tlm_tensor *tlmi_tensor_described(tlmi_reference *self);
/* Lengths of axes as a tuple, a new reference; NULL with an exception. */
PyObject *tlmi_tensor_shape(tlmi_reference *self);
/* ---- pybuffer.c ---- */
/* The buffer of an object that tells it by __buffer__, which Python itself does from 3.12 on. */
int tlmi_reference_buffer(PyObject *self, Py_buffer *view, int flags);
/* A type over the other one: memory that is lent out, as a buffer; NULL with an exception. */
PyObject *tlmi_lent_type(PyObject *reference_type);
/* A buffer of an object's payload that stays while the buffer lives, whoever frees the object; of no bytes when it is freed
 * or has none. NULL with an exception. */
PyObject *tlmi_pinned_memory(tlm_object object, Py_ssize_t bytes);
#endif
