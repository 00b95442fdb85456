/* SPDX-License-Identifier: MIT
 * simd.h: how loops of our own over rows of elements are compiled: once for each width of vectors that processors have.
 *
 * NumPy has no loop for a whole row of softmax, of a normalisation or of an optimiser, and several passes over memory instead of
 * one would cost what fusing them saves. A function marked TLMI_SIMD_CLONES is compiled for SSE, AVX2 and AVX-512 and chosen when the
 * program starts; elsewhere, and under sanitizers, it is compiled once. Sums are in lanes of a fixed number, so that the same
 * input gives the same bits on the same machine wherever it lies.
 */
#ifndef TLMI_SIMD_H
#define TLMI_SIMD_H

#include <stdint.h>

#if defined(__GNUC__) && !defined(__clang__)
/* -O2 leaves loops alone whose length is not known when they are compiled; a root that may set errno is not vectorized. */
#pragma GCC optimize("O3", "no-math-errno")
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&                           \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TLMI_SIMD_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define TLMI_SIMD_CLONES
#endif
#define TLMI_INLINE static inline __attribute__((always_inline, unused))
#endif
