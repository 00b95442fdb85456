/* SPDX-License-Identifier: MIT
 * gemm.h: products of stacks of matrices.
 *
 * A matrix is a tensor with two axes at least, any strides; what stands before the last two is a stack of them.
 */
#ifndef TLMEM_MULTIPLY_H
#define TLMEM_MULTIPLY_H

#include "ops/ops.h"

/* c = a @ b. All three have the same axes before the last two; stacks that are repeated have strides 0 there. c is dense, and
 * no part of a or b. TLM_FREED, TLM_OUT_OF_MEMORY (then c is undefined). */
tlm_status ops_multiply(const tlm_tensor *a, const tlm_tensor *b, const tlm_tensor *c);
/* Replaces *matrix by a copy when BLAS could not read it; stacks that are repeated stay so. The caller drops *made (object 0
 * when there is no copy). On failure nothing has changed. */
tlm_status ops_made_suitable(tlm_tensor *matrix, tlm_tensor *made);
/* Sees all axes but the last as one. False when strides do not let it; nothing has changed then. */
bool ops_fold(tlm_tensor *tensor);
#endif
