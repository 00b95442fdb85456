/* SPDX-License-Identifier: MIT
 * outermost.c: runs a program as the outermost frame, and ends the process as the interpreter ends it after a script.
 *
 * The frames of whoever calls are taken off the thread's chain; they are owned and kept alive by their callers, which wait
 * below on the C stack. So stacks, warnings and the recursion limit are those of a plain run. When the program is over, its
 * exception is printed and the interpreter finalized from here: our callers' frames are never returned to, and no trace
 * function, profile function or excepthook of the program meets them.
 */
#include <Python.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "python/program/shelter.h"
#include "tlmem_python.h"

#if TLMI_FRAMES_KNOWN

#undef _PyGC_FINALIZED /* the private headers define it again */
#define Py_BUILD_CORE 1
#include "internal/pycore_interp.h"
#undef Py_BUILD_CORE

static PyObject *object_of(uint64_t id)
{
    return (PyObject *)(uintptr_t)id;
}

/* The exception that is set, with its traceback; a new reference. */
static PyObject *take_exception(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
#endif
}

static void set_exception(PyObject *error)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(error);
#else
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(error)), error, PyException_GetTraceback(error));
#endif
}

static void call_in_shelter(PyObject *callable, PyObject *argument)
{
    PyObject *arguments = argument ? PyTuple_Pack(1, argument) : PyTuple_New(0);
    if (arguments != NULL)
        Py_XDECREF(tlmi_shelter_call(callable, arguments));
    Py_XDECREF(arguments);
    PyErr_Clear();
}

/* ---- the end ---- */

static PyObject *finish; /* seals the recording */

static void finish_now(void *unused)
{
    (void)unused;
    call_in_shelter(finish, NULL);
}

static PyObject *finish_by_handler(PyObject *own, PyObject *none)
{
    (void)own;
    (void)none;
    finish_now(NULL);
    Py_RETURN_NONE;
}

/* Registers finish as an exit handler that is called after all that are there: of the list, what is called last. */
static void finish_last(PyObject *add_exit_handler)
{
    static PyMethodDef method = {"tlmem", finish_by_handler, METH_NOARGS, NULL};
    PyObject *function = PyCFunction_New(&method, NULL);
    PyObject *done = function ? PyObject_CallOneArg(add_exit_handler, function) : NULL;
    struct atexit_state *handlers = &PyInterpreterState_Get()->atexit;
#if PY_VERSION_HEX >= 0x030E0000 /* the newest comes first */
    Py_ssize_t count = done != NULL ? PyList_GET_SIZE(handlers->callbacks) : 0;
    if (count > 1 && PyList_Append(handlers->callbacks, PyList_GET_ITEM(handlers->callbacks, 0)) == 0)
        PyList_SetSlice(handlers->callbacks, 0, 1, NULL);
#else
    int last = handlers->ncallbacks - 1;
    if (done != NULL && last > 0) {
        void **callbacks = (void **)handlers->callbacks, *ours = callbacks[last];
        memmove(callbacks + 1, callbacks, (size_t)last * sizeof *callbacks);
        callbacks[0] = ours;
    }
#endif
    Py_XDECREF(done);
    Py_XDECREF(function);
    PyErr_Clear();
}

/* As the interpreter flushes its streams after a script, before it prints an exception. */
static void flush_streams(void)
{
    static const char *const names[] = {"stderr", "stdout"};
    PyObject *error = PyErr_Occurred() ? take_exception() : NULL;
    for (int i = 0; i < 2; i++) {
        PyObject *stream = PySys_GetObject(names[i]);
        if (stream != NULL) {
            Py_INCREF(stream);
            Py_XDECREF(PyObject_CallMethod(stream, "flush", NULL));
            Py_DECREF(stream);
            PyErr_Clear();
        }
    }
    if (error != NULL)
        set_exception(error);
}

static void forget_file(PyObject *names)
{
    static const char *const of_a_script[] = {"__file__", "__cached__"};
    for (int i = 0; i < 2; i++)
        if (PyDict_DelItemString(names, of_a_script[i]) != 0)
            PyErr_Clear();
}

