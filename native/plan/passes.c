/* SPDX-License-Identifier: MIT
 * passes.c: one pass after another: in which orders buffers are placed, and what each pass learns from the one before.
 *
 * A *run* begins with one of a few orders; which of them is good differs from program to program. When a pass cannot place an item below the limit, that item moves to some
 * earlier place in the order, and the next pass begins: what is hard to place comes first before long, whatever the reason. This lowers
 * plans for many buffers to what lives at once where their orders alone do not. Runs of the first round are single passes; each
 * further round allows more of them. Owns nothing; everything is deterministic.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

/* ---- orders ---- */

typedef struct {
    uint8_t keys[3]; /* key_kind */
    uint8_t how;     /* TLMI_FIRST_FIT or TLMI_BEST_FIT */
} order_way;

/* What is largest goes first. */
typedef enum { CROWD, SIZE, LONG, SHORT, EARLY, LATE, LATE_END, AREA } key_kind;

/* Ways to place all items in one pass, the ones that are most often good first. */
static const order_way known_ways[] = {
    {{SIZE, EARLY, LONG}, TLMI_FIRST_FIT},   {{CROWD, SIZE, EARLY}, TLMI_FIRST_FIT},
    {{CROWD, SHORT, SIZE}, TLMI_FIRST_FIT},  {{CROWD, EARLY, SIZE}, TLMI_FIRST_FIT},
    {{CROWD, LATE, SIZE}, TLMI_FIRST_FIT},   {{EARLY, SHORT, SIZE}, TLMI_BEST_FIT},
    {{CROWD, EARLY, SIZE}, TLMI_BEST_FIT},   {{EARLY, CROWD, SIZE}, TLMI_FIRST_FIT},
    {{LATE_END, LONG, SIZE}, TLMI_BEST_FIT}, {{CROWD, LATE, SIZE}, TLMI_BEST_FIT},
    {{LONG, SIZE, EARLY}, TLMI_BEST_FIT},    {{CROWD, LONG, SIZE}, TLMI_BEST_FIT},
    {{AREA, SIZE, EARLY}, TLMI_FIRST_FIT},   {{SIZE, LATE_END, EARLY}, TLMI_FIRST_FIT},
    {{EARLY, LONG, SIZE}, TLMI_BEST_FIT},    {{EARLY, SIZE, LONG}, TLMI_FIRST_FIT},
};
enum { WAYS = sizeof known_ways / sizeof known_ways[0] };

typedef struct {
    uint64_t keys[3];
    uint32_t id;
} ranked;

static int by_keys(const void *one, const void *other)
{
    const ranked *a = one, *b = other;
    for (int k = 0; k < 3; k++)
        if (a->keys[k] != b->keys[k])
            return a->keys[k] > b->keys[k] ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static uint64_t key_of(const tlmi_item *item, uint8_t kind)
{
    uint64_t life = (uint64_t)item->last - item->first + 1;
    switch ((key_kind)kind) {
    case CROWD:
        return item->crowd;
    case SIZE:
        return item->size;
    case LONG:
        return life;
    case SHORT:
        return UINT32_MAX - life;
    case EARLY:
        return UINT32_MAX - item->first;
    case LATE:
        return item->first;
    case LATE_END:
        return item->last;
    case AREA:
        return item->size > UINT64_MAX / life ? UINT64_MAX : item->size * life;
    }
    return 0;
}

/* Sorts the numbers of all items. False: no memory. */
static bool make_order(const tlmi_problem *problem, const order_way *way, uint32_t *order)
{
    size_t bytes = problem->count * sizeof(ranked);
    ranked *all = tlmi_own_alloc(bytes);
    if (!all)
        return false;
    for (uint32_t i = 0; i < problem->count; i++) {
        all[i].id = i;
        for (int k = 0; k < 3; k++)
            all[i].keys[k] = key_of(&problem->items[i], way->keys[k]);
    }
    qsort(all, problem->count, sizeof *all, by_keys);
    for (uint32_t i = 0; i < problem->count; i++)
        order[i] = all[i].id;
    tlmi_own_free(all, bytes);
    return true;
}

/* ---- passes ---- */

enum { FIRST_TRIES = 8, MOST_TRIES = 1 << 20 };

void tlmi_passes_begin(tlmi_passes *passes, const tlmi_problem *problem, uint32_t *order, uint64_t *offsets)
{
    *passes = (tlmi_passes){.problem = problem, .pass = {.order = order, .offsets = offsets}};
    passes->random = 88172645463325252u;
}

static uint32_t random_below(tlmi_passes *passes, uint32_t bound)
{
    passes->random ^= passes->random << 13;
    passes->random ^= passes->random >> 7;
    passes->random ^= passes->random << 17;
    return (uint32_t)((passes->random >> 32) * bound >> 32);
}

/* The next run. False: no memory. */
static bool begin_run(tlmi_passes *passes)
{
    uint32_t ways = passes->problem->count > TLMI_MANY_ITEMS ? TLMI_WAYS_FOR_MANY : TLMI_WAYS_FOR_FEW;
    if (passes->round > 0)
        ways = WAYS;
    const order_way *way = &known_ways[passes->way];
    if (!make_order(passes->problem, way, passes->pass.order))
        return false;
    passes->pass.how = way->how;
    passes->tries = passes->next_tries ? passes->next_tries : 1;
    if (++passes->way == ways) {
        passes->way = 0;
        passes->round++;
        passes->next_tries = passes->next_tries ? passes->next_tries * 2 : FIRST_TRIES;
        if (passes->next_tries > MOST_TRIES)
            passes->next_tries = MOST_TRIES;
    }
    return true;
}

static void move_forward(tlmi_passes *passes)
{
    uint32_t from = passes->pass.at, to = random_below(passes, from + 1), *order = passes->pass.order;
    uint32_t item = order[from];
    memmove(order + to + 1, order + to, (from - to) * sizeof *order);
    order[to] = item;
}

tlmi_fit_end tlmi_passes_step(tlmi_passes *passes, tlmi_fit *fit, uint64_t limit, uint64_t deadline_ns)
{
    if (!passes->paused) {
        if (passes->tries == 0 && !begin_run(passes))
            return TLMI_FIT_NO_MEMORY;
        passes->pass.at = 0;
        passes->pass.limit = limit;
    }
    tlmi_fit_end end = tlmi_fit_place(fit, &passes->pass, deadline_ns);
    passes->paused = end == TLMI_FIT_PAUSED;
    if (end == TLMI_FIT_BLOCKED) {
        passes->tries--;
        move_forward(passes);
    } else if (end == TLMI_FIT_PLACED && passes->tries == 1) {
        passes->tries = 0;
    }
    return end;
}
