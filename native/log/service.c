/* SPDX-License-Identifier: MIT
 * service.c: our one thread. It takes samples on time, compacts full segments and reads source lines.
 *
 * It blocks every signal, so that the program's threads get theirs, but for faults while it touches the file; it holds no
 * GIL, calls no Python and no malloc. Where the system can, it has a table of open files of its own: what it opens has no number
 * that the program could have got, see or close. It is joined before a fork and started again after it: no thread of ours is alive
 * across a fork.
 */
#include <errno.h>
#include <signal.h>

#include "log/recording.h"

enum { STACK_BYTES = 256 * 1024 };
#define MILLISECOND UINT64_C(1000000)
#define LINES_NS (100 * MILLISECOND)

static pthread_t thread;
static uint64_t thread_id; /* written by it, read when it has been joined */
static bool running;
static bool quit; /* under recording.lock */

static void wait_until(uint64_t deadline_ns)
{
    tlmi_recording_state *r = &tlmi_recording;
    tlmi_system_wait_until(&r->wake, &r->lock, deadline_ns);
}

static void sample(void)
{
    tlmi_file_guard();
    pthread_mutex_lock(&tlmi_recording.lock);
    tlmi_segment_check_file();
    pthread_mutex_unlock(&tlmi_recording.lock);
    tlmi_sample_fast();
    tlmi_sample_full(false);
    tlmi_file_calibrate();
    tlmi_interpreter_now()->tick();
}

static uint64_t next_sample(uint64_t now)
{
    uint32_t least_ms = tlmi_recording.sample_ms;
    return least_ms ? now + tlmi_sample_interval(now, (uint64_t)least_ms * MILLISECOND) : UINT64_MAX;
}

static void *serve(void *unused)
{
    tlmi_recording_state *r = &tlmi_recording;
    uint64_t due = next_sample(tlmi_clock_ns()), lines_due = tlmi_clock_ns() + LINES_NS;
    (void)unused;
    thread_id = tlmi_system_thread_id();
    pthread_mutex_lock(&r->lock);
    if (tlmi_own_table_begin())
        tlmi_file_open_here();
    while (!quit) {
        uint64_t now = tlmi_clock_ns();
        /* Lines that would be due before the next sample are read with this one: to wake up costs more than to look. */
        bool on_time = now < due, wants_lines = now >= lines_due || (!on_time && next_sample(now) > lines_due);
        if (!on_time || wants_lines || (r->compacting && r->pending_count)) {
            pthread_mutex_unlock(&r->lock);
            tlmi_faults_let_in(true);
            if (!on_time) {
                sample();
                due = next_sample(tlmi_clock_ns());
            }
            if (wants_lines) {
                tlmi_source_step(false);
                lines_due = tlmi_clock_ns() + LINES_NS;
            }
            if (on_time && !wants_lines && !tlmi_compact_step())
                sched_yield(); /* no room: the thread that needs it will say so */
            tlmi_faults_let_in(false);
            pthread_mutex_lock(&r->lock);
            continue;
        }
        wait_until(due < lines_due ? due : lines_due);
    }
    pthread_mutex_unlock(&r->lock);
    tlmi_own_table_end();
    return NULL;
}

bool tlmi_service_start(void)
{
    if (running)
        return true;
    sigset_t all, before;
    pthread_attr_t attributes;
    quit = false;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    running = error == 0;
    if (error)
        tlmi_file.error = error;
    return running;
}

void tlmi_service_stop(void)
{
    if (!running)
        return;
    pthread_mutex_lock(&tlmi_recording.lock);
    quit = true;
    pthread_cond_signal(&tlmi_recording.wake);
    pthread_mutex_unlock(&tlmi_recording.lock);
    pthread_join(thread, NULL);
    tlmi_system_thread_gone(thread_id); /* before a fork Python counts threads, and warns of more than one */
    running = false;
}
