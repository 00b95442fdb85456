/* SPDX-License-Identifier: MIT
 * fold.h: what is left of the oldest events when room gets short: exact sums and the live set, written as a checkpoint.
 */
#ifndef TLMI_FOLD_H
#define TLMI_FOLD_H

#include "log/recording.h"
#pragma GCC visibility push(hidden)

/* ---- fold_state.c: exact sums and the live set of events that are gone. Under work ---- */
typedef struct {
    uint64_t address; /* or handle; 0: empty */
    uint64_t bytes, ticks, object;
    uint32_t site;
    uint16_t thread;
    uint8_t device;
    uint8_t place; /* of a sampled block: the count of its event */
} tlmi_live;
typedef struct { /* section 7: an object that was freed after a long life */
    uint64_t number, ticks, died_ticks, bytes;
    uint32_t site, died_site;
    uint8_t device, halvings, unused[6];
} tlmi_passed;
typedef struct { /* docs/format.md, section 1 */
    uint64_t alloc_count, alloc_bytes, freed_count, freed_bytes, free_calls, first_ticks;
    uint32_t site, device;
} tlmi_site_sums;
typedef struct { /* section 0, in this order */
    uint64_t events, horizon_ticks, alloc_count, alloc_bytes, free_count, free_bytes, unknown_frees, current_bytes,
        current_count, peak_bytes, peak_bytes_ticks, peak_count, next_object, live_stride, live_listed, release_count,
        acquire_count, misuse_count, device_bytes, heap_from_ticks;
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
    tlmi_live *live; /* open addressing by address or handle; sampled blocks of the heap are among them */
    uint64_t live_room;
    uint64_t heap_count;   /* of these: in no sum */
    uint32_t heap_halving; /* so many times half of them were left out */
    tlmi_site_sums *sites; /* by site number; unused ones have all counts 0 */
    uint32_t sites_room;
    tlmi_fold_thread *threads; /* by thread number */
    uint32_t threads_room;
    tlmi_fold_sample *samples;
    uint32_t samples_count;
    tlmi_event *marks;
    uint32_t marks_count;
    tlmi_passed *passed; /* in the order of their deaths */
    uint32_t passed_room, passed_count;
    uint32_t passed_halving; /* as heap_halving */
} tlmi_fold_state;
/* One in `stride` objects, a power of two, by a hash of the number: programs allocate in a rhythm, multiples of a number
 * would be all of one line or none. */
static inline bool tlmi_fold_is_listed(uint64_t object, uint64_t stride)
{
    return (object * UINT64_C(0x9E3779B97F4A7C15) >> 32 & (stride - 1)) == 0;
}
bool tlmi_fold_state_open(tlmi_fold_state *state); /* false: no memory; nothing is kept */
void tlmi_fold_state_close(tlmi_fold_state *state);
tlmi_fold_thread *tlmi_fold_state_thread(tlmi_fold_state *state, uint32_t thread); /* NULL: no memory */
/* Applies the next event in time order. false: no memory; the state is as before. */
bool tlmi_fold_state_apply(tlmi_fold_state *state, uint32_t thread, const tlmi_event *event, uint64_t ticks);
/* Leaves out about half of the sampled blocks, by a hash; each of the others stands for twice as many. false: too often. */
bool tlmi_fold_state_halve_heap(tlmi_fold_state *state);
/* The same with the objects that passed. */
void tlmi_fold_state_halve_passed(tlmi_fold_state *state);

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

#pragma GCC visibility pop
#endif
