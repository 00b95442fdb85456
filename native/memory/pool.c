/* SPDX-License-Identifier: MIT
 * pool.c: pools of objects and of numbers of the caller's, by key, last in first out, bounded for each key.
 *
 *     index: hash of key -> row     rows: [key | items...] [key | items...] ...
 *
 * Keys are in the order of their first put; each has its items, the newest last. Everything is under the pool's lock. An object
 * is locked before a pool, never after: what comes out of a pool is popped first and looked at when the pool is unlocked again.
 *
 * An object in a pool is held by the pool and by nobody else, and carries a flag: putting it twice is seen at once. What was
 * done behind the pool's back is seen when it comes out: freed, handed on or acquired by others, it is passed over and
 * recorded, and two callers never get the same memory.
 *
 * A row stays when its last item is taken, since a program that takes an item mostly puts it back. Rows without items go
 * when the pool is pruned, and when they are half of all at a time at which there is no room for another one: a pool whose
 * keys never come twice does not grow.
 *
 * A pool is found by its number without the registry's lock. It stays mapped when it is destroyed and serves again under
 * another number, which never comes twice: a late caller finds a number that is not the one it knows.
 */
#include <stdio.h>
#include <string.h>

#include "memory/memory.h"

typedef struct {
    uint64_t value; /* handle, or a number of the caller's */
    bool is_object;
} pool_item;

typedef struct {
    tlm_label key;
    uint32_t used, room;
    pool_item *items;
} pool_row;

typedef struct tlmi_pool tlmi_pool;
struct tlmi_pool {
    tlmi_spin lock;
    uint32_t number; /* 0: destroyed */
    uint32_t max_per_key;
    uint32_t row_count, row_room; /* rows without items included, until they are in the way */
    pool_row *rows;
    uint32_t *index;  /* number of a row, from 1; 2 * row_room of them */
    uint64_t objects; /* of the items, how many are objects */
    tlm_pool_statistics stats;
    tlm_label label;
    uint64_t named_in; /* the last recording that has the label */
    tlmi_pool *next_destroyed;
};

static inline tlm_holder holder_of(uint32_t number)
{
    return TLM_HOLDER(TLM_HOLDER_POOL, number);
}

/* ---- rows and items of one pool ---- */

static inline uint32_t home_of(const tlmi_pool *pool, tlm_label key)
{
    return (key * UINT32_C(0x9E3779B1)) & (2 * pool->row_room - 1);
}

/* The row of a key; NULL when there is none. */
static inline pool_row *row_of(const tlmi_pool *pool, tlm_label key)
{
    if (pool->row_room == 0)
        return NULL;
    uint32_t at = home_of(pool, key);
    while (pool->index[at] && pool->rows[pool->index[at] - 1].key != key)
        at = (at + 1) & (2 * pool->row_room - 1);
    return pool->index[at] ? &pool->rows[pool->index[at] - 1] : NULL;
}

/* Takes out the newest item of a row that has items. */
static inline pool_item pop_item(tlmi_pool *pool, pool_row *row)
{
    pool_item item = row->items[--row->used];
    pool->objects -= item.is_object;
    pool->stats.size--;
    return item;
}

enum { FIRST_ROWS = 4, FIRST_ITEMS = 2 };

static void rebuild_index(tlmi_pool *pool)
{
    memset(pool->index, 0, 2 * pool->row_room * sizeof *pool->index);
    for (uint32_t i = 0; i < pool->row_count; i++) {
        uint32_t at = home_of(pool, pool->rows[i].key);
        while (pool->index[at])
            at = (at + 1) & (2 * pool->row_room - 1);
        pool->index[at] = i + 1;
    }
}

static void free_arrays(const tlmi_pool *pool)
{
    tlmi_slab_free(pool->rows, pool->row_room * sizeof *pool->rows);
    tlmi_slab_free(pool->index, 2 * pool->row_room * sizeof *pool->index);
}

