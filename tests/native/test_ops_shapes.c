/* SPDX-License-Identifier: MIT
 * test_ops_shapes.c: products, shapes, parts, choices, joins and dropout give what plain loops over indices give.
 *
 * tlm-test: sources=core,ops modes=address,valgrind */
#include <string.h>

#include "check.h"
#include "ops_values.h"

STAND_IN_FOR_SAMPLER

/* ---- products ---- */

static bool is_for_blas(intptr_t rows, intptr_t columns, intptr_t row_step, intptr_t column_step)
{
    bool by_rows = column_step == 8 && row_step >= 8 * columns;
    return by_rows || (row_step == 8 && column_step >= 8 * rows);
}

/* The loop that the ops are given: what NumPy would not hand to BLAS is an error. */
static void checked_matmul(char **at, const intptr_t *dims, const intptr_t *strides, void *data)
{
    CHECK(is_for_blas(dims[1], dims[2], strides[3], strides[4]) &&
          is_for_blas(dims[2], dims[3], strides[5], strides[6]));
    CHECK(is_for_blas(dims[1], dims[3], strides[7], strides[8]));
    plain_matmul_double(at, dims, strides, data);
    for (int i = 0; i < 3; i++) /* as NumPy's does */
        at[i] += dims[0] * strides[i];
}

/* One element of a @ b by definition; `index` is that of the result, vectors included. */
static double product_at(const tlm_tensor *a, const tlm_tensor *b, const int64_t *index, int axes)
{
    int64_t in_a[8] = {0}, in_b[8] = {0};
    int a_rows = a->axes > 1, b_columns = b->axes > 1, stack = axes - a_rows - b_columns;
    for (int i = 0; i < a->axes - 2; i++)
        in_a[i] = a->shape[i] == 1 ? 0 : index[stack - (a->axes - 2) + i];
    for (int i = 0; i < b->axes - 2; i++)
        in_b[i] = b->shape[i] == 1 ? 0 : index[stack - (b->axes - 2) + i];
    if (a_rows)
        in_a[a->axes - 2] = index[stack];
    if (b_columns)
        in_b[b->axes - 1] = index[axes - 1];
    double sum = 0;
    for (int64_t k = 0; k < a->shape[a->axes - 1]; k++) {
        in_a[a->axes - 1] = in_b[b->axes > 1 ? b->axes - 2 : 0] = k;
        sum += element(a, in_a) * element(b, in_b);
    }
    return sum;
}

static void check_product(const tlm_tensor *a, const tlm_tensor *b)
{
    tlm_tensor out = apply("matmul", (const tlm_tensor[]){*a, *b}, 2, NULL, 0);
    int64_t index[8] = {0};
    do
        CHECK(!ops_elements(&out) || is_near(element(&out, index), product_at(a, b, index, out.axes)));
    while (next_index(&out, index));
    ops_drop(&out);
}

