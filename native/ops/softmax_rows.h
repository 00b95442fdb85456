/* SPDX-License-Identifier: MIT
 * softmax_rows.h: softmax of rows, its logarithm, and the gradients of both; for both.h, after exponential_rows.h.
 */

static void OF(softmax_rows)(const void *from, void *to, int64_t rows, int64_t length)
{
    REAL greatest[BLOCK_ROWS], sums[BLOCK_ROWS];
    for (int64_t r = 0, some; r < rows; r += some) {
        const REAL *in = (const REAL *)from + r * length;
        REAL *out = (REAL *)to + r * length;
        some = OF(block_rows)(rows - r, length);
        OF(block_powers)(in, out, greatest, sums, some, length);
        for (int64_t i = 0; i < some; i++)
            sums[i] = 1 / sums[i];
        OF(rows_times)(out, sums, some, length);
    }
}

static void OF(log_softmax_rows)(const void *from, void *to, int64_t rows, int64_t length)
{
    REAL greatest[BLOCK_ROWS], logarithms[BLOCK_ROWS];
    for (int64_t r = 0, some; r < rows; r += some) {
        const REAL *in = (const REAL *)from + r * length;
        REAL *out = (REAL *)to + r * length;
        some = OF(block_rows)(rows - r, length);
        OF(row_logarithms)(in, greatest, logarithms, some, length);
        OF(rows_less)(in, out, greatest, some, length);
        OF(rows_less)(out, out, logarithms, some, length);
    }
}

/* to = y (to - sum(to y)), where `to` holds the gradient. */
TLMI_SIMD_CLONES static void OF(softmax_gradient_rows)(const void *y, void *to, int64_t rows, int64_t length)
{
    for (int64_t r = 0; r < rows; r++) {
        const REAL *row = (const REAL *)y + r * length;
        REAL *gradient = (REAL *)to + r * length, sum = OF(row_product_sum)(row, gradient, length);
        for (int64_t i = 0; i < length; i++)
            gradient[i] = row[i] * (gradient[i] - sum);
    }
}

/* to -= powers times their row's factor. */
TLMI_SIMD_CLONES static void OF(part_less_powers)(REAL *to, const REAL *powers, REAL factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] -= powers[i] * factor;
}

/* to = to - exp(y) sum(to), where `to` holds the gradient. */
static void OF(log_softmax_gradient_rows)(const void *y, void *to, int64_t rows, int64_t length)
{
    REAL powers[BLOCK_ELEMENTS], sum;
    for (int64_t r = 0; r < rows; r++) {
        const REAL *row = (const REAL *)y + r * length;
        REAL *gradient = (REAL *)to + r * length;
        OF(row_sums)(gradient, &sum, 1, length);
        for (int64_t i = 0, some; i < length; i += some) {
            some = length - i < BLOCK_ELEMENTS ? length - i : BLOCK_ELEMENTS;
            OF(apply)(OPS_EXP, row + i, powers, some);
            OF(part_less_powers)(gradient + i, powers, sum, some);
        }
    }
}
