/* SPDX-License-Identifier: MIT
 * functions.c: exp, log, sqrt, sin, cos, absolute.
 *
 * One input. Params of sqrt: x[0]: 1 when it makes a deviation of a variance, which has no slope where it is 0. exp and sqrt
 * save their output, the others their input.
 */
#include "ops/elementwise.h"

static tlm_status forward(ops_call *call, ops_loop_name name, bool saves_output)
{
    tlm_status status = ops_elementwise_loop(call, name);
    if (status != TLM_OK || !call->records)
        return status;
    if (saves_output)
        ops_save_output(call);
    else
        ops_save_input(call, 0);
    return TLM_OK;
}

/* The gradient is the output's, combined with what was saved by NumPy's loop. */
static tlm_status combine(tlm_pass *pass, ops_loop_name name)
{
    ops_loop loop = *ops_loop_of(name, tlm_pass_grad(pass)->dtype);
    return ops_rule_loop(pass, 0, 0, loop, tlm_pass_saved(pass, 0), NULL, true);
}

static tlm_status forward_exp(ops_call *call)
{
    return forward(call, OPS_EXP, true);
}

static tlm_status rule_exp(tlm_pass *pass)
{
    return combine(pass, OPS_MULTIPLY);
}

static tlm_status forward_log(ops_call *call)
{
    return forward(call, OPS_LOG, false);
}

static tlm_status rule_log(tlm_pass *pass)
{
    return combine(pass, OPS_DIVIDE);
}

static tlm_status forward_sqrt(ops_call *call)
{
    return forward(call, OPS_SQRT, true);
}

static tlm_status rule_sqrt(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    return ops_rule_of_one(pass, params->x[0] != 0 ? OPS_DEVIATION_RULE : OPS_SQRT_RULE);
}

static tlm_status forward_sin(ops_call *call)
{
    return forward(call, OPS_SIN, false);
}

static tlm_status rule_sin(tlm_pass *pass)
{
    return ops_rule_of_one(pass, OPS_SIN_RULE);
}

static tlm_status forward_cos(ops_call *call)
{
    return forward(call, OPS_COS, false);
}

static tlm_status rule_cos(tlm_pass *pass)
{
    return ops_rule_of_one(pass, OPS_COS_RULE);
}

static tlm_status forward_absolute(ops_call *call)
{
    return forward(call, OPS_ABSOLUTE, false);
}

/* At 0 it is 0. */
static tlm_status rule_absolute(tlm_pass *pass)
{
    return ops_rule_of_one(pass, OPS_ABSOLUTE_RULE);
}

static const ops_row rows[] = {
    {"exp", "output", 1, 1, true, forward_exp, rule_exp},
    {"log", "x", 1, 1, true, forward_log, rule_log},
    {"sqrt", "output", 1, 1, true, forward_sqrt, rule_sqrt},
    {"sin", "x", 1, 1, true, forward_sin, rule_sin},
    {"cos", "x", 1, 1, true, forward_cos, rule_cos},
    {"absolute", "x", 1, 1, true, forward_absolute, rule_absolute},
};
const ops_family ops_functions = {rows, sizeof rows / sizeof *rows};