static bool grow_rows(tlmi_pool *pool)
{
    uint32_t room = pool->row_room ? pool->row_room * 2 : FIRST_ROWS;
    pool_row *rows = tlmi_slab_alloc(room * sizeof *rows);
    uint32_t *index = rows ? tlmi_slab_alloc(2 * room * sizeof *index) : NULL;
    if (!index) {
        tlmi_slab_free(rows, room * sizeof *rows);
        return false;
    }
    if (pool->row_count)
        memcpy(rows, pool->rows, pool->row_count * sizeof *rows);
    free_arrays(pool);
    pool->rows = rows;
    pool->index = index;
    pool->row_room = room;
    rebuild_index(pool);
    return true;
}

static void drop_empty_rows(tlmi_pool *pool)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pool->row_count; i++) {
        pool_row *row = &pool->rows[i];
        if (row->used)
            pool->rows[kept++] = *row;
        else
            tlmi_slab_free(row->items, row->room * sizeof *row->items);
    }
    if (kept == pool->row_count)
        return;
    pool->row_count = kept;
    rebuild_index(pool);
}

static void free_rows(tlmi_pool *pool)
{
    for (uint32_t i = 0; i < pool->row_count; i++)
        tlmi_slab_free(pool->rows[i].items, pool->rows[i].room * sizeof *pool->rows[i].items);
    free_arrays(pool);
    pool->rows = NULL;
    pool->index = NULL;
    pool->row_count = pool->row_room = 0;
}

static uint32_t empty_rows(const tlmi_pool *pool)
{
    uint32_t empty = 0;
    for (uint32_t i = 0; i < pool->row_count; i++)
        empty += pool->rows[i].used == 0;
    return empty;
}

static pool_row *make_row(tlmi_pool *pool, tlm_label key)
{
    if (pool->row_count == pool->row_room) {
        if (pool->row_count && empty_rows(pool) * 2 >= pool->row_count)
            drop_empty_rows(pool);
        else if (!grow_rows(pool))
            return NULL;
    }
    uint32_t at = home_of(pool, key);
    while (pool->index[at])
        at = (at + 1) & (2 * pool->row_room - 1);
    pool->rows[pool->row_count] = (pool_row){.key = key};
    pool->index[at] = pool->row_count + 1;
    return &pool->rows[pool->row_count++];
}

static bool make_room(pool_row *row)
{
    if (row->used < row->room)
        return true;
    uint32_t room = row->room ? row->room * 2 : FIRST_ITEMS;
    pool_item *bigger = tlmi_slab_alloc(room * sizeof *bigger);
    if (!bigger)
        return false;
    if (row->used)
        memcpy(bigger, row->items, row->used * sizeof *bigger);
    tlmi_slab_free(row->items, row->room * sizeof *bigger);
    row->items = bigger;
    row->room = room;
    return true;
}

/* TLM_OK, TLM_NO_MEMORY, or TLM_OVERFLOW: the key has max_per_key items. Nothing changes unless it is TLM_OK. */
static tlm_status push_item(tlmi_pool *pool, tlm_label key, pool_item item)
{
    pool_row *row = row_of(pool, key);
    if (row && row->used >= pool->max_per_key)
        return TLM_OVERFLOW;
    if (!row)
        row = make_row(pool, key);
    if (!row || !make_room(row))
        return TLM_NO_MEMORY;
    row->items[row->used++] = item;
    pool->objects += item.is_object;
    pool->stats.size++;
    return TLM_OK;
}

/* Takes out the item at a place. */
static pool_item take_item(tlmi_pool *pool, pool_row *row, uint32_t place)
{
    pool_item taken = row->items[place];
    memmove(&row->items[place], &row->items[place + 1], (row->used - 1 - place) * sizeof taken);
    row->items[row->used - 1] = taken;
    return pop_item(pool, row);
}

/* One of the caller's, under any key. */
static bool has_item(const tlmi_pool *pool, uint64_t value)
{
    for (uint32_t i = 0; i < pool->row_count; i++)
        for (uint32_t place = 0; place < pool->rows[i].used; place++)
            if (pool->rows[i].items[place].value == value && !pool->rows[i].items[place].is_object)
                return true;
    return false;
}

uint64_t tlmi_pool_key_bytes(void)
{
    return sizeof(pool_row) + 2 * sizeof(uint32_t) + FIRST_ITEMS * sizeof(pool_item);
}