static void check_products(void)
{
    static const struct {
        int a_axes, b_axes;
        int64_t a[5], b[5];
    } cases[] = {
        {2, 2, {3, 4}, {4, 5}},       {2, 2, {1, 4}, {4, 1}},
        {2, 2, {3, 1}, {1, 5}},       {1, 1, {4}, {4}},
        {1, 2, {4}, {4, 3}},          {2, 1, {3, 4}, {4}},
        {3, 2, {2, 3, 4}, {4, 5}},    {3, 1, {2, 3, 4}, {4}},
        {1, 3, {4}, {2, 4, 5}},       {2, 3, {3, 4}, {2, 4, 5}},
        {3, 3, {2, 3, 4}, {2, 4, 5}}, {4, 3, {2, 1, 3, 4}, {5, 4, 2}},
        {3, 3, {1, 3, 4}, {5, 4, 1}}, {2, 2, {3, 0}, {0, 5}},
        {2, 2, {0, 4}, {4, 5}},       {5, 4, {2, 3, 2, 2, 3}, {3, 1, 3, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int layout_a = 0; layout_a < LAYOUTS; layout_a++)
            for (int layout_b = 0; layout_b < LAYOUTS; layout_b++) {
                tlm_tensor a = random_tensor(cases[i].a_axes, cases[i].a, layout_a);
                tlm_tensor b = random_tensor(cases[i].b_axes, cases[i].b, layout_b);
                check_product(&a, &b);
                ops_drop(&a);
                ops_drop(&b);
            }
}

static void check_wrong_products(void)
{
    tlm_tensor a = random_tensor(2, (int64_t[]){2, 3}, DENSE), b = random_tensor(2, (int64_t[]){4, 5}, DENSE);
    tlm_tensor c = random_tensor(3, (int64_t[]){2, 2, 3}, DENSE), d = random_tensor(3, (int64_t[]){3, 3, 2}, DENSE);
    refuse("matmul", (const tlm_tensor[]){a, b}, 2, NULL, 0, OPS_WRONG_SHAPE,
           "shapes [2,3] and [4,5] cannot be multiplied; the last length of the first must be the last but one of the "
           "second");
    refuse(
        "matmul", (const tlm_tensor[]){c, d}, 2, NULL, 0, OPS_WRONG_SHAPE,
        "shapes [2,2,3] and [3,3,2] cannot be multiplied; each pair of lengths before the last two must be equal or 1");
    refuse(
        "linear", (const tlm_tensor[]){a, d}, 2, NULL, 0, OPS_WRONG_SHAPE,
        "shapes [2,3] and [3,3,2] cannot be multiplied; the weight of linear has 2 axes: from how many, to how many");
    ops_drop(&a);
    ops_drop(&b);
    ops_drop(&c);
    ops_drop(&d);
}

static void check_linear_adds_the_bias(void)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        tlm_tensor x = random_tensor(3, (int64_t[]){2, 3, 4}, layout), w = random_tensor(2, (int64_t[]){4, 5}, layout);
        tlm_tensor bias = random_tensor(1, (int64_t[]){5}, layout);
        tlm_tensor out = apply("linear", (const tlm_tensor[]){x, w, bias}, 3, NULL, 0);
        int64_t index[8] = {0};
        do
            CHECK(is_near(element(&out, index), product_at(&x, &w, index, 3) + element(&bias, index + 2)));
        while (next_index(&out, index));
        ops_drop(&out);
        ops_drop(&x);
        ops_drop(&w);
        ops_drop(&bias);
    }
}

/* ---- shapes ---- */

/* Element number i of a tensor, row by row. */
static double numbered(const tlm_tensor *tensor, int64_t number)
{
    int64_t index[8];
    for (int i = tensor->axes; i-- > 0; number /= tensor->shape[i])
        index[i] = number % tensor->shape[i];
    return element(tensor, index);
}

static void check_same_elements(const tlm_tensor *one, const tlm_tensor *other)
{
    CHECK(ops_elements(one) == ops_elements(other));
    for (int64_t i = 0; i < ops_elements(one); i++)
        CHECK(numbered(one, i) == numbered(other, i));
}

static void check_reshape(void)
{
    static const int64_t shapes[][7] = {{3, 4, 3, 2},        {1, 24},      {1, -1}, {4, 2, 2, 3, 2}, {2, -1, 4},
                                        {5, 1, 24, 1, 1, 1}, {3, 2, 1, 12}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            tlm_tensor x = random_tensor(3, (int64_t[]){2, 3, 4}, layout);
            tlm_tensor out = apply("reshape", &x, 1, shapes[i], 7);
            CHECK(last_was_view == (out.object == x.object));
            CHECK(layout != DENSE || last_was_view);
            check_same_elements(&x, &out);
            if (!last_was_view)
                ops_drop(&out);
            ops_drop(&x);
        }
    tlm_tensor x = random_tensor(2, (int64_t[]){2, 3}, DENSE);
    refuse("reshape", &x, 1, (int64_t[]){2, 4, 2}, 3, OPS_WRONG_SHAPE,
           "a tensor of 6 elements cannot have shape [4,2]");
    refuse("reshape", &x, 1, (int64_t[]){2, -1, -1}, 3, OPS_WRONG_SHAPE,
           "a tensor of 6 elements cannot have shape [-1,-1]");
    ops_drop(&x);
}

