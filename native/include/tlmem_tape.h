/* SPDX-License-Identifier: MIT
 * tlmem_tape.h: the tape: what was computed from what, what the gradients will need, and who therefore holds which memory.
 *
 * Words. A *slot* is a value on a tape: a *leaf*, whose gradient the program wants, or the result of a *record*: an
 * operation, the slots it read and what it *saved*. A *rule* computes the gradients of an operation's inputs from that of its
 * output; a *pass* is one walk of rules from a root back to the leaves. An *op* is a row: name, rule, how to compute it again.
 *
 * Who owns what. A slot lives while somebody refers to it: a name of the program (tlm_slot_acquire), a record that read it,
 * a pass that is under way. With the last reference its record goes, with that what it saved, and so on, without
 * recursion. What is saved, and gradients, are counts of holder TAPE | op << 40 | sequence (TLM_TAPE_HOLDER) of the object.
 * After a rule has run its record lets go of everything, unless the pass retains the graph (docs/seed-map.md, S61, S63, S66).
 * The tape computes nothing: rules and the tape's arithmetic do.
 *
 * Threads. Any thread may record, acquire and release. A tape has one pass at a time: that of another thread is waited for, so
 * the caller holds no lock that a rule needs (Python's GIL); a rule may start passes of its own. No lock of ours is held while a rule, a `forget` or a `drop` runs. A function returns a status; unless it is TLM_OK, nothing has
 * changed unless the comment says what. Slot 0 means "needs no gradient" and is accepted wherever a slot is an input.
 */
#ifndef TLMEM_TAPE_H
#define TLMEM_TAPE_H

#include "tlmem.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* cffi: begin */
/* ---- tensors ---- */
typedef enum { TLM_FLOAT32 = 1, TLM_FLOAT64 = 2, TLM_INT64 = 3, TLM_BOOL = 4, TLM_INT32 = 5 } tlm_dtype;

/* Elements in memory of an object, or, with object 0, one number as often as the shape says (strides 0). Owns nothing. */
typedef struct {
    tlm_object object; /* that has the payload; never a view */
    union {
        uint64_t offset; /* of the first element, in bytes */
        double float64;  /* object 0: the number, by dtype; at the same place in memory */
        float float32;
        int64_t int64;
        int32_t int32;
        uint8_t boolean;
    } at;
    uint32_t device;
    uint8_t dtype, axes; /* at most 8 axes: TLM_MOST_AXES */
    uint8_t unused[2];
    int64_t shape[8];
    int64_t strides[8]; /* in bytes; 0: the same element along that axis */
} tlm_tensor;

/* ---- ops ---- */
typedef struct tlm_pass tlm_pass;
/* Gives gradients (tlm_pass_give) for the inputs that want one. Another status than TLM_OK ends the pass with it. */
typedef tlm_status (*tlm_rule)(tlm_pass *pass);
/* Computes the output again from all inputs, into a fresh floating object (or, for a view, out->object = an input's: it is
 * then borrowed). Must give the same bits as the first time. */
typedef tlm_status (*tlm_replay)(void *context, const void *params, const tlm_tensor *inputs, uint32_t count,
                                 tlm_tensor *out);
typedef struct {
    const char *name;
    tlm_rule rule;
    tlm_replay replay;                           /* NULL: its output cannot be computed again, and is saved */
    void (*forget)(void *context, void *params); /* a record goes: gives back what params own; or NULL */
    void *context;                               /* lives as long as the process */
} tlm_op;
/* Its number, from 16 on, for ever; copies the row and the name. TLM_NO_MEMORY. At most 65535. Below 16 the tape itself is
 * meant: 1 a gradient on its way, 2 a gradient of a leaf or one that is kept, 3 a value computed again. */
tlm_status tlm_op_define(const tlm_op *op, uint32_t *number);
/* Static name, "" for a number that is not an op. */
const char *tlm_op_name(uint32_t number);

/* ---- tapes ---- */
typedef struct tlm_tape tlm_tape;
typedef uint64_t tlm_slot; /* tape << 56 | generation << 28 | index; never used again; 0: none */

/* What a tape asks to be computed. Both get contents, not ownership. */
typedef struct {
    /* into += from, element by element; same shape and dtype, any strides in `from`, none 0 in `into`. */
    tlm_status (*add)(const tlm_tensor *into, const tlm_tensor *from);
    /* A fresh floating object with the elements of `from` row by row; fills out. */
    tlm_status (*copy)(const tlm_tensor *from, tlm_tensor *out);
} tlm_arithmetic;

/* At most 255 tapes at a time. TLM_NO_MEMORY, TLM_OVERFLOW. */
tlm_status tlm_tape_create(tlm_label label, const tlm_arithmetic *arithmetic, tlm_tape **out);
/* Resets it and gives its memory back; its number may serve again, its slots are stale. TLM_BUSY: a pass is under way.
 * NULL is fine. No other thread may be inside a call on it. */
