/* SPDX-License-Identifier: MIT
 * cross_entropy.c: the cross entropy of rows of logits and the numbers of their classes.
 *
 * Inputs: logits [N,C], target [N] of int64, from 0 to C-1. Params: n[0] 0 the mean over N, 1 the sum, 2 one for each row. No
 * softmax is kept, nor made on the way forward: the rule makes it again from the logits, in the memory of their gradient.
 * That costs no exponential more, since the logarithms that could be kept instead need one as well. Any thread.
 */
#include "ops/layouts.h"
#include "ops/softmax.h"

enum { MEAN, SUM, EACH };

#define OPS_BOTH "ops/row_loops.h"
#include "ops/both.h"
#define OPS_BOTH "ops/exponential_rows.h"
#include "ops/both.h"
#define OPS_BOTH "ops/cross_entropy_rows.h"
#include "ops/both.h"

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

tlm_status ops_cross_entropy_forward(ops_call *call)
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

tlm_status ops_cross_entropy_backward(tlm_pass *pass)
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
