/* SPDX-License-Identifier: MIT
 * log.h: what the files of the event log share: the layout on disk, the open file, the recording's state.
 *
 * Two locks, always taken in this order: tlmi_recording.work (one compaction, fold or seal at a time) and
 * tlmi_recording.lock (slots, threads, the queue of full segments, names). Neither is held while Python code can run,
 * and neither is taken to append an event.
 */
#ifndef TLMI_LOG_H
#define TLMI_LOG_H

#include "platform/internal.h"
#pragma GCC visibility push(hidden)

/* ---- layout on disk: docs/format.md ---- */
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

/* ---- checksum.c ---- */
void tlmi_checksum_init(void);
uint32_t tlmi_checksum(const void *start, size_t bytes);

/* ---- deflate.c: zlib, found at run time; without it columns stay plain ---- */
typedef enum { TLMI_DEFLATE_MATCHES, TLMI_DEFLATE_LITERALS } tlmi_deflate_mode; /* literals: noise, no use searching */
bool tlmi_deflate_open(void); /* false: no zlib here, or no memory for its state; tlmi_deflate then returns 0 */
void tlmi_deflate_close(void);
/* Bytes written, or 0 when it would not get smaller. One call at a time (recording.work). */
uint32_t tlmi_deflate(tlmi_deflate_mode mode, const uint8_t *from, uint32_t bytes, uint8_t *to, uint32_t room);
bool tlmi_inflate(const uint8_t *from, uint32_t bytes, uint8_t *to, uint32_t expected);

/* ---- codec.c: events to and from a block, docs/format.md "Events block". One call at a time (recording.work) ---- */
bool tlmi_codec_open(void); /* false: no memory */
void tlmi_codec_close(void);
/* Adds one column to the block under construction. */
void tlmi_block_begin(tlmi_block_header *block, uint8_t type);
void tlmi_block_column(tlmi_block_header *block, int column, const uint8_t *raw, uint32_t bytes,
                       tlmi_deflate_mode mode);
void tlmi_block_finish(tlmi_block_header *block);       /* CRCs and padding */
bool tlmi_block_valid(const tlmi_block_header *header); /* header alone: magic, CRC, sizes that make sense */
/* Encodes 1 to TLMI_SEGMENT_EVENTS events; the caller fills seq, thread, thread_first before tlmi_block_finish. The
 * block fits into one slot always. */
void tlmi_codec_encode(const tlmi_event *events, uint32_t count, uint32_t time_shift, tlmi_block_header *block);
/* Back to events, times quantised. false: it does not decode. `events` has room for header->count. */
bool tlmi_codec_decode(const tlmi_block_header *block, uint32_t time_shift, tlmi_event *events);
/* Byte planes: all first bytes of `count` entries, all second bytes, ... */
void tlmi_planes_split(const uint8_t *entries, uint32_t entry_bytes, uint32_t count, uint8_t *planes);
void tlmi_planes_join(const uint8_t *planes, uint32_t entry_bytes, uint32_t count, uint8_t *entries);

/* ---- file.c: the mapped file and its slots. All under recording.lock unless said otherwise ---- */
typedef struct {
    uint8_t *map; /* NULL: not mapped */
    uint8_t type; /* a tlmi_slot_type, as on disk */
    bool zeroed;  /* the payload is zero on disk: fit for events as it is */
} tlmi_slot;
typedef struct {
    tlmi_own_file file;
    int error; /* errno of the last failure */
    tlmi_file_header *header;
    tlmi_slot *slots;
    uint32_t slots_room;
    uint32_t slot_count;
    uint32_t free_count;
    uint32_t first_free; /* no free slot below */
    uint32_t slot_limit; /* 0: none */
    bool disk_full;
    uint64_t next_seq;
    char path[4096];
} tlmi_file_handle;
extern tlmi_file_handle tlmi_file;
tlm_status tlmi_file_create(const tlm_recording_options *options);
/* Unmaps and closes. Segments that live threads of the program may still touch become anonymous memory. */
void tlmi_file_close(void);
void tlmi_file_remove(void); /* deletes the file that is being made */
uint64_t tlmi_file_size(void);
int tlmi_file_number(void);            /* of the open file, opened again if the program has closed it; -1: refused */
int64_t tlmi_file_take(uint8_t type);  /* a slot with a fresh header, or -1: no room */
void tlmi_file_release(uint32_t slot); /* free from now on; keeps its mapping */
uint8_t *tlmi_file_map(uint32_t slot); /* NULL: refused */
void tlmi_file_unmap(uint32_t slot);
uint32_t tlmi_file_room(void); /* slots that could still be had; UINT32_MAX: no limit known */
uint64_t tlmi_file_slot_offset(uint32_t slot);
bool tlmi_file_write(uint64_t offset, const void *start, size_t bytes); /* needs no lock */
bool tlmi_file_read(uint64_t offset, void *start, size_t bytes);        /* needs no lock */
void tlmi_file_calibrate(void);                                         /* renews the second calibration pair */

typedef struct {
    int64_t slot; /* where blocks go; -1: none yet */
    uint32_t used_bytes;
} tlmi_block_writer;

/* ---- meta.c ---- */
bool tlmi_meta_open(void);
void tlmi_meta_close(void);
/* Calls visit(records, bytes) for each meta slot in order, under recording.lock. */
bool tlmi_meta_each(bool (*visit)(void *context, const uint8_t *records, uint32_t bytes), void *context);
void tlmi_meta_release(void); /* gives the slots back; no names can be added any more */

/* ---- segment.c ---- */
typedef struct tlmi_thread_cold {
    struct tlmi_thread_cold *next;
    tlmi_thread *hot;
    int64_t slot;          /* -1: none */
    uint64_t thread_first; /* events before this segment */
    uint32_t number;
} tlmi_thread_cold;

