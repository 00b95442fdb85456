/* SPDX-License-Identifier: MIT
 * tlmem.h: the public C interface of tlmem's core. Read this first; every promise is made here.
 *
 * One process makes at most one recording at a time. Functions may be called from any thread unless their comment says
 * otherwise; cffi releases the GIL around every call. A function returns a tlm_status, or its comment says that it cannot
 * fail. After a failure the state is as it was before the call unless the comment says what changed.
 */
#ifndef TLMEM_H
#define TLMEM_H

#include <stddef.h>
#include <stdint.h>

/* cffi: begin */
typedef enum {
    TLM_OK = 0,
    TLM_NO_MEMORY,       /* our own bookkeeping memory could not be had */
    TLM_IO,              /* the operating system refused; tlm_recording_errno() says why */
    TLM_NO_SPACE,        /* the disk or the size limit has no room */
    TLM_EXISTS,          /* the file is there and overwriting was not asked for */
    TLM_BAD_ARGUMENT,    /* a value out of its range */
    TLM_ALREADY_RUNNING, /* a recording is running, or the source is installed */
    TLM_NOT_RUNNING,     /* no recording is running */
    TLM_UNSUPPORTED,     /* not on this platform, Python or NumPy */
    TLM_BAD_FORMAT,      /* a block that does not decode */
} tlm_status;

/* What happened. Numbers are part of the file format: append, never renumber. */
typedef enum {
    TLM_KIND_NONE = 0,
    TLM_KIND_ALLOC = 1,
    TLM_KIND_FREE = 2,
    TLM_KIND_REALLOC = 3,
    TLM_KIND_ACQUIRE = 4,
    TLM_KIND_RELEASE = 5,
    TLM_KIND_REGISTER = 6,
    TLM_KIND_UNREGISTER = 7,
    TLM_KIND_PROMOTE = 8,
    TLM_KIND_ESCAPE = 9,
    TLM_KIND_SCOPE_ENTER = 10,
    TLM_KIND_SCOPE_EXIT = 11,
    TLM_KIND_FRAME_ENTER = 12,
    TLM_KIND_FRAME_EXIT = 13,
    TLM_KIND_SLOT_GET = 14,
    TLM_KIND_SLOT_GROW = 15,
    TLM_KIND_POOL_HIT = 16,
    TLM_KIND_POOL_MISS = 17,
    TLM_KIND_POOL_PUT = 18,
    TLM_KIND_POOL_DROP = 19,
    TLM_KIND_POOL_PRUNE = 20,
    TLM_KIND_POOL_RESERVE = 21,
    TLM_KIND_DEVICE_ALLOC = 22,
    TLM_KIND_DEVICE_FREE = 23,
    TLM_KIND_TAPE_RECORD = 24,
    TLM_KIND_TAPE_SAVE = 25,
    TLM_KIND_TAPE_UNSAVE = 26,
    TLM_KIND_BACKWARD_BEGIN = 27,
    TLM_KIND_BACKWARD_END = 28,
    TLM_KIND_DETACH = 29,
    TLM_KIND_RESET = 30,
    TLM_KIND_CLEAR_GRADS = 31,
    TLM_KIND_MARK = 32,
    TLM_KIND_SAMPLE = 33,
    TLM_KIND_MISUSE = 34,
} tlm_kind;

/* Whose memory an event speaks of. 1 to 15 is foreign memory, named by address; the rest are tlmem's own devices. */
typedef enum {
    TLM_DEVICE_NONE = 0,
    TLM_DEVICE_NUMPY = 1,
    TLM_DEVICE_TORCH = 2,
    TLM_DEVICE_PROBE = 3,
    TLM_DEVICE_CPU = 16,
    TLM_DEVICE_METAL = 17,
    TLM_DEVICE_SIM_METAL = 18,
} tlm_device;

