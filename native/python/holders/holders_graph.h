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

/* Which objects of one page of memory were met: no two begin in the same 16 bytes. Objects that were made together lie
 * together, so this takes far fewer cache lines than a table of addresses. */
enum { TLMI_SEEN_SHIFT = 12, TLMI_SEEN_WORDS = (1 << TLMI_SEEN_SHIFT) / 16 / 64 };
typedef struct {
    uintptr_t page; /* number of the page + 1; 0: empty */
    uint64_t bits[TLMI_SEEN_WORDS];
} tlmi_seen;

typedef struct {
    tlmi_node *chunks[TLMI_NODE_CHUNKS];
    uint32_t count;  /* of nodes, the unused number 0 included */
    tlmi_seen *seen; /* open addressing */
    uint32_t seen_mask, seen_count;
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

static inline uintptr_t tlmi_seen_page(uintptr_t object)
{
    return (object >> TLMI_SEEN_SHIFT) + 1;
}

static inline uint32_t tlmi_seen_bit(uintptr_t object)
{
    return (uint32_t)(object >> 4) % (TLMI_SEEN_WORDS * 64);
}

/* The page's place, made when it is new. NULL: no memory. */
tlmi_seen *tlmi_graph_page(tlmi_graph *graph, uintptr_t page);

/* Remembers the object. Returns false if it was known before, or if memory ran out. */
static inline bool tlmi_graph_mark(tlmi_graph *graph, uintptr_t object)
{
    uintptr_t page = tlmi_seen_page(object);
    tlmi_seen *seen = &graph->seen[tlmi_graph_home(page << 4, graph->seen_mask)];
    if (tlmi_unlikely(seen->page != page) && (seen = tlmi_graph_page(graph, page)) == NULL)
        return false;
    uint64_t *word = &seen->bits[tlmi_seen_bit(object) / 64], bit = UINT64_C(1) << tlmi_seen_bit(object) % 64;
    bool is_new = (*word & bit) == 0;
    *word |= bit;
    return is_new;
}
#endif
