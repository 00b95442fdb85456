/* SPDX-License-Identifier: MIT
 * reductions.c: sum, mean, variance, the greatest and the least along axes, and running sums.
 *
 * Params: n[0] the mask of axes, n[1] whether they stay with length 1, n[2] var: what is taken off the count. Forward adds the
 * shape that the rule needs: n[3] how many axes, n[4] on their lengths. The gradient of a sum is that of its output, seen
 * along the axes: it takes no memory. Any thread.
 */
#include <string.h>

#include "ops/axes.h"

enum { MASK, KEEP, CORRECTION, TIES = CORRECTION, AXES, SHAPE };
enum { PIECE = 2048 };            /* of a long row, in elements */
enum { COUNTED_PIECE = 1 << 20 }; /* of a row: elements that an int counts */

#define OPS_BOTH "ops/row_loops.h"
#include "ops/both_dtypes.h"
#define OPS_BOTH "ops/reduction_loops.h"
#include "ops/both_dtypes.h"

static void keep_shape(ops_call *call)
{
    const tlm_tensor *x = &call->in[0];
    if (!call->records)
        return;
    call->params.n[AXES] = x->axes;
    for (int i = 0; i < x->axes; i++)
        call->params.n[SHAPE + i] = x->shape[i];
    call->params.count = SHAPE + x->axes;
}

/* Whether what becomes one element lies side by side in memory; nothing does when there is nothing. */
static bool is_by_rows(const tlm_tensor *x, uint32_t mask)
{
    int first = 0;
    while (first < x->axes && !(mask >> first & 1))
        first++;
    for (int i = first; i < x->axes; i++)
        if (!(mask >> i & 1))
            return false;
    return x->object && ops_elements(x) > 0 && ops_is_dense(x);
}

/* One of the loops over rows of such an x. */
static tlm_status reduce_rows(const tlm_tensor *x, uint32_t mask, double divisor, bool var, const tlm_tensor *out)
{
    int64_t length = ops_reduced_count(x->axes, x->shape, mask), rows = ops_elements(x) / length;
    const void *from = ops_data(x);
    void *to = ops_data(out);
    if (!from || !to)
        return TLM_FREED;
    if (var)
        OPS_BY_DTYPE(x->dtype, var_rows, from, to, rows, length, divisor);
    else
        OPS_BY_DTYPE(x->dtype, sum_rows, from, to, rows, length, divisor);
    return TLM_OK;
}

/* Sums into `out`, which is `seen` along the axes, and divides by `divisor` unless that is 1. */
static tlm_status total(const tlm_tensor *x, uint32_t mask, double divisor, const tlm_tensor *out,
                        const tlm_tensor *seen)
{
    bool by_rows = is_by_rows(x, mask);
    tlm_status status = by_rows ? reduce_rows(x, mask, divisor, false, out) : ops_reduce(OPS_ADD, x, mask, 0, seen);
    if (status == TLM_OK && divisor != 1 && !by_rows) {
        tlm_tensor number;
        ops_constant(divisor, x->dtype, out->axes, out->shape, &number);
        status = ops_binary(OPS_DIVIDE, out, &number, out);
    }
    return status;
}

/* Likewise into the result of the call. */
static tlm_status total_out(ops_call *call, const tlm_tensor *x, uint32_t mask, double divisor)
{
    tlm_tensor seen;
    tlm_status status = ops_new_reduced_out(call, mask, call->params.n[KEEP], &seen);
    if (status != TLM_OK)
        return status;
    status = total(x, mask, divisor, &call->out, &seen);
    if (status != TLM_OK)
        ops_drop_out(call);
    return status;
}

static double reduced_count(const tlm_tensor *x, uint32_t mask)
{
    return (double)ops_reduced_count(x->axes, x->shape, mask);
}

static tlm_status forward_total(ops_call *call, bool mean)
{
    const tlm_tensor *x = &call->in[0];
    if (!ops_common_dtype(call))
        return (tlm_status)OPS_NOT_HERE;
    uint32_t mask = (uint32_t)call->params.n[MASK];
    keep_shape(call);
    return total_out(call, x, mask, mean ? reduced_count(x, mask) : 1);
}

