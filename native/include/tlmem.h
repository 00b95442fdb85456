/* SPDX-License-Identifier: MIT
 * tlmem.h: the C interface of tlmem's runtime: who owns which memory, since when, and until when.
 *
 * Words. An *object* is memory with a count; its handle is stale once it is freed, and a stale handle is recognised. Each
 * count belongs to a named *holder*. A *scope* holds what was registered in it and lets go at its exit; a *frame* is a scope
 * with slots of memory that live as long as one call; a *context* is the stack of scopes and frames of a thread or of an
 * asynchronous task. A *struct* is an object whose fields hold others. A *pool* keeps freed memory for later; a *device* is
 * where memory comes from.
 *
 * Rules. Objects, pools and devices may be used from any thread; a context by one thread at a time. The null object, 0, is
 * accepted everywhere, means "nothing to own", and every operation on it succeeds at once without an event. A function
 * returns a status; unless it is TLM_OK, nothing has changed unless the comment says what. tlm_failure_last() tells what it
 * was about. Misuse is never undefined: it is a status, and an event while something is recorded. Payloads are aligned to
 * 64 bytes and their contents are undefined until written.
 */
#ifndef TLMEM_H
#define TLMEM_H

#include "tlmem_log.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* cffi: begin */
/* ---- objects and holders (object.c, holder.c) ---- */
typedef uint64_t tlm_object; /* generation << 28 | slot; 0: the null object. Never used again for another object */
typedef uint64_t tlm_holder; /* kind << 56 | number */

/* Who holds. What the number is stands beside the kind. Part of the file format: append, never renumber. */
typedef enum {
    TLM_HOLDER_NONE = 0,
    TLM_HOLDER_FLOATING = 1, /* nobody; 0. Just made, promoted or unregistered: whoever takes it gets the count */
    TLM_HOLDER_SCOPE = 2,    /* scope id */
    TLM_HOLDER_HANDLE = 3,   /* a variable of the program's language; its serial number */
    TLM_HOLDER_FIELD = 4,    /* a field of a struct; its number, explained by a `holders` event */
    TLM_HOLDER_VIEW = 5,     /* a view; its object */
    TLM_HOLDER_REGISTRY = 6, /* the registry of parameters; label of the name */
    TLM_HOLDER_POOL = 7,     /* pool number */
    TLM_HOLDER_FRAME = 8,    /* frame id */
    TLM_HOLDER_TAPE = 9,     /* what an operation saved; tape node */
    TLM_HOLDER_EXPORT = 10,  /* lent to NumPy, DLPack or a buffer; its serial number */
    TLM_HOLDER_FOREIGN = 11, /* anyone else; label of the name, or an address */
} tlm_holder_kind;

typedef enum {
    TLM_OBJECT_TENSOR = 1,  /* a payload of its own, from a device */
    TLM_OBJECT_VIEW = 2,    /* no payload of its own: looks into its base, which it holds */
    TLM_OBJECT_STRUCT = 3,  /* fields that hold objects */
    TLM_OBJECT_FOREIGN = 4, /* a payload of somebody else, or only a key; `drop` is called at the end */
    TLM_OBJECT_BUFFER = 5,  /* memory of a frame's slot */
} tlm_object_type;

/* Bits of tlm_object_info.flags. */
enum { TLM_FLAG_ARENA = 1, TLM_FLAG_POOLED = 2, TLM_FLAG_ESCAPED = 4 };

typedef struct {
    tlm_object object;
    void *payload;
    uint64_t bytes; /* of its own payload; 0 for views and structs */
    uint32_t count;
    uint32_t alloc_site; /* 0 when nothing was recorded then */
    uint32_t free_site;
    uint32_t fields; /* of a struct */
    uint8_t alive;
    uint8_t type;   /* tlm_object_type */
    uint8_t device; /* tlm_device */
    uint8_t flags;
    uint64_t scope;  /* id of the scope it is registered in; 0: none */
    tlm_holder last; /* of a freed object: who let go last */
    tlm_object base; /* of a view */
} tlm_object_info;

