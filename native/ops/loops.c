/* SPDX-License-Identifier: MIT
 * loops.c: NumPy's inner loops over tensors of one shape, any strides.
 *
 * A walk puts the axes in order of their strides, makes one of those that lie behind each other, and calls a loop for each row
 * of what is left. Tensors that lie row by row take one call and no walk. No state but ops_loops, which are filled once
 * before any use; any thread may call.
 */
#include <string.h>

#include "ops/ops.h"

ops_loop ops_loops[OPS_LOOPS][2];
ops_loop ops_matmul_loops[2];

enum { MOST_TENSORS = 4, SHORT_ROW = 16 };

typedef struct {
    int axes, count;
    int64_t shape[TLM_MOST_AXES];
    int64_t strides[MOST_TENSORS][TLM_MOST_AXES];
    char *data[MOST_TENSORS];
} walk;

/* ---- preparing ---- */

/* The step from one element to the next when the shape is read as one row; -1: there is none. */
static inline int64_t flat_step(const tlm_tensor *tensor)
{
    int64_t item = ops_item_bytes(tensor->dtype), step = item;
    bool is_dense = true, is_still = true;
    for (int axis = tensor->axes - 1; axis >= 0; axis--) {
        if (tensor->shape[axis] == 1)
            continue;
        is_dense = is_dense && tensor->strides[axis] == step;
        is_still = is_still && tensor->strides[axis] == 0;
        step *= tensor->shape[axis];
    }
    return is_dense ? item : is_still ? 0 : -1;
}

static void swap_axes(walk *walk, int one, int other)
{
    int64_t kept = walk->shape[one];
    walk->shape[one] = walk->shape[other];
    walk->shape[other] = kept;
    for (int i = 0; i < walk->count; i++) {
        kept = walk->strides[i][one];
        walk->strides[i][one] = walk->strides[i][other];
        walk->strides[i][other] = kept;
    }
}

static int64_t total_step(const walk *walk, int axis)
{
    int64_t total = 0;
    for (int i = 0; i < walk->count; i++) {
        int64_t step = walk->strides[i][axis];
        total += step < 0 ? -step : step;
    }
    return total;
}

/* Axes of one element go; of the others the one with the shortest strides comes last. */
static void sort_axes(walk *walk)
{
    int kept = 0;
    for (int axis = 0; axis < walk->axes; axis++)
        if (walk->shape[axis] != 1)
            swap_axes(walk, kept++, axis);
    walk->axes = kept;
    for (int axis = 1; axis < kept; axis++)
        for (int at = axis; at > 0 && total_step(walk, at - 1) < total_step(walk, at); at--)
            swap_axes(walk, at - 1, at);
}

static bool continues(const walk *walk, int outer, int inner)
{
    for (int i = 0; i < walk->count; i++)
        if (walk->strides[i][outer] != walk->strides[i][inner] * walk->shape[inner])
            return false;
    return true;
}

/* Makes one axis of neighbours that lie behind each other. */
static void merge_axes(walk *walk)
{
    int last = 0;
    for (int axis = 1; axis < walk->axes; axis++) {
        if (continues(walk, last, axis))
            walk->shape[axis] *= walk->shape[last];
        else
            last++;
        swap_axes(walk, last, axis);
    }
    if (walk->axes)
        walk->axes = last + 1;
}

/* Many short rows cost more calls than they save in steps: the longest axis comes last then. */
static void lengthen_rows(walk *walk)
{
    int last = walk->axes - 1, longest = last;
    for (int axis = 0; axis < last; axis++)
        if (walk->shape[axis] > walk->shape[longest])
            longest = axis;
    if (last >= 0 && walk->shape[last] < SHORT_ROW && walk->shape[longest] >= 4 * walk->shape[last])
        swap_axes(walk, last, longest);
}

/* `shape` is that of the walk; tensors have its axes. `still`: axes along which all but the second do not move. */
static tlm_status prepare(const tlm_tensor *const *tensors, int count, const tlm_tensor *shape, uint32_t still,
                          walk *out)
{
    out->axes = shape->axes;
    out->count = count;
    memcpy(out->shape, shape->shape, shape->axes * sizeof *out->shape);
    for (int i = 0; i < count; i++) {
        out->data[i] = ops_data(tensors[i]);
        if (!out->data[i])
            return TLM_FREED;
        memcpy(out->strides[i], tensors[i]->strides, shape->axes * sizeof *out->shape);
    }
    for (int axis = 0; still >> axis; axis++)
        if (still >> axis & 1)
            out->strides[0][axis] = out->strides[count - 1][axis] = 0;
    sort_axes(out);
    merge_axes(out);
    lengthen_rows(out);
    return TLM_OK;
}

