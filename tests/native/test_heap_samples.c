/* SPDX-License-Identifier: MIT
 * test_heap_samples.c: samples of Python's objects and of native blocks in an embedded interpreter: threads, resizes, forks,
 * blocks that are freed after sampling ended.
 */
/* tlm-test: sources=all python=yes */
#include <Python.h>

#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/linkage.h"
#include "tlmem_python.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s is not true\n", __LINE__, #condition);                                        \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* What is kept is freed by the next run, often after sampling ended or began anew. */
static const char *const program = "import threading\n"
                                   "class Point:\n"
                                   "    __slots__ = ('x', 'y')\n"
                                   "kept = []\n"
                                   "def work(rounds):\n"
                                   "    for i in range(rounds):\n"
                                   "        row = [Point(), str(i) * 3, i * 1000, bytes(i % 1500)]\n"
                                   "        text = bytearray(b'abc')\n"
                                   "        for k in range(i % 40): text += b'0123456789' * k\n"
                                   "        del text[3:]\n"
                                   "        assert text == b'abc'\n"
                                   "        if i % 5 == 0: kept.append((row, text, {i: row}))\n"
                                   "team = [threading.Thread(target=work, args=(1500,)) for _ in range(3)]\n"
                                   "for one in team: one.start()\n"
                                   "for one in team: one.join()\n";

static tlm_status start(const char *path)
{
    tlm_recording_options options;
    memset(&options, 0, sizeof options);
    options.path = path;
    options.stack_depth = 8;
    options.sample_ms = 1;
    options.compact = 1;
    return tlm_recording_start(&options);
}

static uint64_t events_now(void)
{
    tlm_recording_statistics now;
    tlm_recording_stats(&now);
    return now.events;
}

/* What is zeroed is zero, what moves keeps what is in it, whichever of them are samples. */
static int move_blocks(void)
{
    PyObject_Free(NULL);
    PyObject_Free(PyObject_Malloc(0));
    PyObject_Free(PyObject_Calloc(0, 8));
    for (size_t i = 0; i < 20000; i++) {
        size_t bytes = 1 + i * 37 % 700;
        unsigned char *block = PyObject_Calloc(1, bytes);
        CHECK(block != NULL && block[0] == 0 && block[bytes - 1] == 0);
        memset(block, (int)(i & 127) + 1, bytes);
        size_t other = 1 + i * 53 % 900, less = other < bytes ? other : bytes;
        block = PyObject_Realloc(block, other);
        CHECK(block != NULL && block[0] == (i & 127) + 1 && block[less - 1] == (i & 127) + 1);
        PyObject_Free(block);
    }
    return 0;
}

static int record(const char *path, uint64_t rate, uint64_t least_events)
{
    CHECK(start(path) == TLM_OK);
    CHECK(tlm_pyheap_install() == TLM_OK);
    CHECK(tlm_heap_install(0, 0) == TLM_BAD_ARGUMENT);
    CHECK(tlm_heap_install(rate, 7) == TLM_OK);
    CHECK(tlm_heap_install(rate, 7) == TLM_ALREADY_RUNNING);
    CHECK(PyRun_SimpleString(program) == 0);
    CHECK(move_blocks() == 0);
    CHECK(events_now() > least_events);
    CHECK(tlm_heap_uninstall() == TLM_OK);
    CHECK(tlm_heap_uninstall() == TLM_NOT_RUNNING);
    CHECK(tlm_pyheap_uninstall() == TLM_OK);
    CHECK(tlm_recording_stop(1) == TLM_OK);
    CHECK(PyRun_SimpleString("del kept[::2]\n") == 0); /* samples among them end unseen */
    return 0;
}

static int sample_across_a_fork(void)
{
    int status = 0;
    CHECK(start("parent.tlm") == TLM_OK);
    CHECK(tlm_pyheap_install() == TLM_OK);
    CHECK(tlm_heap_install(20000, 7) == TLM_OK);
    CHECK(PyRun_SimpleString(program) == 0);
    tlm_fork_before();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        tlm_fork_after_in_child();
        PyOS_AfterFork_Child();
        _exit(PyRun_SimpleString("kept.clear()\nwork(2000)\n") != 0 || move_blocks() != 0);
    }
    CHECK(tlm_fork_after_in_parent() == TLM_OK);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(PyRun_SimpleString(program) == 0);
    CHECK(tlm_heap_uninstall() == TLM_OK);
    CHECK(tlm_pyheap_uninstall() == TLM_OK);
    CHECK(tlm_recording_stop(1) == TLM_OK);
    return 0;
}

int main(void)
{
    Py_Initialize();
#ifdef __SANITIZE_THREAD__
    /* It begins a thread by a function of libc that resizes a block, and cannot look at that yet. */
    CHECK(tlmi_slots_spare((const void *)(uintptr_t)&gnu_get_libc_version));
#endif
    CHECK(record("fast.tlm", 16000, 100) == 0);
    CHECK(record("thorough.tlm", 500, 2000) == 0);
    CHECK(record("all.tlm", 1, 50000) == 0);
    CHECK(sample_across_a_fork() == 0);
    CHECK(Py_FinalizeEx() == 0);
    return 0;
}
