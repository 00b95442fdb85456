/* SPDX-License-Identifier: MIT
 * test_rss.c: what a sample says about memory that was just taken, the order of samples, and that expensive probes are
 * asked seldom. Own clock.
 *
 * tlm-test: sources=own_memory.c,system.c,hooks.c,mappings.c,rss_system.c,sampler.c */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { BLOCK_BYTES = 32 << 20, EVENTS = 4096, METRICS = TLM_METRIC_DELAYED + 1 };
#define MILLISECOND 1000000u

static tlmi_event events[EVENTS];
static uint64_t now_ns = 5000000000u;
static uint64_t untouched_cost_ns = 1000;

/* ---- what the sampler uses: a clock that goes when it is told to, and a thread that writes here ---- */
__thread tlmi_thread tlmi_self;
bool tlmi_clock_is_counter;

uint64_t tlmi_clock_ns(void)
{
    return now_ns;
}

static uint64_t waited_ns; /* of now_ns: for a processor */

uint64_t tlmi_clock_thread_ns(void)
{
    return now_ns - waited_ns;
}

static void (*_Atomic while_telling)(void); /* once, when an event finds its segment full */

bool tlmi_segment_rotate(void)
{
    void (*now)(void) = atomic_exchange(&while_telling, NULL);
    if (now != NULL)
        now();
    return false;
}

static uint64_t untouched_bytes(uint64_t budget_ns, bool *known)
{
    CHECK(budget_ns > 0);
    now_ns += untouched_cost_ns;
    *known = true;
    return 4096;
}

static uint32_t waits, costly, arenas_asked;
#define COSTLY_NS ((uint64_t)6 * MILLISECOND)

/* While it is asked the thread waits, or its processor time goes on, as often as it is told to. */
static uint64_t arena_bytes(bool *known)
{
    arenas_asked++;
    if (costly > 0) {
        costly--;
        now_ns += COSTLY_NS;
    }
    if (waits > 0) {
        waits--;
        waited_ns += MILLISECOND;
        now_ns += MILLISECOND;
    }
    *known = true;
    return 1 << 20;
}

static uint64_t unknown_bytes(bool *known)
{
    *known = false;
    return 0;
}

static uint64_t driver_bytes, tape_bytes;

static _Atomic uint32_t readings;

static uint64_t read_driver(void)
{
    readings++;
    return driver_bytes;
}

static uint64_t read_tapes(void)
{
    return tape_bytes;
}

static uint32_t no_site(void)
{
    return 0;
}

static const tlmi_interpreter_hooks stand_in = {
    .site = no_site,
    .patient_site = no_site,
    .untouched_bytes = untouched_bytes,
    .arena_bytes = arena_bytes,
    .large_bytes = unknown_bytes,
    .module_count = unknown_bytes,
};

/* ---- samples ---- */

typedef struct {
    uint64_t count[METRICS], last[METRICS];
} taken;

static taken take(int samples, uint64_t apart_ns, bool force)
{
    taken result = {0};
    memset(events, 0, sizeof events);
    tlmi_self.cursor = events;
    tlmi_self.end = events + EVENTS;
    for (int i = 0; i < samples; i++) {
        tlmi_sample_fast();
        tlmi_sample_full(force);
        now_ns += apart_ns;
    }
    CHECK(tlmi_self.cursor < tlmi_self.end);
    for (tlmi_event *event = events; event < tlmi_self.cursor; event++) {
        CHECK(event->kind == TLM_KIND_SAMPLE && event->device == TLM_DEVICE_NONE && event->site == 0);
        CHECK(event->object >= 1 && event->object < METRICS);
        result.count[event->object]++;
        result.last[event->object] = event->arg;
    }
    return result;
}

