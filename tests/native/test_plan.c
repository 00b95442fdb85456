/* SPDX-License-Identifier: MIT
 * test_plan.c: plans never overlap, are aligned, never below the lower bound, and lowest when that is said.
 *
 * tlm-test: sources=plan,own_memory.c,system.c modes=address,valgrind */
#include "check.h"
#include "tlmem_plan.h"

enum { MOST = 64 };
static tlm_plan_buffer buffers[MOST];
static uint64_t offsets[MOST];

static bool meet(const tlm_plan_buffer *a, const tlm_plan_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static void check_plan(const tlm_plan *plan, uint32_t count, const tlm_plan_result *result)
{
    uint64_t peak = 0;
    tlm_plan_offsets(plan, offsets);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(offsets[i] % buffers[i].alignment == 0);
        if (offsets[i] + buffers[i].size > peak)
            peak = offsets[i] + buffers[i].size;
        for (uint32_t j = 0; j < i; j++)
            CHECK(!meet(&buffers[i], &buffers[j]) || offsets[i] >= offsets[j] + buffers[j].size ||
                  offsets[j] >= offsets[i] + buffers[i].size || !buffers[i].size || !buffers[j].size);
    }
    CHECK(result->peak_bytes == peak);
    CHECK(result->lower_bound_bytes <= peak);
}

static void fill(uint64_t *random, uint32_t count, uint32_t time, uint32_t size, uint32_t alignments)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t first = (int64_t)(next_random(random) % time) - time / 2;
        buffers[i] = (tlm_plan_buffer){first, first + (int64_t)(next_random(random) % time), next_random(random) % size,
                                       (uint64_t)1 << next_random(random) % alignments};
    }
}

/* Every plan that stands on the bottom or on others, by trying all orders: each buffer right above those placed before it that it
 * meets. */
static uint64_t lowest_peak(uint32_t count, uint32_t placed, uint64_t peak, uint64_t best, uint64_t *at)
{
    if (placed == (1u << count) - 1)
        return peak;
    for (uint32_t i = 0; i < count; i++) {
        if (placed >> i & 1)
            continue;
        uint64_t offset = 0, align = buffers[i].alignment;
        for (uint32_t j = 0; j < count; j++)
            if (placed >> j & 1 && meet(&buffers[i], &buffers[j]) && at[j] + buffers[j].size > offset)
                offset = at[j] + buffers[j].size;
        at[i] = (offset + align - 1) / align * align;
        uint64_t higher = at[i] + buffers[i].size > peak ? at[i] + buffers[i].size : peak;
        if (higher < best)
            best = lowest_peak(count, placed | 1u << i, higher, best, at);
    }
    return best;
}

static void check_tiny(uint64_t *random, uint32_t *proven)
{
    uint32_t count = 1 + (uint32_t)(next_random(random) % 6);
    bool aligned = next_random(random) % 2;
    fill(random, count, 6, 9, aligned ? 3 : 1);
    for (uint32_t i = 0; i < count; i++)
        buffers[i].size++;
    if (aligned && next_random(random) % 2)
        for (uint32_t i = 0; i < count; i++)
            buffers[i].alignment = 4;
    uint64_t at[MOST], best = lowest_peak(count, 0, 0, UINT64_MAX, at), wrong;
    tlm_plan *plan;
    tlm_plan_result result;
    CHECK(tlm_plan_create(buffers, count, 0, &plan, &wrong) == TLM_OK);
    for (int step = 0; step < 12; step++)
        CHECK(tlm_plan_improve(plan, 100000000) == TLM_OK);
    tlm_plan_look(plan, &result);
    check_plan(plan, count, &result);
    CHECK(result.lower_bound_bytes <= best);
    CHECK(result.peak_bytes >= best);
    CHECK(!result.proven || result.peak_bytes == best);
    *proven += result.proven;
    tlm_plan_destroy(plan);
}

