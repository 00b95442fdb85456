/* SPDX-License-Identifier: MIT
 * gemm.c: products of stacks of matrices, by the loop of NumPy's matmul, which calls BLAS.
 *
 * The loop takes transposed matrices by their strides. What BLAS could not read is copied first, once: NumPy would fall back to
 * a plain loop, or copy for each matrix of the stack. A stack whose rows lie behind each other, times one matrix, is one
 * product of a taller matrix. Keeps nothing; any thread may call.
 */
#include "ops/gemm.h"

#include <string.h>

#include "ops/layouts.h"

/* ---- matrices for BLAS ---- */

/* Steps of an axis of one element say nothing: gives them values that BLAS takes when it can take the other axis. */
static void settle_strides(tlm_tensor *matrix)
{
    int64_t item = ops_item_bytes(matrix->dtype), *shape = matrix->shape + matrix->axes - 2;
    int64_t *strides = matrix->strides + matrix->axes - 2;
    if (shape[0] == 1 && shape[1] == 1)
        strides[0] = strides[1] = item;
    else if (shape[0] == 1)
        strides[0] = strides[1] == item ? shape[1] * item : item;
    else if (shape[1] == 1)
        strides[1] = strides[0] == item ? shape[0] * item : item;
}

static bool is_row_major(int64_t columns, int64_t row_step, int64_t column_step, int64_t item)
{
    return column_step == item && row_step >= columns * item && row_step / item <= INT32_MAX && row_step % item == 0;
}

static bool suits_blas(const tlm_tensor *matrix)
{
    int64_t item = ops_item_bytes(matrix->dtype);
    const int64_t *shape = matrix->shape + matrix->axes - 2, *strides = matrix->strides + matrix->axes - 2;
    return matrix->object && (is_row_major(shape[1], strides[0], strides[1], item) ||
                              is_row_major(shape[0], strides[1], strides[0], item));
}

tlm_status ops_made_suitable(tlm_tensor *matrix, tlm_tensor *made)
{
    *made = (tlm_tensor){0};
    settle_strides(matrix);
    if (suits_blas(matrix))
        return TLM_OK;
    tlm_tensor part = *matrix, fresh;
    for (int i = 0; i < matrix->axes - 2; i++)
        if (matrix->strides[i] == 0)
            part.shape[i] = 1;
    tlm_status status = ops_new_like(&part, &fresh);
    if (status)
        return status;
    if ((status = ops_copy(&part, &fresh))) {
        ops_drop(&fresh);
        return status;
    }
    *made = fresh;
    ops_expand(&fresh, matrix->axes, matrix->shape, matrix);
    settle_strides(matrix);
    return TLM_OK;
}

/* ---- one product ---- */

bool ops_fold(tlm_tensor *tensor)
{
    int64_t length, step;
    int last = tensor->axes - 1;
    if (!ops_axes_as_one(tensor, 0, last, &length, &step))
        return false;
    tensor->shape[1] = tensor->shape[last];
    tensor->strides[1] = tensor->strides[last];
    tensor->shape[0] = length;
    tensor->strides[0] = step;
    tensor->axes = 2;
    return true;
}

/* Calls the loop for every matrix of a stack; a, b, c have the same axes before the last two. */
static void run(const tlm_tensor *const *matrices, char **data)
{
    const tlm_tensor *a = matrices[0], *c = matrices[2];
    const ops_loop *loop = &ops_matmul_loops[c->dtype == TLM_FLOAT64 ? OPS_FLOAT64 : OPS_FLOAT32];
    int row = c->axes - 2, column = c->axes - 1, stacked = row - 1;
    intptr_t dimensions[] = {stacked < 0 ? 1 : c->shape[stacked], c->shape[row], a->shape[column], c->shape[column]};
    intptr_t strides[9] = {0};
    int64_t at[TLM_MOST_AXES] = {0};
    for (int i = 0; i < 3; i++) {
        strides[i] = stacked < 0 ? 0 : matrices[i]->strides[stacked];
        strides[3 + 2 * i] = matrices[i]->strides[row];
        strides[4 + 2 * i] = matrices[i]->strides[column];
    }
    for (;;) {
        char *arguments[] = {data[0], data[1], data[2]}; /* the loop moves them */
        loop->call(arguments, dimensions, strides, loop->data);
        int axis = stacked - 1;
        for (; axis >= 0; axis--) {
            bool is_inside = ++at[axis] < c->shape[axis];
            for (int i = 0; i < 3; i++)
                data[i] += matrices[i]->strides[axis] * (is_inside ? 1 : 1 - c->shape[axis]);
            if (is_inside)
                break;
            at[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

/* A column times a row has nothing to sum: each element is one product, which the loop over elements does fastest. */
static tlm_status multiply_outer(const tlm_tensor *a, const tlm_tensor *b, const tlm_tensor *c)
{
    tlm_tensor left = *a, right = *b;
    int row = c->axes - 2, column = c->axes - 1;
    left.shape[column] = c->shape[column];
    left.strides[column] = 0;
    right.shape[row] = c->shape[row];
    right.strides[row] = 0;
    return ops_binary(OPS_MULTIPLY, &left, &right, c);
}

static tlm_status multiply_suitable(const tlm_tensor *a, const tlm_tensor *b, const tlm_tensor *c)
{
    char *data[] = {ops_data(a), ops_data(b), ops_data(c)};
    const tlm_tensor *const matrices[] = {a, b, c};
    if (!data[0] || !data[1] || !data[2])
        return TLM_FREED;
    run(matrices, data);
    return TLM_OK;
}

static bool is_one_matrix(const tlm_tensor *tensor)
{
    for (int i = 0; i < tensor->axes - 2; i++)
        if (tensor->shape[i] != 1 && tensor->strides[i] != 0)
            return false;
    return true;
}

static tlm_status multiply_filled(tlm_tensor a, tlm_tensor b, tlm_tensor c)
{
    tlm_tensor folded = a, copied_a, copied_b;
    if (c.axes > 2 && is_one_matrix(&b) && ops_fold(&folded)) {
        a = folded;
        ops_fold(&c);
        memmove(b.shape, b.shape + b.axes - 2, 2 * sizeof *b.shape);
        memmove(b.strides, b.strides + b.axes - 2, 2 * sizeof *b.strides);
        b.axes = 2;
    }
    if (a.shape[a.axes - 1] == 1)
        return multiply_outer(&a, &b, &c);
    tlm_status status = ops_made_suitable(&a, &copied_a);
    if (status)
        return status;
    status = ops_made_suitable(&b, &copied_b);
    if (!status)
        status = multiply_suitable(&a, &b, &c);
    ops_drop(&copied_b);
    ops_drop(&copied_a);
    return status;
}

tlm_status ops_multiply(const tlm_tensor *a, const tlm_tensor *b, const tlm_tensor *c)
{
    if (ops_elements(c) == 0)
        return TLM_OK;
    return a->shape[a->axes - 1] == 0 ? ops_fill(c, 0.0) : multiply_filled(*a, *b, *c);
}
