/* SPDX-License-Identifier: MIT
 * holders_graph.h: what the search for holders has met: objects, each with how it was reached, and memory that they own.
 *
 * Knows nothing of Python: objects are numbers. All memory is our own, and given back at the end of each search.
 */
#ifndef TLMI_HOLDERS_GRAPH_H
#define TLMI_HOLDERS_GRAPH_H

#include "log/log.h"

enum { TLMI_NODES_PER_CHUNK = 1 << 16, TLMI_NODE_CHUNKS = 1 << 11, TLMI_NODE_BITS = 27 };

/* An object that was met, and the edge of the object by which it was met first. Number 0 is none. */
typedef struct {
    uintptr_t object;
    uint32_t parent : TLMI_NODE_BITS;    /* node; 0: this one is a root */
    uint32_t kind : 32 - TLMI_NODE_BITS; /* for whoever looks into it; 0 at first */
    uint32_t edge;                       /* which of the parent's references; of a root: its number */
} tlmi_node;
_Static_assert(sizeof(tlmi_node) == 16 && TLMI_NODES_PER_CHUNK * TLMI_NODE_CHUNKS == 1 << TLMI_NODE_BITS,
               "numbers of nodes");

/* Memory that is owned by an object which was met, or that one looks into. Where it is untracked (TLM_DEVICE_NONE), an
 * array over it stands for the owner. */
typedef struct {
    uint64_t address; /* or handle */
    uint64_t held_bytes;
    uint64_t seen_bytes; /* of views, together */
    uint32_t node;       /* of its owner; 0: not met yet */
    uint32_t shape;      /* holders_groups.c */
    uint8_t device;
    bool is_direct; /* somebody else than a view refers to the owner: all of it is used */
} tlmi_owner;

/* Which objects of one region of memory were met, one bit each: no two begin in the same 16 bytes. Objects that were made
 * together lie together, so this takes far fewer cache lines than a table of addresses. */
enum { TLMI_REGION_SHIFT = 19, TLMI_REGION_WORDS = (1 << TLMI_REGION_SHIFT) / 16 / 64 };
typedef struct {
    uint64_t done[TLMI_REGION_WORDS]; /* further references to these say nothing new */
    uint64_t met[TLMI_REGION_WORDS];  /* of the others */
} tlmi_region;
typedef struct {
    uintptr_t number; /* of the region + 1; 0: empty */
    tlmi_region *region;
} tlmi_place;
/* Regions are allocated together. */
enum { TLMI_REGIONS_PER_BATCH = 32 };
typedef struct tlmi_batch {
    tlmi_region regions[TLMI_REGIONS_PER_BATCH];
    struct tlmi_batch *before;
} tlmi_batch;

typedef struct {
    tlmi_node *chunks[TLMI_NODE_CHUNKS];
    uint32_t count;     /* of nodes, the unused number 0 included */
    tlmi_place *places; /* of regions: open addressing */
    uint32_t places_mask, regions_count;
    tlmi_batch *batches; /* the last one, whose regions are taken one after another */
    tlmi_owner *owners;
    uint32_t owners_count, owners_room;
    uint32_t *owner_table; /* numbers of owners + 1, by address */
    uint32_t owner_mask;
    bool is_full; /* memory was refused: what there is is right, but not all */
} tlmi_graph;

/* false: no memory, nothing is held. Objects and owners that are expected, from experience; 0: not known. */
bool tlmi_graph_open(tlmi_graph *graph, uint32_t objects, uint32_t owners);
void tlmi_graph_close(tlmi_graph *graph);
bool tlmi_graph_has(const tlmi_graph *graph, uintptr_t object);
/* A node for an object, known or not. 0: no memory. */
uint32_t tlmi_graph_append(tlmi_graph *graph, uintptr_t object, uint32_t parent, uint32_t edge);
/* The owner of this memory, made when it is new. NULL: no memory. Valid until the next call. */
tlmi_owner *tlmi_graph_owner(tlmi_graph *graph, uint8_t device, uint64_t address);
/* Lets the processor bring what tlmi_graph_owner will look at. */
void tlmi_graph_fetch_owner(const tlmi_graph *graph, uint64_t address);
/* What the program sees of it, never more than there is. */
uint64_t tlmi_owner_used(const tlmi_owner *owner);

static inline tlmi_node *tlmi_graph_node(const tlmi_graph *graph, uint32_t number)
{
    return &graph->chunks[number / TLMI_NODES_PER_CHUNK][number % TLMI_NODES_PER_CHUNK];
}

/* Fibonacci hashing: the high bits of the product are the mixed ones. */
static inline uint32_t tlmi_graph_home(uint64_t key, uint32_t mask)
{
    return (uint32_t)((key >> 4) * 0x9E3779B97F4A7C15u >> 32) & mask;
}

static inline uintptr_t tlmi_region_number(uintptr_t object)
{
    return (object >> TLMI_REGION_SHIFT) + 1;
}

static inline uint32_t tlmi_region_word(uintptr_t object)
{
    return (uint32_t)(object >> 10) % TLMI_REGION_WORDS;
}

static inline uint64_t tlmi_region_bit(uintptr_t object)
{
    return UINT64_C(1) << (object >> 4) % 64;
}

/* The object's region, made when it is new. NULL: no memory. */
tlmi_region *tlmi_graph_make_region(tlmi_graph *graph, uintptr_t object);
static inline tlmi_region *tlmi_graph_region(tlmi_graph *graph, uintptr_t object)
{
    uintptr_t number = tlmi_region_number(object);
    const tlmi_place *place = &graph->places[tlmi_graph_home(number << 4, graph->places_mask)];
    return tlmi_likely(place->number == number) ? place->region : tlmi_graph_make_region(graph, object);
}

/* Remembers the object. Returns false if it was known before, or if memory ran out. */
static inline bool tlmi_graph_mark(tlmi_graph *graph, uintptr_t object)
{
    tlmi_region *region = tlmi_graph_region(graph, object);
    if (tlmi_unlikely(region == NULL))
        return false;
    uint64_t *word = &region->done[tlmi_region_word(object)], bit = tlmi_region_bit(object);
    bool is_new = (*word & bit) == 0;
    *word |= bit;
    return is_new;
}

/* The same for an object of which each reference is looked at: it stays one that is not done. */
static inline bool tlmi_graph_meet(tlmi_graph *graph, uintptr_t object)
{
    tlmi_region *region = tlmi_graph_region(graph, object);
    if (tlmi_unlikely(region == NULL))
        return false;
    uint64_t *word = &region->met[tlmi_region_word(object)], bit = tlmi_region_bit(object);
    bool is_new = (*word & bit) == 0;
    *word |= bit;
    return is_new;
}

/* Whether further references to the object say nothing new. */
static inline bool tlmi_graph_is_done(tlmi_graph *graph, uintptr_t object)
{
    const tlmi_region *region = tlmi_graph_region(graph, object);
    return tlmi_likely(region != NULL) && (region->done[tlmi_region_word(object)] >> (object >> 4) % 64 & 1) != 0;
}
#endif