static void check_random(uint64_t *random)
{
    uint32_t count = (uint32_t)(next_random(random) % MOST);
    fill(random, count, 20, 1u << next_random(random) % 20, 8);
    uint64_t wrong, before;
    tlm_plan *plan;
    tlm_plan_result result;
    uint64_t capacity = next_random(random) % 2 ? next_random(random) % 100000 : 0;
    CHECK(tlm_plan_create(buffers, count, capacity, &plan, &wrong) == TLM_OK);
    tlm_plan_look(plan, &result);
    check_plan(plan, count, &result); /* slots */
    before = result.peak_bytes;
    while (!result.placed) {
        CHECK(tlm_plan_improve(plan, 1) == TLM_OK); /* no time: each step does a part */
        tlm_plan_look(plan, &result);
        check_plan(plan, count, &result);
        CHECK(result.peak_bytes <= before);
        before = result.peak_bytes;
    }
    for (int step = 0; step < 3; step++)
        CHECK(tlm_plan_improve(plan, 1000000) == TLM_OK);
    tlm_plan_look(plan, &result);
    check_plan(plan, count, &result);
    CHECK(result.peak_bytes <= before);
    CHECK(!result.finished || result.proven || result.peak_bytes <= capacity);
    tlm_plan_destroy(plan);
}

static void check_refusals(void)
{
    tlm_plan *plan = (tlm_plan *)buffers;
    uint64_t wrong = 7;
    tlm_plan_result result;
    buffers[0] = (tlm_plan_buffer){0, 1, 8, 1};
    buffers[1] = (tlm_plan_buffer){2, 1, 8, 1};
    CHECK(tlm_plan_create(buffers, 2, 0, &plan, &wrong) == TLM_BAD_ARGUMENT && wrong == 1 && plan == NULL);
    buffers[1] = (tlm_plan_buffer){1, 1, 8, 3};
    CHECK(tlm_plan_create(buffers, 2, 0, &plan, &wrong) == TLM_BAD_ARGUMENT && wrong == 1);
    buffers[1] = (tlm_plan_buffer){1, 1, 8, 0};
    CHECK(tlm_plan_create(buffers, 2, 0, &plan, &wrong) == TLM_BAD_ARGUMENT && wrong == 1);
    buffers[1] = (tlm_plan_buffer){1, 1, UINT64_MAX, 1};
    CHECK(tlm_plan_create(buffers, 2, 0, &plan, &wrong) == TLM_OVERFLOW && wrong == 1);
    buffers[0].size = buffers[1].size = (uint64_t)1 << 61;
    buffers[0].alignment = 2;
    CHECK(tlm_plan_create(buffers, 2, 0, &plan, &wrong) == TLM_OVERFLOW && wrong == 1);
    CHECK(tlm_plan_create(buffers, 0, 0, &plan, &wrong) == TLM_OK);
    tlm_plan_look(plan, &result);
    CHECK(result.peak_bytes == 0 && result.proven && result.finished);
    tlm_plan_destroy(plan);
    tlm_plan_destroy(NULL);
}

/* Every request for memory fails once: a plan is not made, or stays what it was; nothing is lost. */
static void check_exhaustion(uint64_t *random)
{
    fill(random, 40, 20, 1000, 3);
    uint64_t before = tlmi_own_current_bytes();
    for (uint64_t nth = 1; nth < 40; nth++) {
        tlm_plan *plan;
        uint64_t wrong;
        tlm_own_fail_after(nth);
        tlm_status status = tlm_plan_create(buffers, 40, 0, &plan, &wrong);
        CHECK(status == TLM_OK || (status == TLM_NO_MEMORY && plan == NULL));
        if (status == TLM_OK) {
            tlm_plan_result result;
            tlm_plan_improve(plan, 1000000);
            tlm_plan_look(plan, &result);
            check_plan(plan, 40, &result);
        }
        tlm_own_fail_after(0);
        tlm_plan_destroy(plan);
        CHECK(tlmi_own_current_bytes() == before);
    }
}

int main(void)
{
    uint64_t random = 20261121;
    uint32_t proven = 0;
    for (int trial = 0; trial < 1500; trial++)
        check_tiny(&random, &proven);
    CHECK(proven > 1200);
    for (int trial = 0; trial < 1000; trial++)
        check_random(&random);
    check_refusals();
    check_exhaustion(&random);
    return 0;
}
