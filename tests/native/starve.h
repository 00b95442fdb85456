/* SPDX-License-Identifier: MIT
 * starve.h: makes every allocation of an operation fail in turn, although small blocks come out of larger ones.
 *
 *     STARVED(2, 3, status, operation(...))  runs the operation with 0 to 2 blocks left of each size and the first to third
 *                                            request for pages failing, until nothing is left to fail
 */
#ifndef TLMEM_STARVE_H
#define TLMEM_STARVE_H

#include "check.h"
#include "memory/memory.h"

enum { STARVE_LEAST_BITS = 5, STARVE_MOST_BITS = 11, STARVE_OBJECTS = 1 << 18 };

static void *starve_blocks[STARVE_MOST_BITS + 1];
static tlm_object starve_objects[STARVE_OBJECTS];
static uint32_t starve_object_count;

static inline void starve_give(int bits)
{
    void **block = starve_blocks[bits];
    if (!block)
        return;
    starve_blocks[bits] = *block;
    tlmi_slab_free(block, (size_t)1 << bits);
}

/* Takes every small block but `left` of each size. */
static inline void starve(uint32_t left)
{
    for (int bits = STARVE_LEAST_BITS; bits <= STARVE_MOST_BITS; bits++) {
        void **block;
        tlm_own_fail_after(1);
        while ((block = tlmi_slab_alloc((size_t)1 << bits))) {
            *block = starve_blocks[bits];
            starve_blocks[bits] = block;
            tlm_own_fail_after(1);
        }
        for (uint32_t i = 0; i < left; i++)
            starve_give(bits);
    }
    tlm_own_fail_after(0);
}

static inline void feed(void)
{
    tlm_own_fail_after(0);
    for (int bits = STARVE_LEAST_BITS; bits <= STARVE_MOST_BITS; bits++)
        while (starve_blocks[bits])
            starve_give(bits);
}

/* Takes every slot of an object but `left`. */
static inline void starve_slots(uint32_t left)
{
    tlm_own_fail_after(1);
    while (starve_object_count < STARVE_OBJECTS &&
           tlm_object_adopt(TLM_DEVICE_CPU, NULL, 0, NULL, NULL, &starve_objects[starve_object_count]) == TLM_OK) {
        starve_object_count++;
        tlm_own_fail_after(1);
    }
    tlm_own_fail_after(0);
    CHECK(starve_object_count < STARVE_OBJECTS);
    for (uint32_t i = 0; i < left && starve_object_count; i++)
        CHECK(tlm_free(starve_objects[--starve_object_count]) == TLM_OK);
}

static inline void feed_slots(void)
{
    tlm_own_fail_after(0);
    while (starve_object_count)
        CHECK(tlm_free(starve_objects[--starve_object_count]) == TLM_OK);
}
#endif
