/* SPDX-License-Identifier: MIT
 * fold.c: makes room under a size limit. The oldest events of all threads are merged in time order into the fold state,
 * a checkpoint is written, and the slots whose blocks are all folded become free.
 *
 * A count per thread says which events are folded, never the time, so each event is counted exactly once whatever a slow
 * thread does. Under recording.work, which also keeps every segment in its place meanwhile.
 */
#include <string.h>

#include "log/fold.h"

typedef struct { /* consecutive events of one thread: a block, or a segment that is not compacted yet */
    uint64_t thread_first, ticks_begin, ticks_end;
    uint64_t offset;          /* of the block in the file; 0: a segment */
    const tlmi_event *events; /* of the segment */
    uint32_t thread, count, bytes, slot;
} piece;

typedef struct {    /* one thread's place in the merge */
    uint64_t ticks; /* of the next event */
    uint32_t next_piece, last_piece;
    uint32_t at, count;
    const tlmi_event *events;
    tlmi_event *decoded; /* ours, `room` events; NULL while a segment is read in place */
    uint32_t room;
} cursor;

static struct {
    bool open;
    tlmi_fold_state state;
    piece *pieces;
    uint32_t pieces_room, pieces_count;
    uint32_t slots; /* of the file, when the pieces were gathered */
    uint64_t horizon;
} fold;

void tlmi_fold_close(void)
{
    if (fold.open)
        tlmi_fold_state_close(&fold.state);
    tlmi_own_free(fold.pieces, fold.pieces_room * sizeof *fold.pieces);
    memset(&fold, 0, sizeof fold);
    tlmi_checkpoint_close();
}

bool tlmi_fold_wanted(void)
{
    uint32_t room = tlmi_file_room();
    if (room == UINT32_MAX)
        return false;
    /* A new checkpoint is written while the one in force is still there; it takes a quarter of the room at most. */
    uint32_t slots = tlmi_file.slot_limit ? tlmi_file.slot_limit : tlmi_file.slot_count;
    uint32_t likely = fold.open ? 2 * tlmi_checkpoint_slots() : slots;
    likely = likely < slots / 8 ? slots / 8 : likely > slots / 4 ? slots / 4 : likely;
    return room < 3 + likely;
}

static uint64_t consumed(uint32_t thread)
{
    return thread < fold.state.threads_room ? fold.state.threads[thread].consumed : 0;
}

static bool add_piece(piece added)
{
    if (added.count == 0 || added.thread_first + added.count <= consumed(added.thread))
        return true;
    if (fold.pieces_count == fold.pieces_room) {
        uint32_t room = fold.pieces_room ? fold.pieces_room * 2 : 4096;
        piece *bigger = tlmi_own_alloc(room * sizeof *bigger);
        if (!bigger)
            return false;
        if (fold.pieces)
            memcpy(bigger, fold.pieces, fold.pieces_count * sizeof *bigger);
        tlmi_own_free(fold.pieces, fold.pieces_room * sizeof *fold.pieces);
        fold.pieces = bigger;
        fold.pieces_room = room;
    }
    fold.pieces[fold.pieces_count++] = added;
    return true;
}

static bool add_blocks_of(uint32_t slot)
{
    uint64_t start = tlmi_file_slot_offset(slot);
    tlmi_slot_header header;
    tlmi_block_header block;
    bool good = tlmi_file_read(start, &header, sizeof header);
    for (uint64_t at = 0; good && at + sizeof block <= header.used_bytes; at += tlmi_block_bytes(block.payload_bytes)) {
        uint64_t offset = start + sizeof header + at;
        if (!tlmi_file_read(offset, &block, sizeof block) || !tlmi_block_valid(&block))
            return false;
        if (block.type == TLMI_BLOCK_EVENTS)
            good = add_piece((piece){block.thread_first, block.ticks_begin, block.ticks_end, offset, NULL, block.thread,
                                     block.count, tlmi_block_bytes(block.payload_bytes), slot});
    }
    return good;
}

static bool add_segment(uint32_t slot)
{
    const tlmi_slot_header *header = (const tlmi_slot_header *)tlmi_file.slots[slot].map;
    if (!header || atomic_load_explicit(&header->type, memory_order_acquire) != TLMI_SLOT_EVENTS)
        return true;
    const tlmi_event *events = (const tlmi_event *)(header + 1);
    uint32_t count = 0;
    while (count < TLMI_SEGMENT_EVENTS && atomic_load_explicit(&events[count].kind, memory_order_acquire))
        count++;
    if (count == 0)
        return true;
    return add_piece((piece){header->thread_first, events[0].ticks, events[count - 1].ticks, 0, events, header->thread,
                             count, 0, slot});
}

