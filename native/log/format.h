/* SPDX-License-Identifier: MIT
 * format.h: the layout on disk; docs/format.md is the contract, and static asserts hold the offsets.
 *
 * The event itself is in log.h, because it is appended inline.
 */
#ifndef TLMI_FORMAT_H
#define TLMI_FORMAT_H

#include "log/log.h"

enum {
    TLMI_HEADER_BYTES = 16384,
    TLMI_SLOT_BYTES = 262144,
    TLMI_SLOT_HEADER_BYTES = 128,
    TLMI_BLOCK_HEADER_BYTES = 128,
    TLMI_BLOCK_COLUMNS = 8,
    TLMI_SEGMENT_EVENTS = 8184,
    TLMI_SLOT_PAYLOAD_BYTES = TLMI_SLOT_BYTES - TLMI_SLOT_HEADER_BYTES,
};
#define TLMI_SLOT_MAGIC 0x47534C54u  /* "TLSG" */
#define TLMI_BLOCK_MAGIC 0x4B424C54u /* "TLBK" */

typedef enum { TLMI_SLOT_FREE = 0, TLMI_SLOT_EVENTS = 1, TLMI_SLOT_BLOCKS = 2, TLMI_SLOT_META = 3 } tlmi_slot_type;
typedef enum { TLMI_BLOCK_EVENTS = 1, TLMI_BLOCK_META = 2, TLMI_BLOCK_FOLD = 3, TLMI_BLOCK_INDEX = 4 } tlmi_block_type;
typedef enum { TLMI_STATE_OPEN = 1, TLMI_STATE_SEALED = 2, TLMI_STATE_STOPPED = 3 } tlmi_file_state;

typedef struct {
    char magic[8];
    uint32_t version, header_bytes, slot_bytes, event_bytes;
    uint64_t created_unix_ns;
    uint32_t pid, parent_pid, page_bytes, clock, time_shift;
    uint32_t static_crc;
    uint8_t unused0[8];
    _Atomic uint64_t calibration_seq;
    uint64_t first_ticks, first_ns, last_ticks, last_ns;
    uint32_t state, unused1;
    uint64_t slot_count;
    _Atomic uint64_t lost_events;
    uint64_t limit_bytes, fold_number, folded_events, index_offset, total_events;
} tlmi_file_header;
_Static_assert(offsetof(tlmi_file_header, static_crc) == 52, "docs/format.md");
_Static_assert(offsetof(tlmi_file_header, calibration_seq) == 64, "docs/format.md");
_Static_assert(offsetof(tlmi_file_header, lost_events) == 120, "docs/format.md");
_Static_assert(offsetof(tlmi_file_header, total_events) == 160, "docs/format.md");

typedef struct {
    uint32_t magic;
    _Atomic uint8_t type;
    uint8_t unused0[3];
    uint64_t seq;
    uint32_t thread;
    _Atomic uint32_t closed;
    uint64_t thread_first;
    uint32_t count;
    _Atomic uint32_t used_bytes;
    uint64_t ticks_begin, ticks_end;
    uint8_t unused1[72];
} tlmi_slot_header;
_Static_assert(sizeof(tlmi_slot_header) == TLMI_SLOT_HEADER_BYTES, "docs/format.md");

typedef struct {
    uint32_t stored_bytes, raw_bytes;
} tlmi_column;
typedef struct {
    uint32_t magic;
    uint8_t type, codec;
    uint16_t part;
    uint64_t seq;
    uint32_t thread, count;
    uint64_t thread_first, ticks_begin, ticks_end;
    uint32_t payload_bytes, payload_crc;
    tlmi_column columns[TLMI_BLOCK_COLUMNS];
    uint32_t header_crc, unused;
} tlmi_block_header;
_Static_assert(sizeof(tlmi_block_header) == TLMI_BLOCK_HEADER_BYTES, "docs/format.md");

/* Header, payload and padding of a block with this payload. */
static inline uint32_t tlmi_block_bytes(uint32_t payload_bytes)
{
    return TLMI_BLOCK_HEADER_BYTES + ((payload_bytes + 7u) & ~7u);
}

#endif