/* reshape is a view exactly where the strides of the input can say so. */
static void check_reshape_copies_only_where_it_must(void)
{
    tlm_tensor x = random_tensor(3, (int64_t[]){2, 3, 4}, TRANSPOSED), out;
    out = apply("reshape", &x, 1, (int64_t[]){4, 2, 1, 3, 4}, 5);
    CHECK(last_was_view && out.shape[1] == 1);
    out = apply("reshape", &x, 1, (int64_t[]){2, 6, 4}, 3);
    CHECK(!last_was_view && ops_is_dense(&out));
    ops_drop(&out);
    ops_drop(&x);
    x = random_tensor(1, (int64_t[]){6}, STEPPED);
    out = apply("reshape", &x, 1, (int64_t[]){2, 2, 3}, 3);
    CHECK(last_was_view && out.strides[0] == 3 * x.strides[0] && out.strides[1] == x.strides[0]);
    ops_drop(&x);
    x = random_tensor(2, (int64_t[]){0, 3}, DENSE);
    out = apply("reshape", &x, 1, (int64_t[]){3, 3, 0, 7}, 4);
    CHECK(last_was_view && out.axes == 3 && out.shape[2] == 7);
    ops_drop(&x);
}

static void check_orders_of_axes(void)
{
    tlm_tensor x = random_tensor(3, (int64_t[]){2, 3, 4}, DENSE);
    tlm_tensor turned = apply("transpose", &x, 1, (int64_t[]){3, 2, 0, -2}, 4);
    tlm_tensor reversed = apply("transpose", &x, 1, (int64_t[]){0}, 1);
    tlm_tensor swapped = apply("swapaxes", &x, 1, (int64_t[]){0, -1}, 2);
    int64_t i[8] = {0};
    CHECK(turned.shape[0] == 4 && turned.shape[1] == 2 && turned.shape[2] == 3 && last_was_view);
    do {
        CHECK(element(&turned, (int64_t[]){i[2], i[0], i[1]}) == element(&x, i));
        CHECK(element(&reversed, (int64_t[]){i[2], i[1], i[0]}) == element(&x, i));
        CHECK(element(&swapped, (int64_t[]){i[2], i[1], i[0]}) == element(&x, i));
    } while (next_index(&x, i));
    const char *said = "the order must name each of the 3 axes of [2,3,4] once";
    refuse("transpose", &x, 1, (int64_t[]){3, 0, 1, 1}, 4, OPS_WRONG_SHAPE, said);
    refuse("transpose", &x, 1, (int64_t[]){2, 0, 1}, 3, OPS_WRONG_SHAPE, said);
    refuse("swapaxes", &x, 1, (int64_t[]){0, 3}, 2, OPS_WRONG_SHAPE, "there is no axis 3 in shape [2,3,4]");
    ops_drop(&x);
}

static void check_axes_of_one_element(void)
{
    tlm_tensor x = random_tensor(3, (int64_t[]){1, 3, 1}, DENSE), out;
    out = apply("squeeze", &x, 1, (int64_t[]){-1}, 1);
    CHECK(out.axes == 1 && out.shape[0] == 3);
    out = apply("squeeze", &x, 1, (int64_t[]){1 << 2}, 1);
    CHECK(out.axes == 2 && out.shape[0] == 1 && out.shape[1] == 3);
    refuse("squeeze", &x, 1, (int64_t[]){1 << 1}, 1, OPS_WRONG_SHAPE, "axis 1 of shape [1,3,1] has not length 1");
    out = apply("unsqueeze", &x, 1, (int64_t[]){-1}, 1);
    CHECK(out.axes == 4 && out.shape[3] == 1 && out.shape[1] == 3);
    check_same_elements(&x, &out);
    refuse("unsqueeze", &x, 1, (int64_t[]){4}, 1, OPS_WRONG_SHAPE, "there is no place 4 for an axis in [1,3,1]");
    out = apply("broadcast_to", &x, 1, (int64_t[]){4, 2, 5, 3, 4}, 5);
    int64_t i[8] = {0};
    do
        CHECK(element(&out, i) == element(&x, (int64_t[]){0, i[2], 0}));
    while (next_index(&out, i));
    refuse("broadcast_to", &x, 1, (int64_t[]){2, 3, 1}, 3, OPS_WRONG_SHAPE, "[1,3,1] does not broadcast to [3,1]");
    ops_drop(&x);
}

/* ---- parts ---- */

#define LEFT_OUT INT64_MAX