/* What a misuse event says; its `count`. Part of the file format. */
typedef enum {
    TLM_MISUSE_USE_AFTER_FREE = 1,
    TLM_MISUSE_DOUBLE_FREE = 2,
    TLM_MISUSE_OVER_RELEASE = 3,      /* release by somebody who does not hold */
    TLM_MISUSE_STALE_RECORD = 4,      /* a record of an object that is gone, found at an address in use again */
    TLM_MISUSE_DOUBLE_REGISTER = 5,   /* registered twice; the second one changed nothing */
    TLM_MISUSE_UNPAIRED_REGISTER = 6, /* unregister, promote or escape of what is not registered */
    TLM_MISUSE_NO_FRAME = 7,
    TLM_MISUSE_UNBALANCED_SCOPE = 8,
    TLM_MISUSE_UNBALANCED_FRAME = 9,
    TLM_MISUSE_OUTLIVES_FRAME = 10, /* somebody holds memory of a frame that has ended */
    TLM_MISUSE_DOUBLE_POOL = 11,
    TLM_MISUSE_POOLED_WHILE_HELD = 12,
    TLM_MISUSE_WRONG_DEVICE = 13, /* given back to, or used with, another device or allocator */
    TLM_MISUSE_NOT_IN_SCOPE = 14,
    TLM_MISUSE_IN_PLACE_ON_SAVED = 15,
    TLM_MISUSE_SECOND_BACKWARD = 16,
    TLM_MISUSE_PAST_THE_END = 17,       /* memory behind an object was touched; seen in quarantine only */
    TLM_MISUSE_WRITTEN_AFTER_FREE = 18, /* found when the memory left quarantine; the site is that of the free */
} tlm_misuse;

/* About the last call of this thread that did not return TLM_OK. */
typedef struct {
    int status;
    tlm_object object;
    uint64_t bytes;    /* asked for */
    uint64_t detail;   /* the slot, the scope id or the device, by status */
    tlm_holder holder; /* who was to release or to hand over */
    uint32_t alloc_site, free_site;
} tlm_failure;

/* Bytes and counts of objects with a payload of ours, of one device or (0) of all. Exact whenever no
 * other thread is inside a call: allocs - frees = live, never clamped. */
typedef struct {
    int64_t current_bytes, peak_bytes, total_bytes;
    int64_t current_count,
        total_count; /* the peak of counts is in a recording: keeping it here would cost every thread */
    int64_t freed_bytes, freed_count;
    int64_t acquires, releases; /* of all devices together */
    int64_t floating;           /* objects that nobody holds now; of all devices together */
} tlm_runtime_statistics;

typedef void (*tlm_drop)(void *context);

/* A tensor object of `bytes` (0 is allowed) on a device, floating, count 1. TLM_OUT_OF_MEMORY, TLM_OVERFLOW, TLM_NO_DEVICE,
 * TLM_NO_MEMORY. */
tlm_status tlm_object_alloc(uint32_t device, uint64_t bytes, tlm_object *out);
/* An object over memory of somebody else (or over nothing: payload NULL), floating, count 1. `bytes` is what counts as its
 * own: 0 for memory that is counted elsewhere, such as a NumPy array's. `drop(context)` (or NULL) is called once, when it is
 * freed, from whatever thread frees it, with none of our locks held; it may call tlmem. */
tlm_status tlm_object_adopt(uint32_t device, void *payload, uint64_t bytes, tlm_drop drop, void *context,
                            tlm_object *out);
/* A view of a base, which it acquires as holder VIEW | its own handle and releases when it is freed. Floating, count 1. */
tlm_status tlm_object_view(tlm_object base, tlm_object *out);
/* One more count, for the holder. The same holder may hold an object more than once. TLM_FREED, TLM_NO_MEMORY. */
tlm_status tlm_acquire(tlm_object object, tlm_holder holder);
/* Takes the holder's count away; with the last count the object is freed inside this call. TLM_NOT_A_HOLDER, TLM_FREED. */
tlm_status tlm_release(tlm_object object, tlm_holder holder);
/* One count goes from one holder to another: the count does not change, no acquire, no release. TLM_NOT_A_HOLDER, TLM_FREED.
 * `from` may be FLOATING; `to` may be FLOATING. Not for holders of kind SCOPE: register, unregister, promote, escape. */