static tlm_status sum_forward(ops_call *call)
{
    return forward_total(call, false);
}

static tlm_status mean_forward(ops_call *call)
{
    return forward_total(call, true);
}

/* A gradient of the output's shape, given to the input along the axes. */
static tlm_status give_along(tlm_pass *pass, const ops_params *params, const tlm_tensor *small, bool shared)
{
    tlm_tensor seen;
    ops_seen_along(small, (uint32_t)params->n[MASK], params->n[KEEP], (int)params->n[AXES], &params->n[SHAPE], &seen);
    return ops_give_made(pass, 0, &seen, shared);
}

static tlm_status sum_backward(tlm_pass *pass)
{
    return give_along(pass, tlm_pass_params(pass), tlm_pass_grad(pass), true);
}

/* The gradient of the output over `divisor`: one number stays one number, and takes no memory. */
static tlm_status divided(tlm_pass *pass, double divisor, tlm_tensor *out, bool *shared)
{
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    tlm_tensor number;
    if (!gradient->object) {
        double value = gradient->dtype == TLM_FLOAT64 ? gradient->at.float64 : gradient->at.float32;
        *shared = true;
        ops_constant(value / divisor, gradient->dtype, gradient->axes, gradient->shape, out);
        out->device = gradient->device;
        return TLM_OK;
    }
    tlm_status status = ops_new_grad(pass, out, shared);
    if (status != TLM_OK)
        return status;
    ops_constant(divisor, gradient->dtype, gradient->axes, gradient->shape, &number);
    status = ops_binary(OPS_DIVIDE, gradient, &number, out);
    if (status != TLM_OK && !*shared)
        ops_drop(out);
    return status;
}

static tlm_status mean_backward(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    int64_t count = ops_reduced_count((int)params->n[AXES], &params->n[SHAPE], (uint32_t)params->n[MASK]);
    tlm_tensor small;
    bool shared;
    tlm_status status = divided(pass, (double)count, &small, &shared);
    return status == TLM_OK ? give_along(pass, params, &small, shared) : status;
}

/* ---- variance ---- */

static double var_divisor(double count, int64_t correction)
{
    return count > (double)correction ? count - (double)correction : 0;
}

/* distance = x - its mean along the axes. */
static tlm_status distances(const tlm_tensor *x, uint32_t mask, const tlm_tensor *distance)
{
    tlm_tensor middle, seen;
    tlm_status status = ops_new_reduced(x, mask, true, &middle, &seen);
    if (status != TLM_OK)
        return status;
    status = total(x, mask, reduced_count(x, mask), &middle, &seen);
    if (status == TLM_OK)
        status = ops_binary(OPS_SUBTRACT, x, &seen, distance);
    ops_drop(&middle);
    return status;
}

/* Over memory for the distances: for elements that do not lie side by side. */
static tlm_status var_by_distances(ops_call *call, uint32_t mask, double divisor)
{
    const tlm_tensor *x = &call->in[0];
    tlm_tensor distance;
    tlm_status status = ops_new_like(x, &distance);
    if (status != TLM_OK)
        return status;
    status = distances(x, mask, &distance);
    if (status == TLM_OK)
        status = ops_unary(OPS_SQUARE, &distance, &distance);
    if (status == TLM_OK)
        status = total_out(call, &distance, mask, divisor);
    ops_drop(&distance);
    return status;
}

static tlm_status var_by_rows(ops_call *call, uint32_t mask, double divisor)
{
    tlm_tensor seen;
    tlm_status status = ops_new_reduced_out(call, mask, call->params.n[KEEP], &seen);
    if (status != TLM_OK)
        return status;
    status = reduce_rows(&call->in[0], mask, divisor, true, &call->out);
    if (status != TLM_OK)
        ops_drop_out(call);
    return status;
}

