/* SPDX-License-Identifier: MIT
 * rows.c: every op there is, by number and by name, and as ops of the tape.
 *
 * The table is put together when the module is loaded and never changes; numbers of the tape are written once, by ops_define.
 */
#include <string.h>

#include "ops/ops.h"

enum { MOST_ROWS = 128 };

static const ops_row *rows[MOST_ROWS];
static uint32_t numbers[MOST_ROWS];
static int row_count;

__attribute__((constructor)) static void collect(void)
{
    static const ops_family *const families[] = {
        &ops_elementwise, &ops_reductions, &ops_softmaxes, &ops_normalisations,
        &ops_products,    &ops_shapes,     &ops_indexing, &ops_dropouts,
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (int k = 0; k < families[i]->count && row_count < MOST_ROWS; k++)
            rows[row_count++] = &families[i]->rows[k];
}

const ops_row *ops_row_at(int number)
{
    return number >= 0 && number < row_count ? rows[number] : NULL;
}

int ops_row_named(const char *name)
{
    for (int number = 0; number < row_count; number++)
        if (strcmp(rows[number]->name, name) == 0)
            return number;
    return -1;
}

uint32_t ops_number(int row)
{
    return numbers[row];
}

/* ---- running ---- */

tlm_status ops_run(const ops_row *row, ops_call *call)
{
    call->records = false;
    for (uint32_t i = 0; call->needs && i < call->inputs; i++)
        call->records = call->records || call->needs[i];
    call->out_is_view = false;
    call->save_count = 0;
    call->message[0] = 0;
    return row->forward(call);
}

tlm_status ops_forward(int row, ops_call *call)
{
    call->into = NULL;
    return ops_run(rows[row], call);
}

/* What the tape calls to have an output again. The record keeps ops_params_bytes of the params and no more. */
static tlm_status replay_row(void *context, const void *params, const tlm_tensor *inputs, uint32_t count,
                             tlm_tensor *out)
{
    ops_call call;
    call.inputs = count;
    call.in = inputs;
    call.needs = NULL;
    call.into = NULL;
    memcpy(&call.params, params, ops_params_bytes(params));
    tlm_status status = ops_run(context, &call);
    if (status == TLM_OK)
        *out = call.out;
    return status;
}

tlm_status ops_define(void)
{
    for (int i = 0; i < row_count; i++) {
        tlm_op op = {
            .name = rows[i]->name,
            .rule = rows[i]->backward,
            .replay = rows[i]->replays ? replay_row : NULL,
            .context = (void *)rows[i],
        };
        tlm_status status = tlm_op_define(&op, &numbers[i]);
        if (status != TLM_OK)
            return status;
    }
    return TLM_OK;
}

/* ---- what a tape computes with ---- */

static tlm_status add(const tlm_tensor *into, const tlm_tensor *from)
{
    return ops_binary(OPS_ADD, into, from, into);
}

static tlm_status copy(const tlm_tensor *from, tlm_tensor *out)
{
    tlm_status status = ops_new_like(from, out);
    if (status != TLM_OK)
        return status;
    status = ops_copy(from, out);
    if (status != TLM_OK)
        ops_drop(out);
    return status;
}

const tlm_arithmetic ops_tape_arithmetic = {.add = add, .copy = copy};