static bool gather_pieces(void)
{
    bool good = true;
    fold.pieces_count = 0;
    pthread_mutex_lock(&tlmi_recording.lock);
    fold.slots = tlmi_file.slot_count;
    for (uint32_t slot = 0; slot < fold.slots && good; slot++) {
        if (tlmi_file.slots[slot].type == TLMI_SLOT_BLOCKS && !tlmi_checkpoint_owns(slot))
            good = add_blocks_of(slot);
        else if (tlmi_file.slots[slot].type == TLMI_SLOT_EVENTS)
            good = add_segment(slot);
    }
    pthread_mutex_unlock(&tlmi_recording.lock);
    return good;
}

/* Heap sort: in place, no recursion, no allocation. */
static void sort_pieces(bool (*before)(const piece *, const piece *))
{
    piece *p = fold.pieces;
    for (uint32_t end = fold.pieces_count, start = end / 2; end > 1;) {
        if (start)
            start--;
        else {
            piece largest = p[0];
            p[0] = p[--end];
            p[end] = largest;
        }
        for (uint32_t root = start, child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && before(&p[child], &p[child + 1]))
                child++;
            if (!before(&p[root], &p[child]))
                break;
            piece swap = p[root];
            p[root] = p[child];
            p[child] = swap;
        }
    }
}

static bool ends_before(const piece *a, const piece *b)
{
    return a->ticks_end < b->ticks_end;
}

static bool in_thread_order(const piece *a, const piece *b)
{
    return a->thread != b->thread ? a->thread < b->thread : a->thread_first < b->thread_first;
}

/* The time up to which to fold: so that a quarter of the room in use becomes free. */
static bool choose_horizon(void)
{
    uint64_t wanted = (uint64_t)fold.slots * TLMI_SLOT_BYTES / 4, gained = 0;
    sort_pieces(ends_before);
    fold.horizon = 0;
    for (uint32_t i = 0; i < fold.pieces_count && gained < wanted; i++) {
        if (fold.pieces[i].offset == 0)
            continue;
        gained += fold.pieces[i].bytes;
        fold.horizon = fold.pieces[i].ticks_end;
    }
    return gained > 0;
}

static uint64_t quantised(uint64_t ticks)
{
    uint32_t shift = tlmi_file.header->time_shift;
    return ticks >> shift << shift;
}

/* Makes the thread's next piece current. false: it could not be read. At the end, count is 0. */
static bool load_piece(cursor *thread)
{
    thread->at = thread->count = 0;
    while (thread->next_piece < thread->last_piece) {
        const piece *next = &fold.pieces[thread->next_piece++];
        tlmi_fold_thread *owner = tlmi_fold_state_thread(&fold.state, next->thread);
        if (!owner)
            return false;
        if (next->thread_first + next->count <= owner->consumed)
            continue;
        if (owner->consumed < next->thread_first)
            owner->consumed = next->thread_first; /* events between were lost, and are counted as that */
        thread->at = (uint32_t)(owner->consumed - next->thread_first);
        thread->count = next->count;
        thread->events = next->events;
        if (next->offset) {
            tlmi_block_header *block = tlmi_block_buffer();
            if (!tlmi_file_read(next->offset, block, next->bytes))
                return false;
            if (thread->room < next->count) {
                tlmi_own_free(thread->decoded, thread->room * sizeof(tlmi_event));
                thread->decoded = tlmi_own_alloc(next->count * sizeof(tlmi_event));
                thread->room = thread->decoded ? next->count : 0;
            }
            if (!thread->decoded || !tlmi_codec_decode(block, tlmi_file.header->time_shift, thread->decoded))
                return false;
            thread->events = thread->decoded;
        }
        thread->ticks = quantised(thread->events[thread->at].ticks);
        return true;
    }
    return true;
}

static bool comes_first(const cursor *a, const cursor *b)
{
    if (a->ticks != b->ticks)
        return a->ticks < b->ticks;
    return fold.pieces[a->last_piece - 1].thread < fold.pieces[b->last_piece - 1].thread;
}

