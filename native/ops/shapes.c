/* SPDX-License-Identifier: MIT
 * shapes.c: the same elements in another shape, order or place: reshape, transpose, swapaxes, squeeze, unsqueeze, broadcast_to,
 * slice, concat, stack, cast.
 *
 * Of the first six all but reshape give a view, whatever the strides; reshape copies when strides cannot say what is asked for, and records that.
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

/* ---- a part ----
 * The part is a view. Nothing is saved: the rule puts the gradient into zeros of the input's shape, or, where the part is the
 * whole, hands it on as it is.
 *
 * n[0]: how many axes are indexed, k, from the first on; the others stay whole. n[1]: bits of the axes of the output that are
 * new. Then for each of the k axes begin, stop, step as PySlice_Unpack gives them (a stop that is left out is the largest or
 * smallest integer), or, with step 0, an integer that takes the axis away. The shape of the input follows.
 */

enum { AXIS_NUMBERS = 3 };

typedef struct {
    int64_t begin, length, step; /* step 0: an integer */
} range;

/* As Python cuts a slice to a length (the documentation of slice.indices says how). */
static range cut_slice(const int64_t *numbers, int64_t length)
{
    int64_t begin = numbers[0], stop = numbers[1], step = numbers[2];
    int64_t least = step < 0 ? -1 : 0, most = step < 0 ? length - 1 : length;
    begin = begin < 0 ? begin + length : begin;
    stop = stop < 0 && stop != INT64_MIN ? stop + length : stop;
    begin = begin < least ? least : begin > most ? most : begin;
    stop = stop < least ? least : stop > most ? most : stop;
    /* Unsigned: the distance fits, and -step of the smallest step does as well. */
    uint64_t apart = step < 0 ? (uint64_t)(begin - stop) : (uint64_t)(stop - begin);
    uint64_t by = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    bool is_empty = step < 0 ? begin <= stop : stop <= begin;
    return (range){begin, is_empty ? 0 : (int64_t)((apart - 1) / by + 1), step};
}

/* The range of an axis; false: an integer that is not within it. */
static bool range_of(const int64_t *numbers, int64_t length, range *out)
{
    if (numbers[2] != 0) {
        *out = cut_slice(numbers, length);
        return true;
    }
    int64_t place = numbers[0] < 0 ? numbers[0] + length : numbers[0];
    *out = (range){place, 1, 0};
    return numbers[0] >= -length && numbers[0] < length;
}

/* Applies the ranges to a tensor of the input's shape, whatever its memory; all integers are within their axes. */
static void take_part(const ops_params *params, const tlm_tensor *whole, tlm_tensor *part)
{
    *part = *whole;
    for (int axis = (int)params->n[0]; axis-- > 0;) {
        range range;
        range_of(params->n + 2 + AXIS_NUMBERS * axis, whole->shape[axis], &range);
        ops_narrow(part, axis, range.begin, range.length);
        if (range.step == 0)
            ops_drop_axis(part, axis);
        else if (range.length >
                 1) /* with one element at most there is no way to go, and the step may be too large to */
            part->strides[axis] *= range.step;
    }
    for (int axis = 0; params->n[1] >> axis; axis++)
        if (params->n[1] >> axis & 1)
            ops_insert_axis(part, axis);
}

/* Whether the output has more axes than a tensor here can have. */
static bool has_too_many_axes(const ops_params *params, int axes)
{
    int made = axes + __builtin_popcountll((uint64_t)params->n[1]);
    for (int axis = 0; axis < params->n[0]; axis++)
        made -= params->n[2 + AXIS_NUMBERS * axis + 2] == 0;
    return made > TLM_MOST_AXES;
}