/* Ends the process. error: what ended the program, NULL for nothing. names: of a script's main module, or NULL. Takes
 * both over. */
static _Noreturn void leave(PyObject *error, PyObject *names)
{
    int code = error != NULL;
#if PY_VERSION_HEX < 0x030E0000
    bool interrupted = error != NULL && (PyObject *)Py_TYPE(error) == PyExc_KeyboardInterrupt;
#else /* a subclass counts, too */
    bool interrupted = error != NULL && PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt);
#endif
    bool forgets_first = PY_VERSION_HEX >= 0x030E0000; /* before it prints an exception */
    if (names != NULL && forgets_first)
        forget_file(names);
    if (error != NULL && PyErr_GivenExceptionMatches(error, PyExc_SystemExit))
        Py_CLEAR(names); /* nothing of the program may be held when the interpreter is finalized */
    if (error != NULL) {
        set_exception(error);
        PyErr_Print(); /* SystemExit ends the process in here */
    }
    if (names != NULL && !forgets_first)
        forget_file(names);
    Py_XDECREF(names);
    if (Py_FinalizeEx() < 0)
        code = 120; /* as the interpreter says that a stream could not be flushed */
    if (interrupted) {
        signal(SIGINT, SIG_DFL);
        kill(getpid(), SIGINT);
        code = 128 + SIGINT;
    }
    exit(code);
}

/* Whether the interpreter reads commands from a terminal when the program is over; the program may have asked for it. */
static bool goes_on_by_hand(int inspects)
{
    const char *wish = getenv("PYTHONINSPECT");
    return inspects || (wish != NULL && *wish != 0 && isatty(STDIN_FILENO));
}

tlm_status tlm_run_program(const tlm_program *program)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *outcome = Py_NewRef(object_of(program->outcome));
    PyObject *called = Py_NewRef(PyList_GET_ITEM(outcome, 0)), *given = Py_NewRef(PyList_GET_ITEM(outcome, 1));
    PyList_SetSlice(outcome, 0, 2, NULL); /* it was the only one else that holds them */
    PyObject *names = program->is_script ? Py_NewRef(given) : NULL;
    PyObject *end = Py_NewRef(object_of(program->end));
    finish = Py_NewRef(object_of(program->finish));
    PyObject *add_exit_handler = Py_NewRef(object_of(program->add_exit_handler));
    void *callers = TLMI_CURRENT_FRAME(tstate);
    int depth = TLMI_RECURSION_LIMIT(tstate) - TLMI_RECURSION_REMAINING(tstate);
    TLMI_CURRENT_FRAME(tstate) = NULL;
    TLMI_RECURSION_REMAINING(tstate) = TLMI_RECURSION_LIMIT(tstate);

    PyObject *result =
        PyCode_Check(called) ? PyEval_EvalCode(called, given, given) : PyObject_CallObject(called, given);
    PyObject *error = result == NULL ? take_exception() : NULL;
    Py_XDECREF(result);
    call_in_shelter(end, error ? error : Py_None);
    Py_DECREF(called);
    Py_DECREF(given);
    if (names != NULL)
        flush_streams();
    if (!goes_on_by_hand(program->inspects)) {
        finish_last(add_exit_handler);
        leave(error, names);
    }

    TLMI_CURRENT_FRAME(tstate) = callers;
    TLMI_RECURSION_REMAINING(tstate) = TLMI_RECURSION_LIMIT(tstate) - depth; /* the limit may be another by now */
    tlm_status status = PyList_Append(outcome, error == NULL ? Py_None : error) == 0 ? TLM_OK : TLM_NO_MEMORY;
    PyErr_Clear();
    Py_XDECREF(error);
    Py_XDECREF(names);
    PyGILState_Release(gil);
    return status;
}

#else

tlm_status tlm_run_program(const tlm_program *program)
{
    (void)program;
    return TLM_UNSUPPORTED;
}

#endif
