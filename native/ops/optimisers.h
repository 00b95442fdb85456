/* SPDX-License-Identifier: MIT
 * optimisers.h: the steps of SGD and Adam, each in one pass over parameter, gradient and state, in place.
 *
 * Nothing is allocated and nothing recorded: the caller says that the parameter is written (tlm_object_written). All tensors of
 * a call are float32, or all float64, of one shape, with any strides; what is written must not have a step 0 along an axis
 * longer than 1. A gradient may (one that was never spread out), and may be one number (object 0). The arithmetic is that of
 * torch.optim in the dtype of the tensors, with the factors computed in float64. Statuses: TLM_BAD_ARGUMENT (shapes, dtypes or
 * strides that do not fit), TLM_FREED; then nothing has changed. Any thread; one at a time for a parameter.
 */
#ifndef TLMEM_OPS_OPTIMISERS_H
#define TLMEM_OPS_OPTIMISERS_H

#include "ops/ops.h"

typedef struct {
    double lr, momentum, weight_decay; /* weight_decay: times the parameter, added to the gradient */
    bool nesterov;
} ops_sgd;
/* parameter -= lr * gradient; with momentum: -= lr * velocity, where velocity = momentum * velocity + gradient, and in the
 * first step velocity = gradient: what it held before is not read. `velocity` is NULL when momentum is 0. */
tlm_status ops_sgd_step(const ops_sgd *sgd, const tlm_tensor *parameter, const tlm_tensor *gradient,
                        const tlm_tensor *velocity, bool first);

typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
} ops_adam;
/* `step` counts from 1 on; both moments are zeros before the first. */
tlm_status ops_adam_step(const ops_adam *adam, int64_t step, const tlm_tensor *parameter, const tlm_tensor *gradient,
                         const tlm_tensor *mean, const tlm_tensor *square);
#endif
