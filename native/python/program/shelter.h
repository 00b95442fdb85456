/* SPDX-License-Identifier: MIT
 * shelter.h: calls of the recorder's own Python code while a program runs.
 */
#ifndef TLMI_SHELTER_H
#define TLMI_SHELTER_H

#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x03100000
#define TLMI_FRAMES_KNOWN 1
#if PY_VERSION_HEX < 0x030D0000
#define TLMI_CURRENT_FRAME(tstate) ((tstate)->cframe->current_frame)
#else
#define TLMI_CURRENT_FRAME(tstate) ((tstate)->current_frame)
#endif
#if PY_VERSION_HEX < 0x030C0000
#define TLMI_RECURSION_LIMIT(tstate) ((tstate)->recursion_limit)
#define TLMI_RECURSION_REMAINING(tstate) ((tstate)->recursion_remaining)
#else
#define TLMI_RECURSION_LIMIT(tstate) ((tstate)->py_recursion_limit)
#define TLMI_RECURSION_REMAINING(tstate) ((tstate)->py_recursion_remaining)
#endif
#else
#define TLMI_FRAMES_KNOWN 0
#endif

/* Calls it with the GIL. No trace, profile or monitoring function sees the call, the program's depth of recursion and its
 * pending exception stay as they are, and none of its handlers of signals runs meanwhile. Returns a new reference, or NULL
 * when it raised; the exception is dropped. */
PyObject *tlmi_shelter_call(PyObject *callable, PyObject *arguments);
#endif
