/* SPDX-License-Identifier: MIT
 * softmax.c: softmax and its logarithm along an axis, and the family that the cross entropy belongs to as well.
 *
 * Params of both: n[0] the axis, from 0 on. Saved is the output. A rule writes its result over the gradient that it gets when
 * nobody else needs that. Any thread.
 */
#include "ops/softmax.h"

#define OPS_BOTH "ops/row_loops.h"
#include "ops/both.h"
#define OPS_BOTH "ops/exponential_rows.h"
#include "ops/both.h"
#define OPS_BOTH "ops/softmax_rows.h"
#include "ops/both.h"
#define OPS_BOTH "ops/softmax_panels.h"
#include "ops/both.h"

typedef void (*rows_call)(const void *from, void *to, int64_t rows, int64_t length);
typedef void (*panel_call)(const void *from, void *to, int64_t length, int64_t apart, int64_t width);
/* What is done with lanes, by dtype (OPS_FLOAT32, OPS_FLOAT64). */
typedef struct {
    rows_call rows[2];
    panel_call panel[2];
} lane_work;

#define WORK(name)                                                                                                     \
    {                                                                                                                  \
        {name##_rows_float32, name##_rows_float64},                                                                    \
        {                                                                                                              \
            name##_panel_float32, name##_panel_float64                                                                 \
        }                                                                                                              \
    }
static const lane_work softmax = WORK(softmax), log_softmax = WORK(log_softmax);
static const lane_work softmax_gradient = WORK(softmax_gradient), log_softmax_gradient = WORK(log_softmax_gradient);

/* Both dense and of one shape. */
static tlm_status work_on_lanes(const lane_work *work, const tlm_tensor *from, const tlm_tensor *to, int axis)
{
    ops_lanes lanes = ops_lanes_of(to, axis);
    if (lanes.outer == 0 || lanes.length == 0 || lanes.inner == 0)
        return TLM_OK;
    const char *in = ops_data(from);
    char *out = ops_data(to);
    if (!in || !out)
        return TLM_FREED;
    int real = to->dtype == TLM_FLOAT64 ? OPS_FLOAT64 : OPS_FLOAT32;
    if (lanes.inner == 1) {
        work->rows[real](in, out, lanes.outer, lanes.length);
        return TLM_OK;
    }
    int64_t item = ops_item_bytes(to->dtype), bytes = lanes.length * lanes.inner * item;
    for (int64_t i = 0; i < lanes.outer; i++, in += bytes, out += bytes)
        for (int64_t j = 0; j < lanes.inner; j += BLOCK_ROWS) {
            int64_t width = lanes.inner - j < BLOCK_ROWS ? lanes.inner - j : BLOCK_ROWS;
            work->panel[real](in + j * item, out + j * item, lanes.length, lanes.inner, width);
        }
    return TLM_OK;
}

static tlm_status forward(ops_call *call, const lane_work *work)
{
    const tlm_tensor *x = &call->in[0];
    int64_t axis = call->params.n[0];
    if (!ops_common_dtype(call) || axis < 0 || axis >= x->axes)
        return (tlm_status)OPS_NOT_HERE;
    tlm_status status = ops_new_out(call, x->device, x->dtype, x->axes, x->shape);
    if (status != TLM_OK)
        return status;
    bool dense = ops_is_dense(x);
    if (!dense)
        status = ops_copy(x, &call->out);
    if (status == TLM_OK)
        status = work_on_lanes(work, dense ? x : &call->out, &call->out, (int)axis);
    if (status != TLM_OK)
        ops_drop_out(call);
    else if (call->records)
        ops_save_output(call);
    return status;
}

static tlm_status backward(tlm_pass *pass, const lane_work *work)
{
    const ops_params *params = tlm_pass_params(pass);
    tlm_tensor out;
    bool shared;
    tlm_status status = ops_grad_copied(pass, &out, &shared);
    if (status != TLM_OK)
        return status;
    status = work_on_lanes(work, tlm_pass_saved(pass, 0), &out, (int)params->n[0]);
    if (status == TLM_OK)
        return ops_give_made(pass, 0, &out, shared);
    if (!shared)
        ops_drop(&out);
    return status;
}

static tlm_status softmax_forward(ops_call *call)
{
    return forward(call, &softmax);
}

static tlm_status log_softmax_forward(ops_call *call)
{
    return forward(call, &log_softmax);
}

static tlm_status softmax_backward(tlm_pass *pass)
{
    return backward(pass, &softmax_gradient);
}

static tlm_status log_softmax_backward(tlm_pass *pass)
{
    return backward(pass, &log_softmax_gradient);
}

static const ops_row rows[] = {
    {"softmax", "output", 1, 1, true, softmax_forward, softmax_backward},
    {"log_softmax", "output", 1, 1, true, log_softmax_forward, log_softmax_backward},
    {"cross_entropy", "logits, target", 2, 2, true, ops_cross_entropy_forward, ops_cross_entropy_backward},
};
const ops_family ops_softmaxes = {rows, sizeof rows / sizeof *rows};
