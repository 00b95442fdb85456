/* SPDX-License-Identifier: MIT
 * casts.c: the same values in memory of their own, of another dtype or on another device.
 *
 * n = the dtype wanted (0: the same), the device wanted plus 1 (0: the same); the dtype and device of the input follow. Saves
 * nothing: the rule takes the gradient back to where the input is. Integers and bools have no gradient, so that a cast to
 * them of what needs one is not for the ops (the caller takes it for a constant); from them there is nothing to give.
 */
#include "ops/layouts.h"

static bool has_fractions(uint8_t dtype)
{
    return dtype == TLM_FLOAT32 || dtype == TLM_FLOAT64;
}

static tlm_status copy_to(const tlm_tensor *from, uint8_t dtype, uint32_t device, tlm_tensor *out)
{
    tlm_tensor made;
    tlm_status status = ops_new(device, dtype, from->axes, from->shape, &made);
    if (status)
        return status;
    if ((status = ops_copy(from, &made))) {
        ops_drop(&made);
        return status;
    }
    *out = made;
    return TLM_OK;
}

static tlm_status cast(ops_call *call)
{
    const tlm_tensor *in = &call->in[0];
    int64_t *n = call->params.n;
    uint8_t dtype = n[0] ? (uint8_t)n[0] : in->dtype;
    uint32_t device = n[1] ? (uint32_t)(n[1] - 1) : in->device;
    if (!in->object || (call->records && !has_fractions(dtype)))
        return (tlm_status)OPS_NOT_HERE;
    n[2] = in->dtype;
    n[3] = in->device;
    call->params.count = 4;
    tlm_status status = copy_to(in, dtype, device, &call->out);
    if (status)
        return status;
    tlm_copy_record(in->object, call->out.object, (uint64_t)(ops_elements(in) * ops_item_bytes(dtype)));
    return TLM_OK;
}

static tlm_status cast_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    uint8_t dtype = (uint8_t)params->n[2];
    uint32_t device = (uint32_t)params->n[3];
    tlm_tensor made;
    if (gradient->dtype == dtype && gradient->device == device)
        return tlm_pass_share(pass, 0, gradient);
    if (!gradient->object) { /* one number stays one */
        ops_constant(ops_number_of(gradient), dtype, gradient->axes, gradient->shape, &made);
        made.device = device;
        return tlm_pass_give(pass, 0, &made);
    }
    tlm_status status = copy_to(gradient, dtype, device, &made);
    return status ? status : tlm_pass_give(pass, 0, &made);
}

static const ops_row rows[] = {{"cast", "", 1, 1, true, cast, cast_back}};
const ops_family ops_casts = {rows, 1};
