/* SPDX-License-Identifier: MIT
 * search.c: exact search for a plan below a height: depth first, the tightest place first, with restarts that learn.
 *
 * Any plan can be pushed down until each buffer rests on the bottom or on another one, so only such plans are looked for. They
 * are built from below: in each section stands a stack of what was placed, its top is the section's *floor*. A *valley* is a run
 * of sections with the same floor between higher ones. In one section of a valley the search decides what comes next: one of
 * the buffers that fit into the valley, right on its floor, or none of them, and then the floor rises there to the next height
 * at which something could rest. These choices exclude each other, so no plan is met twice.
 *
 * What a choice implies (search_bounds.c): no buffer lies below the highest floor of its sections, so a section's next one lies
 * no lower than the lowest of those that remain for it; floors rise by that until nothing changes, and where floor and remaining
 * sizes exceed the height, the choice was wrong. Sections where that happens weigh more in the next attempts. Parts of
 * time that no remaining buffer connects are solved one by one.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/search.h"

enum { CLOCK_EVERY = 1024 };

/* ---- memory of the levels: a stack; what does not fit ends the attempt ---- */

static void *take(tlmi_search *search, size_t bytes)
{
    size_t whole = (bytes + 15) & ~(size_t)15;
    if (search->stack_used + whole > search->stack_bytes) {
        search->gave_up = true;
        return NULL;
    }
    void *start = search->stack + search->stack_used;
    search->stack_used += whole;
    return start;
}

/* ---- levels: what a recursion would keep on the thread's stack, which may be small ---- */

typedef struct {
    const uint32_t *ids; /* remaining items, the preferred ones first */
    uint32_t count;
    uint32_t first, last; /* sections that they live in */
} part;

typedef enum { PLACING, RAISED, PARTS } phase;
typedef enum { DEEPER, SOLVED, FAILED } outcome;

typedef struct level {
    struct level *above;
    size_t mark; /* of the memory before this level */
    part remaining;
    phase phase;
    uint32_t next; /* candidate or part that is tried next */
    /* of a choice */
    tlmi_valley valley;
    uint32_t *candidates, *rest;
    int32_t floor;
    /* of parts */
    part *parts;
    uint32_t made;
    int32_t *floors; /* as they were: of the sections of a candidate, or floors and remaining sizes of all parts */
} level;

static level *push(tlmi_search *search, level *above, part remaining)
{
    size_t mark = search->stack_used;
    level *here = take(search, sizeof *here);
    if (here)
        *here = (level){.above = above, .mark = mark, .remaining = remaining};
    return here;
}

/* The sections after which nothing that remains goes on; the last section of `remaining` is always one. */
static uint32_t find_cuts(tlmi_search *search, part *remaining)
{
    int32_t *cover = search->low_of; /* not in use before the bounds are made */
    uint32_t first = UINT32_MAX, last = 0, cuts = 0;
    memset(cover + remaining->first, 0, (remaining->last - remaining->first + 1) * sizeof *cover);
    for (uint32_t i = 0; i < remaining->count; i++) {
        const tlmi_span *span = &search->spans[remaining->ids[i]];
        cover[span->first]++;
        cover[span->last]--;
        first = span->first < first ? span->first : first;
        last = span->last > last ? span->last : last;
    }
    int32_t open = 0;
    for (uint32_t section = first; section <= last; section++) {
        open += cover[section];
        if (open == 0)
            search->cuts[cuts++] = section;
    }
    remaining->first = first;
    remaining->last = last;
    return cuts;
}

static int by_count(const void *one, const void *other)
{
    uint32_t a = ((const part *)one)->count, b = ((const part *)other)->count;
    return a < b ? -1 : a > b;
}

/* Parts of time that nothing connects are solved one by one, the smallest first. */
static outcome divide(tlmi_search *search, level *here, uint32_t cuts, part *below)
{
    const part *remaining = &here->remaining;
    size_t range = remaining->last - remaining->first + 1;
    uint32_t *ids = take(search, remaining->count * sizeof *ids);
    here->parts = take(search, cuts * sizeof *here->parts);
    here->floors = take(search, 2 * range * sizeof *here->floors);
    if (search->gave_up)
        return FAILED;
    uint32_t used = 0, first = remaining->first;
    for (uint32_t cut = 0; cut < cuts; cut++) {
        uint32_t end = search->cuts[cut], begin = used;
        for (uint32_t i = 0; i < remaining->count; i++) {
            const tlmi_span *span = &search->spans[remaining->ids[i]];
            if (span->first >= first && span->last <= end)
                ids[used++] = remaining->ids[i];
        }
        if (used > begin)
            here->parts[here->made++] = (part){ids + begin, used - begin, first, end};
        first = end + 1;
    }
    qsort(here->parts, here->made, sizeof *here->parts, by_count);
    memcpy(here->floors, search->floor + remaining->first, range * sizeof *here->floors);
    memcpy(here->floors + range, search->rest + remaining->first, range * sizeof *here->floors);
    here->phase = PARTS;
    *below = here->parts[here->next++];
    return DEEPER;
}

