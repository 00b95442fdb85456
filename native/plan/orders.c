/* SPDX-License-Identifier: MIT
 * orders.c: the orders in which one pass places buffers.
 *
 * Which of them is good differs from program to program, so several are tried. Owns nothing beyond the call.
 */
#include <stdlib.h>

#include "plan/plan.h"

/* What is largest goes first. */
typedef enum { CROWD, SIZE, LONG, SHORT, EARLY, LATE, LATE_END, AREA } key_kind;

const tlmi_way tlmi_ways[] = {
    {{SIZE, EARLY, LONG}, TLMI_FIRST_FIT},   {{CROWD, SIZE, EARLY}, TLMI_FIRST_FIT},
    {{CROWD, SHORT, SIZE}, TLMI_FIRST_FIT},  {{CROWD, EARLY, SIZE}, TLMI_FIRST_FIT},
    {{CROWD, LATE, SIZE}, TLMI_FIRST_FIT},   {{EARLY, SHORT, SIZE}, TLMI_BEST_FIT},
    {{CROWD, EARLY, SIZE}, TLMI_BEST_FIT},   {{EARLY, CROWD, SIZE}, TLMI_FIRST_FIT},
    {{LATE_END, LONG, SIZE}, TLMI_BEST_FIT}, {{CROWD, LATE, SIZE}, TLMI_BEST_FIT},
    {{LONG, SIZE, EARLY}, TLMI_BEST_FIT},    {{CROWD, LONG, SIZE}, TLMI_BEST_FIT},
    {{AREA, SIZE, EARLY}, TLMI_FIRST_FIT},   {{SIZE, LATE_END, EARLY}, TLMI_FIRST_FIT},
    {{EARLY, LONG, SIZE}, TLMI_BEST_FIT},    {{EARLY, SIZE, LONG}, TLMI_FIRST_FIT},
};
const uint32_t tlmi_way_count = sizeof tlmi_ways / sizeof tlmi_ways[0];

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

bool tlmi_order_make(const tlmi_problem *problem, const tlmi_way *way, uint32_t *order)
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
