/* SPDX-License-Identifier: MIT
 * recording.c: begin and end of a recording, and forks; see tlmem_log.h for every promise.
 *
 * `gate` serialises begin and end; the locks of recording.h come after it.
 */
#include <string.h>

#include "log/fold.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static bool running;                             /* under gate */
static tlm_recording_statistics last_statistics; /* of the recording that ended last */
static int last_error;

enum { LEAST_LIMIT_BYTES = 8 << 20, MOST_STACK_DEPTH = 1024, OWNER = 0600 };

/* ---- fork: docs of the three functions in tlmem.h ---- */

static void on_fork_prepare(void)
{
    pthread_mutex_lock(&tlmi_recording.work);
    pthread_mutex_lock(&tlmi_recording.lock);
}

/* In the parent and in the child: the thread that forked holds both. */
static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&tlmi_recording.lock);
    pthread_mutex_unlock(&tlmi_recording.work);
}

static void on_fork_child(void)
{
    atomic_store(&tlmi_recording_on, false);
    tlmi_self.end = tlmi_self.cursor = NULL;
    tlmi_source_after_fork();
    unlock_after_fork();
}

static void install_fork_handlers(void)
{
    pthread_atfork(on_fork_prepare, unlock_after_fork, on_fork_child);
}

/* ---- begin and end ---- */

static void close_parts(void)
{
    tlmi_sampler_close();
    tlmi_interpreter_now()->stacks_close();
    tlmi_site_reset();
    tlmi_meta_close();
    tlmi_fold_close();
    tlmi_compact_close();
    tlmi_codec_close();
    tlmi_deflate_close();
    tlmi_segment_close();
    tlmi_file_close();
}

static tlm_status open_parts(const tlm_recording_options *options)
{
    tlmi_clock_init();
    tlmi_checksum_init();
    /* Not when the service starts again after a fork: other threads may signal it then. */
    tlmi_system_condition_init(&tlmi_recording.wake);
    tlm_status status = tlmi_file_create(options);
    if (status != TLM_OK)
        return status;
    tlmi_deflate_open(); /* without zlib, columns stay plain */
    if (!tlmi_codec_open() || !tlmi_segment_open() || !tlmi_meta_open() || !tlmi_compact_open() ||
        !tlmi_site_init(options->stack_depth))
        return TLM_NO_MEMORY;
    tlmi_source_open(options->limit_bytes);
    tlmi_interpreter_now()->stacks_open(options->stack_depth);
    tlmi_sampler_open(options->sample_smaps != 0, &tlmi_file.file);
    return TLM_OK;
}

static bool options_are_valid(const tlm_recording_options *options)
{
    return options && options->path && options->stack_depth <= MOST_STACK_DEPTH &&
           (options->limit_bytes == 0 || options->limit_bytes >= LEAST_LIMIT_BYTES) &&
           (options->mode == 0 || (options->mode <= 0777 && (options->mode & OWNER) == OWNER));
}

static tlm_status start(const tlm_recording_options *options)
{
    tlmi_recording_state *r = &tlmi_recording;
    tlm_status status = open_parts(options);
    bool created = status == TLM_OK || status == TLM_NO_MEMORY;
    r->compacting = options->compact != 0;
    r->sample_ms = options->sample_ms;
    if (status == TLM_OK && (r->compacting || r->sample_ms) && !tlmi_service_start())
        status = TLM_IO;
    last_error = tlmi_file.error;
    if (status != TLM_OK) {
        if (created && tlmi_file.file.fd >= 0)
            tlmi_file_remove();
        tlmi_source_close();
        close_parts();
        return status;
    }
    pthread_once(&fork_once, install_fork_handlers);
    atomic_fetch_add(&tlmi_recording_epoch, 1);
    atomic_store(&tlmi_recording_on, true);
    running = true;
    tlmi_sample_fast();
    tlmi_sample_full(true);
    tlmi_file_calibrate(); /* so that times are known even if the program is killed before the next sample */
    return TLM_OK;
}

tlm_status tlm_recording_start(const tlm_recording_options *options)
{
    if (!options_are_valid(options))
        return TLM_BAD_ARGUMENT;
    pthread_mutex_lock(&gate);
    tlm_status status = running ? TLM_ALREADY_RUNNING : start(options);
    pthread_mutex_unlock(&gate);
    return status;
}

