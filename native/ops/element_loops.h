/* SPDX-License-Identifier: MIT
 * element_loops.h: the loops of the ops of each element that are not NumPy's: functions, selections, gradients; for both_dtypes.h.
 *
 * A row gets pointers, a count and strides as NumPy's loops do, so that both are used alike (ops.h). The output may be an input
 * with the same strides: elements are read before they are written. Rows that need a function of NumPy's go in blocks that stay
 * in the fastest cache.
 */

/* The loop of a row of `from` inputs and one output, made for each of the usual strides. `data` is called `with`. */
#define ROW(NAME, FROM, EXPRESSION)                                                                                    \
    TLMI_INLINE void OF(NAME##_by)(char **at, intptr_t count, intptr_t s0, intptr_t s1, intptr_t s2, intptr_t s3,      \
                                   const REAL *with)                                                                   \
    {                                                                                                                  \
        (void)s2, (void)s3, (void)with;                                                                                \
        char *out = at[FROM];                                                                                          \
        const intptr_t strides[] = {s0, s1, s2, s3};                                                                   \
        OPS_APART for (intptr_t i = 0; i < count; i++)                                                                 \
        {                                                                                                              \
            REAL g = *(const REAL *)(at[0] + i * s0);                                                                  \
            REAL a = FROM > 1 ? *(const REAL *)(at[1] + i * s1) : g;                                                   \
            REAL b = FROM > 2 ? *(const REAL *)(at[FROM > 2 ? 2 : 0] + i * (FROM > 2 ? s2 : s0)) : a;                  \
            (void)g, (void)a, (void)b;                                                                                 \
            *(REAL *)(out + i * strides[FROM]) = EXPRESSION;                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    TLMI_SIMD_CLONES static void OF(NAME)(char **at, const intptr_t *count, const intptr_t *strides, void *data)       \
    {                                                                                                                  \
        const intptr_t item = sizeof(REAL);                                                                            \
        REAL with[2] = {0};                                                                                            \
        if (data) /* parameters come as double, whatever the dtype */                                                  \
            with[0] = (REAL)((double *)data)[0], with[1] = (REAL)((double *)data)[1];                                  \
        bool rest = true;                                                                                              \
        for (int i = 1; i <= FROM; i++)                                                                                \
            rest = rest && strides[i] == item;                                                                         \
        if (rest && strides[0] == item)                                                                                \
            OF(NAME##_by)(at, *count, item, item, item, item, with);                                                   \
        else if (rest && strides[0] == 0)                                                                              \
            OF(NAME##_by)(at, *count, 0, item, item, item, with);                                                      \
        else                                                                                                           \
            OF(NAME##_by)(at, *count, strides[0], strides[1], FROM > 1 ? strides[2] : 0, FROM > 2 ? strides[3] : 0,    \
                          with);                                                                                       \
    }

/* g: the gradient of the output; a, b: inputs. */
/* of 1 / a and a * a * a */
ROW(reciprocal_rule, 2, -g / (a * a))
ROW(cube_rule, 2, 3 * (a * a) * g)
/* a / b: the gradient of b */
ROW(divisor_rule, 3, -g *((a / b) / b))
/* the greater of a and b: the gradient of a. Two that are equal share it; of NaN both have it */
ROW(greater_rule, 3, a == b ? g / 2 : a < b ? 0 : g)

/* ---- with the Gaussian error function ---- */

/* Of float32: the quotient of two polynomials in x * x, fitted on [0, 4] with weights until the relative error was the same
 * everywhere, 2.5e-8; beyond 4 it is 1 to the last bit. Of float64: the C library's. */
TLMI_INLINE REAL OF(erf_of)(REAL x)
{
    if (sizeof(REAL) == sizeof(double))
        return (REAL)erf((double)x);
    /* These comparisons raise no flag for NaN. */
    REAL clamped = __builtin_isgreater(x, (REAL)4) ? 4 : __builtin_isless(x, (REAL)-4) ? -4 : x, t = clamped * clamped;
    REAL over = (REAL)1.986780944e-06;
    over = over * t + (REAL)2.845668350e-04;
    over = over * t + (REAL)3.883372527e-03;
    over = over * t + (REAL)5.310183018e-02;
    over = over * t + (REAL)1.935456842e-01;
    over = over * t + (REAL)1.128379107e+00;
    REAL under = (REAL)3.742020999e-05;
    under = under * t + (REAL)1.185578643e-03;
    under = under * t + (REAL)1.520730648e-02;
    under = under * t + (REAL)1.153502613e-01;
    under = under * t + (REAL)5.048579574e-01;
    under = under * t + 1;
    REAL y = clamped * over / under;
    return __builtin_isgreater(y, (REAL)1) ? 1 : __builtin_isless(y, (REAL)-1) ? -1 : y;
}

/* ---- in blocks ---- */

enum { OF(BLOCK) = 2048 / sizeof(REAL) };

/* Elements of a row side by side; returns them where they are when they lie so already. */
TLMI_INLINE const REAL *OF(gathered)(const char *from, intptr_t step, intptr_t count, REAL *room)
{
    if (step == sizeof(REAL))
        return (const REAL *)from;
    for (intptr_t i = 0; i < count; i++)
        room[i] = *(const REAL *)(from + i * step);
    return room;
}

TLMI_INLINE void OF(apply)(ops_loop_name name, const REAL *in, REAL *out, intptr_t count)
{
    const ops_loop *loop = ops_loop_of(name, DTYPE);
    char *at[] = {(char *)in, (char *)out};
    const intptr_t strides[] = {sizeof(REAL), sizeof(REAL)};
    loop->call(at, &count, strides, loop->data);
}

/* `step`: of the right operand, in bytes. */
TLMI_INLINE void OF(combine)(ops_loop_name name, const REAL *left, const REAL *right, intptr_t step, REAL *out,
                             intptr_t count)
{
    const ops_loop *loop = ops_loop_of(name, DTYPE);
    char *at[] = {(char *)left, (char *)right, (char *)out};
    const intptr_t strides[] = {sizeof(REAL), step, sizeof(REAL)};
    loop->call(at, &count, strides, loop->data);
}

TLMI_INLINE void OF(scatter)(const REAL *from, char *to, intptr_t step, intptr_t count)
{
    if (step == sizeof(REAL))
        memcpy(to, from, (size_t)count * sizeof(REAL));
    else
        for (intptr_t i = 0; i < count; i++)
            *(REAL *)(to + i * step) = from[i];
}

/* A row of `from` inputs in blocks: in BODY, x[i] are the inputs' elements of the block side by side, y is where the results
 * go, z room, n how many. Results go past the room for them when no input would be overwritten. */
#define BLOCKS(NAME, FROM, BODY)                                                                                       \
    TLMI_SIMD_CLONES static void OF(NAME)(char **at, const intptr_t *count, const intptr_t *strides, void *data)       \
    {                                                                                                                  \
        const REAL with[] = {data ? (REAL)((double *)data)[0] : 0, data ? (REAL)((double *)data)[1] : 0};              \
        (void)with;                                                                                                    \
        bool is_direct = strides[FROM] == sizeof(REAL);                                                                \
        REAL room[FROM][OF(BLOCK)], results[OF(BLOCK)], z[OF(BLOCK)];                                                  \
        (void)z;                                                                                                       \
        for (int i = 0; i < FROM; i++)                                                                                 \
            is_direct = is_direct && at[i] != at[FROM];                                                                \
        for (intptr_t done = 0; done < *count; done += OF(BLOCK)) {                                                    \
            intptr_t left = *count - done, n = left < OF(BLOCK) ? left : OF(BLOCK);                                    \
            char *out = at[FROM] + done * strides[FROM];                                                               \
            REAL *y = is_direct ? (REAL *)out : results;                                                               \
            const REAL *x[FROM];                                                                                       \
            for (int i = 0; i < FROM; i++)                                                                             \
                x[i] = OF(gathered)(at[i] + done * strides[i], strides[i], n, room[i]);                                \
            BODY;                                                                                                      \
            if (!is_direct)                                                                                            \
                OF(scatter)(y, out, strides[FROM], n);                                                                 \
        }                                                                                                              \
    }
#define EACH OPS_APART for (intptr_t i = 0; i < n; i++)

/* the square root again, of the input that was saved */
BLOCKS(root_rule, 2, {
    OF(apply)(OPS_SQRT, x[1], y, n);
    EACH y[i] = x[0][i] / (2 * y[i]);
})
/* base ** exponent: the gradient of the base; 0 when the exponent is, whatever the base */
BLOCKS(power_base_rule, 3, {
    EACH z[i] = x[2][i] - 1;
    OF(combine)(OPS_POWER, x[1], z, sizeof(REAL), y, n);
    EACH y[i] = x[2][i] == 0 ? 0 : x[0][i] * (x[2][i] * y[i]);
})
/* and of the exponent; 0 where the base is and the exponent is not below it */
BLOCKS(power_exponent_rule, 3, {
    OF(combine)(OPS_POWER, x[1], x[2], sizeof(REAL), y, n);
    EACH z[i] = x[1][i] == 0 && x[2][i] >= 0 ? 1 : x[1][i];
    OF(apply)(OPS_LOG, z, z, n);
    EACH y[i] = x[0][i] * (y[i] * z[i]);
})

#define HALF_ROOT ((REAL)0.70710678118654752440)    /* 1 / sqrt(2) */
#define GAUSS_HEIGHT ((REAL)0.39894228040143267794) /* 1 / sqrt(2 pi) */
#define TANH_SCALE ((REAL)0.79788456080286535588)   /* sqrt(2 / pi) */
#define TANH_CUBE ((REAL)0.044715)

/* x times the share of the normal distribution below x. */
BLOCKS(gelu, 1, { EACH y[i] = (REAL)0.5 * x[0][i] * (1 + OF(erf_of)(x[0][i] * HALF_ROOT)); })
BLOCKS(gelu_rule, 2, {
    EACH z[i] = (REAL)-0.5 * x[1][i] * x[1][i];
    OF(apply)(OPS_EXP, z, z, n);
    EACH y[i] = x[0][i] * ((REAL)0.5 * (1 + OF(erf_of)(x[1][i] * HALF_ROOT)) + x[1][i] * GAUSS_HEIGHT * z[i]);
})
/* The same with tanh in place of that share. */
BLOCKS(gelu_tanh, 1, {
    EACH z[i] = TANH_SCALE * (x[0][i] + TANH_CUBE * x[0][i] * x[0][i] * x[0][i]);
    OF(apply)(OPS_TANH, z, z, n);
    EACH y[i] = (REAL)0.5 * x[0][i] * (1 + z[i]);
})
BLOCKS(gelu_tanh_rule, 2, {
    EACH z[i] = TANH_SCALE * (x[1][i] + TANH_CUBE * x[1][i] * x[1][i] * x[1][i]);
    OF(apply)(OPS_TANH, z, z, n);
    EACH y[i] = (REAL)0.5 * x[0][i] *
                (1 + z[i] + x[1][i] * (1 - z[i] * z[i]) * TANH_SCALE * (1 + 3 * TANH_CUBE * x[1][i] * x[1][i]));
})

#undef HALF_ROOT
#undef GAUSS_HEIGHT
#undef TANH_SCALE
#undef TANH_CUBE

/* ---- functions of one input ---- */

#define FUNCTION(...)
#define BY_NUMPY(...)
#define BY_BLOCKS(NAME, BODY) BLOCKS(NAME, 1, BODY)
#define GRADIENT(NAME, VALUE) ROW(NAME##_gradient, 2, VALUE)
#define GRADIENT_BLOCKS(NAME, BODY) BLOCKS(NAME##_gradient, 2, BODY)
#include "ops/functions.h"
#undef FUNCTION
#undef BY_NUMPY
#undef BY_BLOCKS
#undef GRADIENT
#undef GRADIENT_BLOCKS

#undef ROW
#undef BLOCKS
#undef EACH

/* ---- with a condition ---- */

TLMI_INLINE void OF(choose_by)(char **at, intptr_t count, intptr_t when, intptr_t left, intptr_t right, intptr_t to)
{
    OPS_APART for (intptr_t i = 0; i < count; i++)
    {
        REAL one = *(const REAL *)(at[1] + i * left), other = *(const REAL *)(at[2] + i * right);
        *(REAL *)(at[3] + i * to) = at[0][i * when] ? one : other;
    }
}

/* left where the condition holds, else right */
TLMI_SIMD_CLONES static void OF(choose)(char **at, const intptr_t *count, const intptr_t *strides, void *unused)
{
    const intptr_t item = sizeof(REAL);
    (void)unused;
    if (strides[0] == 1 && strides[1] == item && strides[2] == item && strides[3] == item)
        OF(choose_by)(at, *count, 1, item, item, item);
    else if (strides[0] == 1 && strides[1] == item && strides[2] == 0 && strides[3] == item)
        OF(choose_by)(at, *count, 1, item, 0, item);
    else
        OF(choose_by)(at, *count, strides[0], strides[1], strides[2], strides[3]);
}

/* The gradient g where the condition is what `data` says, else 0. */
TLMI_SIMD_CLONES static void OF(choose_rule)(char **at, const intptr_t *count, const intptr_t *strides, void *data)
{
    const REAL zero = 0;
    bool is_left = *(const double *)data != 0;
    char *shuffled[] = {at[1], is_left ? at[0] : (char *)&zero, is_left ? (char *)&zero : at[0], at[2]};
    const intptr_t their_strides[] = {strides[1], is_left ? strides[0] : 0, is_left ? 0 : strides[0], strides[2]};
    OF(choose)(shuffled, count, their_strides, NULL);
}
