/* SPDX-License-Identifier: MIT
 * slab.c: small blocks for the runtime's bookkeeping: powers of two from 32 bytes to 2 KiB out of pages of own_memory.c, which are
 * kept for the next request; larger blocks are pages of their own. Thread-safe.
 */
#include <string.h>

#include "platform/platform.h"

enum { LEAST_BITS = 5, MOST_BITS = 11, CLASSES = MOST_BITS - LEAST_BITS + 1, REFILL_BYTES = 65536 };

typedef struct block {
    struct block *next;
} block;

static struct {
    tlmi_spin lock;
    block *free;
} classes[CLASSES];

/* Number of the class, or CLASSES for blocks that are pages of their own. */
static int class_of(size_t bytes)
{
    int bits = LEAST_BITS;
    while (bits <= MOST_BITS && ((size_t)1 << bits) < bytes)
        bits++;
    return bits - LEAST_BITS;
}

/* Cuts fresh pages into blocks of the class. Under its lock. */
static bool refill(int class)
{
    size_t bytes = (size_t)1 << (class + LEAST_BITS);
    uint8_t *pages = tlmi_own_alloc(REFILL_BYTES);
    if (!pages)
        return false;
    for (size_t at = REFILL_BYTES; at >= bytes; at -= bytes) {
        block *fresh = (block *)(pages + at - bytes);
        fresh->next = classes[class].free;
        classes[class].free = fresh;
    }
    return true;
}

void *tlmi_slab_alloc(size_t bytes)
{
    int class = class_of(bytes);
    if (class >= CLASSES)
        return tlmi_own_alloc(bytes);
    tlmi_spin_lock(&classes[class].lock);
    block *taken = classes[class].free || refill(class) ? classes[class].free : NULL;
    if (taken)
        classes[class].free = taken->next;
    tlmi_spin_unlock(&classes[class].lock);
    if (taken)
        memset(taken, 0, bytes);
    return taken;
}

void tlmi_slab_free(void *start, size_t bytes)
{
    int class = class_of(bytes);
    if (!start)
        return;
    if (class >= CLASSES) {
        tlmi_own_free(start, bytes);
        return;
    }
    block *given = start;
    tlmi_spin_lock(&classes[class].lock);
    given->next = classes[class].free;
    classes[class].free = given;
    tlmi_spin_unlock(&classes[class].lock);
}
