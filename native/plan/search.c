/* SPDX-License-Identifier: MIT
 * search.c: exact search for a plan below a height: depth first, the tightest place first, with restarts that learn.
 *
 * Any plan can be pushed down until each buffer rests on the bottom or on another one, so only such plans are looked for. They
 * are built from below: in each section stands a stack of what was placed, its top is the section's *floor*. A *valley* is a run
 * of sections with the same floor between higher ones. In one section of a valley the search decides what comes next: one of
 * the buffers that fit into the valley, right on its floor, or none of them, and then the floor rises there to the next height
 * at which something could rest. These choices exclude each other, so no plan is met twice.
 *
 * What a choice implies: no buffer lies below the highest floor of its sections, so a section's next one lies
 * no lower than the lowest of those that remain for it; floors rise by that until nothing changes, and where floor and remaining
 * sizes exceed the height, the choice was wrong. Sections where that happens weigh more in the next attempts. Parts of
 * time that no remaining buffer connects are solved one by one.
 *
 * Sizes that were trimmed by some bytes make a search hard that round ones make easy: the gaps that remain fit nothing. So sizes
 * are rounded up to the coarsest unit in which what lives at once still fits.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/plan.h"
#include "platform/simd.h"

typedef struct {
    uint32_t first, last; /* sections */
    int32_t size;         /* units of the attempt */
    uint32_t twins;       /* items that live in the same sections and have the same size share a number */
    uint32_t before;      /* the nearest item before it in the same sections; UINT32_MAX: none */
} tlmi_span;

struct tlmi_search {
    const tlmi_problem *problem;
    size_t bytes;
    uint32_t count, sections;
    uint64_t unit;       /* divides all sizes, rounded up to the alignment */
    uint64_t grain;      /* divides all of them, rounded up a little more; the unit, if that makes nothing regular */
    uint64_t grain_load; /* the most that lives at once with sizes rounded up to the grain */
    bool exact;          /* one alignment for all: rounding sizes up to it loses nothing */
    bool padded;         /* some sizes were rounded up to the alignment */
    uint64_t none[64];   /* [unit, by its highest bit]: the greatest height below which there is no plan in that unit */
    uint64_t *sizes;     /* rounded up to the alignment */
    tlmi_span *spans;
    int32_t *place;        /* [count]: the height of what was placed */
    int32_t *lowest;       /* [count]: bounds of what was not */
    int32_t *floor, *rest; /* [sections]: top of the stack; sizes still to come */
    int32_t *bound;        /* [sections]: the floor, raised by what follows from it */
    int32_t *low_of;       /* [sections]: the lowest of the items that remain */
    int32_t *fitting;      /* [sections]: how many of them can lie right on the bound */
    double *weight;        /* [sections]: failures, fading */
    uint32_t *cuts;        /* [sections] */
    uint64_t *seen;        /* [count]: by twins, the node that looked at one of them last */
    uint64_t nodes, most_nodes, deadline_ns, random, looks;
    int32_t height;
    bool gave_up, lowest_first;
    char *stack;
    size_t stack_bytes, stack_used;
};

/* Where the search decides next. */
typedef struct {
    uint32_t section, candidates;
    int32_t height,
        next; /* the valley's floor; the lowest height above it at which something could rest (INT32_MAX: none) */
} tlmi_valley;

/* ---- how a search is made, and in which unit it works ---- */

enum { MOST_ITEMS = 4096, LEVELS_BYTES = 256 << 20, COARSEST = 1 << 24, LITTLE = 200, HIGHEST = 1 << 30 };
enum { MOST_ROUNDING = 1 << 16, REGULAR = 2, EXACTLY = 16 };
static const uint64_t MOST_LOAD = 4u << 20; /* more item-sections than that take too long for each choice */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int by_span(const void *one, const void *other)
{
    const tlmi_span *a = one, *b = other;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    if (a->last != b->last)
        return a->last < b->last ? -1 : 1;
    return 0;
}

/* Chains the items of the same sections: pairs are compared, once. */
static void find_same_sections(tlmi_search *search)
{
    for (uint32_t i = 0; i < search->count; i++) {
        search->spans[i].before = UINT32_MAX;
        for (uint32_t j = i; j > 0; j--) {
            if (by_span(&search->spans[i], &search->spans[j - 1]) == 0) {
                search->spans[i].before = j - 1;
                break;
            }
        }
    }
}

/* Divides the sizes by a unit, rounding up, and numbers twins. */
static void scale_sizes(tlmi_search *search, uint64_t unit)
{
    tlmi_span *spans = search->spans;
    for (uint32_t i = 0; i < search->count; i++) {
        spans[i].size = (int32_t)((search->sizes[i] + unit - 1) / unit);
        uint32_t other = spans[i].before;
        while (other != UINT32_MAX && spans[other].size != spans[i].size)
            other = spans[other].before;
        spans[i].twins = other == UINT32_MAX ? i : spans[other].twins;
    }
}

