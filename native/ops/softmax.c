/* SPDX-License-Identifier: MIT
 * softmax.c: softmax and its logarithm along an axis, and the cross entropy of rows of logits and the numbers of their classes.
 *
 * Params of both: n[0] the axis, from 0 on. Saved is the output. A rule writes its result over the gradient that it gets when
 * nobody else needs that. Any thread.
 */
#include "ops/axes.h"

/* Elements and rows of a block: elements stay in the first cache, also as float64. Below SHORT_ROW a call costs more than it
 * saves. */
enum { BLOCK_ELEMENTS = 2048, BLOCK_ROWS = 64, SHORT_ROW = 16 };
enum { MEAN, SUM, EACH }; /* of the cross entropy */

/* The rows of a cross entropy. */
typedef struct {
    const void *logits; /* dense */
    const char *target;
    int64_t target_step; /* in bytes */
    int64_t rows, classes;
} entropy_rows;

static inline int64_t class_of(const entropy_rows *work, int64_t row)
{
    return *(const int64_t *)(const void *)(work->target + row * work->target_step);
}

#define OPS_BOTH "ops/row_loops.h"
#include "ops/both_dtypes.h"
#define OPS_BOTH "ops/softmax_loops.h"
#include "ops/both_dtypes.h"

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

/* ---- cross entropy ----
 * Inputs: logits [N,C], target [N] of int64, from 0 to C-1. Params: n[0] 0 the mean over N, 1 the sum, 2 one for each row. No
 * softmax is kept, nor made on the way forward: the rule makes it again from the logits, in the memory of their gradient.
 * That costs no exponential more, since the logarithms that could be kept instead need one as well. Any thread.
 */

/* ---- forward ---- */

static tlm_status check_shapes(ops_call *call)
{
    const tlm_tensor *logits = &call->in[0], *target = &call->in[1];
    char first[160], second[160];
    if (logits->axes == 2 && target->axes == 1 && logits->shape[0] == target->shape[0])
        return TLM_OK;
    return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE,
                    "cross_entropy needs logits [N,C] and a target [N], not %.64s and %.64s",
                    ops_shape_text(logits, first), ops_shape_text(target, second));
}

static tlm_status check_target(ops_call *call)
{
    const tlm_tensor *target = &call->in[1];
    int64_t rows = target->shape[0], classes = call->in[0].shape[1];
    const char *numbers = rows ? ops_data(target) : "";
    if (!numbers)
        return TLM_FREED;
    for (int64_t i = 0; i < rows; i++) {
        int64_t number = *(const int64_t *)(const void *)(numbers + i * target->strides[0]);
        if (number < 0 || number >= classes)
            return ops_fail(call, (tlm_status)OPS_WRONG_VALUE,
                            "target[%lld] of cross_entropy is %lld, but the logits have %lld classes, from 0 on",
                            (long long)i, (long long)number, (long long)classes);
    }
    return TLM_OK;
}

/* Losses of dense logits into `out`. */
static tlm_status losses(const tlm_tensor *logits, const tlm_tensor *target, int64_t reduction, const tlm_tensor *out)
{
    int64_t rows = logits->shape[0];
    void *into = rows || reduction != EACH ? ops_data(out) : NULL;
    const void *numbers = rows ? ops_data(target) : NULL, *from = rows ? ops_data(logits) : NULL;
    if ((rows && (!from || !numbers)) || (!into && (rows || reduction != EACH)))
        return TLM_FREED;
    entropy_rows work = {from, numbers, target->strides[0], rows, logits->shape[1]};
    OPS_BY_DTYPE(logits->dtype, row_losses, &work, reduction, into);
    return TLM_OK;
}

static tlm_status cross_entropy_forward(ops_call *call)
{
    const tlm_tensor *logits = &call->in[0], *target = &call->in[1];
    int64_t reduction = call->params.n[0];
    if ((logits->dtype != TLM_FLOAT32 && logits->dtype != TLM_FLOAT64) || target->dtype != TLM_INT64)
        return (tlm_status)OPS_NOT_HERE;
    tlm_tensor dense, made = {0};
    tlm_status status = check_shapes(call);
    if (status == TLM_OK)
        status = check_target(call);
    if (status == TLM_OK)
        status = ops_made_dense(logits, &dense, &made);
    if (status != TLM_OK)
        return status;
    status = ops_new_out(call, logits->device, logits->dtype, reduction == EACH, logits->shape);
    if (status == TLM_OK) {
        status = losses(&dense, target, reduction, &call->out);
        if (status != TLM_OK)
            ops_drop_out(call);
    }
    if (made.object)
        ops_drop(&made);
    if (status == TLM_OK && call->records) {
        ops_save_input(call, 0);
        ops_save_input(call, 1);
    }
    return status;
}

/* ---- backward ---- */

/* Turns logits in dense `out` into their gradients. */
static tlm_status gradients(const tlm_tensor *from, const tlm_tensor *target, const tlm_tensor *gradient,
                            int64_t reduction, const tlm_tensor *out)
{
    int64_t rows = out->shape[0], step = reduction == EACH ? gradient->strides[0] : 0;
    if (rows == 0)
        return TLM_OK;
    const void *in = ops_data(from), *numbers = ops_data(target), *factors = ops_data(gradient);
    void *into = ops_data(out);
    if (!in || !numbers || !factors || !into)
        return TLM_FREED;
    entropy_rows work = {in, numbers, target->strides[0], rows, out->shape[1]};
    double divisor = reduction == MEAN ? (double)rows : 1;
    bool fits = OPS_BY_DTYPE(out->dtype, row_gradients, &work, factors, step, divisor, into);
    return fits ? TLM_OK : TLM_BAD_ARGUMENT;
}

static tlm_status cross_entropy_backward(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *logits = tlm_pass_saved(pass, 0), *target = tlm_pass_saved(pass, 1);
    tlm_tensor made;
    tlm_status status = ops_new_like(logits, &made);
    if (status != TLM_OK)
        return status;
    bool dense = ops_is_dense(logits);
    if (!dense)
        status = ops_copy(logits, &made);
    if (status == TLM_OK)
        status = gradients(dense ? logits : &made, target, tlm_pass_grad(pass), params->n[0], &made);
    if (status == TLM_OK)
        return tlm_pass_give(pass, 0, &made);
    ops_drop(&made);
    return status;
}

static const ops_row rows[] = {
    {"softmax", "output", 1, 1, true, softmax_forward, softmax_backward, .kind = OPS_ALONG, .writing = OPS_WRITES_APART,
     .dtype = OPS_FRACTION, .method = "softmax"},
    {"log_softmax", "output", 1, 1, true, log_softmax_forward, log_softmax_backward, .kind = OPS_ALONG,
     .writing = OPS_WRITES_APART, .dtype = OPS_FRACTION},
    {"cross_entropy", "logits, target", 2, 2, true, cross_entropy_forward, cross_entropy_backward, .kind = OPS_OTHER,
     .writing = OPS_WRITES_APART},
};
const ops_family ops_softmaxes = {rows, sizeof rows / sizeof *rows};
