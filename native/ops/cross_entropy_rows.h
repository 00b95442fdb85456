/* SPDX-License-Identifier: MIT
 * cross_entropy_rows.h: losses of rows of logits, and the gradients of the logits; for both.h.
 */
#ifndef TLMEM_OPS_ENTROPY_ROWS
#define TLMEM_OPS_ENTROPY_ROWS
typedef struct {
    const void *logits; /* dense */
    const char *target;
    int64_t target_step; /* in bytes */
    int64_t rows, classes;
} entropy_rows;

static inline int64_t class_of(const entropy_rows *work, int64_t row)
{
    return *(const int64_t *)(const void *)(work->target + row * work->target_step);
}
#endif

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

/* (softmax - 1 at the class) times the gradient of the loss; false: a target is no class, somebody wrote it meanwhile. */
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