static void *cut(char **at, size_t bytes)
{
    void *start = *at;
    *at += (bytes + 63) & ~(size_t)63;
    return start;
}

static void lay_out(tlmi_search *search, char *at)
{
    size_t count = search->count, sections = search->sections + 1;
    search->sizes = cut(&at, count * sizeof *search->sizes);
    search->seen = cut(&at, count * sizeof *search->seen);
    search->weight = cut(&at, sections * sizeof *search->weight);
    search->spans = cut(&at, count * sizeof *search->spans);
    search->place = cut(&at, count * sizeof *search->place);
    search->lowest = cut(&at, count * sizeof *search->lowest);
    search->floor = cut(&at, sections * sizeof(int32_t));
    search->rest = cut(&at, sections * sizeof(int32_t));
    search->bound = cut(&at, sections * sizeof(int32_t));
    search->low_of = cut(&at, sections * sizeof(int32_t));
    search->fitting = cut(&at, sections * sizeof(int32_t));
    search->cuts = cut(&at, sections * sizeof(uint32_t));
    search->stack = at;
    search->stack_bytes = LEVELS_BYTES;
}

/* The most that lives at once when sizes are multiples of a unit. The levels' memory is free between attempts. */
static uint64_t load_in(const tlmi_search *search, uint64_t unit)
{
    int64_t *steps = (int64_t *)search->stack;
    memset(steps, 0, ((size_t)search->sections + 1) * sizeof *steps);
    for (uint32_t i = 0; i < search->count; i++) {
        int64_t size = (int64_t)((search->sizes[i] + unit - 1) / unit);
        steps[search->spans[i].first] += size;
        steps[search->spans[i].last + 1] -= size;
    }
    int64_t live = 0, most = 0;
    for (uint32_t s = 0; s < search->sections; s++) {
        live += steps[s];
        most = live > most ? live : most;
    }
    return (uint64_t)most * unit;
}

/* The greatest number that divides all sizes when they are rounded up to a multiple of `least`. */
static uint64_t divisor(const tlmi_search *search, uint64_t least)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < search->count && all != least; i++)
        all = gcd((search->sizes[i] + least - 1) / least * least, all);
    return all;
}

/* Sizes that are a little below multiples of a common number, for a reason that the search need not know, are rounded up to them. That
 * they all reach one is no accident: each second rounded size would be an odd multiple. */
static void find_grain(tlmi_search *search)
{
    search->grain = search->unit;
    for (uint64_t least = 2; least <= MOST_ROUNDING && search->grain == search->unit; least *= 2) {
        uint64_t all = divisor(search, least);
        if (all >= REGULAR * least && all > search->unit)
            search->grain = all;
    }
    search->grain_load = load_in(search, search->grain);
}

static void fill(tlmi_search *search)
{
    const tlmi_problem *problem = search->problem;
    search->exact = true;
    for (uint32_t i = 0; i < search->count; i++) {
        const tlmi_item *item = &problem->items[i];
        search->sizes[i] = (item->size + problem->alignment - 1) & ~(problem->alignment - 1);
        search->padded = search->padded || search->sizes[i] != item->size;
        search->exact = search->exact && item->alignment == problem->alignment;
        search->spans[i] = (tlmi_span){.first = item->first, .last = item->last};
    }
    search->unit = divisor(search, 1);
    find_grain(search);
    find_same_sections(search);
    search->random = 88172645463325252u;
}

tlmi_search *tlmi_search_create(const tlmi_problem *problem)
{
    if (problem->count > MOST_ITEMS || problem->load > MOST_LOAD)
        return NULL;
    size_t count = problem->count, sections = problem->sections + 1;
    size_t arrays = count * (2 * sizeof(uint64_t) + sizeof(tlmi_span) + 2 * sizeof(int32_t));
    arrays += sections * (sizeof(double) + 6 * sizeof(int32_t)) + 16 * 64;
    size_t bytes = sizeof(tlmi_search) + arrays + LEVELS_BYTES;
    tlmi_search *search = tlmi_own_alloc(bytes); /* pages that are never touched take no memory */
    if (!search)
        return NULL;
    *search = (tlmi_search){.problem = problem, .bytes = bytes, .count = problem->count, .sections = problem->sections};
    lay_out(search, (char *)(search + 1));
    fill(search);
    return search;
}

void tlmi_search_destroy(tlmi_search *search)
{
    if (search)
        tlmi_own_free(search, search->bytes);
}

