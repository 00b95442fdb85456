/* SPDX-License-Identifier: MIT
 * plan.h: what the files of the planner share. Layers: sections < orders, ranges, slots, search < fit < passes < plan.
 *
 * Time is cut into *sections*: the moments at which the set of live buffers is largest, in order. Two buffers live at the same
 * time exactly when they have a section in common; nothing else of time matters for a plan.
 */
#ifndef TLMEM_PLAN_INTERNAL_H
#define TLMEM_PLAN_INTERNAL_H

#include <stdbool.h>

#include "platform/platform.h"
#include "tlmem_plan.h"

/* A buffer with room to it, as the files below see it. */
typedef struct {
    uint64_t size, alignment;
    uint64_t crowd;       /* the most bytes that live at once while it does, itself included */
    uint32_t first, last; /* sections, both ends inclusive */
    uint32_t buffer;      /* its number in the caller's list */
} tlmi_item;

typedef struct {
    tlmi_item *items;
    uint32_t count, sections;
    uint64_t lower_bound; /* bytes */
    uint64_t load;        /* sum over sections of the number of items that live in them */
    uint64_t alignment;   /* the largest one of all; every smaller one divides it */
    uint64_t least;       /* the smallest one: all offsets are multiples of it */
} tlmi_problem;

/* sections.c. `items` has room for `count`, as have the orders in which the items begin and end; zero sizes are left out. Scratch
 * is allocated and given back. False: no memory. */
bool tlmi_problem_make(tlmi_problem *problem, const tlm_plan_buffer *buffers, uint32_t count, tlmi_item *items,
                       uint32_t *by_start, uint32_t *by_end);

/* fit.c: one pass. Owns its own memory. */
typedef struct tlmi_fit tlmi_fit;
enum { TLMI_FIRST_FIT, TLMI_BEST_FIT };
typedef struct {
    uint32_t *order;   /* of all items */
    uint64_t *offsets; /* [item] */
    uint64_t limit;    /* no item reaches this height */
    uint64_t peak;     /* of what was placed */
    uint32_t at;       /* how many were placed; 0 begins a pass */
    int how;           /* each goes into the first gap that takes it, or into the tightest one */
} tlmi_pass;
typedef enum { TLMI_FIT_PLACED, TLMI_FIT_BLOCKED, TLMI_FIT_PAUSED, TLMI_FIT_NO_MEMORY } tlmi_fit_end;
tlmi_fit *tlmi_fit_create(const tlmi_problem *problem); /* NULL: no memory */
void tlmi_fit_destroy(tlmi_fit *fit);
/* Places the items in an order. PLACED: all. BLOCKED: the one at `at` would reach the limit. PAUSED: the deadline, of this thread's
 * CPU time, has passed; the next call goes on with the same pass. UINT64_MAX: no deadline. */
tlmi_fit_end tlmi_fit_place(tlmi_fit *fit, tlmi_pass *pass, uint64_t deadline_ns);

/* slots.c. Returns the peak; UINT64_MAX: no memory. */
uint64_t tlmi_slots_place(const tlmi_problem *problem, const uint32_t *by_start, const uint32_t *by_end,
                          uint64_t *offsets);

/* passes.c: passes in several orders, and in what is learnt from them. */
enum { TLMI_MANY_ITEMS = 5000, TLMI_WAYS_FOR_MANY = 5, TLMI_WAYS_FOR_FEW = 9 };
typedef struct {
    const tlmi_problem *problem;
    tlmi_pass pass;
    uint32_t way, round; /* of the next run; round 0: single passes, of which a plan makes all at first */
    uint64_t tries, next_tries, random;
    bool paused;
} tlmi_passes;
/* `order` and `offsets` have room for all items and are the passes' until the end. */
void tlmi_passes_begin(tlmi_passes *passes, const tlmi_problem *problem, uint32_t *order, uint64_t *offsets);
/* One pass, or the rest of one that was paused. PLACED: `pass` has a plan below the limit. */
tlmi_fit_end tlmi_passes_step(tlmi_passes *passes, tlmi_fit *fit, uint64_t limit, uint64_t deadline_ns);

/* search.c: exact search below a height, with restarts. Owns its own memory. */
typedef struct tlmi_search tlmi_search;
typedef enum { TLMI_SEARCH_FOUND, TLMI_SEARCH_NONE, TLMI_SEARCH_GAVE_UP } tlmi_search_end;
tlmi_search *tlmi_search_create(const tlmi_problem *problem); /* NULL: no memory, or too many items to be searched */
void tlmi_search_destroy(tlmi_search *search);
/* One attempt to place all items below `height` bytes, of at most `nodes` placements and until `deadline_ns` of this thread's CPU
 * time. FOUND: offsets are written. NONE: there is no such plan (only said when that is certain). Which decisions are tried first
 * depends on the variant, 0, 1, ..., and on where earlier attempts failed. */
tlmi_search_end tlmi_search_try(tlmi_search *search, uint64_t height, uint64_t variant, uint64_t nodes,
                                uint64_t deadline_ns, uint64_t *offsets);
/* The lowest height from `low` to `high` that is worth an attempt: sizes rounded up to be regular have to fit below it; `low` if they fit
 * below none. */
uint64_t tlmi_search_lowest(const tlmi_search *search, uint64_t low, uint64_t high);
uint64_t tlmi_plan_cpu_ns(void); /* CPU time of this thread */
#endif
