/* SPDX-License-Identifier: MIT
 * tlmem_python.h: what only the extension module has: sources inside the interpreter, its stacks, its forks.
 *
 * Not installed: the C library knows nothing of Python. log/hooks.c says how both meet.
 */
#ifndef TLMEM_PYTHON_H
#define TLMEM_PYTHON_H

#include "tlmem_plan.h"
#include "tlmem_replay.h"
#include "tlmem_tape.h"

#define TLM_FOLLOW_VARIABLE "TLMEM_FOLLOW"

/* cffi: begin */
/* ---- sources (source_*.c) ---- */
/* Wraps NumPy's default data allocator in place, for every thread. NumPy must be imported; takes the GIL itself.
 * TLM_UNSUPPORTED: no usable NumPy. Uninstall restores the former functions; arrays made meanwhile stay valid. */
tlm_status tlm_numpy_install(void);
tlm_status tlm_numpy_uninstall(void);
/* Sees PyTorch's CPU blocks, shared and mapped memory, and accelerators, in every thread. torch must be imported; takes the GIL
 * itself. The note torch.hook says how, or why not. TLM_UNSUPPORTED: torch is not imported, or its memory cannot be seen.
 * Uninstall puts everything back; blocks stay valid. */
tlm_status tlm_torch_install(void);
tlm_status tlm_torch_uninstall(void);
/* Looks whether PyTorch's anomaly mode, and its profiler in this thread, are on; the note torch.modes says how often they were.
 * Under the GIL. Cannot fail; without the source it does nothing. */
void tlm_torch_look_at_modes(void);
/* Samples blocks of the C allocator, in every library that calls it, and of Python's allocators, of the raw one while that is
 * counted: one for each so many bytes in the mean, 1: every block. What other sources record is left out. The notes heap.rate,
 * heap.hook and heap.python say how. seed: of the choice; 0: another one each time. Both take the GIL themselves.
 * TLM_BAD_ARGUMENT: no such rate. TLM_ALREADY_RUNNING: as it was, with notes for the recording. Uninstall restores slots and domains. */
tlm_status tlm_heap_install(uint64_t mean_bytes, uint64_t seed);
tlm_status tlm_heap_uninstall(void);
/* Counts Python's arenas and raw allocations from now on; takes the GIL itself. */
tlm_status tlm_pyheap_install(void);
tlm_status tlm_pyheap_uninstall(void);

/* ---- sites (site.c, pystack.c) ---- */
/* "3.11 private frames", "public API": how stacks are walked in this build; static storage. */
const char *tlm_site_method(void);

/* ---- who holds arrays (holders_when.c) ---- */
typedef struct {
    uint64_t snapshots;
    uint64_t total_ns;     /* that they took */
    uint64_t unasked_ns;   /* of these, at marks, because memory had doubled or time had passed */
    uint64_t last_ns;      /* the last one */
    uint64_t last_objects; /* that it met */
    uint64_t bytes;        /* in the file */
} tlm_holders_statistics;
/* From now on, as long as this recording runs, snapshots of who holds arrays are taken on their own. elsewhere: beginnings of
 * paths, with newlines between, of modules that are not the program's. limit_bytes: of the file, 0: none. TLM_UNSUPPORTED:
 * this interpreter's objects are not known. */
tlm_status tlm_holders_start(const char *elsewhere, uint64_t limit_bytes);
/* No more of them. Cannot fail. */
void tlm_holders_stop(void);
/* Takes one now, with the GIL. at_end: 1 for the last one. error: id() of an exception that is on its way, 0 for none; the
 * caller keeps it. TLM_NOT_RUNNING: nothing was started; TLM_NO_SPACE: snapshots have their share of the file. */
tlm_status tlm_holders_now(int at_end, uint64_t error);
/* Takes one if that may be afforded; TLM_NOT_RUNNING when not. */
tlm_status tlm_holders_offer(void);
/* Since the start. Cannot fail. */
void tlm_holders_stats(tlm_holders_statistics *out);

/* ---- running a program (python/program/) ---- */
/* Everything is the id() of an object; callers keep them while the call lasts. */
typedef struct {
    uint64_t outcome; /* a list of two, which is emptied: code and its globals; or what is called and its arguments */
    uint64_t end;     /* called with the exception that ended the program or None, while its frames are alive */
    uint64_t finish;  /* called when the program's exit handlers have run */
    uint64_t add_exit_handler; /* atexit.register */
    int inspects;              /* python -i */
    int is_script;             /* the interpreter takes __file__ out of its globals when it is over */
} tlm_program;
/* Runs a program with no frame below it and ends the process as Python does after it; takes the GIL itself. Returns only
 * when the interpreter goes on by hand (python -i): then the exception or None is in outcome, and finish was not called.
 * TLM_UNSUPPORTED: this Python is not known, and nothing was called. */
tlm_status tlm_run_program(const tlm_program *program);
/* Appends functions to the list whose id() it is. TLM_NO_MEMORY. The first: calls the object with this id(), unseen by the
 * program's hooks, and returns None. The others: before a fork, after it in the parent, after it in the child, where they
 * call the object in the same way. */
