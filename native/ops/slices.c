/* SPDX-License-Identifier: MIT
 * slices.c: a part of a tensor: a slice or an integer for each axis, and new axes of length 1, as Python's brackets have them.
 *
 * The part is a view. Nothing is saved: the rule puts the gradient into zeros of the input's shape, or, where the part is the
 * whole, hands it on as it is.
 *
 * n[0]: how many axes are indexed, k, from the first on; the others stay whole. n[1]: bits of the axes of the output that are
 * new. Then for each of the k axes begin, stop, step as PySlice_Unpack gives them (a stop that is left out is the largest or
 * smallest integer), or, with step 0, an integer that takes the axis away. The shape of the input follows.
 */
#include "ops/layouts.h"

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

static const ops_row rows[] = {{"slice", "", 1, 1, true, slice, slice_back}};
const ops_family ops_slices = {rows, 1};
