/* SPDX-License-Identifier: MIT
 * test_quarantine.c: freed memory traps or shows that it was written, stays bounded, and handlers of the program go on.
 *
 * Not under valgrind, which counts the touches as errors of ours.
 *
 * tlm-test: sources=core modes=address,thread */
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "memory/devices/quarantine.h"
#include "trace.h"

STAND_IN_FOR_SAMPLER

enum { LARGE = 8192, SMALL = 64, BUDGET = 1 << 20, THREADS = 4, ROUNDS = 2000 };

static sigjmp_buf back;
static volatile sig_atomic_t caught;
static volatile uint8_t seen;

static void go_back(int number)
{
    caught = number;
    siglongjmp(back, 1);
}

/* Whether a touch of the byte ends in the program's own handler, which is what was there before ours. */
static bool traps(volatile uint8_t *at, bool is_write)
{
    CHECK(tlm_quarantine_start(BUDGET, 0) == TLM_OK); /* ours is put back before the program's */
    caught = 0;
    if (sigsetjmp(back, 1) == 0) {
        if (is_write)
            *at = 1;
        else
            seen = *at;
    }
    return caught != 0;
}

static tlm_object make(uint64_t bytes)
{
    tlm_object object = 0;
    CHECK(tlm_object_alloc(TLM_DEVICE_CPU, bytes, &object) == TLM_OK && object);
    return object;
}

static uint8_t *payload_of(tlm_object object)
{
    tlm_object_info info;
    CHECK(tlm_object_describe(object, &info) == TLM_OK);
    return info.payload;
}

static tlm_quarantine_statistics stats(void)
{
    tlm_quarantine_statistics out;
    tlm_quarantine_stats(&out);
    return out;
}

static void check_nothing_is_held_before_it_is_asked_for(void)
{
    CHECK(tlm_quarantine_start(0, 0) == TLM_BAD_ARGUMENT && !tlmi_quarantine_active());
    CHECK(tlm_free(make(LARGE)) == TLM_OK && stats().count == 0);
    CHECK(tlmi_quarantine_at((uintptr_t)&back) == NULL);
}

static void check_a_touch_of_freed_memory_traps_and_is_recorded(void)
{
    tlm_object object = make(LARGE);
    uint8_t *payload = payload_of(object);
    memset(payload, 7, LARGE);
    CHECK((uintptr_t)payload % 64 == 0 && !traps(payload, true));
    uint64_t before = stats().touches;
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_free(object) == TLM_OK);
    CHECK(traps(payload, false) && traps(payload + LARGE - 1, true) && traps(payload + 100, false));
    trace_end();
    CHECK(trace_count(TLM_KIND_MISUSE, object) == 3 && stats().touches == before + 3);
    uint32_t at = trace_find(TLM_KIND_MISUSE, object, 0);
    CHECK(trace_events[at].count == TLM_MISUSE_USE_AFTER_FREE && trace_events[at].site == TRACE_SITE);
    const tlmi_quarantined *record = tlmi_quarantine_at((uintptr_t)payload + 5);
    CHECK(record && record->freed.object == object && record->object_bytes == LARGE);
}

static void check_the_byte_behind_an_object_traps(void)
{
    tlm_object object = make(LARGE);
    uint8_t *payload = payload_of(object);
    trace_begin(TRACE_OBJECTS);
    CHECK(!traps(payload + LARGE - 1, true) && traps(payload + LARGE, false));
    trace_end();
    uint32_t at = trace_find(TLM_KIND_MISUSE, TRACE_ANY, 0);
    CHECK(trace_events[at].count == TLM_MISUSE_PAST_THE_END);
    CHECK(tlm_free(object) == TLM_OK);
}

static void check_a_write_to_small_freed_memory_is_found_later(void)
{
    tlm_object touched = make(SMALL), other = make(SMALL);
    uint8_t *payload = payload_of(touched);
    uint64_t before = stats().written;
    CHECK(tlm_free(touched) == TLM_OK && tlm_free(other) == TLM_OK);
    CHECK(payload[0] == TLMI_FREED_PATTERN && payload[SMALL - 1] == TLMI_FREED_PATTERN);
    payload[SMALL - 1] = 1;
    trace_begin(TRACE_OBJECTS);
    tlm_quarantine_stop();
    trace_end();
    CHECK(trace_count(TLM_KIND_MISUSE, TRACE_ANY) == 1 && stats().written == before + 1);
    uint32_t at = trace_find(TLM_KIND_MISUSE, touched, 0);
    CHECK(trace_events[at].count == TLM_MISUSE_WRITTEN_AFTER_FREE);
}