tlm_status tlm_move(tlm_object object, tlm_holder from, tlm_holder to);
/* Frees the object at once, whoever holds it: every later use by a holder is TLM_FREED. The FREE event's argument is the
 * number of counts that ended with it. TLM_FREED: it was freed already. */
tlm_status tlm_free(tlm_object object);
/* The same, unless a holder of this kind holds it: then TLM_STILL_HELD, decided in one step. */
tlm_status tlm_free_unless(tlm_object object, int kind);
/* TLM_OK while the object is alive. TLM_FREED is recorded as use after free. */
tlm_status tlm_check(tlm_object object);
/* The payload; NULL when it has none, or is freed (which is recorded as use after free). A view's is its base's. */
void *tlm_payload(tlm_object object);
/* Its payload, which stays where it is until tlm_unpin, whoever frees the object meanwhile: for work on memory while other
 * threads may free. No count, no event. *pinned is what to unpin, 0 when there is no payload. NULL: none, or freed (recorded
 * as use after free). Memory of an arena ends with its scope all the same. */
void *tlm_pin(tlm_object object, tlm_object *pinned);
/* Ends a pin; the last one of an object that was freed meanwhile gives its memory back. 0 is fine. Cannot fail. */
void tlm_unpin(tlm_object pinned);
/* What is known, of a freed object too as long as its slot has no new tenant; TLM_FREED when it has. */
tlm_status tlm_object_describe(tlm_object object, tlm_object_info *out);
/* Copies up to `room` holders, one for each count, and returns how many there are; 0 for a freed object. */
uint32_t tlm_object_holders(tlm_object object, tlm_holder *out, uint32_t room);
/* A fresh number for a holder of kind HANDLE, EXPORT or FIELD; `count` of them in a row. */
uint64_t tlm_holder_number(uint32_t count);
/* Records that bytes were copied from one object to another; 0 for memory that is no object's. */
void tlm_copy_record(tlm_object from, tlm_object to, uint64_t bytes);
/* Records a misuse that the caller found. */
void tlm_misuse_record(int misuse, tlm_object object, tlm_holder holder);
void tlm_failure_last(tlm_failure *out);
void tlm_runtime_stats(uint32_t device, tlm_runtime_statistics *out);
/* Objects that are alive: up to `room` of them, and how many there are. For tests and for reports. */
uint64_t tlm_objects_alive(tlm_object *out, uint64_t room);

/* ---- foreign pointers (foreign.c) ---- */
/* As tlm_object_adopt, found again by its address. An address that is known and was given back (tlm_foreign_gone) but still
 * stands in a scope's records is stale: the record is purged and recorded as misuse. One that is alive gives
 * TLM_ALREADY_REGISTERED and its object. */
tlm_status tlm_foreign_register(void *address, uint64_t bytes, tlm_drop drop, void *context, tlm_object *out);
/* The object of an address; 0 when there is none that is alive. */
tlm_object tlm_foreign_find(const void *address);
/* Its owner says that the memory is gone: the object is freed without calling `drop`; records of scopes become stale. */
tlm_status tlm_foreign_gone(void *address);

/* ---- scopes (scope.c) and contexts (context.c) ---- */
typedef struct {
    uint64_t id;     /* never used again, from 1 */
    uint64_t parent; /* 0: the outermost */
    tlm_label label;
    uint32_t depth;                               /* 1: the outermost */
    uint64_t count;                               /* registered so far, escaped ones included */
    uint64_t allocations, frees, escaped, leaked; /* allocations = frees + escaped + leaked after the exit */
} tlm_scope_statistics;

typedef struct tlm_context tlm_context;

/* A context for an asynchronous task. Threads have one of their own without asking. */
tlm_status tlm_context_create(tlm_context **out);
/* Leaves whatever is still entered. NULL is fine. The context must not be in use by another thread. */
void tlm_context_destroy(tlm_context *context);
/* The context of the calling thread from now on; NULL: the thread's own. Returns what was in force (NULL: its own). */
tlm_context *tlm_context_switch(tlm_context *context);

