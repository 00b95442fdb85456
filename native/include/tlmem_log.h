/* SPDX-License-Identifier: MIT
 * tlmem_log.h: statuses, kinds of events, and the recording: begin, end, marks. tlmem.h includes it.
 *
 * One process makes at most one recording at a time. Functions may be called from any thread unless their comment says
 * otherwise; cffi releases the GIL around every call. A function returns a tlm_status, or its comment says that it cannot
 * fail. After a failure the state is as it was before the call unless the comment says what changed.
 */
#ifndef TLMEM_LOG_H
#define TLMEM_LOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

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
    /* of the runtime */
    TLM_OUT_OF_MEMORY,      /* the device has no memory for a payload */
    TLM_OVERFLOW,           /* a size that no device could have, or that does not fit 64 bits */
    TLM_FREED,              /* the object was freed: its handle is stale */
    TLM_NOT_A_HOLDER,       /* who releases or hands over does not hold the object */
    TLM_NOT_IN_SCOPE,       /* no scope is entered here, or the scope does not exist any more */
    TLM_NOT_REGISTERED,     /* the object belongs to no scope */
    TLM_ALREADY_REGISTERED, /* it belongs to a scope already; nothing changed */
    TLM_UNBALANCED,         /* a scope or frame is left that is not the innermost; see there what was done */
    TLM_NO_FRAME,           /* no function frame is entered here */
    TLM_BAD_SLOT,           /* the frame has no slot of this number */
    TLM_IN_ARENA,           /* its memory is the frame's or scope's and ends with it: it cannot be handed out */
    TLM_STILL_HELD,         /* others hold the object too */
    TLM_ALREADY_POOLED,     /* the pool holds it already */
    TLM_WRONG_DEVICE,       /* the objects live on different devices */
    TLM_NO_DEVICE,          /* no such device, or it is not available here */
    TLM_WRONG_TYPE,         /* an object of another type was expected */
    /* of the tape */
    TLM_STALE_SLOT,      /* the slot is on no tape any more: the tape was reset, or everybody let go of it */
    TLM_WRONG_TAPE,      /* values of two tapes meet */
    TLM_BUSY,            /* a backward pass is under way on the tape */
    TLM_CHANGED,         /* what was saved for a backward pass has been written since */
    TLM_SECOND_BACKWARD, /* a backward pass has run through here and the graph was not retained */
    TLM_RULE_FAILED,     /* a rule of the program failed, and said why itself */
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
    TLM_KIND_HOLDERS = 35,
    TLM_KIND_COPY = 36,
    TLM_KIND_MODULE_PATH = 37, /* of PyTorch: the module in which the block was allocated just before */
    TLM_KIND_AUTOGRAD = 38,    /* of PyTorch: the graph's sequence number at that moment */
} tlm_kind;

/* Whose memory an event speaks of. 1 to 15 is foreign memory, named by address; from 16 on
 * the object is a handle of the runtime, from 32 on on a device that the program made (tlm_device_limit). */
typedef enum {
    TLM_DEVICE_NONE = 0,
    TLM_DEVICE_NUMPY = 1,
    TLM_DEVICE_TORCH = 2,
    TLM_DEVICE_PROBE = 3,
    TLM_DEVICE_TORCH_MAPPED = 4,      /* PyTorch's shared memory and mapped files */
    TLM_DEVICE_TORCH_ACCELERATOR = 5, /* the address has the number of the accelerator from bit 56 on */
    TLM_DEVICE_HEAP = 6,              /* a sample of what else the C allocator and Python hand out (tlm_heap_install) */
    TLM_DEVICE_CPU = 16,
    TLM_DEVICE_METAL = 17,
    TLM_DEVICE_SIM_METAL = 18,
    TLM_DEVICE_FOREIGN = 19, /* objects over memory that no device of ours gave: tlm_foreign_register */
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
    TLM_METRIC_DRIVER = 18,  /* held by the drivers of devices, whether handed out or not; when it changed */
    TLM_METRIC_TAPES = 19,   /* of tlmem itself: what the records on tapes take; when it changed */
    /* From here on resident memory by mappings, Linux only; the first four are parts of ANON, the last three of FILE. */
    TLM_METRIC_LIBRARY_DATA = 20,       /* written and zeroed data of programs and libraries */
    TLM_METRIC_STACKS = 21,             /* of threads */
    TLM_METRIC_ALLOCATOR_RESIDENT = 22, /* the C allocator's heap and arenas, without blocks that it mapped singly */
    TLM_METRIC_MAPPED = 23,             /* all other anonymous mappings, whoever made them */
    TLM_METRIC_LOG_FILE = 24,           /* the recording file */
    TLM_METRIC_SHARED = 25,             /* shared memory without a file */
    TLM_METRIC_DATA_FILES = 26,         /* files without code */
    TLM_METRIC_MALLOC_MAPPED = 27,      /* of MALLOC_USED: blocks that the C allocator mapped singly */
    TLM_METRIC_RECORDER_RESIDENT = 28,  /* of RECORDER: what is resident */
    TLM_METRIC_SHARED_SIZE = 29,        /* address space of the mappings of SHARED, resident or not */
    TLM_METRIC_DELAYED = 30, /* ns so far in which the main thread was ready to run and waited for a processor */
} tlm_metric;

