/* SPDX-License-Identifier: MIT
 * search_make.c: a search is made and ended, and sizes in bytes become units.
 *
 * Sizes that were trimmed by some bytes make a search hard that round ones make easy: the gaps that remain fit nothing. So sizes
 * are rounded up to the coarsest unit in which what lives at once still fits.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/search.h"

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

void tlmi_search_scale(tlmi_search *search, uint64_t unit)
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

void tlmi_search_rule_out(tlmi_search *search, uint64_t unit, uint64_t height)
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

uint64_t tlmi_search_unit(const tlmi_search *search, uint64_t height, uint64_t turn)
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

int32_t tlmi_search_height(const tlmi_search *search, uint64_t unit, uint64_t height)
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