/* ---- pools by number ---- */

enum { CHUNK = 4096, CHUNKS = 4096 };

typedef _Atomic(tlmi_pool *) pool_place;

static pool_place *_Atomic chunks[CHUNKS]; /* pools by number */
static struct {
    tlmi_spin lock;
    uint32_t last_number;
    tlmi_pool *destroyed;
} registry;

static pool_place *place_of(uint32_t number)
{
    pool_place *chunk =
        number / CHUNK < CHUNKS ? atomic_load_explicit(&chunks[number / CHUNK], memory_order_acquire) : NULL;
    return chunk ? &chunk[number % CHUNK] : NULL;
}

/* The pool, locked; NULL: there is none of this number. */
static tlmi_pool *lock_pool(uint32_t number)
{
    pool_place *place = place_of(number);
    tlmi_pool *pool = place ? atomic_load_explicit(place, memory_order_acquire) : NULL;
    if (tlmi_unlikely(!pool))
        return NULL;
    tlmi_spin_lock(&pool->lock);
    if (tlmi_likely(pool->number == number))
        return pool;
    tlmi_spin_unlock(&pool->lock);
    return NULL;
}

/* What a function returns then. */
static tlm_status pool_missing(uint32_t number)
{
    return tlmi_fail(TLM_BAD_ARGUMENT, 0, holder_of(number), 0, number);
}

/* Events say a pool's number; a note says once in each recording what that pool is called. Not under a lock. */
static void name_pool(uint32_t number)
{
    char key[24];
    tlmi_pool *pool = lock_pool(number);
    if (!pool)
        return;
    uint64_t recording = atomic_load_explicit(&tlmi_recording_epoch, memory_order_relaxed);
    bool is_news = pool->named_in != recording && pool->label;
    tlm_label label = pool->label;
    pool->named_in = recording;
    tlmi_spin_unlock(&pool->lock);
    if (!is_news)
        return;
    snprintf(key, sizeof key, "pool.%u", number);
    tlmi_meta_note(key, tlm_label_text(label));
}

/* The site for the events of one call about a pool; 0 while nothing is recorded. Not under a lock. */
static uint32_t site_of_pool(uint32_t number)
{
    if (!tlmi_probe_on())
        return 0;
    name_pool(number);
    return tlmi_site_here();
}

/* A place for the next number; NULL without memory. Under the registry's lock. */
static pool_place *next_place(void)
{
    uint32_t number = registry.last_number + 1;
    if (number / CHUNK >= CHUNKS)
        return NULL;
    if (!place_of(number)) {
        pool_place *chunk = tlmi_own_alloc(CHUNK * sizeof *chunk);
        if (!chunk)
            return NULL;
        atomic_store_explicit(&chunks[number / CHUNK], chunk, memory_order_release);
    }
    return place_of(number);
}

/* Under the registry's lock. */
static tlmi_pool *create_pool(pool_place *place, tlm_label label, uint32_t max_per_key)
{
    tlmi_pool *pool = registry.destroyed;
    if (pool)
        registry.destroyed = pool->next_destroyed;
    else
        pool = tlmi_slab_alloc(sizeof *pool);
    if (!pool)
        return NULL;
    tlmi_spin_lock(&pool->lock); /* a late caller may be looking at the number */
    pool->number = ++registry.last_number;
    pool->label = label;
    pool->named_in = 0;
    pool->max_per_key = max_per_key;
    pool->stats = (tlm_pool_statistics){0};
    tlmi_spin_unlock(&pool->lock);
    atomic_store_explicit(place, pool, memory_order_release);
    return pool;
}

tlm_status tlm_pool_create(tlm_label label, uint32_t max_per_key, uint32_t *pool)
{
    if (max_per_key == 0)
        return tlmi_fail(TLM_BAD_ARGUMENT, 0, 0, 0, 0);
    tlmi_spin_lock(&registry.lock);
    pool_place *place = next_place();
    tlmi_pool *made = place ? create_pool(place, label, max_per_key) : NULL;
    if (made)
        *pool = registry.last_number;
    tlmi_spin_unlock(&registry.lock);
    return made ? TLM_OK : tlmi_fail(TLM_NO_MEMORY, 0, 0, sizeof *made, 0);
}

