/* SPDX-License-Identifier: MIT
 * shapes.c: the same elements in another shape or order: reshape, transpose, swapaxes, squeeze, unsqueeze, broadcast_to.
 *
 * All but reshape give a view, whatever the strides; reshape copies when strides cannot say what is asked for, and records that.
 * Nothing is saved: a rule sees the gradient in the shape of the input, which takes no memory, or sums what was repeated.
 */
#include <string.h>

#include "ops/layouts.h"

/* What every forward here begins with: the output is a view of input 0, as it is. Numbers have no axes to look at. */
static bool begin_view(ops_call *call)
{
    if (!call->in[0].object)
        return false;
    call->out = call->in[0];
    call->out_is_view = true;
    return true;
}

/* ---- reshape: n = how many axes, their lengths (one may be -1: what is left), then the shape of the input ---- */

static tlm_status resolve_shape(ops_call *call, int axes, int64_t *shape)
{
    int64_t known = 1, elements = ops_elements(&call->in[0]);
    int open = -1;
    bool is_right = axes >= 0 && axes <= TLM_MOST_AXES;
    for (int i = 0; i < axes && is_right; i++) {
        if (shape[i] == -1 && open < 0)
            open = i;
        else
            is_right = shape[i] >= 0 && !__builtin_mul_overflow(known, shape[i], &known);
    }
    if (is_right && open >= 0 && known && elements % known == 0)
        known *= shape[open] = elements / known;
    if (is_right && known == elements && (open < 0 || shape[open] >= 0))
        return TLM_OK;
    char text[160];
    tlm_tensor wanted = {.axes = (uint8_t)(axes > TLM_MOST_AXES ? TLM_MOST_AXES : axes)};
    memcpy(wanted.shape, shape, sizeof *shape * wanted.axes);
    return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "a tensor of %lld elements cannot have shape %s",
                    (long long)elements, ops_shape_text(&wanted, text));
}

static tlm_status copy_reshaped(ops_call *call, int axes, const int64_t *shape)
{
    const tlm_tensor *in = &call->in[0];
    tlm_tensor made;
    tlm_status status = ops_new_like(in, &made);
    if (status)
        return status;
    if ((status = ops_copy(in, &made))) {
        ops_drop(&made);
        return status;
    }
    tlm_copy_record(in->object, made.object, (uint64_t)(ops_elements(in) * ops_item_bytes(in->dtype)));
    ops_reshape_in_place(&made, axes, shape, &call->out);
    call->out_is_view = false;
    return TLM_OK;
}

static tlm_status reshape(ops_call *call)
{
    int axes = (int)call->params.n[0];
    int64_t *shape = call->params.n + 1;
    if (!begin_view(call) || axes > TLM_MOST_AXES)
        return (tlm_status)OPS_NOT_HERE;
    tlm_status status = resolve_shape(call, axes, shape);
    if (status)
        return status;
    if (call->records)
        ops_keep_shape(call, 0, 1 + (uint32_t)axes);
    return ops_reshape_in_place(&call->in[0], axes, shape, &call->out) ? TLM_OK : copy_reshaped(call, axes, shape);
}

/* Gives input 0 the gradient in the shape that stands among the parameters. */
static tlm_status give_in_shape(tlm_pass *pass, const int64_t *numbers)
{
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    tlm_tensor like, seen, dense, made;
    ops_kept_shape(numbers, gradient, &like);
    if (ops_reshape_in_place(gradient, like.axes, like.shape, &seen))
        return tlm_pass_share(pass, 0, &seen);
    tlm_status status = ops_made_dense(gradient, &dense, &made);
    if (status)
        return status;
    ops_reshape_in_place(&dense, like.axes, like.shape, &seen);
    return tlm_pass_give(pass, 0, &seen);
}

static tlm_status reshape_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    return give_in_shape(pass, params->n + 1 + params->n[0]);
}

/* ---- squeeze: n = bits of the axes to leave out, -1 for all of length 1; then the shape of the input ---- */

static tlm_status squeeze(ops_call *call)
{
    const tlm_tensor *in = &call->in[0];
    int64_t mask = call->params.n[0];
    char text[160];
    if (!begin_view(call))
        return (tlm_status)OPS_NOT_HERE;
    for (int i = in->axes; i-- > 0;) {
        if (mask >= 0 && !(mask >> i & 1))
            continue;
        if (in->shape[i] == 1)
            ops_drop_axis(&call->out, i);
        else if (mask >= 0)
            return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "axis %d of shape %s has not length 1", i,
                            ops_shape_text(in, text));
    }
    if (call->records)
        ops_keep_shape(call, 0, 1);
    return TLM_OK;
}

static tlm_status squeeze_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    return give_in_shape(pass, params->n + 1);
}

/* ---- unsqueeze: n = the place of the new axis, from the end when negative ---- */

static tlm_status unsqueeze(ops_call *call)
{
    int axes = call->in[0].axes;
    int64_t place = call->params.n[0];
    char text[160];
    if (!begin_view(call) || axes == TLM_MOST_AXES)
        return (tlm_status)OPS_NOT_HERE;
    if (place < -axes - 1 || place > axes)
        return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "there is no place %lld for an axis in %s", (long long)place,
                        ops_shape_text(&call->in[0], text));
    call->params.n[0] = place < 0 ? place + axes + 1 : place;
    ops_insert_axis(&call->out, (int)call->params.n[0]);
    return TLM_OK;
}