static void check_samples_trap_though_they_are_small(void)
{
    tlm_object objects[4];
    CHECK(tlm_quarantine_start(BUDGET, 2) == TLM_OK);
    for (int i = 0; i < 4; i++)
        objects[i] = make(SMALL);
    uint8_t *payloads[4];
    for (int i = 0; i < 4; i++) {
        payloads[i] = payload_of(objects[i]);
        CHECK(tlm_free(objects[i]) == TLM_OK);
    }
    int trapped = 0;
    for (int i = 0; i < 4; i++)
        trapped += traps(payloads[i], false);
    CHECK(trapped == 2);
}

static void check_the_oldest_make_room(void)
{
    CHECK(tlm_quarantine_start(BUDGET, 0) == TLM_OK);
    uint64_t left = stats().left_count;
    for (int i = 0; i < 2 * BUDGET / LARGE; i++)
        CHECK(tlm_free(make(LARGE)) == TLM_OK && stats().held_bytes <= BUDGET);
    CHECK(stats().left_count > left && stats().held_bytes > BUDGET - 2 * LARGE);
}

static void check_memory_from_before_and_after_is_given_back(void)
{
    tlm_quarantine_stop();
    tlm_object before = make(LARGE);
    CHECK(tlm_quarantine_start(BUDGET, 0) == TLM_OK);
    tlm_object during = make(LARGE);
    CHECK(tlm_free(before) == TLM_OK);
    tlm_quarantine_stop();
    uint64_t count = stats().count;
    CHECK(tlm_free(during) == TLM_OK && tlm_free(make(LARGE)) == TLM_OK && stats().count == count);
}

/* As faulthandler does: it puts back what it found, and sends itself the signal. */
static struct sigaction found;

static void put_back_and_send(int number)
{
    sigaction(number, &found, NULL);
    raise(number);
}

static uint8_t *freed_payload(void)
{
    CHECK(tlm_quarantine_start(BUDGET, 0) == TLM_OK);
    tlm_object object = make(LARGE);
    uint8_t *payload = payload_of(object);
    CHECK(tlm_free(object) == TLM_OK);
    return payload;
}

static void touch_under_a_later_handler(void)
{
    uint8_t *payload = freed_payload();
    struct sigaction later = {.sa_handler = put_back_and_send, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &later, &found);
    sigaction(SIGBUS, &later, NULL);
    freed_payload(); /* ours is put before the new one */
    *(volatile uint8_t *)payload = 1;
}

/* What is at the bottom is the handler that was there first, go_back. */
static void check_other_handlers_have_their_turn(void)
{
    if (sigsetjmp(back, 1) == 0) {
        caught = 0;
        freed_payload();
        raise(SIGSEGV);
    }
    CHECK(caught == SIGSEGV);
    if (sigsetjmp(back, 1) == 0) {
        caught = 0;
        touch_under_a_later_handler();
    }
    CHECK(caught == SIGSEGV || caught == SIGBUS);
}

static void *work(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        tlm_object object = make(i * 37 % 9000 + 1);
        *payload_of(object) = 1;
        CHECK(tlm_free(object) == TLM_OK);
    }
    return NULL;
}

static void check_threads_do_not_meet(void)
{
    CHECK(tlm_quarantine_start(BUDGET, 8) == TLM_OK);
    pthread_t threads[THREADS];
    uint64_t count = stats().count, written = stats().written;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(stats().count == count + THREADS * ROUNDS && stats().held_bytes <= BUDGET);
    tlm_quarantine_stop();
    CHECK(stats().written == written);
}

int main(void)
{
    struct sigaction program = {.sa_handler = go_back};
    sigaction(SIGSEGV, &program, NULL);
    sigaction(SIGBUS, &program, NULL);
    check_nothing_is_held_before_it_is_asked_for();
    CHECK(tlm_quarantine_start(BUDGET, 0) == TLM_OK);
    check_a_touch_of_freed_memory_traps_and_is_recorded();
    check_the_byte_behind_an_object_traps();
    check_a_write_to_small_freed_memory_is_found_later();
    check_samples_trap_though_they_are_small();
    check_the_oldest_make_room();
    check_memory_from_before_and_after_is_given_back();
    check_other_handlers_have_their_turn();
    check_threads_do_not_meet();
    trace_forget();
    return 0;
}