static void sift_down(cursor *heap, uint32_t count, uint32_t root)
{
    for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && comes_first(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_first(&heap[child], &heap[root]))
            break;
        cursor swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

/* Applies events of the first thread for as long as it stays the first. false: no memory, or a block that is damaged. */
static bool advance(cursor *heap, uint32_t count)
{
    cursor *first = &heap[0];
    const cursor *rival = count < 2 ? NULL : count == 2 || comes_first(&heap[1], &heap[2]) ? &heap[1] : &heap[2];
    uint32_t thread = fold.pieces[first->last_piece - 1].thread;
    do {
        if (!tlmi_fold_state_apply(&fold.state, thread, &first->events[first->at], first->ticks))
            return false;
        if (++first->at == first->count && !load_piece(first))
            return false;
        if (first->count == 0)
            return true;
        first->ticks = quantised(first->events[first->at].ticks);
    } while (first->ticks <= fold.horizon && (!rival || comes_first(first, rival)));
    return true;
}

static bool merge(cursor *heap, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;)
        sift_down(heap, count, i);
    while (count && heap[0].ticks <= fold.horizon) {
        if (!advance(heap, count))
            return false;
        if (heap[0].count == 0) {
            tlmi_own_free(heap[0].decoded, heap[0].room * sizeof(tlmi_event));
            heap[0] = heap[--count];
            heap[count] = (cursor){0};
        }
        sift_down(heap, count, 0);
    }
    return true;
}

/* One cursor per thread that has something up to the horizon. */
static uint32_t open_cursors(cursor *cursors, bool *good)
{
    uint32_t count = 0;
    for (uint32_t i = 0, end; i < fold.pieces_count && *good; i = end) {
        for (end = i + 1; end < fold.pieces_count && fold.pieces[end].thread == fold.pieces[i].thread;)
            end++;
        cursor thread = {.next_piece = i, .last_piece = end};
        if (quantised(fold.pieces[i].ticks_begin) > fold.horizon)
            continue;
        *good = load_piece(&thread);
        if (*good && thread.count)
            cursors[count++] = thread;
    }
    return count;
}

static bool fold_to_horizon(void)
{
    size_t bytes = (fold.pieces_count + 1) * sizeof(cursor);
    cursor *cursors = tlmi_own_alloc(bytes);
    if (!cursors)
        return false;
    sort_pieces(in_thread_order);
    bool good = true;
    uint32_t count = open_cursors(cursors, &good);
    good = good && merge(cursors, count);
    for (uint32_t i = 0; i < count; i++)
        tlmi_own_free(cursors[i].decoded, cursors[i].room * sizeof(tlmi_event));
    tlmi_own_free(cursors, bytes);
    fold.state.totals.horizon_ticks = quantised(fold.horizon);
    return good;
}

/* Gives back every blocks slot in which nothing unfolded is left. */
static uint32_t free_folded_slots(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    uint32_t freed = 0;
    fold.pieces_count = 0;
    pthread_mutex_lock(&r->lock);
    for (uint32_t slot = 0; slot < tlmi_file.slot_count; slot++) {
        uint32_t before = fold.pieces_count;
        if (tlmi_file.slots[slot].type != TLMI_SLOT_BLOCKS || tlmi_checkpoint_owns(slot) || slot == r->blocks.slot)
            continue;
        if (!add_blocks_of(slot) || fold.pieces_count != before)
            continue;
        tlmi_file_release(slot);
        freed++;
    }
    pthread_mutex_unlock(&r->lock);
    return freed;
}

static bool limited(void)
{
    tlmi_recording_state *r = &tlmi_recording;
    pthread_mutex_lock(&r->lock);
    bool known = tlmi_file_room() != UINT32_MAX;
    pthread_mutex_unlock(&r->lock);
    return known;
}

bool tlmi_fold_run(void)
{
    if (!limited()) /* there is nothing to make room for */
        return false;
    if (!fold.open && !(fold.open = tlmi_fold_state_open(&fold.state)))
        return false;
    uint64_t start = tlmi_clock_thread_ns();
    bool good = gather_pieces() && choose_horizon() && fold_to_horizon() && tlmi_checkpoint_write(&fold.state) &&
                free_folded_slots() > 0;
    tlmi_recording.fold_ns += tlmi_clock_thread_ns() - start;
    return good;
}
