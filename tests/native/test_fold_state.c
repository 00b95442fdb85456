/* SPDX-License-Identifier: MIT
 * test_fold_state.c: the fold state agrees with a plain model after every event of random traces.
 *
 * Odd numbers are objects of the runtime; each has the handle that is the address of the even number before it.
 *
 * tlm-test: sources=fold_state.c,own_memory.c,system.c modes=address */
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "log/fold.h"

enum { ADDRESSES = 3000, SITES = 40, THREADS = 5, EVENTS = 200000 };

static struct {
    uint64_t bytes[ADDRESSES]; /* 0: not alive */
    uint32_t site[ADDRESSES];
    uint64_t live, live_bytes, allocs, frees, unknown;
    uint64_t site_allocs[SITES], site_freed[SITES], site_calls[SITES];
} model;
static tlmi_fold_state state;

static void send(uint32_t thread, uint8_t kind, uint64_t number, uint64_t arg, uint32_t site)
{
    static uint64_t ticks;
    tlmi_event event = {.ticks = ++ticks, .object = 4096 + 16 * (number / 2), .arg = arg, .site = site};
    event.device = number % 2 ? TLM_DEVICE_CPU : TLM_DEVICE_NUMPY;
    event.kind = kind;
    CHECK(tlmi_fold_state_apply(&state, thread, &event, ticks));
}

static void forget(uint64_t number, uint32_t site)
{
    model.site_calls[site]++;
    if (!model.bytes[number]) {
        model.unknown++;
        return;
    }
    model.frees++;
    model.live--;
    model.live_bytes -= model.bytes[number];
    model.site_freed[model.site[number]]++;
    model.bytes[number] = 0;
}

static void add(uint64_t number, uint64_t bytes, uint32_t site)
{
    model.bytes[number] = bytes;
    model.site[number] = site;
    model.allocs++;
    model.live++;
    model.live_bytes += bytes;
    model.site_allocs[site]++;
}

static void step(uint64_t *random)
{
    uint64_t number = next_random(random) % ADDRESSES, other = next_random(random) % ADDRESSES;
    uint64_t bytes = 1 + next_random(random) % 100000;
    uint32_t site = (uint32_t)(next_random(random) % SITES), thread = 1 + (uint32_t)(next_random(random) % THREADS);
    CHECK(tlmi_fold_state_thread(&state, thread));
    uint64_t action = next_random(random) % 8;
    if (action < 2)
        number = number / 2 * 2, other = other / 2 * 2;
    switch (action) {
    case 0: /* resize, moved or in place, of something alive or unknown */
        if (model.bytes[other] && other != number)
            break;
        send(thread, TLM_KIND_FREE, number, 1, site);
        send(thread, TLM_KIND_REALLOC, other, bytes, site);
        forget(number, site);
        add(other, bytes, site);
        break;
    case 1: /* a resize that fails */
        send(thread, TLM_KIND_FREE, number, 1, site);
        send(thread, TLM_KIND_REALLOC, number, UINT64_MAX, site);
        model.site_calls[site]++;
        break;
    case 2:
    case 3:
        send(thread, TLM_KIND_FREE, number, number % 2, site); /* of the runtime: the counts that ended with it */
        forget(number, site);
        break;
    default:
        if (model.bytes[number])
            break;
        send(thread, TLM_KIND_ALLOC, number, bytes, site);
        add(number, bytes, site);
    }
}

static void check_sums(void)
{
    const tlmi_fold_totals *t = &state.totals;
    CHECK(t->current_count == model.live && t->current_bytes == model.live_bytes);
    CHECK(t->alloc_count == model.allocs && t->free_count == model.frees && t->unknown_frees == model.unknown);
    CHECK(t->alloc_bytes - t->free_bytes == t->current_bytes && t->peak_bytes >= t->current_bytes);
}

static void check_tables(void)
{
    uint64_t listed = 0, freed = 0;
    for (uint64_t i = 0; i < state.live_room; i++) {
        const tlmi_live *live = &state.live[i];
        if (!live->address)
            continue;
        uint64_t number = (live->address - 4096) / 16 * 2 + (live->device == TLM_DEVICE_CPU);
        CHECK(model.bytes[number] == live->bytes && model.site[number] == live->site);
        listed++;
    }
    CHECK(listed == model.live);
    for (uint32_t site = 0; site < SITES; site++) {
        CHECK(state.sites[site].alloc_count == model.site_allocs[site]);
        CHECK(state.sites[site].freed_count == model.site_freed[site]);
        CHECK(state.sites[site].free_calls == model.site_calls[site]);
        freed += state.sites[site].freed_count;
    }
    CHECK(freed == model.frees);
}

