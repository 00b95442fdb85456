/* SPDX-License-Identifier: MIT
 * segment.c: one writer segment per thread.
 *
 * A thread owns its segment and appends without a lock; every 8184 events it hands the full segment to the compactor and
 * takes another one. A segment can be taken away from a thread that is not looking (end of the recording): `end` becomes
 * NULL, so the next append comes here, and the memory under a store that is already on its way is replaced by anonymous
 * memory, so that the store can neither reach the file nor fault.
 */
#include <string.h>

#include "log/recording.h"

_Atomic bool tlmi_recording_on;
_Atomic uint64_t tlmi_recording_epoch;
__thread tlmi_thread tlmi_self;
tlmi_recording_state tlmi_recording = {
    .work = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .blocks = {.slot = -1}};

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

enum {
    TRIES = 64,
    MOST_PENDING = 16,
    WAITING_SHARE = 4,
    MOST_READY = sizeof tlmi_recording.ready / sizeof *tlmi_recording.ready
};

/* A part of the slots there can be, but not more than `most`: what waits or is held ready must not fill a small file. */
static uint32_t share_of_slots(uint32_t most)
{
    uint32_t slots = tlmi_file.disk_full ? tlmi_file.slot_count : tlmi_file.slot_limit;
    uint32_t share = slots / 16 + 1;
    return slots && share < most ? share : most;
}

static tlmi_event *first_event(int64_t slot)
{
    return (tlmi_event *)(tlmi_file.slots[slot].map + TLMI_SLOT_HEADER_BYTES);
}

static bool push_pending(uint32_t slot)
{
    tlmi_recording_state *r = &tlmi_recording;
    if (r->pending_count == r->pending_room) {
        uint32_t room = r->pending_room * 2;
        uint32_t *bigger = tlmi_own_alloc(room * sizeof *bigger);
        if (!bigger)
            return false;
        for (uint32_t i = 0; i < r->pending_count; i++)
            bigger[i] = r->pending[(r->pending_head + i) % r->pending_room];
        tlmi_own_free(r->pending, r->pending_room * sizeof *r->pending);
        r->pending = bigger;
        r->pending_room = room;
        r->pending_head = 0;
    }
    r->pending[(r->pending_head + r->pending_count++) % r->pending_room] = slot;
    return true;
}

/* Closes a thread's segment and queues it; an empty one is the caller's to give back: then false. Under lock. */
static bool retire(tlmi_thread_cold *cold)
{
    if (cold->slot < 0)
        return true;
    uint32_t slot = (uint32_t)cold->slot;
    tlmi_slot_header *header = (tlmi_slot_header *)tlmi_file.slots[slot].map;
    const tlmi_event *events = first_event(slot);
    uint32_t count = (uint32_t)(cold->hot->cursor - events);
    while (count && !atomic_load_explicit(&events[count - 1].kind, memory_order_acquire))
        count--; /* a store of another thread that was under way when its segment was taken */
    cold->slot = -1;
    cold->thread_first += count;
    tlmi_recording.finished_events += count;
    if (count == 0)
        return false;
    tlmi_file.slots[slot].count = header->count = count;
    header->ticks_begin = events[0].ticks;
    header->ticks_end = events[count - 1].ticks;
    atomic_store_explicit(&header->closed, 1, memory_order_release);
    /* A few wait for the service thread's next sample: to wake it takes about as long as a block. What cannot be queued stays
     * as it is until the file is sealed. */
    if (push_pending(slot) && tlmi_recording.pending_count > share_of_slots(MOST_PENDING) / WAITING_SHARE)
        pthread_cond_signal(&tlmi_recording.wake);
    return true;
}

/* Takes the segment of the calling thread away from it. Under lock. */
static void retire_own(tlmi_thread_cold *cold)
{
    int64_t slot = cold->slot;
    if (!retire(cold))
        tlmi_segment_recycle((uint32_t)slot);
}

void tlmi_segment_recycle(uint32_t slot)
{
    tlmi_recording_state *r = &tlmi_recording;
    uint8_t *map = tlmi_file.slots[slot].map;
    uint32_t count = tlmi_file.slots[slot].count ? tlmi_file.slots[slot].count : TLMI_SEGMENT_EVENTS;
    tlmi_file.slots[slot].count = 0;
    tlmi_file_release(slot);
    memset(map + TLMI_SLOT_HEADER_BYTES, 0, count * sizeof(tlmi_event));
    tlmi_file.slots[slot].zeroed = true;
    if (r->ready_count >= share_of_slots(MOST_READY)) {
        tlmi_file_unmap(slot);
        return;
    }
    /* Kept out of the free slots: warm pages for the next thread that asks. */
    tlmi_file.slots[slot].type = TLMI_SLOT_EVENTS;
    tlmi_file.free_count--;
    r->ready[r->ready_count++] = slot;
}

void tlmi_segment_free_ready(void)
{
    while (tlmi_recording.ready_count) {
        uint32_t slot = tlmi_recording.ready[--tlmi_recording.ready_count];
        tlmi_file_release(slot);
        tlmi_file_unmap(slot);
    }
}

