/* SPDX-License-Identifier: MIT
 * object.c: objects: the slot map in which they live, how they are made, how a stale handle is recognised, how they end.
 *
 * Slots come in chunks that are never given back, so a handle can always be looked at. A slot is its maker's alone from
 * create to publish; its generation grows with each tenant, and a slot whose generations are used up is never used again.
 * What is known of a former tenant is read without a lock and thrown away when the generation has changed meanwhile. Each
 * thread keeps some free slots for itself. Freeing walks structs and views without recursion: an object that is being
 * freed has no handle any more, and remembers in which other object the walk goes on. Memory that somebody has pinned is
 * given back by whoever unpins it last.
 */
#include "memory/devices/quarantine.h"
#include "memory/memory.h"

/* No device has more: the address space ends here. */
#define MOST_BYTES (UINT64_C(1) << 46)

enum {
    CHUNK_BITS = 9, /* 64 KiB: what is mapped and never touched counts as ours */
    CHUNK_SLOTS = 1 << CHUNK_BITS,
    CHUNKS = 1 << (TLMI_SLOT_BITS - CHUNK_BITS),
    MOST_GENERATION = (1 << 28) - 1,
    KEPT = 32, /* free slots a thread keeps */
};

static tlmi_slot_of_object *_Atomic chunks[CHUNKS];
static struct {
    tlmi_spin lock;
    uint32_t first; /* 0: none */
    uint32_t fresh; /* numbers below were given out once */
} free_slots = {.fresh = 1};
static __thread struct {
    uint32_t count, numbers[KEPT];
} kept;
static __thread bool has_exit_key;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static tlmi_slot_of_object *slot_of(uint32_t number)
{
    tlmi_slot_of_object *chunk = atomic_load_explicit(&chunks[number >> CHUNK_BITS], memory_order_acquire);
    return chunk ? &chunk[number & (CHUNK_SLOTS - 1)] : NULL;
}

static uint32_t number_in(tlm_object object)
{
    return (uint32_t)object & ((1u << TLMI_SLOT_BITS) - 1);
}

/* ---- free slots ---- */

/* Gives up to `count` of the thread's slots back to all. */
static void spill(uint32_t count)
{
    tlmi_spin_lock(&free_slots.lock);
    for (; count && kept.count; count--) {
        uint32_t number = kept.numbers[--kept.count];
        slot_of(number)->number = free_slots.first;
        free_slots.first = number;
    }
    tlmi_spin_unlock(&free_slots.lock);
}

static void on_thread_exit(void *unused)
{
    (void)unused;
    spill(KEPT);
    has_exit_key = false;
}

static void make_exit_key(void)
{
    pthread_key_create(&exit_key, on_thread_exit);
}

/* A slot that never had a tenant, 0 without memory. Under the lock. */
static uint32_t fresh_number(void)
{
    uint32_t number = free_slots.fresh;
    if (number >> TLMI_SLOT_BITS)
        return 0;
    _Atomic(tlmi_slot_of_object *) *chunk = &chunks[number >> CHUNK_BITS];
    if (!atomic_load_explicit(chunk, memory_order_relaxed)) {
        tlmi_slot_of_object *made = tlmi_own_alloc(CHUNK_SLOTS * sizeof *made);
        if (!made)
            return 0;
        atomic_store_explicit(chunk, made, memory_order_release);
    }
    free_slots.fresh++;
    return number;
}

__attribute__((noinline)) static void refill(void)
{
    pthread_once(&exit_once, make_exit_key);
    if (!has_exit_key)
        has_exit_key = pthread_setspecific(exit_key, &kept) == 0;
    tlmi_spin_lock(&free_slots.lock);
    while (kept.count < KEPT / 2) {
        uint32_t number = free_slots.first;
        if (number)
            free_slots.first = slot_of(number)->number;
        else
            number = fresh_number();
        if (!number)
            break;
        kept.numbers[kept.count++] = number;
    }
    tlmi_spin_unlock(&free_slots.lock);
}

