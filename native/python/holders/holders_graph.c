/* SPDX-License-Identifier: MIT
 * holders_graph.c: tables of holders_graph.h: open addressing with linear probing, at most half full, doubled as needed.
 *
 * One search at a time uses them, so there is no lock. Nodes are in chunks that never move; their order is the order in
 * which objects were met, so that they are the queue of a breadth-first search as well.
 */
#include <string.h>

#include "python/holders/holders_graph.h"

enum { LEAST_PLACES = 1 << 10, OBJECTS_PER_REGION = 1024, FIRST_OWNERS = 1 << 10, MOST_NODES = 1 << 28 };

static uint32_t power_above(uint64_t wanted, uint32_t least)
{
    uint32_t power = least;
    while (power < wanted && power < MOST_NODES)
        power *= 2;
    return power;
}

bool tlmi_graph_open(tlmi_graph *graph, uint32_t objects, uint32_t owners)
{
    memset(graph, 0, sizeof *graph);
    uint32_t slots = power_above(2 * ((uint64_t)objects / OBJECTS_PER_REGION), LEAST_PLACES);
    uint32_t room = power_above(owners, FIRST_OWNERS);
    graph->places = tlmi_own_alloc(slots * sizeof *graph->places);
    graph->places_mask = slots - 1;
    graph->chunks[0] = tlmi_own_alloc(TLMI_NODES_PER_CHUNK * sizeof(tlmi_node));
    graph->owners = tlmi_own_alloc((size_t)room * sizeof(tlmi_owner));
    graph->owners_room = room;
    graph->owner_table = tlmi_own_alloc(2 * (size_t)room * sizeof(uint32_t));
    graph->owner_mask = 2 * room - 1;
    graph->count = 1;
    bool opened = graph->places && graph->chunks[0] && graph->owners && graph->owner_table;
    if (!opened)
        tlmi_graph_close(graph);
    return opened;
}

void tlmi_graph_close(tlmi_graph *graph)
{
    tlmi_own_free(graph->places, ((size_t)graph->places_mask + 1) * sizeof *graph->places);
    for (tlmi_batch *batch = graph->batches, *before; batch != NULL; batch = before) {
        before = batch->before;
        tlmi_own_free(batch, sizeof *batch);
    }
    for (uint32_t i = 0; i < TLMI_NODE_CHUNKS && graph->chunks[i] != NULL; i++)
        tlmi_own_free(graph->chunks[i], TLMI_NODES_PER_CHUNK * sizeof(tlmi_node));
    tlmi_own_free(graph->owners, graph->owners_room * sizeof(tlmi_owner));
    tlmi_own_free(graph->owner_table, ((size_t)graph->owner_mask + 1) * sizeof(uint32_t));
    memset(graph, 0, sizeof *graph);
}

/* Where the region is, or the empty place where it belongs. */
static tlmi_place *place_of(const tlmi_graph *graph, uintptr_t number)
{
    uint32_t at = tlmi_graph_home(number << 4, graph->places_mask);
    while (graph->places[at].number != 0 && graph->places[at].number != number)
        at = (at + 1) & graph->places_mask;
    return &graph->places[at];
}

static bool grow_places(tlmi_graph *graph)
{
    tlmi_graph bigger = {.places_mask = 2 * graph->places_mask + 1};
    if (graph->places_mask >= MOST_NODES)
        return false;
    bigger.places = tlmi_own_alloc(((size_t)bigger.places_mask + 1) * sizeof *bigger.places);
    if (bigger.places == NULL)
        return false;
    for (size_t at = 0; at <= graph->places_mask; at++)
        if (graph->places[at].number != 0)
            *place_of(&bigger, graph->places[at].number) = graph->places[at];
    tlmi_own_free(graph->places, ((size_t)graph->places_mask + 1) * sizeof *graph->places);
    graph->places = bigger.places;
    graph->places_mask = bigger.places_mask;
    return true;
}

bool tlmi_graph_has(const tlmi_graph *graph, uintptr_t object)
{
    const tlmi_region *region = place_of(graph, tlmi_region_number(object))->region;
    return region != NULL && (region->done[tlmi_region_word(object)] & tlmi_region_bit(object)) != 0;
}

