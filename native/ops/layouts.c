/* SPDX-License-Identifier: MIT
 * layouts.c: where the elements of a tensor lie; see layouts.h for what each function promises.
 *
 * Owns nothing, keeps nothing; any thread may call. A tensor without an object (one number) has strides 0, so that moving its
 * offset moves nothing.
 */
#include "ops/layouts.h"

#include <string.h>

/* ---- shapes of the same memory ---- */

static void strides_of_dense(tlm_tensor *tensor)
{
    int64_t step = tensor->object ? ops_item_bytes(tensor->dtype) : 0;
    for (int i = tensor->axes; i-- > 0;) {
        tensor->strides[i] = step;
        step *= tensor->shape[i];
    }
}

bool ops_axes_as_one(const tlm_tensor *tensor, int from, int to, int64_t *length, int64_t *step)
{
    int64_t count = 1, apart = tensor->object ? ops_item_bytes(tensor->dtype) : 0;
    for (int i = to; i-- > from;) {
        int64_t here = tensor->shape[i];
        if (here == 1)
            continue;
        if (count == 1)
            apart = tensor->strides[i];
        else if (tensor->strides[i] != apart * count)
            return false;
        count *= here;
    }
    *length = count;
    *step = apart;
    return true;
}

/* Takes axes from both shapes until they have as many elements; gives the new ones their strides. */
static bool split_run(const tlm_tensor *tensor, int *from, tlm_tensor *out, int *to)
{
    int first = *from, start = *to;
    int64_t old = tensor->shape[(*from)++], made = out->shape[(*to)++];
    while (old != made) {
        if (old < made)
            old *= tensor->shape[(*from)++];
        else
            made *= out->shape[(*to)++];
    }
    int64_t length, step;
    if (!ops_axes_as_one(tensor, first, *from, &length, &step))
        return false;
    for (int i = *to; i-- > start;) {
        out->strides[i] = step;
        step *= out->shape[i];
    }
    return true;
}

bool ops_reshape_in_place(const tlm_tensor *tensor, int axes, const int64_t *shape, tlm_tensor *out)
{
    tlm_tensor made = *tensor;
    made.axes = (uint8_t)axes;
    memcpy(made.shape, shape, sizeof *shape * (size_t)axes);
    strides_of_dense(&made);
    if (!ops_is_dense(tensor) && ops_elements(tensor)) {
        int from = 0, to = 0;
        while (from < tensor->axes && to < axes)
            if (!split_run(tensor, &from, &made, &to))
                return false;
        /* What is left of either has length 1. */
    }
    *out = made;
    return true;
}

void ops_drop_axis(tlm_tensor *tensor, int axis)
{
    tensor->axes--;
    for (int i = axis; i < tensor->axes; i++) {
        tensor->shape[i] = tensor->shape[i + 1];
        tensor->strides[i] = tensor->strides[i + 1];
    }
}

void ops_insert_axis(tlm_tensor *tensor, int place)
{
    int64_t step = tensor->object ? ops_item_bytes(tensor->dtype) : 0;
    if (place < tensor->axes)
        step = tensor->shape[place] * tensor->strides[place];
    for (int i = tensor->axes; i > place; i--) {
        tensor->shape[i] = tensor->shape[i - 1];
        tensor->strides[i] = tensor->strides[i - 1];
    }
    tensor->shape[place] = 1;
    tensor->strides[place] = step;
    tensor->axes++;
}

void ops_narrow(tlm_tensor *tensor, int axis, int64_t begin, int64_t length)
{
    tensor->shape[axis] = length;
    if (length)
        tensor->at.offset += (uint64_t)(begin * tensor->strides[axis]);
}

/* ---- memory ---- */

tlm_status ops_made_dense(const tlm_tensor *tensor, tlm_tensor *out, tlm_tensor *made)
{
    *made = (tlm_tensor){0};
    *out = *tensor;
    if (tensor->object && ops_is_dense(tensor))
        return TLM_OK;
    tlm_tensor fresh;
    tlm_status status = ops_new_like(tensor, &fresh);
    if (status)
        return status;
    if ((status = ops_copy(tensor, &fresh))) {
        ops_drop(&fresh);
        return status;
    }
    *out = *made = fresh;
    return TLM_OK;
}

tlm_status ops_zeros(uint32_t device, uint8_t dtype, int axes, const int64_t *shape, tlm_tensor *out)
{
    tlm_tensor fresh;
    tlm_status status = ops_new(device, dtype, axes, shape, &fresh);
    if (status)
        return status;
    if ((status = ops_fill(&fresh, 0.0))) {
        ops_drop(&fresh);
        return status;
    }
    *out = fresh;
    return TLM_OK;
}

/* ---- parameters of a call ---- */

tlm_status ops_axis(ops_call *call, int64_t given, int axes, int *out)
{
    char text[160];
    if (given < -axes || given >= axes)
        return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "there is no axis %lld in shape %s", (long long)given,
                        ops_shape_text(&call->in[0], text));
    *out = (int)(given < 0 ? given + axes : given);
    return TLM_OK;
}

void ops_keep_shape(ops_call *call, uint32_t input, uint32_t at)
{
    call->params.count = at;
    ops_put_shape(&call->params, &call->in[input]);
}

void ops_kept_shape(const int64_t *numbers, const tlm_tensor *gradient, tlm_tensor *out)
{
    *out = (tlm_tensor){.device = gradient->device, .dtype = gradient->dtype};
    ops_take_shape(numbers, out);
}
