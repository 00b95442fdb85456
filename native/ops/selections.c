/* SPDX-License-Identifier: MIT
 * selections.c: maximum, minimum, where, clip.
 *
 * maximum and minimum save both inputs, where its condition, clip its input. clip: x[0] the lower limit, x[1] the upper one,
 * infinite where there is none. where: the first input is the condition, of bools, and wants no gradient.
 */
#include "ops/elementwise.h"

/* ---- the greater, the lesser ---- */

static tlm_status forward_extreme(ops_call *call, ops_loop_name name)
{
    call->params.count = 0;
    tlm_status status = ops_elementwise_loop(call, name);
    if (status != TLM_OK || !call->records)
        return status;
    ops_note_repeated(call);
    ops_save_input(call, 0);
    ops_save_input(call, 1);
    return TLM_OK;
}

static tlm_status forward_maximum(ops_call *call)
{
    return forward_extreme(call, OPS_MAXIMUM);
}

static tlm_status forward_minimum(ops_call *call)
{
    return forward_extreme(call, OPS_MINIMUM);
}

/* Where two are equal, each has half of the gradient. The left input has the gradient where it is greater, or lesser. */
static tlm_status rule_extreme(tlm_pass *pass, bool is_greater)
{
    const tlm_tensor *in[] = {tlm_pass_saved(pass, 0), tlm_pass_saved(pass, 1)};
    ops_loop loop = ops_element(OPS_GREATER_RULE, in[0]->dtype, NULL);
    bool wants_left = tlm_pass_wants(pass, 0);
    if (tlm_pass_wants(pass, 1)) {
        tlm_status status = ops_rule_loop(pass, 1, 0, loop, in[is_greater], in[!is_greater], !wants_left);
        if (status != TLM_OK)
            return status;
    }
    return wants_left ? ops_rule_loop(pass, 0, 0, loop, in[!is_greater], in[is_greater], true) : TLM_OK;
}

static tlm_status rule_maximum(tlm_pass *pass)
{
    return rule_extreme(pass, true);
}

static tlm_status rule_minimum(tlm_pass *pass)
{
    return rule_extreme(pass, false);
}

/* ---- where ---- */

static tlm_status forward_where(ops_call *call)
{
    const tlm_tensor *in = call->in;
    ops_call values = {.inputs = 2, .in = in + 1};
    uint8_t dtype = ops_common_dtype(&values);
    uint32_t device = ops_common_device(&values);
    if (!dtype || in[0].dtype != TLM_BOOL || (in[0].object && device != in[0].device && (in[1].object || in[2].object)))
        return (tlm_status)OPS_NOT_HERE;
    call->params.count = 0;
    tlm_status status = ops_elementwise(call, ops_element(OPS_CHOOSE, dtype, NULL));
    if (status != TLM_OK || !call->records)
        return status;
    ops_note_repeated(call);
    ops_save_input(call, 0);
    return TLM_OK;
}

static tlm_status rule_where(tlm_pass *pass)
{
    static const double kept[][2] = {{1}, {0}};
    uint8_t dtype = tlm_pass_grad(pass)->dtype;
    const tlm_tensor *condition = tlm_pass_saved(pass, 0);
    for (uint32_t input = 1; input < 3; input++) {
        if (!tlm_pass_wants(pass, input))
            continue;
        bool last = input == 2 || !tlm_pass_wants(pass, 2);
        ops_loop loop = ops_element(OPS_CHOOSE_RULE, dtype, kept[input - 1]);
        tlm_status status = ops_rule_loop(pass, input, 0, loop, condition, NULL, last);
        if (status != TLM_OK)
            return status;
    }
    return TLM_OK;
}

/* ---- clip ---- */

static tlm_status forward_clip(ops_call *call)
{
    uint8_t dtype = ops_common_dtype(call);
    if (!dtype)
        return (tlm_status)OPS_NOT_HERE;
    call->params.count = 0;
    tlm_status status = ops_elementwise(call, ops_element(OPS_CLIP, dtype, call->params.x));
    if (status == TLM_OK && call->records)
        ops_save_input(call, 0);
    return status;
}

/* Between the limits, and at them, the gradient passes. */
static tlm_status rule_clip(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    ops_loop loop = ops_element(OPS_CLIP_RULE, tlm_pass_grad(pass)->dtype, params->x);
    return ops_rule_loop(pass, 0, 0, loop, tlm_pass_saved(pass, 0), NULL, true);
}

static const ops_row rows[] = {
    {"maximum", "x, y", 2, 2, true, forward_maximum, rule_maximum},
    {"minimum", "x, y", 2, 2, true, forward_minimum, rule_minimum},
    {"where", "condition", 3, 3, true, forward_where, rule_where},
    {"clip", "x", 1, 1, true, forward_clip, rule_clip},
};
const ops_family ops_selections = {rows, sizeof rows / sizeof *rows};