static tlm_status unsqueeze_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    tlm_tensor seen = *tlm_pass_grad(pass);
    ops_drop_axis(&seen, (int)params->n[0]);
    return tlm_pass_share(pass, 0, &seen);
}

/* ---- transpose: n = how many axes (0: reversed), then the axis that comes to each place ---- */

static void permute(const tlm_tensor *tensor, const int64_t *order, tlm_tensor *out)
{
    *out = *tensor;
    for (int i = 0; i < tensor->axes; i++) {
        out->shape[i] = tensor->shape[order[i]];
        out->strides[i] = tensor->strides[order[i]];
    }
}

/* Completes the order; false when it is not each axis once. */
static bool complete_order(ops_params *params, int axes)
{
    uint32_t seen = 0;
    int64_t *order = params->n + 1;
    if (params->n[0] != 0 && params->n[0] != axes)
        return false;
    for (int i = 0; i < axes; i++) {
        int64_t axis = params->n[0] == 0 ? axes - 1 - i : order[i];
        if (axis < -axes || axis >= axes)
            return false;
        order[i] = axis < 0 ? axis + axes : axis;
        seen |= 1u << order[i];
    }
    params->n[0] = axes;
    params->count = 1 + (uint32_t)axes;
    return seen == (1u << axes) - 1;
}

static tlm_status transpose(ops_call *call)
{
    const tlm_tensor *in = &call->in[0];
    char text[160];
    if (!begin_view(call))
        return (tlm_status)OPS_NOT_HERE;
    if (!complete_order(&call->params, in->axes))
        return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "the order must name each of the %d axes of %s once",
                        in->axes, ops_shape_text(in, text));
    permute(in, call->params.n + 1, &call->out);
    return TLM_OK;
}

static tlm_status transpose_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    int64_t back[TLM_MOST_AXES];
    tlm_tensor seen;
    for (int i = 0; i < gradient->axes; i++)
        back[params->n[1 + i]] = i;
    permute(gradient, back, &seen);
    return tlm_pass_share(pass, 0, &seen);
}

/* ---- swapaxes: n = the two axes ---- */

static void swap(const tlm_tensor *tensor, const int64_t *axes, tlm_tensor *out)
{
    *out = *tensor;
    for (int i = 0; i < 2; i++) {
        out->shape[axes[i]] = tensor->shape[axes[1 - i]];
        out->strides[axes[i]] = tensor->strides[axes[1 - i]];
    }
}

static tlm_status swapaxes(ops_call *call)
{
    if (!begin_view(call))
        return (tlm_status)OPS_NOT_HERE;
    for (int i = 0; i < 2; i++) {
        int axis;
        tlm_status status = ops_axis(call, call->params.n[i], call->in[0].axes, &axis);
        if (status)
            return status;
        call->params.n[i] = axis;
    }
    swap(&call->in[0], call->params.n, &call->out);
    return TLM_OK;
}

static tlm_status swapaxes_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    tlm_tensor seen;
    swap(tlm_pass_grad(pass), params->n, &seen);
    return tlm_pass_share(pass, 0, &seen);
}

/* ---- broadcast_to: n = how many axes, their lengths, then the shape of the input ---- */

static tlm_status broadcast_to(ops_call *call)
{
    const tlm_tensor *in = &call->in[0];
    int64_t axes = call->params.n[0];
    const int64_t *shape = call->params.n + 1;
    char text[160], other[160];
    if (!begin_view(call) || axes > TLM_MOST_AXES)
        return (tlm_status)OPS_NOT_HERE;
    bool is_right = true;
    for (int i = 0; i < axes; i++)
        is_right = is_right && shape[i] >= 0;
    if (!is_right || ops_expand(in, (int)axes, shape, &call->out)) {
        tlm_tensor wanted = {.axes = (uint8_t)axes};
        memcpy(wanted.shape, shape, sizeof *shape * (size_t)axes);
        return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "%s does not broadcast to %s", ops_shape_text(in, text),
                        ops_shape_text(&wanted, other));
    }
    if (call->records)
        ops_keep_shape(call, 0, 1 + (uint32_t)axes);
    return TLM_OK;
}

static tlm_status broadcast_to_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    tlm_tensor like;
    ops_kept_shape(params->n + 1 + params->n[0], gradient, &like);
    return ops_give_reduced(pass, 0, gradient, true, &like);
}

static const ops_row rows[] = {
    {"reshape", "", 1, 1, true, reshape, reshape_back},
    {"squeeze", "", 1, 1, true, squeeze, squeeze_back},
    {"unsqueeze", "", 1, 1, true, unsqueeze, unsqueeze_back},
    {"transpose", "", 1, 1, true, transpose, transpose_back},
    {"swapaxes", "", 1, 1, true, swapaxes, swapaxes_back},
    {"broadcast_to", "", 1, 1, true, broadcast_to, broadcast_to_back},
};
const ops_family ops_shapes = {rows, sizeof rows / sizeof *rows};
