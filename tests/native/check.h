/* SPDX-License-Identifier: MIT
 * check.h: checks for C tests, a reproducible source of numbers, and stand-ins for what needs the interpreter.
 */
#ifndef TLMEM_CHECK_H
#define TLMEM_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log/recording.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* xorshift: the same numbers in every run. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A file name of this process in the temporary folder. */
static inline const char *temporary_path(char *path, size_t room, const char *name)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, room, "%s/tlmem-%s-%d.tlm", folder ? folder : "/tmp", name, (int)getpid());
    return path;
}

/* The sampler has tests of its own. */
#define STAND_IN_FOR_SAMPLER                                                                                           \
    void tlmi_sampler_open(bool smaps, const tlmi_own_file *log)                                                       \
    {                                                                                                                  \
        (void)smaps;                                                                                                   \
        (void)log;                                                                                                     \
    }                                                                                                                  \
    void tlmi_sampler_close(void)                                                                                      \
    {                                                                                                                  \
    }                                                                                                                  \
    uint64_t tlmi_sample_interval(uint64_t now, uint64_t least_ns)                                                     \
    {                                                                                                                  \
        (void)now;                                                                                                     \
        return least_ns;                                                                                               \
    }                                                                                                                  \
    void tlmi_sample_fast(void)                                                                                        \
    {                                                                                                                  \
        tlmi_event_append(TLM_KIND_SAMPLE, TLM_DEVICE_NONE, TLM_METRIC_ANON, 1, 0, 0);                                 \
    }                                                                                                                  \
    void tlmi_sample_full(bool force)                                                                                  \
    {                                                                                                                  \
        (void)force;                                                                                                   \
    }
#endif