/* Enters a scope inside the innermost one of this context; its id is never used again. TLM_NO_MEMORY. */
tlm_status tlm_scope_enter(tlm_label label, uint64_t *id);
/* Releases what is registered, last in first out. When inner scopes are still entered they are left first, and the result is
 * TLM_UNBALANCED (recorded as misuse); TLM_NOT_IN_SCOPE: this scope is not entered in this context. `out` may be NULL.
 * To a `drop` that is called meanwhile, this scope and those around it are not entered: it cannot leave them, what it makes
 * belongs to the scope around, and a scope that it enters and does not leave is left here. */
tlm_status tlm_scope_exit(uint64_t id, tlm_scope_statistics *out);
/* A scope outside any context, for owners that are passed explicitly: objects come in by tlm_register_in and _from. `parent`:
 * a scope of this kind that ends this one with itself, or 0. TLM_NOT_IN_SCOPE: no such parent. */
tlm_status tlm_scope_create(tlm_label label, uint64_t parent, uint64_t *id);
/* Ends it, its children first, the newest first. TLM_NOT_IN_SCOPE: it is gone, or it belongs to a context. */
tlm_status tlm_scope_destroy(uint64_t id, tlm_scope_statistics *out);
/* The innermost scope takes a floating object (its count), or one more count of an object that others hold.
 * TLM_NOT_IN_SCOPE: nothing happened, and outside any scope that is not misuse. TLM_ALREADY_REGISTERED: by any scope. */
tlm_status tlm_register(tlm_object object);
/* The same in a scope that is named, of any context. */
tlm_status tlm_register_in(uint64_t scope, tlm_object object);
/* A scope takes over the count of a holder: tlm_move to a scope. */
tlm_status tlm_register_from(uint64_t scope, tlm_object object, tlm_holder from);
/* The scope's record goes, the count stays: the object floats. TLM_NOT_REGISTERED, TLM_IN_ARENA (its memory ends with the
 * scope). Of a view or a struct only the object itself is asked about: whether it may live on, tlm_may_leave says. */
tlm_status tlm_unregister(tlm_object object);
/* The same, said at a function's return: somebody outside will register it. Also TLM_IN_ARENA when tlm_may_leave says so. */
tlm_status tlm_promote(tlm_object object);
/* Its scope's count goes to the holder `to`; it still counts in the statistics of the scope. TLM_NOT_IN_SCOPE outside any
 * scope, TLM_NOT_REGISTERED, TLM_IN_ARENA: its memory, that of a view's base, or that of a field of a struct, however deep,
 * is in an arena or a slot; tlm_failure.detail is the part, 0 for the object itself. */
tlm_status tlm_escape(tlm_object object, tlm_holder to);
/* TLM_IN_ARENA when memory that a view looks into or that a struct holds, however deep, ends with the scope of the view or
 * struct or with one inside it: it must not leave that scope then. */
tlm_status tlm_may_leave(tlm_object object);
uint64_t tlm_scope_current(void); /* id of the innermost; 0 outside */
uint32_t tlm_scope_depth(void);   /* 0 outside */
/* Of a scope that is entered, in any context; id 0: the innermost of this one. TLM_NOT_IN_SCOPE. */
tlm_status tlm_scope_stats(uint64_t id, tlm_scope_statistics *out);

/* ---- frames (frame.c) and arenas (arena.c) ---- */
/* Enters a scope with `slots` empty slots. The frame's id is that of its scope. */
tlm_status tlm_frame_enter(tlm_label label, uint32_t slots, uint64_t *id);
/* The memory of a slot of the innermost frame: a buffer object held by the frame. The first call makes it, a later one with
 * enough room returns the same; otherwise a new buffer takes its place, contents not copied, and the old one stays valid
 * until the frame's exit. TLM_NO_FRAME, TLM_BAD_SLOT, TLM_OUT_OF_MEMORY, TLM_OVERFLOW. */
tlm_status tlm_frame_buffer(uint32_t slot, uint64_t bytes, tlm_object *out);
/* Leaves the scope, then frees the slots' buffers, then those that were replaced. As tlm_scope_exit for the statuses. */
tlm_status tlm_frame_exit(uint64_t id, tlm_scope_statistics *out);
uint64_t tlm_frame_current(void); /* 0: none */
uint32_t tlm_frame_depth(void);
/* A tensor object in the context's arena, registered in the innermost scope; from the device `cpu` when the arena is full.
 * TLM_NOT_IN_SCOPE. It ends with the scope even when somebody else holds it then (recorded as misuse). */