/* ---- begin ---- */

/* A field that tlmi_object_glance may read at the same time. */
#define put(field, value) __atomic_store_n(field, value, __ATOMIC_RELAXED)
#define look(field) __atomic_load_n(field, __ATOMIC_RELAXED)

tlmi_slot_of_object *tlmi_object_create(uint8_t type, uint8_t device)
{
    if (tlmi_unlikely(kept.count == 0))
        refill();
    if (tlmi_unlikely(kept.count == 0))
        return NULL;
    uint32_t number = kept.numbers[--kept.count];
    tlmi_slot_of_object *slot = slot_of(number);
    /* Somebody may be looking at what is left of the last tenant. */
    slot->number = number;
    put(&slot->generation, slot->generation + 1);
    atomic_thread_fence(memory_order_release);
    put(&slot->type, type);
    put(&slot->device, device);
    slot->flags = 0;
    slot->payload = NULL;
    put(&slot->bytes, 0);
    slot->holders[0] = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);
    slot->holders[1] = 0;
    slot->more = NULL;
    slot->scope = NULL;
    slot->is_over = false;
    slot->version = 0;
    put(&slot->last, 0);
    put(&slot->free_site, 0);
    slot->as = (__typeof__(slot->as)){0};
    atomic_store_explicit(&slot->count, 1, memory_order_relaxed);
    return slot;
}

tlm_object tlmi_object_publish(tlmi_slot_of_object *slot, uint32_t site)
{
    tlm_object object = tlmi_object_handle(slot);
    put(&slot->alloc_site, site);
    tlmi_tally_alloc(slot->device, slot->bytes);
    tlmi_tally_counts(0, 0, 1);
    tlmi_object_event(TLM_KIND_ALLOC, slot, object, slot->bytes, site);
    atomic_store_explicit(&slot->handle, object, memory_order_release);
    return object;
}

static void put_back(tlmi_slot_of_object *slot)
{
    uint32_t number = slot->number;
    if (slot->generation >= MOST_GENERATION)
        return; /* never used again */
    if (tlmi_unlikely(kept.count == KEPT))
        spill(KEPT / 2);
    kept.numbers[kept.count++] = number;
}

void tlmi_object_cancel(tlmi_slot_of_object *slot)
{
    put_back(slot);
}

void tlmi_object_recycle(tlmi_slot_of_object *slot)
{
    slot->scope = NULL;
    if (slot->more)
        tlmi_slab_free(slot->more, (size_t)(2 + slot->more[0]) * sizeof *slot->more);
    slot->more = NULL;
    tlmi_object_unlock(slot);
    put_back(slot);
}

/* ---- look ---- */

/* The slot that says this of its tenant, locked. */
static inline tlmi_slot_of_object *lock_slot(tlm_object object, uint64_t says)
{
    tlmi_slot_of_object *slot = slot_of(number_in(object));
    if (object == 0 || !slot || atomic_load_explicit(&slot->handle, memory_order_acquire) != says)
        return NULL;
    tlmi_spin_lock(&slot->lock);
    if (tlmi_likely(atomic_load_explicit(&slot->handle, memory_order_relaxed) == says))
        return slot;
    tlmi_object_unlock(slot);
    return NULL;
}

tlmi_slot_of_object *tlmi_object_lock(tlm_object object)
{
    return tlmi_unlikely(object & TLMI_STALE) ? NULL : lock_slot(object, object);
}

tlmi_slot_of_object *tlmi_object_lock_stale(tlm_object object)
{
    return lock_slot(object, object | TLMI_STALE);
}