tlm_status tlm_tape_destroy(tlm_tape *tape);

/* What a record saves. */
typedef struct {
    int32_t what;   /* number of the input, or one of the two below */
    uint32_t owned; /* 1, of EXTRA: the object floats, and the tape takes its count; on failure it stays floating */
    tlm_tensor tensor;
} tlm_save;
enum { TLM_SAVE_OUTPUT = -1, TLM_SAVE_EXTRA = -2 };

/* What tells a record apart in errors; opaque to the tape. Taken over by a record (TLM_OK only), given back by
 * `drop_place` (tlm_tape_places). */
typedef struct {
    void *code;
    int64_t instruction;
} tlm_place;
/* How a tape keeps and gives back places; NULLs: not at all. For the extension module; once, before any tape is used. */
void tlm_tape_places(void (*drop)(tlm_place place));

typedef struct {
    uint32_t op;
    uint32_t inputs;           /* how many */
    const tlm_slot *slots;     /* of the inputs; 0: needs no gradient */
    const tlm_tensor *tensors; /* of the inputs; read when `recompute`, else may be NULL */
    const tlm_save *saves;
    uint32_t save_count;
    uint32_t recompute; /* 1: hold what it takes to compute the output again instead of the output (S62) */
    const void *params; /* copied; numbers that the rule wants back */
    uint32_t params_bytes;
    const tlm_tensor *output;
    tlm_place place;
} tlm_record;

/* A leaf: `tensor` says whose gradient it is; the object itself is not held. The caller has one reference. */
tlm_status tlm_tape_leaf(tlm_tape *tape, const tlm_tensor *tensor, tlm_slot *out);
/* Records an operation when an input needs a gradient and the context's mode says so; otherwise *out = 0 and nothing is held.
 * The caller has one reference. What is saved is acquired. Params and place are taken over when *out is not 0. TLM_STALE_SLOT, TLM_WRONG_TAPE (an input of another tape),
 * TLM_FREED (what is to be saved), TLM_IN_ARENA (likewise: its memory may end before), TLM_NO_MEMORY. */
tlm_status tlm_tape_record(tlm_tape *tape, const tlm_record *record, tlm_slot *out);
/* One more reference, by a name of the program. TLM_STALE_SLOT. */
tlm_status tlm_slot_acquire(tlm_slot slot);
/* Gives one back; a stale slot and 0 are fine. Cannot fail. */
void tlm_slot_release(tlm_slot slot);
/* 1 while it is on a tape. */
int tlm_slot_alive(tlm_slot slot);
/* The tape of a slot that is alive, else NULL. */
tlm_tape *tlm_slot_tape(tlm_slot slot);

typedef struct {
    tlm_slot slot;
    uint64_t sequence; /* never used again, on any tape */
    uint32_t op;
    uint32_t references;
    uint32_t inputs, saves;
    uint8_t leaf, spent, retains_grad, has_grad; /* spent: its rule ran and what it saved is gone */
    tlm_place place;                             /* borrowed; valid while the slot is */
} tlm_slot_info;
tlm_status tlm_slot_describe(tlm_slot slot, tlm_slot_info *out);

/* Whether records are made: of the context. 1 on, 0 off; returns what was in force. */
int tlm_grad_mode(int on);
int tlm_grad_mode_current(void);

/* ---- going back ---- */
/* From root to the leaves. `seed`: the gradient of the root, of its shape; NULL: ones (one number: the caller checks that the
 * root has one element). Gradients of leaves are added to what they have when the whole pass has succeeded; those of others
 * go with their last rule unless kept (tlm_slot_retain_grad). When it fails (status of the rule), no leaf has changed, what
 * ran is spent (unless retained) and nothing of the pass is left. TLM_STALE_SLOT, TLM_SECOND_BACKWARD (recorded as misuse),
 * TLM_BUSY (a rule goes back through what its own pass is going through), TLM_CHANGED (what was saved was written since; misuse; tlm_tape_conflict tells both places), TLM_FREED. */
tlm_status tlm_backward(tlm_slot root, const tlm_tensor *seed, int retain_graph);

/* For rules; borrowed, valid until the rule returns. */
void *tlm_pass_context(const tlm_pass *pass);
const void *tlm_pass_params(const tlm_pass *pass);
uint32_t tlm_pass_inputs(const tlm_pass *pass);
int tlm_pass_wants(const tlm_pass *pass, uint32_t input);
/* The gradient of the output; its strides may be 0, its object may be others' too: read only. */
const tlm_tensor *tlm_pass_grad(const tlm_pass *pass);
const tlm_tensor *tlm_pass_saved(const tlm_pass *pass, uint32_t index);
/* 1: nobody else holds or retains the gradient of the output, and its elements lie row by row: the rule may write its result
 * over it and give it with tlm_pass_share. */
