/* SPDX-License-Identifier: MIT
 * exponential_rows.h: exponentials of rows and their sums, for softmax, its logarithm and the cross entropy; for both.h.
 *
 * Rows are worked on in blocks that stay in the cache, so that NumPy's loop of exp is called for a block and not for a row.
 * `to` may be `from`. A row without elements is nothing to do.
 */

/* NumPy's loop over elements that lie side by side. */
static inline void OF(apply)(ops_loop_name name, const REAL *from, REAL *to, int64_t elements)
{
    const ops_loop *loop = ops_loop_of(name, DTYPE);
    char *arguments[] = {(char *)(uintptr_t)from, (char *)to};
    intptr_t count = elements, strides[] = {sizeof(REAL), sizeof(REAL)};
    loop->call(arguments, &count, strides, loop->data);
}

/* Of a row too short for a call: four candidates, because each comparison waits for the one before it. */
static inline REAL OF(short_greatest)(const REAL *row, int64_t count)
{
    REAL part[4] = {row[0], row[0], row[0], row[0]};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int j = 0; j < 4; j++)
            part[j] = row[i + j] > part[j] ? row[i + j] : part[j];
    for (; i < count; i++)
        part[0] = row[i] > part[0] ? row[i] : part[0];
    part[0] = part[1] > part[0] ? part[1] : part[0];
    part[2] = part[3] > part[2] ? part[3] : part[2];
    return part[2] > part[0] ? part[2] : part[0];
}

static inline REAL OF(row_greatest)(const REAL *row, int64_t count)
{
    if (count < SHORT_ROW)
        return OF(short_greatest)(row, count);
    REAL greatest = row[0];
    const ops_loop *loop = ops_loop_of(OPS_MAXIMUM, DTYPE);
    char *arguments[] = {(char *)&greatest, (char *)(uintptr_t)row, (char *)&greatest};
    intptr_t elements = count, strides[] = {0, sizeof(REAL), 0};
    loop->call(arguments, &elements, strides, loop->data);
    return greatest;
}

TLMI_SIMD_CLONES static void OF(rows_less)(const REAL *from, REAL *to, const REAL *less, int64_t rows, int64_t length)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < length; i++)
            to[r * length + i] = from[r * length + i] - less[r];
}

TLMI_SIMD_CLONES static void OF(row_sums)(const REAL *from, REAL *sums, int64_t rows, int64_t length)
{
    for (int64_t r = 0; r < rows; r++)
        sums[r] = OF(row_sum)(from + r * length, length);
}

TLMI_SIMD_CLONES static void OF(rows_times)(REAL *to, const REAL *factors, int64_t rows, int64_t length)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < length; i++)
            to[r * length + i] *= factors[r];
}

/* How many rows are worked on together. */
static inline int64_t OF(block_rows)(int64_t rows, int64_t length)
{
    int64_t most = BLOCK_ELEMENTS / length;
    most = most < 1 ? 1 : most > BLOCK_ROWS ? BLOCK_ROWS : most;
    return rows < most ? rows : most;
}

/* exp(from - greatest) and its sums, of at most BLOCK_ROWS rows. */
static void OF(block_powers)(const REAL *from, REAL *to, REAL *greatest, REAL *sums, int64_t rows, int64_t length)
{
    for (int64_t r = 0; r < rows; r++)
        greatest[r] = OF(row_greatest)(from + r * length, length);
    OF(rows_less)(from, to, greatest, rows, length);
    OF(apply)(OPS_EXP, to, to, rows * length);
    OF(row_sums)(to, sums, rows, length);
}

/* The same sum of one row that no block holds, without memory for the powers. */
static REAL OF(long_power_sum)(const REAL *row, REAL greatest, int64_t length)
{
    REAL powers[BLOCK_ELEMENTS], sum = 0, part;
    for (int64_t i = 0, some; i < length; i += some) {
        some = length - i < BLOCK_ELEMENTS ? length - i : BLOCK_ELEMENTS;
        OF(rows_less)(row + i, powers, &greatest, 1, some);
        OF(apply)(OPS_EXP, powers, powers, some);
        OF(row_sums)(powers, &part, 1, some);
        sum += part;
    }
    return sum;
}

/* What log_softmax takes off each row of a block, in two parts: the second is small beside the first. */
static void OF(row_logarithms)(const REAL *from, REAL *greatest, REAL *logarithms, int64_t rows, int64_t length)
{
    REAL powers[BLOCK_ELEMENTS];
    if (length <= BLOCK_ELEMENTS) {
        OF(block_powers)(from, powers, greatest, logarithms, rows, length);
    } else {
        greatest[0] = OF(row_greatest)(from, length);
        logarithms[0] = OF(long_power_sum)(from, greatest[0], length);
    }
    OF(apply)(OPS_LOG, logarithms, logarithms, rows);
}
