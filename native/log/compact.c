/* SPDX-License-Identifier: MIT
 * compact.c: turns full segments into blocks while the program runs, and asks for a fold when room gets short.
 *
 * A block is committed before its segment is given back, both under the same seq, so a reader that sees both takes one.
 * One compaction at a time, under recording.work, usually in the service thread; under overload in the program's threads.
 */
#include "log/fold.h"

static tlmi_block_header *buffer; /* one block being built */

bool tlmi_compact_open(void)
{
    buffer = tlmi_own_alloc(TLMI_SLOT_BYTES + TLMI_BLOCK_HEADER_BYTES);
    return buffer != NULL;
}

void tlmi_compact_close(void)
{
    tlmi_own_free(buffer, TLMI_SLOT_BYTES + TLMI_BLOCK_HEADER_BYTES);
    buffer = NULL;
}

tlmi_block_header *tlmi_block_buffer(void)
{
    return buffer;
}

static int64_t take_blocks_slot(void)
{
    pthread_mutex_lock(&tlmi_recording.lock);
    int64_t slot = tlmi_file_acquire(TLMI_SLOT_BLOCKS);
    if (slot < 0) {
        tlmi_segment_free_ready();
        slot = tlmi_file_acquire(TLMI_SLOT_BLOCKS);
    }
    if (slot >= 0)
        tlmi_file_unmap((uint32_t)slot);
    pthread_mutex_unlock(&tlmi_recording.lock);
    return slot;
}

uint64_t tlmi_block_append(tlmi_block_writer *writer, const tlmi_block_header *block)
{
    uint32_t bytes = tlmi_block_bytes(block->payload_bytes);
    if (writer->slot < 0 || writer->used_bytes + bytes > TLMI_SLOT_PAYLOAD_BYTES) {
        int64_t slot = take_blocks_slot();
        if (slot < 0)
            return 0;
        *writer = (tlmi_block_writer){.slot = slot};
    }
    uint64_t start = tlmi_file_slot_offset((uint32_t)writer->slot);
    uint64_t offset = start + TLMI_SLOT_HEADER_BYTES + writer->used_bytes;
    uint32_t used = writer->used_bytes + bytes;
    if (!tlmi_file_write(offset, block, bytes) ||
        !tlmi_file_write(start + offsetof(tlmi_slot_header, used_bytes), &used, sizeof used))
        return 0;
    writer->used_bytes = used;
    return offset;
}

static bool write_block(const tlmi_slot_header *segment, uint32_t count)
{
    const tlmi_event *events = (const tlmi_event *)(segment + 1);
    tlmi_codec_encode(events, count, tlmi_file.header->time_shift, buffer);
    buffer->seq = segment->seq;
    buffer->thread = segment->thread;
    buffer->thread_first = segment->thread_first;
    tlmi_block_finish(buffer);
    return tlmi_block_append(&tlmi_recording.blocks, buffer) != 0;
}

/* `segment` is what is mapped of the slot; the table of slots may grow, and move, while no lock is held. */
static bool compact_pending(uint32_t slot, const tlmi_slot_header *segment)
{
    tlmi_recording_state *r = &tlmi_recording;
    uint64_t start = tlmi_clock_thread_ns();
    pthread_mutex_lock(&r->lock);
    uint32_t count = tlmi_file.slots[slot].count;
    pthread_mutex_unlock(&r->lock);
    bool done = write_block(segment, count) || (tlmi_fold_run() && write_block(segment, count));
    pthread_mutex_lock(&r->lock);
    if (done) {
        r->compacted_events += count;
        tlmi_segment_recycle(slot);
    } else { /* it keeps its turn */
        r->pending_head = (r->pending_head + r->pending_room - 1) % r->pending_room;
        r->pending[r->pending_head] = slot;
        r->pending_count++;
    }
    r->compact_ns += tlmi_clock_thread_ns() - start;
    pthread_mutex_unlock(&r->lock);
    return done;
}

/* Says once in the file that from here on old events are folded because the disk had no more room. */
static void note_full_disk(void)
{
    static uint64_t noted_for;
    pthread_mutex_lock(&tlmi_recording.lock);
    bool full = tlmi_file.disk_full;
    pthread_mutex_unlock(&tlmi_recording.lock);
    if (!full || noted_for == tlmi_file.header->created_unix_ns)
        return;
    noted_for = tlmi_file.header->created_unix_ns;
    tlmi_meta_note("disk_full", "the disk had no more room: the oldest events are folded into sums");
}

bool tlmi_compact_step(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    uint32_t slot = 0;
    const tlmi_slot_header *segment = NULL;
    pthread_mutex_lock(&r->work);
    pthread_mutex_lock(&r->lock);
    if (!r->pending) { /* the recording is over: a thread came to help too late */
        pthread_mutex_unlock(&r->lock);
        pthread_mutex_unlock(&r->work);
        return false;
    }
    bool fold = tlmi_segment_check_file() && tlmi_fold_wanted();
    if (r->pending_count) {
        slot = r->pending[r->pending_head];
        r->pending_head = (r->pending_head + 1) % r->pending_room;
        r->pending_count--;
        segment = (const tlmi_slot_header *)tlmi_file_map(slot); /* NULL: it stays closed until the file is sealed */
    }
    pthread_mutex_unlock(&r->lock);
    bool done = fold && tlmi_fold_run();
    if (segment)
        done = compact_pending(slot, segment) || done;
    note_full_disk();
    pthread_mutex_unlock(&r->work);
    return done;
}

bool tlmi_compact_all(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    bool all = true;
    r->pending_count = 0;
    for (uint32_t slot = 0; slot < tlmi_file.slot_count; slot++) {
        bool is_closed = tlmi_file.slots[slot].type == TLMI_SLOT_EVENTS && tlmi_file.slots[slot].count > 0;
        if (is_closed && tlmi_file_map(slot))
            all = compact_pending(slot, (const tlmi_slot_header *)tlmi_file.slots[slot].map) && all;
    }
    return all;
}