int tlm_pass_may_overwrite_grad(const tlm_pass *pass);
/* The gradient of an input. _give takes a floating object's count over, whatever is returned; _share takes one more count of
 * an object that is the pass's, such as a view of the gradient itself. An input that wants none is fine: given objects are
 * then freed. Several gradients for one input are added. */
tlm_status tlm_pass_give(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient);
tlm_status tlm_pass_share(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient);

/* ---- gradients ---- */
/* The gradient; out->object = 0 when there is none. Borrowed from the tape: acquire it to keep it. */
tlm_status tlm_slot_grad(tlm_slot slot, tlm_tensor *out);
/* Puts a gradient there, or takes it away (object 0). The object is acquired. Same shape and dtype, checked by the caller.
 * TLM_STALE_SLOT, TLM_FREED, TLM_IN_ARENA (its memory may end before). */
tlm_status tlm_slot_set_grad(tlm_slot slot, const tlm_tensor *gradient);
/* Keeps the gradient of a slot that is not a leaf after the pass. */
tlm_status tlm_slot_retain_grad(tlm_slot slot);
/* Lets go of every gradient of the tape; returns how many. */
uint64_t tlm_tape_clear_grads(tlm_tape *tape);
/* Fills every gradient that the tape alone holds with zeros by `zero`, lets go of the others; returns how many there were. */
uint64_t tlm_tape_zero_grads(tlm_tape *tape, tlm_status (*zero)(const tlm_tensor *gradient));
/* Everything goes, slots are stale, capacity stays. TLM_BUSY. */
tlm_status tlm_tape_reset(tlm_tape *tape);
/* Records that a program took a value off the tape. */
void tlm_detach_record(tlm_object object, tlm_slot slot);

/* ---- writing in place ---- */
/* Says that an object's payload is about to be written: a saved value that is read later is then known to have changed.
 * Returns 1 when a tape saved it. `place`: who writes, kept (and owned) only then; otherwise *kept = 0. */
int tlm_object_written(tlm_object object, tlm_place place, int *kept);
/* 1 when a tape holds it for a rule; *holder which. */
int tlm_object_saved(tlm_object object, tlm_holder *holder);
/* Of the last TLM_CHANGED of this thread: where it was saved and where it was written. Borrowed until the next one. */
typedef struct {
    tlm_object object;
    tlm_holder saved_by;
    tlm_place saved, written;
} tlm_conflict;
void tlm_tape_conflict(tlm_conflict *out);
/* Where what a holder of kind TAPE saved was recorded; zeros when it is gone. Borrowed. */
tlm_place tlm_tape_holder_place(tlm_holder holder);

/* ---- what a tape holds ---- */
typedef struct {
    uint64_t records, leaves; /* on the tape now */
    uint64_t recorded, spent; /* ever */
    uint64_t saved_bytes;     /* of the objects it holds for rules, each object once */
    uint64_t saved_objects;   /* likewise */
    uint64_t peak_saved_bytes, peak_records;
    uint64_t grad_bytes, grads; /* gradients of leaves and kept ones */
    uint64_t rules, replays;    /* ever run */
    uint64_t capacity;          /* slots there is room for */
    uint64_t own_bytes;         /* of bookkeeping */
} tlm_tape_statistics;
void tlm_tape_stats(tlm_tape *tape, tlm_tape_statistics *out);
/* Of one op: records on the tape now, and the bytes that they saved (an object that two saved counts for both). Returns
 * how many rows there are; up to `room` are filled. */
typedef struct {
    uint32_t op;
    uint32_t unused;
    uint64_t records, saved_bytes, recorded, rules;
} tlm_tape_op_row;
uint32_t tlm_tape_op_rows(tlm_tape *tape, tlm_tape_op_row *out, uint32_t room);
/* How often each value on the tape is still read: by records on it whose rule has not run, once for each input that it is.
 * Row k is that of the slot with index k + 1, its `slot` 0 when that is free. Returns how many rows there are; they are
 * filled when `room` is enough. */
typedef struct {
    tlm_slot slot;
    uint64_t sequence; /* later values have higher ones */
    uint32_t uses;
    uint32_t op; /* that made it; of a leaf 0 */
} tlm_tape_use;
uint32_t tlm_tape_use_counts(tlm_tape *tape, tlm_tape_use *out, uint32_t room);
/* cffi: end */

enum { TLM_MOST_AXES = 8 };
#define TLM_TAPE_HOLDER(op, sequence)                                                                                  \
    TLM_HOLDER(TLM_HOLDER_TAPE, (uint64_t)(op) << 40 | ((uint64_t)(sequence) & UINT64_C(0xFFFFFFFFFF)))
#define TLM_TAPE_HOLDER_OP(holder) ((uint32_t)((holder) >> 40 & 0xFFFF))

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
