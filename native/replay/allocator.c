/* SPDX-License-Identifier: MIT
 * allocator.c: one allocation and one free, as PyTorch's caching allocator for CUDA does them, and what the driver is asked for.
 *
 * At every instant the parts of a segment lie side by side in a list, no two free neighbours are in it, nor two unmapped ones,
 * and each part that is not in use stands on the shelf of its lane. Not thread-safe.
 */
#include <string.h>

#include "replay/replay.h"

enum { FIRST_DIVISION_BITS = 20, DIVISIONS = 16, LEAST_ROOM = 1024 };
/* Addresses that no recording has: of segments whose place is not known, and of expandable ones. */
static const uint64_t FIRST_ADDRESS = (uint64_t)1 << 58, FIRST_EXPANDABLE = (uint64_t)1 << 60;
static const uint64_t ROOMY = (uint64_t)1 << 44;

/* ---- records ---- */

/* A larger copy of a table. False: no memory, and it is as it was. */
static bool grow(void **table, uint32_t *room, size_t each)
{
    uint32_t wanted = *room ? *room * 2 : LEAST_ROOM;
    void *larger = *room <= UINT32_MAX / 4 ? tlmi_own_alloc(wanted * each) : NULL;
    if (!larger)
        return false;
    if (*room)
        memcpy(larger, *table, *room * each);
    tlmi_own_free(*table, *room * each);
    *table = larger;
    *room = wanted;
    return true;
}

/* So that what follows finds room for some new parts without moving the table. */
static bool has_room_for_parts(tlm_sim *replay)
{
    if (replay->part_room - replay->part_count >= 4 && replay->part_room)
        return true;
    return grow((void **)&replay->parts, &replay->part_room, sizeof *replay->parts);
}

/* There is room. */
static uint32_t new_part(tlm_sim *replay)
{
    uint32_t part = replay->spare_part;
    if (part)
        replay->spare_part = replay->parts[part].after;
    else
        part = ++replay->part_count;
    return part;
}

static void forget_part(tlm_sim *replay, uint32_t part)
{
    replay->parts[part].after = replay->spare_part;
    replay->spare_part = part;
}

static inline bool is_collecting(const tlm_sim *replay)
{
    return replay->settings.collect_above > 0 && replay->settings.allowed_bytes;
}

/* NULL: no memory. */
static tlmi_shelf *shelf_of(tlm_sim *replay, uint32_t lane, bool small)
{
    tlmi_shelf **shelf = &replay->shelves[2 * lane + small];
    if (tlmi_unlikely(!*shelf))
        *shelf = tlmi_own_alloc(sizeof **shelf);
    return *shelf;
}

static inline tlmi_shelf *shelf_of_part(tlm_sim *replay, const tlmi_part *part)
{
    return replay->shelves[2 * (uint32_t)part->lane + part->small];
}

static void put(tlm_sim *replay, uint32_t number)
{
    tlmi_part *part = &replay->parts[number];
    part->stamp = replay->searches;
    tlmi_shelf_put(replay->parts, shelf_of_part(replay, part), number);
}

static void take(tlm_sim *replay, uint32_t number)
{
    tlmi_shelf_take(replay->parts, shelf_of_part(replay, &replay->parts[number]), number);
}

static void note_change(tlm_sim *replay, tlm_sim_range range, uint32_t lane, bool given)
{
    if (given)
        replay->figures.driver_allocs++;
    else
        replay->figures.driver_frees++;
    if (!replay->settings.keeps_log)
        return;
    uint32_t room = (uint32_t)replay->change_room;
    if (replay->change_count == room) {
        if (!grow((void **)&replay->changes, &room, sizeof *replay->changes)) {
            replay->no_memory = true;
            return;
        }
        replay->change_room = room;
    }
    replay->changes[replay->change_count++] =
        (tlm_sim_change){replay->figures.events, range.address, range.bytes, lane, given};
}

static void count_reserved(tlm_sim *replay, int64_t change)
{
    replay->figures.reserved_bytes += (uint64_t)change;
    if (replay->figures.reserved_bytes <= replay->figures.peak_reserved_bytes)
        return;
    replay->figures.peak_reserved_bytes = replay->figures.reserved_bytes;
    replay->figures.peak_event = replay->figures.events;
}

/* ---- sizes ---- */

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