/* The next region that is not taken. */
static tlmi_region *take_region(tlmi_graph *graph)
{
    uint32_t next = graph->regions_count % TLMI_REGIONS_PER_BATCH;
    if (next == 0) {
        tlmi_batch *batch = tlmi_own_alloc(sizeof *batch);
        if (batch == NULL)
            return NULL;
        batch->before = graph->batches;
        graph->batches = batch;
    }
    graph->regions_count++;
    return &graph->batches->regions[next];
}

tlmi_region *tlmi_graph_make_region(tlmi_graph *graph, uintptr_t object)
{
    uintptr_t number = tlmi_region_number(object);
    tlmi_place *place = place_of(graph, number);
    if (place->number == number)
        return place->region;
    bool is_room = 2 * graph->regions_count <= graph->places_mask || grow_places(graph);
    tlmi_region *region = is_room ? take_region(graph) : NULL;
    if (region == NULL) {
        graph->is_full = true;
        return NULL;
    }
    *place_of(graph, number) = (tlmi_place){number, region};
    return region;
}

uint32_t tlmi_graph_append(tlmi_graph *graph, uintptr_t object, uint32_t parent, uint32_t edge)
{
    uint32_t chunk = graph->count / TLMI_NODES_PER_CHUNK;
    if (chunk < TLMI_NODE_CHUNKS && graph->chunks[chunk] == NULL)
        graph->chunks[chunk] = tlmi_own_alloc(TLMI_NODES_PER_CHUNK * sizeof(tlmi_node));
    if (chunk >= TLMI_NODE_CHUNKS || graph->chunks[chunk] == NULL) {
        graph->is_full = true;
        return 0;
    }
    *tlmi_graph_node(graph, graph->count) = (tlmi_node){.object = object, .parent = parent, .edge = edge};
    return graph->count++;
}

static uint32_t *owner_place(const tlmi_graph *graph, uint8_t device, uint64_t address)
{
    uint32_t at = tlmi_graph_home(address, graph->owner_mask);
    for (; graph->owner_table[at] != 0; at = (at + 1) & graph->owner_mask) {
        const tlmi_owner *owner = &graph->owners[graph->owner_table[at] - 1];
        if (owner->address == address && owner->device == device)
            break;
    }
    return &graph->owner_table[at];
}

/* Twice the room, for owners and for the table of their numbers. */
static bool grow_owners(tlmi_graph *graph)
{
    uint32_t room = 2 * graph->owners_room, slots = 2 * (graph->owner_mask + 1);
    if (room > MOST_NODES)
        return false;
    tlmi_owner *owners = tlmi_own_alloc((size_t)room * sizeof *owners);
    uint32_t *table = owners == NULL ? NULL : tlmi_own_alloc((size_t)slots * sizeof *table);
    if (table == NULL) {
        tlmi_own_free(owners, (size_t)room * sizeof *owners);
        return false;
    }
    memcpy(owners, graph->owners, graph->owners_count * sizeof *owners);
    tlmi_own_free(graph->owners, graph->owners_room * sizeof *owners);
    tlmi_own_free(graph->owner_table, ((size_t)graph->owner_mask + 1) * sizeof *table);
    graph->owners = owners;
    graph->owners_room = room;
    graph->owner_table = table;
    graph->owner_mask = slots - 1;
    for (uint32_t i = 0; i < graph->owners_count; i++)
        *owner_place(graph, owners[i].device, owners[i].address) = i + 1;
    return true;
}

tlmi_owner *tlmi_graph_owner(tlmi_graph *graph, uint8_t device, uint64_t address)
{
    uint32_t *place = owner_place(graph, device, address);
    if (*place != 0)
        return &graph->owners[*place - 1];
    if (graph->owners_count == graph->owners_room) {
        if (!grow_owners(graph)) {
            graph->is_full = true;
            return NULL;
        }
        place = owner_place(graph, device, address);
    }
    tlmi_owner *owner = &graph->owners[graph->owners_count++];
    *owner = (tlmi_owner){.address = address, .device = device};
    *place = graph->owners_count;
    return owner;
}

void tlmi_graph_fetch_owner(const tlmi_graph *graph, uint64_t address)
{
    __builtin_prefetch(&graph->owner_table[tlmi_graph_home(address, graph->owner_mask)]);
}

uint64_t tlmi_owner_used(const tlmi_owner *owner)
{
    return owner->is_direct || owner->seen_bytes > owner->held_bytes ? owner->held_bytes : owner->seen_bytes;
}
