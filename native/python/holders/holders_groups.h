/* SPDX-License-Identifier: MIT
 * holders_groups.h: memory that is held in the same way, put together: one row for 300 arrays in one list.
 *
 * Knows nothing of Python, as holders_graph.h. A shape is a way from a root, with the indexes and keys of containers left
 * out; shapes form a tree. Whoever knows what the edges mean says which of them are the same.
 */
#ifndef TLMI_HOLDERS_GROUPS_H
#define TLMI_HOLDERS_GROUPS_H

#include "python/holders/holders_graph.h"

enum {
    TLMI_GROUPS_BY_BYTES = 96,
    TLMI_GROUPS_BY_COUNT = 32,
    TLMI_GROUPS = TLMI_GROUPS_BY_BYTES + TLMI_GROUPS_BY_COUNT,
    TLMI_UNTRACKED_GROUPS = 16,
    TLMI_SAMPLES = 64,
};

/* What makes the step to a node the same as that to another one from the same shape. */
typedef struct {
    uint64_t edge; /* 0 where it does not matter which item it is */
    uint64_t type; /* of what is reached */
} tlmi_likeness;
typedef tlmi_likeness (*tlmi_liken)(void *context, uint32_t node);

typedef struct {
    tlmi_likeness likeness;
    uint32_t parent, depth;
    uint32_t first;  /* the first node of this shape on a way to memory */
    uint32_t sample; /* the first owner; only with count > 0 */
    uint32_t pick;   /* its group's number + 1; 0: in none */
    bool is_varied;  /* its nodes were reached by different items */
    uint64_t count, held_bytes, used_bytes;
    uint32_t untracked_sample; /* the same of untracked memory */
    uint64_t untracked_count, untracked_bytes;
} tlmi_shape;

typedef struct {
    tlmi_shape *shapes; /* number 0 is none */
    uint32_t count, room;
    uint32_t *table;
    uint32_t mask;
    uint32_t *of_node; /* 0: not asked for yet */
    uint32_t of_node_count;
    uint32_t *way; /* nodes on the way up */
    uint32_t way_room;
    uint32_t with_memory; /* shapes that owners have */
    uint64_t owners, held_bytes;
    uint32_t picked[TLMI_GROUPS];
    uint32_t picked_count;
    bool is_full; /* memory was refused, or `late` said so: some owners are left out */
} tlmi_groups;

/* Finds the shape of each owner. `late` is asked now and then whether to give up. false: no memory, nothing is held. */
bool tlmi_groups_open(tlmi_groups *groups, tlmi_graph *graph, tlmi_liken liken, bool (*late)(void *), void *context);
void tlmi_groups_close(tlmi_groups *groups);
/* Picks those that hold most: by bytes, then by number. */
void tlmi_groups_pick(tlmi_groups *groups);
/* The shapes that hold most untracked memory, by bytes; how many. `picked` has room for TLMI_UNTRACKED_GROUPS. */
uint32_t tlmi_groups_pick_untracked(const tlmi_groups *groups, uint32_t *picked);
/* Addresses of owners of every picked group, spread evenly over them: at most TLMI_SAMPLES of group g from addresses[g *
 * TLMI_SAMPLES] on, counts[g] of them. */
void tlmi_groups_sample(const tlmi_groups *groups, const tlmi_graph *graph, uint64_t *addresses, uint32_t *counts);
#endif