bool tlmi_object_glance(tlm_object object, tlm_object_info *out)
{
    const tlmi_slot_of_object *slot = slot_of(number_in(object));
    uint32_t generation = (uint32_t)(object >> TLMI_SLOT_BITS);
    *out = (tlm_object_info){.object = object};
    if (object == 0 || object >> 56 || !slot || look(&slot->generation) != generation)
        return false;
    out->type = look(&slot->type);
    out->device = look(&slot->device);
    out->bytes = look(&slot->bytes);
    out->alloc_site = look(&slot->alloc_site);
    out->free_site = look(&slot->free_site);
    out->last = look(&slot->last);
    atomic_thread_fence(memory_order_acquire);
    return look(&slot->generation) == generation;
}

tlm_status tlmi_fail(tlm_status status, tlm_object object, tlm_holder holder, uint64_t bytes, uint64_t detail)
{
    tlm_failure failure = {.status = (int)status, .object = object, .holder = holder, .bytes = bytes, .detail = detail};
    tlm_object_info info;
    if (tlmi_object_glance(object, &info)) {
        failure.alloc_site = info.alloc_site;
        failure.free_site = info.free_site;
    }
    tlmi_failure_keep(&failure);
    return status;
}

tlm_status tlmi_object_missing(tlm_object object, tlm_holder holder, tlm_misuse misuse)
{
    tlmi_misuse(misuse, TLM_DEVICE_NONE, object, holder, tlmi_site_for_events());
    return tlmi_fail(TLM_FREED, object, holder, 0, 0);
}

/* ---- end ---- */

/* From here on the object is nobody's but ours. Locked. */
static void begin_end(tlmi_slot_of_object *slot, tlm_holder last, uint32_t site)
{
    put(&slot->last, last);
    put(&slot->free_site, site);
    if (slot->scope)
        tlmi_scope_strike(slot, false);
    slot->flags &= (uint8_t)~TLM_FLAG_POOLED;
    atomic_store_explicit(&slot->handle, 0, memory_order_release);
}

/* What the next child of a struct or view is and which holder holds it; 0: no more. Children are taken from the last to the
 * first field; `record` counts what is left. */
static tlm_object next_child(tlmi_slot_of_object *slot, tlm_holder *holder)
{
    if (slot->type == TLM_OBJECT_VIEW && slot->record) {
        slot->record = 0;
        *holder = TLM_HOLDER(TLM_HOLDER_VIEW, tlmi_object_handle(slot));
        return slot->as.view.base;
    }
    while (slot->type == TLM_OBJECT_STRUCT && slot->record) {
        uint32_t field = --slot->record;
        *holder = TLM_HOLDER(TLM_HOLDER_FIELD, slot->as.record.first_number + field);
        if (slot->as.record.values[field])
            return slot->as.record.values[field];
    }
    return 0;
}

/* Gives back the memory of an object that has ended, and its slot. */
static void free_memory(tlmi_slot_of_object *slot)
{
    uint8_t type = slot->type, device = slot->device;
    void *payload = slot->payload;
    uint64_t bytes = slot->bytes, *more = slot->more;
    bool from_arena = slot->flags & TLM_FLAG_ARENA;
    __typeof__(slot->as) as = slot->as;
    if (more)
        tlmi_slab_free(more, (size_t)(2 + more[0]) * sizeof *more);
    slot->more = NULL;
    if (type == TLM_OBJECT_FOREIGN && as.foreign.address)
        tlmi_foreign_forget(as.foreign.address, tlmi_object_handle(slot));
    bool is_ours = (type == TLM_OBJECT_TENSOR || type == TLM_OBJECT_BUFFER) && !from_arena;
    if (is_ours && tlmi_quarantine_active())
        tlmi_quarantine_name(tlmi_object_handle(slot), bytes, slot->free_site);
    put_back(slot);
    if (type == TLM_OBJECT_FOREIGN && as.foreign.drop)
        as.foreign.drop(as.foreign.context);
    else if (type == TLM_OBJECT_STRUCT)
        tlmi_slab_free(as.record.values, as.record.fields * sizeof *as.record.values);
    else if (is_ours)
        tlmi_buffers_free(device, payload, bytes);
}

