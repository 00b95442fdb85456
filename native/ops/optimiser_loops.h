/* SPDX-License-Identifier: MIT
 * optimiser_loops.h: rows of a parameter with its gradient and state; for both_dtypes.h.
 *
 * Each step is an inlined function over pointers and strides counted in elements; with strides that are known to be 1 it becomes a
 * loop over vectors.
 */

TLMI_INLINE void OF(sgd_plain_row)(REAL *parameter, const REAL *gradient, intptr_t count, intptr_t to, intptr_t by,
                                   const sgd_factors *factors)
{
    REAL lr = (REAL)factors->lr, decay = (REAL)factors->weight_decay;
    for (intptr_t i = 0; i < count; i++)
        parameter[i * to] -= lr * (gradient[i * by] + decay * parameter[i * to]);
}

TLMI_SIMD_CLONES static void OF(sgd_plain_dense)(REAL *restrict parameter, const REAL *restrict gradient,
                                                 intptr_t count, const sgd_factors *factors)
{
    OF(sgd_plain_row)(parameter, gradient, count, 1, 1, factors);
}

static void OF(sgd_plain)(char **arguments, const intptr_t *count, const intptr_t *strides, void *data)
{
    const intptr_t item = sizeof(REAL);
    REAL *parameter = (REAL *)(void *)arguments[0], *gradient = (REAL *)(void *)arguments[1];
    if (strides[0] == item && strides[1] == item)
        OF(sgd_plain_dense)(parameter, gradient, *count, data);
    else
        OF(sgd_plain_row)(parameter, gradient, *count, strides[0] / item, strides[1] / item, data);
}

TLMI_INLINE void OF(sgd_moving_row)(REAL *const *of, const intptr_t *by, intptr_t count, const sgd_factors *factors)
{
    REAL lr = (REAL)factors->lr, decay = (REAL)factors->weight_decay, momentum = (REAL)factors->momentum;
    REAL keep = factors->first ? 0 : momentum, ahead = factors->nesterov ? momentum : 0;
    REAL *restrict parameter = of[0], *restrict velocity = of[2];
    const REAL *restrict gradient = of[1];
    for (intptr_t i = 0; i < count; i++) {
        REAL slope = gradient[i * by[1]] + decay * parameter[i * by[0]];
        REAL speed = (factors->first ? 0 : keep * velocity[i * by[2]]) + slope;
        velocity[i * by[2]] = speed;
        parameter[i * by[0]] -= lr * (factors->nesterov ? slope + ahead * speed : speed);
    }
}

TLMI_SIMD_CLONES static void OF(sgd_moving_dense)(REAL *const *of, intptr_t count, const sgd_factors *factors)
{
    OF(sgd_moving_row)(of, (const intptr_t[]){1, 1, 1}, count, factors);
}

static void OF(sgd_moving)(char **arguments, const intptr_t *count, const intptr_t *strides, void *data)
{
    const intptr_t item = sizeof(REAL), by[] = {strides[0] / item, strides[1] / item, strides[2] / item};
    REAL *of[] = {(REAL *)(void *)arguments[0], (REAL *)(void *)arguments[1], (REAL *)(void *)arguments[2]};
    if (by[0] == 1 && by[1] == 1 && by[2] == 1)
        OF(sgd_moving_dense)(of, *count, data);
    else
        OF(sgd_moving_row)(of, by, *count, data);
}

TLMI_INLINE REAL OF(root)(REAL square)
{
    return sizeof(REAL) == sizeof(float) ? (REAL)__builtin_sqrtf((float)square) : (REAL)__builtin_sqrt((double)square);
}

TLMI_INLINE void OF(adam_row)(REAL *const *of, const intptr_t *by, intptr_t count, const adam_factors *factors)
{
    REAL part1 = (REAL)(1 - factors->beta1), keep2 = (REAL)factors->beta2, part2 = (REAL)(1 - factors->beta2);
    REAL size = (REAL)factors->step_size, eps = (REAL)factors->eps, root = (REAL)factors->root_of_correction;
    REAL decay = (REAL)factors->weight_decay;
    REAL *restrict parameter = of[0], *restrict mean = of[2], *restrict square = of[3];
    const REAL *restrict gradient = of[1];
    for (intptr_t i = 0; i < count; i++) {
        REAL slope = gradient[i * by[1]] + decay * parameter[i * by[0]];
        REAL m = mean[i * by[2]] + (slope - mean[i * by[2]]) * part1;
        REAL s = square[i * by[3]] * keep2 + slope * slope * part2;
        mean[i * by[2]] = m;
        square[i * by[3]] = s;
        parameter[i * by[0]] -= size * m / (OF(root)(s) / root + eps);
    }
}

TLMI_SIMD_CLONES static void OF(adam_dense)(REAL *const *of, intptr_t count, const adam_factors *factors)
{
    OF(adam_row)(of, (const intptr_t[]){1, 1, 1, 1}, count, factors);
}

static void OF(adam)(char **arguments, const intptr_t *count, const intptr_t *strides, void *data)
{
    const intptr_t item = sizeof(REAL);
    intptr_t by[4];
    REAL *of[4];
    bool dense = true;
    for (int i = 0; i < 4; i++) {
        by[i] = strides[i] / item;
        of[i] = (REAL *)(void *)arguments[i];
        dense = dense && by[i] == 1;
    }
    if (dense)
        OF(adam_dense)(of, *count, data);
    else
        OF(adam_row)(of, by, *count, data);
}
