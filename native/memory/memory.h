/* SPDX-License-Identifier: MIT
 * memory.h: what the files of this folder share: the slot of an object, its holders, the context, the scope, the frame.
 *
 * Order: object holder foreign tally < arena < context scope < frame record pool.
 *
 * Locks. Each slot, each scope and each pool has a spin lock. Order: slot, then scope or pool; never two of a kind. Nothing
 * is called under one that could block on the GIL: sites are looked up before (tlmi_site_here), `drop` and buffers come
 * after. Events are appended under the lock of their object, so that in time order each object's events are in the order in
 * which they happened; behind another thread a lock orders the clock as well. A lock that a thread held when its process forked is taken over in the child.
 */
#ifndef TLMI_MEMORY_H
#define TLMI_MEMORY_H

#include "log/log.h"
#include "memory/devices/buffers.h"
#pragma GCC visibility push(hidden)

/* ---- object.c: the slot map ---- */
typedef struct tlmi_scope tlmi_scope;
typedef struct tlmi_slot_of_object tlmi_slot_of_object;
struct tlmi_slot_of_object {
    /* hot */
    _Atomic uint64_t handle; /* of the tenant; 0: none, or it is being freed */
    tlmi_spin lock;          /* everything below, but for what an owner alone can see */
    _Atomic uint32_t count;
    void *payload;
    uint64_t bytes;
    tlm_holder holders[2];
    tlmi_scope *scope; /* it is registered here, as record number `record`; NULL: in none */
    uint32_t record;
    uint8_t type, device, flags;
    bool is_over; /* it has ended; its memory goes when nothing is pinned any more */
    /* cold */
    uint64_t *more; /* further holders: [0] room, [1] used, then they */
    uint32_t alloc_site, free_site;
    tlm_holder last;
    uint32_t generation, number; /* number of this slot; while it is free, of the next free one */
    union {
        struct {
            tlm_object base;
        } view;
        struct {
            tlm_object *values;
            uint64_t first_number; /* of the holders that the fields are */
            uint32_t fields;
            tlm_label layout;
        } record;
        struct {
            tlm_drop drop;
            void *context;
            uintptr_t address; /* 0: not found by address */
        } foreign;
    } as;
    union {
        uint32_t version;      /* how often it was written in place; for tapes, which save it */
        uint32_t dying_parent; /* number of a slot, while the tree it belongs to is being freed */
        uint32_t walk;         /* of a struct: the number of the last walk that came here (scope.c) */
    };
    uint32_t pins; /* work on its memory that is under way */
};
_Static_assert(sizeof(tlmi_slot_of_object) == 128, "two cache lines");

enum { TLMI_SLOT_BITS = 28 };
/* In the handle of a slot: the object is gone, and the slot is kept because a scope has a record of it (foreign.c). */
#define TLMI_STALE (UINT64_C(1) << 63)
/* The slot of a handle, locked; NULL when the handle is stale or null. */
tlmi_slot_of_object *tlmi_object_lock(tlm_object object);
/* The slot of an object that is gone and was kept for a stale record, locked; NULL when it was not kept. */
tlmi_slot_of_object *tlmi_object_lock_stale(tlm_object object);
/* What is left of an object that was freed: type, device, bytes, sites, who held it last. false: its slot has another
 * tenant by now. Takes no lock. */
bool tlmi_object_glance(tlm_object object, tlm_object_info *out);
/* Keeps a failure about an object for tlm_failure_last; returns the status. */
tlm_status tlmi_fail(tlm_status status, tlm_object object, tlm_holder holder, uint64_t bytes, uint64_t detail);
/* What a function returns that found a stale handle: remembers it for tlm_failure_last and records the misuse. */
tlm_status tlmi_object_missing(tlm_object object, tlm_holder holder, tlm_misuse misuse);
static inline tlm_object tlmi_object_handle(const tlmi_slot_of_object *slot)
{
    return (uint64_t)slot->generation << TLMI_SLOT_BITS | slot->number;
}
static inline void tlmi_object_unlock(tlmi_slot_of_object *slot)
{
    tlmi_spin_unlock(&slot->lock);
}
/* A fresh object, floating, count 1, that nobody else can see yet; its ALLOC not yet recorded. NULL: no memory for a slot.
 * Only fields that are not named here need to be set. */