tlm_status tlm_sheltered_function(uint64_t callable, uint64_t list);
tlm_status tlm_fork_functions(uint64_t in_child, uint64_t list);
/* ---- processes that a program makes (python/program/processes.c) ---- */
typedef enum { TLM_FOLLOW_NONE = 0, TLM_FOLLOW_FORK = 1, TLM_FOLLOW_ALL = 2 } tlm_follow;
/* OTHER: not Python. UNSEEN: Python, not recorded. FOLLOWED: records itself. UNCERTAIN: does so if it has a recording in the end.
 * HELPER: a part of multiprocessing, and not counted. */
typedef enum {
    TLM_CHILD_OTHER = 0,
    TLM_CHILD_UNSEEN = 1,
    TLM_CHILD_FOLLOWED = 2,
    TLM_CHILD_UNCERTAIN = 3,
    TLM_CHILD_HELPER = 4
} tlm_child_fate;
/* From now on the object with this id() is asked about new Python processes: about those with -c, and under TLM_FOLLOW_ALL about
 * every one. It gets the command line, a list, and the interpreter, bytes or None, and returns a list and a fate. It is kept. */
tlm_status tlm_follow_commands(uint64_t change);
/* Which children record themselves from now on, and what TLMEM_FOLLOW is in the environment of new processes: in that of this
 * process, which os.environ does not show, and in those that a program gives to subprocess. NULL: it is not there. TLM_NO_SPACE:
 * it is too long, and is not there. */
tlm_status tlm_follow_variable(tlm_follow which, const char *value);
/* Processes that this one has made since it began or was forked, as far as Python made them, once they are followed; and what the
 * system says of this one, of all below it that were waited for, and of children that run and do not record themselves. */
typedef struct {
    uint64_t followed, others; /* that record themselves; that do not, without helpers of multiprocessing */
    uint64_t pythons;          /* of the others, interpreters of Python */
    uint64_t recordings;       /* files of processes below this one that were written; 0 unless all are followed */
    uint64_t own_cpu_ns, own_peak_bytes;
    uint64_t children_cpu_ns, children_peak_bytes; /* the peak with what they had before an exec */
    uint64_t running, running_cpu_ns, running_peak_bytes;
} tlm_processes;
/* stem: the path of this process' recording without ".tlm", which those of children begin with; NULL: nothing of those that run,
 * and nothing of files. since_s: a Unix time; older files are of an earlier run. Cannot fail; what the system does not say is 0. */
void tlm_made_processes(const char *stem, int64_t since_s, tlm_processes *out);
/* The highest resident size of this process since it was executed, in bytes; 0 when the system does not say. */
uint64_t tlm_peak_since_exec(void);
/* unlink and getenv, which no hook of the program sees. The text stays until the environment changes. */
int tlm_remove_recording(const char *path);
const char *tlm_environment(const char *name);
typedef enum { TLM_SOURCE_NUMPY = 0, TLM_SOURCE_TORCH = 1, TLM_SOURCE_COUNT = 2 } tlm_source;
/* Installs the source as soon as its module is imported, and for PyTorch again for libraries that are loaded later; 0: no
 * longer. */
tlm_status tlm_source_await(tlm_source source, int wanted);
/* Notes what stderr and the environment are now. */
void tlm_remember_stderr(void);
/* Whether stderr is still what it was. */
int tlm_stderr_is_open(void);
/* When the interpreter is gone: writes "tlmem: " with what the command (a list that ends with NULL) prints, or `instead`, and then
 * `more`. All are copied. A forked child says nothing. */
void tlm_last_words(const char *const *command, const char *instead, const char *more);

/* ---- objects of Python and objects of ours (pyadopted.c, pyreference.c, pyorigin.c, pybuffer.c) ---- */
/* For the `drop` of adopted memory, from any thread; the context comes from tlm_python_keep. They let go of a Python object,
 * or call it without arguments and then let go of it; an exception of the call is reported as unraisable. */
void tlm_python_drop_reference(void *context);
void tlm_python_drop_call(void *context);
/* A reference to the object with this id(), as the context of a drop; the caller has one too. Cannot fail. */
void *tlm_python_keep(uint64_t owner);
/* Appends the types Reference and Lent to the list whose id() it is. The folder, id() of a text, has the files that are never
 * the place where a tensor is made. TLM_NO_MEMORY. */
tlm_status tlm_python_types(uint64_t folder, uint64_t list);

/* ---- fork (python/program/service_restart.c) ---- */
/* In place of tlm_fork_after_in_parent, by a Python handler in the main thread: does it as soon as the interpreter is back
 * from the fork, so that Python does not count our thread (service_restart.c). Settle does it at once if it is still to be done; call
 * it before the next fork and before the end of the recording. Cannot fail. */
void tlm_fork_after_in_parent_soon(void);
void tlm_fork_settle(void);

/* ---- measuring (pybench.c) ---- */
/* Records `count` events in a C loop and returns the nanoseconds it took. stack: 0 none, 1 the current stack each time. */
uint64_t tlm_bench_events(uint64_t count, int stack);
/* cffi: end */

#endif