static void check_metrics(void)
{
    tlmi_sampler_open(true, NULL);
    taken before = take(1, MILLISECOND, true);
    CHECK(before.count[TLM_METRIC_ANON] == 1 && before.last[TLM_METRIC_ANON] > 0);
    CHECK(before.last[TLM_METRIC_UNTOUCHED] == 4096 && before.last[TLM_METRIC_PYTHON_ARENA] == 1 << 20);
    CHECK(before.count[TLM_METRIC_PYTHON_LARGE] == 0); /* not known: not said */
    CHECK(before.count[TLM_METRIC_HIGH_WATER] == 1 && before.last[TLM_METRIC_HIGH_WATER] > 0);
    CHECK(before.count[TLM_METRIC_MINOR_FAULTS] == 1 && before.last[TLM_METRIC_MINOR_FAULTS] > 0);
    CHECK(before.count[TLM_METRIC_DELAYED] == (access("/proc/self/schedstat", R_OK) == 0));

    char *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(block != MAP_FAILED);
    memset(block, 1, BLOCK_BYTES);
    taken after = take(1, 0, true);
    CHECK(after.last[TLM_METRIC_ANON] > before.last[TLM_METRIC_ANON] + BLOCK_BYTES / 4 * 3);
    CHECK(after.last[TLM_METRIC_HIGH_WATER] >= after.last[TLM_METRIC_ANON] / 2);
    CHECK(after.count[TLM_METRIC_RECORDER] == 0); /* as before: not said again */
    if (before.count[TLM_METRIC_PSS])
        CHECK(after.last[TLM_METRIC_PRIVATE] > before.last[TLM_METRIC_PRIVATE] + BLOCK_BYTES / 4 * 3);
    if (before.count[TLM_METRIC_MAPPED]) {
        CHECK(after.last[TLM_METRIC_MAPPED] > before.last[TLM_METRIC_MAPPED] + BLOCK_BYTES / 4 * 3);
        CHECK(after.last[TLM_METRIC_LIBRARY_DATA] < before.last[TLM_METRIC_LIBRARY_DATA] + BLOCK_BYTES / 4);
    }
    munmap(block, BLOCK_BYTES);

    void *own = tlmi_own_alloc(BLOCK_BYTES);
    taken grown = take(1, 0, false);
    CHECK(grown.last[TLM_METRIC_RECORDER] >= BLOCK_BYTES);
    CHECK(grown.last[TLM_METRIC_ANON] < after.last[TLM_METRIC_ANON] - BLOCK_BYTES / 4 * 3);
    memset(own, 1, BLOCK_BYTES / 2);
    CHECK(tlmi_own_resident_bytes() >= BLOCK_BYTES / 2 && tlmi_own_resident_bytes() < BLOCK_BYTES / 4 * 3);
    tlmi_own_free(own, BLOCK_BYTES);
    CHECK(tlmi_own_resident_bytes() < BLOCK_BYTES / 4);

    CHECK(grown.count[TLM_METRIC_DRIVER] == 0); /* no device was used: nothing to say */
    driver_bytes = 4096;
    CHECK(take(2, 0, false).count[TLM_METRIC_DRIVER] == 1); /* when it changed */
    driver_bytes = 0;
    taken freed = take(1, 0, false);
    CHECK(freed.count[TLM_METRIC_DRIVER] == 1 && freed.last[TLM_METRIC_DRIVER] == 0); /* and it can fall */
    CHECK(freed.count[TLM_METRIC_TAPES] == 0);                                        /* nor a tape */
    tape_bytes = 8192;
    taken taped = take(1, 0, false);
    CHECK(taped.count[TLM_METRIC_TAPES] == 1 && taped.last[TLM_METRIC_TAPES] == 8192);
    tape_bytes = 0;
    tlmi_sampler_close();
    CHECK(take(1, 0, false).count[TLM_METRIC_ANON] == 0);
}

