/* SPDX-License-Identifier: MIT
 * size_class.c: size classes, and the free blocks of each that a device keeps: which goes first when there are too many.
 *
 * Sizes are rounded up to classes, four to each power of two (from 16 KiB on these are whole pages), so that a request finds
 * what one of nearly its size gave back. Each class has its own lock and a list, newest first. To make room, the block that
 * has been free longest goes first, of whatever class: what a program uses again it uses soon (and takes from the other end
 * of the list), so that this finds the sizes of a phase that is over. To take the largest first would need fewer calls of the
 * driver, but these cost most to get back: each of their pages is made anew.
 */
#include "memory/devices/device.h"

uint32_t tlmi_class_of(uint64_t bytes)
{
    if (bytes <= 256)
        return (uint32_t)((bytes + 63) / 64) - 1;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(bytes - 1);
    return 4 + (power - 8) * 4 + (uint32_t)((bytes - 1) >> (power - 2) & 3);
}

uint64_t tlmi_class_bytes(uint32_t class)
{
    if (class < 4)
        return (uint64_t)(class + 1) * 64;
    uint32_t power = 8 + (class - 4) / 4;
    return (UINT64_C(1) << power) + ((uint64_t)((class - 4) % 4 + 1) << (power - 2));
}

static void note_oldest(tlmi_device *device, uint32_t class)
{
    const tlmi_block *oldest = device->classes[class].oldest;
    atomic_store_explicit(&device->oldest[class], oldest ? oldest->stamp : UINT64_MAX, memory_order_relaxed);
}

void tlmi_class_push(tlmi_device *device, tlmi_block *block)
{
    tlmi_size_class *class = &device->classes[block->class];
    uint64_t puts = atomic_load_explicit(&device->puts, memory_order_relaxed) + 1;
    atomic_store_explicit(&device->puts, puts, memory_order_relaxed); /* two threads may get the same: no matter */
    block->stamp = puts;
    block->state = TLMI_BLOCK_FREE;
    block->newer = NULL;
    block->older = class->newest;
    TLMI_STORE_AFTER(class->newest, block);
    class->free_count++;
    if (block->older) {
        block->older->newer = block;
    } else {
        class->oldest = block;
        note_oldest(device, block->class);
    }
}

void tlmi_class_unlink(tlmi_device *device, tlmi_block *block)
{
    tlmi_size_class *class = &device->classes[block->class];
    TLMI_STORE_AFTER(*(block->newer ? &block->newer->older : &class->newest), block->older);
    class->free_count--;
    if (block->older) {
        block->older->newer = block->newer;
    } else {
        class->oldest = block->newer;
        note_oldest(device, block->class);
    }
}

void tlmi_class_return(tlmi_device *device, tlmi_block *block)
{
    if (block->reserved)
        tlmi_reserve_free(&device->reserve, block);
    else
        tlmi_device_free(device, block);
}

static uint32_t class_of_oldest(tlmi_device *device)
{
    uint32_t found = TLMI_CLASSES;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < TLMI_CLASSES; i++) {
        uint64_t stamp = atomic_load_explicit(&device->oldest[i], memory_order_relaxed);
        if (stamp < least) {
            least = stamp;
            found = i;
        }
    }
    return found;
}

uint64_t tlmi_class_return_oldest(tlmi_device *device)
{
    for (;;) {
        uint32_t class = class_of_oldest(device);
        if (class == TLMI_CLASSES)
            return 0;
        tlmi_spin_lock(&device->classes[class].lock);
        tlmi_block *block = device->classes[class].oldest;
        if (block) {
            tlmi_class_unlink(device, block);
            block->state = TLMI_BLOCK_GONE;
        }
        tlmi_spin_unlock(&device->classes[class].lock);
        if (block == NULL)
            continue; /* another thread was faster */
        uint64_t bytes = block->bytes;
        atomic_fetch_sub_explicit(&device->kept_bytes, bytes, memory_order_relaxed);
        tlmi_buffers_event(device, TLM_KIND_POOL_PRUNE, bytes);
        tlmi_class_return(device, block);
        return bytes;
    }
}

uint64_t tlmi_class_shrink(tlmi_device *device, uint64_t target)
{
    uint64_t bytes = 0, returned = 1;
    while (returned && atomic_load_explicit(&device->kept_bytes, memory_order_relaxed) > target)
        bytes += returned = tlmi_class_return_oldest(device);
    return bytes;
}

static void mend_class(tlmi_device *device, uint32_t number)
{
    tlmi_size_class *class = &device->classes[number];
    tlmi_block *newer = NULL;
    class->free_count = 0;
    for (tlmi_block *block = class->newest; block; block = block->older) {
        block->newer = newer;
        newer = block;
        class->free_count++;
    }
    class->oldest = newer;
    note_oldest(device, number);
}

void tlmi_class_mend(tlmi_device *device)
{
    uint64_t kept = 0;
    for (uint32_t i = 0; i < TLMI_CLASSES; i++) {
        tlmi_size_class *class = &device->classes[i];
        if (tlmi_spin_is_held(&class->lock)) {
            mend_class(device, i);
            tlmi_spin_unlock(&class->lock);
        }
        kept += class->free_count * (tlmi_class_bytes(i) + TLMI_BLOCK_BYTES);
    }
    atomic_store(&device->kept_bytes, kept); /* without the room that threads had set aside */
}
