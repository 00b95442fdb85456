/* SPDX-License-Identifier: MIT
 * address_map.h: a map from addresses to numbers that is read on the hot path without a lock.
 *
 * Used for code objects (address -> code number) and for large array blocks (address -> bytes). Readers check a version
 * number and only take the lock when they met a writer. Tables are never unmapped: a map that grew keeps its smaller tables,
 * together less than the one in use, so that a late reader never faults. Values are never 0.
 */
#ifndef TLMI_ADDRESS_MAP_H
#define TLMI_ADDRESS_MAP_H

#include "platform/platform.h"
#pragma GCC visibility push(default)

typedef struct {
    _Atomic uintptr_t key; /* 0: empty */
    _Atomic uint64_t value;
} tlmi_map_slot;

typedef struct {
    uint32_t mask; /* slots - 1; a power of two minus 1 */
    tlmi_map_slot slots[];
} tlmi_map_table;

typedef struct {
    _Atomic(tlmi_map_table *) table;
    _Atomic uint32_t version; /* odd while a writer is at work */
    _Atomic uint32_t used;
    pthread_mutex_t lock;
} tlmi_map;

#define TLMI_MAP_EMPTY {.lock = PTHREAD_MUTEX_INITIALIZER}

/* Adds or replaces. false: no memory, the map is as it was. */
bool tlmi_map_put(tlmi_map *map, uintptr_t key, uint64_t value);
/* Removes and returns the value; 0 when the key is not there. */
uint64_t tlmi_map_take(tlmi_map *map, uintptr_t key);
/* Forgets all keys; keeps the memory. */
void tlmi_map_clear(tlmi_map *map);
/* Copies up to `room` entries from slot *cursor on and moves the cursor; returns how many, 0 at the end. Entries that are
 * added or removed meanwhile may be missed or seen twice. */
size_t tlmi_map_copy(tlmi_map *map, uint32_t *cursor, size_t room, uintptr_t *keys, uint64_t *values);
/* In a forked child, where a thread that is gone may have held the lock: makes the map usable, empty if it was torn. */
void tlmi_map_after_fork(tlmi_map *map);
/* The value of a key, under the lock; 0 when it is not there. */
uint64_t tlmi_map_find_locked(tlmi_map *map, uintptr_t key);

static inline uint32_t tlmi_map_home(const tlmi_map_table *table, uintptr_t key)
{
    uint64_t mixed = (uint64_t)key * 0x9E3779B97F4A7C15u;
    return (uint32_t)(mixed >> 32) & table->mask;
}

static inline uint64_t tlmi_map_search(tlmi_map_table *table, uintptr_t key)
{
    for (uint32_t at = tlmi_map_home(table, key);; at = (at + 1) & table->mask) {
        uintptr_t found = atomic_load_explicit(&table->slots[at].key, memory_order_acquire);
        if (found == key)
            return atomic_load_explicit(&table->slots[at].value, memory_order_acquire);
        if (found == 0)
            return 0;
    }
}

/* The value of a key; 0 when it is not there. */
static inline uint64_t tlmi_map_find(tlmi_map *map, uintptr_t key)
{
    uint32_t version = atomic_load_explicit(&map->version, memory_order_acquire);
    tlmi_map_table *table = atomic_load_explicit(&map->table, memory_order_acquire);
    if (table == NULL)
        return 0;
    uint64_t value = tlmi_map_search(table, key);
    if (tlmi_unlikely((version & 1) || atomic_load_explicit(&map->version, memory_order_relaxed) != version))
        return tlmi_map_find_locked(map, key);
    return value;
}
#pragma GCC visibility pop
#endif
