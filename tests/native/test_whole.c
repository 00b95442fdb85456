/* SPDX-License-Identifier: MIT
 * test_whole.c: everything at once in an embedded interpreter: NumPy in several threads, stacks, samples, folding, forks.
 */
/* tlm-test: sources=all python=yes */
#include <Python.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tlmem_python.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s is not true\n", __LINE__, #condition);                                        \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

static const char *const program = "import threading\n"
                                   "def deep(levels, kept):\n"
                                   "    if levels:\n"
                                   "        return deep(levels - 1, kept)\n"
                                   "    for i in range(1500):\n"
                                   "        kept.append(numpy.zeros(i * i * 37 % 4001))\n"
                                   "        if i % 7: kept.pop().resize(i * i * 41 % 3001, refcheck=False)\n"
                                   "rows = [[] for _ in range(3)]\n"
                                   "team = [threading.Thread(target=deep, args=(5 * i, rows[i])) for i in range(3)]\n"
                                   "for one in team: one.start()\n"
                                   "large = [numpy.empty(1 << 18) for _ in range(20)]\n"
                                   "for one in team: one.join()\n"
                                   "del rows, large\n";

static tlm_status start(const char *path, uint64_t limit_bytes)
{
    tlm_recording_options options;
    memset(&options, 0, sizeof options);
    options.path = path;
    options.limit_bytes = limit_bytes;
    options.stack_depth = 8;
    options.sample_ms = 1;
    options.compact = 1;
    return tlm_recording_start(&options);
}

/* Events that do not compress, so that a small limit is soon reached. */
static void make_noise(uint32_t pairs)
{
    uint64_t noise = 88172645463325252u;
    for (uint32_t i = 0; i < pairs; i++) {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        tlm_event_record(TLM_KIND_ALLOC, TLM_DEVICE_PROBE, noise >> 8, noise & 0xFFFFFFFF);
        tlm_event_record(TLM_KIND_FREE, TLM_DEVICE_PROBE, noise >> 8, 0);
    }
}

/* One recording from start to end; the recorder must be as good as new afterwards. */
static int record(const char *path, uint64_t limit_bytes, int rounds, uint32_t noise_pairs)
{
    tlm_recording_statistics now;
    CHECK(start(path, limit_bytes) == TLM_OK);
    CHECK(start(path, 0) == TLM_ALREADY_RUNNING);
    CHECK(tlm_numpy_install() == TLM_OK);
    CHECK(tlm_pyheap_install() == TLM_OK);
    for (int round = 0; round < rounds; round++) {
        CHECK(PyRun_SimpleString(program) == 0);
        CHECK(tlm_mark("round", round) == TLM_OK);
    }
    make_noise(noise_pairs);
    CHECK(tlm_sample_now() == TLM_OK);
    tlm_recording_stats(&now);
    CHECK(now.running && !now.stopped);
    CHECK(now.lost_events == 0);
    CHECK(limit_bytes == 0 || (now.folded_events > 0 && now.file_bytes <= limit_bytes));
    CHECK(now.events > (uint64_t)rounds * 3 * 1500);
    CHECK(tlm_pyheap_uninstall() == TLM_OK);
    CHECK(tlm_numpy_uninstall() == TLM_OK);
    CHECK(tlm_recording_stop(1) == TLM_OK);
    CHECK(tlm_recording_stop(1) == TLM_NOT_RUNNING);
    return 0;
}

static int record_across_a_fork(void)
{
    int status = 0;
    CHECK(start("parent.tlm", 0) == TLM_OK);
    CHECK(tlm_numpy_install() == TLM_OK);
    tlm_fork_before();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        tlm_fork_after_in_child();
        tlm_recording_statistics now;
        tlm_recording_stats(&now);
        _exit(now.running || PyRun_SimpleString("numpy.zeros(1000)") != 0);
    }
    CHECK(tlm_fork_after_in_parent() == TLM_OK);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(PyRun_SimpleString(program) == 0);
    CHECK(tlm_numpy_uninstall() == TLM_OK);
    CHECK(tlm_recording_stop(1) == TLM_OK);
    return 0;
}

int main(void)
{
    Py_Initialize();
    CHECK(PyRun_SimpleString("import numpy") == 0);
    CHECK(record("small.tlm", 0, 2, 0) == 0);
    CHECK(record("limited.tlm", 8 << 20, 4, 400000) == 0);
    CHECK(record_across_a_fork() == 0);
    CHECK(Py_FinalizeEx() == 0);
    return 0;
}
