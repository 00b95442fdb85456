/* SPDX-License-Identifier: MIT
 * indexings.c: elements chosen by integers, one for each index: gather, and scatter_add, which puts them back.
 *
 * An index is int64 and counts from the end when negative; every one is checked before memory is touched with it, in rules
 * again, since others may have written to it meanwhile. Only the index is saved, and only when the rule will read it. Elements
 * that are chosen more than once get the sum of their gradients.
 */
#include <string.h>

#include "ops/layouts.h"

/* What was out of range, for the message. */
typedef struct {
    bool is_wrong;
    int64_t index, length;
} outside;

/* The place an index means; 0 and a note in `bad` when there is none. */
static inline int64_t place_of(int64_t index, int64_t length, outside *bad)
{
    int64_t place = index < 0 ? index + length : index;
    if ((uint64_t)place < (uint64_t)length)
        return place;
    if (!bad->is_wrong)
        *bad = (outside){true, index, length};
    return -1;
}

static tlm_status fail_outside(ops_call *call, const outside *bad)
{
    return ops_fail(call, (tlm_status)OPS_WRONG_VALUE, "index %lld is out of range for an axis of length %lld",
                    (long long)bad->index, (long long)bad->length);
}

/* ---- one element for each index ---- */

typedef struct {
    int64_t length, step, item;
    outside bad;
} chooser;

/* The memory of `tensor` in the shape of the index, at place 0 of the axis. */
static chooser choose_along(const tlm_tensor *tensor, const tlm_tensor *index, int axis, tlm_tensor *seen)
{
    chooser chooser = {tensor->shape[axis], tensor->strides[axis], ops_item_bytes(tensor->dtype), {0}};
    *seen = *tensor;
    memcpy(seen->shape, index->shape, sizeof seen->shape);
    seen->strides[axis] = 0;
    return chooser;
}

/* Along an axis without places every index is wrong, and there is no memory to walk. */
static bool has_no_places(chooser *chooser, const tlm_tensor *index)
{
    int64_t first;
    if (chooser->length > 0 || ops_elements(index) == 0)
        return false;
    const void *data = ops_data(index);
    if (data == NULL)
        return false; /* freed meanwhile: walking it says so */
    memcpy(&first, data, sizeof first);
    return place_of(first, 0, &chooser->bad) < 0;
}

static inline void copy_item(char *to, const char *from, int64_t item)
{
    if (item == 4)
        memcpy(to, from, 4);
    else if (item == 8)
        memcpy(to, from, 8);
    else
        *to = *from;
}

/* index, tensor, out */
static void gather_row(char **arguments, const intptr_t *count, const intptr_t *strides, void *data)
{
    chooser *chooser = data;
    for (intptr_t i = 0; i < *count; i++) {
        int64_t index;
        memcpy(&index, arguments[0] + i * strides[0], sizeof index);
        int64_t place = place_of(index, chooser->length, &chooser->bad);
        if (place < 0)
            return;
        copy_item(arguments[2] + i * strides[2], arguments[1] + i * strides[1] + place * chooser->step, chooser->item);
    }
}

/* index, what is added, tensor */
static void scatter_row(char **arguments, const intptr_t *count, const intptr_t *strides, void *data)
{
    chooser *chooser = data;
    for (intptr_t i = 0; i < *count; i++) {
        int64_t index;
        memcpy(&index, arguments[0] + i * strides[0], sizeof index);
        int64_t place = place_of(index, chooser->length, &chooser->bad);
        if (place < 0)
            return;
        char *to = arguments[2] + i * strides[2] + place * chooser->step;
        const char *from = arguments[1] + i * strides[1];
        if (chooser->item == 4)
            *(float *)to += *(const float *)from;
        else
            *(double *)to += *(const double *)from;
    }
}

/* A fresh tensor of the elements that the index chooses. Statuses of tlm_status; *bad says whether an index was wrong. */
static tlm_status gather_into(const tlm_tensor *tensor, const tlm_tensor *index, int axis, tlm_tensor *out,
                              outside *bad)
{
    tlm_tensor made, seen;
    chooser chooser = choose_along(tensor, index, axis, &seen);
    tlm_status status = ops_new(tensor->device, tensor->dtype, index->axes, index->shape, &made);
    if (status)
        return status;
    const tlm_tensor *const tensors[] = {index, &seen, &made};
    if (!has_no_places(&chooser, index))
        status = ops_each_row(tensors, 3, gather_row, &chooser);
    *bad = chooser.bad;
    if (status || bad->is_wrong) {
        ops_drop(&made);
        return status ? status : TLM_BAD_ARGUMENT;
    }
    *out = made;
    return TLM_OK;
}

