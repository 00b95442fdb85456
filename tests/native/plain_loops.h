/* SPDX-License-Identifier: MIT
 * plain_loops.h: loops as NumPy's, one element after the other, for tests of the ops without an interpreter.
 *
 *     plain_loops();  fills ops_loops and ops_matmul_loops
 */
#ifndef TLMEM_PLAIN_LOOPS_H
#define TLMEM_PLAIN_LOOPS_H

#include <math.h>

#include "ops/ops.h"

#define PLAIN_UNARY(NAME, TYPE, EXPRESSION)                                                                            \
    static void NAME(char **at, const intptr_t *count, const intptr_t *strides, void *unused)                          \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        for (intptr_t i = 0; i < *count; i++) {                                                                        \
            TYPE a = *(TYPE *)(at[0] + i * strides[0]);                                                                \
            *(TYPE *)(at[1] + i * strides[1]) = (TYPE)(EXPRESSION);                                                    \
        }                                                                                                              \
    }
#define PLAIN_BINARY(NAME, TYPE, EXPRESSION)                                                                           \
    static void NAME(char **at, const intptr_t *count, const intptr_t *strides, void *unused)                          \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        for (intptr_t i = 0; i < *count; i++) {                                                                        \
            TYPE a = *(TYPE *)(at[0] + i * strides[0]), b = *(TYPE *)(at[1] + i * strides[1]);                         \
            *(TYPE *)(at[2] + i * strides[2]) = (TYPE)(EXPRESSION);                                                    \
        }                                                                                                              \
    }
#define PLAIN_BOTH(KIND, NAME, EXPRESSION)                                                                             \
    KIND(plain_##NAME##_float, float, EXPRESSION) KIND(plain_##NAME##_double, double, EXPRESSION)

PLAIN_BOTH(PLAIN_BINARY, add, a + b)
PLAIN_BOTH(PLAIN_BINARY, subtract, a - b)
PLAIN_BOTH(PLAIN_BINARY, multiply, a *b)
PLAIN_BOTH(PLAIN_BINARY, divide, a / b)
PLAIN_BOTH(PLAIN_BINARY, power, pow(a, b))
PLAIN_BOTH(PLAIN_BINARY, maximum, a != a || a > b ? a : b)
PLAIN_BOTH(PLAIN_BINARY, minimum, a != a || a < b ? a : b)
PLAIN_BOTH(PLAIN_UNARY, exp, exp(a))
PLAIN_BOTH(PLAIN_UNARY, log, log(a))
PLAIN_BOTH(PLAIN_UNARY, sqrt, sqrt(a))
PLAIN_BOTH(PLAIN_UNARY, sin, sin(a))
PLAIN_BOTH(PLAIN_UNARY, cos, cos(a))
PLAIN_BOTH(PLAIN_UNARY, tanh, tanh(a))
PLAIN_BOTH(PLAIN_UNARY, negative, -a)
PLAIN_BOTH(PLAIN_UNARY, absolute, fabs(a))
PLAIN_BOTH(PLAIN_UNARY, sign, a > 0 ? 1 : a < 0 ? -1 : a)
PLAIN_BOTH(PLAIN_UNARY, square, a *a)
PLAIN_BOTH(PLAIN_UNARY, reciprocal, 1 / a)
PLAIN_BOTH(PLAIN_UNARY, expm1, expm1(a))
PLAIN_BOTH(PLAIN_UNARY, log1p, log1p(a))

/* dims: outer, n, k, m; strides: of a, b, c along the outer one, then a n k, b k m, c n m. */
#define PLAIN_MATMUL(NAME, TYPE)                                                                                       \
    static void NAME(char **at, const intptr_t *dims, const intptr_t *strides, void *unused)                           \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        for (intptr_t outer = 0; outer < dims[0]; outer++)                                                             \
            for (intptr_t i = 0; i < dims[1]; i++)                                                                     \
                for (intptr_t j = 0; j < dims[3]; j++) {                                                               \
                    char *a = at[0] + outer * strides[0] + i * strides[3],                                             \
                         *b = at[1] + outer * strides[1] + j * strides[6];                                             \
                    TYPE sum = 0;                                                                                      \
                    for (intptr_t k = 0; k < dims[2]; k++)                                                             \
                        sum += *(TYPE *)(a + k * strides[4]) * *(TYPE *)(b + k * strides[5]);                          \
                    *(TYPE *)(at[2] + outer * strides[2] + i * strides[7] + j * strides[8]) = sum;                     \
                }                                                                                                      \
    }
PLAIN_MATMUL(plain_matmul_float, float)
PLAIN_MATMUL(plain_matmul_double, double)

static inline void plain_loops(void)
{
#define PLAIN(NUMBER, NAME)                                                                                            \
    ops_loops[NUMBER][OPS_FLOAT32].call = plain_##NAME##_float;                                                        \
    ops_loops[NUMBER][OPS_FLOAT64].call = plain_##NAME##_double;
    PLAIN(OPS_ADD, add)
    PLAIN(OPS_SUBTRACT, subtract)
    PLAIN(OPS_MULTIPLY, multiply)
    PLAIN(OPS_DIVIDE, divide)
    PLAIN(OPS_POWER, power)
    PLAIN(OPS_MAXIMUM, maximum)
    PLAIN(OPS_MINIMUM, minimum)
    PLAIN(OPS_EXP, exp)
    PLAIN(OPS_LOG, log)
    PLAIN(OPS_SQRT, sqrt)
    PLAIN(OPS_SIN, sin)
    PLAIN(OPS_COS, cos)
    PLAIN(OPS_TANH, tanh)
    PLAIN(OPS_NEGATIVE, negative)
    PLAIN(OPS_ABSOLUTE, absolute)
    PLAIN(OPS_SIGN, sign)
    PLAIN(OPS_SQUARE, square)
    PLAIN(OPS_RECIPROCAL, reciprocal)
    PLAIN(OPS_EXPM1, expm1)
    PLAIN(OPS_LOG1P, log1p)
#undef PLAIN
    ops_matmul_loops[OPS_FLOAT32].call = plain_matmul_float;
    ops_matmul_loops[OPS_FLOAT64].call = plain_matmul_double;
}
#endif
