/* SPDX-License-Identifier: MIT
 * holders_kinds.c: how many objects of each type Python's collector follows, and the types that have most.
 *
 * The collector's own lists are gone through once, without a look into the objects: what nothing reaches, such as an object whose
 * count a library forgot to lower, is counted too. What cannot refer to others (str, bytes, numbers) is on no list, nor is a dict
 * or a tuple that holds nothing but such. Counts of a pass that was cut would look like objects that went away, so there are none.
 * On the way it adds up what the lru_caches have that have a bound.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

enum { SLOTS = 1024, OBJECTS_PER_LOOK = 4096, LEAST_OBJECTS = 10 };

typedef struct {
    tlmi_search *search;
    tlmi_type_count *last; /* of the object before: many of one type lie side by side */
    uint32_t types;
    tlmi_type_count slots[SLOTS];
} table;

static tlmi_type_count *slot_of(table *table, PyTypeObject *type)
{
    uint32_t at = tlmi_graph_home((uintptr_t)type, SLOTS - 1);
    while (table->slots[at].type != NULL && table->slots[at].type != type)
        at = (at + 1) % SLOTS;
    if (table->slots[at].type != NULL)
        return &table->slots[at];
    if (table->types == SLOTS / 2)
        return NULL;
    table->types++;
    table->slots[at].type = type;
    table->slots[at].is_lru_cache = strcmp(type->tp_name, "functools._lru_cache_wrapper") == 0;
    return &table->slots[at];
}

/* What a cache has and may have; one that has less than a quarter of that is not bounded by it. */
static void add_cached(tlmi_search *search, PyObject *cache)
{
    enum { PARTS = 4 };
    const pyinside_lru *inside = pyinside_as_lru(cache);
    if (inside == NULL || inside->most <= 0 || inside->results == NULL)
        return;
    uint64_t items = (uint64_t)PyDict_GET_SIZE(inside->results), most = (uint64_t)inside->most;
    if (items < most / PARTS)
        return;
    search->cached_items += items;
    search->cached_most += most;
}

static int count_object(PyObject *object, void *context)
{
    table *table = context;
    if (--table->search->until_clock == 0) {
        if (tlmi_search_is_late(table->search))
            return 0;
        table->search->until_clock = OBJECTS_PER_LOOK;
    }
    if (table->last == NULL || table->last->type != Py_TYPE(object))
        table->last = slot_of(table, Py_TYPE(object));
    if (table->last != NULL) {
        table->last->objects++;
        if (tlmi_unlikely(table->last->is_lru_cache))
            add_cached(table->search, object);
    }
    return 1;
}

/* Puts a type among those that have most, most first. */
static uint32_t put(tlmi_type_count *most, uint32_t count, const tlmi_type_count *one)
{
    uint32_t at = count < TLMI_TYPES ? count : TLMI_TYPES - 1;
    if (count == TLMI_TYPES && most[at].objects >= one->objects)
        return count;
    for (; at > 0 && most[at - 1].objects < one->objects; at--)
        most[at] = most[at - 1];
    most[at] = *one;
    return count < TLMI_TYPES ? count + 1 : count;
}

void tlmi_search_count_types(tlmi_search *search, uint64_t until_ns)
{
    table *table = tlmi_own_alloc(sizeof *table);
    uint64_t deadline_ns = search->deadline_ns;
    bool was_late = search->is_late;
    if (table == NULL)
        return;
    table->search = search;
    search->until_clock = OBJECTS_PER_LOOK;
    search->deadline_ns = until_ns;
    search->is_late = false;
    search->cached_items = search->cached_most = 0;
    bool was_seen = tlmi_search_each_tracked(search, count_object, table) && !search->is_late;
    for (uint32_t i = 0; was_seen && i < SLOTS; i++)
        if (table->slots[i].objects >= LEAST_OBJECTS)
            search->types_count = put(search->types, search->types_count, &table->slots[i]);
    if (!was_seen)
        search->cached_items = search->cached_most = 0;
    search->is_late = was_late;
    search->until_clock = 1;
    search->deadline_ns = deadline_ns;
    tlmi_own_free(table, sizeof *table);
}
#endif
