/* SPDX-License-Identifier: MIT
 * tlmem_poison.h: tells AddressSanitizer which bytes of an arena or pool nobody may touch just now.
 *
 * An allocator that cuts large blocks up hides every overrun and every use after free within a block from a sanitizer. With
 * TLM_POISON where a stretch ends and TLM_UNPOISON where it begins, such a touch is an error like any other. Give the block
 * itself back to its allocator unpoisoned. In a build without AddressSanitizer both are nothing, and their arguments are not
 * evaluated. tlmem's own arenas use them. Stretches begin at multiples of 8; nothing has to be linked.
 */
#ifndef TLMEM_POISON_H
#define TLMEM_POISON_H

#if defined(__SANITIZE_ADDRESS__)
#define TLM_POISON_IS_ON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TLM_POISON_IS_ON 1
#endif
#endif

#ifdef TLM_POISON_IS_ON
#include <sanitizer/asan_interface.h>
/* From here on nobody may touch these bytes. */
#define TLM_POISON(start, bytes) __asan_poison_memory_region((start), (bytes))
/* They are somebody's again. */
#define TLM_UNPOISON(start, bytes) __asan_unpoison_memory_region((start), (bytes))
#else
#define TLM_POISON(start, bytes) ((void)0)
#define TLM_UNPOISON(start, bytes) ((void)0)
#endif
#endif