static outcome after_part(tlmi_search *search, level *here, bool solved, part *below)
{
    if (solved && here->next == here->made)
        return SOLVED;
    if (solved) {
        *below = here->parts[here->next++];
        return DEEPER;
    }
    uint32_t first = here->remaining.first;
    size_t range = here->remaining.last - first + 1;
    memcpy(search->floor + first, here->floors, range * sizeof *here->floors);
    memcpy(search->rest + first, here->floors + range, range * sizeof *here->floors);
    return FAILED;
}

static void put(tlmi_search *search, const tlmi_span *span, int32_t height)
{
    for (uint32_t s = span->first; s <= span->last; s++) {
        search->floor[s] = height + span->size;
        search->rest[s] -= span->size;
    }
}

static void take_back(tlmi_search *search, const tlmi_span *span, const int32_t *floors)
{
    memcpy(search->floor + span->first, floors, (span->last - span->first + 1) * sizeof *floors);
    for (uint32_t s = span->first; s <= span->last; s++)
        search->rest[s] += span->size;
}

/* Nothing more is put on the valley's floor: it rises. */
static outcome raise(tlmi_search *search, level *here, part *below)
{
    uint32_t section = here->valley.section;
    if (here->valley.next == INT32_MAX || here->valley.next + search->rest[section] > search->height) {
        search->weight[section] += 0.5;
        return FAILED;
    }
    here->phase = RAISED;
    here->floor = search->floor[section];
    search->floor[section] = here->valley.next;
    *below = here->remaining;
    return DEEPER;
}

/* Puts the next candidate on the valley's floor. */
static outcome choose(tlmi_search *search, level *here, part *below)
{
    const part *remaining = &here->remaining;
    if (here->next == here->valley.candidates)
        return raise(search, here, below);
    uint32_t at = here->candidates[here->next++], id = remaining->ids[at];
    const tlmi_span *span = &search->spans[id];
    memcpy(here->floors, search->floor + span->first, (span->last - span->first + 1) * sizeof *here->floors);
    put(search, span, here->valley.height);
    search->place[id] = here->valley.height;
    memcpy(here->rest, remaining->ids, at * sizeof *here->rest);
    memcpy(here->rest + at, remaining->ids + at + 1, (remaining->count - at - 1) * sizeof *here->rest);
    *below = (part){here->rest, remaining->count - 1, remaining->first, remaining->last};
    return DEEPER;
}

static outcome enter(tlmi_search *search, level *here, part *below)
{
    part *remaining = &here->remaining;
    if (remaining->count == 0)
        return SOLVED;
    if (++search->nodes > search->most_nodes ||
        (search->nodes % CLOCK_EVERY == 0 && tlmi_plan_cpu_ns() > search->deadline_ns)) {
        search->gave_up = true;
        return FAILED;
    }
    uint32_t cuts = find_cuts(search, remaining);
    if (cuts > 1)
        return divide(search, here, cuts, below);
    if (!tlmi_search_bound(search, remaining->ids, remaining->count, remaining->first, remaining->last))
        return FAILED;
    here->candidates = take(search, remaining->count * sizeof *here->candidates);
    here->rest = take(search, remaining->count * sizeof *here->rest);
    here->floors = take(search, (remaining->last - remaining->first + 1) * sizeof *here->floors);
    if (search->gave_up)
        return FAILED;
    here->valley = tlmi_search_choose(search, remaining->ids, remaining->count, remaining->first, remaining->last,
                                      here->candidates);
    return choose(search, here, below);
}

/* A level goes on after the one below it has ended. */
static outcome go_on(tlmi_search *search, level *here, bool solved, part *below)
{
    if (here->phase == PARTS)
        return after_part(search, here, solved, below);
    if (solved)
        return SOLVED;
    if (here->phase == RAISED) {
        search->floor[here->valley.section] = here->floor;
        return FAILED;
    }
    take_back(search, &search->spans[here->remaining.ids[here->candidates[here->next - 1]]], here->floors);
    return choose(search, here, below);
}

