/* SPDX-License-Identifier: MIT
 * checkpoint.c: writes the fold state into the file; docs/format.md, "Fold", is the contract.
 *
 * A checkpoint is written whole into slots of its own, then the file header's fold_number makes it the one in force, then
 * the slots of the one before are given back. A kill at any moment leaves one whole checkpoint. Under work.
 */
#include <string.h>

#include "log/fold.h"

enum {
    SECTION_TOTALS,
    SECTION_SITES,
    SECTION_THREADS,
    SECTION_SAMPLES,
    SECTION_MARKS,
    SECTION_LIVE,
    SECTION_HEAP,
    SECTION_PASSED,
    SECTIONS,
    RAW_BYTES = 196608, /* of entries in one block: fits a slot even when it does not compress */
    MOST_SLOTS = 8192,
    LIVE_BYTES = 40,
    LIVE_TICKS_BITS = 11, /* dropped from the time of a live object's birth: its number tells the order */
};

typedef struct {
    const uint8_t *entries;
    uint32_t entry_bytes;
    uint64_t count;
} section;
typedef struct { /* section 6 */
    uint64_t ticks, address, bytes;
    uint32_t site;
    uint16_t thread;
    uint8_t place, kind;
} heap_entry;

static uint32_t slots_in_force[MOST_SLOTS], slots_being_written[MOST_SLOTS];
static uint32_t in_force_count, being_written_count;
static uint64_t bytes_each = 4; /* on disk of one live object, as the last checkpoint had it */

uint32_t tlmi_checkpoint_slots(void)
{
    return in_force_count;
}

bool tlmi_checkpoint_owns(uint32_t slot)
{
    for (uint32_t i = 0; i < in_force_count; i++)
        if (slots_in_force[i] == slot)
            return true;
    return false;
}

void tlmi_checkpoint_close(void)
{
    in_force_count = being_written_count = 0;
    bytes_each = 4;
}

static void give_back(uint32_t *slots, uint32_t *count)
{
    pthread_mutex_lock(&tlmi_recording.lock);
    for (uint32_t i = 0; i < *count; i++)
        tlmi_file_release(slots[i]);
    *count = 0;
    pthread_mutex_unlock(&tlmi_recording.lock);
}

/* Sorts by object number: a few passes over the bytes that differ. `other` has the same room. */
static tlmi_live *sort_by_object(tlmi_live *entries, tlmi_live *other, uint64_t count, uint64_t largest)
{
    for (uint32_t shift = 0; shift < 64 && largest >> shift; shift += 8) {
        uint64_t starts[257] = {0};
        for (uint64_t i = 0; i < count; i++)
            starts[(entries[i].object >> shift & 255) + 1]++;
        for (int byte = 0; byte < 256; byte++)
            starts[byte + 1] += starts[byte];
        for (uint64_t i = 0; i < count; i++)
            other[starts[entries[i].object >> shift & 255]++] = entries[i];
        tlmi_live *swap = entries;
        entries = other;
        other = swap;
    }
    return entries;
}

/* Turns sorted live objects into the entries of section 5, in place. */
static void pack_live(tlmi_live *entries, uint64_t count)
{
    uint64_t per_block = RAW_BYTES / LIVE_BYTES, object = 0, ticks = 0, address = 0;
    for (uint64_t i = 0; i < count; i++) {
        tlmi_live from = entries[i];
        if (i % per_block == 0)
            object = ticks = address = 0;
        from.ticks = from.ticks >> LIVE_TICKS_BITS << LIVE_TICKS_BITS;
        uint64_t step = from.address - address;
        uint64_t zigzag = (step << 1) ^ (0 - (step >> 63));
        uint64_t fields[4] = {from.object - object, from.ticks - ticks, zigzag, from.bytes};
        object = from.object;
        ticks = from.ticks;
        address = from.address;
        memcpy(&entries[i], fields, sizeof fields);
    }
}
_Static_assert(sizeof(tlmi_live) == LIVE_BYTES && offsetof(tlmi_live, site) == 32, "section 5 is packed in place");