static tlm_status slice(ops_call *call)
{
    const tlm_tensor *in = &call->in[0];
    int64_t indexed = call->params.n[0];
    char text[160];
    if (!in->object || has_too_many_axes(&call->params, in->axes))
        return (tlm_status)OPS_NOT_HERE;
    if (indexed > in->axes)
        return ops_fail(call, (tlm_status)OPS_WRONG_VALUE, "%lld indices are too many for shape %s", (long long)indexed,
                        ops_shape_text(in, text));
    for (int axis = 0; axis < indexed; axis++) {
        range range;
        const int64_t *numbers = call->params.n + 2 + AXIS_NUMBERS * axis;
        if (!range_of(numbers, in->shape[axis], &range))
            return ops_fail(call, (tlm_status)OPS_WRONG_VALUE,
                            "index %lld is out of range for axis %d of length %lld in shape %s", (long long)numbers[0],
                            axis, (long long)in->shape[axis], ops_shape_text(in, text));
    }
    take_part(&call->params, in, &call->out);
    call->out_is_view = true;
    if (call->records)
        ops_keep_shape(call, 0, 2 + AXIS_NUMBERS * (uint32_t)indexed);
    return TLM_OK;
}

/* With new axes gone and the axes that integers took back, has the gradient every element of the input in its place? */
static bool is_whole(const ops_params *params, const tlm_tensor *like)
{
    for (int axis = 0; axis < params->n[0]; axis++) {
        range range;
        range_of(params->n + 2 + AXIS_NUMBERS * axis, like->shape[axis], &range);
        bool is_reversed = range.step < 0 && range.length > 1;
        if (is_reversed || range.length != like->shape[axis])
            return false;
    }
    return true;
}

static tlm_status slice_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    tlm_tensor like, whole, part;
    ops_kept_shape(params->n + 2 + AXIS_NUMBERS * params->n[0], gradient, &like);
    if (is_whole(params, &like) && ops_reshape_in_place(gradient, like.axes, like.shape, &part))
        return tlm_pass_share(pass, 0, &part);
    tlm_status status = ops_zeros(gradient->device, gradient->dtype, like.axes, like.shape, &whole);
    if (status)
        return status;
    take_part(params, &whole, &part);
    if ((status = ops_copy(gradient, &part))) {
        ops_drop(&whole);
        return status;
    }
    return tlm_pass_give(pass, 0, &whole);
}

/* ---- tensors put together ----
 * The gradient of each input is a part of the gradient of the output: a view, no memory. Nothing is saved, unless so many
 * inputs are joined that their lengths do not fit among the parameters.
 *
 * n[0]: the axis. concat: n[1] is the count of lengths that follow, one an input; 0: they are the saved value.
 */

enum { MOST_INPUTS = 4096, MOST_LENGTHS = OPS_MOST_NUMBERS - 2 };

/* Whether inputs have one dtype, and a payload each. */
static bool are_alike(const ops_call *call)
{
    for (uint32_t i = 0; i < call->inputs; i++)
        if (!call->in[i].object || call->in[i].dtype != call->in[0].dtype || call->in[i].device != call->in[0].device)
            return false;
    return true;
}

/* Makes the output and copies the inputs, one after the other along the axis. `is_new`: they have not got it. */
static tlm_status join(ops_call *call, int axis, const int64_t *shape, int axes, bool is_new)
{
    tlm_status status = ops_new_out(call, call->in[0].device, call->in[0].dtype, axes, shape);
    int64_t begin = 0;
    if (status)
        return status;
    for (uint32_t i = 0; i < call->inputs && !status; i++) {
        tlm_tensor part = call->out;
        int64_t length = is_new ? 1 : call->in[i].shape[axis];
        ops_narrow(&part, axis, begin, length);
        if (is_new)
            ops_drop_axis(&part, axis);
        begin += length;
        status = ops_copy(&call->in[i], &part);
    }
    if (status)
        ops_drop_out(call);
    return status;
}

/* ---- concat ---- */

static bool fit_but_for(const tlm_tensor *one, const tlm_tensor *other, int axis)
{
    if (one->axes != other->axes)
        return false;
    for (int i = 0; i < one->axes; i++)
        if (i != axis && one->shape[i] != other->shape[i])
            return false;
    return true;
}

