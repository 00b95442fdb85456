/* SPDX-License-Identifier: MIT
 * passes.c: one pass after another, each from an order that learnt from the one before.
 *
 * A *run* begins with one of the orders of orders.c. When a pass cannot place an item below the limit, that item moves to some
 * earlier place in the order, and the next pass begins: what is hard to place comes first before long, whatever the reason. This lowers
 * plans for many buffers to what lives at once where their orders alone do not. Runs of the first round are single passes; each
 * further round allows more of them. Owns nothing; everything is deterministic.
 */
#include <string.h>

#include "plan/plan.h"

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
        ways = tlmi_way_count;
    const tlmi_way *way = &tlmi_ways[passes->way];
    if (!tlmi_order_make(passes->problem, way, passes->pass.order))
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
