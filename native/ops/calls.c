/* SPDX-License-Identifier: MIT
 * calls.c: what forwards say of a call: what is wrong with it, what its rule will read, which dtype it has, where its result goes.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/ops.h"

tlm_status ops_fail(ops_call *call, tlm_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->message, sizeof call->message, format, arguments);
    va_end(arguments);
    return status;
}

const char *ops_shape_text(const tlm_tensor *tensor, char text[static 160])
{
    int at = snprintf(text, 160, "[");
    for (int axis = 0; axis < tensor->axes; axis++)
        at += snprintf(text + at, 160 - (size_t)at, axis ? ",%lld" : "%lld", (long long)tensor->shape[axis]);
    snprintf(text + at, 160 - (size_t)at, "]");
    return text;
}

static void save(ops_call *call, int32_t what, const tlm_tensor *tensor)
{
    tlm_save *entry = &call->saves[call->save_count++];
    entry->what = what;
    entry->owned = what == TLM_SAVE_EXTRA;
    entry->tensor = *tensor;
}

void ops_save_input(ops_call *call, uint32_t input)
{
    save(call, (int32_t)input, &call->in[input]);
}

void ops_save_output(ops_call *call)
{
    save(call, TLM_SAVE_OUTPUT, &call->out);
}

void ops_save_made(ops_call *call, const tlm_tensor *made)
{
    save(call, TLM_SAVE_EXTRA, made);
}

uint8_t ops_common_dtype(const ops_call *call)
{
    uint8_t dtype = call->in[0].dtype;
    uint32_t device = 0;
    if (dtype != TLM_FLOAT32 && dtype != TLM_FLOAT64)
        return 0;
    for (uint32_t i = 0; i < call->inputs; i++) {
        const tlm_tensor *in = &call->in[i];
        if (in->dtype != dtype || (in->object && device && in->device != device))
            return 0;
        if (in->object)
            device = in->device;
    }
    return dtype;
}

uint32_t ops_common_device(const ops_call *call)
{
    for (uint32_t i = 0; i < call->inputs; i++)
        if (call->in[i].object)
            return call->in[i].device;
    return TLM_DEVICE_CPU;
}

/* ---- shapes among the parameters ---- */

void ops_put_shape(ops_params *params, const tlm_tensor *tensor)
{
    params->n[params->count++] = tensor->axes;
    for (int axis = 0; axis < tensor->axes; axis++)
        params->n[params->count++] = tensor->shape[axis];
}

const int64_t *ops_take_shape(const int64_t *numbers, tlm_tensor *like)
{
    like->axes = (uint8_t)numbers[0];
    memcpy(like->shape, numbers + 1, like->axes * sizeof *numbers);
    return numbers + 1 + like->axes;
}

/* ---- results in memory that the caller gives, with the bits that they would have in fresh memory ----
 * A forward asks ops_new_out for its result and never learns whose memory it is. Before it runs, it is decided whether it may
 * write there at once: rows that check everything before they write, into memory that lies row by row and that no input
 * shares, but for ops of each element, which may write over the very input. All else is computed in fresh memory and copied.
 * Keeps nothing; any thread may call.
 */

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
    ops_writing writing = ops_row_at(row)->writing;
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
