/* SPDX-License-Identifier: MIT
 * pool.c: pools of objects and of numbers of the caller's, by key, last in first out, bounded for each key.
 *
 * An object in a pool is held by the pool and by nobody else, and carries a flag: putting it twice is seen at once. What was
 * done behind the pool's back is seen when it comes out: freed, handed on or acquired by others, it is passed over and
 * recorded, and two callers never get the same memory.
 */
#include "memory/pool.h"

enum { BATCH = 64 };
static const tlm_holder floating = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);

/* ---- out ---- */

static void record_item(tlm_kind kind, uint32_t number, uint64_t item, uint32_t site)
{
    if (tlmi_probe_on())
        tlmi_event_append((uint8_t)kind, TLM_DEVICE_NONE, item, tlmi_pool_holder(number), site, 0);
}

/* The slot of an object that left the pool, locked, with the pool as its only holder; NULL, and recorded, otherwise: then the
 * pool's count, if it still has one, is gone. */
static inline tlmi_slot_of_object *lock_sole(uint32_t number, tlm_object object, uint32_t site)
{
    tlm_holder holder = tlmi_pool_holder(number);
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot) {
        tlmi_misuse(TLM_MISUSE_STALE_RECORD, TLM_DEVICE_NONE, object, holder, site);
        return NULL;
    }
    slot->flags &= (uint8_t)~TLM_FLAG_POOLED;
    bool is_ours = slot->holders[0] == holder || tlmi_is_holder(slot, holder);
    if (tlmi_likely(is_ours && atomic_load_explicit(&slot->count, memory_order_relaxed) == 1))
        return slot;
    tlmi_misuse(TLM_MISUSE_POOLED_WHILE_HELD, slot->device, object, holder, site);
    if (is_ours && tlmi_holder_remove(slot, holder))
        tlmi_object_let_go(slot, holder, site);
    else
        tlmi_object_unlock(slot);
    return NULL;
}

/* Lets an object float that left the pool; false: it is not the pool's alone. */
static bool set_afloat(uint32_t number, tlm_object object, tlm_kind kind, uint32_t site)
{
    tlmi_slot_of_object *slot = lock_sole(number, object, site);
    if (!slot)
        return false;
    tlmi_hand_over(slot, tlmi_pool_holder(number), floating, site);
    tlmi_object_event(kind, slot, object, tlmi_pool_holder(number), site);
    tlmi_object_unlock(slot);
    return true;
}

static void end_pruned(uint32_t number, tlm_object object, uint32_t site)
{
    tlmi_slot_of_object *slot = lock_sole(number, object, site);
    if (!slot)
        return;
    tlmi_object_event(TLM_KIND_POOL_PRUNE, slot, object, tlmi_pool_holder(number), site);
    tlmi_holder_remove(slot, tlmi_pool_holder(number));
    tlmi_object_let_go(slot, tlmi_pool_holder(number), site);
}

/* What was counted as a hit was none. */
static void take_back_hit(uint32_t number)
{
    tlmi_pool *pool = tlmi_pool_lock(number);
    if (!pool)
        return;
    pool->stats.hits--;
    tlmi_spin_unlock(&pool->lock);
}

tlm_status tlm_pool_acquire(uint32_t number, tlm_label key, uint64_t *item)
{
    uint32_t site = tlmi_pool_site(number);
    for (;;) {
        tlmi_pool *pool = tlmi_pool_lock(number);
        if (!pool)
            return tlmi_pool_missing(number);
        tlmi_pool_row *row = tlmi_pool_row_of(pool, key);
        bool hit = row && row->used;
        tlmi_pool_item taken = {0};
        if (hit)
            taken = tlmi_pool_pop(pool, row);
        *(hit ? &pool->stats.hits : &pool->stats.misses) += 1;
        if (!taken.is_object)
            record_item(hit ? TLM_KIND_POOL_HIT : TLM_KIND_POOL_MISS, number, taken.value, site);
        tlmi_spin_unlock(&pool->lock);
        if (!taken.is_object || set_afloat(number, taken.value, TLM_KIND_POOL_HIT, site)) {
            *item = taken.value;
            return TLM_OK;
        }
        take_back_hit(number);
    }
}

/* ---- in ---- */

/* Why an object cannot be put; TLM_OK when it can. Under its lock. */
static tlm_status refusal(tlmi_slot_of_object *slot, tlm_holder from, tlm_misuse *misuse)
{
    if (slot->flags & TLM_FLAG_POOLED) {
        *misuse = TLM_MISUSE_DOUBLE_POOL;
        return TLM_ALREADY_POOLED;
    }
    if (slot->flags & TLM_FLAG_ARENA) {
        *misuse = TLM_MISUSE_OUTLIVES_FRAME;
        return TLM_IN_ARENA;
    }
    bool has_first_place = from && slot->holders[0] == from;
    if (!has_first_place && !tlmi_is_holder(slot, from)) {
        *misuse = TLM_MISUSE_OVER_RELEASE;
        return TLM_NOT_A_HOLDER;
    }
    *misuse = TLM_MISUSE_POOLED_WHILE_HELD;
    return atomic_load_explicit(&slot->count, memory_order_relaxed) == 1 ? TLM_OK : TLM_STILL_HELD;
}