static tlm_status var_forward(ops_call *call)
{
    const tlm_tensor *x = &call->in[0];
    if (!ops_common_dtype(call))
        return (tlm_status)OPS_NOT_HERE;
    uint32_t mask = (uint32_t)call->params.n[MASK];
    double divisor = var_divisor(reduced_count(x, mask), call->params.n[CORRECTION]);
    tlm_status status = is_by_rows(x, mask) ? var_by_rows(call, mask, divisor) : var_by_distances(call, mask, divisor);
    if (status == TLM_OK && call->records) {
        keep_shape(call);
        ops_save_input(call, 0);
    }
    return status;
}

/* 2 (x - mean) / divisor, times the gradient along the axes. */
static tlm_status var_gradient(tlm_pass *pass, const tlm_tensor *x, const tlm_tensor *out)
{
    const ops_params *params = tlm_pass_params(pass);
    uint32_t mask = (uint32_t)params->n[MASK];
    tlm_tensor factor, seen;
    bool shared;
    tlm_status status = distances(x, mask, out);
    if (status == TLM_OK)
        status = divided(pass, var_divisor(reduced_count(x, mask), params->n[CORRECTION]) / 2, &factor, &shared);
    if (status != TLM_OK)
        return status;
    ops_seen_along(&factor, mask, params->n[KEEP], x->axes, x->shape, &seen);
    status = ops_binary(OPS_MULTIPLY, out, &seen, out);
    if (!shared)
        ops_drop(&factor);
    return status;
}

static tlm_status var_backward(tlm_pass *pass)
{
    const tlm_tensor *x = tlm_pass_saved(pass, 0);
    tlm_tensor made;
    tlm_status status = ops_new_like(x, &made);
    if (status != TLM_OK)
        return status;
    status = var_gradient(pass, x, &made);
    if (status == TLM_OK)
        return tlm_pass_give(pass, 0, &made);
    ops_drop(&made);
    return status;
}

/* ---- the greatest, the least ----
 * Params: n[0] the mask of axes, n[1] whether they stay with length 1. Forward adds n[2]: whether somewhere several are equal,
 * n[3] how many axes the input has, n[4] on their lengths. Saved is, for each result, where in the input (row by row) its
 * element is: 8 bytes, never more than input and output. Only when several are equal both of these are saved instead, and
 * the rule looks for the equal ones again. A NaN is a result, and as such equal to another. Any thread.
 */

/* ---- where the extremes are ---- */

/* Fills `places` (int64, of the output's shape): where each result is in x. *ties: several are equal somewhere. */
static tlm_status find_places(const tlm_tensor *x, const tlm_tensor *result, const tlm_tensor *places, bool *ties)
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
        status = find_places(x, &result, &seen, ties);
    if (status == TLM_OK && !*ties)
        ops_save_made(call, &places);
    else
        ops_drop(&places);
    return status;
}

static tlm_status save_extreme(ops_call *call, uint32_t mask)
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

static tlm_status forward_extreme(ops_call *call, ops_loop_name loop, double start)
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
        status = save_extreme(call, mask);
    if (status != TLM_OK)
        ops_drop_out(call);
    return status;
}

static tlm_status max_forward(ops_call *call)
{
    return forward_extreme(call, OPS_MAXIMUM, -__builtin_inf());
}

