/* SPDX-License-Identifier: MIT
 * recording.h: what the files of the log share: the open file, the threads that write, the recording's state.
 *
 * Two locks, always taken in this order: tlmi_recording.work (one compaction, fold or seal at a time) and
 * tlmi_recording.lock (slots, threads, the queue of full segments, names). Neither is held while Python code can run,
 * and neither is taken to append an event.
 */
#ifndef TLMI_RECORDING_H
#define TLMI_RECORDING_H

#include "log/format.h"
#pragma GCC visibility push(hidden)

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
    uint8_t *map;   /* NULL: not mapped */
    uint32_t count; /* of events in a closed segment, whatever another program may have done to the file */
    uint8_t type;   /* a tlmi_slot_type, as on disk */
    bool zeroed;    /* the payload is zero on disk: fit for events as it is */
} tlmi_slot;
typedef struct {
    tlmi_own_file file;
    tlmi_own_file file_of_service; /* the same file in the service thread's own table */
    int error;                     /* errno of the last failure */
    tlmi_file_header *header;
    tlmi_slot *slots;
    uint32_t slots_room;
    uint32_t slot_count;
    uint32_t free_count;
    uint32_t first_free; /* no free slot below */
    uint32_t slot_limit; /* 0: none */
    uint64_t length;     /* of the file, unless another program changes it */
    bool disk_full;
    tlm_early_end lost; /* from then on nothing is written into the file */
    uint64_t next_seq;
    char path[4096];
} tlmi_file_handle;
extern tlmi_file_handle tlmi_file;
tlm_status tlmi_file_create(const tlm_recording_options *options);
/* Unmaps and closes. Segments that live threads of the program may still touch become anonymous memory. */
void tlmi_file_close(void);
void tlmi_file_remove(void); /* deletes the file that is being made */
uint64_t tlmi_file_size(void);
/* Whether the file is still what was written: as long, with its beginning, with a name. Costs a system call. Under lock. */
tlm_early_end tlmi_file_examine(void);
bool tlmi_file_is_in_place(void); /* its path leads to it */
/* For threads that may touch the file from here on: a page that is gone from it does not end the program. Again and again, as
 * the program may set handlers of its own. */
void tlmi_file_guard(void);
void tlmi_file_let_go(uint32_t slot);    /* it stays memory that may be touched, but is not the file's any more */
int tlmi_file_number(void);              /* of the open file, opened again if the program has closed it; -1: refused */
void tlmi_file_open_here(void);          /* in the calling thread's new table of its own */
int64_t tlmi_file_acquire(uint8_t type); /* a slot with a fresh header, or -1: no room */
void tlmi_file_release(uint32_t slot);   /* free from now on; keeps its mapping */
uint8_t *tlmi_file_map(uint32_t slot);   /* NULL: refused */
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
/* How far the records were followed; begins with zeros. */
typedef struct {
    uint32_t slot, bytes;
} tlmi_meta_position;
enum { TLMI_META_CODE = 1, TLMI_META_SITE = 2 };
/* Calls visit(type, payload, bytes) for each record since the position, without the lock, and moves it on. */
void tlmi_meta_follow(tlmi_meta_position *from, void (*visit)(uint8_t type, const uint8_t *payload, uint32_t bytes));
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
void tlmi_segment_free_ready(void);       /* ready slots become free ones; under lock */
void tlmi_segment_stop(const char *why);  /* no room: stops the recording, once; under lock */
/* false: the file is lost; stops the recording then. Under lock, let go meanwhile. */
bool tlmi_segment_check_file(void);
uint64_t tlmi_segment_event_count(void); /* under lock */

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

/* ---- seal.c ---- */
bool tlmi_seal(void); /* under work, all segments closed; false: the file stays open but complete */

/* ---- source.c: the text of lines. docs/format.md has the bounds. Its lock comes before those above ---- */
enum { TLMI_LINE_BYTES = 256, TLMI_MOST_LINES = 65536, TLMI_MOST_LINES_BYTES = 4 << 20 };
void tlmi_source_open(uint64_t limit_bytes); /* without memory there will be no lines */
void tlmi_source_close(void);                /* under neither lock */
void tlmi_source_after_fork(void);           /* in the child, before anything else of this file */
/* Reads the lines that are new; with `all`, also of files that were read a moment ago. Opens files: of the service thread, and
 * of the one that ends the recording. */
void tlmi_source_step(bool all);
/* ---- service.c ---- */
bool tlmi_service_start(void);
void tlmi_service_stop(void);
/* ---- sampler.c: the sampler. Called by the service thread, without the GIL; never allocates with malloc ---- */
/* Opens what is read again and again; the log may be NULL. */
void tlmi_sampler_open(bool smaps, const tlmi_own_file *log);
void tlmi_sampler_close(void);
uint64_t tlmi_sample_interval(uint64_t now, uint64_t least_ns); /* to the next samples; longer in a long run */
void tlmi_sample_fast(void); /* anonymous and recorder bytes, as sample events of the calling thread */
/* Allocator, Python heap, high water, untouched; backs off to stay under 1 % of the time. */
void tlmi_sample_full(bool force);
#pragma GCC visibility pop
#endif
