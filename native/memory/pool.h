/* SPDX-License-Identifier: MIT
 * pool.h: what a pool looks like inside: keys in the order of their first put, each with its items, the newest last.
 *
 *     index: hash of key -> row     rows: [key | items...] [key | items...] ...
 *
 * Everything is under the pool's lock. An object is locked before a pool, never after: what comes out of a pool is popped
 * first and looked at when the pool is unlocked again.
 */
#ifndef TLMI_POOL_H
#define TLMI_POOL_H

#include "memory/memory.h"
#pragma GCC visibility push(hidden)

typedef struct {
    uint64_t value; /* handle, or a number of the caller's */
    bool is_object;
} tlmi_pool_item;

typedef struct {
    tlm_label key;
    uint32_t used, room;
    tlmi_pool_item *items;
} tlmi_pool_row;

typedef struct tlmi_pool tlmi_pool;
struct tlmi_pool {
    tlmi_spin lock;
    uint32_t number; /* 0: destroyed */
    uint32_t max_per_key;
    uint32_t row_count, row_room; /* rows without items included, until they are in the way */
    tlmi_pool_row *rows;
    uint32_t *index;  /* number of a row, from 1; 2 * row_room of them */
    uint64_t objects; /* of the items, how many are objects */
    tlm_pool_statistics stats;
    tlm_label label;
    uint64_t named_in; /* the last recording that was told the label */
    tlmi_pool *next_destroyed;
};

static inline tlm_holder tlmi_pool_holder(uint32_t number)
{
    return TLM_HOLDER(TLM_HOLDER_POOL, number);
}
/* ---- pool_registry.c ---- */
/* The pool, locked; NULL: there is none of this number. */
tlmi_pool *tlmi_pool_lock(uint32_t number);
tlm_status tlmi_pool_missing(uint32_t number); /* what a function returns then */
/* The site for the events of one call about a pool; 0 while nothing is recorded. Not under a lock. */
uint32_t tlmi_pool_site(uint32_t number);
/* ---- pool_rows.c: rows and items of one pool. Under its lock ---- */
static inline uint32_t tlmi_pool_home(const tlmi_pool *pool, tlm_label key)
{
    return (key * UINT32_C(0x9E3779B1)) & (2 * pool->row_room - 1);
}
/* The row of a key; NULL when there is none. */
static inline tlmi_pool_row *tlmi_pool_row_of(const tlmi_pool *pool, tlm_label key)
{
    if (pool->row_room == 0)
        return NULL;
    uint32_t at = tlmi_pool_home(pool, key);
    while (pool->index[at] && pool->rows[pool->index[at] - 1].key != key)
        at = (at + 1) & (2 * pool->row_room - 1);
    return pool->index[at] ? &pool->rows[pool->index[at] - 1] : NULL;
}
/* TLM_OK, TLM_NO_MEMORY, or TLM_OVERFLOW: the key has max_per_key items. Nothing changes unless it is TLM_OK. */
tlm_status tlmi_pool_push(tlmi_pool *pool, tlm_label key, tlmi_pool_item item);
/* Takes out the newest item of a row that has items. */
static inline tlmi_pool_item tlmi_pool_pop(tlmi_pool *pool, tlmi_pool_row *row)
{
    tlmi_pool_item item = row->items[--row->used];
    pool->objects -= item.is_object;
    pool->stats.size--;
    return item;
}
/* Takes out the item at a place. */
tlmi_pool_item tlmi_pool_take(tlmi_pool *pool, tlmi_pool_row *row, uint32_t place);
bool tlmi_pool_has_item(const tlmi_pool *pool, uint64_t value); /* one of the caller's, under any key */
void tlmi_pool_drop_empty_rows(tlmi_pool *pool);
void tlmi_pool_free_rows(tlmi_pool *pool);
#pragma GCC visibility pop
#endif
