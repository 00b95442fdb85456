/* SPDX-License-Identifier: MIT
 * slots.c: slot sharing, the plan of runtimes that number their slots: each slot serves one buffer after another.
 *
 * In the order in which they begin, each buffer takes the free slot whose size is nearest, of two as near the larger one; a slot
 * is as large as the largest buffer that it ever serves. Offsets make lower plans nearly always; this one is made too, so that a plan
 * is never above it. Owns nothing beyond the call.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

enum { NONE = UINT32_MAX, MOST_LEVELS = 6 };

/* Numbers below 64^6, as bits; a bit of a level says whether the 64 below it have one. */
typedef struct {
    uint64_t *words[MOST_LEVELS];
    uint32_t counts[MOST_LEVELS], levels;
} bit_set;

static size_t words_of(uint32_t numbers)
{
    size_t sum = 0;
    for (; numbers > 1; numbers = numbers / 64 + 1)
        sum += numbers / 64 + 1;
    return sum + 1;
}

static void lay_out(bit_set *set, uint32_t numbers, uint64_t *words)
{
    set->levels = 0;
    do {
        numbers = numbers / 64 + 1;
        set->words[set->levels] = words;
        set->counts[set->levels++] = numbers;
        words += numbers;
    } while (numbers > 1);
}

static void add(bit_set *set, uint32_t number)
{
    for (uint32_t level = 0; level < set->levels; level++, number /= 64)
        set->words[level][number / 64] |= (uint64_t)1 << number % 64;
}

static void drop(bit_set *set, uint32_t number)
{
    for (uint32_t level = 0; level < set->levels; level++, number /= 64)
        if (set->words[level][number / 64] &= ~((uint64_t)1 << number % 64))
            return;
}

/* The lowest number from `number` on. */
static uint32_t next(const bit_set *set, uint32_t number)
{
    for (uint32_t level = 0; level < set->levels && number / 64 < set->counts[level]; level++) {
        uint64_t word = set->words[level][number / 64] >> number % 64;
        if (word) {
            number += (uint32_t)__builtin_ctzll(word);
            while (level--)
                number = number * 64 + (uint32_t)__builtin_ctzll(set->words[level][number]);
            return number;
        }
        number = number / 64 + 1;
    }
    return NONE;
}

/* The highest number up to `number`. */
static uint32_t previous(const bit_set *set, uint32_t number)
{
    for (uint32_t level = 0; level < set->levels; level++) {
        uint64_t word = set->words[level][number / 64] << (63 - number % 64);
        if (word) {
            number -= (uint32_t)__builtin_clzll(word);
            while (level--)
                number = number * 64 + 63 - (uint32_t)__builtin_clzll(set->words[level][number]);
            return number;
        }
        if (number / 64 == 0)
            return NONE;
        number = number / 64 - 1;
    }
    return NONE;
}

/* Slots; those that are free stand in stacks, one for each size. A size is known by its rank among all sizes. */
typedef struct {
    uint64_t *sizes;   /* [ranks], ascending */
    uint32_t *free_of; /* [ranks]: the topmost free slot of a size */
    uint32_t *below;   /* [slots]: the next one in its stack */
    uint32_t *rank_of; /* [slots] */
    uint32_t *slot_of; /* [items] */
    uint32_t ranks, count;
    bit_set free; /* ranks with free slots */
} slots;

static int by_size(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static uint32_t rank_of(const slots *all, uint64_t size)
{
    const uint64_t *at = bsearch(&size, all->sizes, all->ranks, sizeof size, by_size);
    return (uint32_t)(at - all->sizes);
}

static size_t bytes_for(uint32_t count)
{
    return (count + words_of(count)) * sizeof(uint64_t) + 4 * (size_t)count * sizeof(uint32_t);
}

static void prepare(slots *all, const tlmi_problem *problem, uint64_t *memory)
{
    uint32_t count = problem->count;
    *all = (slots){.sizes = memory};
    for (uint32_t i = 0; i < count; i++)
        all->sizes[i] = problem->items[i].size;
    qsort(all->sizes, count, sizeof *all->sizes, by_size);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || all->sizes[i] != all->sizes[all->ranks - 1])
            all->sizes[all->ranks++] = all->sizes[i];
    lay_out(&all->free, all->ranks, memory + count);
    all->free_of = (uint32_t *)(memory + count + words_of(count));
    all->below = all->free_of + count;
    all->rank_of = all->below + count;
    all->slot_of = all->rank_of + count;
}

static void release(slots *all, uint32_t slot)
{
    uint32_t rank = all->rank_of[slot];
    bool more = next(&all->free, rank) == rank;
    all->below[slot] = more ? all->free_of[rank] : NONE;
    all->free_of[rank] = slot;
    add(&all->free, rank);
}

/* The free slot whose size is nearest, or a new one. */
static uint32_t acquire(slots *all, uint32_t rank)
{
    uint32_t above = next(&all->free, rank), under = previous(&all->free, rank), from = above;
    if (above == NONE || (under != NONE && all->sizes[rank] - all->sizes[under] < all->sizes[above] - all->sizes[rank]))
        from = under;
    if (from == NONE) {
        all->rank_of[all->count] = rank;
        return all->count++;
    }
    uint32_t slot = all->free_of[from];
    all->free_of[from] = all->below[slot];
    if (all->below[slot] == NONE)
        drop(&all->free, from);
    if (from < rank)
        all->rank_of[slot] = rank;
    return slot;
}

/* Gives slots offsets, one upon another; returns the peak. */
static uint64_t stack_up(const tlmi_problem *problem, slots *all, uint64_t *ends, uint64_t *offsets)
{
    uint64_t sum = 0, peak = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        uint64_t size = all->sizes[all->rank_of[i]];
        ends[i] = sum;
        sum += (size + problem->alignment - 1) & ~(problem->alignment - 1);
    }
    for (uint32_t i = 0; i < problem->count; i++) {
        offsets[i] = ends[all->slot_of[i]];
        if (offsets[i] + problem->items[i].size > peak)
            peak = offsets[i] + problem->items[i].size;
    }
    return peak;
}

uint64_t tlmi_slots_place(const tlmi_problem *problem, const uint32_t *by_start, const uint32_t *by_end,
                          uint64_t *offsets)
{
    size_t sums = problem->count * sizeof(uint64_t), bytes = bytes_for(problem->count) + sums;
    uint64_t *memory = tlmi_own_alloc(bytes); /* zeroed: nothing is free */
    if (!memory)
        return UINT64_MAX;
    slots all;
    prepare(&all, problem, memory + problem->count);
    uint32_t ended = 0;
    for (uint32_t i = 0; i < problem->count; i++) {
        const tlmi_item *item = &problem->items[by_start[i]];
        for (; problem->items[by_end[ended]].last < item->first; ended++)
            release(&all, all.slot_of[by_end[ended]]);
        all.slot_of[by_start[i]] = acquire(&all, rank_of(&all, item->size));
    }
    uint64_t peak = stack_up(problem, &all, memory, offsets);
    tlmi_own_free(memory, bytes);
    return peak;
}
