/* SPDX-License-Identifier: MIT
 * axes.c: shapes that lose axes, tensors seen along the axes that were lost, lanes and rows.
 *
 * Owns nothing beyond what its callers get. Any thread.
 */
#include "ops/axes.h"

int ops_reduced_shape(const tlm_tensor *tensor, uint32_t mask, bool keepdims, int64_t shape[static 8])
{
    int axes = 0;
    for (int i = 0; i < tensor->axes; i++)
        if (!(mask >> i & 1))
            shape[axes++] = tensor->shape[i];
        else if (keepdims)
            shape[axes++] = 1;
    return axes;
}

int64_t ops_reduced_count(int axes, const int64_t *shape, uint32_t mask)
{
    int64_t count = 1;
    for (int i = 0; i < axes; i++)
        if (mask >> i & 1)
            count *= shape[i];
    return count;
}

void ops_seen_along(const tlm_tensor *small, uint32_t mask, bool keepdims, int axes, const int64_t *shape,
                    tlm_tensor *out)
{
    tlm_tensor seen = *small;
    seen.axes = (uint8_t)axes;
    for (int i = 0, from = 0; i < axes; i++) {
        bool reduced = mask >> i & 1;
        seen.shape[i] = shape[i];
        seen.strides[i] = reduced ? 0 : small->strides[from];
        from += !reduced || keepdims;
    }
    *out = seen;
}

tlm_status ops_new_reduced(const tlm_tensor *tensor, uint32_t mask, bool keepdims, tlm_tensor *out, tlm_tensor *seen)
{
    int64_t shape[8];
    int axes = ops_reduced_shape(tensor, mask, keepdims, shape);
    tlm_status status = ops_new(tensor->device, tensor->dtype, axes, shape, out);
    if (status == TLM_OK)
        ops_seen_along(out, mask, keepdims, tensor->axes, tensor->shape, seen);
    return status;
}

tlm_status ops_new_reduced_out(ops_call *call, uint32_t mask, bool keepdims, tlm_tensor *seen)
{
    const tlm_tensor *tensor = &call->in[0];
    int64_t shape[8];
    int axes = ops_reduced_shape(tensor, mask, keepdims, shape);
    tlm_status status = ops_new_out(call, tensor->device, tensor->dtype, axes, shape);
    if (status == TLM_OK)
        ops_seen_along(&call->out, mask, keepdims, tensor->axes, tensor->shape, seen);
    return status;
}

ops_lanes ops_lanes_of(const tlm_tensor *tensor, int axis)
{
    ops_lanes lanes = {1, tensor->shape[axis], 1};
    for (int i = 0; i < axis; i++)
        lanes.outer *= tensor->shape[i];
    for (int i = axis + 1; i < tensor->axes; i++)
        lanes.inner *= tensor->shape[i];
    return lanes;
}

tlm_status ops_grad_copied(tlm_pass *pass, tlm_tensor *out, bool *shared)
{
    tlm_status status = ops_new_grad(pass, out, shared);
    if (status != TLM_OK || *shared)
        return status;
    status = ops_copy(tlm_pass_grad(pass), out);
    if (status != TLM_OK)
        ops_drop(out);
    return status;
}

tlm_status ops_give_made(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient, bool shared)
{
    return shared ? tlm_pass_share(pass, input, gradient) : tlm_pass_give(pass, input, gradient);
}

tlm_status ops_walk_begin(ops_walk *walk, const tlm_tensor *const *tensors, int count, bool *some)
{
    int axes = tensors[0]->axes;
    *walk = (ops_walk){.tensors = count, .axes = axes, .length = axes ? tensors[0]->shape[axes - 1] : 1};
    *some = ops_elements(tensors[0]) > 0;
    for (int i = 0; *some && i < count; i++) {
        walk->of[i] = tensors[i];
        walk->at[i] = ops_data(tensors[i]);
        walk->step[i] = axes ? tensors[i]->strides[axes - 1] : 0;
        if (!walk->at[i])
            return TLM_FREED;
    }
    return TLM_OK;
}

bool ops_walk_next(ops_walk *walk)
{
    for (int axis = walk->axes - 2; axis >= 0; axis--) {
        bool wraps = ++walk->index[axis] == walk->of[0]->shape[axis];
        for (int i = 0; i < walk->tensors; i++)
            walk->at[i] += walk->of[i]->strides[axis] * (wraps ? 1 - walk->of[i]->shape[axis] : 1);
        if (!wraps)
            return true;
        walk->index[axis] = 0;
    }
    return false;
}
