/* SPDX-License-Identifier: MIT
 * powers.c: power, square.
 *
 * power: base and exponent, each a tensor or a number. Exponents that are numbers and have a simpler loop take that one: 2,
 * 1/2, 1, 0 and -1. Both inputs are saved, numbers in the record itself; of exponents 0 and 1 nothing is.
 */
#include "ops/elementwise.h"

/* The exponent when it is one number; false: it is not. */
static bool number_of(const tlm_tensor *exponent, double *number)
{
    *number = exponent->object ? 0 : ops_number_of(exponent);
    return exponent->object == 0;
}

/* The loop of the base alone that gives its power; OPS_POWER: there is none. */
static ops_loop_name loop_for(double exponent)
{
    return exponent == 2 ? OPS_SQUARE : exponent == 0.5 ? OPS_SQRT : exponent == -1 ? OPS_RECIPROCAL : OPS_POWER;
}

/* The power by a number that is 0, 1 or has a loop of its own. */
static tlm_status forward_simple(ops_call *call, double exponent)
{
    const tlm_tensor *base = &call->in[0], *out = &call->out;
    tlm_status status = ops_new_out(call, ops_common_device(call), base->dtype, base->axes, base->shape);
    if (status != TLM_OK)
        return status;
    if (exponent == 0)
        status = ops_fill(out, 1);
    else
        status = exponent == 1 ? ops_copy(base, out) : ops_unary(loop_for(exponent), base, out);
    if (status != TLM_OK)
        ops_drop_out(call);
    return status;
}

static tlm_status forward_power(ops_call *call)
{
    double exponent;
    bool is_number = number_of(&call->in[1], &exponent) && call->in[1].axes == 0;
    bool is_trivial = is_number && (exponent == 0 || exponent == 1);
    if (!ops_common_dtype(call))
        return (tlm_status)OPS_NOT_HERE;
    call->params.count = 0;
    tlm_status status = is_trivial || (is_number && loop_for(exponent) != OPS_POWER)
                            ? forward_simple(call, exponent)
                            : ops_elementwise_loop(call, OPS_POWER);
    if (status != TLM_OK || !call->records)
        return status;
    ops_note_repeated(call);
    ops_save_input(call, 1);
    if (!is_trivial)
        ops_save_input(call, 0);
    return TLM_OK;
}

/* The row that computes the gradient of the base from the base alone; OPS_POWER_BASE_RULE: there is none. */
static ops_element_row rule_for(double exponent)
{
    return exponent == 2     ? OPS_SQUARE_RULE
           : exponent == 3   ? OPS_CUBE_RULE
           : exponent == 0.5 ? OPS_ROOT_RULE
           : exponent == -1  ? OPS_RECIPROCAL_RULE
                             : OPS_POWER_BASE_RULE;
}

/* The gradient of the base when the exponent is a number for which nothing needs to be raised to a power. */
static bool is_simple_rule(tlm_pass *pass, double exponent, tlm_status *status)
{
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    if (exponent == 1) {
        *status = ops_rule_give(pass, 0, gradient, true, 0);
    } else if (exponent == 0) {
        tlm_tensor zero;
        ops_constant(0, gradient->dtype, gradient->axes, gradient->shape, &zero);
        zero.device = gradient->device;
        *status = ops_rule_give(pass, 0, &zero, false, 0);
    } else if (rule_for(exponent) != OPS_POWER_BASE_RULE) {
        ops_loop loop = ops_element(rule_for(exponent), gradient->dtype, NULL);
        *status = ops_rule_loop(pass, 0, 0, loop, tlm_pass_saved(pass, 1), NULL, true);
    } else {
        return false;
    }
    return true;
}

static tlm_status rule_power(tlm_pass *pass)
{
    const tlm_tensor *exponent = tlm_pass_saved(pass, 0);
    bool wants_base = tlm_pass_wants(pass, 0);
    tlm_status status = TLM_OK;
    double number;
    if (!tlm_pass_wants(pass, 1) && number_of(exponent, &number) && is_simple_rule(pass, number, &status))
        return status;
    const tlm_tensor *base = tlm_pass_saved(pass, 1);
    if (tlm_pass_wants(pass, 1)) {
        ops_loop loop = ops_element(OPS_POWER_EXPONENT_RULE, base->dtype, NULL);
        status = ops_rule_loop(pass, 1, 0, loop, base, exponent, !wants_base);
        if (status != TLM_OK)
            return status;
    }
    ops_loop loop = ops_element(OPS_POWER_BASE_RULE, base->dtype, NULL);
    return wants_base ? ops_rule_loop(pass, 0, 0, loop, base, exponent, true) : TLM_OK;
}

/* ---- square ---- */

static tlm_status forward_square(ops_call *call)
{
    tlm_status status = ops_elementwise_loop(call, OPS_SQUARE);
    if (status == TLM_OK && call->records)
        ops_save_input(call, 0);
    return status;
}

static tlm_status rule_square(tlm_pass *pass)
{
    return ops_rule_of_one(pass, OPS_SQUARE_RULE);
}

static const ops_row rows[] = {
    {"power", "x, y", 2, 2, true, forward_power, rule_power},
    {"square", "x", 1, 1, true, forward_square, rule_square},
};
const ops_family ops_powers = {rows, sizeof rows / sizeof *rows};
