/* SPDX-License-Identifier: MIT
 * interpose.c: where the interpreter calls the recorder while a program runs: forks, new processes, NumPy's import, the end.
 *
 * What it calls are functions in C: they have no frame, need no depth of recursion, and depend on no name that the program
 * may have replaced. What they leave to Python code is called in shelter. All of it is under the GIL.
 */
#include <Python.h>

#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "python/program/shelter.h"
#include "tlmem_python.h"

static PyObject *object_of(uint64_t id)
{
    return (PyObject *)(uintptr_t)id;
}

/* A built-in function that calls nothing but `method`; appended to the list. */
static bool append_function(PyObject *list, PyMethodDef *method, PyObject *own)
{
    PyObject *function = PyCFunction_New(method, own);
    bool good = function != NULL && PyList_Append(list, function) == 0;
    Py_XDECREF(function);
    PyErr_Clear();
    return good;
}

static PyObject *call_sheltered(PyObject *own, PyObject *arguments)
{
    Py_XDECREF(tlmi_shelter_call(own, arguments));
    Py_RETURN_NONE;
}

static PyMethodDef sheltered_method = {"tlmem", call_sheltered, METH_VARARGS, NULL};

tlm_status tlm_sheltered_function(uint64_t callable, uint64_t list)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    bool good = append_function(object_of(list), &sheltered_method, object_of(callable));
    PyGILState_Release(gil);
    return good ? TLM_OK : TLM_NO_MEMORY;
}

/* ---- fork ---- */

static PyObject *before_fork(PyObject *own, PyObject *none)
{
    (void)own;
    (void)none;
    tlm_fork_settle();
    tlm_fork_before();
    Py_RETURN_NONE;
}

static PyObject *after_fork_in_parent(PyObject *own, PyObject *none)
{
    (void)own;
    (void)none;
    /* Elsewhere than in the main thread of Linux there were several threads anyhow. */
    if (PY_VERSION_HEX >= 0x030C0000 && PyThread_get_thread_native_id() == (unsigned long)getpid())
        tlm_fork_after_in_parent_soon();
    else
        tlm_fork_after_in_parent();
    Py_RETURN_NONE;
}

static PyObject *after_fork_in_child(PyObject *own, PyObject *none)
{
    tlm_fork_after_in_child();
    PyObject *arguments = PyTuple_New(0);
    if (arguments != NULL)
        Py_XDECREF(tlmi_shelter_call(own, arguments));
    Py_XDECREF(arguments);
    (void)none;
    PyErr_Clear();
    Py_RETURN_NONE;
}

tlm_status tlm_fork_functions(uint64_t in_child, uint64_t list)
{
    static PyMethodDef methods[] = {{"tlmem", before_fork, METH_NOARGS, NULL},
                                    {"tlmem", after_fork_in_parent, METH_NOARGS, NULL},
                                    {"tlmem", after_fork_in_child, METH_NOARGS, NULL}};
    PyGILState_STATE gil = PyGILState_Ensure();
    bool good = append_function(object_of(list), &methods[0], NULL) &&
                append_function(object_of(list), &methods[1], NULL) &&
                append_function(object_of(list), &methods[2], object_of(in_child));
    PyGILState_Release(gil);
    return good ? TLM_OK : TLM_NO_MEMORY;
}

/* ---- functions of the interpreter that are wrapped ---- */

typedef struct {
    const char *module, *name;
    PyMethodDef method;        /* looks as the original's */
    PyObject *original, *ours; /* NULL: not wrapped */
} wrapped;

/* Puts a function in the place of a built-in one; the same in name, module, documentation and signature. */
static bool wrap(wrapped *place, PyCFunctionWithKeywords call)
{
    PyObject *module = PyImport_ImportModule(place->module);
    PyObject *original = module ? PyObject_GetAttrString(module, place->name) : NULL;
    bool good = false;
    if (original != NULL && PyCFunction_Check(original)) {
        const PyMethodDef *theirs = ((PyCFunctionObject *)original)->m_ml;
        place->method = (PyMethodDef){theirs->ml_name, (PyCFunction)(void (*)(void))call, METH_VARARGS | METH_KEYWORDS,
                                      theirs->ml_doc};
        PyObject *own = PyCFunction_GET_SELF(original), *of = ((PyCFunctionObject *)original)->m_module;
        PyObject *function = PyCFunction_NewEx(&place->method, own, of);
        good = function != NULL && PyObject_SetAttrString(module, place->name, function) == 0;
        if (good) {
            Py_XSETREF(place->original, Py_NewRef(original));
            Py_XSETREF(place->ours, Py_XNewRef(function));
        }
        Py_XDECREF(function);
    }
    Py_XDECREF(original);
    Py_XDECREF(module);
    PyErr_Clear();
    return good;
}