/* The key is full: the incoming object ends. Locked, is unlocked. */
static void end_dropped(tlmi_slot_of_object *slot, uint32_t number, tlm_holder from, uint32_t site)
{
    tlmi_object_event(TLM_KIND_POOL_DROP, slot, tlmi_object_handle(slot), tlmi_pool_holder(number), site);
    tlmi_holder_remove(slot, from);
    tlmi_object_let_go(slot, from, site);
}

/* Pushes and counts. Unlocks the pool. */
static tlm_status push(tlmi_pool *pool, tlm_label key, tlmi_pool_item item)
{
    tlm_status status = tlmi_pool_push(pool, key, item);
    pool->stats.puts += status == TLM_OK;
    pool->stats.drops += status == TLM_OVERFLOW;
    tlmi_spin_unlock(&pool->lock);
    return status;
}

static void say_dropped(int *dropped, bool is)
{
    if (dropped)
        *dropped = is;
}

tlm_status tlm_pool_put(uint32_t number, tlm_label key, tlm_object object, tlm_holder from, int *dropped)
{
    say_dropped(dropped, false);
    if (object == 0)
        return TLM_OK;
    uint32_t site = tlmi_pool_site(number);
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, from, TLM_MISUSE_USE_AFTER_FREE);
    tlm_misuse misuse = TLM_MISUSE_DOUBLE_POOL;
    tlm_status status = refusal(slot, from, &misuse);
    if (status != TLM_OK) {
        tlmi_misuse(misuse, slot->device, object, from, site);
        tlmi_object_unlock(slot);
        return tlmi_fail(status, object, from, 0, number);
    }
    tlmi_pool *pool = tlmi_pool_lock(number);
    status = pool ? push(pool, key, (tlmi_pool_item){object, true}) : TLM_BAD_ARGUMENT;
    if (status == TLM_OVERFLOW) {
        end_dropped(slot, number, from, site);
        say_dropped(dropped, true);
        return TLM_OK;
    }
    if (status == TLM_OK) {
        slot->flags |= TLM_FLAG_POOLED;
        tlmi_hand_over(slot, from, tlmi_pool_holder(number), site);
        tlmi_object_event(TLM_KIND_POOL_PUT, slot, object, tlmi_pool_holder(number), site);
    }
    tlmi_object_unlock(slot);
    return status == TLM_OK ? TLM_OK : tlmi_fail(status, object, from, 0, number);
}

tlm_status tlm_pool_put_item(uint32_t number, tlm_label key, uint64_t item, int *dropped)
{
    say_dropped(dropped, false);
    if (item == 0)
        return TLM_OK;
    uint32_t site = tlmi_pool_site(number);
    tlmi_pool *pool = tlmi_pool_lock(number);
    if (!pool)
        return tlmi_pool_missing(number);
    if (tlmi_pool_has_item(pool, item)) {
        tlmi_misuse(TLM_MISUSE_DOUBLE_POOL, TLM_DEVICE_NONE, item, tlmi_pool_holder(number), site);
        tlmi_spin_unlock(&pool->lock);
        return tlmi_fail(TLM_ALREADY_POOLED, 0, tlmi_pool_holder(number), 0, item);
    }
    tlm_status status = tlmi_pool_push(pool, key, (tlmi_pool_item){item, false});
    pool->stats.puts += status == TLM_OK;
    pool->stats.drops += status == TLM_OVERFLOW;
    if (status != TLM_NO_MEMORY)
        record_item(status == TLM_OK ? TLM_KIND_POOL_PUT : TLM_KIND_POOL_DROP, number, item, site);
    tlmi_spin_unlock(&pool->lock);
    if (status == TLM_NO_MEMORY)
        return tlmi_fail(status, 0, tlmi_pool_holder(number), 0, item);
    say_dropped(dropped, status == TLM_OVERFLOW);
    return TLM_OK;
}

/* ---- prune ---- */

typedef struct {
    tlmi_pool_item item;
    tlm_label key;
} pruned;

typedef struct {
    uint64_t target;
    bool one_key;
    tlm_label key;
} pruning;

static tlmi_pool_row *next_to_prune(const tlmi_pool *pool, const pruning *what)
{
    if (what->one_key) {
        tlmi_pool_row *row = tlmi_pool_row_of(pool, what->key);
        return row && row->used ? row : NULL;
    }
    for (uint32_t i = 0; i < pool->row_count && pool->stats.size > what->target; i++)
        if (pool->rows[i].used)
            return &pool->rows[i];
    return NULL;
}

