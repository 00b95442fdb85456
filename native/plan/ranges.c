/* SPDX-License-Identifier: MIT
 * ranges.c: sets of bytes as sorted ranges that do not touch.
 *
 * A store owns the places of many sets, in blocks of its own memory that are given back together. Not thread-safe.
 */
#include "plan/ranges.h"

#include <string.h>

#include "platform/platform.h"

struct tlmi_range_block {
    tlmi_range_block *next;
    size_t bytes, used;
};

enum { LEAST_ROOM = 4, LEAST_BLOCK_BYTES = 1 << 16, MOST_BLOCK_BYTES = 1 << 24 };

void tlmi_range_store_destroy(tlmi_range_store *store)
{
    while (store->blocks) {
        tlmi_range_block *block = store->blocks;
        store->blocks = block->next;
        tlmi_own_free(block, block->bytes);
    }
    *store = (tlmi_range_store){0};
}

static tlmi_range *take(tlmi_range_store *store, unsigned rank)
{
    tlmi_range *place = store->left[rank];
    if (place) {
        memcpy(&store->left[rank], place,
               sizeof place); /* a place that was left begins with the address of the next one */
        return place;
    }
    size_t bytes = ((size_t)LEAST_ROOM << rank) * sizeof *place;
    tlmi_range_block *block = store->blocks;
    if (!block || block->bytes - block->used < bytes) {
        size_t whole = store->next_bytes ? store->next_bytes : LEAST_BLOCK_BYTES;
        store->next_bytes = whole < MOST_BLOCK_BYTES ? whole * 2 : whole;
        if (whole < bytes + sizeof *block)
            whole = bytes + sizeof *block;
        block = tlmi_own_alloc(whole);
        if (!block)
            return NULL;
        *block = (tlmi_range_block){store->blocks, whole, (sizeof *block + 15) & ~(size_t)15};
        store->blocks = block;
    }
    place = (tlmi_range *)((char *)block + block->used);
    block->used += bytes;
    return place;
}

static bool grow(tlmi_range_store *store, tlmi_ranges *set)
{
    unsigned rank = 0;
    while ((uint32_t)LEAST_ROOM << rank <= set->room)
        rank++;
    tlmi_range *place = rank < TLMI_RANGE_ROOMS ? take(store, rank) : NULL;
    if (!place)
        return false;
    if (set->room) {
        memcpy(place, set->at, set->count * sizeof *place);
        memcpy(set->at, &store->left[rank - 1], sizeof set->at);
        store->left[rank - 1] = set->at;
    }
    set->at = place;
    set->room = (uint32_t)LEAST_ROOM << rank;
    return true;
}

/* The first range whose end is at or above `begin`: the first that a new one there touches, if any does. */
static uint32_t first_touched(const tlmi_ranges *set, uint64_t begin)
{
    uint32_t low = 0, high = set->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (set->at[middle].end < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tlmi_ranges_add(tlmi_range_store *store, tlmi_ranges *set, tlmi_range range)
{
    uint32_t from = first_touched(set, range.begin), to = from;
    while (to < set->count && set->at[to].begin <= range.end)
        to++;
    if (from == to) {
        if (set->count == set->room && !grow(store, set))
            return false;
        memmove(set->at + from + 1, set->at + from, (set->count - from) * sizeof range);
        set->at[from] = range;
        set->count++;
        return true;
    }
    if (set->at[from].begin > range.begin)
        set->at[from].begin = range.begin;
    uint64_t end = set->at[to - 1].end > range.end ? set->at[to - 1].end : range.end;
    set->at[from].end = end;
    if (to > from + 1) {
        memmove(set->at + from + 1, set->at + to, (set->count - to) * sizeof range);
        set->count -= to - from - 1;
    }
    return true;
}