/* A mapped slot whose payload is zero, or -1. Under lock. */
static int64_t take_slot(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    if (r->ready_count) {
        uint32_t slot = r->ready[--r->ready_count];
        tlmi_slot_header *header = (tlmi_slot_header *)tlmi_file.slots[slot].map;
        memset(header, 0, sizeof *header);
        header->seq = tlmi_file.next_seq++;
        header->magic = TLMI_SLOT_MAGIC;
        tlmi_file.slots[slot].zeroed = false;
        return slot;
    }
    int64_t slot = tlmi_file_acquire(TLMI_SLOT_EVENTS);
    if (slot < 0)
        return -1;
    uint8_t *map = tlmi_file_map((uint32_t)slot);
    if (!map) {
        tlmi_file_release((uint32_t)slot);
        return -1;
    }
    if (!tlmi_file.slots[slot].zeroed)
        memset(map + TLMI_SLOT_HEADER_BYTES, 0, TLMI_SLOT_PAYLOAD_BYTES);
    tlmi_file.slots[slot].zeroed = false;
    return slot;
}

static void unlink_thread(tlmi_thread_cold *cold)
{
    for (tlmi_thread_cold **at = &tlmi_recording.threads; *at; at = &(*at)->next) {
        if (*at == cold) {
            *at = cold->next;
            return;
        }
    }
}

static void on_thread_exit(void *unused)
{
    (void)unused;
    tlmi_thread *self = &tlmi_self;
    pthread_mutex_lock(&tlmi_recording.lock);
    tlmi_thread_cold *cold = self->cold;
    if (cold) {
        retire_own(cold);
        unlink_thread(cold);
        tlmi_own_free(cold, sizeof *cold);
    }
    self->end = self->cursor = NULL;
    self->cold = NULL;
    pthread_mutex_unlock(&tlmi_recording.lock);
}

static void make_exit_key(void)
{
    pthread_key_create(&exit_key, on_thread_exit);
}

/* First event of the calling thread in this recording. Under lock. */
static tlmi_thread_cold *introduce(void)
{
    static uint32_t last_mark;
    tlmi_thread_cold *cold = tlmi_own_alloc(sizeof *cold);
    if (!cold)
        return NULL;
    cold->hot = &tlmi_self;
    cold->slot = -1;
    cold->number = ++tlmi_recording.thread_count;
    cold->next = tlmi_recording.threads;
    tlmi_recording.threads = cold;
    tlmi_self.cold = cold;
    tlmi_thread_mark = last_mark += 2;
    pthread_setspecific(exit_key, cold);
    return cold;
}

/* Gives the calling thread its next slot. Under lock. */
static bool settle(tlmi_thread_cold *cold)
{
    int64_t slot = take_slot();
    if (slot < 0)
        return false;
    tlmi_slot_header *header = (tlmi_slot_header *)tlmi_file.slots[slot].map;
    header->thread = cold->number;
    header->thread_first = cold->thread_first;
    header->ticks_begin = tlmi_clock_ticks();
    atomic_store_explicit(&header->type, TLMI_SLOT_EVENTS, memory_order_release);
    cold->slot = slot;
    tlmi_self.cursor = first_event(slot);
    tlmi_self.end = first_event(slot) + TLMI_SEGMENT_EVENTS;
    return true;
}

void tlmi_segment_stop(const char *why)
{
    if (atomic_exchange(&tlmi_recording.stopped, true))
        return;
    tlmi_file.header->state = TLMI_STATE_STOPPED;
    pthread_mutex_unlock(&tlmi_recording.lock);
    tlmi_meta_note("stopped", why);
    pthread_mutex_lock(&tlmi_recording.lock);
}

/* What threads still have under way goes into memory that is never read. */
static void abandon_segments(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    for (tlmi_thread_cold *cold = r->threads; cold; cold = cold->next) {
        if (cold->slot < 0)
            continue;
        cold->hot->end = NULL;
        r->finished_events += (uint64_t)(cold->hot->cursor - first_event(cold->slot));
        tlmi_file_let_go((uint32_t)cold->slot);
        cold->slot = -1;
    }
    r->pending_count = r->ready_count = 0;
}

bool tlmi_segment_check_file(void)
{
    static const char *const why[] = {
        [TLM_ENDED_CUT] = "another program cut the file short",
        [TLM_ENDED_REMOVED] = "the file was removed",
        [TLM_ENDED_FAILED] = "the disk failed",
    };
    if (tlmi_file.lost)
        return false;
    tlm_early_end how = tlmi_file_examine();
    if (how == TLM_ENDED_NOT)
        return true;
    tlmi_file.lost = how;
    abandon_segments();
    tlmi_segment_stop(why[how]);
    return false;
}