static tlm_status min_forward(ops_call *call)
{
    return forward_extreme(call, OPS_MINIMUM, __builtin_inf());
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

static tlm_status extreme_backward(tlm_pass *pass)
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

/* ---- running sums ----
 * Params: n[0] the axis, from 0 on. Nothing is saved: the gradient is the sum of the output's from the other end.
 */

/* The tensor with an axis last, where ops_walk goes along it; from its end when `backwards`. */
static tlm_tensor with_axis_last(const tlm_tensor *tensor, int axis, bool backwards)
{
    tlm_tensor seen = *tensor;
    int last = seen.axes - 1;
    memmove(seen.shape + axis, seen.shape + axis + 1, (size_t)(last - axis) * sizeof *seen.shape);
    memmove(seen.strides + axis, seen.strides + axis + 1, (size_t)(last - axis) * sizeof *seen.strides);
    seen.shape[last] = tensor->shape[axis];
    seen.strides[last] = tensor->strides[axis];
    if (backwards && seen.object && ops_elements(tensor) > 0) {
        seen.at.offset += (uint64_t)((seen.shape[last] - 1) * seen.strides[last]);
        seen.strides[last] = -seen.strides[last];
    }
    return seen;
}

/* Sums as NumPy's add.accumulate: each element is added to the result before it. `to` may be `from`. */
static tlm_status accumulate(const tlm_tensor *from, const tlm_tensor *to, int axis, bool backwards)
{
    tlm_tensor in = with_axis_last(from, axis, backwards), out = with_axis_last(to, axis, backwards);
    const ops_loop *add = ops_loop_of(OPS_ADD, to->dtype);
    size_t item = (size_t)ops_item_bytes(to->dtype);
    ops_walk walk;
    bool some;
    tlm_status status = ops_walk_begin(&walk, (const tlm_tensor *[]){&in, &out}, 2, &some);
    while (status == TLM_OK && some) {
        char *at[] = {walk.at[1], walk.at[0] + walk.step[0], walk.at[1] + walk.step[1]};
        const intptr_t strides[] = {walk.step[1], walk.step[0], walk.step[1]}, count = walk.length - 1;
        memmove(walk.at[1], walk.at[0], item);
        if (count > 0)
            add->call(at, &count, strides, add->data);
        some = ops_walk_next(&walk);
    }
    return status;
}

static tlm_status cumsum_forward(ops_call *call)
{
    const tlm_tensor *x = &call->in[0];
    int64_t axis = call->params.n[0];
    if (!ops_common_dtype(call) || axis < 0 || axis >= x->axes)
        return (tlm_status)OPS_NOT_HERE;
    call->params.count = 1;
    tlm_status status = ops_new_out(call, x->device, x->dtype, x->axes, x->shape);
    if (status != TLM_OK)
        return status;
    status = accumulate(x, &call->out, (int)axis, false);
    if (status != TLM_OK)
        ops_drop_out(call);
    return status;
}

static tlm_status cumsum_backward(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    tlm_tensor out;
    bool shared;
    tlm_status status = ops_grad_copied(pass, &out, &shared);
    if (status != TLM_OK)
        return status;
    status = accumulate(&out, &out, (int)params->n[0], true);
    if (status == TLM_OK)
        return ops_give_made(pass, 0, &out, shared);
    if (!shared)
        ops_drop(&out);
    return status;
}

static const ops_row rows[] = {
    {"sum", "", 1, 1, true, sum_forward, sum_backward, .kind = OPS_REDUCING, .writing = OPS_WRITES_APART,
     .dtype = OPS_COUNTING, .numpy = "add", .method = "sum"},
    {"mean", "", 1, 1, true, mean_forward, mean_backward, .kind = OPS_REDUCING, .writing = OPS_WRITES_APART,
     .dtype = OPS_FRACTION, .method = "mean"},
    {"var", "x", 1, 1, true, var_forward, var_backward, .kind = OPS_OTHER, .writing = OPS_WRITES_APART,
     .method = "var"},
    {"max", "indices", 1, 1, true, max_forward, extreme_backward, .kind = OPS_REDUCING, .writing = OPS_WRITES_APART,
     .dtype = OPS_SAME, .numpy = "maximum", .method = "max"},
    {"min", "indices", 1, 1, true, min_forward, extreme_backward, .kind = OPS_REDUCING, .writing = OPS_WRITES_APART,
     .dtype = OPS_SAME, .numpy = "minimum", .method = "min"},
    {"cumsum", "", 1, 1, true, cumsum_forward, cumsum_backward, .kind = OPS_ALONG, .writing = OPS_WRITES_APART,
     .dtype = OPS_COUNTING, .numpy = "add", .method = "cumsum"},
};
const ops_family ops_reductions = {rows, sizeof rows / sizeof *rows};