static void fill_statistics(tlm_recording_statistics *out)
{
    tlmi_recording_state *r = &tlmi_recording;
    uint32_t threads = r->thread_count;
    *out = (tlm_recording_statistics){
        .events = tlmi_segment_event_count(),
        .lost_events = atomic_load(&tlmi_file.header->lost_events),
        .folded_events = tlmi_file.header->folded_events,
        .file_bytes = tlmi_file_slot_offset(tlmi_file.slot_count),
        .own_bytes = tlmi_own_current_bytes(),
        .compacted_events = r->compacted_events,
        .compact_ns = r->compact_ns,
        .fold_ns = r->fold_ns,
        .sites = tlmi_site_count(),
        .codes = tlmi_site_code_count(),
        .threads = threads,
        .running = 1,
        .stopped = tlmi_file.lost             ? (int)tlmi_file.lost
                   : atomic_load(&r->stopped) ? TLM_ENDED_NO_ROOM
                                              : TLM_ENDED_NOT,
    };
}

/* Under gate. */
static tlm_status stop(bool seal)
{
    tlmi_recording_state *r = &tlmi_recording;
    tlmi_sample_fast();
    tlmi_sample_full(true);
    atomic_store(&tlmi_recording_on, false);
    tlmi_service_stop();
    tlmi_source_step(true);
    pthread_mutex_lock(&r->work);
    pthread_mutex_lock(&r->lock);
    tlmi_file_guard();
    bool whole = tlmi_segment_check_file();
    tlmi_file_calibrate();
    tlmi_segment_close_all();
    fill_statistics(&last_statistics);
    pthread_mutex_unlock(&r->lock);
    bool sealed = whole && (!seal || tlmi_seal());
    pthread_mutex_lock(&r->lock);
    if (!sealed && !tlmi_segment_check_file())
        last_statistics.stopped = (int)tlmi_file.lost;
    pthread_mutex_unlock(&r->lock);
    last_statistics.moved = !tlmi_file_is_in_place();
    last_statistics.inode = tlmi_file.file.inode;
    last_statistics.file_bytes = tlmi_file_size();
    last_statistics.compacted_events = r->compacted_events;
    last_statistics.compact_ns = r->compact_ns;
    last_statistics.fold_ns = r->fold_ns;
    last_statistics.folded_events = tlmi_file.header->folded_events;
    last_statistics.running = 0;
    last_error = tlmi_file.error;
    tlmi_source_close(); /* before the lock: it takes it itself */
    pthread_mutex_lock(&r->lock);
    close_parts();
    running = false;
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_unlock(&r->work);
    return sealed ? TLM_OK : TLM_NO_SPACE;
}

tlm_status tlm_recording_stop(int seal)
{
    pthread_mutex_lock(&gate);
    tlm_status status = running ? stop(seal != 0) : TLM_NOT_RUNNING;
    pthread_mutex_unlock(&gate);
    return status;
}

void tlm_recording_stats(tlm_recording_statistics *out)
{
    pthread_mutex_lock(&gate);
    if (running) {
        pthread_mutex_lock(&tlmi_recording.lock);
        fill_statistics(out);
        pthread_mutex_unlock(&tlmi_recording.lock);
    } else {
        *out = last_statistics;
    }
    pthread_mutex_unlock(&gate);
}

int tlm_recording_errno(void)
{
    return last_error ? last_error : tlmi_file.error;
}

void tlm_fork_before(void)
{
    pthread_mutex_lock(&gate); /* held across the fork: no begin or end in between */
    if (running)
        tlmi_service_stop();
}

tlm_status tlm_fork_after_in_parent(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    bool good = !running || !(r->compacting || r->sample_ms) || tlmi_service_start();
    pthread_mutex_unlock(&gate);
    return good ? TLM_OK : TLM_IO;
}

void tlm_fork_after_in_child(void)
{
    if (running) {
        tlmi_segment_forget();
        tlmi_source_close();
        close_parts();
        memset(&last_statistics, 0, sizeof last_statistics);
    }
    running = false;
    pthread_mutex_init(&gate, NULL);
}
