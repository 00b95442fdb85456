/* SPDX-License-Identifier: MIT
 * reduction_loops.h: sums, variances and extremes of rows of elements; for both_dtypes.h, after row_loops.h.
 *
 * Long rows that lie side by side are summed in pieces, and these in float64, so that the error does not grow with the length.
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

/* ---- extremes: finding them, and giving them their gradients ---- */

/* A NaN is a result when the result is NaN. */
TLMI_INLINE bool OF(is_result)(REAL value, REAL result)
{
    return value == result || (value != value && result != result);
}

/* How many of a row are the result. */
TLMI_SIMD_CLONES static int64_t OF(equal_in_row)(const REAL *row, REAL result, int64_t count)
{
    int64_t equal = 0;
    for (int64_t first = 0; first < count; first += COUNTED_PIECE) {
        int64_t until = first + COUNTED_PIECE < count ? first + COUNTED_PIECE : count;
        int part = 0;
        for (int64_t i = first; i < until; i++)
            part += row[i] == result;
        equal += part;
    }
    return equal;
}

/* find_in_row for rows that lie side by side and have one result each, which is a number. */
static bool OF(find_side_by_side)(const ops_walk *walk, int64_t first)
{
    const REAL *row = (const REAL *)(const void *)walk->at[0];
    REAL result = *(const REAL *)(const void *)walk->at[1];
    int64_t *at = (int64_t *)(void *)walk->at[2];
    int64_t equal = OF(equal_in_row)(row, result, walk->length), i = 0;
    bool ties = equal > (*at < 0);
    if (equal && *at < 0) {
        while (row[i] != result)
            i++;
        *at = first + i;
    }
    return ties;
}

/* Of a walk over x, result and places: notes the place of the row's elements that are results; `first`: of its first
 * element. True: a result had one already. */
static bool OF(find_in_row)(const ops_walk *walk, int64_t first)
{
    const char *x = walk->at[0], *result = walk->at[1];
    REAL number = *(const REAL *)(const void *)result;
    if (walk->step[0] == sizeof(REAL) && walk->step[1] == 0 && walk->step[2] == 0 && number == number)
        return OF(find_side_by_side)(walk, first);
    char *place = walk->at[2];
    bool ties = false;
    for (int64_t i = 0; i < walk->length; i++) {
        REAL value = *(const REAL *)(x + i * walk->step[0]);
        if (!OF(is_result)(value, *(const REAL *)(result + i * walk->step[1])))
            continue;
        int64_t *at = (int64_t *)(place + i * walk->step[2]);
        ties |= *at >= 0;
        if (*at < 0)
            *at = first + i;
    }
    return ties;
}

/* Of a walk over gradient and places. */
static void OF(give_row)(const ops_walk *walk, char *into)
{
    for (int64_t i = 0; i < walk->length; i++) {
        int64_t place = *(const int64_t *)(walk->at[1] + i * walk->step[1]);
        ((REAL *)(void *)into)[place] = *(const REAL *)(walk->at[0] + i * walk->step[0]);
    }
}

/* x, result, count: one more for an element that is the result. */
static void OF(count_row)(char **arguments, const intptr_t *count, const intptr_t *strides, void *data)
{
    (void)data;
    for (intptr_t i = 0; i < *count; i++)
        *(REAL *)(arguments[2] + i * strides[2]) +=
            OF(is_result)(*(REAL *)(arguments[0] + i * strides[0]), *(REAL *)(arguments[1] + i * strides[1]));
}

/* x, result, share, out. */
static void OF(share_row)(char **arguments, const intptr_t *count, const intptr_t *strides, void *data)
{
    (void)data;
    for (intptr_t i = 0; i < *count; i++) {
        bool is_one = OF(is_result)(*(REAL *)(arguments[0] + i * strides[0]), *(REAL *)(arguments[1] + i * strides[1]));
        *(REAL *)(arguments[3] + i * strides[3]) = is_one ? *(REAL *)(arguments[2] + i * strides[2]) : 0;
    }
}