static void check_thinning(void)
{
    for (int i = 0; i < 200000; i++) {
        tlmi_event sample = {.ticks = (uint64_t)i, .object = TLM_METRIC_ANON, .arg = (uint64_t)i};
        tlmi_event mark = {.ticks = (uint64_t)i, .object = 1, .arg = (uint64_t)i};
        sample.kind = TLM_KIND_SAMPLE;
        mark.kind = TLM_KIND_MARK;
        CHECK(tlmi_fold_state_apply(&state, 1, &sample, sample.ticks));
        CHECK(tlmi_fold_state_apply(&state, 1, &mark, mark.ticks));
    }
    for (uint32_t i = 3; i < state.samples_count; i++)
        CHECK(state.samples[i].ticks >= state.samples[i - 1].ticks);
    CHECK(state.samples_count > 20000 && state.samples_count <= 65536);
    CHECK(state.samples[state.samples_count - 1].ticks == 199999);
    CHECK(state.marks_count > 4000 && state.marks_count <= 16384);
}

static void apply_many(uint8_t kind, uint64_t arg, int times)
{
    for (int i = 0; i < times; i++) {
        tlmi_event event = {.object = 5, .arg = arg, .count = TLM_MISUSE_DOUBLE_FREE, .device = TLM_DEVICE_CPU};
        event.kind = kind;
        CHECK(tlmi_fold_state_apply(&state, 1, &event, 1));
    }
}

/* A view: no bytes, yet an object; then what is only counted, and the first misuses, which are kept. */
static void check_ownership(void)
{
    tlmi_fold_totals before = state.totals;
    uint32_t marks = state.marks_count;
    apply_many(TLM_KIND_ALLOC, 0, 1);
    CHECK(state.totals.current_count == before.current_count + 1 && state.totals.current_bytes == before.current_bytes);
    apply_many(TLM_KIND_ACQUIRE, TLM_HOLDER(TLM_HOLDER_VIEW, 5), 7);
    apply_many(TLM_KIND_RELEASE, TLM_HOLDER(TLM_HOLDER_VIEW, 5), 6);
    apply_many(TLM_KIND_REGISTER, TLM_HOLDER(TLM_HOLDER_SCOPE, 5), 5);
    apply_many(TLM_KIND_DEVICE_ALLOC, 4096, 4);
    apply_many(TLM_KIND_DEVICE_FREE, 4096, 3);
    apply_many(TLM_KIND_MISUSE, 0, 1500);
    CHECK(state.totals.acquire_count - before.acquire_count == 7);
    CHECK(state.totals.release_count - before.release_count == 6);
    CHECK(state.totals.device_bytes - before.device_bytes == 4096);
    CHECK(state.totals.misuse_count == 1500 && state.marks_count - marks == 1000);
    CHECK(state.marks[marks].kind == TLM_KIND_MISUSE && state.marks[marks].count == TLM_MISUSE_DOUBLE_FREE);
    apply_many(TLM_KIND_FREE, 1, 1);
    CHECK(state.totals.current_count == before.current_count && state.totals.unknown_frees == before.unknown_frees);
}

static void apply_heap(uint8_t kind, uint64_t address, uint64_t bytes, uint16_t count)
{
    static uint64_t ticks = 1000;
    tlmi_event event = {.object = address, .arg = bytes, .site = 3, .count = count, .device = TLM_DEVICE_HEAP};
    event.kind = kind;
    ticks += 977;
    CHECK(tlmi_fold_state_apply(&state, 2, &event, ticks));
}

static uint64_t heap_bytes(uint64_t *found)
{
    uint64_t bytes = 0;
    *found = 0;
    for (uint64_t i = 0; i < state.live_room; i++) {
        const tlmi_live *live = &state.live[i];
        if (live->address && live->device == TLM_DEVICE_HEAP) {
            CHECK(live->place == 2 && live->site == 3 && live->thread == 2);
            bytes += live->bytes;
            ++*found;
        }
    }
    return bytes;
}

