/* SPDX-License-Identifier: MIT
 * log.h: what the layers above the log use of it: appending an event, sites, names, and the hooks by which they are asked.
 *
 * Prototypes stand under the file that defines them. recording.h has what the files of the log share, format.h what is on
 * disk.
 */
#ifndef TLMI_LOG_H
#define TLMI_LOG_H

#include "platform/platform.h"
/* The extension module sees these names too; tlmem_log.h has what the world sees. */
#pragma GCC visibility push(default)

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
bool tlmi_meta_line(uint32_t code, uint32_t line, const char *text, uint32_t bytes);
bool tlmi_meta_holding(const void *payload, uint32_t bytes); /* who holds arrays; the source lays it out */
bool tlmi_meta_content(const void *payload, uint32_t bytes); /* what containers have; likewise */

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

/* ---- location.c: sites in native code ---- */
uint32_t tlmi_location_site(tlm_location *location, uint32_t parent); /* parent when there is no room */
uint32_t tlmi_site_here(void); /* Python's stack and the location in force. Never under a lock of ours */

/* The site for the events of one call; 0 while nothing is recorded. */
static inline uint32_t tlmi_site_for_events(void)
{
    return tlmi_probe_on() ? tlmi_site_here() : 0;
}

/* ---- hooks.c: what the log asks of the layers above it ---- */
/* Of an interpreter in the process; one table, put there once when it is loaded. */
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

#pragma GCC visibility pop

#pragma GCC visibility push(hidden)
/* Figures that stand in samples; each layer sets its own by a constructor with TLMI_GAUGES_PRIORITY, which runs before that of
 * environment.c. They never call malloc. */
typedef struct {
    /* Resident, of freed memory that is held back, and to know it; counts as ours. */
    uint64_t (*quarantine_bytes)(void);
    uint64_t (*driver_bytes)(void); /* of the drivers of all devices that were used */
    uint64_t (*tape_bytes)(void);   /* of the records on all tapes */
    bool (*has_guard_pages)(void);  /* some guard pages are not those of stacks */
} tlmi_gauges;
#define TLMI_GAUGES_PRIORITY 200
extern tlmi_gauges tlmi_gauges_of_layers;

/* ---- meta.c ---- */
/* Calls visit(records, bytes) for what is written, without the lock: records are never changed. Returns whether one said
 * true, which ends it. Only while the recording runs. */
bool tlmi_meta_peek(bool (*visit)(void *context, const uint8_t *records, uint32_t bytes), void *context);
/* ---- event.c ---- */
/* Records a misuse about an object. Under its lock or not. */
void tlmi_misuse(tlm_misuse misuse, uint8_t device, tlm_object object, tlm_holder holder, uint32_t site);
#pragma GCC visibility pop
#endif
