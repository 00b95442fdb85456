/* SPDX-License-Identifier: MIT
 * interpose.c: where the interpreter calls the recorder while a program runs: forks, new processes, imports, the end.
 *
 * What it calls are functions in C: they have no frame, need no depth of recursion, and depend on no name that the program
 * may have replaced. What they leave to Python code is called in shelter. All of it is under the GIL.
 */
#include <Python.h>

#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "python/holders/holders_when.h"
#include "python/program/processes.h"
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

/* ---- fork ---- */

static PyObject *before_fork(PyObject *own, PyObject *none)
{
    (void)own;
    (void)none;
    tlmi_holders_settle();
    tlm_fork_settle();
    tlm_fork_before();
    Py_RETURN_NONE;
}

static PyObject *after_fork_in_parent(PyObject *own, PyObject *none)
{
    (void)own;
    (void)none;
    tlmi_processes_forked();
    /* Elsewhere than in the main thread of Linux there were several threads anyhow. */
    if (PY_VERSION_HEX >= 0x030C0000 && PyThread_get_thread_native_id() == (unsigned long)getpid())
        tlm_fork_after_in_parent_soon();
    else
        tlm_fork_after_in_parent();
    Py_RETURN_NONE;
}

static PyObject *after_fork_in_child(PyObject *own, PyObject *none)
{
    tlmi_processes_begin();
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
static PyObject *spawn_wrapped(PyObject *own, PyObject *arguments, PyObject *named);
static PyObject *exec_dynamic(PyObject *own, PyObject *arguments, PyObject *named);
static wrapped new_process = {.module = "_posixsubprocess", .name = "fork_exec"};
/* What subprocess calls instead, wherever it can: from Python 3.13 on mostly. */
static wrapped new_spawn = {.module = "os", .name = "posix_spawn"};
static wrapped new_extension = {.module = "_imp", .name = "exec_dynamic"};
static PyObject *change_command_line;
typedef struct {
    Py_ssize_t command, files, environment;
} places; /* of the arguments */
static const places of_fork_exec = {0, 1, 5}, of_spawn = {1, 0, 2};
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

/* Whether it is a helper of multiprocessing or loky, which does none of the program's work. */
static bool is_helper(PyObject *command)
{
    static const char helper[] = "resource_tracker import main";
    for (Py_ssize_t i = 0; PyList_CheckExact(command) && i < PyList_GET_SIZE(command); i++) {
        PyObject *word = PyList_GET_ITEM(command, i);
        bool plain = PyUnicode_CheckExact(word) && PyUnicode_IS_ASCII(word);
        const char *text = plain ? (const char *)PyUnicode_1BYTE_DATA(word) : "";
        if (strncmp(text, "from ", 5) == 0 && strstr(text, helper) != NULL)
            return true;
    }
    return false;
}

/* What is to become of a new process, and its command line where that is another one: a new reference, or NULL. */
static tlm_child_fate ask_about(PyObject *command, PyObject *interpreter, PyObject **changed)
{
    if (is_helper(command))
        return TLM_CHILD_HELPER;
    tlm_child_fate fate = interpreter ? TLM_CHILD_UNSEEN : TLM_CHILD_OTHER;
    if (!PyList_CheckExact(command) || !(runs_code(command) || (interpreter != NULL && tlmi_processes_all())))
        return fate;
    PyObject *both = PyTuple_Pack(2, command, interpreter ? interpreter : Py_None);
    PyObject *answer = both ? tlmi_shelter_call(change_command_line, both) : NULL;
    if (answer != NULL && PyTuple_CheckExact(answer) && PyTuple_GET_SIZE(answer) == 2) {
        long given = PyLong_AsLong(PyTuple_GET_ITEM(answer, 1));
        if (given >= TLM_CHILD_OTHER && given <= TLM_CHILD_HELPER)
            fate = (tlm_child_fate)given;
        if (PyTuple_GET_ITEM(answer, 0) != command)
            *changed = Py_NewRef(PyTuple_GET_ITEM(answer, 0));
    }
    Py_XDECREF(answer);
    Py_XDECREF(both);
    PyErr_Clear();
    return fate;
}

/* The arguments with two of them replaced; what is NULL stays. NULL, without an exception: nothing is replaced. */
static PyObject *with_replaced(PyObject *arguments, const places *at, PyObject *command, PyObject *environment)
{
    PyObject *list = command != NULL || environment != NULL ? PySequence_List(arguments) : NULL, *made = NULL;
    bool good = list != NULL;
    if (good && command != NULL)
        good = PyList_SetItem(list, at->command, Py_NewRef(command)) == 0;
    if (good && environment != NULL)
        good = PyList_SetItem(list, at->environment, Py_NewRef(environment)) == 0;
    if (good)
        made = PyList_AsTuple(list);
    Py_XDECREF(list);
    PyErr_Clear();
    return made;
}

static PyObject *fork_exec(PyObject *own, PyObject *arguments, PyObject *named)
{
    (void)own;
    tlm_child_fate fate = TLM_CHILD_OTHER;
    PyObject *command = NULL, *environment = NULL;
    const places *at = &of_fork_exec;
    if (PyTuple_GET_SIZE(arguments) > at->environment) {
        PyObject *interpreter = tlmi_processes_interpreter(PyTuple_GET_ITEM(arguments, at->files));
        fate = ask_about(PyTuple_GET_ITEM(arguments, at->command), interpreter, &command);
        environment = tlmi_processes_environment(PyTuple_GET_ITEM(arguments, at->environment));
        Py_XDECREF(interpreter);
    }
    PyObject *changed = with_replaced(arguments, at, command, environment);
    uint64_t forks =
        tlmi_processes_forks(); /* with a preexec_fn it is a fork, too, but what is executed does not record itself */
    PyObject *result = PyObject_Call(new_process.original, changed ? changed : arguments, named);
    tlmi_processes_set_forks(forks);
    if (result != NULL)
        tlmi_processes_add(fate, PyLong_Check(result) ? (int)PyLong_AsLong(result) : 0);
    Py_XDECREF(changed);
    Py_XDECREF(environment);
    Py_XDECREF(command);
    return result;
}

/* The interpreter that a path is; NULL, without an exception: it does not look like one, or the path is of another type. */
static PyObject *interpreter_at(PyObject *path)
{
    PyObject *bytes = NULL, *paths = NULL, *found = NULL;
    bool is_plain = PyUnicode_CheckExact(path) || PyBytes_CheckExact(path);
    if (is_plain && PyUnicode_FSConverter(path, &bytes) && (paths = PyTuple_Pack(1, bytes)) != NULL)
        found = tlmi_processes_interpreter(paths);
    Py_XDECREF(paths);
    Py_XDECREF(bytes);
    PyErr_Clear();
    return found;
}

static PyObject *spawn_wrapped(PyObject *own, PyObject *arguments, PyObject *named)
{
    (void)own;
    tlm_child_fate fate = TLM_CHILD_OTHER;
    PyObject *command = NULL, *environment = NULL;
    const places *at = &of_spawn;
    if (PyTuple_GET_SIZE(arguments) > at->environment) {
        PyObject *interpreter = interpreter_at(PyTuple_GET_ITEM(arguments, at->files));
        fate = ask_about(PyTuple_GET_ITEM(arguments, at->command), interpreter, &command);
        environment = tlmi_processes_mapping(PyTuple_GET_ITEM(arguments, at->environment));
        Py_XDECREF(interpreter);
    }
    PyObject *changed = with_replaced(arguments, at, command, environment);
    PyObject *result = PyObject_Call(new_spawn.original, changed ? changed : arguments, named);
    if (result != NULL)
        tlmi_processes_add(fate, PyLong_Check(result) ? (int)PyLong_AsLong(result) : 0);
    Py_XDECREF(changed);
    Py_XDECREF(environment);
    Py_XDECREF(command);
    return result;
}

tlm_status tlm_follow_commands(uint64_t change)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_XSETREF(change_command_line, Py_NewRef(object_of(change)));
    bool good = new_process.ours != NULL || wrap(&new_process, fork_exec);
    if (new_spawn.ours == NULL)
        wrap(&new_spawn, spawn_wrapped); /* a system may have none */
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
