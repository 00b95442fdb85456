/* SPDX-License-Identifier: MIT
 * both_dtypes.h: includes the header that OPS_BOTH names twice: its functions for float and for double.
 *
 * In that header REAL is the type of an element, OF(name) the name with the dtype behind it, and DTYPE the dtype.
 */
#include "platform/simd.h"

#define REAL float
#define DTYPE TLM_FLOAT32
#define OF(name) name##_float32
#include OPS_BOTH
#undef REAL
#undef DTYPE
#undef OF

#define REAL double
#define DTYPE TLM_FLOAT64
#define OF(name) name##_float64
#include OPS_BOTH
#undef REAL
#undef DTYPE
#undef OF

#undef OPS_BOTH

#ifndef OPS_BY_DTYPE
/* The function for a dtype with fractions, of the two that are made here. */
#define OPS_BY_DTYPE(dtype, name, ...)                                                                                 \
    ((dtype) == TLM_FLOAT64 ? name##_float64(__VA_ARGS__) : name##_float32(__VA_ARGS__))
#endif