tlm_status tlm_arena_object(uint64_t bytes, tlm_object *out);
/* Bytes of the arenas that are made from now on; default 1 MiB. At least 4096. */
tlm_status tlm_arena_capacity(uint64_t bytes);
typedef struct {
    uint64_t capacity_bytes, scope_bytes, slot_bytes; /* in use from both ends */
    uint64_t peak_bytes, overflows;                   /* overflows: requests that went to the heap */
} tlm_arena_statistics;
void tlm_arena_stats(tlm_arena_statistics *out); /* of the context in force */

/* ---- structs (struct.c) ---- */
/* A struct of `fields` empty fields, floating, count 1; without fields it is the null object. The fields are holders of kind
 * FIELD. The text of the label names type and fields: "Layer{weight,bias}"; what it does not name has its number. */
tlm_status tlm_struct_create(tlm_label layout, uint32_t fields, tlm_object *out);
/* The field acquires the new value before it releases the old one. 0 empties it. TLM_BAD_SLOT, TLM_WRONG_TYPE, TLM_FREED. */
tlm_status tlm_struct_set(tlm_object object, uint32_t field, tlm_object value);
/* The same, taking over the count of `from`, which may be a scope. TLM_NOT_A_HOLDER, TLM_IN_ARENA (ends with the scope). */
tlm_status tlm_struct_move(tlm_object object, uint32_t field, tlm_object value, tlm_holder from);
/* Borrowed: no event, no count. */
tlm_status tlm_struct_get(tlm_object object, uint32_t field, tlm_object *out);

/* ---- pools of objects (pool.c) ---- */
typedef struct {
    uint64_t size, hits, misses, puts, drops;
} tlm_pool_statistics;
/* A pool that keeps up to `max_per_key` items per key. Items are numbers: handles of objects, or of the caller's own.
 * TLM_NO_MEMORY, TLM_BAD_ARGUMENT (0). */
tlm_status tlm_pool_create(tlm_label label, uint32_t max_per_key, uint32_t *pool);
/* It must be empty of objects (tlm_pool_prune), or it is TLM_STILL_HELD; other items are forgotten. Its number is not
 * used again. Here and below TLM_BAD_ARGUMENT: no such pool. */
tlm_status tlm_pool_destroy(uint32_t pool);
/* The item of the key that was put last, as *item; *item = 0 and a miss when there is none. An object then floats. One
 * that was freed, or is held by others by now, is passed over, which is recorded as misuse and is not a hit. */
tlm_status tlm_pool_acquire(uint32_t pool, tlm_label key, uint64_t *item);
/* Puts an object: its only count goes from `from`, which may be a scope, to the pool. When the key is full the incoming
 * object is freed and *dropped = 1 (`dropped` may be NULL). TLM_ALREADY_POOLED (in any pool), TLM_STILL_HELD,
 * TLM_NOT_A_HOLDER, TLM_FREED, TLM_IN_ARENA, TLM_NO_MEMORY. */
tlm_status tlm_pool_put(uint32_t pool, tlm_label key, tlm_object object, tlm_holder from, int *dropped);
/* Puts a number of the caller's. When the key is full it is not kept, *dropped = 1. TLM_ALREADY_POOLED (here, under
 * any key), TLM_NO_MEMORY. */
tlm_status tlm_pool_put_item(uint32_t pool, tlm_label key, uint64_t item, int *dropped);
/* Takes up to `room` items out, the most recent of the first key first, until `target` are left, and copies them to
 * `items` and their keys to `keys` (or NULL). Objects among them are freed. Returns in *removed how many; call again until
 * it is 0. With `items` NULL all are taken out at once and none is copied. */
tlm_status tlm_pool_prune(uint32_t pool, uint64_t target, uint64_t *items, tlm_label *keys, uint64_t room,
                          uint64_t *removed);
