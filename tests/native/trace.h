/* SPDX-License-Identifier: MIT
 * trace.h: what the runtime records, as rows that a C test compares; each event goes to an array of the calling thread.
 *
 * Between trace_begin and trace_end the probes are on in every thread; only threads that called trace_begin keep their
 * events, and what others record is dropped. TRACE compares the whole trace, in order:
 *
 *     trace_begin(TRACE_OBJECTS);
 *     tlm_acquire(x, me);
 *     trace_end();
 *     TRACE({TLM_KIND_ACQUIRE, x, me, 2});
 *
 * Every event must carry TRACE_SITE: an operation that forgets its site fails. What devices and their buffers record is left
 * out, unless TRACE_ALL asks for it. Include it once, in a test with sources=core. */
#ifndef TLMEM_TRACE_H
#define TLMEM_TRACE_H

#include <unistd.h>

#include "check.h"
#include "memory/memory.h"

enum { TRACE_ROOM = 1 << 16, TRACE_SITE = 77 };
#define TRACE_ANY UINT64_C(0xFFFFFFFFFFFFFFFF)

typedef enum { TRACE_OBJECTS, TRACE_ALL } trace_what;

/* What an event must say; TRACE_ANY as object or arg, and TRACE_ANY_COUNT as count, fit everything. */
typedef struct {
    tlm_kind kind;
    uint64_t object, arg;
    uint32_t count;
} trace_row;
#define TRACE_ANY_COUNT 0xFFFFFFFFu

static __thread tlmi_event *trace_events;
static __thread uint32_t trace_used;
static __thread trace_what trace_wanted;

static inline const char *trace_kind_name(tlm_kind kind)
{
    static const char *const names[] = {
        "none",         "alloc",        "free",        "realloc",     "acquire",    "release",     "register",
        "unregister",   "promote",      "escape",      "scope_enter", "scope_exit", "frame_enter", "frame_exit",
        "slot_get",     "slot_grow",    "pool_hit",    "pool_miss",   "pool_put",   "pool_drop",   "pool_prune",
        "pool_reserve", "device_alloc", "device_free", "tape_record", "tape_save",  "tape_unsave", "backward_begin",
        "backward_end", "detach",       "reset",       "clear_grads", "mark",       "sample",      "misuse",
        "holders",      "copy"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static uint32_t trace_site(void)
{
    return TRACE_SITE;
}

static inline void trace_install_site(void)
{
    static tlmi_interpreter_hooks hooks;
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    if (tlmi_interpreter_now() != &hooks) {
        hooks = *tlmi_interpreter_now();
        hooks.site = hooks.patient_site = trace_site;
        atomic_store(&tlmi_interpreter, &hooks);
    }
    pthread_mutex_unlock(&once);
}

/* Forgets what this thread recorded and starts anew. */
static inline void trace_begin(trace_what wanted)
{
    trace_install_site();
    atomic_store(&tlmi_recording.stopped, true); /* events for which there is no room are dropped: there is no file */
    free(trace_events);
    trace_events = calloc(TRACE_ROOM, sizeof *trace_events);
    CHECK(trace_events);
    trace_used = 0;
    trace_wanted = wanted;
    tlmi_self.cursor = trace_events;
    tlmi_self.end = trace_events + TRACE_ROOM;
    atomic_store(&tlmi_recording_on, true);
}

static inline bool trace_is_of_device(const tlmi_event *event)
{
    bool raw = event->object == 0 && event->device >= TLM_DEVICE_CPU;
    return (event->kind >= TLM_KIND_POOL_HIT && event->kind <= TLM_KIND_POOL_RESERVE && raw) ||
           event->kind == TLM_KIND_DEVICE_ALLOC || event->kind == TLM_KIND_DEVICE_FREE;
}

/* Keeps what this thread recorded, without switching the probes off. */
static inline void trace_keep(void)
{
    uint32_t all = (uint32_t)(tlmi_self.cursor - trace_events);
    CHECK(all < TRACE_ROOM);
    tlmi_self.cursor = tlmi_self.end = NULL;
    trace_used = 0;
    for (uint32_t i = 0; i < all; i++)
        if (trace_wanted == TRACE_ALL || !trace_is_of_device(&trace_events[i]))
            trace_events[trace_used++] = trace_events[i];
}

/* Switches the probes off, in every thread, and keeps what this one recorded. */
static inline void trace_end(void)
{
    atomic_store(&tlmi_recording_on, false);
    trace_keep();
}

/* A thread that traced calls it before it ends. */
static inline void trace_forget(void)
{
    free(trace_events);
    trace_events = NULL;
    trace_used = 0;
}

/* How many events there are of a kind, of an object or (TRACE_ANY) of all. */
static inline uint32_t trace_count(tlm_kind kind, uint64_t object)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < trace_used; i++)
        found += trace_events[i].kind == kind && (object == TRACE_ANY || trace_events[i].object == object);
    return found;
}

/* Sum of the args of a kind. */
static inline uint64_t trace_sum(tlm_kind kind)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < trace_used; i++)
        sum += trace_events[i].kind == kind ? trace_events[i].arg : 0;
    return sum;
}

/* Place of the first event of a kind and object from `from` on; CHECKs that there is one. */
static inline uint32_t trace_find(tlm_kind kind, uint64_t object, uint32_t from)
{
    for (uint32_t i = from; i < trace_used; i++)
        if (trace_events[i].kind == kind && (object == TRACE_ANY || trace_events[i].object == object))
            return i;
    fprintf(stderr, "no %s of %llx in the trace\n", trace_kind_name(kind), (unsigned long long)object);
    exit(1);
}

static inline void trace_print(const char *title)
{
    fprintf(stderr, "%s\n", title);
    for (uint32_t i = 0; i < trace_used; i++)
        fprintf(stderr, "  %3u {%s, %llx, %llx, %u} device %u site %u\n", i,
                trace_kind_name((tlm_kind)trace_events[i].kind), (unsigned long long)trace_events[i].object,
                (unsigned long long)trace_events[i].arg, trace_events[i].count, trace_events[i].device,
                trace_events[i].site);
}

static inline bool trace_fits(const tlmi_event *event, const trace_row *row)
{
    return event->kind == row->kind && event->site == TRACE_SITE &&
           (row->object == TRACE_ANY || row->object == event->object) &&
           (row->arg == TRACE_ANY || row->arg == event->arg) &&
           (row->count == TRACE_ANY_COUNT || row->count == event->count);
}

static inline void trace_compare(const char *file, int line, const trace_row *rows, size_t count)
{
    size_t same = 0;
    while (same < count && same < trace_used && trace_fits(&trace_events[same], &rows[same]))
        same++;
    if (same == count && same == trace_used)
        return;
    fprintf(stderr, "%s:%d: the trace differs from row %zu on; expected\n", file, line, same);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "  %3zu {%s, %llx, %llx, %d}\n", i, trace_kind_name(rows[i].kind),
                (unsigned long long)rows[i].object, (unsigned long long)rows[i].arg, (int)rows[i].count);
    trace_print("recorded");
    exit(1);
}

/* The trace is exactly these rows; TRACE_NOTHING(): nothing was recorded. */
#define TRACE(...)                                                                                                     \
    trace_compare(__FILE__, __LINE__, (const trace_row[]){__VA_ARGS__},                                                \
                  sizeof((const trace_row[]){__VA_ARGS__}) / sizeof(trace_row))
#define TRACE_NOTHING() trace_compare(__FILE__, __LINE__, NULL, 0)
#endif
