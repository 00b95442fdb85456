/* SPDX-License-Identifier: MIT
 * test_probe.c: each probe of tlmem_probe.h records exactly its event with its place, from many threads, and nothing when off.
 *
 * The raw events are read back from the file. The library is linked in here, so the probes are given its table; that they find it
 * by themselves is tested in tests/recorder/test_foreign.py.
 *
 * tlm-test: sources=core */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "tlmem_probe.h"

STAND_IN_FOR_SAMPLER

extern const tlm_probe_functions tlm_probe_table;

enum { THREADS = 8, ROUNDS = 5000, MOST = 64 };

static char path[256];

static void attach(void)
{
    tlm_probe_found.table = &tlm_probe_table;
    tlm_probe_found.on = tlm_probe_table.on;
}

static void start(void)
{
    tlm_recording_options options = {
        .path = temporary_path(path, sizeof path, "probe"), .overwrite = 1, .stack_depth = 8};
    CHECK(tlm_recording_start(&options) == TLM_OK);
}

static void *address_of(uint64_t number)
{
    return (void *)(uintptr_t)(UINT64_C(0x10000000) + 64 * number);
}

/* Stops and calls with each event of a probe in the order of the file; returns how many there were. */
static uint64_t stop_and_read(void (*visit)(const tlmi_event *event, uint64_t number))
{
    static _Alignas(16) uint8_t slot[TLMI_SLOT_BYTES];
    uint64_t number = 0;
    CHECK(tlm_recording_stop(0) == TLM_OK);
    FILE *file = fopen(path, "rb");
    CHECK(file && fseek(file, TLMI_HEADER_BYTES, SEEK_SET) == 0);
    while (fread(slot, 1, sizeof slot, file) == sizeof slot) {
        const tlmi_slot_header *header = (const tlmi_slot_header *)(const void *)slot;
        if (header->type != TLMI_SLOT_EVENTS)
            continue;
        const tlmi_event *event = (const tlmi_event *)(const void *)(slot + TLMI_SLOT_HEADER_BYTES);
        for (uint32_t i = 0; i < TLMI_SEGMENT_EVENTS && event[i].kind; i++)
            if (event[i].kind != TLM_KIND_SAMPLE)
                visit(&event[i], number++);
    }
    CHECK(fclose(file) == 0 && remove(path) == 0);
    return number;
}

/* ---- one of each ---- */

static tlmi_event seen[MOST];

static void keep(const tlmi_event *event, uint64_t number)
{
    CHECK(number < MOST);
    memcpy(&seen[number], event, sizeof *event);
}

static void expect(uint64_t number, uint8_t kind, const void *object, uint64_t arg, uint16_t count)
{
    const tlmi_event *event = &seen[number];
    CHECK(event->kind == kind && event->device == TLM_DEVICE_PROBE && event->site > 1);
    CHECK(event->object == (uint64_t)(uintptr_t)object && event->arg == arg && event->count == count);
}

