/* SPDX-License-Identifier: MIT
 * codec.c: events to a block and back; docs/format.md, "Events block", is the contract.
 *
 * The columns are chosen so that numpy can decode them without a loop: sums, table look-ups and byte planes, no predictor
 * that needs the value before. Repetition is left to zlib. Scratch memory is shared: one call at a time (recording.work).
 */
#include <string.h>

#include "log/recording.h"

enum {
    HASH_BITS = 14,
    HASH_SIZE = 1 << HASH_BITS, /* twice the events of a segment, so that probing stays short */
    TIME_ESCAPE = 65535,
    SHAPE_BYTES = 16,
};
_Static_assert(HASH_SIZE >= 2 * TLMI_SEGMENT_EVENTS, "open addressing wants room");

/* Numbers values in order of first appearance. */
typedef struct {
    uint16_t slots[HASH_SIZE]; /* number + 1 of the value that lives here, 0 = empty */
    uint64_t low[TLMI_SEGMENT_EVENTS], high[TLMI_SEGMENT_EVENTS];
    uint16_t codes[TLMI_SEGMENT_EVENTS];
    uint32_t known;
    uint32_t largest;
} dictionary;

static struct scratch {
    dictionary shapes, objects;
    uint8_t time_low[TLMI_SEGMENT_EVENTS], time_high[TLMI_SEGMENT_EVENTS];
    uint64_t time_escapes[TLMI_SEGMENT_EVENTS];
    uint8_t bytes[TLMI_SEGMENT_EVENTS * SHAPE_BYTES], planes[TLMI_SEGMENT_EVENTS * SHAPE_BYTES];
} *scratch;

bool tlmi_codec_open(void)
{
    scratch = tlmi_own_alloc(sizeof *scratch);
    return scratch != NULL;
}

void tlmi_codec_close(void)
{
    tlmi_own_free(scratch, sizeof *scratch);
    scratch = NULL;
}

/* Turns rows of a square of bytes into columns. */
static inline void transpose(uint64_t square[8])
{
    static const uint64_t masks[] = {UINT64_C(0x00000000FFFFFFFF), UINT64_C(0x0000FFFF0000FFFF),
                                     UINT64_C(0x00FF00FF00FF00FF)};
    for (uint32_t step = 0, half = 4; half > 0; step++, half /= 2)
        for (uint32_t i = 0; i < 8; i++)
            if ((i & half) == 0) {
                uint64_t differs = (square[i] >> (8 * half) ^ square[i + half]) & masks[step];
                square[i] ^= differs << (8 * half);
                square[i + half] ^= differs;
            }
}

/* Splits eights of entries, eight of their bytes at a time; returns how many entries that were. */
static uint32_t split_squares(const uint8_t *entries, uint32_t entry_bytes, uint32_t count, uint8_t *planes)
{
    if (entry_bytes % 8 != 0)
        return 0;
    for (uint32_t byte = 0; byte < entry_bytes; byte += 8)
        for (uint32_t first = 0; first + 8 <= count; first += 8) {
            uint64_t square[8];
            for (uint32_t i = 0; i < 8; i++)
                memcpy(&square[i], entries + (size_t)(first + i) * entry_bytes + byte, 8);
            transpose(square);
            for (uint32_t i = 0; i < 8; i++)
                memcpy(planes + (size_t)(byte + i) * count + first, &square[i], 8);
        }
    return count / 8 * 8;
}

void tlmi_planes_split(const uint8_t *entries, uint32_t entry_bytes, uint32_t count, uint8_t *planes)
{
    uint32_t done = split_squares(entries, entry_bytes, count, planes);
    for (uint32_t byte = 0; byte < entry_bytes; byte++)
        for (uint32_t i = done; i < count; i++)
            planes[(size_t)byte * count + i] = entries[(size_t)i * entry_bytes + byte];
}

void tlmi_planes_join(const uint8_t *planes, uint32_t entry_bytes, uint32_t count, uint8_t *entries)
{
    for (uint32_t byte = 0; byte < entry_bytes; byte++)
        for (uint32_t i = 0; i < count; i++)
            entries[(size_t)i * entry_bytes + byte] = planes[(size_t)byte * count + i];
}

/* ---- blocks ---- */