/* tensor[index] += added; TLM_BAD_ARGUMENT: an index was wrong, and some are done. */
static tlm_status scatter_into(const tlm_tensor *tensor, const tlm_tensor *index, int axis, const tlm_tensor *added,
                               outside *bad)
{
    tlm_tensor seen;
    chooser chooser = choose_along(tensor, index, axis, &seen);
    const tlm_tensor *const tensors[] = {index, added, &seen};
    tlm_status status = has_no_places(&chooser, index) ? TLM_OK : ops_each_row(tensors, 3, scatter_row, &chooser);
    *bad = chooser.bad;
    return status ? status : bad->is_wrong ? TLM_BAD_ARGUMENT : TLM_OK;
}

static bool has_fractions(const tlm_tensor *tensor)
{
    return tensor->dtype == TLM_FLOAT32 || tensor->dtype == TLM_FLOAT64;
}

/* Checks that input `index` of a call is an index for input 0 along the axis. */
static tlm_status check_index(ops_call *call, uint32_t number, int *axis)
{
    const tlm_tensor *in = &call->in[0], *index = &call->in[number];
    char text[160], other[160];
    if (!in->object || !index->object || index->dtype != TLM_INT64 || index->device != in->device)
        return (tlm_status)OPS_NOT_HERE;
    tlm_status status = ops_axis(call, call->params.n[0], in->axes, axis);
    if (status)
        return status;
    if (index->axes != in->axes)
        return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "an index for shape %s needs %d axes, not shape %s",
                        ops_shape_text(in, text), in->axes, ops_shape_text(index, other));
    for (int i = 0; i < in->axes; i++)
        if (i != *axis && index->shape[i] > in->shape[i])
            return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE,
                            "an index of shape %s is longer than %s along an axis that is not chosen from",
                            ops_shape_text(index, other), ops_shape_text(in, text));
    return TLM_OK;
}

/* ---- gather: n = the axis, then the shape of the input ---- */

static tlm_status gather(ops_call *call)
{
    outside bad = {0};
    int axis;
    tlm_status status = check_index(call, 1, &axis);
    if (status)
        return status;
    call->params.n[0] = axis;
    call->params.count = 1;
    if ((status = gather_into(&call->in[0], &call->in[1], axis, &call->out, &bad)))
        return bad.is_wrong ? fail_outside(call, &bad) : status;
    if (ops_needs(call, 0)) {
        ops_keep_shape(call, 0, 1);
        ops_save_input(call, 1);
    }
    return TLM_OK;
}

static tlm_status gather_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    tlm_tensor like, made;
    outside bad;
    ops_kept_shape(params->n + 1, gradient, &like);
    tlm_status status = ops_zeros(gradient->device, gradient->dtype, like.axes, like.shape, &made);
    if (status)
        return status;
    if ((status = scatter_into(&made, tlm_pass_saved(pass, 0), (int)params->n[0], gradient, &bad))) {
        ops_drop(&made);
        return status;
    }
    return tlm_pass_give(pass, 0, &made);
}

/* ---- scatter_add of tensor, index, added: n = the axis ---- */

static tlm_status scatter_add(ops_call *call)
{
    const tlm_tensor *in = &call->in[0], *index = &call->in[1], *added = &call->in[2];
    char text[160], other[160];
    tlm_tensor made;
    outside bad = {0};
    int axis;
    tlm_status status = check_index(call, 1, &axis);
    if (status)
        return status;
    if (!has_fractions(in) || added->dtype != in->dtype || (added->object && added->device != in->device))
        return (tlm_status)OPS_NOT_HERE;
    if (!ops_same_shape(index, added))
        return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE,
                        "what is added has shape %s, its index %s; they must be equal", ops_shape_text(added, text),
                        ops_shape_text(index, other));
    if ((status = ops_new_like(in, &made)))
        return status;
    if ((status = ops_copy(in, &made)) || (status = scatter_into(&made, index, axis, added, &bad))) {
        ops_drop(&made);
        return bad.is_wrong ? fail_outside(call, &bad) : status;
    }
    call->out = made;
    call->params.n[0] = axis;
    call->params.count = 1;
    if (ops_needs(call, 2))
        ops_save_input(call, 1);
    return TLM_OK;
}

static tlm_status scatter_add_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    tlm_tensor made;
    outside bad;
    tlm_status status = TLM_OK;
    if (tlm_pass_wants(pass, 2)) {
        const tlm_tensor *index = tlm_pass_saved(pass, 0);
        if (gradient->object)
            status = gather_into(gradient, index, (int)params->n[0], &made, &bad);
        else /* one number, whichever is chosen, takes no memory */
            ops_constant(ops_number_of(gradient), gradient->dtype, index->axes, index->shape, &made);
        if (!status)
            status = tlm_pass_give(pass, 2, &made);
    }
    return !status && tlm_pass_wants(pass, 0) ? tlm_pass_share(pass, 0, gradient) : status;
}

static const ops_row rows[] = {
    {"gather", "index", 2, 2, true, gather, gather_back},
    {"scatter_add", "index", 3, 3, true, scatter_add, scatter_add_back},
};
const ops_family ops_indexings = {rows, sizeof rows / sizeof *rows};
