/* SPDX-License-Identifier: MIT
 * functions.h: every function of one input, element by element; one entry is all that C knows of a function.
 *
 * An entry has three parts. elementwise.c and element_loops.h include this file with definitions of their own for each, and make
 * the loops, the forward, the rule and the row from it.
 *
 *   FUNCTION(name, saved, parameters, facts...)  saved: INPUT, OUTPUT or NOTHING, what the gradient reads as `a`. parameters:
 *                                                WITH_X when the loops read x of the params as `with`, else PLAIN. facts: of
 *                                                the row, see ops.h.
 *   BY_NUMPY(name, loop)                         the values are those of NumPy's loop, or
 *   BY_BLOCKS(name, { body })                    y from x[0], in blocks of n elements (element_loops.h)
 *   GRADIENT(name, value)                        of one element: from g, the gradient of the output, and a, or
 *   GRADIENT_BLOCKS(name, { body })              y from x[0], the gradient of the output, and x[1], what was saved
 */

FUNCTION(negative, NOTHING, PLAIN, .dtype = OPS_ARITHMETIC, .numpy = "negative", .python_operator = "neg")
BY_NUMPY(negative, OPS_NEGATIVE)
GRADIENT(negative, -g)

/* At 0 the gradient is 0. */
FUNCTION(absolute, INPUT, PLAIN, .dtype = OPS_SAME, .numpy = "absolute", .python_operator = "abs", .method = "abs")
BY_NUMPY(absolute, OPS_ABSOLUTE)
GRADIENT(absolute, a > 0 ? g : a < 0 ? -g : 0)

FUNCTION(square, INPUT, PLAIN, .dtype = OPS_COUNTING, .numpy = "square")
BY_NUMPY(square, OPS_SQUARE)
GRADIENT(square, 2 * a * g)

/* x[0] = 1: the deviation of equal values is 0, and has no slope. */
FUNCTION(sqrt, OUTPUT, WITH_X, .dtype = OPS_FRACTION, .numpy = "sqrt", .method = "sqrt")
BY_NUMPY(sqrt, OPS_SQRT)
GRADIENT(sqrt, with[0] != 0 && a == 0 ? 0 : g / (2 * a))

FUNCTION(exp, OUTPUT, PLAIN, .dtype = OPS_FRACTION, .numpy = "exp", .method = "exp")
BY_NUMPY(exp, OPS_EXP)
GRADIENT(exp, g *a)

FUNCTION(log, INPUT, PLAIN, .dtype = OPS_FRACTION, .numpy = "log", .method = "log")
BY_NUMPY(log, OPS_LOG)
GRADIENT(log, g / a)

FUNCTION(sin, INPUT, PLAIN, .dtype = OPS_FRACTION, .numpy = "sin")
BY_NUMPY(sin, OPS_SIN)
GRADIENT_BLOCKS(sin, {
    OF(apply)(OPS_COS, x[1], y, n);
    EACH y[i] *= x[0][i];
})

FUNCTION(cos, INPUT, PLAIN, .dtype = OPS_FRACTION, .numpy = "cos")
BY_NUMPY(cos, OPS_COS)
GRADIENT_BLOCKS(cos, {
    OF(apply)(OPS_SIN, x[1], y, n);
    EACH y[i] *= -x[0][i];
})

FUNCTION(tanh, OUTPUT, PLAIN, .dtype = OPS_FRACTION, .numpy = "tanh", .method = "tanh")
BY_NUMPY(tanh, OPS_TANH)
GRADIENT(tanh, g * (1 - a * a))

/* 1 / (1 + exp(-x)) without overflow for any x. */
FUNCTION(sigmoid, OUTPUT, PLAIN, .dtype = OPS_FRACTION, .method = "sigmoid")
BY_BLOCKS(sigmoid, {
    EACH y[i] = x[0][i] * (REAL)0.5;
    OF(apply)(OPS_TANH, y, y, n);
    EACH y[i] = y[i] * (REAL)0.5 + (REAL)0.5;
})
GRADIENT(sigmoid, g * (1 - a) * a)

/* log(1 + exp(x)) without overflow for any x: the greater of x and 0, and log1p(exp(-|x|)). The gradient is g * sigmoid(x). */
FUNCTION(softplus, INPUT, PLAIN, .dtype = OPS_FRACTION, .method = "softplus")
BY_BLOCKS(softplus, {
    const REAL zero = 0;
    OF(apply)(OPS_ABSOLUTE, x[0], z, n);
    EACH z[i] = -z[i];
    OF(apply)(OPS_EXP, z, z, n);
    OF(apply)(OPS_LOG1P, z, z, n);
    OF(combine)(OPS_MAXIMUM, x[0], &zero, 0, y, n);
    EACH y[i] += z[i];
})
GRADIENT_BLOCKS(softplus, {
    EACH z[i] = x[1][i] * (REAL)0.5;
    OF(apply)(OPS_TANH, z, z, n);
    EACH y[i] = x[0][i] * (z[i] * (REAL)0.5 + (REAL)0.5);
})

/* The greater of the input and 0; NaN stays. At 0 the gradient is 0, of NaN it is g. */
FUNCTION(relu, OUTPUT, PLAIN, .dtype = OPS_COUNTING, .numpy = "maximum", .method = "relu")
BY_BLOCKS(relu, {
    const REAL zero = 0;
    OF(combine)(OPS_MAXIMUM, x[0], &zero, 0, y, n);
})
GRADIENT(relu, a <= 0 ? 0 : g)

/* Not below with[0], then not above with[1]; NaN stays. Between the limits, and at them, the gradient passes; of NaN it is 0. */
FUNCTION(clip, INPUT, WITH_X, .kind = OPS_OTHER, .method = "clip")
BY_BLOCKS(clip, {
    OF(combine)(OPS_MAXIMUM, x[0], &with[0], 0, y, n);
    OF(combine)(OPS_MINIMUM, y, &with[1], 0, y, n);
})
GRADIENT(clip, a >= with[0] && a <= with[1] ? g : 0)