static tlm_status shape_of_concat(ops_call *call, int axis, int64_t *shape)
{
    const tlm_tensor *first = &call->in[0];
    char text[160], other[160];
    memcpy(shape, first->shape, sizeof *shape * first->axes);
    for (uint32_t i = 1; i < call->inputs; i++) {
        if (!fit_but_for(first, &call->in[i], axis))
            return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE,
                            "shapes %s and %s cannot be put together along axis %d; all other lengths must be equal",
                            ops_shape_text(first, text), ops_shape_text(&call->in[i], other), axis);
        if (__builtin_add_overflow(shape[axis], call->in[i].shape[axis], &shape[axis]))
            return TLM_OVERFLOW;
    }
    return TLM_OK;
}

static tlm_status keep_lengths(ops_call *call, int axis)
{
    int64_t *n = call->params.n, count = call->inputs;
    tlm_tensor lengths;
    if (count <= MOST_LENGTHS) {
        for (int64_t i = 0; i < count; i++)
            n[2 + i] = call->in[i].shape[axis];
        n[1] = count;
        call->params.count = 2 + (uint32_t)count;
        return TLM_OK;
    }
    tlm_status status = ops_new(TLM_DEVICE_CPU, TLM_INT64, 1, &count, &lengths);
    if (status)
        return status;
    int64_t *data = ops_data(&lengths);
    for (int64_t i = 0; i < count; i++)
        data[i] = call->in[i].shape[axis];
    ops_save_made(call, &lengths);
    n[1] = 0;
    call->params.count = 2;
    return TLM_OK;
}

static tlm_status concat(ops_call *call)
{
    int64_t shape[TLM_MOST_AXES];
    int axis;
    if (!are_alike(call))
        return (tlm_status)OPS_NOT_HERE;
    tlm_status status = ops_axis(call, call->params.n[0], call->in[0].axes, &axis);
    if (!status)
        status = shape_of_concat(call, axis, shape);
    if (!status)
        status = join(call, axis, shape, call->in[0].axes, false);
    if (status)
        return status;
    call->params.n[0] = axis;
    call->params.count = 1;
    if (call->records && (status = keep_lengths(call, axis)))
        ops_drop_out(call);
    return status;
}

static tlm_status concat_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const int64_t *lengths = params->n[1] ? params->n + 2 : ops_data(tlm_pass_saved(pass, 0));
    int64_t begin = 0;
    if (!lengths)
        return TLM_FREED;
    for (uint32_t i = 0; i < tlm_pass_inputs(pass); i++) {
        tlm_tensor part = *tlm_pass_grad(pass);
        ops_narrow(&part, (int)params->n[0], begin, lengths[i]);
        begin += lengths[i];
        tlm_status status = tlm_pass_wants(pass, i) ? tlm_pass_share(pass, i, &part) : TLM_OK;
        if (status)
            return status;
    }
    return TLM_OK;
}

/* ---- stack ---- */

static tlm_status shape_of_stack(ops_call *call, int axis, int64_t *shape)
{
    const tlm_tensor *first = &call->in[0];
    char text[160], other[160];
    for (uint32_t i = 1; i < call->inputs; i++)
        if (!ops_same_shape(first, &call->in[i]))
            return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "shapes %s and %s cannot be stacked; they must be equal",
                            ops_shape_text(first, text), ops_shape_text(&call->in[i], other));
    for (int i = 0; i <= first->axes; i++)
        shape[i] = i == axis ? call->inputs : first->shape[i - (i > axis)];
    return TLM_OK;
}

static tlm_status stack(ops_call *call)
{
    int64_t shape[TLM_MOST_AXES], place = call->params.n[0];
    int axes = call->in[0].axes;
    char text[160];
    if (!are_alike(call) || axes == TLM_MOST_AXES)
        return (tlm_status)OPS_NOT_HERE;
    if (place < -axes - 1 || place > axes)
        return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "there is no place %lld for an axis in %s", (long long)place,
                        ops_shape_text(&call->in[0], text));
    place = place < 0 ? place + axes + 1 : place;
    tlm_status status = shape_of_stack(call, (int)place, shape);
    if (!status)
        status = join(call, (int)place, shape, axes + 1, true);
    call->params.n[0] = place;
    return status;
}