void tlmi_block_begin(tlmi_block_header *block, uint8_t type)
{
    memset(block, 0, sizeof *block);
    block->magic = TLMI_BLOCK_MAGIC;
    block->type = type;
}

static uint8_t *payload_end(tlmi_block_header *block)
{
    return (uint8_t *)(block + 1) + block->payload_bytes;
}

void tlmi_block_column(tlmi_block_header *block, int column, const uint8_t *raw, uint32_t bytes, tlmi_deflate_mode mode)
{
    if (block->payload_bytes >= TLMI_SLOT_BYTES)
        return; /* an earlier column did not fit */
    uint32_t room = TLMI_SLOT_PAYLOAD_BYTES - TLMI_BLOCK_HEADER_BYTES - block->payload_bytes;
    uint32_t stored = tlmi_deflate(mode, raw, bytes, payload_end(block), room);
    if (stored == 0) {
        if (bytes > room) { /* the caller sees payload_bytes too large and takes another way */
            block->payload_bytes = TLMI_SLOT_BYTES;
            return;
        }
        memcpy(payload_end(block), raw, bytes);
        stored = bytes;
    }
    block->columns[column] = (tlmi_column){stored, bytes};
    block->payload_bytes += stored;
}

void tlmi_block_finish(tlmi_block_header *block)
{
    memset(payload_end(block), 0,
           tlmi_block_bytes(block->payload_bytes) - TLMI_BLOCK_HEADER_BYTES - block->payload_bytes);
    block->payload_crc = tlmi_checksum(block + 1, block->payload_bytes);
    block->header_crc = tlmi_checksum(block, offsetof(tlmi_block_header, header_crc));
}

bool tlmi_block_valid(const tlmi_block_header *header)
{
    return header->magic == TLMI_BLOCK_MAGIC &&
           header->header_crc == tlmi_checksum(header, offsetof(tlmi_block_header, header_crc)) &&
           header->payload_bytes <= TLMI_SLOT_PAYLOAD_BYTES - TLMI_BLOCK_HEADER_BYTES;
}

/* ---- encode ---- */

/* Adds a value; its recency code goes to codes[at]. */
static inline void add_value(dictionary *values, uint32_t at, uint64_t low, uint64_t high)
{
    uint64_t mixed = (low ^ (high * UINT64_C(0x9E3779B97F4A7C15))) * UINT64_C(0xD6E8FEB86659FD93);
    uint32_t slot = (uint32_t)(mixed >> (64 - HASH_BITS));
    for (;; slot = (slot + 1) & (HASH_SIZE - 1)) {
        uint32_t number = values->slots[slot];
        if (number == 0)
            break;
        if (values->low[number - 1] == low && values->high[number - 1] == high) {
            uint32_t code = values->known - (number - 1);
            values->codes[at] = (uint16_t)code;
            if (code > values->largest)
                values->largest = code;
            return;
        }
    }
    values->low[values->known] = low;
    values->high[values->known] = high;
    values->slots[slot] = (uint16_t)++values->known;
    values->codes[at] = 0;
}

static void clear_dictionary(dictionary *values)
{
    memset(values->slots, 0, sizeof values->slots);
    values->known = values->largest = 0;
}

static void split_codes(const uint16_t *restrict codes, uint32_t count, uint8_t *restrict low, uint8_t *restrict high)
{
    for (uint32_t i = 0; i < count; i++) {
        low[i] = (uint8_t)codes[i];
        high[i] = (uint8_t)(codes[i] >> 8);
    }
}

static void add_codes(tlmi_block_header *block, int column, const dictionary *values, uint32_t count)
{
    split_codes(values->codes, count, scratch->bytes, scratch->bytes + count);
    uint32_t bytes = values->largest > 255 ? 2 * count : count;
    tlmi_block_column(block, column, scratch->bytes, bytes, TLMI_DEFLATE_MATCHES);
}

