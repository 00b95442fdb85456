/* SPDX-License-Identifier: MIT
 * extremes.c: the greatest and the least along axes; equal ones share the gradient evenly.
 *
 * Params: n[0] the mask of axes, n[1] whether they stay with length 1. Forward adds n[2]: whether somewhere several are equal,
 * n[3] how many axes the input has, n[4] on their lengths. Saved is, for each result, where in the input (row by row) its
 * element is: 8 bytes, never more than input and output. Only when several are equal both of these are saved instead, and
 * the rule looks for the equal ones again. A NaN is a result, and as such equal to another. Any thread.
 */
#include "ops/axes.h"

enum { MASK, KEEP, TIES, AXES, SHAPE };
enum { PIECE = 1 << 20 }; /* of a row: elements that an int counts */

#define OPS_BOTH "ops/extreme_rows.h"
#include "ops/both.h"

/* ---- where the extremes are ---- */

/* Fills `places` (int64, of the output's shape): where each result is in x. *ties: several are equal somewhere. */
static tlm_status find(const tlm_tensor *x, const tlm_tensor *result, const tlm_tensor *places, bool *ties)
{
    const tlm_tensor *tensors[] = {x, result, places};
    ops_walk walk;
    bool some;
    *ties = false;
    tlm_status status = ops_walk_begin(&walk, tensors, 3, &some);
    for (int64_t first = 0; status == TLM_OK && some; first += walk.length) {
        *ties |= OPS_BY_DTYPE(x->dtype, find_in_row, &walk, first);
        some = ops_walk_next(&walk);
    }
    return status;
}

static tlm_status save_places(ops_call *call, uint32_t mask, bool *ties)
{
    const tlm_tensor *x = &call->in[0];
    tlm_tensor places, seen, result;
    tlm_status status = ops_new(x->device, TLM_INT64, call->out.axes, call->out.shape, &places);
    if (status != TLM_OK)
        return status;
    ops_seen_along(&places, mask, call->params.n[KEEP], x->axes, x->shape, &seen);
    ops_seen_along(&call->out, mask, call->params.n[KEEP], x->axes, x->shape, &result);
    status = ops_fill(&places, -1);
    if (status == TLM_OK)
        status = find(x, &result, &seen, ties);
    if (status == TLM_OK && !*ties)
        ops_save_made(call, &places);
    else
        ops_drop(&places);
    return status;
}

static tlm_status save(ops_call *call, uint32_t mask)
{
    const tlm_tensor *x = &call->in[0];
    bool ties;
    tlm_status status = save_places(call, mask, &ties);
    if (status != TLM_OK)
        return status;
    if (ties) {
        ops_save_input(call, 0);
        ops_save_output(call);
    }
    call->params.n[TIES] = ties;
    call->params.n[AXES] = x->axes;
    for (int i = 0; i < x->axes; i++)
        call->params.n[SHAPE + i] = x->shape[i];
    call->params.count = SHAPE + x->axes;
    return TLM_OK;
}

static tlm_status forward(ops_call *call, ops_loop_name loop, double start)
{
    const tlm_tensor *x = &call->in[0];
    uint32_t mask = (uint32_t)call->params.n[MASK];
    if (!ops_common_dtype(call) || ops_reduced_count(x->axes, x->shape, mask) == 0)
        return (tlm_status)OPS_NOT_HERE;
    tlm_tensor seen;
    tlm_status status = ops_new_reduced_out(call, mask, call->params.n[KEEP], &seen);
    if (status != TLM_OK)
        return status;
    status = ops_reduce(loop, x, mask, start, &seen);
    if (status == TLM_OK && call->records)
        status = save(call, mask);
    if (status != TLM_OK)
        ops_drop_out(call);
    return status;
}

static tlm_status max_forward(ops_call *call)
{
    return forward(call, OPS_MAXIMUM, -__builtin_inf());
}

static tlm_status min_forward(ops_call *call)
{
    return forward(call, OPS_MINIMUM, __builtin_inf());
}

/* ---- gradients ---- */

/* Each gradient goes to the element that its result was. */
static tlm_status give_to_places(const tlm_tensor *gradient, const tlm_tensor *places, const tlm_tensor *out)
{
    const tlm_tensor *tensors[] = {gradient, places};
    ops_walk walk;
    bool some;
    tlm_status status = ops_fill(out, 0);
    if (status == TLM_OK)
        status = ops_walk_begin(&walk, tensors, 2, &some);
    char *into = status == TLM_OK && some ? ops_data(out) : NULL;
    while (into && some) {
        OPS_BY_DTYPE(out->dtype, give_row, &walk, into);
        some = ops_walk_next(&walk);
    }
    return status;
}

/* How many are equal to each result; `result` and `counts` are seen along the axes. */
static tlm_status count_equal(const tlm_tensor *x, const tlm_tensor *result, const tlm_tensor *counts)
{
    const tlm_tensor *tensors[] = {x, result, counts};
    return ops_each_row(tensors, 3, x->dtype == TLM_FLOAT64 ? count_row_float64 : count_row_float32, NULL);
}

/* Elements equal to the result get its gradient over how many they are. */
static tlm_status share_evenly(tlm_pass *pass, const tlm_tensor *gradient, const tlm_tensor *out)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *x = tlm_pass_saved(pass, 0);
    uint32_t mask = (uint32_t)params->n[MASK];
    bool keepdims = params->n[KEEP];
    tlm_tensor share, shares, result;
    tlm_status status = ops_new_like(gradient, &share);
    if (status != TLM_OK)
        return status;
    ops_seen_along(&share, mask, keepdims, x->axes, x->shape, &shares);
    ops_seen_along(tlm_pass_saved(pass, 1), mask, keepdims, x->axes, x->shape, &result);
    status = ops_fill(&share, 0);
    if (status == TLM_OK)
        status = count_equal(x, &result, &shares);
    if (status == TLM_OK)
        status = ops_binary(OPS_DIVIDE, gradient, &share, &share);
    if (status == TLM_OK) {
        const tlm_tensor *tensors[] = {x, &result, &shares, out};
        status = ops_each_row(tensors, 4, x->dtype == TLM_FLOAT64 ? share_row_float64 : share_row_float32, NULL);
    }
    ops_drop(&share);
    return status;
}

static tlm_status backward(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    tlm_tensor made;
    tlm_status status = ops_new(gradient->device, gradient->dtype, (int)params->n[AXES], &params->n[SHAPE], &made);
    if (status != TLM_OK)
        return status;
    status = params->n[TIES] ? share_evenly(pass, gradient, &made)
                             : give_to_places(gradient, tlm_pass_saved(pass, 0), &made);
    if (status == TLM_OK)
        return tlm_pass_give(pass, 0, &made);
    ops_drop(&made);
    return status;
}

static const ops_row rows[] = {
    {"max", "indices", 1, 1, true, max_forward, backward},
    {"min", "indices", 1, 1, true, min_forward, backward},
};
const ops_family ops_extremes = {rows, sizeof rows / sizeof *rows};