static void check_each(void)
{
    char *it = address_of(1), *other = address_of(2);
    uint64_t scope = 7, outer = tlm_probe_owner(other);
    start();
    uint64_t cache = tlm_probe_name("cache");
    TLM_PROBE_ALLOC(it, 48);
    TLM_PROBE_SCOPE_ENTER(scope, "step");
    TLM_PROBE_REGISTER(it, scope, 1);
    TLM_PROBE_ACQUIRE(it, cache, 2);
    TLM_PROBE_MOVE(it, cache, outer, 2);
    TLM_PROBE_UNREGISTER(it, scope, 2);
    TLM_PROBE_REGISTER(it, scope, 2);
    TLM_PROBE_PROMOTE(it, scope, 2);
    TLM_PROBE_REGISTER(it, scope, 2);
    TLM_PROBE_ESCAPE(it, outer, 2);
    TLM_PROBE_RELEASE(it, outer, 100000);
    TLM_PROBE_MISUSE(it, 0, TLM_PROBE_DOUBLE_FREE);
    TLM_PROBE_FREE(it);
    TLM_PROBE_SCOPE_EXIT(scope, 3);
    CHECK(stop_and_read(keep) == 15);
    uint64_t in_scope = tlm_probe_scope(scope);
    expect(0, TLM_KIND_ALLOC, it, 48, 1);
    CHECK(seen[1].kind == TLM_KIND_SCOPE_ENTER && seen[1].object == scope && scope >> 48 == 1);
    CHECK(seen[1].arg == tlm_label_of("step") && seen[1].count == 1);
    expect(2, TLM_KIND_REGISTER, it, in_scope, 1);
    expect(3, TLM_KIND_ACQUIRE, it, TLM_HOLDER(TLM_HOLDER_FOREIGN, tlm_label_of("cache")), 2);
    expect(4, TLM_KIND_UNREGISTER, it, cache, 2);
    expect(5, TLM_KIND_REGISTER, it, TLM_HOLDER(TLM_HOLDER_FOREIGN, (uintptr_t)other), 2);
    expect(6, TLM_KIND_UNREGISTER, it, in_scope, 2);
    expect(8, TLM_KIND_PROMOTE, it, in_scope, 2);
    expect(10, TLM_KIND_ESCAPE, it, outer, 2);
    expect(11, TLM_KIND_RELEASE, it, outer, 65535);
    expect(12, TLM_KIND_MISUSE, it, 0, TLM_MISUSE_DOUBLE_FREE);
    expect(13, TLM_KIND_FREE, it, 0, 0);
    CHECK(seen[14].kind == TLM_KIND_SCOPE_EXIT && seen[14].object == scope && seen[14].arg == 3);
}

/* From and to nobody, the null object, and a scope that was entered while nothing was recorded. */
static void check_nothing(void)
{
    void *volatile nothing = NULL;
    char *it = address_of(1);
    uint64_t before, owner = tlm_probe_owner(address_of(2));
    TLM_PROBE_SCOPE_ENTER(before, "before");
    CHECK(before == 0);
    start();
    TLM_PROBE_ALLOC(nothing, 0);
    TLM_PROBE_ALLOC_WITH(nothing, 0, "heap");
    TLM_PROBE_ACQUIRE(nothing, owner, 1);
    TLM_PROBE_MOVE(nothing, 0, owner, 1);
    TLM_PROBE_FREE(nothing);
    TLM_PROBE_FREE_WITH(nothing, "pool");
    TLM_PROBE_SCOPE_EXIT(before, 0);
    TLM_PROBE_MOVE(it, 0, owner, 1);
    TLM_PROBE_MOVE(it, owner, 0, 1);
    CHECK(stop_and_read(keep) == 2);
    expect(0, TLM_KIND_REGISTER, it, owner, 1);
    expect(1, TLM_KIND_UNREGISTER, it, owner, 1);
}

static void check_off(void)
{
    int evaluated = 0;
    uint64_t scope = 9;
    TLM_PROBE_ALLOC(address_of(1), (evaluated++, 1));
    TLM_PROBE_ACQUIRE(address_of(1), 1, (evaluated++, 1));
    TLM_PROBE_MARK("x", evaluated++);
    TLM_PROBE_SCOPE_ENTER(scope, (evaluated++, "x"));
    CHECK(evaluated == 0 && scope == 0 && tlm_probe_name("cache") == 0);
    TLM_PROBE_CALL(evaluated++);
    CHECK(evaluated == 1);
}

/* ---- allocators ---- */