/* The object field of a sample event: what was measured. Bytes unless said otherwise. */
typedef enum {
    TLM_METRIC_ANON = 1,          /* anonymous resident memory of the process, ours included */
    TLM_METRIC_FILE = 2,          /* file-backed and shared resident memory */
    TLM_METRIC_MALLOC_USED = 3,   /* handed out by the C allocator, mapped blocks included */
    TLM_METRIC_MALLOC_FREE = 4,   /* free inside the C allocator's arenas */
    TLM_METRIC_PYTHON_ARENA = 5,  /* arenas of Python's small-object allocator */
    TLM_METRIC_PYTHON_LARGE = 6,  /* Python's raw allocations (above 512 bytes, and its own tables) */
    TLM_METRIC_RECORDER = 7,      /* anonymous memory of tlmem itself */
    TLM_METRIC_HIGH_WATER = 8,    /* highest resident size so far */
    TLM_METRIC_MINOR_FAULTS = 9,  /* page faults so far, a count */
    TLM_METRIC_MAJOR_FAULTS = 10, /* likewise, that needed the disk */
    TLM_METRIC_UNTOUCHED = 11,    /* of large live array blocks: pages never touched */
    TLM_METRIC_TRACKED = 12,      /* tracked live bytes; only in checkpoints */
    TLM_METRIC_TRACKED_COUNT = 13,
    TLM_METRIC_PSS = 14,     /* smaps_rollup, on request */
    TLM_METRIC_PRIVATE = 15, /* smaps_rollup: private dirty and clean, on request */
    TLM_METRIC_SWAP = 16,    /* swapped out */
    TLM_METRIC_MODULES = 17, /* modules that Python has imported, a count; when it changed */
} tlm_metric;

/* ---- recording (log.c, recording.c) ---- */
typedef struct {
    const char *path;      /* where to write */
    int overwrite;         /* 1: replace a file that exists */
    uint64_t limit_bytes;  /* keep the file below this by folding the oldest events; 0: no limit; at least 8 MiB */
    uint32_t stack_depth;  /* innermost frames kept of a stack; 0: no stacks; at most 1024 */
    uint32_t sample_ms;    /* time between samples of resident memory; 0: none but at start and end */
    uint32_t sample_smaps; /* 1: smaps_rollup and page faults with each slow sample */
    uint32_t parent_pid;   /* recorded process this one comes from, or 0 */
    uint32_t compact;      /* 1: compact full segments while the program runs (the normal case); 0 only for tests */
} tlm_recording_options;

typedef struct {
    uint64_t events;           /* recorded so far, exact only when no other thread is recording */
    uint64_t lost_events;      /* could not be recorded */
    uint64_t folded_events;    /* only in the checkpoint's sums */
    uint64_t file_bytes;       /* reserved for the file now */
    uint64_t own_bytes;        /* anonymous memory of tlmem now */
    uint64_t compacted_events; /* compacted so far */
    uint64_t compact_ns;       /* CPU time spent on that */
    uint64_t fold_ns;          /* CPU time spent on folding */
    uint64_t sites;            /* nodes of the site tree */
    uint64_t codes;            /* code objects seen */
    uint64_t threads;          /* threads that recorded something */
    int running;               /* 1: a recording is running */
    int stopped;               /* 1: it stopped early, tlm_recording_errno() says why */
} tlm_recording_statistics;

/* Creates the file, reserves its first slots, starts the service thread and turns the probes on. On failure nothing is
 * left behind. Call it from one thread; TLM_ALREADY_RUNNING when a recording runs. */
tlm_status tlm_recording_start(const tlm_recording_options *options);
/* Turns the probes off, takes a last sample, stops the service thread and, with seal = 1, compacts and seals the file
 * (with 0 it is left as a killed process would leave it). Sources must have been uninstalled before. The recording is over
 * whatever is returned; a status other than TLM_OK says that the file could not be sealed and is complete but open. */
