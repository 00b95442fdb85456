/* SPDX-License-Identifier: MIT
 * pyheap.h: what source_numpy.c must tell source_pyheap.c.
 */
#ifndef TLMI_PYHEAP_H
#define TLMI_PYHEAP_H

#include "internal.h"

/* True while NumPy allocates, resizes or frees array data in this thread. From NumPy 2.5 on that goes through Python's raw
 * allocator; it is tracked as arrays and must not count as Python's heap as well. */
extern __thread bool tlmi_pyheap_is_array;
#endif
