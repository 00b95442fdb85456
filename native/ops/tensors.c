/* SPDX-License-Identifier: MIT
 * tensors.c: tensors of the ops: making and dropping, where elements lie, gradients of inputs that were repeated.
 *
 * What is made here floats and is the caller's (ops.h). No state; any thread may call.
 */
#include <string.h>

#include "ops/ops.h"

/* ---- look ---- */

int64_t ops_elements(const tlm_tensor *tensor)
{
    int64_t elements = 1;
    for (int axis = 0; axis < tensor->axes; axis++)
        elements *= tensor->shape[axis];
    return elements;
}

bool ops_is_dense(const tlm_tensor *tensor)
{
    int64_t step = ops_item_bytes(tensor->dtype);
    bool is_dense = true;
    for (int axis = tensor->axes - 1; axis >= 0; axis--) {
        if (tensor->shape[axis] == 0)
            return true;
        if (tensor->shape[axis] != 1 && tensor->strides[axis] != step)
            is_dense = false;
        step *= tensor->shape[axis];
    }
    return is_dense;
}

void *ops_data(const tlm_tensor *tensor)
{
    if (tensor->object == 0)
        return (void *)&tensor->at;
    char *payload = tlm_payload(tensor->object);
    return payload ? payload + tensor->at.offset : NULL;
}

bool ops_same_shape(const tlm_tensor *left, const tlm_tensor *right)
{
    return left->axes == right->axes && memcmp(left->shape, right->shape, left->axes * sizeof *left->shape) == 0;
}

/* ---- make ---- */

/* Writes shape and strides of elements that lie row by row; the bytes that takes, or -1 when no memory has so many. */
static int64_t lay_out(tlm_tensor *out, uint8_t dtype, int axes, const int64_t *shape)
{
    int64_t bytes = ops_item_bytes(dtype);
    bool is_empty = false;
    for (int axis = axes - 1; axis >= 0; axis--) {
        out->shape[axis] = shape[axis];
        out->strides[axis] = bytes;
        is_empty = is_empty || shape[axis] == 0;
        if (shape[axis] > 1 && __builtin_mul_overflow(bytes, shape[axis], &bytes))
            return -1;
    }
    return is_empty ? 0 : bytes;
}

tlm_status ops_new(uint32_t device, uint8_t dtype, int axes, const int64_t *shape, tlm_tensor *out)
{
    int64_t bytes = lay_out(out, dtype, axes, shape);
    if (bytes < 0)
        return TLM_OVERFLOW;
    out->at.offset = 0;
    out->device = device ? device : TLM_DEVICE_CPU;
    out->dtype = dtype;
    out->axes = (uint8_t)axes;
    out->unused[0] = out->unused[1] = 0;
    return tlm_object_alloc(out->device, (uint64_t)bytes, &out->object);
}

tlm_status ops_new_like(const tlm_tensor *like, tlm_tensor *out)
{
    return ops_new(like->device, like->dtype, like->axes, like->shape, out);
}

void ops_drop(const tlm_tensor *made)
{
    tlm_release(made->object, TLM_HOLDER(TLM_HOLDER_FLOATING, 0));
}

/* Memory comes from the device named, and from `cpu` when none is (ops_new). */
void ops_constant(double value, uint8_t dtype, int axes, const int64_t *shape, tlm_tensor *out)
{
    *out = (tlm_tensor){.dtype = dtype, .axes = (uint8_t)axes};
    if (dtype == TLM_FLOAT64)
        out->at.float64 = value;
    else if (dtype == TLM_FLOAT32)
        out->at.float32 = (float)value;
    else if (dtype == TLM_INT64)
        out->at.int64 = (int64_t)value;
    else if (dtype == TLM_INT32)
        out->at.int32 = (int32_t)value;
    else
        out->at.boolean = value != 0;
    if (axes)
        memcpy(out->shape, shape, (size_t)axes * sizeof *shape);
}

double ops_number_of(const tlm_tensor *tensor)
{
    switch (tensor->dtype) {
    case TLM_FLOAT64:
        return tensor->at.float64;
    case TLM_FLOAT32:
        return tensor->at.float32;
    case TLM_INT64:
        return (double)tensor->at.int64;
    case TLM_INT32:
        return tensor->at.int32;
    default:
        return tensor->at.boolean;
    }
}