/* A label: a name as a number, valid as long as the process lives; 0 is none. */
typedef uint32_t tlm_label;

/* A place in native code, in static storage. `cache` is tlmem's; begin with 0. */
typedef struct {
    const char *file;
    const char *function;
    uint32_t line;
    uint32_t unused;
    uint64_t cache;
} tlm_location;

/* ---- recording (recording.c, event.c) ---- */
typedef struct {
    const char *path;      /* where to write */
    int overwrite;         /* 1: replace a file that exists; links, pipes and devices are never replaced */
    uint64_t limit_bytes;  /* keep the file below this by folding the oldest events; 0: no limit; at least 8 MiB */
    uint32_t stack_depth;  /* innermost frames kept of a stack; 0: no stacks; at most 1024 */
    uint32_t sample_ms;    /* between samples of resident memory; later a 200th of the run's age, up to five times this;
                            * 0: none but at start and end */
    uint32_t sample_smaps; /* 1: smaps_rollup and page faults with each slow sample */
    uint32_t parent_pid;   /* recorded process this one comes from, or 0 */
    uint32_t mode;         /* who may read and write the file, 0600 to 0777, whatever the umask; 0: 0600 */
    uint32_t compact;      /* 1: compact full segments while the program runs (the normal case); 0 only for tests */
} tlm_recording_options;

/* Why a recording ended before it was stopped; from TLM_ENDED_CUT on its file is not what it should be. */
typedef enum {
    TLM_ENDED_NOT = 0,
    TLM_ENDED_NO_ROOM = 1, /* the disk or the size limit; tlm_recording_errno() says which */
    TLM_ENDED_CUT = 2,     /* another program cut the file short, or wrote over its beginning */
    TLM_ENDED_REMOVED = 3, /* it has no name any more */
    TLM_ENDED_FAILED = 4,  /* the disk could not be read or written where the file is mapped */
} tlm_early_end;

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
    int stopped;               /* a tlm_early_end */
    int moved;                 /* 1: when it ended, its path led to another file or to none */
    uint64_t inode;            /* of the file that was recorded to */
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
/* Text of source that is in no file, such as that of a cell: the file gets the lines of it that sites are on, now and, when it
 * is offered before the first site and there is room, later too. */
tlm_status tlm_source_offer(const char *name, const char *text, uint64_t bytes);
/* Other code has that name, too: only what is named so is of the text that was offered. */
tlm_status tlm_source_code(const char *name, const char *function, uint32_t first_line);
/* How many lines are wanted of a file that cannot be read, which is tried now. */
uint32_t tlm_source_missing(const char *name);
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
/* ---- sites (site.c, location.c) ---- */
/* Site of the calling thread's stack: Python's, below it the native location; 0 without one. Cannot fail. */
uint32_t tlm_site_current(void);
/* Where the calling thread is in native code, from now on; NULL: nowhere. Returns what was in force. Cannot fail. */
tlm_location *tlm_location_set(tlm_location *location);

/* ---- labels (label.c) ---- */
/* The number of a text; the same text has the same number. 0: no memory, or an empty text. */
tlm_label tlm_label_of(const char *text);
/* Its text, "" for none; lives as long as the process. Cannot fail. */
const char *tlm_label_text(tlm_label label);

/* ---- measuring and testing ---- */
/* Cost in nanoseconds of `count` probes while no recording runs. */
uint64_t tlm_bench_disabled(uint64_t count);
/* Makes the n-th next allocation of our own bookkeeping memory fail (1 = the next); 0 switches it off. */
void tlm_own_fail_after(uint64_t n);
/* 1: zlib, which reads compressed columns, was found at run time; 0: blocks hold plain columns. */
int tlm_zlib_available(void);
/* cffi: end */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
