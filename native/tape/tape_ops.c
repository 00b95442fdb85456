/* SPDX-License-Identifier: MIT
 * tape_ops.c: ops by number, and their names in a recording.
 *
 * Ops are never taken away; readers need no lock.
 */
#include <stdio.h>

#include "tape/tape.h"

enum { MOST_OPS = 65536, CHUNK = 256 };

typedef struct {
    tlm_op op;
    _Atomic uint64_t named_in; /* epoch of the recording that has its name */
} known_op;

static known_op *_Atomic chunks[MOST_OPS / CHUNK];
static struct {
    tlmi_spin lock;
    uint32_t next;
} registry = {.next = TLMI_OP_FIRST};
static known_op own[TLMI_OP_FIRST] = {
    [TLMI_OP_GRADIENT] = {.op = {.name = "gradient"}},
    [TLMI_OP_STORED] = {.op = {.name = "leaf-gradient"}},
    [TLMI_OP_RECOMPUTED] = {.op = {.name = "recomputed"}},
};

static known_op *find(uint32_t number)
{
    if (number < TLMI_OP_FIRST)
        return &own[number];
    known_op *chunk = number < MOST_OPS ? atomic_load_explicit(&chunks[number / CHUNK], memory_order_acquire) : NULL;
    return chunk && chunk[number % CHUNK].op.name ? &chunk[number % CHUNK] : NULL;
}

const tlm_op *tlmi_op(uint32_t number)
{
    const known_op *known = find(number);
    return known ? &known->op : NULL;
}

const char *tlm_op_name(uint32_t number)
{
    const tlm_op *op = tlmi_op(number);
    return op && op->name ? op->name : "";
}

static known_op *next_place(void)
{
    if (registry.next >= MOST_OPS)
        return NULL;
    known_op *chunk = atomic_load_explicit(&chunks[registry.next / CHUNK], memory_order_relaxed);
    if (!chunk) {
        chunk = tlmi_own_alloc(CHUNK * sizeof *chunk);
        atomic_store_explicit(&chunks[registry.next / CHUNK], chunk, memory_order_release);
    }
    return chunk ? &chunk[registry.next % CHUNK] : NULL;
}

tlm_status tlm_op_define(const tlm_op *op, uint32_t *number)
{
    tlm_label label = op->name ? tlm_label_of(op->name) : 0;
    if (!label || !op->rule)
        return tlmi_fail(op->name && op->rule ? TLM_NO_MEMORY : TLM_BAD_ARGUMENT, 0, 0, 0, 0);
    tlmi_spin_lock(&registry.lock);
    known_op *place = next_place();
    if (place) {
        place->op = *op;
        place->op.name = tlm_label_text(label);
        *number = registry.next++;
    }
    tlmi_spin_unlock(&registry.lock);
    return place ? TLM_OK : tlmi_fail(TLM_NO_MEMORY, 0, 0, sizeof *place, 0);
}

/* Holders say an op's number; a note says once in each recording what it is called. */
static void write_name(uint32_t number, uint64_t recording)
{
    known_op *known = find(number);
    char key[24];
    if (!known || !known->op.name ||
        atomic_exchange_explicit(&known->named_in, recording, memory_order_relaxed) == recording)
        return;
    snprintf(key, sizeof key, "op.%u", number);
    tlmi_meta_note(key, known->op.name);
}

void tlmi_op_write_names(uint32_t number)
{
    uint64_t recording = atomic_load_explicit(&tlmi_recording_epoch, memory_order_relaxed);
    const known_op *known = find(number);
    if (!known || atomic_load_explicit(&known->named_in, memory_order_relaxed) == recording)
        return;
    for (uint32_t each = TLMI_OP_GRADIENT; each <= TLMI_OP_RECOMPUTED; each++)
        write_name(each, recording);
    write_name(number, recording);
}
