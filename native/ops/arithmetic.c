/* SPDX-License-Identifier: MIT
 * arithmetic.c: add, subtract, multiply, divide, negative.
 *
 * No params but the shapes of inputs that were repeated (elementwise.h). A factor is saved only when the other one wants a
 * gradient.
 */
#include "ops/elementwise.h"

static ops_loop numpy_loop(tlm_pass *pass, ops_loop_name name)
{
    return *ops_loop_of(name, tlm_pass_grad(pass)->dtype);
}

/* ---- sums ---- */

static tlm_status forward_sum(ops_call *call, ops_loop_name name)
{
    call->params.count = 0;
    tlm_status status = ops_elementwise_loop(call, name);
    if (status == TLM_OK)
        ops_note_repeated(call);
    return status;
}

static tlm_status forward_add(ops_call *call)
{
    return forward_sum(call, OPS_ADD);
}

static tlm_status forward_subtract(ops_call *call)
{
    return forward_sum(call, OPS_SUBTRACT);
}

static tlm_status rule_add(tlm_pass *pass)
{
    for (uint32_t input = 0; input < 2; input++) {
        if (!tlm_pass_wants(pass, input))
            continue;
        tlm_status status = ops_rule_give(pass, input, tlm_pass_grad(pass), true, 0);
        if (status != TLM_OK)
            return status;
    }
    return TLM_OK;
}

static tlm_status rule_subtract(tlm_pass *pass)
{
    bool wants_left = tlm_pass_wants(pass, 0);
    if (tlm_pass_wants(pass, 1)) {
        tlm_status status = ops_rule_loop(pass, 1, 0, numpy_loop(pass, OPS_NEGATIVE), NULL, NULL, !wants_left);
        if (status != TLM_OK)
            return status;
    }
    return wants_left ? ops_rule_give(pass, 0, tlm_pass_grad(pass), true, 0) : TLM_OK;
}

static tlm_status forward_negative(ops_call *call)
{
    return forward_sum(call, OPS_NEGATIVE);
}

static tlm_status rule_negative(tlm_pass *pass)
{
    return ops_rule_loop(pass, 0, 0, numpy_loop(pass, OPS_NEGATIVE), NULL, NULL, true);
}

/* ---- products ---- */

static tlm_status forward_multiply(ops_call *call)
{
    tlm_status status = forward_sum(call, OPS_MULTIPLY);
    if (status != TLM_OK)
        return status;
    for (uint32_t input = 0; input < 2; input++)
        if (ops_needs(call, input))
            ops_save_input(call, 1 - input);
    return TLM_OK;
}

static tlm_status rule_multiply(tlm_pass *pass)
{
    ops_loop loop = numpy_loop(pass, OPS_MULTIPLY);
    bool wants[] = {tlm_pass_wants(pass, 0), tlm_pass_wants(pass, 1)};
    if (wants[1]) {
        const tlm_tensor *left = tlm_pass_saved(pass, wants[0]);
        tlm_status status = ops_rule_loop(pass, 1, 0, loop, left, NULL, !wants[0]);
        if (status != TLM_OK)
            return status;
    }
    return wants[0] ? ops_rule_loop(pass, 0, 0, loop, tlm_pass_saved(pass, 0), NULL, true) : TLM_OK;
}

/* Saves the divisor, and the dividend when the divisor wants a gradient. */
static tlm_status forward_divide(ops_call *call)
{
    tlm_status status = forward_sum(call, OPS_DIVIDE);
    if (status != TLM_OK || !call->records)
        return status;
    ops_save_input(call, 1);
    if (ops_needs(call, 1))
        ops_save_input(call, 0);
    return TLM_OK;
}

static tlm_status rule_divide(tlm_pass *pass)
{
    const tlm_tensor *divisor = tlm_pass_saved(pass, 0);
    bool wants_left = tlm_pass_wants(pass, 0);
    if (tlm_pass_wants(pass, 1)) {
        ops_loop loop = ops_element(OPS_DIVISOR_RULE, divisor->dtype, NULL);
        tlm_status status = ops_rule_loop(pass, 1, 0, loop, tlm_pass_saved(pass, 1), divisor, !wants_left);
        if (status != TLM_OK)
            return status;
    }
    return wants_left ? ops_rule_loop(pass, 0, 0, numpy_loop(pass, OPS_DIVIDE), divisor, NULL, true) : TLM_OK;
}

static const ops_row rows[] = {
    {"add", "", 2, 2, true, forward_add, rule_add},
    {"subtract", "", 2, 2, true, forward_subtract, rule_subtract},
    {"multiply", "the other factor", 2, 2, true, forward_multiply, rule_multiply},
    {"divide", "x, y", 2, 2, true, forward_divide, rule_divide},
    {"negative", "", 1, 1, true, forward_negative, rule_negative},
};
const ops_family ops_arithmetic = {rows, sizeof rows / sizeof *rows};