/* ---- walking ---- */

/* Puts the pointers onto the next row along the axes in front of `axis`; false: there is none. */
static bool next_rows(const walk *walk, int axis, int64_t *index, char **data)
{
    while (--axis >= 0) {
        bool is_inside = ++index[axis] < walk->shape[axis];
        int64_t by = is_inside ? 1 : 1 - walk->shape[axis];
        for (int i = 0; i < walk->count; i++)
            data[i] += by * walk->strides[i][axis];
        if (is_inside)
            return true;
        index[axis] = 0;
    }
    return false;
}

/* Calls the loop for each row. The last axis but one needs no index. */
static void run(const walk *walk, ops_row_call call, void *data)
{
    int last = walk->axes - 1;
    intptr_t count = last < 0 ? 1 : walk->shape[last], strides[MOST_TENSORS] = {0}, moves[MOST_TENSORS] = {0};
    int64_t rows = last < 1 ? 1 : walk->shape[last - 1], index[TLM_MOST_AXES] = {0};
    char *first[MOST_TENSORS] = {0};
    for (int i = 0; i < walk->count; i++) {
        first[i] = walk->data[i];
        strides[i] = last < 0 ? 0 : walk->strides[i][last];
        moves[i] = last < 1 ? 0 : walk->strides[i][last - 1];
    }
    do {
        char *at[MOST_TENSORS] = {first[0], first[1], first[2], first[3]};
        for (int64_t row = 0; row < rows; row++) {
            call(at, &count, strides, data);
            for (int i = 0; i < walk->count; i++)
                at[i] += moves[i];
        }
    } while (next_rows(walk, last - 1, index, first));
}

static tlm_status walk_rows(const tlm_tensor *const *tensors, int count, ops_row_call row, void *data)
{
    walk walk;
    tlm_status status = prepare(tensors, count, tensors[count - 1], 0, &walk);
    if (status == TLM_OK)
        run(&walk, row, data);
    return status;
}

tlm_status ops_each_row(const tlm_tensor *const *tensors, int count, ops_row_call row, void *data)
{
    char *arguments[MOST_TENSORS];
    intptr_t elements = ops_elements(tensors[count - 1]), strides[MOST_TENSORS];
    if (elements == 0)
        return TLM_OK;
    for (int i = 0; i < count; i++)
        if ((strides[i] = flat_step(tensors[i])) < 0)
            return walk_rows(tensors, count, row, data);
    for (int i = 0; i < count; i++)
        if ((arguments[i] = ops_data(tensors[i])) == NULL)
            return TLM_FREED;
    row(arguments, &elements, strides, data);
    return TLM_OK;
}

tlm_status ops_unary(ops_loop_name name, const tlm_tensor *in, const tlm_tensor *out)
{
    const ops_loop *loop = ops_loop_of(name, out->dtype);
    const tlm_tensor *tensors[] = {in, out};
    return ops_each_row(tensors, 2, loop->call, loop->data);
}

tlm_status ops_binary(ops_loop_name name, const tlm_tensor *left, const tlm_tensor *right, const tlm_tensor *out)
{
    const ops_loop *loop = ops_loop_of(name, out->dtype);
    const tlm_tensor *tensors[] = {left, right, out};
    return ops_each_row(tensors, 3, loop->call, loop->data);
}

tlm_status ops_reduce(ops_loop_name name, const tlm_tensor *in, uint32_t axes, double start, const tlm_tensor *out)
{
    tlm_tensor once = *out;
    for (int axis = 0; axis < once.axes; axis++)
        if (axes >> axis & 1)
            once.shape[axis] = 1;
    tlm_status status = ops_fill(&once, start);
    if (status != TLM_OK || ops_elements(in) == 0)
        return status;
    const ops_loop *loop = ops_loop_of(name, out->dtype);
    const tlm_tensor *tensors[] = {&once, in, &once}; /* NumPy's loops sum where the output is the first input */
    walk walk;
    status = prepare(tensors, 3, in, axes, &walk);
    if (status == TLM_OK)
        run(&walk, loop->call, loop->data);
    return status;
}

