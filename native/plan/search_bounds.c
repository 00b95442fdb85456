/* SPDX-License-Identifier: MIT
 * search_bounds.c: what follows from the floors, and where the search decides next. See search.c.
 *
 * Here the search spends its time: loops over the sections of each remaining item, on arrays of 32-bit numbers.
 */
#include <string.h>
#include <time.h>

#include "plan/search.h"
#include "platform/simd.h"

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

bool tlmi_search_bound(tlmi_search *search, const uint32_t *ids, uint32_t count, uint32_t first, uint32_t last)
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

tlmi_valley tlmi_search_choose(tlmi_search *search, const uint32_t *ids, uint32_t count, uint32_t first, uint32_t last,
                               uint32_t *candidates)
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