static void check_how_often(void)
{
    /* Early in a run every sample is a full one, if it is cheap. */
    tlmi_sampler_open(false, NULL);
    untouched_cost_ns = 1000;
    taken early = take(50, 10 * MILLISECOND, false);
    CHECK(early.count[TLM_METRIC_MAPPED] == early.count[TLM_METRIC_UNTOUCHED] || early.count[TLM_METRIC_MAPPED] == 0);
    CHECK(early.count[TLM_METRIC_ANON] == 50 && early.count[TLM_METRIC_UNTOUCHED] == 50);
    CHECK(early.count[TLM_METRIC_PSS] == 0 && early.count[TLM_METRIC_MINOR_FAULTS] == 0);

    /* A probe that takes 1 ms runs once in 300 ms, and the others as before. */
    untouched_cost_ns = MILLISECOND;
    taken costly_one = take(60, 10 * MILLISECOND, false);
    CHECK(costly_one.count[TLM_METRIC_HIGH_WATER] >= 50);
    CHECK(costly_one.count[TLM_METRIC_UNTOUCHED] >= 2 && costly_one.count[TLM_METRIC_UNTOUCHED] <= 3);
    CHECK(take(3, 0, true).count[TLM_METRIC_UNTOUCHED] == 3); /* unless it is asked for */

    /* While one probe rests the others do not make a snapshot, unless much has come since the last. */
    now_ns += (uint64_t)400 * MILLISECOND;
    uint64_t pictures = take(3, 10 * MILLISECOND, false).count[TLM_METRIC_MAPPED];
    CHECK(pictures <= 1);
    now_ns += (uint64_t)150 * MILLISECOND;
    CHECK(take(3, 10 * MILLISECOND, false).count[TLM_METRIC_MAPPED] == 0);
    char *much = mmap(NULL, 4 * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(much != MAP_FAILED);
    memset(much, 1, 4 * BLOCK_BYTES);
    CHECK(take(3, 10 * MILLISECOND, false).count[TLM_METRIC_MAPPED] == pictures);
    munmap(much, 4 * BLOCK_BYTES);

    /* Ten minutes later full samples are a second apart. */
    untouched_cost_ns = 1000;
    now_ns += (uint64_t)600000 * MILLISECOND;
    taken late = take(500, 10 * MILLISECOND, false);
    CHECK(late.count[TLM_METRIC_ANON] == 500);
    CHECK(late.count[TLM_METRIC_HIGH_WATER] >= 5 && late.count[TLM_METRIC_HIGH_WATER] <= 6);
    tlmi_sampler_close();
}

/* A 200th of the run's age, between the time that was asked for and five times that. */
static void check_interval(void)
{
    tlmi_sampler_open(false, NULL);
    const struct {
        uint64_t age_ms, apart_ms;
    } cases[] = {{0, 10}, {2000, 10}, {4000, 20}, {10000, 50}, {3600000, 50}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t apart = tlmi_sample_interval(now_ns + cases[i].age_ms * MILLISECOND, (uint64_t)10 * MILLISECOND);
        CHECK(apart == cases[i].apart_ms * MILLISECOND);
    }
    tlmi_sampler_close();
}

/* What is subtracted from each other is of one moment, or nearly so on a machine that is always busy. */
static void check_moment(void)
{
    const struct {
        uint32_t waits, asked;
    } cases[] = {{0, 1}, {1, 2}, {2, 3}, {9, 3}};
    tlmi_sampler_open(false, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arenas_asked = 0;
        waits = cases[i].waits;
        taken now = take(1, MILLISECOND, true);
        CHECK(arenas_asked == cases[i].asked);
        CHECK(now.count[TLM_METRIC_PYTHON_ARENA] == 1 && now.count[TLM_METRIC_MALLOC_USED] <= 1);
    }
    waits = 0;
    tlmi_sampler_close();
}

/* Processor time that somebody else took from the thread puts the allocator's next question off a little; what it costs
 * again and again, by a hundred times as long. */
static void check_pace(void)
{
    tlmi_sampler_open(false, NULL);
    uint64_t known = take(1, 10 * MILLISECOND, false).count[TLM_METRIC_MALLOC_USED];
    costly = 1;
    take(1, 10 * MILLISECOND, false);
    CHECK(costly == 0);
    CHECK(take(20, 10 * MILLISECOND, false).count[TLM_METRIC_MALLOC_USED] == 20 * known);

    costly = 1000;
    take(60, 10 * MILLISECOND, false);
    costly = 1000;
    CHECK(take(100, 10 * MILLISECOND, false).count[TLM_METRIC_MALLOC_USED] <= 3 * known);
    costly = 0;
    tlmi_sampler_close();
}

static pthread_t other;

static void *sample_beside(void *unused)
{
    (void)unused;
    tlmi_sample_fast();
    return NULL;
}

/* A second thread samples while the first has read its numbers and not told them yet. */
static void let_other_sample(void)
{
    uint32_t before = readings;
    CHECK(pthread_create(&other, NULL, sample_beside, NULL) == 0);
    for (int ms = 0; ms < 100 && readings == before; ms++)
        usleep(1000);
    CHECK(readings == before);
}

/* Else what was read first could be told last, and a test's last sample would be older than what it made. */
static void check_order(void)
{
    tlmi_sampler_open(false, NULL);
    tlmi_self.cursor = tlmi_self.end = events;
    while_telling = let_other_sample;
    tlmi_sample_fast();
    CHECK(while_telling == NULL);
    pthread_join(other, NULL);
    CHECK(readings >= 2);
    tlmi_sampler_close();
}

int main(void)
{
    atomic_store(&tlmi_interpreter, &stand_in);
    tlmi_gauges_of_layers.driver_bytes = read_driver;
    tlmi_gauges_of_layers.tape_bytes = read_tapes;
    check_metrics();
    check_how_often();
    check_interval();
    check_moment();
    check_pace();
    check_order();
    return 0;
}
