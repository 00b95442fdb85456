/* SPDX-License-Identifier: MIT
 * fit.c: places buffers one after another, each in a gap between those placed before it.
 *
 * What a buffer must avoid are the bytes that placed ones take in any of its sections. A tree over the sections keeps them: a
 * *node* stands for a run of sections, its halves are its children. `within` are the bytes taken in any section of the node,
 * `across` those taken by buffers that live in all of it. The nodes that cut a buffer's life into as few runs as possible, by their
 * `within`, and those above them, by their `across`, tell all that is taken: some lists, two or four for each level of the tree. As
 * plans have few holes, the lists are short, whatever the number of buffers. Only a set of one byte range after another is
 * kept, so a buffer cannot be taken out again.
 */
#include <string.h>

#include "plan/plan.h"
#include "plan/ranges.h"

typedef struct {
    tlmi_ranges within, across;
} node;

struct tlmi_fit {
    const tlmi_problem *problem;
    size_t bytes;    /* of this whole block */
    uint32_t leaves; /* a power of two, one for each section and some more */
    tlmi_range_store store;
    node nodes[]; /* [2 * leaves]: the root is 1, the children of i are 2i and 2i + 1 */
};

enum { MOST_CURSORS = 4 * 32, CLOCK_EVERY = 256 };

/* Places in lists, all of which rise together. Where the next ranges begin stands apart: mostly that is all that has to be looked at. */
typedef struct {
    uint64_t begins[MOST_CURSORS]; /* UINT64_MAX: the list has ended */
    const tlmi_range *next[MOST_CURSORS], *end[MOST_CURSORS];
    uint32_t count;
} cursors;

tlmi_fit *tlmi_fit_create(const tlmi_problem *problem)
{
    uint32_t leaves = 1;
    while (leaves < problem->sections)
        leaves *= 2;
    size_t bytes = sizeof(tlmi_fit) + 2 * (size_t)leaves * sizeof(node);
    tlmi_fit *fit = tlmi_own_alloc(bytes); /* zeroed: empty sets */
    if (!fit)
        return NULL;
    fit->problem = problem;
    fit->bytes = bytes;
    fit->leaves = leaves;
    return fit;
}

void tlmi_fit_destroy(tlmi_fit *fit)
{
    if (!fit)
        return;
    tlmi_range_store_destroy(&fit->store);
    tlmi_own_free(fit, fit->bytes);
}

static void open_cursor(cursors *all, const tlmi_ranges *set)
{
    if (set->count == 0)
        return;
    all->begins[all->count] = set->at->begin;
    all->next[all->count] = set->at;
    all->end[all->count++] = set->at + set->count;
}

/* All lists that tell what is taken in some sections. */
static void open_cursors(const tlmi_fit *fit, uint32_t first, uint32_t last, cursors *all)
{
    uint32_t left = first + fit->leaves, right = last + fit->leaves + 1;
    all->count = 0;
    for (; left < right; left /= 2, right /= 2) {
        if (left & 1)
            open_cursor(all, &fit->nodes[left++].within);
        if (right & 1)
            open_cursor(all, &fit->nodes[--right].within);
    }
    left = (first + fit->leaves) / 2;
    right = (last + fit->leaves) / 2;
    for (; left; left /= 2, right /= 2) {
        open_cursor(all, &fit->nodes[left].across);
        if (right != left)
            open_cursor(all, &fit->nodes[right].across);
    }
}

static uint64_t round_up(uint64_t offset, uint64_t alignment)
{
    return (offset + alignment - 1) & ~(alignment - 1);
}

/* The lowest offset from `at` on where one list leaves room for an item. */
static uint64_t rise(cursors *all, uint32_t list, const tlmi_item *item, uint64_t at)
{
    const tlmi_range *next = all->next[list], *end = all->end[list];
    for (;;) {
        while (next < end && next->end <= at)
            next++;
        if (next == end || next->begin >= at + item->size)
            break;
        at = round_up(next->end, item->alignment);
    }
    all->next[list] = next;
    all->begins[list] = next < end ? next->begin : UINT64_MAX;
    return at;
}

