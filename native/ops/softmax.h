/* SPDX-License-Identifier: MIT
 * softmax.h: what the files of the family of softmaxes share: the size of a block, and the cross entropy's row.
 */
#ifndef TLMEM_OPS_SOFTMAX_H
#define TLMEM_OPS_SOFTMAX_H

#include "ops/axes.h"

/* Elements and rows of a block: elements stay in the first cache, also as float64. Below SHORT_ROW a call costs more than it
 * saves. */
enum { BLOCK_ELEMENTS = 2048, BLOCK_ROWS = 64, SHORT_ROW = 16 };

/* ---- cross_entropy.c ---- */
tlm_status ops_cross_entropy_forward(ops_call *call);
tlm_status ops_cross_entropy_backward(tlm_pass *pass);
#endif