tlm_status tlm_pool_destroy(uint32_t number)
{
    tlmi_pool *pool = lock_pool(number);
    if (!pool)
        return pool_missing(number);
    if (pool->objects) {
        uint64_t objects = pool->objects;
        tlmi_spin_unlock(&pool->lock);
        return tlmi_fail(TLM_STILL_HELD, 0, holder_of(number), 0, objects);
    }
    free_rows(pool);
    pool->number = 0;
    tlmi_spin_unlock(&pool->lock);
    atomic_store_explicit(place_of(number), NULL, memory_order_relaxed);
    tlmi_spin_lock(&registry.lock);
    pool->next_destroyed = registry.destroyed;
    registry.destroyed = pool;
    tlmi_spin_unlock(&registry.lock);
    return TLM_OK;
}

enum { BATCH = 64 };
static const tlm_holder floating = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);

/* ---- out ---- */

static void record_item(tlm_kind kind, uint32_t number, uint64_t item, uint32_t site)
{
    if (tlmi_probe_on())
        tlmi_event_append((uint8_t)kind, TLM_DEVICE_NONE, item, holder_of(number), site, 0);
}

/* The slot of an object that left the pool, locked, with the pool as its only holder; NULL, and recorded, otherwise: then the
 * pool's count, if it still has one, is gone. */
static inline tlmi_slot_of_object *lock_sole(uint32_t number, tlm_object object, uint32_t site)
{
    tlm_holder holder = holder_of(number);
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
    tlmi_hand_over(slot, holder_of(number), floating, site);
    tlmi_object_event(kind, slot, object, holder_of(number), site);
    tlmi_object_unlock(slot);
    return true;
}

static void end_pruned(uint32_t number, tlm_object object, uint32_t site)
{
    tlmi_slot_of_object *slot = lock_sole(number, object, site);
    if (!slot)
        return;
    tlmi_object_event(TLM_KIND_POOL_PRUNE, slot, object, holder_of(number), site);
    tlmi_holder_remove(slot, holder_of(number));
    tlmi_object_let_go(slot, holder_of(number), site);
}

/* What was counted as a hit was none. */
static void take_back_hit(uint32_t number)
{
    tlmi_pool *pool = lock_pool(number);
    if (!pool)
        return;
    pool->stats.hits--;
    tlmi_spin_unlock(&pool->lock);
}

