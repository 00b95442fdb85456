/* SPDX-License-Identifier: MIT
 * pyreference.h: what pyreference.c and pybuffer.c share: the Python object that may hold a count.
 */
#ifndef TLMI_PYREFERENCE_H
#define TLMI_PYREFERENCE_H

#include <Python.h>
#include <structmember.h>

#include "python.h"

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
} tlmi_reference;

/* ---- pyplace.c ---- */
/* The folder whose files are the runtime's own. */
void tlmi_place_init(PyObject *folder);
/* The innermost code that is not, a new reference, and the instruction in it; NULL: there is none. */
PyCodeObject *tlmi_place_here(int *instruction);

/* ---- pyreference.c ---- */
/* Gives its count back if it has one and the object is alive. Keeps the exception that is set. Needs the GIL. */
void tlmi_reference_let_go(tlmi_reference *self);
/* ---- pybuffer.c ---- */
/* The buffer of an object that tells it by __buffer__, which Python itself does from 3.12 on. */
int tlmi_reference_buffer(PyObject *self, Py_buffer *view, int flags);
/* A type over the other one: memory that is lent out, as a buffer; NULL with an exception. */
PyObject *tlmi_lent_type(PyObject *reference_type);
/* A buffer of an object's payload that stays while the buffer lives, whoever frees the object; of no bytes when it is freed
 * or has none. NULL with an exception. */
PyObject *tlmi_pinned_memory(tlm_object object, Py_ssize_t bytes);
#endif
