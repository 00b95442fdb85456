/* SPDX-License-Identifier: MIT
 * tape.h: what the tape_*.c files share: the slot, the tape, the pass. tlmem_tape.h has every promise.
 *
 * Order: tape_ops < tape_slots < tape_saves < tape_grads < tape_replay < tape_record tape_pass tape.
 *
 * The tape's spin lock guards its slots' links (references, lists, generation) and its sums. It comes before the locks of
 * objects and nothing that could call back is done under it: objects are released, rules and `forget` are called after. What
 * a slot recorded (block, params, saves) never changes while the slot is referred to, but by the pass that has reached it.
 */
#ifndef TLMI_TAPE_H
#define TLMI_TAPE_H

#include "memory/memory.h"
#include "tlmem_tape.h"
#pragma GCC visibility push(hidden)

enum {
    TLMI_OP_GRADIENT = 1,   /* on its way through a pass */
    TLMI_OP_STORED = 2,     /* of a leaf, or kept */
    TLMI_OP_RECOMPUTED = 3, /* a value computed again for a rule */
    TLMI_OP_FIRST = 16,
};

/* What a record holds for its rule or for computing its output again. */
typedef struct {
    tlm_tensor tensor; /* of a link: only while it is computed again for the rule */
    uint32_t version;  /* of the object when it was saved */
    uint32_t link;     /* index of the slot that is computed again instead; 0: the tensor is held */
} tlmi_saved;

typedef struct {
    uint32_t index, generation; /* of the tenant, or of the next one */
    uint32_t references;        /* 0: free, or dying */
    uint32_t next;              /* in the list of free or of dying slots */
    uint32_t op;
    bool is_leaf, is_spent, keeps_grad, recomputes, has_incoming, has_stored;
    bool adds_in_place; /* of the pass that hands over: what arrived is added to what is stored, not instead of it */
    uint64_t sequence;
    tlm_place place;
    tlm_tensor value;    /* what it is the value of; its object is not held */
    tlm_tensor incoming; /* the gradient, in the pass under way */
    tlm_tensor *stored;  /* that of a leaf, or a kept one; the room for it stays with the slot */
    /* of a record, in `block`: saves, sources (of `recomputes`: inputs, and behind them the output), inputs, params */
    uint8_t *block;
    uint32_t block_bytes; /* capacity; stays when the record goes */
    uint32_t input_count, save_count, params_bytes;
    uint64_t saved_bytes; /* for the sums by op */
    /* of a pass */
    uint32_t pass;         /* number of the pass that has reached it; 0: none */
    uint32_t pending;      /* records reached that read it and have not run */
    uint32_t reached_next; /* list of all that the pass has reached */
    uint32_t replay_next, replay_cursor, replay_uses;
} tlmi_tape_slot;

typedef struct {
    tlm_object object; /* 0: empty */
    uint64_t bytes;
    uint64_t uses;
} tlmi_saved_object;

enum { TLMI_TAPE_CHUNKS = 20, TLMI_TAPE_FIRST = 256 };

struct tlm_tape {
    tlmi_spin lock;
    bool exists;
    uint32_t number;
    uint32_t first_generation; /* of slots made from now on: later than any of a tape that had this number */
    tlm_label label;
    tlm_arithmetic arithmetic;
    tlmi_tape_slot *chunks[TLMI_TAPE_CHUNKS]; /* chunk k has 256 << k slots; never moved */
    uint32_t slots, free;                     /* ever used, at most capacity; list of free ones */
    uint64_t capacity;
    tlm_pass *running; /* the innermost */
    pthread_t runner;
    uint32_t running_epoch;
    uint32_t last_pass;
    uint32_t *ready; /* heap of the pass */
    uint32_t ready_room;
    tlm_tape_statistics sums;
    tlm_tape_op_row *by_op; /* by op number */
    uint32_t by_op_room;
    tlmi_saved_object *saved; /* open addressing, by object: how many records of this tape hold it */
    uint32_t saved_room, saved_used;
    uint64_t own_bytes;
    _Atomic uint64_t shown_bytes; /* what the records take, for who has no lock */
};

struct tlm_pass {
    tlm_tape *tape;
    tlm_pass *outer;
    uint32_t number;
    uint64_t began; /* sequence: leaves made since then are this pass's own */
    tlmi_tape_slot *at;
    const tlm_op *op;
    uint32_t reached;                  /* list */
    uint32_t ready_begin, ready_count; /* its part of the heap */
    bool retains;
    tlm_status poisoned; /* a pass inside it failed and may have left something in shared gradients */
    uint64_t rules;
};

/* ---- tape_record.c: ops ---- */
const tlm_op *tlmi_op(uint32_t number);    /* NULL: none */
void tlmi_op_write_names(uint32_t number); /* into the recording, once; not under a lock */
static inline tlm_holder tlmi_tape_holder(uint32_t op, uint64_t sequence)
{
    return TLM_TAPE_HOLDER(op, sequence);
}

/* ---- tape.c ---- */
/* Shows the sampler what the records take: their slots, and the blocks of all slots; locked. */
static inline void tlmi_tape_show_bytes(tlm_tape *tape)
{
    uint64_t free_slots = tape->capacity > tape->sums.records ? tape->capacity - tape->sums.records : 0;
    uint64_t unused = free_slots * sizeof(tlmi_tape_slot);
    uint64_t bytes = tape->own_bytes > unused ? tape->own_bytes - unused : 0;
    atomic_store_explicit(&tape->shown_bytes, bytes, memory_order_relaxed);
}

