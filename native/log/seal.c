/* SPDX-License-Identifier: MIT
 * seal.c: the end of a recording: everything compacted, names packed, holes closed, an index, the file cut to its length.
 *
 * A kill in the middle leaves a readable file: a slot is copied under its seq before the original is freed, and the index
 * counts only when the header names it. Under recording.work, with no thread recording any more.
 */
#include <string.h>
#include <unistd.h>

#include "log/recording.h"

enum { NAMES_PER_BLOCK = 131072, ENTRIES_PER_BLOCK = 3500 };

typedef struct { /* docs/format.md, "Index" */
    uint64_t offset, seq, thread_first, ticks_begin, ticks_end;
    uint32_t bytes, thread, count, type;
    uint64_t unused;
} index_entry;
_Static_assert(sizeof(index_entry) == 64, "docs/format.md");

/* ---- names ---- */

static uint64_t name_blocks; /* orders them, wherever they are moved to */

static bool write_names(const uint8_t *records, uint32_t bytes)
{
    tlmi_block_header *block = tlmi_block_buffer();
    tlmi_block_begin(block, TLMI_BLOCK_META);
    block->seq = ++name_blocks;
    tlmi_block_column(block, 0, records, bytes, TLMI_DEFLATE_MATCHES);
    tlmi_block_finish(block);
    return tlmi_block_append(&tlmi_recording.blocks, block) != 0;
}

/* Cuts a slot's records into blocks, at record boundaries. */
static bool pack_names(void *unused, const uint8_t *records, uint32_t bytes)
{
    (void)unused;
    uint32_t start = 0, end = 0;
    while (end < bytes) {
        uint32_t record_bytes;
        memcpy(&record_bytes, records + end, 4);
        if (record_bytes < 16 || record_bytes > bytes - end)
            return false; /* another program has written here */
        if (end + record_bytes - start > NAMES_PER_BLOCK && end > start) {
            if (!write_names(records + start, end - start))
                return false;
            start = end;
        }
        end += record_bytes;
    }
    return start == end || write_names(records + start, end - start);
}

/* ---- holes ---- */

/* Copies a blocks slot to a free one and frees it. `buffer` has room for a slot. */
static bool move_slot(uint32_t from, uint32_t to, uint8_t *buffer)
{
    if (!tlmi_file_read(tlmi_file_slot_offset(from), buffer, TLMI_SLOT_BYTES))
        return false;
    tlmi_file_unmap(to);
    ((tlmi_slot_header *)buffer)->seq = tlmi_file.next_seq++;
    if (!tlmi_file_write(tlmi_file_slot_offset(to), buffer, TLMI_SLOT_BYTES))
        return false;
    tlmi_file.slots[to].type = tlmi_file.slots[from].type;
    tlmi_file.free_count--;
    tlmi_file_release(from);
    if (tlmi_recording.blocks.slot == from)
        tlmi_recording.blocks.slot = to;
    return true;
}

static int64_t lowest_free(void)
{
    for (uint32_t slot = 0; slot < tlmi_file.slot_count; slot++)
        if (tlmi_file.slots[slot].type == TLMI_SLOT_FREE)
            return slot;
    return -1;
}

static int64_t highest_used(void)
{
    int64_t slot = (int64_t)tlmi_file.slot_count - 1;
    while (slot >= 0 && tlmi_file.slots[slot].type == TLMI_SLOT_FREE)
        slot--;
    return slot;
}

/* Moves the last slots into the holes, and the one that is not full to the end, where the file is cut. */
static void close_holes(void)
{
    bool good = true;
    uint8_t *buffer = tlmi_own_alloc(TLMI_SLOT_BYTES);
    if (!buffer)
        return;
    for (int64_t hole = lowest_free(), last = highest_used(); good && hole >= 0 && hole < last;
         hole = lowest_free(), last = highest_used())
        good = move_slot((uint32_t)last, (uint32_t)hole, buffer);
    int64_t unfilled = tlmi_recording.blocks.slot, last = highest_used(), spare = lowest_free();
    if (good && unfilled >= 0 && unfilled != last && spare >= 0)
        good = move_slot((uint32_t)unfilled, (uint32_t)spare, buffer) &&
               move_slot((uint32_t)last, (uint32_t)unfilled, buffer) &&
               move_slot((uint32_t)spare, (uint32_t)last, buffer);
    tlmi_own_free(buffer, TLMI_SLOT_BYTES);
}

/* ---- index ---- */

