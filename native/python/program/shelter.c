/* SPDX-License-Identifier: MIT
 * shelter.c: calls the recorder's own Python code so that the program around it cannot notice. See shelter.h.
 *
 * A handler of a signal runs in the main thread between two instructions of whatever Python code is there. In ours, what it
 * raises would be lost to the program, so signals that have a handler wait until we are back.
 */
#define _GNU_SOURCE /* NSIG */
#include "python/program/shelter.h"

#include <signal.h>

enum { OWN_DEPTH = 1000 }; /* of recursion; a program near its limit, or with a limit of 50, leaves us none */

#ifndef NSIG
#define NSIG 32
#endif

/* The signals that have a handler, but for those that an instruction raises. */
static void find_handled(sigset_t *handled)
{
    static const int raised_by_code[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigemptyset(handled);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction now;
        if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN)
            sigaddset(handled, number);
    }
    for (size_t i = 0; i < sizeof raised_by_code / sizeof *raised_by_code; i++)
        sigdelset(handled, raised_by_code[i]);
}

PyObject *tlmi_shelter_call(PyObject *callable, PyObject *arguments)
{
    PyThreadState *tstate = PyThreadState_Get();
    sigset_t handled, before;
    find_handled(&handled);
    pthread_sigmask(SIG_BLOCK, &handled, &before);
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *pending = PyErr_GetRaisedException();
#else
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
#endif
    PyThreadState_EnterTracing(tstate);
#if TLMI_FRAMES_KNOWN
    void *callers = TLMI_CURRENT_FRAME(tstate);
    int remaining = TLMI_RECURSION_REMAINING(tstate);
    TLMI_CURRENT_FRAME(tstate) = NULL;
    TLMI_RECURSION_REMAINING(tstate) = OWN_DEPTH;
#endif
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    int c_remaining = tstate->c_recursion_remaining;
    if (c_remaining < OWN_DEPTH / 10)
        tstate->c_recursion_remaining = OWN_DEPTH / 10;
#endif

    PyObject *result = PyObject_Call(callable, arguments, NULL);
    PyErr_Clear();

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    tstate->c_recursion_remaining = c_remaining;
#endif
#if TLMI_FRAMES_KNOWN
    TLMI_CURRENT_FRAME(tstate) = callers;
    TLMI_RECURSION_REMAINING(tstate) = remaining;
#endif
    PyThreadState_LeaveTracing(tstate);
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(pending);
#else
    PyErr_Restore(type, value, trace);
#endif
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}