typedef struct {
    pthread_mutex_t work;
    pthread_mutex_t lock;
    pthread_cond_t wake;       /* the service thread: something to compact, or quit */
    tlmi_thread_cold *threads; /* alive and with a segment once */
    uint32_t thread_count;     /* numbers given out */
    uint32_t *pending;         /* ring of full slots to compact */
    uint32_t pending_room, pending_head, pending_count;
    uint32_t ready[8]; /* zeroed, mapped slots, the warmest last; not among the free ones */
    uint32_t ready_count;
    uint64_t finished_events; /* in segments that were closed */
    _Atomic bool stopped;     /* no room: events are only counted */
    bool compacting;          /* compact while running */
    uint32_t stack_depth, sample_ms, parent_pid;
    bool sample_smaps;
    tlmi_block_writer blocks; /* where event blocks go */
    uint64_t compacted_events, compact_ns, fold_ns;
} tlmi_recording_state;
extern tlmi_recording_state tlmi_recording;

bool tlmi_segment_open(void);      /* start of a recording */
void tlmi_segment_close(void);     /* its end: gives back bookkeeping memory */
void tlmi_segment_close_all(void); /* under lock: takes every thread's segment away and queues it */
void tlmi_segment_forget(void);    /* forked child, one thread: drops all threads' state without touching the file */
void tlmi_segment_recycle(uint32_t slot); /* zeroes it and makes it ready; under lock */
bool tlmi_segment_name(const char *name); /* names the calling thread in the file; false: it has recorded nothing */
void tlmi_segment_give_back(void);        /* ready slots become free ones; under lock */
void tlmi_segment_stop(const char *why);  /* no room: stops the recording, once; under lock */
uint64_t tlmi_segment_event_count(void);  /* under lock */

/* ---- compact.c: turns full segments into blocks ---- */
bool tlmi_compact_open(void);
void tlmi_compact_close(void);
/* Compacts one full segment, and folds when room gets short. false: nothing to do, or it could not be done. */
bool tlmi_compact_step(void);
/* Appends a block to the writer's slot or to a new one. File offset, or 0: no room. Under work. */
uint64_t tlmi_block_append(tlmi_block_writer *writer, const tlmi_block_header *block);
tlmi_block_header *tlmi_block_buffer(void); /* room for one block of any size; under work */

/* Compacts every closed segment. Under work, no thread recording any more. false: no room, some stay as they are. */
bool tlmi_compact_all(void);

/* ---- fold_state.c: exact sums and the live set of events that are gone. Under work ---- */
typedef struct {
    uint64_t address; /* or handle; 0: empty */
    uint64_t bytes, ticks, object;
    uint32_t site;
    uint16_t thread;
    uint8_t device, unused;
} tlmi_live;
typedef struct { /* docs/format.md, section 1 */
    uint64_t alloc_count, alloc_bytes, freed_count, freed_bytes, free_calls, first_ticks;
    uint32_t site, device;
} tlmi_site_sums;
typedef struct { /* section 0, in this order */
    uint64_t events, horizon_ticks, alloc_count, alloc_bytes, free_count, free_bytes, unknown_frees, current_bytes,
        current_count, peak_bytes, peak_bytes_ticks, peak_count, next_object, live_stride, live_listed, release_count,
        acquire_count, misuse_count, device_bytes;
} tlmi_fold_totals;
typedef struct { /* section 3 */
    uint64_t ticks, metric, value;
} tlmi_fold_sample;
typedef struct {
    tlmi_live restore; /* what the last resize freed, should it fail */
    uint64_t consumed; /* events of this thread that are folded */
    bool restorable, restore_unknown;
} tlmi_fold_thread;
typedef struct {
    tlmi_fold_totals totals;
    tlmi_live *live; /* open addressing by address or handle */
    uint64_t live_room;
    tlmi_site_sums *sites; /* by site number; unused ones have all counts 0 */
    uint32_t sites_room;
    tlmi_fold_thread *threads; /* by thread number */
    uint32_t threads_room;
    tlmi_fold_sample *samples;
    uint32_t samples_count;
    tlmi_event *marks;
    uint32_t marks_count;
} tlmi_fold_state;
bool tlmi_fold_state_open(tlmi_fold_state *state); /* false: no memory; nothing is kept */
void tlmi_fold_state_close(tlmi_fold_state *state);
tlmi_fold_thread *tlmi_fold_state_thread(tlmi_fold_state *state, uint32_t thread); /* NULL: no memory */
/* Applies the next event in time order. false: no memory; the state is as before. */
bool tlmi_fold_state_apply(tlmi_fold_state *state, uint32_t thread, const tlmi_event *event, uint64_t ticks);

/* ---- checkpoint.c: writes a fold state into the file. Under work ---- */
/* false: no room; what was written is given back and the former checkpoint stays in force. */
bool tlmi_checkpoint_write(tlmi_fold_state *state);
uint32_t tlmi_checkpoint_slots(void); /* taken by the one in force */
bool tlmi_checkpoint_owns(uint32_t slot);
void tlmi_checkpoint_close(void);

/* ---- fold.c ---- */
void tlmi_fold_close(void);
bool tlmi_fold_wanted(void); /* under lock: room is short */
bool tlmi_fold_run(void);    /* under work: folds the oldest events; false: no room was gained */

/* ---- seal.c ---- */
bool tlmi_seal(void); /* under work, all segments closed; false: the file stays open but complete */

/* ---- service.c ---- */
bool tlmi_service_start(void);
void tlmi_service_stop(void);
#pragma GCC visibility pop
#endif
