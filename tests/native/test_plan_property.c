/* SPDX-License-Identifier: MIT
 * test_plan_property.c: a hundred thousand random instances: no overlap, aligned, between the lower bound and slot sharing.
 *
 * What is compared with is written here in the plainest way. Kinds of instances: anything; buffers cut out of one rectangle, whose
 * lowest plan is full; the same with sizes trimmed, at any one alignment or several; temporaries of a loop; one size; huge sizes. Where
 * the rectangle is known to be high enough, a search has to get below it.
 *
 * tlm-test: sources=plan,own_memory.c,system.c modes=address */
#include "check.h"
#include "tlmem_plan.h"

enum { INSTANCES = 100000, MOST = 48, IMPROVED = 79, MOST_STEPS = 4000 };
static tlm_plan_buffer buffers[MOST];
static uint32_t count;
static uint64_t enough; /* a height that is known to do; 0: none is */
static uint64_t randomness = 88172645463325252u;

static uint64_t below(uint64_t end)
{
    return next_random(&randomness) % end;
}

static void add(int64_t first, int64_t last, uint64_t size, uint64_t alignment)
{
    if (count < MOST)
        buffers[count++] = (tlm_plan_buffer){first, last, size, alignment};
}

/* ---- kinds of instances ---- */

static void make_anything(void)
{
    uint32_t wanted = (uint32_t)below(24);
    uint64_t moments = 1 + below(40), sizes = 1 + below(100), alignments = 1 + below(6);
    for (uint32_t i = 0; i < wanted; i++) {
        int64_t first = (int64_t)below(moments) - 20;
        add(first, first + (int64_t)below(moments), below(sizes), (uint64_t)1 << below(alignments));
    }
}

/* Cuts [first, last] x size in two, in time or in size, until pieces are small; together they fill it at any moment. */
static void cut(int64_t first, int64_t last, uint64_t size, uint32_t depth, uint64_t trim)
{
    bool in_time = below(2) && last > first;
    if (depth == 0 || (!in_time && size < 2)) {
        uint64_t less = below(trim + 1);
        add(first, last, size > less ? size - less : 1, 1);
    } else if (in_time) {
        int64_t at = first + (int64_t)below((uint64_t)(last - first));
        cut(first, at, size, depth - 1, trim);
        cut(at + 1, last, size, depth - 1, trim);
    } else {
        uint64_t at = 1 + below(size - 1);
        cut(first, last, at, depth - 1, trim);
        cut(first, last, size - at, depth - 1, trim);
    }
}

static void make_loop(void)
{
    int64_t steps = 1 + (int64_t)below(6);
    add(0, steps * 8, 1 + below(1000), 64);
    for (int64_t step = 0; step < steps; step++)
        for (int64_t part = 0; part < 6; part++)
            add(step * 8 + part, step * 8 + part + (int64_t)below(4), 16 * (1 + (uint64_t)part * 3 % 7), 16);
}

static void make_one_size(void)
{
    uint64_t wanted = 1 + below(20);
    for (uint64_t i = 0; i < wanted; i++) {
        int64_t first = (int64_t)below(30);
        add(first, first + (int64_t)below(6), 100, 1);
    }
}

static void make_huge(void)
{
    for (uint64_t i = 1 + below(6); i; i--) {
        int64_t first = (int64_t)(next_random(&randomness) >> 2) - ((int64_t)1 << 61);
        add(first, first + (int64_t)(next_random(&randomness) >> 3), next_random(&randomness) >> 7,
            (uint64_t)1 << below(33));
    }
}

/* Sizes of one unit, of which some bytes are taken off; alignments up to that unit. */
static void make_twin(uint64_t unit, bool mixed)
{
    uint64_t height = 2 + below(100);
    cut(0, 1 + (int64_t)below(60), height, 1 + (uint32_t)below(5), 0);
    enough = unit % 64 == 0 ? height * unit : 0; /* offsets that are multiples of the unit are aligned */
    uint64_t one = (uint64_t)1 << below(7), trim = below(2) ? unit < 64 ? unit : 64 : 2;
    for (uint32_t i = 0; i < count; i++) {
        buffers[i].size = buffers[i].size * unit - below(trim);
        buffers[i].alignment = mixed ? (uint64_t)1 << below(7) : one;
    }
}

static void make(uint32_t number)
{
    count = 0;
    enough = 0;
    switch (number % 10) {
    case 0:
        cut(0, 1 + (int64_t)below(60), 1 + below(5000), 1 + (uint32_t)below(5), 0);
        break;
    case 1:
        cut(0, 1 + (int64_t)below(60), 1000 + below(5000), 1 + (uint32_t)below(5), 63);
        break;
    case 2:
        make_loop();
        break;
    case 3:
        make_one_size();
        break;
    case 4:
        make_huge();
        break;
    case 5:
        make_twin((uint64_t)64 << below(20), number % 20 < 10);
        break;
    case 6:
        make_twin(3 + below(1000), number % 20 < 10);
        break;
    default:
        make_anything();
    }
}

/* ---- what has to hold ---- */