/* The object has ended, its children are gone. Locked, unlocks. */
static void finish(tlmi_slot_of_object *slot, uint32_t ended, uint32_t site)
{
    if (tlmi_probe_on())
        tlmi_event_append(TLM_KIND_FREE, slot->device, tlmi_object_handle(slot), ended, site, 0);
    tlmi_tally_free(slot->device, slot->bytes);
    atomic_store_explicit(&slot->count, 0, memory_order_relaxed);
    slot->is_over = true;
    bool is_pinned = slot->pins > 0;
    tlmi_object_unlock(slot);
    if (!is_pinned)
        free_memory(slot);
}

/* ---- pins: memory that is being worked on stays where it is, whoever frees the object meanwhile ---- */

void *tlm_pin(tlm_object object, tlm_object *pinned)
{
    *pinned = 0;
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (slot && slot->type == TLM_OBJECT_VIEW) {
        object = slot->as.view.base;
        tlmi_object_unlock(slot);
        slot = tlmi_object_lock(object);
    }
    if (!slot) {
        if (object)
            tlmi_object_missing(object, 0, TLM_MISUSE_USE_AFTER_FREE);
        return NULL;
    }
    void *payload = slot->payload;
    if (payload) {
        slot->pins++;
        *pinned = object;
    }
    tlmi_object_unlock(slot);
    return payload;
}

void tlm_unpin(tlm_object pinned)
{
    /* While a pin is held, the slot has no other tenant. */
    tlmi_slot_of_object *slot = pinned ? slot_of(number_in(pinned)) : NULL;
    if (!slot)
        return;
    tlmi_spin_lock(&slot->lock);
    bool is_last = --slot->pins == 0 && slot->is_over;
    tlmi_object_unlock(slot);
    if (is_last)
        free_memory(slot);
}

/* Takes a child's holder away. Returns the child when that was the last: it is dying then. */
static tlmi_slot_of_object *drop_child(tlm_object object, tlm_holder holder, uint32_t site)
{
    tlmi_slot_of_object *child = tlmi_object_lock(object);
    if (!child)
        return NULL;
    if (!tlmi_holder_remove(child, holder)) {
        tlmi_object_unlock(child);
        return NULL;
    }
    uint32_t count = tlmi_object_count(child, -1);
    tlmi_tally_counts(0, 1, 0);
    tlmi_object_event(TLM_KIND_RELEASE, child, object, holder, site);
    if (count == 0) {
        begin_end(child, holder, site);
        tlmi_object_unlock(child);
        return child;
    }
    tlmi_object_unlock(child);
    return NULL;
}

/* Frees an object that is nobody's, and what only it held: children first. */
static void end_tree(tlmi_slot_of_object *root, uint32_t ended, uint32_t site)
{
    tlmi_slot_of_object *at = root;
    root->dying_parent = 0;
    root->record = root->type == TLM_OBJECT_VIEW ? 1 : root->as.record.fields;
    while (at) {
        tlm_holder holder = 0;
        tlm_object child = next_child(at, &holder);
        if (!child) {
            tlmi_slot_of_object *parent = at->dying_parent ? slot_of(at->dying_parent) : NULL;
            tlmi_spin_lock(&at->lock); /* somebody may be looking at it */
            finish(at, at == root ? ended : 0, site);
            at = parent;
            continue;
        }
        tlmi_slot_of_object *dying = drop_child(child, holder, site);
        if (dying) {
            dying->dying_parent = at->number;
            dying->record = dying->type == TLM_OBJECT_VIEW ? 1 : dying->as.record.fields;
            at = dying;
        }
    }
}

