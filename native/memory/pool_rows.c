/* SPDX-License-Identifier: MIT
 * pool_rows.c: the rows of a pool and how they grow; pool.h has the picture.
 *
 * A row stays when its last item is taken, since a program that takes an item mostly puts it back. Rows without items go
 * when the pool is pruned, and when they are half of all at a time at which there is no room for another one: a pool whose
 * keys never come twice does not grow.
 */
#include <string.h>

#include "memory/pool.h"

enum { FIRST_ROWS = 4, FIRST_ITEMS = 2 };

static void rebuild_index(tlmi_pool *pool)
{
    memset(pool->index, 0, 2 * pool->row_room * sizeof *pool->index);
    for (uint32_t i = 0; i < pool->row_count; i++) {
        uint32_t at = tlmi_pool_home(pool, pool->rows[i].key);
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
    tlmi_pool_row *rows = tlmi_slab_alloc(room * sizeof *rows);
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

void tlmi_pool_drop_empty_rows(tlmi_pool *pool)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pool->row_count; i++) {
        tlmi_pool_row *row = &pool->rows[i];
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

void tlmi_pool_free_rows(tlmi_pool *pool)
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

static tlmi_pool_row *make_row(tlmi_pool *pool, tlm_label key)
{
    if (pool->row_count == pool->row_room) {
        if (pool->row_count && empty_rows(pool) * 2 >= pool->row_count)
            tlmi_pool_drop_empty_rows(pool);
        else if (!grow_rows(pool))
            return NULL;
    }
    uint32_t at = tlmi_pool_home(pool, key);
    while (pool->index[at])
        at = (at + 1) & (2 * pool->row_room - 1);
    pool->rows[pool->row_count] = (tlmi_pool_row){.key = key};
    pool->index[at] = pool->row_count + 1;
    return &pool->rows[pool->row_count++];
}

static bool make_room(tlmi_pool_row *row)
{
    if (row->used < row->room)
        return true;
    uint32_t room = row->room ? row->room * 2 : FIRST_ITEMS;
    tlmi_pool_item *bigger = tlmi_slab_alloc(room * sizeof *bigger);
    if (!bigger)
        return false;
    if (row->used)
        memcpy(bigger, row->items, row->used * sizeof *bigger);
    tlmi_slab_free(row->items, row->room * sizeof *bigger);
    row->items = bigger;
    row->room = room;
    return true;
}

tlm_status tlmi_pool_push(tlmi_pool *pool, tlm_label key, tlmi_pool_item item)
{
    tlmi_pool_row *row = tlmi_pool_row_of(pool, key);
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

tlmi_pool_item tlmi_pool_take(tlmi_pool *pool, tlmi_pool_row *row, uint32_t place)
{
    tlmi_pool_item taken = row->items[place];
    memmove(&row->items[place], &row->items[place + 1], (row->used - 1 - place) * sizeof taken);
    row->items[row->used - 1] = taken;
    return tlmi_pool_pop(pool, row);
}

bool tlmi_pool_has_item(const tlmi_pool *pool, uint64_t value)
{
    for (uint32_t i = 0; i < pool->row_count; i++)
        for (uint32_t place = 0; place < pool->rows[i].used; place++)
            if (pool->rows[i].items[place].value == value && !pool->rows[i].items[place].is_object)
                return true;
    return false;
}

uint64_t tlmi_pool_key_bytes(void)
{
    return sizeof(tlmi_pool_row) + 2 * sizeof(uint32_t) + FIRST_ITEMS * sizeof(tlmi_pool_item);
}