static uint64_t rounded(const tlm_sim_settings *settings, uint64_t bytes)
{
    if (bytes < settings->grain_bytes)
        return settings->grain_bytes;
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(bytes);
    uint32_t interval = bits < FIRST_DIVISION_BITS ? 0 : bits - FIRST_DIVISION_BITS;
    uint64_t divisions = settings->divisions[interval < DIVISIONS ? interval : DIVISIONS - 1];
    if (divisions < 2 || bytes <= settings->grain_bytes * divisions)
        return (bytes + settings->grain_bytes - 1) & ~(settings->grain_bytes - 1);
    return round_up(bytes, ((uint64_t)1 << bits) / divisions);
}

static uint64_t segment_bytes(const tlm_sim_settings *settings, uint64_t bytes)
{
    if (bytes <= settings->small_bytes)
        return settings->small_segment_bytes;
    if (bytes < settings->own_segment_bytes)
        return settings->large_segment_bytes;
    return round_up(bytes, settings->round_bytes);
}

/* ---- lists of parts and segments ---- */

/* Puts a new part behind one of the same segment; the caller shelves it. There is room. */
static uint32_t split(tlm_sim *replay, uint32_t number, uint64_t bytes)
{
    uint32_t rest = new_part(replay);
    tlmi_part *part = &replay->parts[number];
    replay->parts[rest] = *part;
    tlmi_part *behind = &replay->parts[rest];
    behind->address += bytes;
    behind->bytes -= bytes;
    behind->before = number;
    if (behind->after)
        replay->parts[behind->after].before = rest;
    part->bytes = bytes;
    part->after = rest;
    return rest;
}

/* Joins a neighbour in the same state, which stands on a shelf, with a part that does not. */
static void join(tlm_sim *replay, uint32_t number, uint32_t other)
{
    if (!other || replay->parts[other].state != replay->parts[number].state)
        return;
    take(replay, other);
    tlmi_part *part = &replay->parts[number], *gone = &replay->parts[other];
    if (part->before == other) {
        part->address = gone->address;
        part->before = gone->before;
        if (part->before)
            replay->parts[part->before].after = number;
        else
            replay->segments[part->segment].first = number;
    } else {
        part->after = gone->after;
        if (part->after)
            replay->parts[part->after].before = number;
    }
    part->bytes += gone->bytes;
    forget_part(replay, other);
}

static void join_both(tlm_sim *replay, uint32_t number)
{
    join(replay, number, replay->parts[number].before);
    join(replay, number, replay->parts[number].after);
}

static void link_segment(tlm_sim *replay, uint32_t number, uint32_t before)
{
    tlmi_segment *segment = &replay->segments[number];
    segment->before = before;
    segment->after = before ? replay->segments[before].after : replay->lowest;
    if (before)
        replay->segments[before].after = number;
    else
        replay->lowest = number;
    if (segment->after)
        replay->segments[segment->after].before = number;
    else
        replay->highest = number;
}

static void unlink_segment(tlm_sim *replay, uint32_t number)
{
    tlmi_segment *segment = &replay->segments[number];
    if (segment->before)
        replay->segments[segment->before].after = segment->after;
    else
        replay->lowest = segment->after;
    if (segment->after)
        replay->segments[segment->after].before = segment->before;
    else
        replay->highest = segment->before;
    segment->after = replay->spare_segment;
    replay->spare_segment = number;
    replay->has_gaps = true;
}

/* The last segment that begins at or below an address; 0: none. */
static uint32_t segment_below(const tlm_sim *replay, uint64_t address)
{
    uint32_t at = replay->highest;
    while (at && replay->segments[at].address > address)
        at = replay->segments[at].before;
    return at;
}

static bool is_vacant(const tlm_sim *replay, tlm_sim_range range, uint32_t below)
{
    uint32_t above = below ? replay->segments[below].after : replay->lowest;
    if (below && replay->segments[below].address + replay->segments[below].bytes > range.address)
        return false;
    return !above || replay->segments[above].address >= range.address + range.bytes;
}

