/* SPDX-License-Identifier: MIT
 * search.h: what the two files of the search share: its state, and one choice.
 */
#ifndef TLMEM_PLAN_SEARCH_H
#define TLMEM_PLAN_SEARCH_H

#include "plan/plan.h"

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
    uint64_t unit; /* divides all sizes, rounded up to the alignment */
    uint64_t
        grain; /* divides all of them once they are rounded up a little more; the unit, if that makes nothing regular */
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

/* Raises floors by what remains. False: some section is too full; it weighs more from now on. */
bool tlmi_search_bound(tlmi_search *search, const uint32_t *ids, uint32_t count, uint32_t first, uint32_t last);
/* The section with the fewest choices, seldom failed ones last; positions in `ids` of what can lie there. After a bound. */
tlmi_valley tlmi_search_choose(tlmi_search *search, const uint32_t *ids, uint32_t count, uint32_t first, uint32_t last,
                               uint32_t *candidates);
/* The unit of an attempt, by turns: one that adds next to nothing to what lives at once, the finest one, which is nearly always the
 * grain, and the coarsest one in which that still fits below the height, of those that are not known to fail. */
uint64_t tlmi_search_unit(const tlmi_search *search, uint64_t height, uint64_t turn);
/* A height in units, rounded down; if not even what lives at once fits there, up, as the topmost item may reach above with the pad that
 * made it a multiple. */
int32_t tlmi_search_height(const tlmi_search *search, uint64_t unit, uint64_t height);
/* In this unit there is no plan below a height. */
void tlmi_search_rule_out(tlmi_search *search, uint64_t unit, uint64_t height);
/* Divides the sizes by a unit, rounding up, and numbers twins. */
void tlmi_search_scale(tlmi_search *search, uint64_t unit);
#endif
