/* SPDX-License-Identifier: MIT
 * test_stop.c: a recording ends while threads are about to record their first event, and the next one begins at once.
 *
 * A thread that waits for its first segment must not get one after the recording took all segments back: it would keep
 * a place in a file that is closed. Not under ThreadSanitizer: the memory under a store that is on its way is replaced
 * on purpose (segment.c), which is a race by its rules.
 *
 * tlm-test: sources=core modes=address,valgrind */
#include <unistd.h>

#include "check.h"

STAND_IN_FOR_SAMPLER

enum { THREADS = 4, RECORDINGS = 30, GENERATIONS = 3 };

static _Atomic bool keep_going;

static void *work(void *unused)
{
    (void)unused;
    while (atomic_load(&keep_going))
        if (tlmi_probe_on())
            tlmi_event_append(TLM_KIND_RESET, TLM_DEVICE_NONE, 1, 1, 0, 0);
    return NULL;
}

int main(void)
{
    char path[256];
    tlm_recording_options options = {.path = temporary_path(path, sizeof path, "stop"), .overwrite = 1, .compact = 1};
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t threads[THREADS];
        atomic_store(&keep_going, true);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
        for (int i = 0; i < RECORDINGS; i++) {
            tlm_recording_statistics after;
            CHECK(tlm_recording_start(&options) == TLM_OK);
            CHECK(tlm_recording_stop(i % 2) == TLM_OK);
            tlm_recording_stats(&after);
            CHECK(!after.stopped && after.lost_events == 0);
        }
        atomic_store(&keep_going, false);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(remove(path) == 0);
    return 0;
}