/* Takes up to `room` items out. Under the pool's lock. */
static uint32_t take_batch(tlmi_pool *pool, const pruning *what, pruned *batch, uint32_t room, uint32_t site)
{
    uint32_t taken = 0;
    tlmi_pool_row *row;
    while (taken < room && (row = next_to_prune(pool, what))) {
        tlmi_pool_item item = tlmi_pool_pop(pool, row);
        batch[taken++] = (pruned){item, row->key};
        if (!item.is_object)
            record_item(TLM_KIND_POOL_PRUNE, pool->number, item.value, site);
    }
    if (taken < room)
        tlmi_pool_drop_empty_rows(pool);
    return taken;
}

static tlm_status prune(uint32_t number, const pruning *what, uint64_t *items, tlm_label *keys, uint64_t room,
                        uint64_t *removed)
{
    uint32_t site = tlmi_pool_site(number), taken = BATCH;
    uint64_t done = 0;
    while (taken == BATCH) {
        pruned batch[BATCH];
        uint64_t left = items ? room - done : BATCH;
        tlmi_pool *pool = tlmi_pool_lock(number);
        if (!pool)
            return tlmi_pool_missing(number);
        taken = take_batch(pool, what, batch, left < BATCH ? (uint32_t)left : BATCH, site);
        tlmi_spin_unlock(&pool->lock);
        for (uint32_t i = 0; i < taken; i++, done++) {
            if (items)
                items[done] = batch[i].item.value;
            if (items && keys)
                keys[done] = batch[i].key;
            if (batch[i].item.is_object)
                end_pruned(number, batch[i].item.value, site);
        }
    }
    if (removed)
        *removed = done;
    return TLM_OK;
}

tlm_status tlm_pool_prune(uint32_t number, uint64_t target, uint64_t *items, tlm_label *keys, uint64_t room,
                          uint64_t *removed)
{
    pruning what = {.target = target};
    return prune(number, &what, items, keys, room, removed);
}

tlm_status tlm_pool_clear_key(uint32_t number, tlm_label key, uint64_t *items, uint64_t room, uint64_t *removed)
{
    pruning what = {.one_key = true, .key = key};
    return prune(number, &what, items, NULL, room, removed);
}

int tlm_pool_remove(uint32_t number, tlm_label key, uint64_t item)
{
    uint32_t site = tlmi_pool_site(number);
    tlmi_pool *pool = tlmi_pool_lock(number);
    if (!pool)
        return 0;
    tlmi_pool_row *row = tlmi_pool_row_of(pool, key);
    uint32_t place = row ? row->used : 0;
    while (place > 0 && row->items[place - 1].value != item)
        place--;
    tlmi_pool_item taken = {0};
    if (place)
        taken = tlmi_pool_take(pool, row, place - 1);
    if (place && !taken.is_object)
        record_item(TLM_KIND_POOL_PRUNE, number, item, site);
    tlmi_spin_unlock(&pool->lock);
    if (taken.is_object)
        set_afloat(number, item, TLM_KIND_POOL_PRUNE, site);
    return place > 0;
}

/* ---- look ---- */

tlm_status tlm_pool_stats(uint32_t number, tlm_pool_statistics *out)
{
    tlmi_pool *pool = tlmi_pool_lock(number);
    if (!pool)
        return tlmi_pool_missing(number);
    *out = pool->stats;
    tlmi_spin_unlock(&pool->lock);
    return TLM_OK;
}

tlm_status tlm_pool_reset_counters(uint32_t number)
{
    tlmi_pool *pool = tlmi_pool_lock(number);
    if (!pool)
        return tlmi_pool_missing(number);
    pool->stats = (tlm_pool_statistics){.size = pool->stats.size};
    tlmi_spin_unlock(&pool->lock);
    return TLM_OK;
}

uint64_t tlm_pool_key_size(uint32_t number, tlm_label key)
{
    tlmi_pool *pool = tlmi_pool_lock(number);
    if (!pool)
        return 0;
    const tlmi_pool_row *row = tlmi_pool_row_of(pool, key);
    uint64_t size = row ? row->used : 0;
    tlmi_spin_unlock(&pool->lock);
    return size;
}

uint64_t tlm_pool_keys(uint32_t number, tlm_label *keys, uint64_t *sizes, uint64_t room)
{
    uint64_t count = 0;
    tlmi_pool *pool = tlmi_pool_lock(number);
    if (!pool)
        return 0;
    for (uint32_t i = 0; i < pool->row_count; i++) {
        if (!pool->rows[i].used)
            continue;
        if (count < room && keys)
            keys[count] = pool->rows[i].key;
        if (count < room && sizes)
            sizes[count] = pool->rows[i].used;
        count++;
    }
    tlmi_spin_unlock(&pool->lock);
    return count;
}