static tlm_status stack_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    int axis = (int)params->n[0];
    for (uint32_t i = 0; i < tlm_pass_inputs(pass); i++) {
        tlm_tensor part = *tlm_pass_grad(pass);
        ops_narrow(&part, axis, i, 1);
        ops_drop_axis(&part, axis);
        tlm_status status = tlm_pass_wants(pass, i) ? tlm_pass_share(pass, i, &part) : TLM_OK;
        if (status)
            return status;
    }
    return TLM_OK;
}

/* ---- another dtype or device ----
 * n = the dtype wanted (0: the same), the device wanted plus 1 (0: the same); the dtype and device of the input follow. Saves
 * nothing: the rule takes the gradient back to where the input is. Integers and bools have no gradient, so that a cast to
 * them of what needs one is not for the ops (the caller takes it for a constant); from them there is nothing to give.
 */

static bool has_fractions(uint8_t dtype)
{
    return dtype == TLM_FLOAT32 || dtype == TLM_FLOAT64;
}

static tlm_status copy_to(const tlm_tensor *from, uint8_t dtype, uint32_t device, tlm_tensor *out)
{
    tlm_tensor made;
    tlm_status status = ops_new(device, dtype, from->axes, from->shape, &made);
    if (status)
        return status;
    if ((status = ops_copy(from, &made))) {
        ops_drop(&made);
        return status;
    }
    *out = made;
    return TLM_OK;
}

static tlm_status cast(ops_call *call)
{
    const tlm_tensor *in = &call->in[0];
    int64_t *n = call->params.n;
    uint8_t dtype = n[0] ? (uint8_t)n[0] : in->dtype;
    uint32_t device = n[1] ? (uint32_t)(n[1] - 1) : in->device;
    if (!in->object || (call->records && !has_fractions(dtype)))
        return (tlm_status)OPS_NOT_HERE;
    n[2] = in->dtype;
    n[3] = in->device;
    call->params.count = 4;
    tlm_status status = copy_to(in, dtype, device, &call->out);
    if (status)
        return status;
    tlm_copy_record(in->object, call->out.object, (uint64_t)(ops_elements(in) * ops_item_bytes(dtype)));
    return TLM_OK;
}

static tlm_status cast_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    uint8_t dtype = (uint8_t)params->n[2];
    uint32_t device = (uint32_t)params->n[3];
    tlm_tensor made;
    if (gradient->dtype == dtype && gradient->device == device)
        return tlm_pass_share(pass, 0, gradient);
    if (!gradient->object) { /* one number stays one */
        ops_constant(ops_number_of(gradient), dtype, gradient->axes, gradient->shape, &made);
        made.device = device;
        return tlm_pass_give(pass, 0, &made);
    }
    tlm_status status = copy_to(gradient, dtype, device, &made);
    return status ? status : tlm_pass_give(pass, 0, &made);
}

static const ops_row rows[] = {
    {"reshape", "", 1, 1, true, reshape, reshape_back, OPS_OTHER, OPS_WRITES_FRESH},
    {"squeeze", "", 1, 1, true, squeeze, squeeze_back, OPS_OTHER, OPS_WRITES_FRESH},
    {"unsqueeze", "", 1, 1, true, unsqueeze, unsqueeze_back, OPS_OTHER, OPS_WRITES_FRESH},
    {"transpose", "", 1, 1, true, transpose, transpose_back, OPS_OTHER, OPS_WRITES_FRESH},
    {"swapaxes", "", 1, 1, true, swapaxes, swapaxes_back, OPS_OTHER, OPS_WRITES_FRESH},
    {"broadcast_to", "", 1, 1, true, broadcast_to, broadcast_to_back, OPS_OTHER, OPS_WRITES_FRESH},
    {"slice", "", 1, 1, true, slice, slice_back, OPS_OTHER, OPS_WRITES_FRESH},
    {"concat", "", 1, MOST_INPUTS, true, concat, concat_back, OPS_OTHER, OPS_WRITES_APART},
    {"stack", "", 1, MOST_INPUTS, true, stack, stack_back, OPS_OTHER, OPS_WRITES_APART},
    {"cast", "", 1, 1, true, cast, cast_back, OPS_OTHER, OPS_WRITES_FRESH},
};
const ops_family ops_shapes = {rows, sizeof rows / sizeof *rows};
