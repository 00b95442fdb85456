/* SPDX-License-Identifier: MIT
 * elementwise.c: forwards and rules of the ops of each element; elementwise.h says what each does.
 *
 * No state; any thread may call.
 */
#include <string.h>

#include "ops/elementwise.h"

enum { MOST_INPUTS = 3, MOST_READ = 3 };

/* ---- forwards ---- */

static tlm_status shapes_differ(ops_call *call, uint32_t input)
{
    char one[160], other[160];
    return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "shapes %.96s and %.96s do not broadcast",
                    ops_shape_text(&call->in[0], one), ops_shape_text(&call->in[input], other));
}

/* Sees input i with a shape; false: it does not broadcast to it. */
static bool see(const ops_call *call, uint32_t i, int axes, const int64_t *shape, tlm_tensor *room,
                const tlm_tensor **seen)
{
    seen[i] = &call->in[i];
    if (call->in[i].axes == axes && memcmp(call->in[i].shape, shape, (size_t)axes * sizeof *shape) == 0)
        return true;
    seen[i] = &room[i];
    return ops_expand(&call->in[i], axes, shape, &room[i]) == TLM_OK;
}

/* Sees the inputs with one shape, most often that of the first; `room` is for those that have another. */
static tlm_status see_together(ops_call *call, tlm_tensor *room, const tlm_tensor **seen)
{
    uint32_t i = 0;
    while (i < call->inputs && see(call, i, call->in[0].axes, call->in[0].shape, room, seen))
        i++;
    if (i == call->inputs)
        return TLM_OK;
    tlm_tensor whole = call->in[0], copy;
    for (i = 1; i < call->inputs; i++) {
        copy = call->in[i];
        if (ops_broadcast(&whole, &copy) != TLM_OK)
            return shapes_differ(call, i);
    }
    for (i = 0; i < call->inputs; i++)
        see(call, i, whole.axes, whole.shape, room, seen);
    return TLM_OK;
}

tlm_status ops_elementwise(ops_call *call, ops_loop loop)
{
    tlm_tensor room[MOST_INPUTS];
    const tlm_tensor *tensors[MOST_INPUTS + 1];
    tlm_status status = see_together(call, room, tensors);
    if (status != TLM_OK)
        return status;
    status = ops_new_out(call, ops_common_device(call), call->in[call->inputs - 1].dtype, tensors[0]->axes,
                         tensors[0]->shape);
    if (status != TLM_OK)
        return status;
    tensors[call->inputs] = &call->out;
    status = ops_each_row(tensors, (int)call->inputs + 1, loop.call, loop.data);
    if (status != TLM_OK)
        ops_drop_out(call);
    return status;
}

tlm_status ops_elementwise_loop(ops_call *call, ops_loop_name name)
{
    uint8_t dtype = ops_common_dtype(call);
    return dtype ? ops_elementwise(call, *ops_loop_of(name, dtype)) : (tlm_status)OPS_NOT_HERE;
}

void ops_note_repeated(ops_call *call)
{
    uint32_t first = call->params.count;
    for (uint32_t i = 0; call->records && i < call->inputs; i++) {
        if (!call->needs[i] || ops_same_shape(&call->in[i], &call->out))
            continue;
        if (call->params.count == first)
            call->params.n[call->params.count++] = 0;
        call->params.n[first] |= INT64_C(1) << i;
        ops_put_shape(&call->params, &call->in[i]);
    }
}

/* ---- rules ---- */

tlm_status ops_rule_give(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient, bool shared, uint32_t first)
{
    const ops_params *params = tlm_pass_params(pass);
    if (params->count == first || !(params->n[first] >> input & 1))
        return shared ? tlm_pass_share(pass, input, gradient) : tlm_pass_give(pass, input, gradient);
    tlm_tensor like;
    const int64_t *at = params->n + first + 1;
    for (uint32_t i = 0; i <= input; i++)
        if (params->n[first] >> i & 1)
            at = ops_take_shape(at, &like);
    return ops_give_reduced(pass, input, gradient, shared, &like);
}

/* The gradient when it is the same number everywhere, as one number. */
static void compute_number(ops_loop loop, const tlm_tensor *const *read, int count, tlm_tensor *out)
{
    char *at[MOST_READ + 1];
    const intptr_t strides[MOST_READ + 1] = {0}, once = 1;
    ops_constant(0, read[0]->dtype, read[0]->axes, read[0]->shape, out);
    out->device = read[0]->device;
    for (int i = 0; i < count; i++)
        at[i] = (char *)&read[i]->at;
    at[count] = (char *)&out->at;
    loop.call(at, &once, strides, loop.data);
}

/* Room for a gradient that has the shape of the output's. */
static tlm_status make_room(tlm_pass *pass, const tlm_tensor *const *read, int count, bool last, tlm_tensor *out,
                            bool *shared)
{
    *shared = last && tlm_pass_may_overwrite_grad(pass);
    if (*shared) {
        *out = *read[0];
        return TLM_OK;
    }
    uint32_t device = read[0]->device;
    for (int i = 0; i < count; i++)
        if (read[i]->object)
            device = read[i]->device;
    return ops_new(device, read[0]->dtype, read[0]->axes, read[0]->shape, out);
}

tlm_status ops_rule_loop(tlm_pass *pass, uint32_t input, uint32_t first, ops_loop loop, const tlm_tensor *one,
                         const tlm_tensor *other, bool last)
{
    const tlm_tensor *read[MOST_READ + 1] = {tlm_pass_grad(pass), one, other};
    tlm_tensor room[MOST_READ], out;
    bool shared = false, is_number = read[0]->object == 0;
    int count = 1;
    for (; count < MOST_READ && read[count]; count++) {
        is_number = is_number && read[count]->object == 0;
        if (ops_same_shape(read[count], read[0]))
            continue;
        ops_expand(read[count], read[0]->axes, read[0]->shape, &room[count]);
        read[count] = &room[count];
    }
    if (is_number) {
        compute_number(loop, read, count, &out);
        return ops_rule_give(pass, input, &out, false, first);
    }
    tlm_status status = make_room(pass, read, count, last, &out, &shared);
    if (status != TLM_OK)
        return status;
    read[count] = &out;
    status = ops_each_row(read, count + 1, loop.call, loop.data);
    if (status != TLM_OK) {
        if (!shared)
            ops_drop(&out);
        return status;
    }
    return ops_rule_give(pass, input, &out, shared, first);
}

tlm_status ops_rule_of_one(tlm_pass *pass, ops_element_row row)
{
    uint8_t dtype = tlm_pass_grad(pass)->dtype;
    return ops_rule_loop(pass, 0, 0, ops_element(row, dtype, NULL), tlm_pass_saved(pass, 0), NULL, true);
}
