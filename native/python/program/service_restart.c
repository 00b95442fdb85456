/* SPDX-License-Identifier: MIT
 * service_restart.c: starts our thread again after a fork, but not before the interpreter is back from it.
 *
 * Python 3.12 and later warn when a process with several threads forks, and some count the threads only after the
 * handlers of os.register_at_fork have run: a thread started by a handler would make every fork look dangerous. So the
 * start is left to a pending call, which the main thread makes between two instructions. It may come while other handlers
 * run; then it is put off. Everything here happens in the main thread with the GIL.
 */
#include <Python.h>

#include "log/log.h"
#include "tlmem_python.h"

static bool waiting;         /* the parent has forked and our thread is not running yet */
static const void *forking;  /* the frame that called fork; only compared */
static int forking_position; /* its instruction then */

/* Whether the handlers of the fork may still be running: one of them is the current frame, above the one that forks. */
static bool is_inside_fork(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    if (forking == NULL || frame == NULL || frame == forking)
        return false;
    Py_INCREF(frame);
    while (frame != NULL && frame != forking) {
        PyFrameObject *outer = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = outer;
    }
    bool inside = frame != NULL && PyFrame_GetLasti(frame) == forking_position;
    Py_XDECREF(frame);
    return inside;
}

void tlm_fork_settle(void)
{
    if (waiting) {
        waiting = false;
        tlm_fork_after_in_parent();
    }
}

static int start_if_back(void *unused)
{
    (void)unused;
    if (!waiting || (is_inside_fork() && Py_AddPendingCall(start_if_back, NULL) == 0))
        return 0;
    tlm_fork_settle();
    return 0;
}

void tlm_fork_after_in_parent_soon(void)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyFrameObject *frame = PyEval_GetFrame(); /* that of the fork: a handler in C has none */
    forking = frame;
    forking_position = frame ? PyFrame_GetLasti(frame) : 0;
    waiting = true;
    if (Py_AddPendingCall(start_if_back, NULL) != 0)
        tlm_fork_settle();
    PyGILState_Release(gil);
}
