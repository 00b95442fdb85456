/* SPDX-License-Identifier: MIT
 * indexing.c: elements chosen by integers: gather, scatter_add, which puts them back, take, embedding.
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

/* ---- whole slices: take along an axis, and embedding, the rows of a table ----
 * The index is int64, of any shape, and counts from the end when negative; every one is checked before memory is touched with
 * it, in rules again, since others may have written to it meanwhile. Only the index is saved. The rule adds the rows of the
 * gradient to zeros, in the order of the index.
 *
 * n[0]: the axis; the shape of the input follows.
 */

/* A tensor as (outer..., axis, inner): what lies before the axis is walked, what lies behind it is one row. */
typedef struct {
    int outer_axes;
    const tlm_tensor *tensor;
    int64_t length, step;            /* of the axis, or of the axes that the index put there */
    int64_t row_length, row_step;    /* of what lies behind it */
    int64_t at[TLM_MOST_AXES], byte; /* where the walk is */
} rows_of;

/* Splits a tensor at axes `from` to `to` - 1; false when strides do not let it. */
static bool split(const tlm_tensor *tensor, int from, int to, rows_of *out)
{
    *out = (rows_of){.outer_axes = from, .tensor = tensor};
    return ops_axes_as_one(tensor, from, to, &out->length, &out->step) &&
           ops_axes_as_one(tensor, to, tensor->axes, &out->row_length, &out->row_step);
}

/* Onto the next place before the axis; false: there is none. */
static bool next(rows_of *rows)
{
    for (int i = rows->outer_axes; i-- > 0;) {
        rows->byte += rows->tensor->strides[i];
        if (++rows->at[i] < rows->tensor->shape[i])
            return true;
        rows->byte -= rows->tensor->strides[i] * rows->tensor->shape[i];
        rows->at[i] = 0;
    }
    return false;
}

static void copy_row(char *to, const char *from, int64_t count, int64_t step, int64_t item)
{
    if (step == item && item * count > 8) {
        memcpy(to, from, (size_t)(item * count));
        return;
    }
    for (int64_t i = 0; i < count; i++, to += item, from += step) {
        if (item == 4)
            memcpy(to, from, 4);
        else if (item == 8)
            memcpy(to, from, 8);
        else
            *to = *from;
    }
}

/* The place that index number i means, -1 and a note in *bad when there is none. */
static inline int64_t row_place(const int64_t *index, int64_t i, int64_t length, int64_t *bad)
{
    int64_t place = index[i] < 0 ? index[i] + length : index[i];
    if ((uint64_t)place < (uint64_t)length)
        return place;
    *bad = index[i];
    return -1;
}

static bool are_places(const int64_t *index, int64_t count, int64_t length, int64_t *bad)
{
    for (int64_t i = 0; i < count; i++)
        if (row_place(index, i, length, bad) < 0)
            return false;
    return true;
}

/* Fills `to`, dense, with the rows of `from`. False: index *bad is out of range. */
static bool copy_rows(rows_of *from, char *source, const int64_t *index, int64_t count, char *to, int64_t *bad)
{
    int64_t item = ops_item_bytes(from->tensor->dtype), bytes = item * from->row_length;
    do {
        for (int64_t i = 0; i < count; i++, to += bytes) {
            int64_t place = row_place(index, i, from->length, bad);
            if (place < 0)
                return false;
            copy_row(to, source + from->byte + place * from->step, from->row_length, from->row_step, item);
        }
    } while (next(from));
    return true;
}

/* Adds the rows of `gradient` to those of `to`. Both are split at the axis, and walked side by side. */
static bool add_rows(rows_of *to, char *sum, const int64_t *index, rows_of *gradient, char *added)
{
    const ops_loop *add = ops_loop_of(OPS_ADD, to->tensor->dtype);
    intptr_t length = to->row_length, strides[] = {to->row_step, gradient->row_step, to->row_step};
    int64_t bad;
    do {
        for (int64_t i = 0; i < gradient->length; i++) {
            int64_t place = row_place(index, i, to->length, &bad);
            if (place < 0)
                return false;
            char *row = sum + to->byte + place * to->step;
            char *arguments[] = {row, added + gradient->byte + i * gradient->step, row};
            add->call(arguments, &length, strides, add->data);
        }
    } while (next(to) && next(gradient));
    return true;
}

/* ---- forward ---- */

static tlm_status make_out(const ops_call *call, int axis, tlm_tensor *out)
{
    const tlm_tensor *in = &call->in[0], *index = &call->in[1];
    int64_t shape[2 * TLM_MOST_AXES];
    int axes = 0;
    for (int i = 0; i < axis; i++)
        shape[axes++] = in->shape[i];
    for (int i = 0; i < index->axes; i++)
        shape[axes++] = index->shape[i];
    for (int i = axis + 1; i < in->axes; i++)
        shape[axes++] = in->shape[i];
    return ops_new(in->device, in->dtype, axes, shape, out);
}

