/* SPDX-License-Identifier: MIT
 * optimisers.c: the steps of SGD and Adam in place.
 *
 * Owns nothing, keeps nothing. Rows that lie side by side take a loop that the compiler makes wide; all others the same loop
 * by strides.
 */
#include <math.h>

#include "ops/optimisers.h"

/* Factors of a step, as the loops want them. */
typedef struct {
    double lr, momentum, weight_decay;
    bool nesterov, first;
} sgd_factors;
typedef struct {
    double step_size, beta1, beta2, eps, weight_decay, root_of_correction;
} adam_factors;

#define OPS_BOTH "ops/optimiser_loops.h"
#include "ops/both_dtypes.h"

static bool fits(const tlm_tensor *parameter, const tlm_tensor *other, bool written)
{
    if (other->dtype != parameter->dtype || other->axes != parameter->axes || (written && !other->object))
        return false;
    for (int i = 0; i < parameter->axes; i++) {
        bool repeated = written && other->strides[i] == 0 && other->shape[i] > 1;
        if (repeated || other->shape[i] != parameter->shape[i])
            return false;
    }
    return true;
}

/* tensors[0] is the parameter, tensors[1] the gradient; all but that are written. */
static tlm_status check(const tlm_tensor *const *tensors, int count)
{
    const tlm_tensor *parameter = tensors[0];
    if (parameter->dtype != TLM_FLOAT32 && parameter->dtype != TLM_FLOAT64)
        return TLM_BAD_ARGUMENT;
    for (int i = 0; i < count; i++)
        if (!fits(parameter, tensors[i], i != 1))
            return TLM_BAD_ARGUMENT;
    return TLM_OK;
}

tlm_status ops_sgd_step(const ops_sgd *sgd, const tlm_tensor *parameter, const tlm_tensor *gradient,
                        const tlm_tensor *velocity, bool first)
{
    const tlm_tensor *tensors[] = {parameter, gradient, velocity};
    int count = velocity ? 3 : 2;
    sgd_factors factors = {sgd->lr, sgd->momentum, sgd->weight_decay, sgd->nesterov, first};
    tlm_status status = check(tensors, count);
    if (status != TLM_OK || ops_elements(parameter) == 0)
        return status;
    bool wide = parameter->dtype == TLM_FLOAT64;
    ops_row_call plain = wide ? sgd_plain_float64 : sgd_plain_float32;
    ops_row_call moving = wide ? sgd_moving_float64 : sgd_moving_float32;
    return ops_each_row(tensors, count, velocity ? moving : plain, &factors);
}

tlm_status ops_adam_step(const ops_adam *adam, int64_t step, const tlm_tensor *parameter, const tlm_tensor *gradient,
                         const tlm_tensor *mean, const tlm_tensor *square)
{
    const tlm_tensor *tensors[] = {parameter, gradient, mean, square};
    tlm_status status = step < 1 ? TLM_BAD_ARGUMENT : check(tensors, 4);
    if (status != TLM_OK || ops_elements(parameter) == 0)
        return status;
    adam_factors factors = {
        .step_size = adam->lr / (1 - pow(adam->beta1, (double)step)),
        .beta1 = adam->beta1,
        .beta2 = adam->beta2,
        .eps = adam->eps,
        .weight_decay = adam->weight_decay,
        .root_of_correction = sqrt(1 - pow(adam->beta2, (double)step)),
    };
    return ops_each_row(tensors, 4, parameter->dtype == TLM_FLOAT64 ? adam_float64 : adam_float32, &factors);
}
