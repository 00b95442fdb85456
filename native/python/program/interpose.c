/* SPDX-License-Identifier: MIT
 * interpose.c: where the interpreter calls the recorder while a program runs: forks, new processes, imports, the end.
 *
 * What it calls are functions in C: they have no frame, need no depth of recursion, and depend on no name that the program
 * may have replaced. What they leave to Python code is called in shelter. All of it is under the GIL.
 */
#include <Python.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "platform/children.h"
#include "python/program/shelter.h"
#include "python/sources/sources.h"
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

/* ---- what was made ---- */

static uint64_t followed, others; /* processes made by this one; under the GIL */

/* Whether a child records itself: its recording is mapped, or it only makes others that do; and helpers of multiprocessing. */
static bool is_seen(int pid, void *stem)
{
    static const char *const ours[] = {"multiprocessing.resource_tracker", "tlmem.recorder.children"};
    char path[64], file[4200];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    for (int i = 0; i < 2; i++)
        if (tlmi_file_contains(path, ours[i], strlen(ours[i])))
            return true;
    int length = snprintf(file, sizeof file, "%s.%d.tlm", (const char *)stem, pid);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    return length < (int)sizeof file && tlmi_file_contains(path, file, (size_t)length);
}

void tlm_made_processes(const char *stem, tlm_processes *out)
{
    tlmi_usage own = tlmi_usage_of_this(), children = tlmi_usage_of_children(), running = {0};
    size_t count = stem ? tlmi_running_children(is_seen, (void *)stem, &running) : 0;
    *out = (tlm_processes){.followed = followed,
                           .others = others,
                           .own_cpu_ns = own.cpu_ns,
                           .own_peak_bytes = own.peak_bytes,
                           .children_cpu_ns = children.cpu_ns,
                           .children_peak_bytes = children.peak_bytes,
                           .running = count,
                           .running_cpu_ns = running.cpu_ns,
                           .running_peak_bytes = running.peak_bytes};
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
    followed++;
    /* Elsewhere than in the main thread of Linux there were several threads anyhow. */
    if (PY_VERSION_HEX >= 0x030C0000 && PyThread_get_thread_native_id() == (unsigned long)getpid())
        tlm_fork_after_in_parent_soon();
    else
        tlm_fork_after_in_parent();
    Py_RETURN_NONE;
}

static PyObject *after_fork_in_child(PyObject *own, PyObject *none)
{
    followed = others = 0;
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
static bool awaited[TLM_SOURCE_COUNT]; /* its module is not imported yet */
static bool watches_libraries;         /* each new one may have slots of PyTorch's functions */

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

/* Whether it is multiprocessing's own helper, which is no work of the program's. */
static bool is_helper(PyObject *command)
{
    static const char helper[] = "from multiprocessing.resource_tracker";
    for (Py_ssize_t i = 0; PyList_CheckExact(command) && i < PyList_GET_SIZE(command); i++) {
        PyObject *word = PyList_GET_ITEM(command, i);
        bool plain = PyUnicode_CheckExact(word) && PyUnicode_IS_ASCII(word);
        const char *text = plain ? (const char *)PyUnicode_1BYTE_DATA(word) : "";
        if (strncmp(text, helper, strlen(helper)) == 0)
            return true;
    }
    return false;
}

static PyObject *fork_exec(PyObject *own, PyObject *arguments, PyObject *named)
{
    (void)own;
    PyObject *changed = NULL, *given = PyTuple_GET_SIZE(arguments) > 0 ? PyTuple_GET_ITEM(arguments, 0) : Py_None;
    bool is_ours = false, is_work = true;
    if (runs_code(given)) {
        is_work = !is_helper(given);
        PyObject *only = PyTuple_Pack(1, given);
        PyObject *command = only ? tlmi_shelter_call(change_command_line, only) : NULL;
        PyObject *list = command ? PySequence_List(arguments) : NULL;
        if (list != NULL && PyList_SetItem(list, 0, Py_NewRef(command)) == 0)
            changed = PyList_AsTuple(list);
        is_ours = changed != NULL && command != given;
        Py_XDECREF(list);
        Py_XDECREF(command);
        Py_XDECREF(only);
        PyErr_Clear();
    }
    uint64_t forks = followed; /* with a preexec_fn it is a fork, too, but what is executed does not record itself */
    PyObject *result = PyObject_Call(new_process.original, changed ? changed : arguments, named);
    followed = forks;
    if (result != NULL && is_work)
        *(is_ours ? &followed : &others) += 1;
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

/* ---- modules that sources wait for ---- */

static tlm_status (*const install_source[])(void) = {[TLM_SOURCE_NUMPY] = tlm_numpy_install,
                                                     [TLM_SOURCE_TORCH] = tlm_torch_install};
static bool (*const is_of_source[])(const char *) = {[TLM_SOURCE_NUMPY] = tlmi_numpy_is_module,
                                                     [TLM_SOURCE_TORCH] = tlmi_torch_is_module};

static void meet_module(PyObject *module)
{
    const char *name = PyModule_Check(module) ? PyModule_GetName(module) : NULL;
    PyErr_Clear();
    for (int source = 0; source < TLM_SOURCE_COUNT; source++)
        if (awaited[source] && name != NULL && is_of_source[source](name)) {
            awaited[source] = false;
            install_source[source]();
        }
    tlmi_torch_look_again();
    tlmi_heap_look_again();
}

static bool is_any_awaited(void)
{
    bool any = watches_libraries;
    for (int source = 0; source < TLM_SOURCE_COUNT; source++)
        any |= awaited[source];
    return any;
}

static PyObject *exec_dynamic(PyObject *own, PyObject *arguments, PyObject *named)
{
    (void)own;
    PyObject *result = PyObject_Call(new_extension.original, arguments, named);
    if (result != NULL && PyTuple_GET_SIZE(arguments) == 1) {
        meet_module(PyTuple_GET_ITEM(arguments, 0));
        if (!is_any_awaited())
            unwrap(&new_extension);
    }
    return result;
}

tlm_status tlm_source_await(tlm_source source, int wanted)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    bool good = true;
    awaited[source] = wanted != 0;
    if (source == TLM_SOURCE_TORCH)
        watches_libraries = wanted != 0;
    if (wanted && new_extension.ours == NULL)
        good = wrap(&new_extension, exec_dynamic);
    else if (!is_any_awaited())
        unwrap(&new_extension);
    PyGILState_Release(gil);
    return good ? TLM_OK : TLM_UNSUPPORTED;
}