/* ---- shapes ---- */

/* The length that two axes have together; -1: none. */
static int64_t common_length(int64_t one, int64_t other)
{
    return one == other || other == 1 ? one : one == 1 ? other : -1;
}

tlm_status ops_broadcast(tlm_tensor *left, tlm_tensor *right)
{
    if (ops_same_shape(left, right))
        return TLM_OK;
    int axes = left->axes > right->axes ? left->axes : right->axes;
    int64_t shape[TLM_MOST_AXES];
    for (int axis = 0; axis < axes; axis++) {
        int in_left = axis - (axes - left->axes), in_right = axis - (axes - right->axes);
        int64_t one = in_left < 0 ? 1 : left->shape[in_left], other = in_right < 0 ? 1 : right->shape[in_right];
        shape[axis] = common_length(one, other);
        if (shape[axis] < 0)
            return (tlm_status)OPS_WRONG_SHAPE;
    }
    ops_expand(left, axes, shape, left);
    return ops_expand(right, axes, shape, right);
}

tlm_status ops_expand(const tlm_tensor *tensor, int axes, const int64_t *shape, tlm_tensor *out)
{
    int before = axes - tensor->axes;
    if (before < 0)
        return (tlm_status)OPS_WRONG_SHAPE;
    for (int axis = before; axis < axes; axis++)
        if (tensor->shape[axis - before] != shape[axis] && tensor->shape[axis - before] != 1)
            return (tlm_status)OPS_WRONG_SHAPE;
    if (out != tensor) {
        out->object = tensor->object;
        out->at = tensor->at;
        out->device = tensor->device;
        out->dtype = tensor->dtype;
    }
    /* From the last axis on, so that nothing is overwritten before it is read when both are one. */
    for (int axis = axes - 1; axis >= 0; axis--) {
        bool is_repeated = axis < before || tensor->shape[axis - before] != shape[axis];
        out->strides[axis] = is_repeated ? 0 : tensor->strides[axis - before];
        out->shape[axis] = shape[axis];
    }
    out->axes = (uint8_t)axes;
    return TLM_OK;
}

/* ---- gradients ---- */

/* Sums `gradient` to the shape of `like`, whose axes are the last of its own. */
static tlm_status reduce_to(const tlm_tensor *gradient, const tlm_tensor *like, tlm_tensor *out)
{
    int before = gradient->axes - like->axes;
    uint32_t mask = (1u << before) - 1;
    double times = 1;
    for (int axis = 0; axis < gradient->axes; axis++) {
        if (axis >= before && like->shape[axis - before] == gradient->shape[axis])
            continue;
        mask |= 1u << axis;
        times *= (double)gradient->shape[axis];
    }
    if (gradient->object == 0) { /* the same number `times` times takes no memory */
        ops_constant(ops_number_of(gradient) * times, gradient->dtype, like->axes, like->shape, out);
        out->device = gradient->device;
        return TLM_OK;
    }
    tlm_status status = ops_new(gradient->device, gradient->dtype, like->axes, like->shape, out);
    if (status != TLM_OK)
        return status;
    tlm_tensor summed = *out;
    summed.axes = gradient->axes;
    for (int axis = 0; axis < gradient->axes; axis++) {
        summed.shape[axis] = axis < before ? 1 : like->shape[axis - before];
        summed.strides[axis] = axis < before ? 0 : out->strides[axis - before];
    }
    status = ops_reduce(OPS_ADD, gradient, mask, 0, &summed);
    if (status != TLM_OK)
        ops_drop(out);
    return status;
}

tlm_status ops_give_reduced(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient, bool shared,
                            const tlm_tensor *like)
{
    if (ops_same_shape(gradient, like))
        return shared ? tlm_pass_share(pass, input, gradient) : tlm_pass_give(pass, input, gradient);
    tlm_tensor reduced;
    tlm_status status = reduce_to(gradient, like, &reduced);
    if (!shared)
        ops_drop(gradient);
    return status == TLM_OK ? tlm_pass_give(pass, input, &reduced) : status;
}

tlm_status ops_new_grad(tlm_pass *pass, tlm_tensor *out, bool *shared)
{
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    *shared = tlm_pass_may_overwrite_grad(pass);
    if (!*shared)
        return ops_new_like(gradient, out);
    *out = *gradient;
    return TLM_OK;
}

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
