/* SPDX-License-Identifier: MIT
 * test_replay.c: on random traces under random settings no two blocks overlap, nothing is lost, and reserved is never below allocated.
 *
 * Some hundred traces; `make traces` runs 100,000.
 * tlm-test: sources=replay,own_memory.c,system.c modes=address,valgrind */
#include <string.h>

#include "check.h"
#include "tlmem_replay.h"

enum { BLOCKS = 64, EVENTS = 220, LANES = 4, TRACES = 300, MIB = 1 << 20 };

static tlm_sim_settings defaults(void)
{
    return (tlm_sim_settings){.max_rounding_bytes = 20 * MIB,
                              .grain_bytes = 512,
                              .small_bytes = MIB,
                              .small_segment_bytes = 2 * MIB,
                              .large_segment_bytes = 20 * MIB,
                              .own_segment_bytes = 10 * MIB,
                              .round_bytes = 2 * MIB,
                              .keeps_log = 1};
}

static tlm_sim_settings some_settings(uint64_t *random)
{
    tlm_sim_settings made = defaults();
    if (next_random(random) % 3 == 0)
        made.max_split_bytes = (20 + next_random(random) % 100) * MIB;
    if (next_random(random) % 3 == 0)
        for (int i = 0; i < 16; i++)
            made.divisions[i] = 1u << next_random(random) % 6;
    made.expandable = next_random(random) % 2;
    if (next_random(random) % 2)
        made.capacity_bytes = (100 + next_random(random) % 900) * MIB;
    if (next_random(random) % 3 == 0)
        made.collect_above = (double)(next_random(random) % 99 + 1) / 100;
    if (next_random(random) % 3 == 0)
        made.allowed_bytes = (100 + next_random(random) % 900) * MIB;
    return made;
}

static uint64_t some_size(uint64_t *random)
{
    static const uint64_t most[] = {4096, MIB, 4 * MIB, 16 * MIB, 64 * MIB};
    return next_random(random) % most[next_random(random) % 5] + 1;
}

/* What is known of blocks without looking into the replay. */
static struct {
    uint64_t address, bytes, requested;
    bool waits;
} live[BLOCKS];

static void check_live(uint32_t block, const tlm_sim_step *step, uint64_t requested)
{
    CHECK(step->block_bytes >= requested && step->block_bytes % 512 == 0);
    for (uint32_t other = 0; other < BLOCKS; other++)
        CHECK(!live[other].bytes || live[other].address + live[other].bytes <= step->address ||
              step->address + step->block_bytes <= live[other].address);
    live[block].address = step->address;
    live[block].bytes = step->block_bytes;
    live[block].requested = requested;
    live[block].waits = false;
}

/* Where unused segments go back, all streams are waited for: of what waits nothing is known then. */
static void forget_waiting(void)
{
    for (uint32_t block = 0; block < BLOCKS; block++)
        if (live[block].waits)
            live[block].bytes = live[block].requested = 0;
}

static void check_figures(const tlm_sim *replay, const tlm_sim_settings *settings)
{
    uint64_t bytes = 0, requested = 0, reserved = 0;
    tlm_sim_figures said;
    tlm_sim_look(replay, &said);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        bytes += live[block].bytes;
        requested += live[block].requested;
    }
    CHECK(said.allocated_bytes == bytes && said.requested_bytes == requested);
    CHECK(said.reserved_bytes >= bytes);
    CHECK(!settings->capacity_bytes || said.reserved_bytes <= settings->capacity_bytes);
    static tlm_sim_change changes[4 * EVENTS];
    uint64_t count = tlm_sim_log(replay, changes, 4 * EVENTS);
    for (uint64_t i = 0; i < count && count <= 4 * EVENTS; i++)
        reserved += changes[i].given ? changes[i].bytes : -changes[i].bytes;
    CHECK(count > 4 * EVENTS || reserved == said.reserved_bytes);
    static tlm_sim_part parts[4 * EVENTS];
    count = tlm_sim_parts(replay, parts, 4 * EVENTS);
    CHECK(count <= 4 * EVENTS);
    for (uint64_t i = reserved = 0; i < count; i++)
        reserved += parts[i].bytes;
    CHECK(reserved == said.reserved_bytes);
    CHECK(tlm_sim_check(replay) == 0);
}