tlmi_slot_of_object *tlmi_object_create(uint8_t type, uint8_t device);
/* Bytes of its own payload; before it is published. */
static inline void tlmi_object_set_bytes(tlmi_slot_of_object *slot, uint64_t bytes)
{
    __atomic_store_n(&slot->bytes, bytes, __ATOMIC_RELAXED); /* tlmi_object_glance may look at the same time */
}
/* Records ALLOC, counts it, lets others see it; the handle. `site`: from tlmi_site_here, looked up before. */
tlm_object tlmi_object_publish(tlmi_slot_of_object *slot, uint32_t site);
/* Gives back an object that was never published. */
void tlmi_object_cancel(tlmi_slot_of_object *slot);
/* Under the slot's lock, which is why it needs no atomic addition. The count afterwards. */
static inline uint32_t tlmi_object_count(tlmi_slot_of_object *slot, int change)
{
    uint32_t count = atomic_load_explicit(&slot->count, memory_order_relaxed) + (uint32_t)change;
    atomic_store_explicit(&slot->count, count, memory_order_relaxed);
    return count;
}
/* The count of a holder goes; frees and unlocks. The slot is locked and the holder was removed. Records RELEASE, then FREE
 * when it was the last. */
void tlmi_object_let_go(tlmi_slot_of_object *slot, tlm_holder holder, uint32_t site);
/* Frees whoever holds it; the slot is locked and is unlocked. */
void tlmi_object_end(tlmi_slot_of_object *slot, uint32_t site);
/* Gives the slot of an object that was freed back; for foreign.c, which keeps some for a while. Locked, is unlocked. */
void tlmi_object_recycle(tlmi_slot_of_object *slot);

/* ---- holder.c ---- */
/* Both under the slot's lock. false: no memory (add), not a holder (remove). The count is not touched. */
bool tlmi_holder_add(tlmi_slot_of_object *slot, tlm_holder holder);
bool tlmi_holder_has_kind(const tlmi_slot_of_object *slot, tlm_holder_kind kind);
bool tlmi_holder_remove(tlmi_slot_of_object *slot, tlm_holder holder);
bool tlmi_holder_replace(tlmi_slot_of_object *slot, tlm_holder from, tlm_holder to); /* never needs memory */
/* Whether the holder, a scope too, holds the object. Under its lock. */
bool tlmi_is_holder(tlmi_slot_of_object *slot, tlm_holder holder);
/* One count goes from a holder, a scope too, to one that is no scope; the object may float before or after. Under its lock.
 * false: `from` does not hold it, nothing happened. Records UNREGISTER, REGISTER. */
bool tlmi_hand_over(tlmi_slot_of_object *slot, tlm_holder from, tlm_holder to, uint32_t site);

/* ---- counters.c: counters, one set for each thread and device, and what is current and peak. Cannot fail ---- */
void tlmi_tally_alloc(uint8_t device, uint64_t bytes);
void tlmi_tally_free(uint8_t device, uint64_t bytes);
/* What a thread counts for itself; others read it when they add up. */
typedef struct {
    int64_t acquires, releases, floating;
} tlmi_counts;
extern __thread tlmi_counts *tlmi_own_counts; /* NULL: none yet */
void tlmi_tally_first_counts(int acquires, int releases, int floating);
static inline void tlmi_tally_add(int64_t *to, int64_t amount)
{
    __atomic_store_n(to, __atomic_load_n(to, __ATOMIC_RELAXED) + amount, __ATOMIC_RELAXED);
}
static inline void tlmi_tally_counts(int acquires, int releases, int floating)
{
    tlmi_counts *own = tlmi_own_counts;
    if (tlmi_unlikely(own == NULL)) {
        tlmi_tally_first_counts(acquires, releases, floating);
        return;
    }
    if (acquires)
        tlmi_tally_add(&own->acquires, acquires);
    if (releases)
        tlmi_tally_add(&own->releases, releases);
    if (floating)
        tlmi_tally_add(&own->floating, floating);
}
/* ---- foreign.c ---- */
void tlmi_foreign_forget(uintptr_t address, tlm_object object); /* when it is freed */
/* A scope's record led to an object that is gone: if its slot was kept for that, it is given back now. Unlocked. */
bool tlmi_foreign_purge(tlm_object object, tlmi_scope *scope, uint32_t site);
/* Records an event about an object. */
static inline void tlmi_object_event(tlm_kind kind, const tlmi_slot_of_object *slot, tlm_object object, uint64_t arg,
                                     uint32_t site)
{
    if (tlmi_probe_on()) {
        uint32_t count = atomic_load_explicit(&((tlmi_slot_of_object *)slot)->count, memory_order_relaxed);
        tlmi_event_append((uint8_t)kind, slot->device, object, arg, site, (uint16_t)(count < 65535 ? count : 65535));
    }
}
/* ---- arena.c: one block of memory used from both ends: scopes from below, slots of frames from above. Not thread-safe ---- */
typedef struct {
    uint8_t *block;               /* NULL: none taken yet */
    uint64_t capacity, low, high; /* used: the first `low` bytes and the last `high` bytes */
    uint64_t peak, overflows;
} tlmi_arena;
void *tlmi_arena_low(tlmi_arena *arena, uint64_t bytes);  /* NULL: full, counted as overflow */
void *tlmi_arena_high(tlmi_arena *arena, uint64_t bytes); /* likewise */
/* What was taken beyond this mark is nobody's any more. */
void tlmi_arena_end_low(tlmi_arena *arena, uint64_t low);
void tlmi_arena_end_high(tlmi_arena *arena, uint64_t high);
void tlmi_arena_close(tlmi_arena *arena); /* gives the block back */
/* Gives an object that is being made its payload: of the arena, else of the device cpu. On failure it has none. */
tlm_status tlmi_arena_payload(tlmi_arena *arena, bool from_above, tlmi_slot_of_object *slot, uint64_t bytes);