tlm_status tlm_recording_stop(int seal);
/* Cannot fail; zeros when nothing was ever recorded. */
void tlm_recording_stats(tlm_recording_statistics *out);
/* errno of the last TLM_IO or TLM_NO_SPACE. Cannot fail. */
int tlm_recording_errno(void);
/* A sentence for a status; static storage. Cannot fail. */
const char *tlm_status_text(tlm_status status);

/* Adds a key and a text to the file; a later note with the same key replaces the earlier one for readers. */
tlm_status tlm_note(const char *key, const char *text);
/* Records a mark with the current site. */
tlm_status tlm_mark(const char *label, int64_t index);
/* Names the calling thread in the file. */
tlm_status tlm_thread_name(const char *name);
/* Records one event with the current site of the calling thread. For tests and for sources written in Python. */
tlm_status tlm_event_record(int kind, int device, uint64_t object, uint64_t arg);
/* Takes one full sample (every metric) now, in the calling thread. Needs no GIL. */
tlm_status tlm_sample_now(void);

/* Fork. before: in the parent, ends the service thread (joined). after_in_parent: starts it again. after_in_child: forgets
 * the parent's recording without touching its file; nothing is recorded until tlm_recording_start is called again. A child
 * of a plain C fork() is disarmed by pthread_atfork. Cannot fail, except after_in_parent (TLM_IO: no thread; the recording
 * goes on without samples and compaction until the end). */
void tlm_fork_before(void);
tlm_status tlm_fork_after_in_parent(void);
void tlm_fork_after_in_child(void);
/* In place of tlm_fork_after_in_parent, by a Python handler in the main thread: does it as soon as the interpreter is back
 * from the fork, so that Python does not count our thread (pyfork.c). Settle does it at once if it is still to be done; call
 * it before the next fork and before the end of the recording. Cannot fail. */
void tlm_fork_after_in_parent_soon(void);
void tlm_fork_settle(void);

/* ---- sources (source_*.c) ---- */
/* Wraps NumPy's default data allocator in place, for every thread. NumPy must be imported; takes the GIL itself.
 * TLM_UNSUPPORTED: no usable NumPy. Uninstall restores the former functions; arrays made meanwhile stay valid. */
tlm_status tlm_numpy_install(void);
tlm_status tlm_numpy_uninstall(void);
/* Counts Python's arenas and raw allocations from now on; takes the GIL itself. */
tlm_status tlm_pyheap_install(void);
tlm_status tlm_pyheap_uninstall(void);

/* ---- sites (site.c, pystack.c) ---- */
/* Site of the calling thread's Python stack; 0 without one. Cannot fail. */
uint32_t tlm_site_current(void);
/* "3.11 private frames", "public API": how stacks are walked in this build; static storage. */
const char *tlm_site_method(void);

/* ---- running a program (outermost.c) ---- */
/* Calls Python code with no frame below it, in the calling thread; takes the GIL itself. callable: id() of a code object,
 * then arguments is id() of its globals; or of anything else that is called, then of its argument tuple. Appends None, or
 * the exception that came out, to the list whose id() is outcome. TLM_UNSUPPORTED: nothing was called. */
tlm_status tlm_call_outermost(uint64_t callable, uint64_t arguments, uint64_t outcome);

/* ---- measuring and testing ---- */
/* Records `count` events in a C loop and returns the nanoseconds it took. stack: 0 none, 1 the current stack each time. */
uint64_t tlm_bench_events(uint64_t count, int stack);
/* Cost in nanoseconds of `count` probes while no recording runs. */
uint64_t tlm_bench_disabled(uint64_t count);
/* Makes the n-th next allocation of our own bookkeeping memory fail (1 = the next); 0 switches it off. */
void tlm_own_fail_after(uint64_t n);
/* 1: the entropy coder (zlib) was found at run time; 0: blocks hold plain columns. */
int tlm_zlib_available(void);
/* cffi: end */

#endif