/* ---- copying ---- */

#define COPY_LOOP(NAME, FROM, TO, VALUE)                                                                               \
    static void NAME(char **arguments, const intptr_t *count, const intptr_t *strides, void *unused)                   \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        const char *from = arguments[0];                                                                               \
        char *to = arguments[1];                                                                                       \
        for (intptr_t i = 0; i < *count; i++, from += strides[0], to += strides[1]) {                                  \
            FROM value = *(const FROM *)from;                                                                          \
            *(TO *)to = (TO)(VALUE);                                                                                   \
        }                                                                                                              \
    }

COPY_LOOP(float_to_double, float, double, value)
COPY_LOOP(float_to_int, float, int64_t, value)
COPY_LOOP(float_to_int32, float, int32_t, value)
COPY_LOOP(float_to_bool, float, uint8_t, value != 0)
COPY_LOOP(double_to_float, double, float, value)
COPY_LOOP(double_to_int, double, int64_t, value)
COPY_LOOP(double_to_int32, double, int32_t, value)
COPY_LOOP(double_to_bool, double, uint8_t, value != 0)
COPY_LOOP(int_to_float, int64_t, float, value)
COPY_LOOP(int_to_double, int64_t, double, value)
COPY_LOOP(int_to_bool, int64_t, uint8_t, value != 0)
COPY_LOOP(int_to_int32, int64_t, int32_t, value)
COPY_LOOP(int32_to_float, int32_t, float, value)
COPY_LOOP(int32_to_double, int32_t, double, value)
COPY_LOOP(int32_to_int, int32_t, int64_t, value)
COPY_LOOP(int32_to_bool, int32_t, uint8_t, value != 0)
COPY_LOOP(bool_to_float, uint8_t, float, value)
COPY_LOOP(bool_to_double, uint8_t, double, value)
COPY_LOOP(bool_to_int, uint8_t, int64_t, value)
COPY_LOOP(bool_to_int32, uint8_t, int32_t, value)

/* The same bits: rows without gaps are one block, and a single element is repeated. */
#define MOVE_LOOP(NAME, TYPE)                                                                                          \
    static void NAME(char **arguments, const intptr_t *count, const intptr_t *strides, void *unused)                   \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        intptr_t item = sizeof(TYPE);                                                                                  \
        const char *from = arguments[0];                                                                               \
        char *to = arguments[1];                                                                                       \
        if (strides[0] == item && strides[1] == item) {                                                                \
            memmove(to, from, (size_t)(*count * item));                                                                \
        } else if (strides[0] == 0 && strides[1] == item) {                                                            \
            TYPE value = *(const TYPE *)from, *row = (TYPE *)to;                                                       \
            for (intptr_t i = 0; i < *count; i++)                                                                      \
                row[i] = value;                                                                                        \
        } else {                                                                                                       \
            for (intptr_t i = 0; i < *count; i++, from += strides[0], to += strides[1])                                \
                *(TYPE *)to = *(const TYPE *)from;                                                                     \
        }                                                                                                              \
    }

MOVE_LOOP(move_1, uint8_t)
MOVE_LOOP(move_4, uint32_t)
MOVE_LOOP(move_8, uint64_t)

tlm_status ops_copy(const tlm_tensor *from, const tlm_tensor *to)
{
    static const ops_row_call rows[6][6] = {
        [TLM_FLOAT32] = {NULL, move_4, float_to_double, float_to_int, float_to_bool, float_to_int32},
        [TLM_FLOAT64] = {NULL, double_to_float, move_8, double_to_int, double_to_bool, double_to_int32},
        [TLM_INT64] = {NULL, int_to_float, int_to_double, move_8, int_to_bool, int_to_int32},
        [TLM_BOOL] = {NULL, bool_to_float, bool_to_double, bool_to_int, move_1, bool_to_int32},
        [TLM_INT32] = {NULL, int32_to_float, int32_to_double, int32_to_int, int32_to_bool, move_4},
    };
    const tlm_tensor *tensors[] = {from, to};
    return ops_each_row(tensors, 2, rows[from->dtype][to->dtype], NULL);
}

tlm_status ops_fill(const tlm_tensor *to, double value)
{
    tlm_tensor number;
    ops_constant(value, to->dtype, to->axes, to->shape, &number);
    return ops_copy(&number, to);
}
