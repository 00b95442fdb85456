/* SPDX-License-Identifier: MIT
 * sections.c: from lives on some clock to sections, and what lives at once at the worst moment.
 *
 * A section is a moment right before an end that follows a start: every set of buffers that live at once is part of that of a
 * section. Owns nothing beyond the call.
 */
#include <stdlib.h>

#include "plan/plan.h"

typedef struct {
    int64_t time;
    uint32_t item;
} moment;

static int by_time(const void *one, const void *other)
{
    const moment *a = one, *b = other;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static uint64_t round_up(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) & ~(alignment - 1);
}

static void sweep(tlmi_problem *problem, const moment *starts, const moment *ends)
{
    tlmi_item *items = problem->items;
    uint32_t count = problem->count, next = 0, section = 0;
    bool grown = false;
    for (uint32_t ended = 0; ended < count; ended++) {
        for (; next < count && starts[next].time <= ends[ended].time; next++) {
            items[starts[next].item].first = section;
            grown = true;
        }
        section += grown;
        grown = false;
        items[ends[ended].item].last = section - 1;
    }
    problem->sections = section;
}

/* The pads of the sections: the most that a topmost buffer may leave out of its last multiple of `least`. The largest pads come
 * first, so each section takes the first that reaches it; `skip` leads over those that have one. */
static void pad(const tlmi_problem *problem, uint64_t least, moment *order, uint32_t *skip, uint64_t *pads)
{
    for (uint32_t i = 0; i < problem->count; i++) {
        uint64_t size = problem->items[i].size;
        order[i] = (moment){-(int64_t)(round_up(size, least) - size), i};
    }
    qsort(order, problem->count, sizeof *order, by_time);
    for (uint32_t s = 0; s <= problem->sections; s++)
        skip[s] = s;
    for (uint32_t i = 0; i < problem->count && order[i].time < 0; i++) {
        const tlmi_item *item = &problem->items[order[i].item];
        for (uint32_t s = item->first; s <= item->last; s++) {
            while (skip[s] != s)
                s = skip[s] = skip[skip[s]];
            if (s > item->last)
                break;
            pads[s] = (uint64_t)-order[i].time;
            skip[s] = s + 1;
        }
    }
}

/* The crowd of each item: the largest of the sums in its sections, by a tree over them whose nodes are the larger of two. */
static void find_crowds(tlmi_problem *problem, uint64_t *tree)
{
    uint32_t leaves = problem->sections;
    for (uint32_t i = leaves - 1; i > 0; i--)
        tree[i] = tree[2 * i] > tree[2 * i + 1] ? tree[2 * i] : tree[2 * i + 1];
    for (uint32_t i = 0; i < problem->count; i++) {
        tlmi_item *item = &problem->items[i];
        for (size_t left = (size_t)item->first + leaves, right = (size_t)item->last + leaves + 1; left < right;
             left /= 2, right /= 2) {
            if ((left & 1) && tree[left++] > item->crowd)
                item->crowd = tree[left - 1];
            if ((right & 1) && tree[--right] > item->crowd)
                item->crowd = tree[right];
        }
    }
}

/* What lives at once. Every offset is a multiple of the smallest alignment, so all but the topmost of
 * what lives at once take whole multiples of it. False: no memory. */
static bool weigh(tlmi_problem *problem, moment *scratch)
{
    uint64_t least = problem->least;
    size_t sections = (size_t)problem->sections + 1, bytes = sections * (3 * sizeof(uint64_t) + sizeof(uint32_t));
    uint64_t *tree = tlmi_own_alloc(bytes);
    if (!tree)
        return false;
    uint64_t *steps = tree + problem->sections, *pads = tree + 2 * sections;
    for (uint32_t i = 0; i < problem->count; i++) {
        const tlmi_item *item = &problem->items[i];
        uint64_t size = round_up(item->size, least);
        steps[item->first] += size;
        steps[item->last + 1] -= size;
        problem->load += item->last - item->first + 1;
    }
    if (least > 1)
        pad(problem, least, scratch, (uint32_t *)(pads + sections), pads);
    uint64_t live = 0;
    for (uint32_t s = 0; s < problem->sections; s++) {
        live += steps[s];
        steps[s] = live;
        if (live - pads[s] > problem->lower_bound)
            problem->lower_bound = live - pads[s];
    }
    find_crowds(problem, tree);
    tlmi_own_free(tree, bytes);
    return true;
}

bool tlmi_problem_make(tlmi_problem *problem, const tlm_plan_buffer *buffers, uint32_t count, tlmi_item *items,
                       uint32_t *by_start, uint32_t *by_end)
{
    *problem = (tlmi_problem){.items = items, .alignment = 1, .least = UINT64_MAX};
    for (uint32_t i = 0; i < count; i++) {
        if (buffers[i].size == 0)
            continue;
        items[problem->count++] = (tlmi_item){.size = buffers[i].size, .alignment = buffers[i].alignment, .buffer = i};
        if (buffers[i].alignment > problem->alignment)
            problem->alignment = buffers[i].alignment;
        if (buffers[i].alignment < problem->least)
            problem->least = buffers[i].alignment;
    }
    if (problem->count == 0)
        return true;
    size_t bytes = 2 * (size_t)problem->count * sizeof(moment);
    moment *starts = tlmi_own_alloc(bytes);
    if (!starts)
        return false;
    moment *ends = starts + problem->count;
    for (uint32_t i = 0; i < problem->count; i++) {
        starts[i] = (moment){buffers[items[i].buffer].first, i};
        ends[i] = (moment){buffers[items[i].buffer].last, i};
    }
    qsort(starts, problem->count, sizeof *starts, by_time);
    qsort(ends, problem->count, sizeof *ends, by_time);
    sweep(problem, starts, ends);
    for (uint32_t i = 0; i < problem->count; i++) {
        by_start[i] = starts[i].item;
        by_end[i] = ends[i].item;
    }
    bool weighed = weigh(problem, starts);
    tlmi_own_free(starts, bytes);
    return weighed;
}
