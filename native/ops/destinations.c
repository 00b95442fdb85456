/* SPDX-License-Identifier: MIT
 * destinations.c: results in memory that the caller gives, with the bits that they would have in fresh memory.
 *
 * A forward asks ops_new_out for its result and never learns whose memory it is. Before it runs, it is decided whether it may
 * write there at once: rows that check everything before they write, into memory that lies row by row and that no input
 * shares, but for ops of each element, which may write over the very input. All else is computed in fresh memory and copied.
 * Keeps nothing; any thread may call.
 */
#include "ops/ops.h"

tlm_status ops_new_out(ops_call *call, uint32_t device, uint8_t dtype, int axes, const int64_t *shape)
{
    const tlm_tensor *into = call->into;
    if (into == NULL)
        return ops_new(device, dtype, axes, shape, &call->out);
    if (into->device != (device ? device : TLM_DEVICE_CPU) || into->dtype != dtype || into->axes != axes)
        return (tlm_status)OPS_WRONG_OUT;
    for (int axis = 0; axis < axes; axis++)
        if (into->shape[axis] != shape[axis])
            return (tlm_status)OPS_WRONG_OUT;
    call->out = *into;
    return TLM_OK;
}

void ops_drop_out(const ops_call *call)
{
    if (call->into == NULL)
        ops_drop(&call->out);
}

/* ---- where a result may be written ---- */

/* The first byte of a tensor and the one behind its last; false: it has no elements, or is a number. */
static bool extent(const tlm_tensor *tensor, uintptr_t *begin, uintptr_t *end)
{
    if (tensor->object == 0 || ops_elements(tensor) == 0)
        return false;
    intptr_t low = 0, high = 0;
    for (int axis = 0; axis < tensor->axes; axis++) {
        intptr_t reach = (tensor->shape[axis] - 1) * tensor->strides[axis];
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    uintptr_t first = (uintptr_t)ops_data(tensor);
    *begin = first + (uintptr_t)low;
    *end = first + (uintptr_t)high + (uintptr_t)ops_item_bytes(tensor->dtype);
    return true;
}

/* Whether an input is the destination, element by element. */
static bool is_the_same(const tlm_tensor *in, const tlm_tensor *into)
{
    return in->dtype == into->dtype && ops_same_shape(in, into) && ops_is_dense(in) && ops_data(in) == ops_data(into);
}

static bool may_write_at_once(int row, const ops_call *call, const tlm_tensor *into)
{
    ops_writing writing = ops_row_writing(row);
    uintptr_t begin, end, from, to;
    if (writing == OPS_WRITES_FRESH || !ops_is_dense(into))
        return false;
    if (!extent(into, &begin, &end))
        return true;
    for (uint32_t i = 0; i < call->inputs; i++) {
        if (!extent(&call->in[i], &from, &to) || to <= begin || end <= from)
            continue;
        if (writing != OPS_WRITES_OVER || !is_the_same(&call->in[i], into))
            return false;
    }
    return true;
}

/* ---- running ---- */

/* A view shows the memory that is about to be written: copies it first. */
static tlm_status make_own(ops_call *call)
{
    tlm_tensor made;
    tlm_status status = ops_new_like(&call->out, &made);
    if (status != TLM_OK)
        return status;
    status = ops_copy(&call->out, &made);
    if (status != TLM_OK)
        ops_drop(&made);
    else
        call->out = made;
    call->out_is_view = status != TLM_OK;
    return status;
}

tlm_status ops_move_out(ops_call *call, const tlm_tensor *into)
{
    bool fits = call->out.device == into->device && call->out.dtype == into->dtype && ops_same_shape(&call->out, into);
    tlm_status status = fits ? TLM_OK : (tlm_status)OPS_WRONG_OUT;
    if (fits && call->out_is_view)
        status = make_own(call);
    if (status == TLM_OK)
        status = ops_copy(&call->out, into);
    if (!call->out_is_view)
        ops_drop(&call->out);
    call->out = *into;
    call->out_is_view = false;
    return status;
}

tlm_status ops_forward_into(int row, ops_call *call, const tlm_tensor *into)
{
    call->needs = NULL;
    call->into = may_write_at_once(row, call, into) ? into : NULL;
    tlm_status status = ops_run(ops_row_at(row), call);
    return status == TLM_OK && call->into == NULL ? ops_move_out(call, into) : status;
}