static bool write_section(tlmi_block_writer *writer, const section *from, uint32_t number, uint64_t checkpoint,
                          uint64_t blocks)
{
    static uint8_t *planes;
    tlmi_block_header *block = tlmi_block_buffer();
    uint64_t per_block = RAW_BYTES / from->entry_bytes;
    if (!planes && !(planes = tlmi_own_alloc(RAW_BYTES)))
        return false;
    uint16_t part = 0;
    for (uint64_t first = 0; first < from->count; first += per_block, part++) {
        uint32_t count = (uint32_t)(from->count - first < per_block ? from->count - first : per_block);
        tlmi_planes_split(from->entries + first * from->entry_bytes, from->entry_bytes, count, planes);
        tlmi_block_begin(block, TLMI_BLOCK_FOLD);
        tlmi_block_column(block, 0, planes, count * from->entry_bytes, TLMI_DEFLATE_MATCHES);
        block->part = part;
        block->seq = checkpoint;
        block->thread = number;
        block->count = count;
        block->thread_first = blocks;
        tlmi_block_finish(block);
        int64_t before = writer->slot;
        bool written = tlmi_block_append(writer, block) != 0;
        if (writer->slot != before && writer->slot >= 0) {
            if (being_written_count == MOST_SLOTS)
                return false;
            slots_being_written[being_written_count++] = (uint32_t)writer->slot;
        }
        if (!written)
            return false;
    }
    return true;
}

static bool write_sections(const section *sections, uint64_t checkpoint)
{
    tlmi_block_writer writer = {.slot = -1};
    uint64_t blocks = 0;
    for (int i = 0; i < SECTIONS; i++) {
        uint64_t per_block = RAW_BYTES / sections[i].entry_bytes;
        blocks += (sections[i].count + per_block - 1) / per_block;
    }
    bool good = true;
    for (int i = 0; i < SECTIONS && good; i++)
        good = write_section(&writer, &sections[i], (uint32_t)i, checkpoint, blocks);
    if (!good)
        give_back(slots_being_written, &being_written_count);
    return good;
}

static uint64_t collect_live(const tlmi_fold_state *state, uint64_t stride, tlmi_live *to)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < state->live_room; i++) {
        const tlmi_live *live = &state->live[i];
        if (live->address && live->device != TLM_DEVICE_HEAP && tlmi_fold_is_listed(live->object, stride))
            to[count++] = *live;
    }
    return count;
}

/* Sampled blocks in the order of their births. `first` and `second` have room for all of them. */
static void collect_heap(const tlmi_fold_state *state, tlmi_live *first, tlmi_live *second, heap_entry *to)
{
    uint64_t count = 0, latest = 0;
    for (uint64_t i = 0; i < state->live_room; i++) {
        if (state->live[i].address && state->live[i].device == TLM_DEVICE_HEAP) {
            first[count] = state->live[i];
            first[count].object = first[count].ticks;
            latest = latest < first[count].ticks ? first[count].ticks : latest;
            count++;
        }
    }
    const tlmi_live *from = sort_by_object(first, second, count, latest);
    for (uint64_t i = 0; i < count; i++)
        to[i] = (heap_entry){.ticks = from[i].ticks,
                             .address = from[i].address,
                             .bytes = from[i].bytes,
                             .site = from[i].site,
                             .thread = from[i].thread,
                             .place = (uint8_t)(from[i].place & 15) | (uint8_t)(state->heap_halving << 4),
                             .kind = TLM_KIND_ALLOC};
}

static uint64_t collect_sites(const tlmi_fold_state *state, tlmi_site_sums *to)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < state->sites_room; i++)
        if (state->sites[i].alloc_count || state->sites[i].free_calls)
            to[count++] = state->sites[i];
    return count;
}

static uint64_t collect_threads(const tlmi_fold_state *state, uint64_t (*to)[2])
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < state->threads_room; i++) {
        if (state->threads[i].consumed) {
            to[count][0] = state->threads[i].consumed;
            to[count++][1] = i;
        }
    }
    return count;
}

