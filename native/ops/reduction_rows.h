/* SPDX-License-Identifier: MIT
 * reduction_rows.h: sums and variances of rows whose elements lie side by side; for both.h, after row_loops.h.
 *
 * Long rows are summed in pieces, and these in float64, so that the error does not grow with the length.
 */

TLMI_INLINE double OF(long_sum)(const REAL *row, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i += PIECE)
        sum += (double)OF(row_sum)(row + i, count - i < PIECE ? count - i : PIECE);
    return sum;
}

TLMI_SIMD_CLONES static void OF(sum_rows)(const void *from, void *to, int64_t rows, int64_t length, double divisor)
{
    for (int64_t r = 0; r < rows; r++)
        ((REAL *)to)[r] = (REAL)(OF(long_sum)((const REAL *)from + r * length, length) / divisor);
}

TLMI_SIMD_CLONES static void OF(var_rows)(const void *from, void *to, int64_t rows, int64_t length, double divisor)
{
    for (int64_t r = 0; r < rows; r++) {
        const REAL *row = (const REAL *)from + r * length;
        REAL mean = (REAL)(OF(long_sum)(row, length) / (double)length);
        double sum = 0;
        for (int64_t i = 0; i < length; i += PIECE)
            sum += (double)OF(row_distance_sum)(row + i, mean, length - i < PIECE ? length - i : PIECE);
        ((REAL *)to)[r] = (REAL)(sum / divisor);
    }
}