/* ---- context.c, scope.c ---- */
struct tlmi_scope {
    uint64_t id;
    uint64_t parent; /* id of `outer`, which may be gone while this one ends */
    tlmi_scope *outer;
    tlm_context *context; /* NULL: outside any context; `outer` is then its parent */
    tlmi_spin lock;       /* records, statistics */
    bool closing, is_frame;
    tlm_label label;
    uint32_t depth;
    tlm_object *records; /* in the order of registration; 0: taken out */
    uint32_t records_room, records_used;
    uint64_t count, frees, escaped, leaked;
    uint64_t arena_low, arena_high; /* at its entry */
    /* of a frame */
    uint32_t slots;
    tlm_object *buffers; /* one for each slot; 0: not made yet */
    uint64_t *capacities;
    tlm_object *replaced; /* buffers that were too small, newest last */
    uint32_t replaced_room, replaced_used;
    tlmi_scope *outer_frame;
    tlmi_scope *next_in_table;              /* of the scopes with the same hash of the id */
    tlmi_scope *first_child, *next_sibling; /* outside any context; the newest first */
    tlm_object few[12];                     /* the first records */
};
struct tlm_context {
    tlmi_scope *innermost, *frame;
    tlmi_arena arena;
    tlmi_scope *spare; /* left scopes, to be used again */
    uint32_t spare_count;
    bool records_nothing; /* on a tape: tlm_grad_mode */
};
static inline tlm_holder tlmi_scope_holder(const tlmi_scope *scope)
{
    return TLM_HOLDER(TLM_HOLDER_SCOPE, scope->id);
}
/* The innermost scope that is not ending. What a `drop` makes while one ends belongs to the one around it. Only for the thread
 * that uses the context. */
static inline tlmi_scope *tlmi_scope_innermost(const tlm_context *context)
{
    tlmi_scope *scope = context->innermost;
    while (tlmi_unlikely(scope && scope->closing))
        scope = scope->outer;
    return scope;
}
tlmi_scope *tlmi_scope_lock(uint64_t id); /* the scope of this id, locked; NULL when there is none */
tlm_context *tlmi_context_here(void);     /* never NULL, but for want of memory */
tlm_status tlmi_scope_open(tlm_label label, tlmi_scope **out);
/* Leaves the innermost scope: records, then slots of a frame, then the arena. */
void tlmi_scope_close(tlm_context *context, tlm_scope_statistics *out, uint32_t site);
/* Takes the object's record out of its scope; under the object's lock. `escaped`: it goes to somebody else, else it ends. */
void tlmi_scope_strike(tlmi_slot_of_object *slot, bool escaped);
void tlmi_scope_free_spares(tlm_context *context);
/* ---- frame.c ---- */
/* What a frame has beyond a scope: frees buffers of slots, then replaced ones. Called by tlmi_scope_close for frames. */
uint32_t tlmi_frame_end(tlmi_scope *frame, uint32_t site); /* how many buffers */
/* ---- pool.c ---- */
uint64_t tlmi_pool_key_bytes(void); /* of bookkeeping, for a key with one item */
#pragma GCC visibility pop

#pragma GCC visibility push(default)
/* ---- counters.c, for the search for holders ---- */
int64_t tlmi_tally_current_bytes(void); /* of live objects, on all devices */
#pragma GCC visibility pop
#endif
