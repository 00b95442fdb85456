/* SPDX-License-Identifier: MIT
 * plan.c: a plan as the program sees it: made at once, improved step by step.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

struct tlm_plan {
    size_t bytes;
    uint64_t count, capacity, peak, turns, attempts;
    uint64_t nodes; /* that attempts since the last passes might have looked at */
    bool proven, searchable;
    tlmi_problem problem;
    tlmi_fit *fit;
    tlmi_search *search;
    uint64_t proven_above;     /* no plan has a peak at or below this; 0: nothing known beyond the lower bound */
    uint64_t *offsets, *trial; /* of items, not of the caller's buffers */
    tlmi_passes passes;
    tlmi_item *items;
};

/* Of PERIOD attempts one is for passes, where others search: of so many placements for each node of a search. */
enum { LEAST_NODES = 2000, PERIOD = 4, PLACEMENTS = 2 };
static const uint64_t MOST_BYTES = (uint64_t)1 << 62, MOST_ALIGNMENT = (uint64_t)1 << 32;

/* ---- one pass, in several orders ---- */

static uint64_t peak_of(const tlm_plan *plan, const uint64_t *offsets)
{
    uint64_t peak = 0;
    for (uint32_t i = 0; i < plan->problem.count; i++)
        if (offsets[i] + plan->problem.items[i].size > peak)
            peak = offsets[i] + plan->problem.items[i].size;
    return peak;
}

static void settle(tlm_plan *plan)
{
    plan->proven = plan->peak <= plan->problem.lower_bound || plan->peak <= plan->proven_above + 1;
}

/* Takes offsets over when they are better. */
static void adopt(tlm_plan *plan, uint64_t peak, const uint64_t *offsets)
{
    if (peak >= plan->peak)
        return; /* also when there was no memory */
    plan->peak = peak;
    memcpy(plan->offsets, offsets, plan->problem.count * sizeof *plan->offsets);
    settle(plan);
}

static bool is_finished(const tlm_plan *plan)
{
    return plan->proven || (plan->capacity && plan->peak <= plan->capacity);
}

/* One more pass. False: no memory. */
static bool pass_once(tlm_plan *plan, uint64_t deadline_ns)
{
    tlmi_fit_end end = tlmi_passes_step(&plan->passes, plan->fit, plan->peak, deadline_ns);
    if (end == TLMI_FIT_PLACED)
        adopt(plan, plan->passes.pass.peak, plan->passes.pass.offsets);
    return end != TLMI_FIT_NO_MEMORY;
}

/* ---- making ---- */

static tlm_status check(const tlm_plan_buffer *buffers, uint64_t count, uint64_t *wrong)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        const tlm_plan_buffer *buffer = &buffers[i];
        *wrong = i;
        if (buffer->first > buffer->last || buffer->alignment == 0 || buffer->alignment > MOST_ALIGNMENT ||
            (buffer->alignment & (buffer->alignment - 1)))
            return TLM_BAD_ARGUMENT;
        if (buffer->size > MOST_BYTES || (sum += buffer->size + buffer->alignment - 1) > MOST_BYTES)
            return TLM_OVERFLOW;
    }
    return TLM_OK;
}

tlm_status tlm_plan_create(const tlm_plan_buffer *buffers, uint64_t count, uint64_t capacity, tlm_plan **out,
                           uint64_t *wrong)
{
    *out = NULL;
    *wrong = 0;
    if (count > INT32_MAX)
        return TLM_OVERFLOW;
    tlm_status status = check(buffers, count, wrong);
    if (status != TLM_OK)
        return status;
    size_t bytes = sizeof(tlm_plan) + count * (3 * sizeof(uint64_t) + 2 * sizeof(uint32_t) + sizeof(tlmi_item));
    tlm_plan *plan = tlmi_own_alloc(bytes);
    if (!plan)
        return TLM_NO_MEMORY;
    *plan = (tlm_plan){.bytes = bytes, .count = count, .capacity = capacity, .peak = UINT64_MAX, .searchable = true};
    plan->items = (tlmi_item *)(plan + 1);
    plan->offsets = (uint64_t *)(plan->items + count);
    plan->trial = plan->offsets + count;
    uint64_t *others = plan->trial + count;
    uint32_t *by_start = (uint32_t *)(others + count), *by_end = by_start + count;
    bool made = tlmi_problem_make(&plan->problem, buffers, (uint32_t)count, plan->items, by_start, by_end);
    if (made && plan->problem.count == 0) {
        plan->peak = 0;
        plan->proven = true;
    } else if (made) {
        adopt(plan, tlmi_slots_place(&plan->problem, by_start, by_end, plan->trial), plan->trial);
        tlmi_passes_begin(&plan->passes, &plan->problem, by_start, others);
        plan->fit = tlmi_fit_create(&plan->problem);
        made = plan->peak != UINT64_MAX && plan->fit;
    }
    if (!made) {
        tlm_plan_destroy(plan);
        return TLM_NO_MEMORY;
    }
    *out = plan;
    return TLM_OK;
}

