/* SPDX-License-Identifier: MIT
 * ranges.h: sets of bytes as sorted ranges that do not touch, and the memory of many of them.
 */
#ifndef TLMEM_PLAN_RANGES_H
#define TLMEM_PLAN_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t begin, end; /* bytes; end exclusive */
} tlmi_range;

/* Empty when zeroed. `at` lies in a store and moves when the set outgrows its place. */
typedef struct {
    tlmi_range *at;
    uint32_t count, room;
} tlmi_ranges;

typedef struct tlmi_range_block tlmi_range_block;

enum { TLMI_RANGE_ROOMS = 28 };

/* Empty when zeroed. Places that sets have left are kept by their size. */
typedef struct {
    tlmi_range_block *blocks;
    tlmi_range *left[TLMI_RANGE_ROOMS];
    size_t next_bytes;
} tlmi_range_store;

void tlmi_range_store_destroy(tlmi_range_store *store);
/* Adds a range that is not empty. False: no memory, and the set is as it was. */
bool tlmi_ranges_add(tlmi_range_store *store, tlmi_ranges *set, tlmi_range range);
#endif
