/* SPDX-License-Identifier: MIT
 * dropouts.c: dropout: each element becomes 0 with probability p, what stays is divided by 1 - p.
 *
 * x[0]: p. n[0]: seed, n[1]: counter. Whether an element stays is a function of seed, counter and its number alone, so that
 * the same parameters give the same bits again, in whatever order; a call uses the counters from n[1] on, one for each two
 * elements. The function is the output of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * 2014), whose n-th number can be had directly. Saved is which elements stay, a byte each, and never the input.
 */
#include <string.h>

#include "ops/layouts.h"

static inline uint64_t random_word(uint64_t seed, uint64_t counter)
{
    uint64_t word = seed + (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);
    word = (word ^ word >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ word >> 27) * UINT64_C(0x94D049BB133111EB);
    return word ^ word >> 31;
}

static double scale_of(double p)
{
    return p < 1 ? 1 / (1 - p) : 0;
}

/* Fills the mask: 1 where an element stays. */
static void draw(uint8_t *mask, int64_t count, const ops_params *params)
{
    uint64_t seed = (uint64_t)params->n[0], counter = (uint64_t)params->n[1];
    uint64_t least = (uint64_t)(params->x[0] * 4294967296.0);
    int64_t i = 0;
    for (; i + 1 < count; i += 2) {
        uint64_t word = random_word(seed, counter++);
        mask[i] = (word & UINT32_MAX) >= least;
        mask[i + 1] = word >> 32 >= least;
    }
    if (i < count)
        mask[i] = (random_word(seed, counter) & UINT32_MAX) >= least;
}

/* value, mask, out: what does not stay is 0, whatever it was. By bits, since nobody can predict a branch on random bits. */
#define KEEP_LOOP(NAME, TYPE, BITS)                                                                                    \
    static inline TYPE NAME##_one(TYPE value, uint8_t stays)                                                           \
    {                                                                                                                  \
        BITS bits;                                                                                                     \
        memcpy(&bits, &value, sizeof bits);                                                                            \
        bits &= (BITS)0 - stays;                                                                                       \
        memcpy(&value, &bits, sizeof bits);                                                                            \
        return value;                                                                                                  \
    }                                                                                                                  \
    static void NAME(char **arguments, const intptr_t *count, const intptr_t *strides, void *data)                     \
    {                                                                                                                  \
        TYPE scale = (TYPE) * (double *)data;                                                                          \
        if (strides[0] == sizeof(TYPE) && strides[1] == 1 && strides[2] == sizeof(TYPE)) { /* can be vectorised */     \
            const TYPE *value = (TYPE *)arguments[0];                                                                  \
            const uint8_t *mask = (uint8_t *)arguments[1];                                                             \
            TYPE *out = (TYPE *)arguments[2];                                                                          \
            for (intptr_t i = 0; i < *count; i++)                                                                      \
                out[i] = NAME##_one(value[i] * scale, mask[i]);                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        for (intptr_t i = 0; i < *count; i++) {                                                                        \
            TYPE value = *(TYPE *)(arguments[0] + i * strides[0]) * scale;                                             \
            *(TYPE *)(arguments[2] + i * strides[2]) = NAME##_one(value, (uint8_t)arguments[1][i * strides[1]]);       \
        }                                                                                                              \
    }
KEEP_LOOP(keep_float32, float, uint32_t)
KEEP_LOOP(keep_float64, double, uint64_t)

static tlm_status keep(const tlm_tensor *value, const tlm_tensor *mask, const tlm_tensor *out, double p)
{
    double scale = scale_of(p);
    const tlm_tensor *const tensors[] = {value, mask, out};
    return ops_each_row(tensors, 3, out->dtype == TLM_FLOAT64 ? keep_float64 : keep_float32, &scale);
}

static tlm_status fill_out(ops_call *call, const tlm_tensor *mask, const tlm_tensor *out)
{
    uint8_t *bytes = ops_data(mask);
    if (!bytes)
        return ops_elements(mask) ? TLM_FREED : TLM_OK;
    draw(bytes, ops_elements(mask), &call->params);
    return keep(&call->in[0], mask, out, call->params.x[0]);
}

static tlm_status dropout(ops_call *call)
{
    const tlm_tensor *in = &call->in[0];
    double p = call->params.x[0];
    tlm_tensor mask, made;
    if (!in->object || !ops_common_dtype(call))
        return (tlm_status)OPS_NOT_HERE;
    if (!(p >= 0 && p <= 1))
        return ops_fail(call, (tlm_status)OPS_WRONG_VALUE, "the probability of dropout is within 0 and 1, not %g", p);
    tlm_status status = ops_new(in->device, TLM_BOOL, in->axes, in->shape, &mask);
    if (status)
        return status;
    if ((status = ops_new_like(in, &made))) {
        ops_drop(&mask);
        return status;
    }
    if ((status = fill_out(call, &mask, &made))) {
        ops_drop(&mask);
        ops_drop(&made);
        return status;
    }
    call->out = made;
    if (call->records)
        ops_save_made(call, &mask);
    else
        ops_drop(&mask);
    return TLM_OK;
}

static tlm_status dropout_back(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    tlm_tensor made;
    bool shared;
    tlm_status status = ops_new_grad(pass, &made, &shared);
    if (status)
        return status;
    if ((status = keep(tlm_pass_grad(pass), tlm_pass_saved(pass, 0), &made, params->x[0]))) {
        if (!shared)
            ops_drop(&made);
        return status;
    }
    return shared ? tlm_pass_share(pass, 0, &made) : tlm_pass_give(pass, 0, &made);
}

static const ops_row rows[] = {{"dropout", "mask", 1, 1, true, dropout, dropout_back, OPS_OTHER, OPS_WRITES_FRESH}};
const ops_family ops_dropouts = {rows, 1};
