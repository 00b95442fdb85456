/* SPDX-License-Identifier: MIT
 * quarantine.h: freed memory that is kept unreadable for a while, so that a touch of it is caught: `tlmem record --zombie`.
 *
 *     guarded     | slack | header | payload | guard page |     pages of its own; unreadable from the free on
 *     filled      | header | PATTERN PATTERN ... |              smaller memory, looked at when it leaves
 *
 * quarantine.c keeps, trap.c catches touches and says whose memory it was. Used by the device `cpu` and by the
 * source for NumPy. Switched off it costs one predictable branch for each of their calls.
 */
#ifndef TLMI_QUARANTINE_H
#define TLMI_QUARANTINE_H

#include "log/log.h"
#pragma GCC visibility push(default)

enum {
    TLMI_GUARDED_FROM = 4096,  /* payloads from here on have pages of their own */
    TLMI_FREED_PATTERN = 0xDB, /* fills the others */
};

/* Memory that is being freed, as far as its last owner knows it. */
typedef struct {
    void *memory;    /* as it was allocated: what `release` gets */
    uint64_t bytes;  /* of it */
    uint64_t object; /* handle, or address of foreign memory; 0: the name that tlmi_quarantine_name left, if any */
    void (*release)(void *memory, uint64_t bytes);
    uint32_t header; /* bytes before the payload */
    uint32_t free_site;
    uint8_t device;
    bool is_bound; /* `release` may be called only within a call of the same source */
} tlmi_freed;

typedef enum { TLMI_QUARANTINED_NONE = 0, TLMI_QUARANTINED_LIVE, TLMI_QUARANTINED_HELD } tlmi_quarantined_state;

/* Memory with pages of its own, in use or freed, or filled memory that was freed. */
typedef struct {
    _Atomic uint32_t state; /* tlmi_quarantined_state */
    uint32_t next;          /* in the list it is in; 0: the last */
    uint8_t *pages;         /* NULL: filled, not guarded */
    uint64_t page_bytes;    /* with the guard page */
    uint64_t alloc_epoch;   /* of the recording that has the site */
    uint64_t free_epoch;
    uint32_t alloc_site;   /* of guarded memory */
    uint64_t object_bytes; /* as the program asked; 0: not known */
    tlmi_freed freed;      /* of memory in use: what is known already */
} tlmi_quarantined;

/* ---- quarantine.c ---- */
extern _Atomic bool tlmi_quarantine_on;   /* memory that is freed goes into quarantine */
extern _Atomic bool tlmi_quarantine_used; /* it was on: some memory may be guarded until the process ends */
static inline bool tlmi_quarantine_active(void)
{
    return tlmi_unlikely(atomic_load_explicit(&tlmi_quarantine_on, memory_order_relaxed));
}
static inline bool tlmi_quarantine_was_active(void)
{
    return tlmi_unlikely(atomic_load_explicit(&tlmi_quarantine_used, memory_order_relaxed));
}
/* Memory of zeros with pages of its own, its end before a guard page but for what `alignment` asks; NULL: this request is not
 * for us, or there are no more pages. `bytes` include the header. */
void *tlmi_quarantine_alloc(uint64_t bytes, uint32_t header, uint32_t alignment, uint8_t device, uint32_t site);
/* Bytes of memory in use that has pages of its own; 0: it is not ours. */
uint64_t tlmi_quarantine_bytes(const void *memory);
/* Takes freed memory over. false: it is the caller's still. Memory with pages of its own is always taken over. */
bool tlmi_quarantine_put(const tlmi_freed *freed);
/* Says which object of the runtime the memory is that this thread frees next. */
void tlmi_quarantine_name(tlm_object object, uint64_t bytes, uint32_t free_site);
/* Whose memory is at this address; NULL: not ours. Takes no lock. */
const tlmi_quarantined *tlmi_quarantine_at(uintptr_t address);
void tlmi_quarantine_count_touch(void);
#pragma GCC visibility pop

#pragma GCC visibility push(hidden)
/* ---- trap.c ---- */
/* Puts our handlers before those in force; again when the program has set its own meanwhile. */
void tlmi_trap_install(void);
#pragma GCC visibility pop
#endif