static bool meet(const tlm_plan_buffer *a, const tlm_plan_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static uint64_t live_at_once(void)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t sum = 0;
        for (uint32_t j = 0; j < count; j++)
            if (buffers[j].first <= buffers[i].first && buffers[i].first <= buffers[j].last)
                sum += buffers[j].size;
        most = sum > most ? sum : most;
    }
    return most;
}

static uint64_t largest_alignment(void)
{
    uint64_t largest = 1;
    for (uint32_t i = 0; i < count; i++)
        if (buffers[i].alignment > largest)
            largest = buffers[i].alignment;
    return largest;
}

/* In the order of starts, each takes the free slot of the nearest size, of two as near the larger one, or a new one. */
static uint64_t slot_sharing(void)
{
    uint64_t sizes[MOST], sum = 0, alignment = largest_alignment();
    int64_t last[MOST];
    uint32_t slots = 0;
    bool done[MOST] = {0};
    for (uint32_t step = 0; step < count; step++) {
        uint32_t next = MOST;
        for (uint32_t i = 0; i < count; i++)
            if (!done[i] && (next == MOST || buffers[i].first < buffers[next].first))
                next = i;
        done[next] = true;
        if (buffers[next].size == 0)
            continue;
        uint32_t best = slots;
        uint64_t least = UINT64_MAX, size = buffers[next].size;
        for (uint32_t slot = 0; slot < slots; slot++) {
            uint64_t apart = sizes[slot] > size ? sizes[slot] - size : size - sizes[slot];
            if (last[slot] < buffers[next].first && (apart < least || (apart == least && sizes[slot] > size))) {
                least = apart;
                best = slot;
            }
        }
        sizes[best] = best == slots || size > sizes[best] ? size : sizes[best];
        last[best] = buffers[next].last;
        slots += best == slots;
    }
    for (uint32_t slot = 0; slot < slots; slot++)
        sum += (sizes[slot] + alignment - 1) / alignment * alignment;
    return sum;
}

static void check_offsets(const tlm_plan *plan, uint64_t peak)
{
    uint64_t offsets[MOST], top = 0;
    tlm_plan_offsets(plan, offsets);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = offsets[i] + buffers[i].size;
        CHECK(offsets[i] % buffers[i].alignment == 0);
        CHECK(end >= offsets[i]);
        top = end > top ? end : top;
        for (uint32_t j = 0; j < i; j++)
            if (meet(&buffers[i], &buffers[j]) && buffers[i].size && buffers[j].size)
                CHECK(offsets[i] >= offsets[j] + buffers[j].size || offsets[j] >= end);
    }
    CHECK(top == peak);
}

static uint64_t check_plan(const tlm_plan *plan, uint64_t live, uint64_t shared)
{
    tlm_plan_result result;
    tlm_plan_look(plan, &result);
    check_offsets(plan, result.peak_bytes);
    CHECK(result.lower_bound_bytes >= live);
    CHECK(result.peak_bytes >= result.lower_bound_bytes);
    CHECK(result.peak_bytes <= shared);
    CHECK(result.peak_bytes > result.lower_bound_bytes || result.proven);
    return result.peak_bytes;
}

/* The first passes, however little time each step has. */
static void place(tlm_plan *plan)
{
    tlm_plan_result result;
    for (tlm_plan_look(plan, &result); !result.placed; tlm_plan_look(plan, &result))
        CHECK(tlm_plan_improve(plan, below(2) ? 1 : 1000000) == TLM_OK);
}

static void check_improving(tlm_plan *plan, uint64_t live, uint64_t shared)
{
    uint64_t peak = check_plan(plan, live, shared);
    for (int step = 0; step < 3; step++)
        CHECK(tlm_plan_improve(plan, 1000000) == TLM_OK);
    CHECK(check_plan(plan, live, shared) <= peak);
}

/* Steps are limited in number, not in time: a slow machine makes the same ones. */
static void check_search(uint64_t live, uint64_t shared)
{
    tlm_plan *plan;
    tlm_plan_result result;
    uint64_t wrong;
    CHECK(tlm_plan_create(buffers, count, enough, &plan, &wrong) == TLM_OK);
    tlm_plan_look(plan, &result);
    for (int step = 0; step < MOST_STEPS && !result.finished; step++) {
        CHECK(tlm_plan_improve(plan, UINT64_C(1000000000000)) == TLM_OK);
        tlm_plan_look(plan, &result);
    }
    CHECK(check_plan(plan, live, shared) <= enough);
    tlm_plan_destroy(plan);
}

int main(void)
{
    for (uint32_t number = 0; number < INSTANCES; number++) {
        make(number);
        uint64_t live = live_at_once(), shared = slot_sharing(), wrong;
        tlm_plan *plan;
        CHECK(tlm_plan_create(buffers, count, 0, &plan, &wrong) == TLM_OK);
        check_plan(plan, live, shared);
        place(plan);
        check_plan(plan, live, shared);
        if (number % IMPROVED == 0)
            check_improving(plan, live, shared);
        if (number % IMPROVED == 0 && enough)
            check_search(live, shared);
        tlm_plan_destroy(plan);
    }
    return 0;
}