static void check_slices(void)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        tlm_tensor x = random_tensor(3, (int64_t[]){5, 3, 4}, layout), out;
        /* x[4:0:-2, None, 1, -3:] */
        out = apply("slice", &x, 1, (int64_t[]){3, 1 << 1, 4, 0, -2, 1, 0, 0, -3, LEFT_OUT, 1}, 11);
        CHECK(out.axes == 3 && out.shape[0] == 2 && out.shape[1] == 1 && out.shape[2] == 3 && last_was_view);
        int64_t i[8] = {0};
        do
            CHECK(element(&out, i) == element(&x, (int64_t[]){4 - 2 * i[0], 1, 1 + i[2]}));
        while (next_index(&out, i));
        /* x[::-1] and x[3:1] and x[-9:9] */
        out = apply("slice", &x, 1, (int64_t[]){1, 0, LEFT_OUT, INT64_MIN, -1}, 5);
        CHECK(out.shape[0] == 5 && element(&out, (int64_t[]){0, 2, 3}) == element(&x, (int64_t[]){4, 2, 3}));
        out = apply("slice", &x, 1, (int64_t[]){1, 0, 3, 1, 1}, 5);
        CHECK(out.shape[0] == 0 && out.at.offset == x.at.offset);
        out = apply("slice", &x, 1, (int64_t[]){1, 0, -9, 9, 1}, 5);
        check_same_elements(&x, &out);
        out = apply("slice", &x, 1, (int64_t[]){1, 0, 1, LEFT_OUT, INT64_MAX}, 5);
        CHECK(out.shape[0] == 1 && element(&out, (int64_t[]){0, 0, 0}) == element(&x, (int64_t[]){1, 0, 0}));
        refuse("slice", &x, 1, (int64_t[]){2, 0, 0, 1, 1, -4, 0, 0}, 8, OPS_WRONG_VALUE,
               "index -4 is out of range for axis 1 of length 3 in shape [5,3,4]");
        refuse("slice", &x, 1, (int64_t[]){4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 14, OPS_WRONG_VALUE,
               "4 indices are too many for shape [5,3,4]");
        ops_drop(&x);
    }
}

/* ---- choices ---- */

static void check_take(void)
{
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int axis = 0; axis < 3; axis++) {
            tlm_tensor x = random_tensor(3, (int64_t[]){4, 3, 5}, layout), index, out;
            index = indices(2, (int64_t[]){2, 2}, (int64_t[]){2, -1, 0, 2});
            out = apply("take", (const tlm_tensor[]){x, index}, 2, (int64_t[]){axis - 3}, 1);
            int64_t i[8] = {0};
            do {
                int64_t from[3], place = ((int64_t[]){2, x.shape[axis] - 1, 0, 2})[2 * i[axis] + i[axis + 1]];
                for (int j = 0; j < 3; j++)
                    from[j] = j == axis ? place : i[j + (j > axis)];
                CHECK(element(&out, i) == element(&x, from));
            } while (next_index(&out, i));
            ops_drop(&out);
            ops_drop(&index);
            ops_drop(&x);
        }
}

static void check_wrong_indices(void)
{
    tlm_tensor x = random_tensor(2, (int64_t[]){4, 3}, DENSE), far = indices(1, (int64_t[]){2}, (int64_t[]){0, 4});
    tlm_tensor low = indices(2, (int64_t[]){1, 2}, (int64_t[]){-5, 0}),
               added = random_tensor(2, (int64_t[]){1, 2}, DENSE);
    tlm_tensor wide = indices(2, (int64_t[]){1, 4}, (int64_t[]){0, 0, 0, 0});
    const tlm_tensor of_far[] = {x, far}, of_low[] = {x, low, added}, of_wide[] = {x, wide};
    const char *high = "index 4 is out of range for an axis of length 4";
    refuse("take", of_far, 2, (int64_t[]){0}, 1, OPS_WRONG_VALUE, high);
    refuse("embedding", of_far, 2, NULL, 0, OPS_WRONG_VALUE, high);
    refuse("gather", of_far, 2, (int64_t[]){0}, 1, OPS_WRONG_SHAPE,
           "an index for shape [4,3] needs 2 axes, not shape [2]");
    refuse("gather", of_low, 2, (int64_t[]){0}, 1, OPS_WRONG_VALUE, "index -5 is out of range for an axis of length 4");
    refuse("scatter_add", of_low, 3, (int64_t[]){0}, 1, OPS_WRONG_VALUE,
           "index -5 is out of range for an axis of length 4");
    refuse("gather", of_wide, 2, (int64_t[]){0}, 1, OPS_WRONG_SHAPE,
           "an index of shape [1,4] is longer than [4,3] along an axis that is not chosen from");
    refuse("scatter_add", (const tlm_tensor[]){x, wide, added}, 3, (int64_t[]){1}, 1, OPS_WRONG_SHAPE,
           "what is added has shape [1,2], its index [1,4]; they must be equal");
    refuse("take", of_far, 2, (int64_t[]){2}, 1, OPS_WRONG_SHAPE, "there is no axis 2 in shape [4,3]");
    /* No rows are copied, but the index is wrong all the same. */
    tlm_tensor empty = random_tensor(2, (int64_t[]){4, 0}, DENSE);
    refuse("take", (const tlm_tensor[]){empty, far}, 2, (int64_t[]){0}, 1, OPS_WRONG_VALUE, high);
    for (int i = 0; i < 6; i++)
        ops_drop((const tlm_tensor *const[]){&x, &far, &low, &added, &wide, &empty}[i]);
}