/* Counts the blocks of the file, and describes them when there is somewhere to. */
static uint64_t list_blocks(index_entry *entries, uint64_t room)
{
    uint64_t count = 0;
    for (uint32_t slot = 0; slot < tlmi_file.slot_count; slot++) {
        uint64_t start = tlmi_file_slot_offset(slot);
        tlmi_slot_header header;
        tlmi_block_header b;
        if (tlmi_file.slots[slot].type != TLMI_SLOT_BLOCKS || !tlmi_file_read(start, &header, sizeof header))
            continue;
        for (uint64_t at = 0; at + sizeof b <= header.used_bytes; at += tlmi_block_bytes(b.payload_bytes), count++) {
            uint64_t offset = start + sizeof header + at;
            if (!tlmi_file_read(offset, &b, sizeof b) || !tlmi_block_valid(&b))
                break;
            if (count < room)
                entries[count] = (index_entry){offset,         b.seq,
                                               b.thread_first, b.ticks_begin,
                                               b.ticks_end,    tlmi_block_bytes(b.payload_bytes),
                                               b.thread,       b.count,
                                               b.type,         0};
        }
    }
    return count;
}

/* Writes the entries from the last part to the first, each naming the next. 0: no room. */
static uint64_t write_index(const index_entry *entries, uint64_t count, uint8_t *planes)
{
    tlmi_block_header *block = tlmi_block_buffer();
    uint64_t next = 0;
    for (uint64_t part = (count + ENTRIES_PER_BLOCK - 1) / ENTRIES_PER_BLOCK; part-- > 0;) {
        uint64_t first = part * ENTRIES_PER_BLOCK;
        uint32_t here = (uint32_t)(count - first < ENTRIES_PER_BLOCK ? count - first : ENTRIES_PER_BLOCK);
        tlmi_planes_split((const uint8_t *)(entries + first), sizeof *entries, here, planes);
        tlmi_block_begin(block, TLMI_BLOCK_INDEX);
        tlmi_block_column(block, 0, planes, here * (uint32_t)sizeof *entries, TLMI_DEFLATE_MATCHES);
        block->part = (uint16_t)part;
        block->count = here;
        block->seq = next;
        tlmi_block_finish(block);
        next = tlmi_block_append(&tlmi_recording.blocks, block);
        if (!next)
            return 0;
    }
    return next;
}

static uint64_t add_index(void)
{
    uint64_t count = list_blocks(NULL, 0), offset = 0;
    size_t bytes = (count + 1) * sizeof(index_entry), planes_bytes = ENTRIES_PER_BLOCK * sizeof(index_entry);
    index_entry *entries = tlmi_own_alloc(bytes);
    uint8_t *planes = tlmi_own_alloc(planes_bytes);
    if (entries && planes && list_blocks(entries, count) == count)
        offset = write_index(entries, count, planes);
    tlmi_own_free(entries, bytes);
    tlmi_own_free(planes, planes_bytes);
    return offset;
}

static void cut_file(void)
{
    int64_t last = highest_used();
    uint64_t end = TLMI_HEADER_BYTES;
    if (last >= 0) {
        tlmi_slot_header header;
        end = tlmi_file_slot_offset((uint32_t)last) + TLMI_SLOT_BYTES;
        if (tlmi_file_read(tlmi_file_slot_offset((uint32_t)last), &header, sizeof header) &&
            tlmi_file.slots[last].type == TLMI_SLOT_BLOCKS)
            end = tlmi_file_slot_offset((uint32_t)last) + TLMI_SLOT_HEADER_BYTES + header.used_bytes;
    }
    for (int64_t slot = last + 1; slot < tlmi_file.slot_count; slot++)
        tlmi_file_unmap((uint32_t)slot);
    if (ftruncate(tlmi_file_number(), (off_t)end) == 0) {
        tlmi_file.length = end;
        tlmi_file.slot_count = (uint32_t)(last + 1);
        tlmi_file.header->slot_count = tlmi_file.slot_count;
    }
}

bool tlmi_seal(void)
{
    tlmi_file_header *header = tlmi_file.header;
    header->total_events = tlmi_recording.finished_events;
    if (!tlmi_compact_all())
        return false;
    pthread_mutex_lock(&tlmi_recording.lock);
    tlmi_segment_free_ready();
    pthread_mutex_unlock(&tlmi_recording.lock);
    name_blocks = 0;
    if (!tlmi_meta_each(pack_names, NULL))
        return false;
    pthread_mutex_lock(&tlmi_recording.lock);
    tlmi_meta_release();
    close_holes(); /* what stays is a longer file */
    pthread_mutex_unlock(&tlmi_recording.lock);
    header->index_offset = add_index(); /* without one, readers walk the slots */
    atomic_thread_fence(memory_order_release);
    header->state = TLMI_STATE_SEALED;
    pthread_mutex_lock(&tlmi_recording.lock);
    cut_file();
    pthread_mutex_unlock(&tlmi_recording.lock);
    return true;
}