static tlm_sim_event some_event(uint64_t *random)
{
    uint32_t block = (uint32_t)(next_random(random) % BLOCKS);
    uint64_t other = next_random(random) % 100;
    if (other == 0)
        return (tlm_sim_event){.kind = TLM_SIM_EMPTY};
    if (other == 1)
        return (tlm_sim_event){.kind = TLM_SIM_COLLECT, .bytes = some_size(random)};
    if (other == 2)
        return (tlm_sim_event){.kind = TLM_SIM_IDLE, .lane = 2};
    if (live[block].bytes || live[block].waits)
        return (tlm_sim_event){.kind = other < 20 && !live[block].waits ? TLM_SIM_WAIT : TLM_SIM_FREE, .block = block};
    return (tlm_sim_event){.bytes = some_size(random),
                           .block = block,
                           .lane = (uint16_t)(next_random(random) % LANES),
                           .kind = TLM_SIM_ALLOC,
                           .flags = (uint8_t)(next_random(random) % 20 ? 0 : 1 + next_random(random) % 2)};
}

static void run_trace(uint64_t *random)
{
    static const tlm_sim_lane lanes[LANES] = {{0, 0}, {0, 0}, {1, 0}, {2, TLM_SIM_NEVER_EXPANDS}};
    tlm_sim_settings settings = some_settings(random);
    tlm_sim *replay;
    uint64_t retries = 0;
    memset(live, 0, sizeof live);
    CHECK(tlm_sim_create(&settings, BLOCKS, LANES, lanes, &replay) == TLM_OK);
    for (uint32_t i = 0; i < EVENTS; i++) {
        tlm_sim_event event = some_event(random);
        tlm_sim_step step;
        tlm_status status = tlm_sim_run(replay, &event, 1, &step);
        tlm_sim_figures said;
        tlm_sim_look(replay, &said);
        if (said.retries > retries || event.kind == TLM_SIM_EMPTY)
            forget_waiting();
        retries = said.retries;
        CHECK(tlm_sim_check(replay) == 0);
        if (status == TLM_OUT_OF_MEMORY) {
            CHECK(settings.capacity_bytes || settings.allowed_bytes);
            CHECK(tlm_sim_run(replay, &event, 1, &step) == TLM_BAD_ARGUMENT);
            break;
        }
        CHECK(status == TLM_OK);
        if (event.kind == TLM_SIM_ALLOC)
            check_live(event.block, &step, event.bytes);
        else if (event.kind == TLM_SIM_FREE)
            live[event.block].bytes = live[event.block].requested = live[event.block].waits = 0;
        else if (event.kind == TLM_SIM_WAIT)
            live[event.block].waits = true;
        if (i % 20 == 0)
            check_figures(replay, &settings);
    }
    check_figures(replay, &settings);
    tlm_sim_destroy(replay);
}

/* What was there before the first event: segments, blocks in them, and expandable runs. */
static void check_start(void)
{
    static const tlm_sim_lane lanes[2] = {{0, 0}};
    tlm_sim_settings settings = defaults();
    tlm_sim *replay;
    tlm_sim_figures figures;
    CHECK(tlm_sim_create(&settings, 8, 2, lanes, &replay) == TLM_OK);
    uint64_t base = UINT64_C(0x7f0000000000);
    CHECK(tlm_sim_segment(replay, base, 2 * MIB, 0, 1, 0) == TLM_OK);
    CHECK(tlm_sim_segment(replay, base + 2 * MIB, 20 * MIB, 0, 0, 0) == TLM_OK);
    CHECK(tlm_sim_segment(replay, base + 4 * MIB, 20 * MIB, 0, 0, 0) == TLM_BAD_ARGUMENT);
    CHECK(tlm_sim_place(replay, 0, base + 512, 1024, 1000) == TLM_OK);
    CHECK(tlm_sim_place(replay, 1, base + 1024, 1024, 1000) == TLM_BAD_ARGUMENT);
    CHECK(tlm_sim_place(replay, 1, base + MIB, 2 * MIB, 1000) == TLM_BAD_ARGUMENT);
    CHECK(tlm_sim_place(replay, 1, base + 2 * MIB, 5 * MIB, 5 * MIB) == TLM_OK);
    CHECK(tlm_sim_segment(replay, base + 1024 * (uint64_t)MIB, 40 * MIB, 1, 0, 1) == TLM_OK);
    CHECK(tlm_sim_segment(replay, base + 1084 * (uint64_t)MIB, 20 * MIB, 1, 0, 1) == TLM_OK);
    CHECK(tlm_sim_segment(replay, base + 1085 * (uint64_t)MIB, 20 * MIB, 1, 0, 1) == TLM_BAD_ARGUMENT);
    CHECK(tlm_sim_segment(replay, base + 2048 * (uint64_t)MIB, 20 * MIB, 0, 0, 1) == TLM_OK);
    CHECK(tlm_sim_check(replay) == 0);
    CHECK(tlm_sim_place(replay, 2, base + 1030 * (uint64_t)MIB, 4 * MIB, 4 * MIB) == TLM_OK);
    CHECK(tlm_sim_check(replay) == 0);
    tlm_sim_look(replay, &figures);
    CHECK(figures.reserved_bytes == 102 * (uint64_t)MIB && figures.segments == 5 && figures.peak_event == UINT64_MAX);
    tlm_sim_event events[] = {{.bytes = 512, .block = 3, .kind = TLM_SIM_ALLOC},
                              {.block = 0, .kind = TLM_SIM_FREE},
                              {.block = 3, .kind = TLM_SIM_FREE},
                              {.kind = TLM_SIM_EMPTY}};
    tlm_sim_step steps[4];
    CHECK(tlm_sim_run(replay, events, 4, steps) == TLM_OK);
    CHECK(steps[0].address == base && steps[0].block_bytes == 512);
    /* The small segment goes, that of block 1 stays; of the runs only the first page stays, in which block 2 lies. */
    CHECK(steps[3].reserved_bytes == 40 * (uint64_t)MIB && tlm_sim_check(replay) == 0);
    CHECK(tlm_sim_segment(replay, base, 2 * MIB, 0, 1, 0) == TLM_BAD_ARGUMENT);
    tlm_sim_destroy(replay);
}