/* The same for one key, all of it. */
tlm_status tlm_pool_clear_key(uint32_t pool, tlm_label key, uint64_t *items, uint64_t room, uint64_t *removed);
/* Takes one item out wherever in its key it is: 1 when it was there. An object then floats. */
int tlm_pool_remove(uint32_t pool, tlm_label key, uint64_t item);
tlm_status tlm_pool_stats(uint32_t pool, tlm_pool_statistics *out);
tlm_status tlm_pool_reset_counters(uint32_t pool);
uint64_t tlm_pool_key_size(uint32_t pool, tlm_label key);
/* Keys that have items, in the order of their first put, with sizes; returns how many there are. */
uint64_t tlm_pool_keys(uint32_t pool, tlm_label *keys, uint64_t *sizes, uint64_t room);

/* ---- devices (device.c, backend_*.c) and their buffers (buffers.c) ---- */
typedef struct {
    uint64_t current_bytes, peak_bytes, total_bytes; /* handed out by the driver */
    uint64_t current_count, peak_count, total_count;
    uint64_t driver_bytes; /* that the driver holds, handed out or kept */
    uint64_t failed_count; /* requests refused */
} tlm_device_statistics;

/* What happens to a buffer that an object gives back. */
typedef enum {
    TLM_BUFFERS_DIRECT = 0,             /* back to the driver at once */
    TLM_BUFFERS_BOUNDED = 1,            /* kept for reuse, up to a budget of bytes */
    TLM_BUFFERS_PERSISTENT = 2,         /* phase 1: kept, never returned to the driver, never used again */
    TLM_BUFFERS_PERSISTENT_REUSING = 3, /* phase 2: kept, never returned, used again */
} tlm_buffers_policy;

typedef struct {
    uint64_t total_allocated_bytes; /* taken from the driver so far, preallocation included; never falls */
    uint64_t active_bytes, active_count;
    uint64_t free_bytes, free_count; /* kept; persistent policies: total_allocated = active + free at all times */
    uint64_t hits, misses;
    uint64_t reserved_bytes; /* by preallocation */
} tlm_buffers_statistics;

/* "cpu", "metal", "sim-metal" for 16, 17, 18; NULL for a number that is not a device. */
const char *tlm_device_name(uint32_t device);
/* 1 when it can be used here; otherwise *reason (may be NULL) says why not. Static storage. */
int tlm_device_available(uint32_t device, const char **reason);
/* An adaptor over a device: at most `limit_bytes` at once (0: no limit), and the `fail_nth` next request fails (0: none;
 * then every one after it works). Its number is the result. TLM_NO_DEVICE, TLM_NO_MEMORY. */
tlm_status tlm_device_limit(uint32_t inner, uint64_t limit_bytes, uint64_t fail_nth, uint32_t *device);
/* Arms it again. TLM_NO_DEVICE: not an adaptor. */
tlm_status tlm_device_fail_nth(uint32_t device, uint64_t fail_nth);
/* Ends an adaptor; TLM_STILL_HELD while memory of it is handed out. */
tlm_status tlm_device_close(uint32_t device);
/* What a device does with freed buffers, and for BOUNDED how many bytes it keeps. What it keeps beyond is given back. */
tlm_status tlm_device_policy(uint32_t device, int policy, uint64_t budget_bytes);
/* Reserves bytes once: a second call does nothing. TLMEM_GPU_PREALLOCATE_MB does it for metal and sim-metal at first use,
 * and so does TL_GPU_PREALLOCATE_MB where that is not set. */
tlm_status tlm_device_preallocate(uint32_t device, uint64_t bytes);
/* Gives every kept buffer back to the driver; returns the bytes. Nothing under a persistent policy. */
uint64_t tlm_device_trim(uint32_t device);
void tlm_device_stats(uint32_t device, tlm_device_statistics *out);
void tlm_buffers_stats(uint32_t device, tlm_buffers_statistics *out);
/* Writes what the buffers' statistics say to a text of at most `room` bytes; returns the length that it needs. */
uint64_t tlm_buffers_dump(uint32_t device, char *out, uint64_t room);
/* The same as TensorLogic's persistent pool gives it (gpu_pool.c), of the device metal where there is one, else of sim-metal:
 * bytes that were ever taken from the driver; buffers that are kept, and their bytes; hits / (hits + misses), 0 before the
 * first request; all of it written to stderr. With TLM_SEED_NAMES they have TensorLogic's names, too, for programs that do not
 * link its runtime. */