static bool solve(tlmi_search *search, part all)
{
    part below = all;
    level *here = push(search, NULL, all);
    outcome end = DEEPER;
    while (here && !search->gave_up) {
        end = end == DEEPER ? enter(search, here, &below) : go_on(search, here, end == SOLVED, &below);
        if (end == DEEPER) {
            here = push(search, here, below);
        } else {
            search->stack_used = here->mark;
            here = here->above;
        }
    }
    return end == SOLVED && !search->gave_up;
}

/* ---- attempts ---- */

static double next_random(tlmi_search *search)
{
    search->random ^= search->random << 13;
    search->random ^= search->random >> 7;
    search->random ^= search->random << 17;
    return (double)(search->random >> 11) * 0x1p-53;
}

typedef struct {
    double key;
    uint32_t id;
} ranked;

static int by_key(const void *one, const void *other)
{
    const ranked *a = one, *b = other;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

enum { REPEATS = 4, STRAIGHT = 2 };
static const double CHANCE = 0.3;

/* What is tried first: what lives in the fullest section, or what lives longest; and whether the lowest valley is. Each way is
 * repeated some times, as what failed once is met first then; except for the very first times with some chance. */
static void rank(tlmi_search *search, uint64_t variant, uint32_t *ids, ranked *keys)
{
    uint64_t way = variant / REPEATS;
    bool by_fullness = way % 2 == 0;
    double chance = way < 4 && variant % REPEATS < STRAIGHT ? 0 : CHANCE;
    for (uint32_t i = 0; i < search->count; i++) {
        const tlmi_span *span = &search->spans[i];
        double noise = 1 + chance * (next_random(search) - 0.5), width = span->last - span->first + 1;
        int32_t fullest = 0;
        for (uint32_t s = span->first; s <= span->last; s++)
            fullest = search->rest[s] > fullest ? search->rest[s] : fullest;
        keys[i].id = i;
        keys[i].key = by_fullness ? fullest * 1e3 + width / search->sections * 1e2 * noise
                                  : width * noise + (double)span->size / (search->height + 1.0) * 1e-3;
    }
    qsort(keys, search->count, sizeof *keys, by_key);
    for (uint32_t i = 0; i < search->count; i++)
        ids[i] = keys[i].id;
    search->lowest_first = way / 2 % 2;
}

static void begin(tlmi_search *search, uint64_t unit)
{
    memset(search->floor, 0, search->sections * sizeof *search->floor);
    memset(search->rest, 0, search->sections * sizeof *search->rest);
    tlmi_search_scale(search, unit);
    for (uint32_t i = 0; i < search->count; i++) {
        const tlmi_span *span = &search->spans[i];
        for (uint32_t s = span->first; s <= span->last; s++)
            search->rest[s] += span->size;
    }
    for (uint32_t s = 0; s < search->sections; s++)
        search->weight[s] *= 0.9;
    search->stack_used = 0;
    search->nodes = 0;
    search->gave_up = false;
}

/* Writes the offsets; the end of the highest item. */
static uint64_t tell(const tlmi_search *search, uint64_t unit, uint64_t *offsets)
{
    uint64_t peak = 0;
    for (uint32_t i = 0; i < search->count; i++) {
        offsets[i] = (uint64_t)search->place[i] * unit;
        uint64_t top = offsets[i] + search->problem->items[i].size;
        peak = top > peak ? top : peak;
    }
    return peak;
}

tlmi_search_end tlmi_search_try(tlmi_search *search, uint64_t height, uint64_t variant, uint64_t nodes,
                                uint64_t deadline_ns, uint64_t *offsets)
{
    uint64_t unit = tlmi_search_unit(search, height, variant);
    search->height = tlmi_search_height(search, unit, height);
    search->most_nodes = nodes;
    search->deadline_ns = deadline_ns;
    begin(search, unit);
    uint32_t *ids = take(search, search->count * sizeof *ids);
    ranked *keys = take(search, search->count * sizeof *keys);
    rank(search, variant, ids, keys);
    if (solve(search, (part){ids, search->count, 0, search->sections - 1})) {
        if (tell(search, unit, offsets) > height)
            tlmi_search_rule_out(search, unit, height); /* it did: a finer unit next time */
        return TLMI_SEARCH_FOUND;
    }
    if (search->gave_up)
        return TLMI_SEARCH_GAVE_UP;
    tlmi_search_rule_out(search, unit, height);
    bool certain =
        search->exact && unit == search->unit && (!search->padded || (uint64_t)search->height * unit >= height);
    return certain ? TLMI_SEARCH_NONE : TLMI_SEARCH_GAVE_UP;
}
