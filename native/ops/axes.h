/* SPDX-License-Identifier: MIT
 * axes.h: what the ops over axes share: shapes that lose axes, tensors seen along the axes that were lost, lanes.
 *
 * A mask of axes has bit i set for axis i. A *lane* is the elements along one axis; in a dense tensor they lie `inner` elements
 * apart.
 */
#ifndef TLMEM_OPS_AXES_H
#define TLMEM_OPS_AXES_H

#include "ops/ops.h"

/* The shape that is left of `tensor` when the axes of `mask` are reduced; returns how many axes. */
int ops_reduced_shape(const tlm_tensor *tensor, uint32_t mask, bool keepdims, int64_t shape[static 8]);
/* How many elements become one. */
int64_t ops_reduced_count(int axes, const int64_t *shape, uint32_t mask);
/* A reduced tensor seen with the shape from before: the same memory, strides 0 along the axes of `mask`. `out` may be `small`. */
void ops_seen_along(const tlm_tensor *small, uint32_t mask, bool keepdims, int axes, const int64_t *shape,
                    tlm_tensor *out);
/* A fresh tensor that `tensor` is reduced into, and how it is seen along the axes. */
tlm_status ops_new_reduced(const tlm_tensor *tensor, uint32_t mask, bool keepdims, tlm_tensor *out, tlm_tensor *seen);
/* Likewise the result of a call that reduces its first input; ops_new_out. */
tlm_status ops_new_reduced_out(ops_call *call, uint32_t mask, bool keepdims, tlm_tensor *seen);

typedef struct {
    int64_t outer, length, inner;
} ops_lanes;
ops_lanes ops_lanes_of(const tlm_tensor *tensor, int axis);

/* Room for the gradient that a rule computes from that of its output, in which that gradient already lies row by row. The same
 * memory or fresh, as ops_new_grad. */
tlm_status ops_grad_copied(tlm_pass *pass, tlm_tensor *out, bool *shared);
/* Gives an input what ops_new_grad made room for. */
tlm_status ops_give_made(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient, bool shared);

/* The rows along the last axis of up to three tensors of one shape, row after row. */
typedef struct {
    int tensors, axes;
    int64_t length;  /* of a row */
    char *at[3];     /* first element of the row */
    int64_t step[3]; /* in bytes, along it */
    const tlm_tensor *of[3];
    int64_t index[8];
} ops_walk;
/* Status TLM_FREED; *some = false: there is no element. */
tlm_status ops_walk_begin(ops_walk *walk, const tlm_tensor *const *tensors, int count, bool *some);
bool ops_walk_next(ops_walk *walk);
#endif