static uint32_t add_times(tlmi_block_header *block, const tlmi_event *events, uint32_t count, uint32_t shift)
{
    uint32_t escapes = 0, changes = 0;
    uint8_t *restrict lows = scratch->time_low, *restrict highs = scratch->time_high, high = 0;
    uint64_t before = events[0].ticks >> shift;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t now = events[i].ticks >> shift;
        uint64_t step = now - before;
        before = now;
        if (tlmi_unlikely(step >= TIME_ESCAPE)) {
            scratch->time_escapes[escapes++] = step;
            step = TIME_ESCAPE;
        }
        lows[i] = (uint8_t)step;
        highs[i] = (uint8_t)(step >> 8);
        changes += highs[i] != high;
        high = highs[i];
    }
    tlmi_block_column(block, 0, lows, count, TLMI_DEFLATE_LITERALS);
    tlmi_block_column(block, 1, highs, count, changes > count / 4 ? TLMI_DEFLATE_LITERALS : TLMI_DEFLATE_RUNS);
    tlmi_block_column(block, 2, (const uint8_t *)scratch->time_escapes, 8 * escapes, TLMI_DEFLATE_MATCHES);
    return escapes;
}

static void add_shapes(tlmi_block_header *block)
{
    const dictionary *shapes = &scratch->shapes;
    for (uint32_t i = 0; i < shapes->known; i++) {
        memcpy(scratch->bytes + SHAPE_BYTES * i, &shapes->low[i], 8);
        memcpy(scratch->bytes + SHAPE_BYTES * i + 8, &shapes->high[i], 8);
    }
    tlmi_planes_split(scratch->bytes, SHAPE_BYTES, shapes->known, scratch->planes);
    tlmi_block_column(block, 4, scratch->planes, SHAPE_BYTES * shapes->known, TLMI_DEFLATE_MATCHES);
}

static void add_objects(tlmi_block_header *block)
{
    const dictionary *objects = &scratch->objects;
    uint64_t before = 0;
    for (uint32_t i = 0; i < objects->known; i++) {
        uint64_t step = objects->low[i] - before;
        before = objects->low[i];
        uint64_t zigzag = (step << 1) ^ (0 - (step >> 63));
        memcpy(scratch->bytes + 8 * i, &zigzag, 8);
    }
    tlmi_planes_split(scratch->bytes, 8, objects->known, scratch->planes);
    tlmi_block_column(block, 6, scratch->planes, 8 * objects->known, TLMI_DEFLATE_MATCHES);
}

static void encode_columns(const tlmi_event *events, uint32_t count, uint32_t shift, tlmi_block_header *block)
{
    clear_dictionary(&scratch->shapes);
    clear_dictionary(&scratch->objects);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t rest;
        memcpy(&rest, (const char *)&events[i] + offsetof(tlmi_event, site), 8);
        add_value(&scratch->shapes, i, events[i].arg, rest);
        add_value(&scratch->objects, i, events[i].object, 0);
    }
    block->codec = 1;
    add_times(block, events, count, shift);
    add_codes(block, 3, &scratch->shapes, count);
    add_shapes(block);
    add_codes(block, 5, &scratch->objects, count);
    add_objects(block);
}

void tlmi_codec_encode(const tlmi_event *events, uint32_t count, uint32_t time_shift, tlmi_block_header *block)
{
    tlmi_block_begin(block, TLMI_BLOCK_EVENTS);
    encode_columns(events, count, time_shift, block);
    if (block->payload_bytes > count * sizeof(tlmi_event)) { /* nothing repeats: plain events are smaller */
        block->codec = 0;
        block->payload_bytes = (uint32_t)(count * sizeof(tlmi_event));
        memset(block->columns, 0, sizeof block->columns);
        block->columns[0] = (tlmi_column){block->payload_bytes, block->payload_bytes};
        memcpy(block + 1, events, block->payload_bytes);
    }
    block->count = count;
    block->ticks_begin = events[0].ticks;
    block->ticks_end = events[count - 1].ticks;
}

/* ---- decode ---- */

/* Copies or inflates a column of the size it must have. */
static bool read_column(const tlmi_block_header *block, int column, uint8_t *to, uint32_t expected)
{
    const uint8_t *from = (const uint8_t *)(block + 1);
    for (int before = 0; before < column; before++)
        from += block->columns[before].stored_bytes;
    tlmi_column size = block->columns[column];
    if (size.raw_bytes != expected)
        return false;
    if (size.stored_bytes != size.raw_bytes)
        return tlmi_inflate(from, size.stored_bytes, to, expected);
    memcpy(to, from, expected);
    return true;
}