bool tlmi_segment_name(const char *name)
{
    pthread_mutex_lock(&tlmi_recording.lock);
    uint32_t number = tlmi_self.cold ? tlmi_self.cold->number : 0;
    pthread_mutex_unlock(&tlmi_recording.lock);
    uint64_t os_id = tlmi_system_thread_id();
    return number && tlmi_meta_thread(number, tlmi_system_is_main_thread(), os_id, tlmi_clock_ticks(), name);
}

static bool count_as_lost(void)
{
    tlmi_file_header *header = tlmi_file.header;
    if (header)
        atomic_fetch_add_explicit(&header->lost_events, 1, memory_order_relaxed);
    return false;
}

/* Gives the calling thread a slot, compacting and folding for it where that is needed. Under lock, which is let go
 * meanwhile. */
static bool settle_or_help(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    /* Overload: the thread that makes the events helps to put them away, so that nothing piles up and nothing is lost. */
    bool overload = r->compacting && r->pending_count > share_of_slots(MOST_PENDING);
    for (int attempt = 0; attempt < TRIES; attempt++) {
        if (!overload && tlmi_self.cold && settle(tlmi_self.cold))
            return true;
        if (!r->compacting || !tlmi_self.cold)
            return false;
        pthread_mutex_unlock(&r->lock);
        bool helped = tlmi_compact_step();
        pthread_mutex_lock(&r->lock);
        if (!helped && !overload)
            return tlmi_self.cold && settle(tlmi_self.cold); /* another thread may have made room */
        overload = false;
    }
    return false;
}

bool tlmi_segment_rotate(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    if (!atomic_load_explicit(&tlmi_recording_on, memory_order_acquire))
        return false;
    if (atomic_load_explicit(&r->stopped, memory_order_relaxed))
        return count_as_lost();
    tlmi_file_guard();
    pthread_mutex_lock(&r->lock);
    if (!atomic_load(&tlmi_recording_on)) { /* it ended while we waited; a segment would be of a file that is closed */
        pthread_mutex_unlock(&r->lock);
        return false;
    }
    if (!tlmi_segment_check_file()) {
        pthread_mutex_unlock(&r->lock);
        return count_as_lost();
    }
    bool fresh = tlmi_self.cold == NULL;
    tlmi_thread_cold *cold = fresh ? introduce() : tlmi_self.cold;
    if (cold)
        retire_own(cold);
    tlmi_self.end = tlmi_self.cursor = NULL;
    bool settled = cold && settle_or_help();
    bool ended = cold && !tlmi_self.cold; /* while the lock was let go; what is on now may be the next recording */
    bool on = !ended && atomic_load(&tlmi_recording_on);
    if (!settled && on)
        tlmi_segment_stop(tlmi_file.disk_full ? "the disk is full" : "no room within the size limit");
    pthread_mutex_unlock(&r->lock);
    if (settled && fresh)
        tlmi_segment_name("");
    return settled || (on && count_as_lost());
}

bool tlmi_segment_open(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    pthread_once(&exit_once, make_exit_key);
    r->pending_room = 256;
    r->pending = tlmi_own_alloc(r->pending_room * sizeof *r->pending);
    r->pending_head = r->pending_count = r->ready_count = r->thread_count = 0;
    r->threads = NULL;
    r->finished_events = r->compacted_events = r->compact_ns = r->fold_ns = 0;
    r->blocks = (tlmi_block_writer){.slot = -1};
    atomic_store(&r->stopped, false);
    return r->pending != NULL;
}

void tlmi_segment_close(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    tlmi_own_free(r->pending, r->pending_room * sizeof *r->pending);
    r->pending = NULL;
    r->pending_room = r->pending_count = 0;
}

void tlmi_segment_close_all(void)
{
    tlmi_thread_cold *next;
    for (tlmi_thread_cold *cold = tlmi_recording.threads; cold; cold = next) {
        next = cold->next;
        int64_t slot = cold->slot;
        cold->hot->end = NULL;
        bool is_empty = !retire(cold);
        if (slot >= 0 && cold->hot != &tlmi_self)
            tlmi_file_let_go((uint32_t)slot); /* a store may be on its way there */
        if (is_empty)
            tlmi_file_release((uint32_t)slot);
        cold->hot->cold = NULL;
        tlmi_own_free(cold, sizeof *cold);
    }
    tlmi_recording.threads = NULL;
}

void tlmi_segment_forget(void)
{
    tlmi_thread_cold *next;
    for (tlmi_thread_cold *cold = tlmi_recording.threads; cold; cold = next) {
        next = cold->next;
        tlmi_own_free(cold, sizeof *cold);
    }
    tlmi_recording.threads = NULL;
    tlmi_self.end = tlmi_self.cursor = NULL;
    tlmi_self.cold = NULL;
    tlmi_segment_close();
}

uint64_t tlmi_segment_event_count(void)
{
    uint64_t events = tlmi_recording.finished_events;
    for (const tlmi_thread_cold *cold = tlmi_recording.threads; cold; cold = cold->next)
        if (cold->slot >= 0)
            events += (uint64_t)(cold->hot->cursor - first_event(cold->slot));
    return events;
}