void tlm_plan_destroy(tlm_plan *plan)
{
    if (!plan)
        return;
    tlmi_fit_destroy(plan->fit);
    tlmi_search_destroy(plan->search);
    tlmi_own_free(plan, plan->bytes);
}

/* ---- improving ---- */

/* The height that the next attempt is to stay below. Every second one is the goal, the capacity or the lower bound; those
 * between aim elsewhere between the lower bound and what is good enough: lower than a capacity, as a tight search notices
 * sooner that it went wrong, or only somewhat lower than the peak. */
static uint64_t aim(const tlm_plan *plan)
{
    static const uint8_t eighths[] = {4, 2, 6};
    uint64_t low = plan->problem.lower_bound;
    if (plan->proven_above + 1 > low)
        low = plan->proven_above + 1;
    if (plan->capacity && plan->capacity <= low)
        return low;
    uint64_t high = plan->capacity ? plan->capacity : plan->peak - 1;
    low = tlmi_search_lowest(plan->search, low, high);
    if (plan->attempts % 2 == 0)
        return plan->capacity ? high : low;
    return low + (high - low) / 8 * eighths[plan->attempts / 2 % 3];
}

/* The passes of the first round are made, or not needed. */
static bool is_placed(const tlm_plan *plan)
{
    return is_finished(plan) || (plan->passes.round > 0 && !plan->passes.paused);
}

static bool make_first_passes(tlm_plan *plan, uint64_t deadline_ns)
{
    do {
        if (!pass_once(plan, deadline_ns))
            return false;
    } while (!is_placed(plan) && tlmi_plan_cpu_ns() < deadline_ns);
    return true;
}

static bool make_passes(tlm_plan *plan, uint64_t deadline_ns)
{
    uint64_t placements = 0, most = plan->nodes / (PERIOD - 1) * PLACEMENTS;
    plan->nodes = 0;
    do {
        if (!pass_once(plan, deadline_ns))
            return false;
        placements += plan->passes.pass.at;
    } while (!is_finished(plan) && (!plan->search || placements < most) && tlmi_plan_cpu_ns() < deadline_ns);
    return true;
}

/* 1 1 2 1 1 2 4 1 1 2 ...: attempts are short, as most plans are found soon, and few are long, which prove that there is none. */
static uint64_t length_of(uint64_t attempt)
{
    for (uint64_t left = attempt + 1;;) {
        uint64_t power = (uint64_t)1 << (63 - __builtin_clzll(left + 1));
        if (left + 1 == power)
            return power / 2;
        left -= power - 1;
    }
}

static void search_once(tlm_plan *plan, uint64_t deadline_ns)
{
    uint64_t height = aim(plan), nodes = LEAST_NODES * length_of(plan->attempts);
    uint64_t variant = plan->capacity ? plan->attempts : plan->attempts / 2;
    tlmi_search_end end = tlmi_search_try(plan->search, height, variant, nodes, deadline_ns, plan->trial);
    if (end == TLMI_SEARCH_FOUND)
        adopt(plan, peak_of(plan, plan->trial), plan->trial);
    else if (end == TLMI_SEARCH_NONE)
        plan->proven_above = height;
    settle(plan);
    plan->nodes += nodes;
}

tlm_status tlm_plan_improve(tlm_plan *plan, uint64_t cpu_ns)
{
    if (is_finished(plan))
        return TLM_OK;
    uint64_t deadline_ns = tlmi_plan_cpu_ns() + cpu_ns;
    if (!is_placed(plan))
        return make_first_passes(plan, deadline_ns) ? TLM_OK : TLM_NO_MEMORY;
    if (!plan->search && plan->searchable) {
        plan->search = tlmi_search_create(&plan->problem);
        plan->searchable = plan->search != NULL;
    }
    uint64_t turn = plan->turns++;
    if (plan->search && turn % PERIOD != PERIOD - 1) {
        search_once(plan, deadline_ns);
        plan->attempts++;
        return TLM_OK;
    }
    return make_passes(plan, deadline_ns) ? TLM_OK : TLM_NO_MEMORY;
}

/* ---- looking ---- */

void tlm_plan_look(const tlm_plan *plan, tlm_plan_result *result)
{
    *result = (tlm_plan_result){
        .peak_bytes = plan->peak,
        .lower_bound_bytes = plan->problem.lower_bound,
        .attempts = plan->attempts,
        .placed = is_placed(plan),
        .proven = plan->proven,
        .finished = is_finished(plan),
    };
}

void tlm_plan_offsets(const tlm_plan *plan, uint64_t *offsets)
{
    memset(offsets, 0, plan->count * sizeof *offsets);
    for (uint32_t i = 0; i < plan->problem.count; i++)
        offsets[plan->problem.items[i].buffer] = plan->offsets[i];
}