/* Locked, unlocks. */
static void end_object(tlmi_slot_of_object *slot, tlm_holder last, uint32_t ended, uint32_t site)
{
    begin_end(slot, last, site);
    if (slot->type != TLM_OBJECT_STRUCT && slot->type != TLM_OBJECT_VIEW) {
        finish(slot, ended, site);
        return;
    }
    tlmi_object_unlock(slot);
    end_tree(slot, ended, site);
}

void tlmi_object_let_go(tlmi_slot_of_object *slot, tlm_holder holder, uint32_t site)
{
    uint32_t count = tlmi_object_count(slot, -1);
    bool floating = TLM_HOLDER_KIND(holder) == TLM_HOLDER_FLOATING;
    tlmi_tally_counts(0, 1, floating ? -1 : 0);
    tlmi_object_event(TLM_KIND_RELEASE, slot, tlmi_object_handle(slot), holder, site);
    if (count > 0) {
        tlmi_object_unlock(slot);
        return;
    }
    end_object(slot, holder, 0, site);
}

void tlmi_object_end(tlmi_slot_of_object *slot, uint32_t site)
{
    uint32_t ended = atomic_load_explicit(&slot->count, memory_order_relaxed);
    int floating = 0;
    while (tlmi_holder_remove(slot, TLM_HOLDER(TLM_HOLDER_FLOATING, 0)))
        floating--;
    tlmi_tally_counts(0, 0, floating);
    end_object(slot, 0, ended, site);
}

/* ---- public: make, look, free ---- */

static bool is_device(uint32_t device)
{
    return device >= TLM_DEVICE_CPU && device <= UINT8_MAX;
}

tlm_status tlm_object_alloc(uint32_t device, uint64_t bytes, tlm_object *out)
{
    uint32_t site = tlmi_site_for_events();
    if (!is_device(device))
        return tlmi_fail(TLM_NO_DEVICE, 0, 0, bytes, device);
    if (bytes > MOST_BYTES)
        return tlmi_fail(TLM_OVERFLOW, 0, 0, bytes, device);
    void *payload = NULL;
    tlm_status status = tlmi_buffers_alloc(device, bytes, &payload);
    if (status != TLM_OK)
        return tlmi_fail(status, 0, 0, bytes, device);
    tlmi_slot_of_object *slot = tlmi_object_create(TLM_OBJECT_TENSOR, (uint8_t)device);
    if (!slot) {
        tlmi_buffers_free(device, payload, bytes);
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, bytes, device);
    }
    slot->payload = payload;
    tlmi_object_set_bytes(slot, bytes);
    *out = tlmi_object_publish(slot, site);
    return TLM_OK;
}

tlm_status tlm_object_adopt(uint32_t device, void *payload, uint64_t bytes, tlm_drop drop, void *context,
                            tlm_object *out)
{
    uint32_t site = tlmi_site_for_events();
    if (device > UINT8_MAX)
        return tlmi_fail(TLM_NO_DEVICE, 0, 0, bytes, device);
    tlmi_slot_of_object *slot = tlmi_object_create(TLM_OBJECT_FOREIGN, (uint8_t)device);
    if (!slot)
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, bytes, device);
    slot->payload = payload;
    tlmi_object_set_bytes(slot, bytes);
    slot->as.foreign.drop = drop;
    slot->as.foreign.context = context;
    *out = tlmi_object_publish(slot, site);
    return TLM_OK;
}

/* The object that a view of `base` looks into: views of views hold the first base. */
static tlm_object root_of(tlm_object base)
{
    tlmi_slot_of_object *slot = tlmi_object_lock(base);
    if (!slot)
        return base;
    tlm_object root = slot->type == TLM_OBJECT_VIEW ? slot->as.view.base : base;
    tlmi_object_unlock(slot);
    return root;
}

