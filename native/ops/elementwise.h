/* SPDX-License-Identifier: MIT
 * elementwise.h: what the ops of each element share: forwards and rules around one loop, broadcasting and back.
 *
 * A rule reads the gradient of the output, as it comes, and what was saved, seen with its shape, and writes one gradient, over
 * that of the output where nobody else needs it. The gradient of an input that was repeated is summed; the shapes of such
 * inputs are the record's only numbers.
 */
#ifndef TLMEM_OPS_ELEMENTWISE_H
#define TLMEM_OPS_ELEMENTWISE_H

#include "ops/ops.h"

/* Rows of our own beside NumPy's loops (element_rows.h); those of two parameters get them as two doubles. */
typedef enum {
    OPS_SQRT_RULE,
    OPS_DEVIATION_RULE,
    OPS_ABSOLUTE_RULE,
    OPS_SQUARE_RULE,
    OPS_SIN_RULE,
    OPS_COS_RULE,
    OPS_TANH_RULE,
    OPS_SIGMOID,
    OPS_SIGMOID_RULE,
    OPS_RELU_RULE,
    OPS_GELU,
    OPS_GELU_RULE,
    OPS_GELU_TANH,
    OPS_GELU_TANH_RULE,
    OPS_CLIP,
    OPS_CLIP_RULE,
    OPS_DIVISOR_RULE,
    OPS_GREATER_RULE,
    OPS_ROOT_RULE,
    OPS_RECIPROCAL_RULE,
    OPS_CUBE_RULE,
    OPS_POWER_BASE_RULE,
    OPS_POWER_EXPONENT_RULE,
    OPS_CHOOSE,
    OPS_CHOOSE_RULE,
    OPS_ELEMENT_ROWS,
} ops_element_row;
extern const ops_row_call ops_element_rows[OPS_ELEMENT_ROWS][2];
static inline ops_loop ops_element(ops_element_row row, uint8_t dtype, const double *parameters)
{
    return (ops_loop){ops_element_rows[row][dtype == TLM_FLOAT64 ? OPS_FLOAT64 : OPS_FLOAT32], (void *)parameters};
}

/* ---- forwards ---- */
/* Makes the output of the shape that all inputs have together, and runs the loop; its dtype is that of the last input. What
 * the loop makes of them is the caller's to save. */
tlm_status ops_elementwise(ops_call *call, ops_loop loop);
/* The same with NumPy's loop, for inputs of one dtype with fractions; else OPS_NOT_HERE. */
tlm_status ops_elementwise_loop(ops_call *call, ops_loop_name name);
/* Puts the shapes of the inputs that were repeated and want a gradient behind the params. For ops_rule_give. */
void ops_note_repeated(ops_call *call);

/* ---- rules ---- */
/* Gives a gradient of the output's shape to an input: summed where it was repeated. `first`: the number of params in front
 * of what ops_note_repeated put there. */
tlm_status ops_rule_give(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient, bool shared, uint32_t first);
/* Computes a gradient from that of the output and up to two saved tensors by the loop, and gives it to the input. `last`:
 * nothing will read the output's gradient after this, so it may be overwritten. */
tlm_status ops_rule_loop(tlm_pass *pass, uint32_t input, uint32_t first, ops_loop loop, const tlm_tensor *one,
                         const tlm_tensor *other, bool last);
/* A rule of one input whose gradient is a loop over the output's gradient and what was saved. */
tlm_status ops_rule_of_one(tlm_pass *pass, ops_element_row row);
#endif
