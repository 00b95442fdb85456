/* SPDX-License-Identifier: MIT
 * check.c: whether the state of a replay is one that the allocator can be in. For tests: looks at everything.
 */
#include "replay/replay.h"

enum {
    SOUND,
    SEGMENTS_OVERLAP,
    PARTS_LEAVE_GAPS,
    NEIGHBOURS_NOT_MERGED,
    WRONG_LANE,
    WRONG_BLOCK,
    BLOCK_TOO_SMALL,
    NOT_ON_ITS_SHELF,
    SHELF_OUT_OF_ORDER,
    RESERVED_IS_WRONG,
    ALLOCATED_IS_WRONG,
    REQUESTED_IS_WRONG,
    RESERVED_BELOW_ALLOCATED,
    CAPACITY_PASSED,
    NOT_WHOLE_PAGES,
    LOST_BLOCK,
    WAITS_WRONGLY,
};

typedef struct {
    uint64_t reserved, allocated, requested, used, free, unmapped, waiting;
} sums;

static int check_part(const tlm_sim *replay, const tlmi_segment *segment, uint32_t number, sums *found)
{
    const tlmi_part *part = &replay->parts[number];
    if (part->lane != segment->lane || part->small != segment->small)
        return WRONG_LANE;
    if (part->after && replay->parts[part->after].state == part->state && part->state != TLMI_PART_USED)
        return NEIGHBOURS_NOT_MERGED;
    if (part->state == TLMI_PART_UNMAPPED) {
        uint64_t page = tlmi_sim_page(replay, part->small);
        found->unmapped++;
        return (part->address - segment->address) % page || part->bytes % page ? NOT_WHOLE_PAGES : SOUND;
    }
    found->reserved += part->bytes;
    if (part->state == TLMI_PART_FREE) {
        found->free++;
        return part->requested || part->waits ? WRONG_BLOCK : SOUND;
    }
    found->waiting += part->waits;
    found->used++;
    found->allocated += part->bytes;
    found->requested += part->requested;
    if (part->block >= replay->blocks || replay->parts_of[part->block] != number)
        return WRONG_BLOCK;
    return part->requested > part->bytes ? BLOCK_TOO_SMALL : SOUND;
}

static int check_segment(const tlm_sim *replay, const tlmi_segment *segment, sums *found)
{
    uint64_t at = segment->address;
    uint32_t before = 0;
    for (uint32_t number = segment->first; number; number = replay->parts[number].after) {
        const tlmi_part *part = &replay->parts[number];
        if (part->address != at || part->bytes == 0 || part->before != before)
            return PARTS_LEAVE_GAPS;
        int wrong = check_part(replay, segment, number, found);
        if (wrong)
            return wrong;
        at += part->bytes;
        before = number;
    }
    return at == segment->address + segment->bytes ? SOUND : PARTS_LEAVE_GAPS;
}

static int check_shelf(const tlm_sim *replay, const tlmi_shelf *shelf, uint32_t lane, bool small, sums *found)
{
    uint32_t last = 0;
    for (uint32_t at = tlmi_shelf_fitting(replay->parts, shelf, 0); at;
         at = tlmi_shelf_next(replay->parts, shelf, at)) {
        const tlmi_part *part = &replay->parts[at], *before = &replay->parts[last];
        if (part->state != TLMI_PART_FREE || part->lane != lane || part->small != small)
            return NOT_ON_ITS_SHELF;
        if (last && (before->bytes > part->bytes || (before->bytes == part->bytes && before->address >= part->address)))
            return SHELF_OUT_OF_ORDER;
        if (tlmi_shelf_previous(replay->parts, shelf, at) != last)
            return SHELF_OUT_OF_ORDER;
        last = at;
        found->free--;
    }
    if (tlmi_shelf_last(replay->parts, shelf) != last)
        return SHELF_OUT_OF_ORDER;
    uint64_t lowest = 0;
    for (uint32_t at = tlmi_shelf_first_unmapped(replay->parts, shelf); at;
         at = tlmi_shelf_next_unmapped(replay->parts, at)) {
        if (replay->parts[at].state != TLMI_PART_UNMAPPED || replay->parts[at].address < lowest)
            return SHELF_OUT_OF_ORDER;
        lowest = replay->parts[at].address + 1;
        found->unmapped--;
    }
    return SOUND;
}

static int check_sums(const tlm_sim *replay, const sums *found)
{
    const tlm_sim_figures *said = &replay->figures;
    if (found->free || found->unmapped)
        return NOT_ON_ITS_SHELF;
    if (found->reserved != said->reserved_bytes || said->peak_reserved_bytes < found->reserved)
        return RESERVED_IS_WRONG;
    if (found->allocated != said->allocated_bytes || said->peak_allocated_bytes < found->allocated)
        return ALLOCATED_IS_WRONG;
    if (found->requested != said->requested_bytes || found->requested > found->allocated)
        return REQUESTED_IS_WRONG;
    return found->reserved < found->allocated ? RESERVED_BELOW_ALLOCATED : SOUND;
}

int tlm_sim_check(const tlm_sim *replay)
{
    sums found = {0};
    uint64_t end = 0, used = 0;
    for (uint32_t s = replay->lowest; s; s = replay->segments[s].after) {
        const tlmi_segment *segment = &replay->segments[s];
        if (segment->address < end)
            return SEGMENTS_OVERLAP;
        end = segment->address + segment->bytes;
        int wrong = check_segment(replay, segment, &found);
        if (wrong)
            return wrong;
    }
    for (uint32_t i = 0; i < 2 * replay->lanes; i++) {
        int wrong = replay->shelves[i] ? check_shelf(replay, replay->shelves[i], i / 2, i % 2, &found) : SOUND;
        if (wrong)
            return wrong;
    }
    for (uint32_t block = 0; block < replay->blocks; block++)
        used += replay->parts_of[block] != 0 && replay->parts_of[block] != TLMI_BEFORE_ITS_FREE;
    if (used != found.used)
        return LOST_BLOCK;
    for (uint32_t at = replay->waiting, last = 0; at; last = at, at = replay->parts[at].right, found.waiting--)
        if (!replay->parts[at].waits || replay->parts[at].left != last)
            return WAITS_WRONGLY;
    if (found.waiting)
        return WAITS_WRONGLY;
    return check_sums(replay, &found);
}
