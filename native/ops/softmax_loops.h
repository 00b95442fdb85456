/* SPDX-License-Identifier: MIT
 * softmax_loops.h: exponentials of rows and their sums, softmax, its logarithm, the cross entropy, and their gradients; for both_dtypes.h.
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

/* ---- softmax of rows ---- */

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

/* ---- softmax along an axis that is not the last ----
 * A panel is up to BLOCK_ROWS lanes beside each other: element k of lane j is at k * apart + j. What is computed for each lane
 * is in arrays as wide as the panel. `to` may be `from`.
 */

TLMI_SIMD_CLONES static void OF(panel_greatest)(const REAL *from, REAL *greatest, int64_t length, int64_t apart,
                                                int64_t width)
{
    for (int64_t j = 0; j < width; j++)
        greatest[j] = from[j];
    for (int64_t k = 1; k < length; k++)
        for (int64_t j = 0; j < width; j++)
            greatest[j] = from[k * apart + j] > greatest[j] ? from[k * apart + j] : greatest[j];
}

TLMI_SIMD_CLONES static void OF(line_less)(const REAL *from, const REAL *less, REAL *to, int64_t width)
{
    for (int64_t j = 0; j < width; j++)
        to[j] = from[j] - less[j];
}

TLMI_SIMD_CLONES static void OF(line_added)(REAL *sums, const REAL *line, int64_t width)
{
    for (int64_t j = 0; j < width; j++)
        sums[j] += line[j];
}

TLMI_SIMD_CLONES static void OF(line_over)(REAL *line, const REAL *sums, int64_t width)
{
    for (int64_t j = 0; j < width; j++)
        line[j] /= sums[j];
}

static void OF(softmax_panel)(const void *from, void *to, int64_t length, int64_t apart, int64_t width)
{
    const REAL *in = from;
    REAL *out = to, greatest[BLOCK_ROWS], sums[BLOCK_ROWS] = {0};
    OF(panel_greatest)(in, greatest, length, apart, width);
    for (int64_t k = 0; k < length; k++) {
        OF(line_less)(in + k * apart, greatest, out + k * apart, width);
        OF(apply)(OPS_EXP, out + k * apart, out + k * apart, width);
        OF(line_added)(sums, out + k * apart, width);
    }
    for (int64_t k = 0; k < length; k++)
        OF(line_over)(out + k * apart, sums, width);
}

static void OF(log_softmax_panel)(const void *from, void *to, int64_t length, int64_t apart, int64_t width)
{
    const REAL *in = from;
    REAL *out = to, line[BLOCK_ROWS], greatest[BLOCK_ROWS], sums[BLOCK_ROWS] = {0};
    OF(panel_greatest)(in, greatest, length, apart, width);
    for (int64_t k = 0; k < length; k++) {
        OF(line_less)(in + k * apart, greatest, out + k * apart, width);
        OF(apply)(OPS_EXP, out + k * apart, line, width);
        OF(line_added)(sums, line, width);
    }
    OF(apply)(OPS_LOG, sums, sums, width);
    for (int64_t k = 0; k < length; k++)
        OF(line_less)(out + k * apart, sums, out + k * apart, width);
}

/* to = y (to - sum(to y)), where `to` holds the gradient. */
TLMI_SIMD_CLONES static void OF(softmax_gradient_panel)(const void *y, void *to, int64_t length, int64_t apart,
                                                        int64_t width)
{
    const REAL *in = y;
    REAL *out = to, sums[BLOCK_ROWS] = {0};
    for (int64_t k = 0; k < length; k++)
        for (int64_t j = 0; j < width; j++)
            sums[j] += in[k * apart + j] * out[k * apart + j];
    for (int64_t k = 0; k < length; k++)
        for (int64_t j = 0; j < width; j++)
            out[k * apart + j] = in[k * apart + j] * (out[k * apart + j] - sums[j]);
}

/* to = to - exp(y) sum(to), where `to` holds the gradient. */
static void OF(log_softmax_gradient_panel)(const void *y, void *to, int64_t length, int64_t apart, int64_t width)
{
    const REAL *in = y;
    REAL *out = to, line[BLOCK_ROWS], sums[BLOCK_ROWS] = {0};
    for (int64_t k = 0; k < length; k++)
        OF(line_added)(sums, out + k * apart, width);
    for (int64_t k = 0; k < length; k++) {
        OF(apply)(OPS_EXP, in + k * apart, line, width);
        for (int64_t j = 0; j < width; j++)
            out[k * apart + j] -= line[j] * sums[j];
    }
}

/* ---- the cross entropy of rows of logits ---- */

/* One loss a row, or in into[0] their sum or mean; the targets are known to be classes. */
static void OF(row_losses)(const entropy_rows *work, int64_t reduction, REAL *into)
{
    const REAL *logits = work->logits;
    REAL greatest[BLOCK_ROWS], losses[BLOCK_ROWS];
    double sum = 0;
    for (int64_t first = 0, some; first < work->rows; first += some) {
        const REAL *block = logits + first * work->classes;
        some = OF(block_rows)(work->rows - first, work->classes);
        OF(row_logarithms)(block, greatest, losses, some, work->classes);
        for (int64_t r = 0; r < some; r++) {
            losses[r] -= block[r * work->classes + class_of(work, first + r)] - greatest[r];
            sum += (double)losses[r];
            if (reduction == EACH)
                into[first + r] = losses[r];
        }
    }
    if (reduction != EACH)
        into[0] = (REAL)(reduction == MEAN ? sum / (double)work->rows : sum);
}

/* (softmax - 1 at the class) times the gradient of the loss; false: a target is not a class, somebody wrote it meanwhile. */
static bool OF(row_gradients)(const entropy_rows *work, const char *gradient, int64_t step, double divisor, REAL *into)
{
    const REAL *logits = work->logits;
    REAL greatest[BLOCK_ROWS], sums[BLOCK_ROWS], factors[BLOCK_ROWS];
    for (int64_t first = 0, some; first < work->rows; first += some) {
        REAL *block = into + first * work->classes;
        some = OF(block_rows)(work->rows - first, work->classes);
        OF(block_powers)(logits + first * work->classes, block, greatest, sums, some, work->classes);
        for (int64_t r = 0; r < some; r++) {
            factors[r] = *(const REAL *)(const void *)(gradient + (first + r) * step) / (REAL)divisor;
            sums[r] = factors[r] / sums[r];
        }
        OF(rows_times)(block, sums, some, work->classes);
        for (int64_t r = 0; r < some; r++) {
            int64_t number = class_of(work, first + r);
            if (number < 0 || number >= work->classes)
                return false;
            block[r * work->classes + number] -= factors[r];
        }
    }
    return true;
}