static bool sizes_fit(const tlmi_block_header *block, uint32_t count)
{
    uint64_t stored = 0;
    for (int column = 0; column < TLMI_BLOCK_COLUMNS; column++)
        stored += block->columns[column].stored_bytes;
    const tlmi_column *c = block->columns;
    return stored == block->payload_bytes && c[2].raw_bytes <= 8 * count && c[4].raw_bytes <= SHAPE_BYTES * count &&
           c[4].raw_bytes % SHAPE_BYTES == 0 && c[6].raw_bytes <= 8 * count && c[6].raw_bytes % 8 == 0;
}

static bool read_codes(const tlmi_block_header *block, int column, uint32_t count, uint32_t known, uint16_t *numbers)
{
    bool wide = block->columns[column].raw_bytes != count;
    const uint8_t *low = scratch->bytes, *high = low + count;
    if (!read_column(block, column, scratch->bytes, wide ? 2 * count : count))
        return false;
    uint32_t introduced = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t code = wide ? low[i] | (uint32_t)high[i] << 8 : low[i];
        if (code > introduced || (code == 0 && introduced == known))
            return false;
        numbers[i] = (uint16_t)(code ? introduced - code : introduced++);
    }
    return introduced == known;
}

static bool decode_times(const tlmi_block_header *block, uint32_t shift, uint32_t count, tlmi_event *events)
{
    uint32_t escapes = block->columns[2].raw_bytes / 8, used = 0;
    if (!read_column(block, 0, scratch->time_low, count) || !read_column(block, 1, scratch->time_high, count) ||
        !read_column(block, 2, (uint8_t *)scratch->time_escapes, 8 * escapes))
        return false;
    uint64_t now = block->ticks_begin >> shift;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t step = scratch->time_low[i] | (uint64_t)scratch->time_high[i] << 8;
        if (tlmi_unlikely(step == TIME_ESCAPE)) {
            if (used == escapes)
                return false;
            step = scratch->time_escapes[used++];
        }
        now += step;
        events[i].ticks = now << shift;
    }
    return true;
}

bool tlmi_codec_decode(const tlmi_block_header *block, uint32_t time_shift, tlmi_event *events)
{
    uint32_t count = block->count;
    if (!tlmi_block_valid(block) || block->payload_crc != tlmi_checksum(block + 1, block->payload_bytes) ||
        count == 0 || count > TLMI_SEGMENT_EVENTS)
        return false;
    if (block->codec == 0) {
        if (!read_column(block, 0, (uint8_t *)events, (uint32_t)(count * sizeof *events)))
            return false;
        for (uint32_t i = 0; i < count; i++)
            events[i].ticks = events[i].ticks >> time_shift << time_shift;
        return true;
    }
    if (!sizes_fit(block, count) || !decode_times(block, time_shift, count, events))
        return false;
    uint32_t shapes = block->columns[4].raw_bytes / SHAPE_BYTES, objects = block->columns[6].raw_bytes / 8;
    if (!read_codes(block, 3, count, shapes, scratch->shapes.codes) ||
        !read_codes(block, 5, count, objects, scratch->objects.codes))
        return false;
    if (!read_column(block, 4, scratch->planes, SHAPE_BYTES * shapes))
        return false;
    tlmi_planes_join(scratch->planes, SHAPE_BYTES, shapes, scratch->bytes);
    for (uint32_t i = 0; i < count; i++)
        memcpy((char *)&events[i] + offsetof(tlmi_event, arg), scratch->bytes + SHAPE_BYTES * scratch->shapes.codes[i],
               SHAPE_BYTES);
    if (!read_column(block, 6, scratch->planes, 8 * objects))
        return false;
    tlmi_planes_join(scratch->planes, 8, objects, scratch->bytes);
    uint64_t object = 0;
    for (uint32_t i = 0; i < objects; i++) {
        uint64_t zigzag;
        memcpy(&zigzag, scratch->bytes + 8 * i, 8);
        object += (zigzag >> 1) ^ (0 - (zigzag & 1));
        scratch->objects.low[i] = object;
    }
    for (uint32_t i = 0; i < count; i++)
        events[i].object = scratch->objects.low[scratch->objects.codes[i]];
    return true;
}