static void check_allocators(void)
{
    char *one = address_of(1), *two = address_of(2), *three = address_of(3);
    start();
    TLM_PROBE_ALLOC_WITH(one, 10, "heap");
    TLM_PROBE_ALLOC_WITH(two, 20, "heap");
    TLM_PROBE_FREE_WITH(one, "heap");
    TLM_PROBE_FREE_WITH(two, "pool");
    TLM_PROBE_FREE_WITH(three, "pool"); /* older than the recording: not known */
    TLM_PROBE_ALLOC_WITH(one, 30, "heap");
    TLM_PROBE_FREE(one);
    TLM_PROBE_ALLOC(one, 40);
    TLM_PROBE_FREE_WITH(one, "pool"); /* not what was there before */
    TLM_PROBE_ALLOC_WITH(three, 50, "heap");
    CHECK(stop_and_read(keep) == 11);
    expect(2, TLM_KIND_FREE, one, 0, 0);
    expect(3, TLM_KIND_MISUSE, two, TLM_HOLDER(TLM_HOLDER_FOREIGN, tlm_label_of("heap")), TLM_MISUSE_WRONG_DEVICE);
    expect(4, TLM_KIND_FREE, two, 0, 0);
    expect(5, TLM_KIND_FREE, three, 0, 0);
    expect(9, TLM_KIND_FREE, one, 0, 0);
    start();
    TLM_PROBE_FREE_WITH(three, "pool"); /* what another recording knew is not known in this one */
    CHECK(stop_and_read(keep) == 1);
    expect(0, TLM_KIND_FREE, three, 0, 0);
}

/* ---- places ---- */

static void probe_somewhere(void)
{
    TLM_PROBE_ALLOC(address_of(1), 8);
}

static void check_places(void)
{
    start();
    for (int i = 0; i < 2; i++)
        probe_somewhere();
    TLM_PROBE_CALL(probe_somewhere(); TLM_PROBE_CALL(probe_somewhere()); probe_somewhere());
    probe_somewhere();
    CHECK(stop_and_read(keep) == 6);
    CHECK(seen[0].site == seen[1].site && seen[5].site == seen[0].site);
    CHECK(seen[2].site != seen[0].site && seen[4].site == seen[2].site);
}

/* ---- threads ---- */

static _Atomic uint64_t allocs, frees, acquired, released, entered, left, others;

static void count(const tlmi_event *event, uint64_t number)
{
    (void)number;
    _Atomic uint64_t *of = event->kind == TLM_KIND_ALLOC         ? &allocs
                           : event->kind == TLM_KIND_FREE        ? &frees
                           : event->kind == TLM_KIND_ACQUIRE     ? &acquired
                           : event->kind == TLM_KIND_RELEASE     ? &released
                           : event->kind == TLM_KIND_SCOPE_ENTER ? &entered
                           : event->kind == TLM_KIND_SCOPE_EXIT  ? &left
                                                                 : &others;
    ++*of;
}

static void *work(void *argument)
{
    uint64_t first = (uint64_t)(uintptr_t)argument * ROUNDS;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        char *it = address_of(1000 + first + i);
        uint64_t scope;
        TLM_PROBE_SCOPE_ENTER(scope, "round");
        TLM_PROBE_ALLOC_WITH(it, 16, "heap");
        TLM_PROBE_CALL(TLM_PROBE_ACQUIRE(it, tlm_probe_name("worker"), 2));
        TLM_PROBE_RELEASE(it, tlm_probe_name("worker"), 1);
        TLM_PROBE_FREE_WITH(it, "heap");
        TLM_PROBE_SCOPE_EXIT(scope, 1);
    }
    return NULL;
}

static void check_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t each = (uint64_t)THREADS * ROUNDS;
    start();
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(stop_and_read(count) == 6 * each && others == 0);
    CHECK(allocs == each && frees == each && acquired == each && released == each && entered == each && left == each);
}

static void check_fork(void)
{
    start();
    TLM_PROBE_ALLOC_WITH(address_of(1), 8, "heap");
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        TLM_PROBE_ALLOC_WITH(address_of(2), 8, "heap");
        _exit(tlm_probe_is_on());
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(stop_and_read(keep) == 1);
}

int main(void)
{
    check_off(); /* no library */
    attach();
    check_off(); /* a library that records nothing */
    check_each();
    check_nothing();
    check_allocators();
    check_places();
    check_threads();
    check_fork();
    return 0;
}