/* Puts the original back, unless somebody has replaced ours. */
static void unwrap(wrapped *place)
{
    PyObject *module = place->ours ? PyImport_ImportModule(place->module) : NULL;
    PyObject *now = module ? PyObject_GetAttrString(module, place->name) : NULL;
    if (now != NULL && now == place->ours && PyObject_SetAttrString(module, place->name, place->original) == 0)
        Py_CLEAR(place->ours);
    Py_XDECREF(now);
    Py_XDECREF(module);
    PyErr_Clear();
}

static PyObject *fork_exec(PyObject *own, PyObject *arguments, PyObject *named);
static PyObject *exec_dynamic(PyObject *own, PyObject *arguments, PyObject *named);
static wrapped new_process = {.module = "_posixsubprocess", .name = "fork_exec"};
static wrapped new_extension = {.module = "_imp", .name = "exec_dynamic"};
static PyObject *change_command_line;
static bool awaits_numpy;

/* Whether it is a list with -c in it: only command lines of Python are looked at further. */
static bool runs_code(PyObject *command)
{
    if (!PyList_CheckExact(command))
        return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(command); i++) {
        PyObject *word = PyList_GET_ITEM(command, i);
        if (PyUnicode_CheckExact(word) && PyUnicode_CompareWithASCIIString(word, "-c") == 0)
            return true;
    }
    return false;
}

static PyObject *fork_exec(PyObject *own, PyObject *arguments, PyObject *named)
{
    (void)own;
    PyObject *changed = NULL;
    if (PyTuple_GET_SIZE(arguments) > 0 && runs_code(PyTuple_GET_ITEM(arguments, 0))) {
        PyObject *only = PyTuple_Pack(1, PyTuple_GET_ITEM(arguments, 0));
        PyObject *command = only ? tlmi_shelter_call(change_command_line, only) : NULL;
        PyObject *list = command ? PySequence_List(arguments) : NULL;
        if (list != NULL && PyList_SetItem(list, 0, Py_NewRef(command)) == 0)
            changed = PyList_AsTuple(list);
        Py_XDECREF(list);
        Py_XDECREF(command);
        Py_XDECREF(only);
        PyErr_Clear();
    }
    PyObject *result = PyObject_Call(new_process.original, changed ? changed : arguments, named);
    Py_XDECREF(changed);
    return result;
}

tlm_status tlm_follow_commands(uint64_t change)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_XSETREF(change_command_line, Py_NewRef(object_of(change)));
    bool good = new_process.ours != NULL || wrap(&new_process, fork_exec);
    PyGILState_Release(gil);
    return good ? TLM_OK : TLM_UNSUPPORTED;
}

/* NumPy 2's and NumPy 1's name of the module that has its allocator. */
static bool is_numpy(PyObject *module)
{
    const char *name = PyModule_Check(module) ? PyModule_GetName(module) : NULL;
    PyErr_Clear();
    return name != NULL &&
           (strcmp(name, "numpy._core._multiarray_umath") == 0 || strcmp(name, "numpy.core._multiarray_umath") == 0);
}

static PyObject *exec_dynamic(PyObject *own, PyObject *arguments, PyObject *named)
{
    (void)own;
    PyObject *result = PyObject_Call(new_extension.original, arguments, named);
    if (awaits_numpy && result != NULL && PyTuple_GET_SIZE(arguments) == 1 &&
        is_numpy(PyTuple_GET_ITEM(arguments, 0))) {
        awaits_numpy = false;
        unwrap(&new_extension);
        tlm_numpy_install();
    }
    return result;
}

tlm_status tlm_numpy_await(int wanted)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    awaits_numpy = wanted != 0;
    bool good = true;
    if (wanted && new_extension.ours == NULL)
        good = wrap(&new_extension, exec_dynamic);
    else if (!wanted)
        unwrap(&new_extension);
    PyGILState_Release(gil);
    return good ? TLM_OK : TLM_UNSUPPORTED;
}