/* A segment with one part, which stands on no shelf; 0: no memory. */
static uint32_t new_segment(tlm_sim *replay, tlm_sim_range range, uint32_t below, tlmi_segment like, int state)
{
    if (!has_room_for_parts(replay))
        return 0;
    uint32_t number = replay->spare_segment;
    if (number) {
        replay->spare_segment = replay->segments[number].after;
    } else {
        if (replay->segment_count + 1 >= replay->segment_room &&
            !grow((void **)&replay->segments, &replay->segment_room, sizeof *replay->segments))
            return 0;
        number = ++replay->segment_count;
    }
    uint32_t part = new_part(replay);
    like.address = range.address;
    like.bytes = range.bytes;
    like.first = part;
    replay->segments[number] = like;
    link_segment(replay, number, below);
    replay->parts[part] = (tlmi_part){.address = range.address,
                                      .bytes = range.bytes,
                                      .segment = number,
                                      .block = UINT32_MAX,
                                      .lane = like.lane,
                                      .state = (uint8_t)state,
                                      .small = like.small};
    return part;
}

/* ---- where the driver puts segments ---- */

/* The first recorded place for this size that is still to be taken; NULL: none. */
static tlmi_place *recorded_place(tlm_sim *replay, uint64_t bytes)
{
    uint64_t low = 0, high = replay->place_count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (replay->places[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == replay->place_count || replay->places[low].bytes != bytes)
        return NULL;
    tlmi_place *first = &replay->places[low]; /* counts how many of its size were taken */
    uint64_t next = low + first->used;
    if (next >= replay->place_count || replay->places[next].bytes != bytes)
        return NULL;
    first->used++;
    return &replay->places[next];
}

/* An address for a segment, and the segment below it. */
static uint64_t place_for(tlm_sim *replay, uint64_t bytes, uint32_t *below)
{
    const tlmi_place *place = replay->place_count ? recorded_place(replay, bytes) : NULL;
    if (place) {
        *below = segment_below(replay, place->address);
        if (is_vacant(replay, (tlm_sim_range){place->address, bytes}, *below))
            return place->address;
    }
    uint64_t address = replay->top;
    if (replay->has_gaps) {
        /* The lowest gap above the first address of ours. */
        uint64_t lowest = FIRST_ADDRESS;
        for (uint32_t at = replay->lowest; at; at = replay->segments[at].after) {
            const tlmi_segment *segment = &replay->segments[at];
            if (segment->address >= FIRST_ADDRESS && segment->address >= lowest + bytes)
                break;
            if (segment->address + segment->bytes > lowest)
                lowest = segment->address + segment->bytes;
        }
        if (lowest < address)
            address = lowest;
    }
    if (address + bytes > replay->top)
        replay->top = address + bytes;
    *below = segment_below(replay, address);
    return address;
}

static bool driver_has(const tlm_sim *replay, uint64_t bytes)
{
    uint64_t capacity = replay->settings.capacity_bytes;
    return !capacity || (bytes <= capacity && replay->figures.reserved_bytes <= capacity - bytes);
}

/* A new segment's only part, on no shelf; 0: refused, or no memory. */
static uint32_t ask_for_segment(tlm_sim *replay, uint32_t lane, bool small, uint64_t bytes)
{
    if (!driver_has(replay, bytes))
        return 0;
    uint32_t below;
    tlm_sim_range range = {place_for(replay, bytes, &below), bytes};
    tlmi_segment like = {.lane = (uint16_t)lane, .small = small};
    uint32_t part = new_segment(replay, range, below, like, TLMI_PART_FREE);
    if (!part) {
        replay->no_memory = true;
        return 0;
    }
    note_change(replay, range, lane, true);
    count_reserved(replay, (int64_t)bytes);
    return part;
}

static void give_segment_back(tlm_sim *replay, uint32_t part)
{
    const tlmi_part gone = replay->parts[part];
    take(replay, part);
    unlink_segment(replay, gone.segment);
    forget_part(replay, part);
    note_change(replay, (tlm_sim_range){gone.address, gone.bytes}, gone.lane, false);
    count_reserved(replay, -(int64_t)gone.bytes);
}

/* ---- expandable segments ---- */

/* Maps pages from the begin of an unmapped part on, for so many bytes of it. False: refused, or no memory. */
static bool map_pages(tlm_sim *replay, uint32_t number, uint64_t bytes)
{
    tlmi_part *part = &replay->parts[number];
    uint64_t mapped = round_up(bytes, tlmi_sim_page(replay, part->small));
    if (mapped > part->bytes || !driver_has(replay, mapped))
        return false;
    if (!has_room_for_parts(replay)) {
        replay->no_memory = true;
        return false;
    }
    part = &replay->parts[number];
    take(replay, number);
    if (mapped < part->bytes)
        put(replay, split(replay, number, mapped));
    part->state = TLMI_PART_FREE;
    tlm_sim_range range = {part->address, mapped};
    uint16_t lane = part->lane;
    join_both(replay, number);
    put(replay, number);
    note_change(replay, range, lane, true);
    count_reserved(replay, (int64_t)mapped);
    return true;
}

static bool has_addresses(const tlm_sim *replay, uint32_t part, uint64_t bytes)
{
    uint64_t found = 0;
    while (found < bytes && part && replay->parts[part].state != TLMI_PART_USED) {
        found += replay->parts[part].bytes;
        part = replay->parts[part].after;
    }
    return found >= bytes;
}

/* The lowest addresses of an expandable segment where so many bytes can be had; 0: refused, or no memory. */
static uint32_t expandable_part(tlm_sim *replay, tlmi_shelf *shelf, uint32_t lane, bool small, uint64_t bytes)
{
    uint32_t at = tlmi_shelf_first_unmapped(replay->parts, shelf);
    for (; at; at = tlmi_shelf_next_unmapped(replay->parts, at)) {
        uint32_t before = replay->parts[at].before;
        uint32_t from = before && replay->parts[before].state == TLMI_PART_FREE ? before : at;
        if (has_addresses(replay, from, bytes))
            return from;
    }
    uint64_t capacity = replay->settings.capacity_bytes, page = tlmi_sim_page(replay, small);
    uint64_t room = round_up(capacity ? capacity + capacity / 8 : ROOMY, page);
    if (bytes > room)
        return 0;
    uint64_t address = FIRST_EXPANDABLE + replay->expandables++ * 2 * ROOMY;
    tlmi_segment like = {.lane = (uint16_t)lane, .small = small, .expandable = 1};
    uint32_t part =
        new_segment(replay, (tlm_sim_range){address, room}, segment_below(replay, address), like, TLMI_PART_UNMAPPED);
    if (part)
        put(replay, part);
    else
        replay->no_memory = true;
    return part;
}

/* A free part of at least so many bytes, on no shelf; 0: refused, or no memory. */
static uint32_t ask_for_pages(tlm_sim *replay, tlmi_shelf *shelf, uint32_t lane, bool small, uint64_t bytes)
{
    uint32_t part = expandable_part(replay, shelf, lane, small, bytes);
    if (!part)
        return 0;
    if (replay->parts[part].state == TLMI_PART_UNMAPPED) {
        uint64_t whole = replay->parts[part].bytes;
        if (!map_pages(replay, part, whole < bytes ? whole : bytes))
            return 0;
    }
    while (replay->parts[part].bytes < bytes) {
        uint32_t next = replay->parts[part].after;
        uint64_t missing = bytes - replay->parts[part].bytes, whole = replay->parts[next].bytes;
        if (!map_pages(replay, next, whole < missing ? whole : missing))
            return 0;
        part = next; /* it has joined the one before */
    }
    take(replay, part);
    return part;
}

/* The pages that lie in a free part as a whole go back to the driver. False: no memory. */
static bool unmap_pages(tlm_sim *replay, uint32_t number)
{
    if (!has_room_for_parts(replay))
        return false;
    tlmi_part *part = &replay->parts[number];
    uint64_t page = tlmi_sim_page(replay, part->small), base = replay->segments[part->segment].address;
    uint64_t first = base + round_up(part->address - base, page);
    uint64_t end = base + (part->address + part->bytes - base) / page * page;
    if (first >= end)
        return true;
    take(replay, number);
    uint32_t middle = number;
    if (first > part->address) {
        middle = split(replay, number, first - part->address);
        put(replay, number);
    }
    if (end < replay->parts[middle].address + replay->parts[middle].bytes)
        put(replay, split(replay, middle, end - first));
    replay->parts[middle].state = TLMI_PART_UNMAPPED;
    uint16_t lane = replay->parts[middle].lane;
    join_both(replay, middle);
    tlmi_part *left = &replay->parts[middle];
    put(replay, middle);
    note_change(replay, (tlm_sim_range){first, end - first}, lane, false);
    count_reserved(replay, -(int64_t)(end - first));
    if (!left->before && !left->after) {
        take(replay, middle);
        unlink_segment(replay, left->segment);
        forget_part(replay, middle);
    }
    return true;
}

/* ---- one free ---- */

static void end_wait(tlm_sim *replay, tlmi_part *part)
{
    if (part->left)
        replay->parts[part->left].right = part->right;
    else
        replay->waiting = part->right;
    if (part->right)
        replay->parts[part->right].left = part->left;
    part->waits = false;
}

void tlmi_sim_free(tlm_sim *replay, uint32_t number)
{
    tlmi_part *part = &replay->parts[number];
    if (tlmi_unlikely(part->waits))
        end_wait(replay, part);
    replay->parts_of[part->block] = 0;
    replay->figures.allocated_bytes -= part->bytes;
    replay->figures.requested_bytes -= part->requested;
    part->state = TLMI_PART_FREE;
    part->block = UINT32_MAX;
    part->requested = 0;
    join_both(replay, number);
    put(replay, number);
}

void tlmi_sim_wait(tlm_sim *replay, uint32_t number)
{
    tlmi_part *part = &replay->parts[number];
    if (part->waits)
        return;
    part->waits = true;
    part->left = 0;
    part->right = replay->waiting;
    if (part->right)
        replay->parts[part->right].left = number;
    replay->waiting = number;
}

/* All streams have done what they were asked: blocks that wait for them are free. */
static void wait_for_streams(tlm_sim *replay)
{
    while (replay->waiting) {
        uint32_t block = replay->parts[replay->waiting].block;
        tlmi_sim_free(replay, replay->waiting);
        replay->parts_of[block] = TLMI_BEFORE_ITS_FREE;
    }
}

/* ---- giving unused memory back ---- */

static inline bool is_whole_segment(const tlm_sim *replay, uint32_t number)
{
    const tlmi_part *part = &replay->parts[number];
    return !part->before && !part->after && !replay->segments[part->segment].expandable;
}

/* What is to be unmapped is linked by `requested`, which free parts do not need: the shelf changes meanwhile. */
static void unmap_all(tlm_sim *replay, const tlmi_shelf *shelf)
{
    uint64_t first = 0;
    uint32_t at = tlmi_shelf_fitting(replay->parts, shelf, 0);
    for (; at; at = tlmi_shelf_next(replay->parts, shelf, at)) {
        if (replay->segments[replay->parts[at].segment].expandable) {
            replay->parts[at].requested = first;
            first = at;
        }
    }
    while (first) {
        uint32_t part = (uint32_t)first;
        first = replay->parts[part].requested;
        replay->parts[part].requested = 0;
        replay->no_memory |= !unmap_pages(replay, part);
    }
}

static void empty_shelf(tlm_sim *replay, tlmi_shelf *shelf)
{
    if (!shelf)
        return;
    for (uint32_t at = tlmi_shelf_fitting(replay->parts, shelf, 0); at;) {
        uint32_t next = tlmi_shelf_next(replay->parts, shelf, at);
        if (is_whole_segment(replay, at))
            give_segment_back(replay, at);
        at = next;
    }
    unmap_all(replay, shelf);
}

void tlmi_sim_empty(tlm_sim *replay)
{
    wait_for_streams(replay);
    for (int small = 0; small < 2; small++)
        for (uint32_t lane = 0; lane < replay->lanes; lane++)
            if (!replay->lane[lane].keeps)
                empty_shelf(replay, replay->shelves[2 * lane + small]);
}

void tlmi_sim_idle(tlm_sim *replay, uint32_t lane)
{
    uint32_t pool = replay->lane[lane].pool;
    for (uint32_t each = 0; each < replay->lanes; each++)
        if (replay->lane[each].pool == pool)
            replay->lane[each].keeps = false;
}

/* Blocks that are too large to be split are given back first: one that suffices, or the largest ones until they do together. */
static bool give_large_back(tlm_sim *replay, tlmi_shelf *shelf, uint64_t bytes)
{
    uint64_t most = replay->settings.max_split_bytes, given = 0;
    if (!most)
        return false;
    uint64_t wanted = bytes < most ? most : bytes;
    uint32_t at = tlmi_shelf_fitting(replay->parts, shelf, wanted);
    while (at && !is_whole_segment(replay, at))
        at = tlmi_shelf_next(replay->parts, shelf, at);
    if (at) {
        give_segment_back(replay, at);
        return true;
    }
    at = tlmi_shelf_last(replay->parts, shelf);
    while (at && given < wanted && replay->parts[at].bytes >= most) {
        uint32_t previous = tlmi_shelf_previous(replay->parts, shelf, at);
        if (is_whole_segment(replay, at)) {
            given += replay->parts[at].bytes;
            give_segment_back(replay, at);
        }
        at = previous;
    }
    return given >= wanted;
}

typedef struct {
    uint64_t age, count;
} idle_parts;

static idle_parts idle_of(const tlm_sim *replay)
{
    idle_parts found = {0};
    for (uint32_t lane = 0; lane < replay->lanes; lane++) {
        const tlmi_shelf *shelf = replay->lane[lane].pool ? NULL : replay->shelves[2 * lane];
        uint32_t at = shelf ? tlmi_shelf_fitting(replay->parts, shelf, 0) : 0;
        for (; at; at = tlmi_shelf_next(replay->parts, shelf, at)) {
            if (is_whole_segment(replay, at)) {
                found.age += replay->searches - replay->parts[at].stamp;
                found.count++;
            }
        }
    }
    return found;
}

/* Gives back what was idle for at least so many searches, and takes it out of what is idle; returns the bytes. */
static uint64_t collect_older(tlm_sim *replay, double age, idle_parts *idle)
{
    uint64_t given = 0;
    for (uint32_t lane = 0; lane < replay->lanes; lane++) {
        const tlmi_shelf *shelf = replay->lane[lane].pool ? NULL : replay->shelves[2 * lane];
        uint32_t at = shelf ? tlmi_shelf_fitting(replay->parts, shelf, 0) : 0;
        while (at) {
            uint32_t next = tlmi_shelf_next(replay->parts, shelf, at);
            uint32_t own_age = replay->searches - replay->parts[at].stamp;
            if (is_whole_segment(replay, at) && own_age >= age) {
                given += replay->parts[at].bytes;
                idle->age -= own_age;
                idle->count--;
                give_segment_back(replay, at);
            }
            at = next;
        }
    }
    return given;
}

uint64_t tlmi_sim_collect(tlm_sim *replay, uint64_t target)
{
    idle_parts idle = idle_of(replay);
    uint64_t given = 0;
    replay->figures.collections += idle.count > 0;
    for (uint64_t now = 1; given < target && now && idle.count; given += now)
        now = collect_older(replay, (double)idle.age / (double)idle.count, &idle);
    return given;
}

/* ---- one allocation ---- */

/* How large a free part can become. */
static uint64_t reach(const tlm_sim *replay, uint32_t number)
{
    const tlmi_part *part = &replay->parts[number];
    uint32_t after = part->after;
    return part->bytes + (after && replay->parts[after].state == TLMI_PART_UNMAPPED ? replay->parts[after].bytes : 0);
}

static inline bool expands(const tlm_sim *replay, uint32_t lane)
{
    return replay->settings.expandable && !replay->lane[lane].never_expands;
}

/* A part from a shelf; 0: none that may be taken. */
static uint32_t find(tlm_sim *replay, tlmi_shelf *shelf, uint64_t bytes)
{
    const tlm_sim_settings *settings = &replay->settings;
    const tlmi_part *parts = replay->parts;
    uint32_t at = tlmi_shelf_fitting(parts, shelf, bytes);
    if (!at)
        return 0;
    if (tlmi_unlikely(replay->segments[parts[at].segment].expandable)) {
        uint32_t next = tlmi_shelf_next(parts, shelf, at);
        if (expands(replay, parts[at].lane)) {
            while (next && replay->segments[parts[at].segment].expandable && reach(replay, next) < reach(replay, at)) {
                at = next;
                next = tlmi_shelf_next(parts, shelf, at);
            }
        } else {
            while (next && replay->segments[parts[next].segment].expandable)
                next = tlmi_shelf_next(parts, shelf, next);
            if (!next)
                return 0;
            at = next;
        }
    }
    uint64_t most = settings->max_split_bytes, found = parts[at].bytes;
    if (most && (bytes < most ? found >= most : found >= bytes + settings->max_rounding_bytes))
        return 0;
    take(replay, at);
    return at;
}

static uint32_t ask_driver(tlm_sim *replay, tlmi_shelf *shelf, const tlm_sim_event *event, uint64_t bytes)
{
    bool small = bytes <= replay->settings.small_bytes;
    uint64_t segment = segment_bytes(&replay->settings, bytes), allowed = replay->settings.allowed_bytes;
    /* Pages count as the segment that they make unnecessary. */
    if (allowed && replay->figures.reserved_bytes + segment > allowed)
        return 0;
    if (expands(replay, event->lane))
        return ask_for_pages(replay, shelf, event->lane, small, bytes);
    return ask_for_segment(replay, event->lane, small, segment);
}

/* A part from the driver, which may have to get something back before; 0: refused, or no memory. */
static uint32_t obtain(tlm_sim *replay, tlmi_shelf *shelf, const tlm_sim_event *event, uint64_t bytes)
{
    if (is_collecting(replay)) {
        uint64_t threshold = (uint64_t)(replay->settings.collect_above * (double)replay->settings.allowed_bytes);
        if (replay->figures.reserved_bytes > threshold)
            tlmi_sim_collect(replay, replay->figures.reserved_bytes - threshold);
    }
    bool refused = event->flags & (TLM_SIM_REFUSED_ONCE | TLM_SIM_REFUSED_TWICE);
    uint32_t part = refused ? 0 : ask_driver(replay, shelf, event, bytes);
    if (part || replay->no_memory)
        return part;
    refused = event->flags & TLM_SIM_REFUSED_TWICE;
    if (give_large_back(replay, shelf, bytes) && !refused)
        part = ask_driver(replay, shelf, event, bytes);
    if (part || replay->no_memory)
        return part;
    /* Nothing is released during the capture of a graph. A recorded release shows that the pool had another use. */
    if (replay->lane[event->lane].pool && !event->flags)
        return 0;
    tlmi_sim_empty(replay);
    replay->figures.retries++;
    return replay->no_memory ? 0 : ask_driver(replay, shelf, event, bytes);
}

static bool is_to_be_split(const tlm_sim *replay, uint32_t part, uint64_t bytes, bool small)
{
    const tlm_sim_settings *settings = &replay->settings;
    uint64_t rest = replay->parts[part].bytes - bytes;
    if (small || expands(replay, replay->parts[part].lane))
        return rest >= settings->grain_bytes;
    return rest > settings->small_bytes && (!settings->max_split_bytes || bytes < settings->max_split_bytes);
}

static void use(tlm_sim *replay, uint32_t number, uint32_t block, uint64_t requested)
{
    tlmi_part *part = &replay->parts[number];
    tlm_sim_figures *figures = &replay->figures;
    part->state = TLMI_PART_USED;
    part->block = block;
    part->requested = requested;
    replay->parts_of[block] = number;
    figures->allocated_bytes += part->bytes;
    figures->requested_bytes += requested;
    if (figures->allocated_bytes > figures->peak_allocated_bytes)
        figures->peak_allocated_bytes = figures->allocated_bytes;
    if (figures->requested_bytes > figures->peak_requested_bytes)
        figures->peak_requested_bytes = figures->requested_bytes;
}

tlmi_alloc_end tlmi_sim_alloc(tlm_sim *replay, const tlm_sim_event *event, uint32_t *out)
{
    uint64_t bytes = rounded(&replay->settings, event->bytes);
    bool small = bytes <= replay->settings.small_bytes;
    tlmi_shelf *shelf = shelf_of(replay, event->lane, small);
    if (tlmi_unlikely(!shelf || !has_room_for_parts(replay)))
        return TLMI_ALLOC_NO_MEMORY;
    if (tlmi_unlikely(replay->settings.collect_above > 0) && !small && !replay->lane[event->lane].pool)
        replay->searches++;
    uint32_t part = event->flags ? 0 : find(replay, shelf, bytes);
    if (!part) {
        part = obtain(replay, shelf, event, bytes);
        if (replay->no_memory || !has_room_for_parts(replay))
            return TLMI_ALLOC_NO_MEMORY;
        if (!part) {
            replay->figures.failed_bytes = bytes;
            return TLMI_ALLOC_REFUSED;
        }
    }
    if (is_to_be_split(replay, part, bytes, small))
        put(replay, split(replay, part, bytes));
    use(replay, part, event->block, event->bytes);
    *out = part;
    return TLMI_ALLOC_DONE;
}

/* ---- what was there before ---- */

static bool add_run(tlm_sim *replay, uint32_t number, tlm_sim_range range)
{
    const tlmi_segment *segment = &replay->segments[number];
    uint64_t page = tlmi_sim_page(replay, segment->small);
    uint32_t at = segment->first;
    while (at && replay->parts[at].address + replay->parts[at].bytes <= range.address)
        at = replay->parts[at].after;
    if (!at || replay->parts[at].state != TLMI_PART_UNMAPPED || (range.address - segment->address) % page ||
        range.bytes % page || replay->parts[at].address + replay->parts[at].bytes < range.address + range.bytes)
        return false;
    if (!has_room_for_parts(replay)) {
        replay->no_memory = true;
        return false;
    }
    if (range.address > replay->parts[at].address) {
        take(replay, at);
        uint32_t rest = split(replay, at, range.address - replay->parts[at].address);
        put(replay, at);
        put(replay, rest);
        at = rest;
    }
    return map_pages(replay, at, range.bytes);
}

/* The expandable segment of a lane that has room for a run; 0: none. */
static uint32_t expandable_around(const tlm_sim *replay, tlm_sim_range range, uint32_t lane, bool small)
{
    uint32_t at = segment_below(replay, range.address);
    const tlmi_segment *segment = &replay->segments[at];
    bool fits = at && segment->expandable && segment->lane == lane && segment->small == small &&
                range.address + range.bytes <= segment->address + segment->bytes;
    return fits ? at : 0;
}

/* An expandable segment gives up addresses that it has not mapped, so that another one can begin there. */
static void make_way(tlm_sim *replay, uint32_t number, uint64_t address)
{
    tlmi_segment *segment = &replay->segments[number];
    if (!number || !segment->expandable || segment->address + segment->bytes <= address)
        return;
    uint32_t last = segment->first;
    while (replay->parts[last].after)
        last = replay->parts[last].after;
    tlmi_part *part = &replay->parts[last];
    if (part->state != TLMI_PART_UNMAPPED || part->address > address)
        return;
    uint64_t page = tlmi_sim_page(replay, segment->small), kept = (address - part->address) / page * page;
    segment->bytes -= part->bytes - kept;
    if (kept) {
        part->bytes = kept; /* its place on the shelf is by address alone */
        return;
    }
    take(replay, last);
    replay->parts[part->before].after = 0;
    forget_part(replay, last);
}

bool tlmi_sim_add_segment(tlm_sim *replay, tlm_sim_range range, uint32_t lane, bool small, bool expandable)
{
    if (!shelf_of(replay, lane, small)) {
        replay->no_memory = true;
        return false;
    }
    if (expandable) {
        uint32_t around = expandable_around(replay, range, lane, small);
        if (around)
            return add_run(replay, around, range);
    }
    uint32_t below = segment_below(replay, range.address);
    make_way(replay, below, range.address);
    tlm_sim_range whole = range;
    if (expandable) {
        /* How far it may grow is not recorded: as far as nothing else is there. */
        uint32_t above = below ? replay->segments[below].after : replay->lowest;
        uint64_t page = tlmi_sim_page(replay, small);
        uint64_t room = above ? replay->segments[above].address - range.address : ROOMY;
        whole.bytes = (room < ROOMY ? room : ROOMY) / page * page;
        if (whole.bytes < range.bytes)
            return false;
    }
    if (!is_vacant(replay, whole, below))
        return false;
    tlmi_segment like = {.lane = (uint16_t)lane, .small = small, .expandable = expandable};
    uint32_t part = new_segment(replay, whole, below, like, expandable ? TLMI_PART_UNMAPPED : TLMI_PART_FREE);
    if (!part) {
        replay->no_memory = true;
        return false;
    }
    put(replay, part);
    if (expandable)
        return add_run(replay, replay->parts[part].segment, range);
    note_change(replay, range, lane, true);
    count_reserved(replay, (int64_t)range.bytes);
    return true;
}

bool tlmi_sim_add_block(tlm_sim *replay, uint32_t block, tlm_sim_range range, uint64_t requested)
{
    uint32_t segment = segment_below(replay, range.address);
    uint32_t at = segment ? replay->segments[segment].first : 0;
    while (at && replay->parts[at].address + replay->parts[at].bytes <= range.address)
        at = replay->parts[at].after;
    if (!at || replay->parts[at].state != TLMI_PART_FREE || replay->parts[at].address > range.address ||
        replay->parts[at].address + replay->parts[at].bytes < range.address + range.bytes)
        return false;
    if (!has_room_for_parts(replay)) {
        replay->no_memory = true;
        return false;
    }
    take(replay, at);
    if (range.address > replay->parts[at].address) {
        uint32_t rest = split(replay, at, range.address - replay->parts[at].address);
        put(replay, at);
        at = rest;
    }
    if (replay->parts[at].bytes > range.bytes)
        put(replay, split(replay, at, range.bytes));
    use(replay, at, block, requested);
    return true;
}
