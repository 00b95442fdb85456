/* SPDX-License-Identifier: MIT
 * ops_values.h: tensors of random numbers in several layouts, their elements by index, and one call of an op, for C tests.
 *
 *     tlm_tensor out = apply("matmul", (const tlm_tensor[]){a, b}, 2, NULL, 0);
 *     refuse("take", inputs, 2, (int64_t[]){axis}, 1, OPS_WRONG_VALUE, "index 4 is out of range ...");
 */
#ifndef TLMEM_OPS_VALUES_H
#define TLMEM_OPS_VALUES_H

#include <math.h>
#include <string.h>

#include "check.h"
#include "plain_loops.h"

/* Row by row; axes reversed in memory; each second element of longer rows; backwards; all the same element. */
enum { DENSE, TRANSPOSED, STEPPED, REVERSED, REPEATED, LAYOUTS };

static uint64_t ops_values_state = 88172645463325252u;
static bool last_was_view;
static double last_fraction; /* params.x[0] of the next calls */

static inline double random_value(void)
{
    return (double)(int64_t)(next_random(&ops_values_state) >> 40) / (1 << 20) - 8 + 0.125;
}

static inline bool next_index(const tlm_tensor *tensor, int64_t *index)
{
    for (int i = tensor->axes; i-- > 0;) {
        if (++index[i] < tensor->shape[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static inline char *address(const tlm_tensor *tensor, const int64_t *index)
{
    char *at = ops_data(tensor);
    for (int i = 0; i < tensor->axes; i++)
        at += index[i] * tensor->strides[i];
    return at;
}

static inline double element(const tlm_tensor *tensor, const int64_t *index)
{
    CHECK(tensor->dtype == TLM_FLOAT64);
    return *(double *)address(tensor, index);
}

static inline bool is_near(double one, double other)
{
    return fabs(one - other) <= 1e-12 * (1 + fabs(other));
}

/* A floating object with random float64 numbers; the tensor looks into it as the layout says. */
static inline tlm_tensor random_tensor(int axes, const int64_t *shape, int layout)
{
    int64_t room[8] = {0};
    tlm_tensor memory, out;
    for (int i = 0; i < axes; i++)
        room[i] = layout == STEPPED ? 2 * shape[i] : layout == TRANSPOSED ? shape[axes - 1 - i] : shape[i];
    CHECK(ops_new(TLM_DEVICE_CPU, TLM_FLOAT64, axes, room, &memory) == TLM_OK);
    for (int64_t i = 0; i < ops_elements(&memory); i++)
        ((double *)ops_data(&memory))[i] = random_value();
    out = memory;
    for (int i = 0; i < axes; i++) {
        out.shape[i] = shape[i];
        out.strides[i] =
            layout == TRANSPOSED ? memory.strides[axes - 1 - i] : memory.strides[i] * (layout == STEPPED ? 2 : 1);
        if (layout == REPEATED)
            out.strides[i] = 0;
        if (layout == REVERSED && shape[i]) {
            out.at.offset += (uint64_t)((shape[i] - 1) * memory.strides[i]);
            out.strides[i] = -memory.strides[i];
        }
    }
    return out;
}

static inline tlm_tensor indices(int axes, const int64_t *shape, const int64_t *values)
{
    tlm_tensor out;
    CHECK(ops_new(TLM_DEVICE_CPU, TLM_INT64, axes, shape, &out) == TLM_OK);
    memcpy(ops_data(&out), values, sizeof *values * (size_t)ops_elements(&out));
    return out;
}

/* What an index says, counted from the front. */
static inline int64_t place_in(const tlm_tensor *index, const int64_t *at, int64_t length)
{
    int64_t place = *(int64_t *)address(index, at);
    return place < 0 ? place + length : place;
}

static inline tlm_status call_op(const char *name, const tlm_tensor *inputs, uint32_t count, const int64_t *numbers,
                                 uint32_t number_count, ops_call *call)
{
    int row = ops_row_named(name);
    CHECK(row >= 0);
    *call = (ops_call){.inputs = count, .in = inputs};
    call->params.x[0] = last_fraction;
    call->params.count = number_count;
    if (number_count)
        memcpy(call->params.n, numbers, sizeof *numbers * number_count);
    return ops_forward(row, call);
}

/* The result, which floats unless last_was_view. */
static inline tlm_tensor apply(const char *name, const tlm_tensor *inputs, uint32_t count, const int64_t *numbers,
                               uint32_t number_count)
{
    ops_call call;
    tlm_status status = call_op(name, inputs, count, numbers, number_count, &call);
    if (status != TLM_OK)
        fprintf(stderr, "%s: %d: %s\n", name, (int)status, call.message);
    CHECK(status == TLM_OK && call.save_count == 0);
    last_was_view = call.out_is_view;
    return call.out;
}

/* The call must fail so, with this message, and leave nothing behind. */
static inline void refuse(const char *name, const tlm_tensor *inputs, uint32_t count, const int64_t *numbers,
                          uint32_t number_count, int status, const char *message)
{
    ops_call call;
    uint64_t before = tlm_objects_alive(NULL, 0);
    CHECK((int)call_op(name, inputs, count, numbers, number_count, &call) == status);
    if (strcmp(call.message, message))
        fprintf(stderr, "%s says: %s\n", name, call.message);
    CHECK(!strcmp(call.message, message) && tlm_objects_alive(NULL, 0) == before);
}
#endif
