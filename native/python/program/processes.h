/* SPDX-License-Identifier: MIT
 * processes.h: which processes this one has made, and which of them record themselves.
 */
#ifndef TLMI_PROCESSES_H
#define TLMI_PROCESSES_H

#include <Python.h>

#include <stdbool.h>

#include "tlmem_python.h"

/* A fork has been made by os.fork; in the child, which has made none yet. All under the GIL. */
void tlmi_processes_forked(void);
void tlmi_processes_begin(void);
/* A new process has this number. */
void tlmi_processes_add(tlm_child_fate fate, int pid);
/* The number of forks that are counted, to put it back where a fork is also something else. */
uint64_t tlmi_processes_forks(void);
void tlmi_processes_set_forks(uint64_t forks);
/* Whether children of subprocess are to record themselves. */
bool tlmi_processes_all(void);
/* The interpreter that the first usable file of a sequence of paths (bytes) is, or that it names in its first line; empty where
 * that is left to a search. NULL, without an exception: it does not look like Python. A new reference. */
PyObject *tlmi_processes_interpreter(PyObject *paths);
/* The environment of a new process (a sequence of bytes) with our variable; NULL, without an exception: as it was given. */
PyObject *tlmi_processes_environment(PyObject *given);
/* Likewise of a dict or of os.environ, as os.posix_spawn takes them; other mappings would run the program's code. */
PyObject *tlmi_processes_mapping(PyObject *given);
#endif
