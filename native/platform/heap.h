/* SPDX-License-Identifier: MIT
 * heap.h: the size of a block of the C allocator, under the name that the system has for it.
 */
#ifndef TLMI_HEAP_H
#define TLMI_HEAP_H

#ifdef __APPLE__
#include <malloc/malloc.h>
#define tlmi_usable_bytes malloc_size
#else
#include <malloc.h>
#define tlmi_usable_bytes malloc_usable_size
#endif
#endif
