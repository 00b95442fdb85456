/* SPDX-License-Identifier: MIT
 * address_map.c: the writing side of address_map.h: open addressing, linear probing, removal by shifting back.
 *
 * Writers hold the lock and keep the version odd meanwhile. Every store they make to a slot is a release store and every
 * load of a reader an acquire load, so a reader that saw any of it also sees the odd or changed version.
 */
#include "platform/address_map.h"

#define FIRST_SLOTS 1024

static size_t table_bytes(uint32_t slots)
{
    return sizeof(tlmi_map_table) + (size_t)slots * sizeof(tlmi_map_slot);
}

static void store_slot(tlmi_map_slot *slot, uintptr_t key, uint64_t value)
{
    atomic_store_explicit(&slot->value, value, memory_order_release);
    atomic_store_explicit(&slot->key, key, memory_order_release);
}

static void begin_change(tlmi_map *map)
{
    pthread_mutex_lock(&map->lock);
    atomic_store_explicit(&map->version, atomic_load_explicit(&map->version, memory_order_relaxed) + 1,
                          memory_order_release);
}

static void end_change(tlmi_map *map)
{
    atomic_store_explicit(&map->version, atomic_load_explicit(&map->version, memory_order_relaxed) + 1,
                          memory_order_release);
    pthread_mutex_unlock(&map->lock);
}

/* The slot that holds the key, or the empty one where it belongs. */
static tlmi_map_slot *slot_of(tlmi_map_table *table, uintptr_t key)
{
    uint32_t at = tlmi_map_home(table, key);
    while (table->slots[at].key != 0 && table->slots[at].key != key)
        at = (at + 1) & table->mask;
    return &table->slots[at];
}

static tlmi_map_table *grow_table(tlmi_map *map, tlmi_map_table *old)
{
    uint32_t slots = old == NULL ? FIRST_SLOTS : (old->mask + 1) * 2;
    tlmi_map_table *table = tlmi_own_alloc(table_bytes(slots));
    if (table == NULL)
        return old;
    table->mask = slots - 1;
    for (uint32_t at = 0; old != NULL && at <= old->mask; at++)
        if (old->slots[at].key != 0)
            store_slot(slot_of(table, old->slots[at].key), old->slots[at].key, old->slots[at].value);
    atomic_store_explicit(&map->table, table, memory_order_release);
    return table;
}

bool tlmi_map_put(tlmi_map *map, uintptr_t key, uint64_t value)
{
    begin_change(map);
    tlmi_map_table *table = map->table;
    uint32_t used = map->used;
    if (table == NULL || (used + 1) * 2 > table->mask)
        table = grow_table(map, table);
    /* Without memory for a larger table the old one serves until it is nearly full. */
    bool room = table != NULL && used + used / 8 + 1 < table->mask;
    if (room) {
        tlmi_map_slot *slot = slot_of(table, key);
        if (slot->key == 0)
            map->used = used + 1;
        store_slot(slot, key, value);
    }
    end_change(map);
    return room;
}

uint64_t tlmi_map_take(tlmi_map *map, uintptr_t key)
{
    if (tlmi_map_find(map, key) == 0)
        return 0;
    begin_change(map);
    tlmi_map_table *table = map->table;
    tlmi_map_slot *hole = slot_of(table, key);
    uint64_t value = hole->key == 0 ? 0 : hole->value;
    if (value != 0) {
        map->used = map->used - 1;
        uint32_t empty = (uint32_t)(hole - table->slots);
        for (uint32_t at = (empty + 1) & table->mask; table->slots[at].key != 0; at = (at + 1) & table->mask) {
            uint32_t home = tlmi_map_home(table, table->slots[at].key);
            /* An entry may fill the hole when its home is not between the hole and itself. */
            if (((at - home) & table->mask) < ((at - empty) & table->mask))
                continue;
            store_slot(&table->slots[empty], table->slots[at].key, table->slots[at].value);
            empty = at;
        }
        store_slot(&table->slots[empty], 0, 0);
    }
    end_change(map);
    return value;
}

static void forget_all(tlmi_map *map)
{
    tlmi_map_table *table = map->table;
    for (uint32_t at = 0; table != NULL && at <= table->mask; at++)
        if (table->slots[at].key != 0)
            store_slot(&table->slots[at], 0, 0);
    map->used = 0;
}

void tlmi_map_clear(tlmi_map *map)
{
    begin_change(map);
    forget_all(map);
    end_change(map);
}

size_t tlmi_map_copy(tlmi_map *map, uint32_t *cursor, size_t room, uintptr_t *keys, uint64_t *values)
{
    size_t count = 0;
    pthread_mutex_lock(&map->lock);
    tlmi_map_table *table = map->table;
    for (; table != NULL && *cursor <= table->mask && count < room; (*cursor)++) {
        keys[count] = table->slots[*cursor].key;
        values[count] = table->slots[*cursor].value;
        count += keys[count] != 0;
    }
    pthread_mutex_unlock(&map->lock);
    return count;
}

uint64_t tlmi_map_find_locked(tlmi_map *map, uintptr_t key)
{
    pthread_mutex_lock(&map->lock);
    tlmi_map_table *table = map->table;
    uint64_t value = table == NULL ? 0 : tlmi_map_search(table, key);
    pthread_mutex_unlock(&map->lock);
    return value;
}

void tlmi_map_after_fork(tlmi_map *map)
{
    pthread_mutex_init(&map->lock, NULL);
    if (map->version & 1) {
        forget_all(map);
        map->version = map->version + 1;
    }
}