uint64_t tlm_get_gpu_total_allocated_bytes(void);
uint64_t tlm_get_gpu_free_count(void);
uint64_t tlm_get_gpu_free_bytes(void);
double tlm_get_gpu_pool_hit_rate(void);
void tlm_dump_gpu_pool_stats(void);

/* ---- quarantine (quarantine.c, trap.c): freed memory of the device `cpu` and of NumPy stays unreadable for a while ---- */
typedef struct {
    uint64_t count, bytes;           /* freed into quarantine so far */
    uint64_t held_count, held_bytes; /* in it now, or when it was stopped */
    uint64_t left_count;             /* oldest ones that made room */
    uint64_t unguarded_count; /* of those that should have had pages of their own: had none, for want of mappings */
    uint64_t touches;         /* reads and writes that were caught in the act */
    uint64_t written;         /* small ones found written after they had been freed */
} tlm_quarantine_statistics;
/* Freed memory is held, up to `bytes`, oldest first out. Payloads of 4096 bytes and more, and every `sample_nth` smaller one
 * (0: none), have pages of their own and before a page that nobody may touch: a touch once they are freed, or of that page, is
 * recorded as misuse, reported on stderr with where the memory was made, freed and used, and then ends the program as it would
 * have without us, by SIGSEGV or SIGBUS or in its own handler. Smaller ones are filled, and looked at when they leave.
 * Meanwhile the device `cpu` reuses nothing. Called again, it changes the numbers. TLM_BAD_ARGUMENT: no bytes. TLM_NO_MEMORY. */
tlm_status tlm_quarantine_start(uint64_t bytes, uint32_t sample_nth);
/* Holds no more; looks at the small ones. What has pages of its own stays unreadable to the end. Cannot fail. */
void tlm_quarantine_stop(void);
void tlm_quarantine_stats(tlm_quarantine_statistics *out);

/* ---- measuring (bench_runtime.c) ---- */
/* Nanoseconds for `count` rounds of: 0 scope enter+exit, 1 scope with 100 registered objects (per object), 2 acquire+release,
 * 3 object alloc+free of `bytes`, 4 pool hit+put, 5 pool miss, 6 arena object, 7 malloc+free of `bytes`, 8 frame
 * enter+buffer+exit, 9 register without the release of 1, 10 and 11 as 3 and 7 with a store into each page, 12 pool put and
 * 13 pool hit, each alone, 14 pool hit+put by `bytes` threads at once, `count` rounds each. 0: it could not be measured. */
uint64_t tlm_bench_runtime(int what, uint64_t count, uint64_t bytes);
/* Bytes of bookkeeping: 0 scope, 1 object, 2 record in a scope, 3 pool key, 4 context. */
uint64_t tlm_bench_sizes(int what);
/* cffi: end */

#ifdef TLM_SEED_NAMES
#define tl_get_gpu_total_allocated_bytes tlm_get_gpu_total_allocated_bytes
#define tl_get_gpu_free_count tlm_get_gpu_free_count
#define tl_get_gpu_free_bytes tlm_get_gpu_free_bytes
#define tl_get_gpu_pool_hit_rate tlm_get_gpu_pool_hit_rate
#define tl_dump_gpu_pool_stats tlm_dump_gpu_pool_stats
#endif

#define TLM_HOLDER(kind, number) (((tlm_holder)(kind) << 56) | (tlm_holder)(number))
#define TLM_HOLDER_KIND(holder) ((tlm_holder_kind)((holder) >> 56))
#define TLM_HOLDER_NUMBER(holder) ((holder) & UINT64_C(0x00FFFFFFFFFFFFFF))

/* Says where the calling thread is: TLM_HERE(); in front of a call. */
#define TLM_HERE()                                                                                                     \
    do {                                                                                                               \
        static tlm_location tlm_here_location = {__FILE__, __func__, __LINE__, 0, 0};                                  \
        tlm_location_set(&tlm_here_location);                                                                          \
    } while (0)

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