static bool write_with_stride(tlmi_fold_state *state, uint64_t stride)
{
    uint64_t objects = state->totals.current_count, blocks = state->heap_count;
    size_t live_bytes = ((objects > blocks ? objects : blocks) + 1) * sizeof(tlmi_live),
           heap_bytes = (blocks + 1) * sizeof(heap_entry), sites_bytes = state->sites_room * sizeof(tlmi_site_sums),
           threads_bytes = state->threads_room * 2 * sizeof(uint64_t);
    tlmi_live *first = tlmi_own_alloc(live_bytes), *second = tlmi_own_alloc(live_bytes);
    heap_entry *heap = tlmi_own_alloc(heap_bytes);
    tlmi_site_sums *sites = tlmi_own_alloc(sites_bytes);
    uint64_t (*threads)[2] = tlmi_own_alloc(threads_bytes);
    bool good = first && second && heap && sites && threads;
    if (good) {
        collect_heap(state, first, second, heap);
        uint64_t listed = collect_live(state, stride, first);
        tlmi_live *live = sort_by_object(first, second, listed, state->totals.next_object);
        pack_live(live, listed);
        state->totals.live_stride = stride;
        state->totals.live_listed = listed;
        state->totals.heap_from_ticks = state->totals.horizon_ticks;
        uint64_t checkpoint = tlmi_file.header->fold_number + 1;
        const section sections[SECTIONS] = {
            {(const uint8_t *)&state->totals, 8, sizeof state->totals / 8},
            {(const uint8_t *)sites, sizeof *sites, collect_sites(state, sites)},
            {(const uint8_t *)threads, 16, collect_threads(state, threads)},
            {(const uint8_t *)state->samples, sizeof *state->samples, state->samples_count},
            {(const uint8_t *)state->marks, sizeof *state->marks, state->marks_count},
            {(const uint8_t *)live, LIVE_BYTES, listed},
            {(const uint8_t *)heap, sizeof *heap, blocks},
            {(const uint8_t *)state->passed, sizeof *state->passed, state->passed_count},
        };
        good = write_sections(sections, checkpoint);
    }
    tlmi_own_free(first, live_bytes);
    tlmi_own_free(second, live_bytes);
    tlmi_own_free(heap, heap_bytes);
    tlmi_own_free(sites, sites_bytes);
    tlmi_own_free(threads, threads_bytes);
    return good;
}

bool tlmi_checkpoint_write(tlmi_fold_state *state)
{
    uint64_t slots = tlmi_file.slot_limit ? tlmi_file.slot_limit : tlmi_file.slot_count;
    uint64_t budget = slots * TLMI_SLOT_BYTES / 4, stride = 1;
    while (state->totals.current_count / stride * bytes_each > budget)
        stride *= 2;
    while (state->heap_count * sizeof(heap_entry) > budget && tlmi_fold_state_halve_heap(state))
        ;
    while (state->passed_count * sizeof(tlmi_passed) > budget)
        tlmi_fold_state_halve_passed(state);
    while (!write_with_stride(state, stride)) {
        bool fewer = tlmi_fold_state_halve_heap(state);
        tlmi_fold_state_halve_passed(state);
        if (!fewer && stride > state->totals.next_object)
            return false; /* not even the sums have room */
        stride *= 2;
    }
    atomic_thread_fence(memory_order_release);
    tlmi_file.header->folded_events = state->totals.events;
    tlmi_file.header->fold_number++;
    give_back(slots_in_force, &in_force_count);
    memcpy(slots_in_force, slots_being_written, being_written_count * sizeof *slots_in_force);
    in_force_count = being_written_count;
    being_written_count = 0;
    if (state->totals.live_listed)
        bytes_each = 1 + (uint64_t)in_force_count * TLMI_SLOT_BYTES / state->totals.live_listed;
    if (bytes_each > LIVE_BYTES)
        bytes_each = LIVE_BYTES;
    return true;
}
