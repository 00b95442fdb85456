/* SPDX-License-Identifier: MIT
 * activations.c: tanh, sigmoid, relu, gelu.
 *
 * One input. All but gelu save their output; gelu saves its input. gelu: n[0] = 1 for the form with tanh, 0 for the exact one.
 */
#include "ops/elementwise.h"

static tlm_status saving_output(ops_call *call, tlm_status status)
{
    if (status == TLM_OK && call->records)
        ops_save_output(call);
    return status;
}

static tlm_status forward_tanh(ops_call *call)
{
    return saving_output(call, ops_elementwise_loop(call, OPS_TANH));
}

static tlm_status rule_tanh(tlm_pass *pass)
{
    return ops_rule_of_one(pass, OPS_TANH_RULE);
}

static tlm_status forward_sigmoid(ops_call *call)
{
    uint8_t dtype = ops_common_dtype(call);
    if (!dtype)
        return (tlm_status)OPS_NOT_HERE;
    return saving_output(call, ops_elementwise(call, ops_element(OPS_SIGMOID, dtype, NULL)));
}

static tlm_status rule_sigmoid(tlm_pass *pass)
{
    return ops_rule_of_one(pass, OPS_SIGMOID_RULE);
}

/* The greater of the input and 0, with NumPy's loop; NaN stays. */
static tlm_status forward_relu(ops_call *call)
{
    const tlm_tensor *in = &call->in[0];
    if (!ops_common_dtype(call))
        return (tlm_status)OPS_NOT_HERE;
    tlm_status status = ops_new_out(call, ops_common_device(call), in->dtype, in->axes, in->shape);
    if (status != TLM_OK)
        return status;
    tlm_tensor zero;
    ops_constant(0, in->dtype, in->axes, in->shape, &zero);
    status = ops_binary(OPS_MAXIMUM, in, &zero, &call->out);
    if (status != TLM_OK)
        ops_drop_out(call);
    return saving_output(call, status);
}

/* At 0 it is 0. */
static tlm_status rule_relu(tlm_pass *pass)
{
    return ops_rule_of_one(pass, OPS_RELU_RULE);
}

static tlm_status forward_gelu(ops_call *call)
{
    uint8_t dtype = ops_common_dtype(call);
    if (!dtype)
        return (tlm_status)OPS_NOT_HERE;
    call->params.n[0] = call->params.count && call->params.n[0];
    call->params.count = 1;
    ops_element_row row = call->params.n[0] ? OPS_GELU_TANH : OPS_GELU;
    tlm_status status = ops_elementwise(call, ops_element(row, dtype, NULL));
    if (status == TLM_OK && call->records)
        ops_save_input(call, 0);
    return status;
}

static tlm_status rule_gelu(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    ops_element_row row = params->n[0] ? OPS_GELU_TANH_RULE : OPS_GELU_RULE;
    ops_loop loop = ops_element(row, tlm_pass_grad(pass)->dtype, NULL);
    return ops_rule_loop(pass, 0, 1, loop, tlm_pass_saved(pass, 0), NULL, true);
}

static const ops_row rows[] = {
    {"tanh", "output", 1, 1, true, forward_tanh, rule_tanh},
    {"sigmoid", "output", 1, 1, true, forward_sigmoid, rule_sigmoid},
    {"relu", "output", 1, 1, true, forward_relu, rule_relu},
    {"gelu", "x", 1, 1, true, forward_gelu, rule_gelu},
};
const ops_family ops_activations = {rows, sizeof rows / sizeof *rows};