tlm_status tlm_object_view(tlm_object base, tlm_object *out)
{
    uint32_t site = tlmi_site_for_events();
    if (base == 0) {
        *out = 0;
        return TLM_OK;
    }
    tlm_object root = root_of(base);
    tlmi_slot_of_object *held = tlmi_object_lock(root);
    if (!held)
        return tlmi_object_missing(root, 0, TLM_MISUSE_USE_AFTER_FREE);
    uint8_t device = held->device;
    void *payload = held->payload;
    tlmi_object_unlock(held);
    tlmi_slot_of_object *slot = tlmi_object_create(TLM_OBJECT_VIEW, device);
    if (!slot)
        return tlmi_fail(TLM_NO_MEMORY, base, 0, 0, 0);
    tlm_status status = tlm_acquire(root, TLM_HOLDER(TLM_HOLDER_VIEW, tlmi_object_handle(slot)));
    if (status != TLM_OK) {
        tlmi_object_cancel(slot);
        return status;
    }
    slot->payload = payload;
    slot->as.view.base = root;
    *out = tlmi_object_publish(slot, site);
    return TLM_OK;
}

tlm_status tlm_check(tlm_object object)
{
    tlmi_slot_of_object *slot = object ? tlmi_object_lock(object) : NULL;
    if (tlmi_unlikely(object && !slot))
        return tlmi_object_missing(object, 0, TLM_MISUSE_USE_AFTER_FREE);
    if (slot)
        tlmi_object_unlock(slot);
    return TLM_OK;
}

void *tlm_payload(tlm_object object)
{
    tlmi_slot_of_object *slot = object ? tlmi_object_lock(object) : NULL;
    if (!slot) {
        if (object)
            tlmi_object_missing(object, 0, TLM_MISUSE_USE_AFTER_FREE);
        return NULL;
    }
    void *payload = slot->payload;
    tlmi_object_unlock(slot);
    return payload;
}

tlm_status tlm_object_describe(tlm_object object, tlm_object_info *out)
{
    *out = (tlm_object_info){.object = object};
    if (object == 0)
        return TLM_OK;
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_glance(object, out) ? TLM_OK : tlmi_fail(TLM_FREED, object, 0, 0, 0);
    *out = (tlm_object_info){
        .object = object,
        .alive = 1,
        .type = slot->type,
        .device = slot->device,
        .flags = slot->flags,
        .bytes = slot->bytes,
        .alloc_site = slot->alloc_site,
        .payload = slot->payload,
        .count = atomic_load_explicit(&slot->count, memory_order_relaxed),
        .fields = slot->type == TLM_OBJECT_STRUCT ? slot->as.record.fields : 0,
        .base = slot->type == TLM_OBJECT_VIEW ? slot->as.view.base : 0,
        .scope = slot->scope ? slot->scope->id : 0,
    };
    tlmi_object_unlock(slot);
    return TLM_OK;
}

tlm_status tlm_free_unless(tlm_object object, int kind)
{
    if (object == 0)
        return TLM_OK;
    uint32_t site = tlmi_site_for_events();
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, 0, TLM_MISUSE_DOUBLE_FREE);
    if (kind != TLM_HOLDER_NONE && tlmi_holder_has_kind(slot, (tlm_holder_kind)kind)) {
        tlmi_object_unlock(slot);
        return tlmi_fail(TLM_STILL_HELD, object, 0, 0, (uint64_t)kind);
    }
    tlmi_object_end(slot, site);
    return TLM_OK;
}

tlm_status tlm_free(tlm_object object)
{
    return tlm_free_unless(object, TLM_HOLDER_NONE);
}

uint64_t tlm_objects_alive(tlm_object *out, uint64_t room)
{
    uint64_t alive = 0;
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        tlmi_slot_of_object *slots = atomic_load_explicit(&chunks[chunk], memory_order_acquire);
        if (!slots)
            break;
        for (uint32_t i = 0; i < CHUNK_SLOTS; i++) {
            tlm_object object = atomic_load_explicit(&slots[i].handle, memory_order_acquire);
            if (object && !(object & TLMI_STALE) && alive++ < room)
                out[alive - 1] = object;
        }
    }
    return alive;
}
