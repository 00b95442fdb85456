/* SPDX-License-Identifier: MIT
 * layouts.h: where the elements of a tensor lie: other shapes of the same memory, parts, and copies that lie row by row.
 *
 * Nothing here computes with elements, and only ops_made_dense and ops_zeros take memory. Functions that return nothing
 * cannot fail.
 */
#ifndef TLMEM_LAYOUTS_H
#define TLMEM_LAYOUTS_H

#include "ops/ops.h"

/* ---- shapes of the same memory ---- */
/* The same elements, row by row, in another shape of as many: false when strides cannot say so (then nothing is filled). */
bool ops_reshape_in_place(const tlm_tensor *tensor, int axes, const int64_t *shape, tlm_tensor *out);
/* Axes `from` to `to` - 1 as one: how long it is and how far its elements are apart; false when strides cannot say so. */
bool ops_axes_as_one(const tlm_tensor *tensor, int from, int to, int64_t *length, int64_t *step);
/* Without the axis. */
void ops_drop_axis(tlm_tensor *tensor, int axis);
/* With one more axis of length 1, before the axis `place`; the caller knows that there is room. */
void ops_insert_axis(tlm_tensor *tensor, int place);
/* The part of `length` elements from `begin` on along an axis; the caller knows that they are there. */
void ops_narrow(tlm_tensor *tensor, int axis, int64_t begin, int64_t length);

/* ---- memory ---- */
/* `tensor` itself when its elements lie row by row, else a fresh floating copy that does; the caller drops *made (object 0
 * when it is `tensor`). */
tlm_status ops_made_dense(const tlm_tensor *tensor, tlm_tensor *out, tlm_tensor *made);
/* A fresh floating one, all zero. */
tlm_status ops_zeros(uint32_t device, uint8_t dtype, int axes, const int64_t *shape, tlm_tensor *out);

/* ---- parameters of a call ---- */
/* The axis that a parameter means, counted from the end when negative, of `axes` there are. OPS_WRONG_SHAPE. */
tlm_status ops_axis(ops_call *call, int64_t given, int axes, int *out);
/* Writes the shape of an input to params.n from `at` on, behind what the caller gave, and sets params.count. */
void ops_keep_shape(ops_call *call, uint32_t input, uint32_t at);
/* A tensor without memory that has the shape that stands there, and dtype and device of `gradient`. */
void ops_kept_shape(const int64_t *numbers, const tlm_tensor *gradient, tlm_tensor *out);
#endif
