/* SPDX-License-Identifier: MIT
 * test_cut.c: the handler for missing pages goes with a recording whose file stayed whole, and stays after one that was cut.
 *
 * A thread may have met a missing page and be stopped before its signal arrives.
 *
 * tlm-test: sources=core modes=address */
#include <signal.h>
#include <unistd.h>

#include "check.h"

STAND_IN_FOR_SAMPLER

enum { ROUNDS = 3 };

static bool is_as(const struct sigaction *before)
{
    struct sigaction now;
    CHECK(sigaction(SIGBUS, NULL, &now) == 0);
    return now.sa_sigaction == before->sa_sigaction;
}

int main(void)
{
    char path[256];
    struct sigaction before;
    tlm_recording_options options = {.path = temporary_path(path, sizeof path, "cut"), .overwrite = 1};
    CHECK(sigaction(SIGBUS, NULL, &before) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int seal = 0; seal < 2; seal++) {
            CHECK(tlm_recording_start(&options) == TLM_OK && !is_as(&before));
            tlmi_event_append(TLM_KIND_RESET, TLM_DEVICE_NONE, 1, 1, 0, 0);
            CHECK(tlm_recording_stop(seal) == TLM_OK && is_as(&before));
        }
        CHECK(tlm_recording_start(&options) == TLM_OK);
        tlmi_event_append(TLM_KIND_RESET, TLM_DEVICE_NONE, 1, 1, 0, 0);
        CHECK(truncate(path, 0) == 0);
        tlmi_event_append(TLM_KIND_RESET, TLM_DEVICE_NONE, 1, 1, 0, 0);
        tlm_recording_stop(0);
        CHECK(!is_as(&before));
    }
    remove(path);
    return 0;
}
