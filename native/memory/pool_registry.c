/* SPDX-License-Identifier: MIT
 * pool_registry.c: pools by number: made, found, named in a recording, destroyed.
 *
 * A pool is found without the registry's lock. It stays mapped when it is destroyed and serves again under another number,
 * which never comes twice: a late caller finds a number that is not the one it knows.
 */
#include <stdio.h>

#include "memory/pool.h"

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

tlmi_pool *tlmi_pool_lock(uint32_t number)
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

tlm_status tlmi_pool_missing(uint32_t number)
{
    return tlmi_fail(TLM_BAD_ARGUMENT, 0, tlmi_pool_holder(number), 0, number);
}

/* Events say a pool's number; a note says once in each recording what that pool is called. Not under a lock. */
static void name_pool(uint32_t number)
{
    char key[24];
    tlmi_pool *pool = tlmi_pool_lock(number);
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

uint32_t tlmi_pool_site(uint32_t number)
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
    tlmi_pool *pool = tlmi_pool_lock(number);
    if (!pool)
        return tlmi_pool_missing(number);
    if (pool->objects) {
        uint64_t objects = pool->objects;
        tlmi_spin_unlock(&pool->lock);
        return tlmi_fail(TLM_STILL_HELD, 0, tlmi_pool_holder(number), 0, objects);
    }
    tlmi_pool_free_rows(pool);
    pool->number = 0;
    tlmi_spin_unlock(&pool->lock);
    atomic_store_explicit(place_of(number), NULL, memory_order_relaxed);
    tlmi_spin_lock(&registry.lock);
    pool->next_destroyed = registry.destroyed;
    registry.destroyed = pool;
    tlmi_spin_unlock(&registry.lock);
    return TLM_OK;
}