/* Sampled blocks are in no sum. Of more than there is room for one in two is left out; the sum of the others stays unbiased. */
static void check_heap(void)
{
    const tlmi_fold_totals before = state.totals;
    uint64_t found, calls = state.sites[3].free_calls, blocks = 150000;
    for (uint64_t i = 0; i < 1000; i++)
        apply_heap(TLM_KIND_ALLOC, 4096 + 16 * i, 100, 2); /* at addresses of arrays, too */
    CHECK(heap_bytes(&found) == 100000 && found == 1000 && state.heap_count == 1000);
    apply_heap(TLM_KIND_ALLOC, 4096, 300, 2); /* its free was not seen */
    CHECK(heap_bytes(&found) == 100200 && found == 1000);
    for (uint64_t i = 0; i < 1000; i++)
        apply_heap(TLM_KIND_FREE, 4096 + 16 * i, 0, 0);
    apply_heap(TLM_KIND_FREE, 4096, 0, 0);
    CHECK(heap_bytes(&found) == 0 && state.heap_count == 0 && state.heap_halving == 0);
    for (uint64_t i = 0; i < blocks; i++)
        apply_heap(TLM_KIND_ALLOC, UINT64_C(0x7f0000000000) + 48 * i, 1000, 2);
    double estimate = (double)(heap_bytes(&found) << state.heap_halving);
    CHECK(found == state.heap_count && found <= 65536 && state.heap_halving == 2);
    CHECK(estimate > 0.97 * 1000 * (double)blocks && estimate < 1.03 * 1000 * (double)blocks);
    CHECK(tlmi_fold_state_halve_heap(&state) && state.heap_count < found);
    for (uint64_t i = 0; i < blocks; i++)
        apply_heap(TLM_KIND_FREE, UINT64_C(0x7f0000000000) + 48 * i, 0, 0);
    CHECK(heap_bytes(&found) == 0 && state.heap_count == 0);
    while (state.heap_halving < 15)
        CHECK(tlmi_fold_state_halve_heap(&state));
    CHECK(!tlmi_fold_state_halve_heap(&state));
    CHECK(state.totals.current_count == before.current_count && state.totals.current_bytes == before.current_bytes);
    CHECK(state.totals.unknown_frees == before.unknown_frees && state.totals.next_object == before.next_object);
    CHECK(state.totals.alloc_count == before.alloc_count && state.sites[3].free_calls == calls);
}

/* What is freed after 10,000 allocations has passed; a resize that fails frees nothing. Of too many one in two is left out. */
static void check_passed(void)
{
    uint64_t random = 7, longest = 0, before = state.passed_count, lives = 200000, room = 20000, stood_for = 0;
    tlmi_event event = {.arg = 64, .site = 5, .device = TLM_DEVICE_TORCH, .kind = TLM_KIND_ALLOC};
    for (uint64_t i = 0; i < lives + room; i++) {
        event.object = UINT64_C(0x7e0000000000) + 64 * (i % room);
        event.ticks = 1 + i;
        if (i >= room) { /* as old as there is room for */
            event.kind = TLM_KIND_FREE;
            CHECK(tlmi_fold_state_apply(&state, 1, &event, event.ticks));
            event.kind = TLM_KIND_ALLOC;
        }
        CHECK(tlmi_fold_state_apply(&state, 1, &event, event.ticks));
        CHECK(state.passed_count <= 65536);
    }
    for (uint64_t i = before; i < state.passed_count; i++) {
        const tlmi_passed *passed = &state.passed[i];
        if (passed->device != TLM_DEVICE_TORCH)
            continue;
        CHECK(passed->died_ticks - passed->ticks == room && passed->site == 5 && passed->died_site == 5);
        CHECK(passed->halvings == state.passed_halving); /* old or new, each stands for as many */
        longest = passed->number > longest ? passed->number : longest;
        stood_for += UINT64_C(1) << passed->halvings;
    }
    CHECK(longest < state.totals.next_object && stood_for > lives / 100 * 96 && stood_for < lives / 100 * 104);
    uint64_t count = state.passed_count;
    event.object = UINT64_C(0x7e0000000000) + 64 * (next_random(&random) % room);
    event.kind = TLM_KIND_FREE;
    event.arg = 1;
    CHECK(tlmi_fold_state_apply(&state, 1, &event, event.ticks));
    event.kind = TLM_KIND_REALLOC;
    event.arg = UINT64_MAX;
    CHECK(tlmi_fold_state_apply(&state, 1, &event, event.ticks));
    CHECK(state.passed_count == count);
}

int main(void)
{
    uint64_t random = 42;
    CHECK(tlmi_fold_state_open(&state));
    for (int i = 0; i < EVENTS; i++) {
        step(&random);
        check_sums();
    }
    check_tables();
    check_heap();
    check_tables();
    uint64_t consumed = 0;
    for (uint32_t thread = 0; thread <= THREADS; thread++)
        consumed += state.threads[thread].consumed;
    CHECK(consumed == state.totals.events);
    check_ownership();
    check_thinning();
    check_passed();
    tlmi_fold_state_close(&state);
    CHECK(tlmi_own_current_bytes() == 0);
    return 0;
}