/* The lowest offset from `floor` on where an item has room; *ceiling is where its gap ends. */
static uint64_t next_gap(cursors *all, const tlmi_item *item, uint64_t floor, uint64_t *ceiling)
{
    uint64_t at = round_up(floor, item->alignment);
    uint32_t list = 0;
    for (uint32_t left = all->count; left; left--) {
        if (all->begins[list] < at + item->size) {
            uint64_t risen = rise(all, list, item, at);
            left = risen > at ? all->count : left; /* the others have to be asked again */
            at = risen;
        }
        list = list + 1 < all->count ? list + 1 : 0;
    }
    *ceiling = UINT64_MAX;
    for (list = 0; list < all->count; list++)
        *ceiling = all->begins[list] < *ceiling ? all->begins[list] : *ceiling;
    return at;
}

static uint64_t find_gap(const tlmi_fit *fit, const tlmi_item *item, int how)
{
    cursors all;
    open_cursors(fit, item->first, item->last, &all);
    uint64_t ceiling, best = UINT64_MAX, tightest = UINT64_MAX, at = next_gap(&all, item, 0, &ceiling);
    if (how == TLMI_FIRST_FIT)
        return at;
    while (ceiling != UINT64_MAX) {
        if (ceiling - at < tightest) {
            tightest = ceiling - at;
            best = at;
        }
        at = next_gap(&all, item, ceiling, &ceiling);
    }
    return best != UINT64_MAX ? best : at;
}

static bool add_within(tlmi_fit *fit, uint32_t node, tlmi_range range)
{
    return tlmi_ranges_add(&fit->store, &fit->nodes[node].within, range);
}

static bool insert(tlmi_fit *fit, const tlmi_item *item, uint64_t offset)
{
    tlmi_range range = {offset, round_up(offset + item->size, fit->problem->least)};
    uint32_t left = item->first + fit->leaves, right = item->last + fit->leaves + 1;
    bool done = true;
    for (; done && left < right; left /= 2, right /= 2) {
        if (left & 1) {
            done = add_within(fit, left, range) && tlmi_ranges_add(&fit->store, &fit->nodes[left].across, range);
            left++;
        }
        if (done && (right & 1)) {
            right--;
            done = add_within(fit, right, range) && tlmi_ranges_add(&fit->store, &fit->nodes[right].across, range);
        }
    }
    left = (item->first + fit->leaves) / 2;
    right = (item->last + fit->leaves) / 2;
    for (; done && left; left /= 2, right /= 2)
        done = add_within(fit, left, range) && (right == left || add_within(fit, right, range));
    return done;
}

static void clear(tlmi_fit *fit)
{
    for (uint32_t i = 1; i < 2 * fit->leaves; i++)
        fit->nodes[i].within.count = fit->nodes[i].across.count = 0;
}

tlmi_fit_end tlmi_fit_place(tlmi_fit *fit, tlmi_pass *pass, uint64_t deadline_ns)
{
    const tlmi_problem *problem = fit->problem;
    if (pass->at == 0) {
        clear(fit);
        pass->peak = 0;
    }
    for (uint32_t done = 0; pass->at < problem->count; pass->at++) {
        if (++done % CLOCK_EVERY == 0 && deadline_ns != UINT64_MAX && tlmi_plan_cpu_ns() > deadline_ns)
            return TLMI_FIT_PAUSED;
        uint32_t id = pass->order[pass->at];
        const tlmi_item *item = &problem->items[id];
        uint64_t offset = find_gap(fit, item, pass->how);
        if (offset + item->size >= pass->limit)
            return TLMI_FIT_BLOCKED;
        if (!insert(fit, item, offset))
            return TLMI_FIT_NO_MEMORY;
        if (offset + item->size > pass->peak)
            pass->peak = offset + item->size;
        pass->offsets[id] = offset;
    }
    return TLMI_FIT_PLACED;
}