/* The rows of dense memory, or of memory whose rows have strides. */
static tlm_status take_dense(ops_call *call, const tlm_tensor *in, const tlm_tensor *index, int axis)
{
    rows_of rows;
    tlm_tensor made;
    int64_t bad = 0, count = ops_elements(index);
    split(in, axis, axis + 1, &rows);
    tlm_status status = make_out(call, axis, &made);
    if (status)
        return status;
    char *source = NULL, *to = NULL;
    const int64_t *places = count ? ops_data(index) : NULL;
    bool is_empty = ops_elements(&made) == 0 || rows.length == 0, is_right = true;
    if ((count && !places) || (!is_empty && (!(source = ops_data(in)) || !(to = ops_data(&made)))))
        status = TLM_FREED;
    else if (is_empty)
        is_right = are_places(places, count, rows.length, &bad);
    else
        is_right = copy_rows(&rows, source, places, count, to, &bad);
    if (!is_right)
        status = ops_fail(call, (tlm_status)OPS_WRONG_VALUE, "index %lld is out of range for an axis of length %lld",
                          (long long)bad, (long long)rows.length);
    if (status)
        ops_drop(&made);
    else
        call->out = made;
    return status;
}

static tlm_status take_along(ops_call *call, int axis)
{
    const tlm_tensor *in = &call->in[0];
    tlm_tensor source, copied, index, listed;
    rows_of rows;
    tlm_status status = ops_made_dense(&call->in[1], &index, &listed);
    if (status)
        return status;
    source = *in;
    copied = (tlm_tensor){0};
    if (!split(in, axis, axis + 1, &rows))
        status = ops_made_dense(in, &source, &copied);
    if (!status)
        status = take_dense(call, &source, &index, axis);
    ops_drop(&copied);
    ops_drop(&listed);
    if (status || !call->records)
        return status;
    call->params.n[0] = axis;
    ops_keep_shape(call, 0, 1);
    ops_save_input(call, 1);
    return TLM_OK;
}

static bool is_for_here(const ops_call *call)
{
    const tlm_tensor *in = &call->in[0], *index = &call->in[1];
    return in->object && index->object && index->dtype == TLM_INT64 && index->device == in->device && in->axes &&
           in->axes + index->axes - 1 <= TLM_MOST_AXES;
}

static tlm_status take(ops_call *call)
{
    int axis;
    if (!is_for_here(call))
        return (tlm_status)OPS_NOT_HERE;
    tlm_status status = ops_axis(call, call->params.n[0], call->in[0].axes, &axis);
    return status ? status : take_along(call, axis);
}

static tlm_status embedding(ops_call *call)
{
    char text[160];
    if (!is_for_here(call))
        return (tlm_status)OPS_NOT_HERE;
    if (call->in[0].axes != 2)
        return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "a table of embeddings has 2 axes, not shape %s",
                        ops_shape_text(&call->in[0], text));
    return take_along(call, 0);
}

/* ---- backward ---- */

static tlm_status add_to(const tlm_tensor *sum, const tlm_tensor *index, const tlm_tensor *gradient, int axis)
{
    rows_of to, from;
    char *into = ops_data(sum), *added = ops_data(gradient);
    const int64_t *places = ops_data(index);
    if (!into || !added || !places)
        return TLM_FREED;
    split(sum, axis, axis + 1, &to);
    split(gradient, axis, axis + gradient->axes - (sum->axes - 1), &from);
    return add_rows(&to, into, places, &from, added) ? TLM_OK : TLM_BAD_ARGUMENT;
}

/* Zeros of the input's shape with the rows of the gradient added; both index and gradient lie so that rows can be read. */
static tlm_status sum_rows(const tlm_tensor *like, const tlm_tensor *index, const tlm_tensor *gradient, int axis,
                           tlm_tensor *out)
{
    tlm_tensor made;
    tlm_status status = ops_zeros(gradient->device, gradient->dtype, like->axes, like->shape, &made);
    if (status)
        return status;
    if (ops_elements(gradient))
        status = add_to(&made, index, gradient, axis);
    if (status)
        ops_drop(&made);
    else
        *out = made;
    return status;
}

static tlm_status take_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    tlm_tensor like, index, listed, dense = *gradient, copied = {0}, sum;
    int axis = (int)params->n[0];
    rows_of rows;
    tlm_status status = ops_made_dense(tlm_pass_saved(pass, 0), &index, &listed);
    if (status)
        return status;
    ops_kept_shape(params->n + 1, gradient, &like);
    if (!split(gradient, axis, axis + index.axes, &rows))
        status = ops_made_dense(gradient, &dense, &copied);
    if (!status)
        status = sum_rows(&like, &index, &dense, axis, &sum);
    ops_drop(&copied);
    ops_drop(&listed);
    return status ? status : tlm_pass_give(pass, 0, &sum);
}

static const ops_row rows[] = {
    {"gather", "index", 2, 2, true, gather, gather_back, OPS_OTHER, OPS_WRITES_FRESH, .method = "gather"},
    {"scatter_add", "index", 3, 3, true, scatter_add, scatter_add_back, OPS_OTHER, OPS_WRITES_FRESH},
    {"take", "index", 2, 2, true, take, take_back, OPS_OTHER, OPS_WRITES_FRESH, .method = "take"},
    {"embedding", "index", 2, 2, true, embedding, take_back, OPS_OTHER, OPS_WRITES_FRESH},
};
const ops_family ops_indexing = {rows, sizeof rows / sizeof *rows};
