/* SPDX-License-Identifier: MIT
 * element_rows.c: the rows of element_rows.h for both dtypes, as a table.
 */
#include <math.h>
#include <string.h>

#include "ops/elementwise.h"

/* The output is at most an input itself: no element depends on another one. */
#if defined(__clang__)
#define OPS_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define OPS_APART _Pragma("GCC ivdep")
#endif

#define OPS_BOTH "ops/element_rows.h"
#include "ops/both.h"

#define BOTH(name) {name##_float32, name##_float64}

const ops_row_call ops_element_rows[OPS_ELEMENT_ROWS][2] = {
    [OPS_SQRT_RULE] = BOTH(sqrt_rule),
    [OPS_DEVIATION_RULE] = BOTH(deviation_rule),
    [OPS_ABSOLUTE_RULE] = BOTH(absolute_rule),
    [OPS_SQUARE_RULE] = BOTH(square_rule),
    [OPS_SIN_RULE] = BOTH(sin_rule),
    [OPS_COS_RULE] = BOTH(cos_rule),
    [OPS_TANH_RULE] = BOTH(tanh_rule),
    [OPS_SIGMOID] = BOTH(sigmoid),
    [OPS_SIGMOID_RULE] = BOTH(sigmoid_rule),
    [OPS_RELU_RULE] = BOTH(relu_rule),
    [OPS_GELU] = BOTH(gelu),
    [OPS_GELU_RULE] = BOTH(gelu_rule),
    [OPS_GELU_TANH] = BOTH(gelu_tanh),
    [OPS_GELU_TANH_RULE] = BOTH(gelu_tanh_rule),
    [OPS_CLIP] = BOTH(clip),
    [OPS_CLIP_RULE] = BOTH(clip_rule),
    [OPS_DIVISOR_RULE] = BOTH(divisor_rule),
    [OPS_GREATER_RULE] = BOTH(greater_rule),
    [OPS_ROOT_RULE] = BOTH(root_rule),
    [OPS_RECIPROCAL_RULE] = BOTH(reciprocal_rule),
    [OPS_CUBE_RULE] = BOTH(cube_rule),
    [OPS_POWER_BASE_RULE] = BOTH(power_base_rule),
    [OPS_POWER_EXPONENT_RULE] = BOTH(power_exponent_rule),
    [OPS_CHOOSE] = BOTH(choose),
    [OPS_CHOOSE_RULE] = BOTH(choose_rule),
};