static void check_gather_and_scatter(void)
{
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int axis = 0; axis < 2; axis++) {
            tlm_tensor x = random_tensor(2, (int64_t[]){4, 3}, layout), index, added, out;
            index = indices(2, (int64_t[]){3, 2}, (int64_t[]){2, 1, -1, 2, 2, 0});
            out = apply("gather", (const tlm_tensor[]){x, index}, 2, (int64_t[]){axis}, 1);
            int64_t i[8] = {0}, shape[] = {3, 2};
            do {
                int64_t place = place_in(&index, i, x.shape[axis]);
                CHECK(element(&out, i) == element(&x, (int64_t[]){axis ? i[0] : place, axis ? place : i[1]}));
            } while (next_index(&out, i));
            ops_drop(&out);
            added = random_tensor(2, shape, layout);
            out = apply("scatter_add", (const tlm_tensor[]){x, index, added}, 3, (int64_t[]){axis}, 1);
            do {
                double sum = element(&x, i);
                int64_t j[8] = {0};
                do {
                    int64_t place = place_in(&index, j, x.shape[axis]);
                    if (place == i[axis] && j[1 - axis] == i[1 - axis])
                        sum += element(&added, j);
                } while (next_index(&added, j));
                CHECK(is_near(element(&out, i), sum));
            } while (next_index(&out, i));
            ops_drop(&out);
            ops_drop(&added);
            ops_drop(&index);
            ops_drop(&x);
        }
}

/* ---- joins ---- */

static void check_joins(void)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        tlm_tensor a = random_tensor(2, (int64_t[]){2, 3}, layout), b = random_tensor(2, (int64_t[]){2, 2}, layout),
                   out;
        tlm_tensor c = random_tensor(2, (int64_t[]){2, 3}, layout);
        out = apply("concat", (const tlm_tensor[]){a, b, a}, 3, (int64_t[]){-1}, 1);
        int64_t i[8] = {0};
        CHECK(out.axes == 2 && out.shape[0] == 2 && out.shape[1] == 8);
        do {
            const tlm_tensor *from = i[1] >= 3 && i[1] < 5 ? &b : &a;
            CHECK(element(&out, i) == element(from, (int64_t[]){i[0], i[1] - (i[1] < 3 ? 0 : i[1] < 5 ? 3 : 5)}));
        } while (next_index(&out, i));
        ops_drop(&out);
        for (int axis = 0; axis < 3; axis++) {
            out = apply("stack", (const tlm_tensor[]){a, c}, 2, (int64_t[]){axis}, 1);
            CHECK(out.axes == 3 && out.shape[axis] == 2);
            do {
                int64_t from[] = {i[axis == 0], i[axis == 2 ? 1 : 2]};
                CHECK(element(&out, i) == element(i[axis] ? &c : &a, from));
            } while (next_index(&out, i));
            ops_drop(&out);
        }
        refuse("concat", (const tlm_tensor[]){a, b}, 2, (int64_t[]){0}, 1, OPS_WRONG_SHAPE,
               "shapes [2,3] and [2,2] cannot be put together along axis 0; all other lengths must be equal");
        refuse("stack", (const tlm_tensor[]){a, b}, 2, (int64_t[]){0}, 1, OPS_WRONG_SHAPE,
               "shapes [2,3] and [2,2] cannot be stacked; they must be equal");
        ops_drop(&a);
        ops_drop(&b);
        ops_drop(&c);
    }
}

