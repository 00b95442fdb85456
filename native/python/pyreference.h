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
    PyObject *weak;
    char moved; /* its count was given to another one, and it may not be used */
} tlmi_reference;

/* Gives its count back if it has one and the object is alive. Keeps the exception that is set. Needs the GIL. */
void tlmi_reference_let_go(tlmi_reference *self);
/* The buffer of an object that tells it by __buffer__, which Python itself does from 3.12 on. */
int tlmi_reference_buffer(PyObject *self, Py_buffer *view, int flags);
/* A type over the other one: memory that is lent out, as a buffer; NULL with an exception. */
PyObject *tlmi_lent_type(PyObject *reference_type);
#endif