/* ---- tape_slots.c ---- */
tlm_tape *tlmi_tape_numbered(uint32_t number); /* for tape.c: whether it exists or not */
static inline tlm_slot tlmi_slot_number(const tlm_tape *tape, const tlmi_tape_slot *slot)
{
    return (uint64_t)tape->number << 56 | (uint64_t)slot->generation << 28 | slot->index;
}
tlmi_tape_slot *tlmi_tape_at(const tlm_tape *tape, uint32_t index); /* 1 <= index <= slots */
/* The slot when it is on this tape, which is locked; NULL: stale. */
tlmi_tape_slot *tlmi_slot_find(const tlm_tape *tape, tlm_slot slot);
/* The slot and its tape, locked; NULL: stale. */
tlmi_tape_slot *tlmi_slot_lock(tlm_slot slot, tlm_tape **tape);
/* A slot with one reference and room for a record; locked. NULL: no memory. */
tlmi_tape_slot *tlmi_slot_take(tlm_tape *tape, uint32_t block_bytes);
/* One reference less, under the lock; a slot nobody refers to is put on the list of the dying. */
void tlmi_slot_drop(tlm_tape *tape, tlmi_tape_slot *slot, uint32_t *dying);
/* Ends the dying and what only they referred to. Not under the lock. */
void tlmi_slot_bury(tlm_tape *tape, uint32_t dying);
/* Lets go of what a record saved, of its inputs and (`forgets`) params; the slot stays and is spent. Not under the lock; by whoever owns
 * the record: its pass, or the burial. */
void tlmi_record_release(tlm_tape *tape, tlmi_tape_slot *slot, bool forgets, uint32_t *dying);
static inline tlmi_saved *tlmi_slot_saves(const tlmi_tape_slot *slot)
{
    return (tlmi_saved *)(void *)slot->block;
}
/* Of a slot that recomputes: one for each input, then the output while it is computed again. */
static inline tlmi_saved *tlmi_slot_sources(const tlmi_tape_slot *slot)
{
    return tlmi_slot_saves(slot) + slot->save_count;
}
static inline uint32_t tlmi_slot_source_count(const tlmi_tape_slot *slot)
{
    return slot->recomputes ? slot->input_count + 1 : 0;
}
static inline uint8_t *tlmi_slot_params(const tlmi_tape_slot *slot)
{
    return (uint8_t *)(tlmi_slot_sources(slot) + tlmi_slot_source_count(slot));
}
static inline uint32_t *tlmi_slot_inputs(const tlmi_tape_slot *slot)
{
    return (uint32_t *)(void *)(tlmi_slot_params(slot) + ((slot->params_bytes + 7u) & ~7u));
}

/* ---- tape_saves.c ---- */
/* Acquires the tensor's object for the holder and fills `saved`; counts it for the tape. With `owned` a floating count is
 * taken over instead. TLM_FREED, TLM_IN_ARENA, TLM_NO_MEMORY. */
tlm_status tlmi_save(tlm_tape *tape, const tlm_tensor *tensor, bool owned, tlm_holder holder, tlmi_saved *saved);
/* Lets go of it. A link is not touched. */
void tlmi_unsave(tlm_tape *tape, tlmi_saved *saved, tlm_holder holder);
void tlmi_unsave_floating(tlm_tape *tape, tlmi_saved *saved, tlm_holder holder); /* the object floats then */
/* TLM_OK, or TLM_CHANGED with the conflict kept, or TLM_FREED. */
tlm_status tlmi_saved_check(const tlmi_saved *saved, tlmi_tape_slot *slot);
void tlmi_place_drop(tlm_place place);
/* The count of `from` goes to `to`, or with an owned object from floating; object 0 is fine. */
tlm_status tlmi_hold(tlm_object object, tlm_holder holder, bool owned);
void tlmi_let_go(tlm_object object, tlm_holder holder);
bool tlmi_is_sole(tlm_object object); /* one count, and it is a tensor with memory of its own */

/* ---- tape_grads.c ---- */
bool tlmi_tensor_is_dense(const tlm_tensor *tensor); /* row by row, no gaps, no strides of 0 */
int64_t tlmi_tensor_elements(const tlm_tensor *tensor);
/* Adds a gradient to what has arrived at the slot. Takes an owned object over, whatever is returned. */
tlm_status tlmi_grad_arrive(tlm_tape *tape, tlmi_tape_slot *slot, const tlm_tensor *gradient, bool owned);
void tlmi_grad_drop_incoming(tlmi_tape_slot *slot);
void tlmi_grad_drop_stored(tlm_tape *tape, tlmi_tape_slot *slot);
/* Everything about handing what arrived over that can fail; then that which cannot, but for memory that was freed by hand. */
tlm_status tlmi_grad_prepare(tlm_tape *tape, tlmi_tape_slot *slot);
tlm_status tlmi_grad_commit(tlm_tape *tape, tlmi_tape_slot *slot);

/* ---- tape_replay.c ---- */
/* Computes the value of a slot again and holds it for `saved`, whose link it is. */
tlm_status tlmi_replay_link(tlm_tape *tape, tlmi_saved *saved);
void tlmi_replay_end(tlmi_saved *saved, uint64_t sequence);

/* ---- tape_record.c ---- */
uint64_t tlmi_tape_next_sequence(void); /* that the next slot of any tape gets */

/* ---- tape_pass.c ---- */
bool tlmi_tape_is_running(tlm_tape *tape); /* a pass is under way; locked, may let go of the lock for a moment */

#pragma GCC visibility pop
#endif
