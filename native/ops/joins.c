/* SPDX-License-Identifier: MIT
 * joins.c: tensors put together: concat along an axis that they have, stack along a new one.
 *
 * The gradient of each input is a part of the gradient of the output: a view, no memory. Nothing is saved, unless so many
 * inputs are joined that their lengths do not fit among the parameters.
 *
 * n[0]: the axis. concat: n[1] is the count of lengths that follow, one an input; 0: they are the saved value.
 */
#include <string.h>

#include "ops/layouts.h"

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

static const ops_row rows[] = {
    {"concat", "", 1, MOST_INPUTS, true, concat, concat_back},
    {"stack", "", 1, MOST_INPUTS, true, stack, stack_back},
};
const ops_family ops_joins = {rows, sizeof rows / sizeof *rows};
