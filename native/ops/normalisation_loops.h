/* SPDX-License-Identifier: MIT
 * normalisation_loops.h: normalising rows and the gradients of that; for both_dtypes.h.
 *
 * `weight` and `bias` have an element for each of a row's, or are NULL. `to` may be `from`.
 */

TLMI_SIMD_CLONES static void OF(norm_rows)(const norm_row_set *set, const void *from, void *to)
{
    const REAL *weight = set->weight, *bias = set->bias;
    int64_t length = set->length;
    for (int64_t r = 0; r < set->rows; r++) {
        const REAL *in = (const REAL *)from + r * length;
        REAL *out = (REAL *)to + r * length, mean = OF(row_sum)(in, length) / (REAL)length;
        REAL variance = OF(row_distance_sum)(in, mean, length) / (REAL)length;
        REAL scale = 1 / (REAL)__builtin_sqrt((double)variance + set->eps);
        for (int64_t i = 0; i < length; i++)
            out[i] = (in[i] - mean) * scale;
        if (weight)
            for (int64_t i = 0; i < length; i++)
                out[i] *= weight[i];
        if (bias)
            for (int64_t i = 0; i < length; i++)
                out[i] += bias[i];
        if (set->means) {
            ((REAL *)set->means)[r] = mean;
            ((REAL *)set->scales)[r] = scale;
        }
    }
}

TLMI_SIMD_CLONES static void OF(bias_gradient)(const norm_row_set *set, const void *gradient, void *to)
{
    REAL *restrict sums = to;
    for (int64_t r = 0; r < set->rows; r++)
        for (int64_t i = 0; i < set->length; i++)
            sums[i] += ((const REAL *)gradient)[r * set->length + i];
}

TLMI_SIMD_CLONES static void OF(weight_gradient)(const norm_row_set *set, const void *gradient, const void *x, void *to)
{
    const REAL *means = set->means, *scales = set->scales;
    REAL *restrict sums = to;
    for (int64_t r = 0; r < set->rows; r++) {
        const REAL *in = (const REAL *)x + r * set->length, *row = (const REAL *)gradient + r * set->length;
        REAL mean = means[r], scale = scales[r];
        for (int64_t i = 0; i < set->length; i++)
            sums[i] += row[i] * ((in[i] - mean) * scale);
    }
}

/* Of one row: `row` holds the gradient, already times the weight, and becomes that of x. */
TLMI_INLINE void OF(x_gradient_row)(REAL *row, const REAL *x, REAL mean, REAL scale, int64_t length)
{
    OF(ops_vector) sums = {0}, products = {0};
    int64_t i = 0;
    for (; i + OF(OPS_LANES) <= length; i += OF(OPS_LANES)) {
        OF(ops_vector) part = *(const OF(ops_vector) *)(row + i);
        sums += part;
        products += part * (*(const OF(ops_vector) *)(x + i) - mean);
    }
    REAL sum = OF(lane_sum)(&sums), product = OF(lane_sum)(&products);
    for (; i < length; i++) {
        sum += row[i];
        product += row[i] * (x[i] - mean);
    }
    REAL shift = sum / (REAL)length, tilt = product * scale * scale / (REAL)length;
    for (i = 0; i < length; i++)
        row[i] = scale * (row[i] - shift - (x[i] - mean) * tilt);
}

/* `to` holds the gradient of the output, and becomes that of x. */
TLMI_SIMD_CLONES static void OF(x_gradient)(const norm_row_set *set, const void *x, void *to)
{
    const REAL *weight = set->weight, *means = set->means, *scales = set->scales;
    int64_t length = set->length;
    for (int64_t r = 0; r < set->rows; r++) {
        REAL *row = (REAL *)to + r * length;
        if (weight)
            for (int64_t i = 0; i < length; i++)
                row[i] *= weight[i];
        OF(x_gradient_row)(row, (const REAL *)x + r * length, means[r], scales[r], length);
    }
}