tlm_status tlm_pool_acquire(uint32_t number, tlm_label key, uint64_t *item)
{
    uint32_t site = site_of_pool(number);
    for (;;) {
        tlmi_pool *pool = lock_pool(number);
        if (!pool)
            return pool_missing(number);
        pool_row *row = row_of(pool, key);
        bool hit = row && row->used;
        pool_item taken = {0};
        if (hit)
            taken = pop_item(pool, row);
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
    tlmi_object_event(TLM_KIND_POOL_DROP, slot, tlmi_object_handle(slot), holder_of(number), site);
    tlmi_holder_remove(slot, from);
    tlmi_object_let_go(slot, from, site);
}

/* Pushes and counts. Unlocks the pool. */
static tlm_status push(tlmi_pool *pool, tlm_label key, pool_item item)
{
    tlm_status status = push_item(pool, key, item);
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
    uint32_t site = site_of_pool(number);
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
    tlmi_pool *pool = lock_pool(number);
    status = pool ? push(pool, key, (pool_item){object, true}) : TLM_BAD_ARGUMENT;
    if (status == TLM_OVERFLOW) {
        end_dropped(slot, number, from, site);
        say_dropped(dropped, true);
        return TLM_OK;
    }
    if (status == TLM_OK) {
        slot->flags |= TLM_FLAG_POOLED;
        tlmi_hand_over(slot, from, holder_of(number), site);
        tlmi_object_event(TLM_KIND_POOL_PUT, slot, object, holder_of(number), site);
    }
    tlmi_object_unlock(slot);
    return status == TLM_OK ? TLM_OK : tlmi_fail(status, object, from, 0, number);
}

tlm_status tlm_pool_put_item(uint32_t number, tlm_label key, uint64_t item, int *dropped)
{
    say_dropped(dropped, false);
    if (item == 0)
        return TLM_OK;
    uint32_t site = site_of_pool(number);
    tlmi_pool *pool = lock_pool(number);
    if (!pool)
        return pool_missing(number);
    if (has_item(pool, item)) {
        tlmi_misuse(TLM_MISUSE_DOUBLE_POOL, TLM_DEVICE_NONE, item, holder_of(number), site);
        tlmi_spin_unlock(&pool->lock);
        return tlmi_fail(TLM_ALREADY_POOLED, 0, holder_of(number), 0, item);
    }
    tlm_status status = push_item(pool, key, (pool_item){item, false});
    pool->stats.puts += status == TLM_OK;
    pool->stats.drops += status == TLM_OVERFLOW;
    if (status != TLM_NO_MEMORY)
        record_item(status == TLM_OK ? TLM_KIND_POOL_PUT : TLM_KIND_POOL_DROP, number, item, site);
    tlmi_spin_unlock(&pool->lock);
    if (status == TLM_NO_MEMORY)
        return tlmi_fail(status, 0, holder_of(number), 0, item);
    say_dropped(dropped, status == TLM_OVERFLOW);
    return TLM_OK;
}

/* ---- prune ---- */

typedef struct {
    pool_item item;
    tlm_label key;
} pruned;

typedef struct {
    uint64_t target;
    bool one_key;
    tlm_label key;
} pruning;

static pool_row *next_to_prune(const tlmi_pool *pool, const pruning *what)
{
    if (what->one_key) {
        pool_row *row = row_of(pool, what->key);
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
    pool_row *row;
    while (taken < room && (row = next_to_prune(pool, what))) {
        pool_item item = pop_item(pool, row);
        batch[taken++] = (pruned){item, row->key};
        if (!item.is_object)
            record_item(TLM_KIND_POOL_PRUNE, pool->number, item.value, site);
    }
    if (taken < room)
        drop_empty_rows(pool);
    return taken;
}

static tlm_status prune(uint32_t number, const pruning *what, uint64_t *items, tlm_label *keys, uint64_t room,
                        uint64_t *removed)
{
    uint32_t site = site_of_pool(number), taken = BATCH;
    uint64_t done = 0;
    while (taken == BATCH) {
        pruned batch[BATCH];
        uint64_t left = items ? room - done : BATCH;
        tlmi_pool *pool = lock_pool(number);
        if (!pool)
            return pool_missing(number);
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
    uint32_t site = site_of_pool(number);
    tlmi_pool *pool = lock_pool(number);
    if (!pool)
        return 0;
    pool_row *row = row_of(pool, key);
    uint32_t place = row ? row->used : 0;
    while (place > 0 && row->items[place - 1].value != item)
        place--;
    pool_item taken = {0};
    if (place)
        taken = take_item(pool, row, place - 1);
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
    tlmi_pool *pool = lock_pool(number);
    if (!pool)
        return pool_missing(number);
    *out = pool->stats;
    tlmi_spin_unlock(&pool->lock);
    return TLM_OK;
}

tlm_status tlm_pool_reset_counters(uint32_t number)
{
    tlmi_pool *pool = lock_pool(number);
    if (!pool)
        return pool_missing(number);
    pool->stats = (tlm_pool_statistics){.size = pool->stats.size};
    tlmi_spin_unlock(&pool->lock);
    return TLM_OK;
}

uint64_t tlm_pool_key_size(uint32_t number, tlm_label key)
{
    tlmi_pool *pool = lock_pool(number);
    if (!pool)
        return 0;
    const pool_row *row = row_of(pool, key);
    uint64_t size = row ? row->used : 0;
    tlmi_spin_unlock(&pool->lock);
    return size;
}

uint64_t tlm_pool_keys(uint32_t number, tlm_label *keys, uint64_t *sizes, uint64_t room)
{
    uint64_t count = 0;
    tlmi_pool *pool = lock_pool(number);
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
