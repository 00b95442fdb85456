/* SPDX-License-Identifier: MIT
 * internal.h: what the C files of tlmem share; never seen by Python. Prototypes stand under the file that defines them.
 *
 * Order (a file uses only what is to its left): status clock own < checksum codec < file < meta segment < label site
 * location < rss_system < source_rss < compact fold seal < service recording; the runtime stands on top of them, see runtime.h. What only the files of the log share is in log.h.
 * docs/format.md is the contract for everything that reaches the disk.
 */
#ifndef TLMEM_INTERNAL_H
#define TLMEM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "tlmem.h"

/* Other files of the library and of the extension module beside it see these names; see tlmem.h for what the world sees. */
#pragma GCC visibility push(default)

#define tlmi_likely(x) __builtin_expect(!!(x), 1)
#define tlmi_unlikely(x) __builtin_expect(!!(x), 0)

/* One event, 32 bytes; drawn in docs/format.md. Committed when kind is not 0. */
typedef struct {
    uint64_t ticks;
    uint64_t object;
    uint64_t arg;
    uint32_t site;
    uint16_t count;
    _Atomic uint8_t kind;
    uint8_t device;
} tlmi_event;
_Static_assert(sizeof(tlmi_event) == 32, "an event is 32 bytes on disk");

/* ---- clock.c: the one place that knows what time is ---- */
#if defined(__x86_64__)
static inline uint64_t tlmi_cycle_counter(void)
{
    uint32_t lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return ((uint64_t)hi << 32) | lo;
}
#elif defined(__aarch64__)
static inline uint64_t tlmi_cycle_counter(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#endif
extern bool tlmi_clock_is_counter;   /* the CPU counter is constant and may be used; set once by tlmi_clock_init */
uint64_t tlmi_clock_ns(void);        /* CLOCK_MONOTONIC */
uint64_t tlmi_clock_thread_ns(void); /* CPU time of the calling thread */
void tlmi_clock_init(void);
#define TLMI_ROUGH_NS UINT64_C(50000)
uint64_t tlmi_clock_rough_ticks(void); /* about so many pass in that time */
uint32_t tlmi_clock_shift(void);       /* lowest bits of ticks that are dropped on disk */
static inline uint64_t tlmi_clock_ticks(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    if (tlmi_likely(tlmi_clock_is_counter))
        return tlmi_cycle_counter();
#endif
    return tlmi_clock_ns();
}

/* What the clock says from here on is later than all that this thread has seen so far; without it the counter may be read before
 * a lock is taken, since processors read ahead. Costs some 15 ns. */
static inline void tlmi_clock_order(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* ---- own.c: our own bookkeeping memory: mapped, zeroed, counted, never from malloc; can be made to fail ---- */
void *tlmi_own_alloc(size_t bytes);            /* NULL on failure; page aligned, rounded up to pages */
void tlmi_own_free(void *start, size_t bytes); /* the same size as asked for; NULL is fine */
uint64_t tlmi_own_current_bytes(void);
uint64_t tlmi_own_resident_bytes(void); /* of these, what was ever touched; asks the kernel about every page */
/* A file of ours that is kept open. Its number is a high one, so that the program's files have the numbers they would have
 * without us; and since programs close numbers that they did not open, it is looked at before each use. */
typedef struct {
    int fd; /* -1: none */
    uint64_t device;
    uint64_t inode;
} tlmi_own_file;
void tlmi_own_file_keep(tlmi_own_file *file, int fd);  /* takes an open file over; -1 for none */
bool tlmi_own_file_is_ours(const tlmi_own_file *file); /* false: none, or its number is another file's by now */
void tlmi_own_file_close(tlmi_own_file *file);         /* unless it is another's by now */

/* ---- segment.c: one writer segment per thread ---- */
extern _Atomic bool tlmi_recording_on; /* the one branch of a probe that is switched off */
extern _Atomic uint64_t
    tlmi_recording_epoch; /* number of the recording, from 1: what was named in another is not named */

/* The hot part of a thread's state. Owned by the thread; others read it under the recording's lock. */
typedef struct tlmi_thread {
    _Atomic(tlmi_event *) cursor; /* next event to write */
    _Atomic(tlmi_event *)
        end; /* one past the last; cursor >= end: ask for another segment. Taken away by setting it to NULL */
    struct tlmi_thread_cold *cold;
    uint32_t
        mark; /* even; from its first event on another one than all other threads of the process have; before it 0 */
} tlmi_thread;
extern __thread tlmi_thread tlmi_self;

/* Gives the calling thread a fresh segment. false: none to be had, the event is counted as lost. */
bool tlmi_segment_rotate(void);

/* The one way in for events, whatever the source. Never blocks but when a segment is full; never calls malloc or Python. */
static inline void tlmi_event_append(uint8_t kind, uint8_t device, uint64_t object, uint64_t arg, uint32_t site,
                                     uint16_t count)
{
    tlmi_event *event = atomic_load_explicit(&tlmi_self.cursor, memory_order_relaxed);
    if (tlmi_unlikely(event >= atomic_load_explicit(&tlmi_self.end, memory_order_relaxed))) {
        if (!tlmi_segment_rotate())
            return;
        event = atomic_load_explicit(&tlmi_self.cursor, memory_order_relaxed);
    }
    event->ticks = tlmi_clock_ticks();
    event->object = object;
    event->arg = arg;
    event->site = site;
    event->count = count;
    event->device = device;
    atomic_store_explicit(&event->kind, kind, memory_order_release);
    atomic_store_explicit(&tlmi_self.cursor, event + 1, memory_order_relaxed);
}
static inline bool tlmi_probe_on(void)
{
    return tlmi_unlikely(atomic_load_explicit(&tlmi_recording_on, memory_order_relaxed));
}

/* ---- meta.c: names, written once when first seen. Thread-safe; false: no room, nothing written ---- */
bool tlmi_meta_code(uint32_t code, uint32_t first_line, const char *file, uint32_t file_bytes, const char *name,
                    uint32_t name_bytes);
bool tlmi_meta_site(uint32_t site, uint32_t parent, uint32_t code, uint32_t line);
bool tlmi_meta_thread(uint32_t thread, uint32_t flags, uint64_t os_id, uint64_t ticks, const char *name);
bool tlmi_meta_note(const char *key, const char *text);
bool tlmi_meta_label(uint32_t label, const char *text);
bool tlmi_meta_holding(const void *payload, uint32_t bytes); /* who holds arrays; the source lays it out */

/* ---- label.c: names as numbers, see tlmem.h ---- */
tlm_label tlmi_label_write(tlm_label label); /* makes sure that the recording knows it; 0: none, or no room */
/* The same for a holder that has a name. A foreign one below MOST_LABELS is a label, from there on an address. */
enum { TLMI_MOST_LABELS = 1 << 22 };
void tlmi_label_write_holder(tlm_holder holder);

/* ---- site.c: the tree of call sites ---- */
bool tlmi_site_init(uint32_t stack_depth); /* at start of a recording; forgets all sites of a former one */
void tlmi_site_reset(void);                /* at its end, and in a forked child */
/* Child of parent for (code, instruction); makes it, calling line() only then. 0: no room. Lock-free when it exists. */
uint32_t tlmi_site_child(uint32_t parent, uint32_t code, uint32_t instruction, uint32_t (*line)(void *), void *context);
uint64_t tlmi_site_count(void);
uint32_t tlmi_site_new_code(void); /* a fresh code number in this recording, from 1 */
uint32_t tlmi_site_code_count(void);

/* ---- interpreter.c: what an interpreter in the process can tell; one table, put there once when it is loaded ---- */
typedef struct {
    uint32_t (*site)(void);         /* of the calling thread's stack; 0: none, or not to be had without the GIL */
    uint32_t (*patient_site)(void); /* the same, waiting for the GIL where needed: never under a lock of ours */
    void (*stacks_open)(uint32_t stack_depth);
    void (*stacks_close)(void);
    uint64_t (*untouched_bytes)(uint64_t budget_ns, bool *known); /* large live blocks, pages never touched */
    uint64_t (*arena_bytes)(bool *known);
    uint64_t (*large_bytes)(bool *known);
    uint64_t (*module_count)(bool *known);
    void (*tick)(void); /* by the service thread, with each sample; never waits for the GIL */
} tlmi_interpreter_hooks;
extern const tlmi_interpreter_hooks *_Atomic tlmi_interpreter;
static inline const tlmi_interpreter_hooks *tlmi_interpreter_now(void)
{
    return atomic_load_explicit(&tlmi_interpreter, memory_order_relaxed);
}

/* ---- tally.c ---- */
int64_t tlmi_tally_current_bytes(void); /* of live objects of the runtime, on all devices */

/* ---- location.c: sites in native code ---- */
uint32_t tlmi_location_site(tlm_location *location, uint32_t parent); /* parent when there is no room */
uint32_t tlmi_site_here(void); /* Python's stack and the location in force. Never under a lock of ours */

/* ---- source_rss.c: the sampler. Called by the service thread, without the GIL; never allocates with malloc ---- */
/* Opens what is read again and again; the log may be NULL. */
void tlmi_rss_open(bool smaps, const tlmi_own_file *log);
void tlmi_rss_close(void);
void tlmi_rss_fast(void); /* anonymous and recorder bytes, as sample events of the calling thread */
void tlmi_rss_slow(
    bool force); /* allocator, Python heap, high water, untouched; backs off to stay under 1 % of the time */
#pragma GCC visibility pop
#endif