static void check_refusals(void)
{
    static const tlm_sim_lane lanes[1] = {{0, 0}};
    tlm_sim_settings settings = defaults(), wrong;
    tlm_sim *replay;
    tlm_sim_step step;
    wrong = settings, wrong.grain_bytes = 500;
    CHECK(tlm_sim_create(&wrong, 1, 1, lanes, &replay) == TLM_BAD_ARGUMENT && !replay);
    wrong = settings, wrong.collect_above = 1;
    CHECK(tlm_sim_create(&wrong, 1, 1, lanes, &replay) == TLM_BAD_ARGUMENT);
    wrong = settings, wrong.divisions[3] = 3;
    CHECK(tlm_sim_create(&wrong, 1, 1, lanes, &replay) == TLM_BAD_ARGUMENT);
    static const tlm_sim_event bad[] = {{.kind = TLM_SIM_FREE},
                                        {.kind = TLM_SIM_ALLOC, .block = 1},
                                        {.kind = TLM_SIM_ALLOC, .lane = 1},
                                        {.kind = TLM_SIM_ALLOC, .bytes = UINT64_C(1) << 50},
                                        {.kind = TLM_SIM_WAIT},
                                        {.kind = TLM_SIM_IDLE}, /* of the default pool */
                                        {.kind = TLM_SIM_IDLE, .lane = 1},
                                        {.kind = 9}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(tlm_sim_create(&settings, 1, 1, lanes, &replay) == TLM_OK);
        CHECK(tlm_sim_run(replay, &bad[i], 1, &step) == TLM_BAD_ARGUMENT);
        tlm_sim_destroy(replay);
    }
}

/* Without memory a replay ends with that status, and leaves nothing behind. */
static void check_want_of_memory(void)
{
    static const tlm_sim_lane lanes[LANES] = {{0, 0}};
    static tlm_sim_event events[4000];
    for (uint32_t i = 0; i < 4000; i++)
        events[i] = (tlm_sim_event){
            .bytes = 1 + i % 7 * MIB / 2, .block = i, .lane = (uint16_t)(i % LANES), .kind = TLM_SIM_ALLOC};
    uint64_t before = tlmi_own_current_bytes(), failed = 0;
    for (int expandable = 0; expandable < 2; expandable++) {
        tlm_status status = TLM_NO_MEMORY;
        for (uint64_t nth = 1; status != TLM_OK; nth++) {
            tlm_sim_settings settings = defaults();
            settings.expandable = (uint32_t)expandable;
            tlm_sim *replay;
            tlm_own_fail_after(nth);
            status = tlm_sim_create(&settings, 4000, LANES, lanes, &replay);
            if (status == TLM_OK)
                status = tlm_sim_run(replay, events, 4000, NULL);
            tlm_own_fail_after(0);
            CHECK(status == TLM_OK || status == TLM_NO_MEMORY);
            failed += status != TLM_OK;
            tlm_sim_destroy(replay);
            CHECK(tlmi_own_current_bytes() == before);
        }
    }
    CHECK(failed > 15);
}

int main(void)
{
    const char *wanted = getenv("TLMEM_REPLAY_TRACES");
    uint64_t random = 0x1234567, traces = wanted ? strtoull(wanted, NULL, 10) : TRACES;
    check_start();
    check_refusals();
    check_want_of_memory();
    for (uint64_t i = 0; i < traces; i++)
        run_trace(&random);
    return 0;
}
