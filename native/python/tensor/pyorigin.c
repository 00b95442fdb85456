/* SPDX-License-Identifier: MIT
 * pyorigin.c: where in the program a tensor is made: the innermost frame that is not the runtime's own.
 *
 * An error that comes later names the place. Kept for each tensor, so it is a code object and an instruction, and becomes a
 * file and a line only then.
 */
#include <string.h>

#include "python/stack/pyframe.h"
#include "python/tensor/pyreference.h"

static PyObject *own_folder; /* the runtime's; set once, before the first tensor */

void tlmi_place_init(PyObject *folder)
{
    Py_INCREF(folder);
    Py_XSETREF(own_folder, folder);
}

static bool is_own(PyCodeObject *code)
{
    PyObject *file = code->co_filename;
    if (own_folder == NULL || !PyUnicode_IS_COMPACT_ASCII(file) || !PyUnicode_IS_COMPACT_ASCII(own_folder))
        return own_folder != NULL && PyUnicode_Tailmatch(file, own_folder, 0, PY_SSIZE_T_MAX, -1) == 1;
    Py_ssize_t length = PyUnicode_GET_LENGTH(own_folder);
    return PyUnicode_GET_LENGTH(file) >= length &&
           memcmp(PyUnicode_DATA(file), PyUnicode_DATA(own_folder), length) == 0;
}

PyCodeObject *tlmi_place_here(int *instruction)
{
    pyframe *frame = pyframe_current(PyThreadState_Get());
    while (frame != NULL) {
        PyCodeObject *code = (PyCodeObject *)pyframe_code(frame);
        if (code != NULL && !is_own(code)) {
            *instruction = pyframe_offset(code, pyframe_position(frame));
            Py_INCREF(code);
            pyframe_release(frame);
            return code;
        }
        frame = pyframe_outer(frame);
    }
    return NULL;
}