static unsigned rank_of(uint64_t unit)
{
    return 63 - (unsigned)__builtin_clzll(unit);
}

/* In this unit there is no plan below a height. */
static void rule_out(tlmi_search *search, uint64_t unit, uint64_t height)
{
    uint64_t *known = &search->none[rank_of(unit)];
    *known = height > *known ? height : *known;
}

/* The grain, or the exact unit where the grain cannot do, and now and then in any case. */
static uint64_t finest_unit(const tlmi_search *search, uint64_t height, uint64_t turn)
{
    uint64_t room = (height + search->grain - 1) / search->grain * search->grain;
    bool rough = search->grain_load > room || search->none[rank_of(search->grain)] >= height;
    uint64_t finest = rough || turn % EXACTLY == EXACTLY - 1 ? search->unit : search->grain;
    while (height / finest >= HIGHEST)
        finest *= 2;
    return finest;
}

/* The unit of an attempt, by turns: one that adds next to nothing to what lives at once, the finest one, which is nearly always the
 * grain, and the coarsest one in which that still fits below the height, of those that are not known to fail. */
static uint64_t unit_of_attempt(const tlmi_search *search, uint64_t height, uint64_t turn)
{
    uint64_t finest = finest_unit(search, height, turn), load = load_in(search, finest);
    uint64_t coarsest = finest, nearly = finest;
    for (uint64_t unit = finest * 2; unit <= finest * COARSEST && unit < height; unit *= 2) {
        uint64_t rounded = load_in(search, unit);
        if (rounded > height || search->none[rank_of(unit)] >= height)
            break;
        coarsest = unit;
        if (rounded - load <= load / LITTLE)
            nearly = unit;
    }
    if (turn % 3 == 2)
        return coarsest;
    return turn % 3 == 0 ? nearly : finest;
}

/* A height in units, rounded down; if not even what lives at once fits there, up, as the topmost item may reach above with the pad that
 * made it a multiple. */
static int32_t height_in_units(const tlmi_search *search, uint64_t unit, uint64_t height)
{
    bool up = load_in(search, unit) > height / unit * unit;
    return (int32_t)((up ? height + unit - 1 : height) / unit);
}

uint64_t tlmi_search_lowest(const tlmi_search *search, uint64_t low, uint64_t high)
{
    uint64_t none = search->none[rank_of(search->grain)] + 1;
    uint64_t lowest = search->grain_load > none ? search->grain_load : none;
    return lowest > low && lowest <= high ? lowest : low;
}

/* ---- bounds, and where the search decides next. Here it spends its time: loops over the sections of each remaining item, on
 * arrays of 32-bit numbers ---- */

uint64_t tlmi_plan_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The bound of each item from those of its sections, and the lowest item of each section. */
static TLMI_SIMD_CLONES void spread(const tlmi_span *spans, const uint32_t *ids, uint32_t count,
                                    const int32_t *restrict bound, int32_t *restrict low_of, int32_t *restrict lowest)
{
    for (uint32_t i = 0; i < count; i++) {
        const tlmi_span *span = &spans[ids[i]];
        uint32_t first = span->first, last = span->last;
        int32_t top = 0;
        for (uint32_t s = first; s <= last; s++)
            top = bound[s] > top ? bound[s] : top;
        lowest[ids[i]] = top;
        for (uint32_t s = first; s <= last; s++)
            low_of[s] = low_of[s] > top ? top : low_of[s];
    }
}

static TLMI_SIMD_CLONES void count_fitting(const tlmi_span *spans, const uint32_t *ids, uint32_t count,
                                           const int32_t *restrict bound, const int32_t *restrict lowest,
                                           int32_t *restrict fitting)
{
    for (uint32_t i = 0; i < count; i++) {
        const tlmi_span *span = &spans[ids[i]];
        int32_t top = lowest[ids[i]];
        for (uint32_t s = span->first; s <= span->last; s++)
            fitting[s] += bound[s] == top;
    }
}

enum { MOST_ROUNDS = 10 };

/* Raises floors by what remains. False: some section is too full; it weighs more from now on. */
static bool raise_bounds(tlmi_search *search, const uint32_t *ids, uint32_t count, uint32_t first, uint32_t last)
{
    int32_t *bound = search->bound, *low_of = search->low_of;
    memcpy(bound + first, search->floor + first, (last - first + 1) * sizeof *bound);
    for (int round = 0; round < MOST_ROUNDS; round++) {
        for (uint32_t s = first; s <= last; s++)
            low_of[s] = INT32_MAX;
        spread(search->spans, ids, count, bound, low_of, search->lowest);
        bool raised = false;
        for (uint32_t s = first; s <= last; s++) {
            if (search->rest[s] == 0)
                continue;
            if (low_of[s] > bound[s]) {
                bound[s] = low_of[s];
                raised = true;
            }
            if (bound[s] + search->rest[s] > search->height) {
                search->weight[s] += 1;
                return false;
            }
        }
        if (!raised)
            break;
    }
    memset(search->fitting + first, 0, (last - first + 1) * sizeof *search->fitting);
    count_fitting(search->spans, ids, count, bound, search->lowest, search->fitting);
    return true;
}