/* ---- dropout, casts ---- */

enum { MANY = 10001 };

static int64_t count_of_zeros(const tlm_tensor *tensor)
{
    int64_t found = 0;
    for (int64_t i = 0; i < ops_elements(tensor); i++)
        found += numbered(tensor, i) == 0;
    return found;
}

static void check_dropout(void)
{
    tlm_tensor x = random_tensor(1, (int64_t[]){MANY}, DENSE), one, again, other;
    last_fraction = 0.25;
    one = apply("dropout", &x, 1, (int64_t[]){7, 100}, 2);
    again = apply("dropout", &x, 1, (int64_t[]){7, 100}, 2);
    other = apply("dropout", &x, 1, (int64_t[]){7, 100 + MANY}, 2);
    int64_t differ = 0;
    for (int64_t i = 0; i < MANY; i++) {
        double value = numbered(&one, i);
        CHECK(value == 0 || is_near(value, numbered(&x, i) / 0.75));
        CHECK(value == numbered(&again, i));
        differ += value != numbered(&other, i);
    }
    /* Six standard deviations of a binomial distribution on either side. */
    int64_t zeros = count_of_zeros(&one);
    CHECK(zeros > MANY / 4 - 260 && zeros < MANY / 4 + 260);
    CHECK(differ > MANY * 3 / 8 - 300 && differ < MANY * 3 / 8 + 300);
    ops_drop(&one);
    last_fraction = 1;
    one = apply("dropout", &x, 1, (int64_t[]){7, 100}, 2);
    CHECK(count_of_zeros(&one) == MANY);
    ops_drop(&one);
    last_fraction = 0;
    one = apply("dropout", &x, 1, (int64_t[]){7, 100}, 2);
    check_same_elements(&one, &x);
    /* What goes is 0 even where it was no number. */
    last_fraction = 1;
    ((double *)ops_data(&x))[0] = NAN;
    tlm_tensor none = apply("dropout", &x, 1, (int64_t[]){7, 100}, 2);
    CHECK(count_of_zeros(&none) == MANY);
    ops_drop(&none);
    last_fraction = 1.5;
    refuse("dropout", &x, 1, (int64_t[]){7, 100}, 2, OPS_WRONG_VALUE,
           "the probability of dropout is within 0 and 1, not 1.5");
    ops_drop(&one);
    ops_drop(&again);
    ops_drop(&other);
    ops_drop(&x);
}

static void check_casts(void)
{
    tlm_tensor x = random_tensor(2, (int64_t[]){2, 3}, TRANSPOSED), out, whole;
    out = apply("cast", &x, 1, (int64_t[]){TLM_FLOAT32, 0}, 2);
    CHECK(out.dtype == TLM_FLOAT32 && ops_is_dense(&out) && ((float *)ops_data(&out))[5] == (float)numbered(&x, 5));
    whole = apply("cast", &out, 1, (int64_t[]){TLM_INT64, 0}, 2);
    CHECK(whole.dtype == TLM_INT64 && ((int64_t *)ops_data(&whole))[5] == (int64_t)numbered(&x, 5));
    ops_drop(&whole);
    ops_drop(&out);
    out = apply("cast", &x, 1, (int64_t[]){0, 0}, 2);
    CHECK(out.object != x.object);
    check_same_elements(&x, &out);
    ops_drop(&out);
    ops_drop(&x);
}

int main(void)
{
    plain_loops();
    ops_matmul_loops[OPS_FLOAT64].call = checked_matmul;
    check_products();
    check_wrong_products();
    check_linear_adds_the_bias();
    check_reshape();
    check_reshape_copies_only_where_it_must();
    check_orders_of_axes();
    check_axes_of_one_element();
    check_slices();
    check_take();
    check_wrong_indices();
    check_gather_and_scatter();
    check_joins();
    check_dropout();
    check_casts();
    CHECK(tlm_objects_alive(NULL, 0) == 0);
    return 0;
}
