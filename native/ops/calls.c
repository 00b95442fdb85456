/* SPDX-License-Identifier: MIT
 * calls.c: what forwards say of a call: what is wrong with it, what its rule will read, which dtype it has.
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