/* How bad it is to decide in a section now: many choices, few failures; one of them is to waste some height, if it can be. */
static double badness(const tlmi_search *search, uint32_t section)
{
    int32_t spare = search->height - search->bound[section] - search->rest[section];
    double choices = (search->fitting[section] + (spare > 0)) / (1 + search->weight[section]);
    return search->lowest_first ? search->bound[section] * 1e3 + choices : choices;
}

typedef struct {
    uint32_t first, last;
    int32_t wall; /* the lower one of its two */
} run;

static run best_valley(const tlmi_search *search, uint32_t first, uint32_t last, uint32_t *section)
{
    const int32_t *bound = search->bound, *rest = search->rest;
    double least = 0;
    run best = {UINT32_MAX, 0, INT32_MAX};
    for (uint32_t s = first; s <= last; s++) {
        if (rest[s] == 0)
            continue;
        uint32_t end = s;
        while (end < last && rest[end + 1] > 0 && bound[end + 1] == bound[s])
            end++;
        int32_t left = s > first && rest[s - 1] > 0 ? bound[s - 1] : INT32_MAX;
        int32_t right = end < last && rest[end + 1] > 0 ? bound[end + 1] : INT32_MAX;
        if (left > bound[s] && right > bound[s]) {
            for (uint32_t t = s; t <= end; t++) {
                double bad = badness(search, t);
                if (best.first == UINT32_MAX || bad < least) {
                    least = bad;
                    *section = t;
                    best = (run){s, end, left < right ? left : right};
                }
            }
        }
        s = end;
    }
    return best;
}

/* The section with the fewest choices, seldom failed ones last; positions in `ids` of what can lie there. After a bound. */
static tlmi_valley choose_valley(tlmi_search *search, const uint32_t *ids, uint32_t count, uint32_t first,
                                 uint32_t last, uint32_t *candidates)
{
    tlmi_valley valley = {0};
    run sections = best_valley(search, first, last, &valley.section);
    uint32_t here = valley.section;
    valley.height = search->bound[here];
    valley.next = sections.wall;
    search->looks++;
    for (uint32_t i = 0; i < count; i++) {
        const tlmi_span *span = &search->spans[ids[i]];
        if (search->lowest[ids[i]] != valley.height || span->first > sections.last || span->last < sections.first)
            continue;
        if (span->first <= here && here <= span->last) {
            if (search->seen[span->twins] != search->looks)
                candidates[valley.candidates++] = i;
            search->seen[span->twins] = search->looks;
        } else if (valley.height + span->size < valley.next) {
            valley.next = valley.height + span->size;
        }
    }
    return valley;
}

/* ---- the search ---- */

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
    if (!raise_bounds(search, remaining->ids, remaining->count, remaining->first, remaining->last))
        return FAILED;
    here->candidates = take(search, remaining->count * sizeof *here->candidates);
    here->rest = take(search, remaining->count * sizeof *here->rest);
    here->floors = take(search, (remaining->last - remaining->first + 1) * sizeof *here->floors);
    if (search->gave_up)
        return FAILED;
    here->valley =
        choose_valley(search, remaining->ids, remaining->count, remaining->first, remaining->last, here->candidates);
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
    scale_sizes(search, unit);
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
    uint64_t unit = unit_of_attempt(search, height, variant);
    search->height = height_in_units(search, unit, height);
    search->most_nodes = nodes;
    search->deadline_ns = deadline_ns;
    begin(search, unit);
    uint32_t *ids = take(search, search->count * sizeof *ids);
    ranked *keys = take(search, search->count * sizeof *keys);
    rank(search, variant, ids, keys);
    if (solve(search, (part){ids, search->count, 0, search->sections - 1})) {
        if (tell(search, unit, offsets) > height)
            rule_out(search, unit, height); /* it did: a finer unit next time */
        return TLMI_SEARCH_FOUND;
    }
    if (search->gave_up)
        return TLMI_SEARCH_GAVE_UP;
    rule_out(search, unit, height);
    bool certain =
        search->exact && unit == search->unit && (!search->padded || (uint64_t)search->height * unit >= height);
    return certain ? TLMI_SEARCH_NONE : TLMI_SEARCH_GAVE_UP;
}
