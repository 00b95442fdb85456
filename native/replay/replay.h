/* SPDX-License-Identifier: MIT
 * replay.h: what the files of the replay share. Order: shelves < allocator < check, run; pools apart.
 *
 * Parts of segments are records with numbers; 0 is no part. A free or unmapped part stands on a *shelf*, one for the small and
 * one for the large segments of each lane.
 */
#ifndef TLMI_REPLAY_H
#define TLMI_REPLAY_H

#include "platform/platform.h"
#include "tlmem_replay.h"
#pragma GCC visibility push(hidden)

enum { TLMI_PART_FREE, TLMI_PART_USED, TLMI_PART_UNMAPPED };
enum { TLMI_BINS = 768, TLMI_BIN_WORDS = TLMI_BINS / 64 };

typedef struct {
    uint64_t address, bytes, requested;
    uint32_t before, after;       /* neighbours in the segment */
    uint32_t left, right, parent; /* on the shelf; of those that wait, the ones before and after */
    uint32_t segment, block;
    uint32_t stamp; /* searches of the default pool when it was shelved */
    uint16_t lane;
    uint8_t state, small;
    bool waits; /* in use by another stream alone */
} tlmi_part;

typedef struct {
    uint64_t occupied[TLMI_BIN_WORDS];
    uint32_t roots[TLMI_BINS]; /* free parts by size, then by address */
    uint32_t unmapped;         /* by address */
} tlmi_shelf;

/* ---- shelves.c: ordered sets of parts. Cannot fail ---- */
void tlmi_shelf_put(tlmi_part *parts, tlmi_shelf *shelf, uint32_t part);
void tlmi_shelf_take(tlmi_part *parts, tlmi_shelf *shelf, uint32_t part);
/* The smallest free part of at least so many bytes, the lowest one of these; 0: none. */
uint32_t tlmi_shelf_fitting(const tlmi_part *parts, const tlmi_shelf *shelf, uint64_t bytes);
uint32_t tlmi_shelf_next(const tlmi_part *parts, const tlmi_shelf *shelf,
                         uint32_t part); /* in that order; 0: the last */
uint32_t tlmi_shelf_last(const tlmi_part *parts, const tlmi_shelf *shelf);
uint32_t tlmi_shelf_previous(const tlmi_part *parts, const tlmi_shelf *shelf, uint32_t part);
uint32_t tlmi_shelf_first_unmapped(const tlmi_part *parts, const tlmi_shelf *shelf);
uint32_t tlmi_shelf_next_unmapped(const tlmi_part *parts, uint32_t part); /* also within one bin */

typedef struct {
    uint64_t address, bytes; /* an expandable one: the addresses it may use */
    uint32_t first;          /* part */
    uint32_t before, after;  /* by address */
    uint16_t lane;
    uint8_t small, expandable;
} tlmi_segment;

typedef struct {
    uint64_t bytes, order, address, used;
} tlmi_place;

/* `keeps`: its unused segments do not go back. */
typedef struct {
    uint32_t pool;
    bool keeps, never_expands;
} tlmi_lane;

struct tlm_sim {
    tlm_sim_settings settings;
    tlm_sim_figures figures;
    uint32_t lanes, blocks;
    tlmi_lane *lane;      /* [lane] */
    tlmi_shelf **shelves; /* [2 * lane + small]; NULL until used */
    uint32_t *parts_of;   /* [block] -> part; 0: not in use */
    uint32_t waiting;     /* first part that waits */
    tlmi_part *parts;
    uint32_t part_room, part_count, spare_part; /* spare ones are linked by `after` */
    tlmi_segment *segments;
    uint32_t segment_room, segment_count, spare_segment;
    uint32_t lowest, highest; /* segments */
    tlmi_place *places;
    uint64_t place_count;
    tlm_sim_change *changes;
    uint64_t change_room, change_count;
    uint64_t top;         /* addresses from here on were never used */
    uint32_t expandables; /* made so far */
    uint32_t searches;    /* of the default pool's large segments, while collecting is on */
    bool has_gaps;        /* a segment was given back */
    bool no_memory, ended;
    size_t lane_bytes, block_table_bytes, place_bytes;
};

static inline uint64_t tlmi_sim_page(const tlm_sim *replay, bool small)
{
    return small ? replay->settings.small_segment_bytes : replay->settings.large_segment_bytes;
}

/* The part of a block that serves again before its FREE. */
#define TLMI_BEFORE_ITS_FREE UINT32_MAX

/* ---- allocator.c: one allocation, one free, and what they need of the driver ---- */
typedef enum { TLMI_ALLOC_DONE, TLMI_ALLOC_REFUSED, TLMI_ALLOC_NO_MEMORY } tlmi_alloc_end;
tlmi_alloc_end tlmi_sim_alloc(tlm_sim *replay, const tlm_sim_event *event, uint32_t *part);
void tlmi_sim_free(tlm_sim *replay, uint32_t part);
void tlmi_sim_wait(tlm_sim *replay, uint32_t part);
void tlmi_sim_idle(tlm_sim *replay, uint32_t lane);
void tlmi_sim_empty(tlm_sim *replay);
uint64_t tlmi_sim_collect(tlm_sim *replay, uint64_t target); /* returns how many bytes were */
/* Before the first event. False: no memory, or contradictory (then no_memory is not set). */
bool tlmi_sim_add_segment(tlm_sim *replay, tlm_sim_range range, uint32_t lane, bool small, bool expandable);
bool tlmi_sim_add_block(tlm_sim *replay, uint32_t block, tlm_sim_range range, uint64_t requested);
#pragma GCC visibility pop
#endif
