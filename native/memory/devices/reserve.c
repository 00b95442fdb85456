/* SPDX-License-Identifier: MIT
 * reserve.c: memory that a device took once, ahead of need, and cuts to size.
 *
 * Free stretches form a list by address; neighbours are joined, so that the whole reserve can be had again whatever sizes
 * it was cut to before. First fit: the reserve fills from its begin, and long stretches stay long at its end.
 * At every instant no byte is in two stretches: a child that is forked while a thread was in here may lack some, but hands
 * none out twice.
 */
#include "memory/devices/device.h"

void tlmi_reserve_open(tlmi_reserve *reserve, tlmi_block *memory)
{
    uint64_t bytes = memory->bytes;
    tlmi_spin_lock(&reserve->lock);
    memory->newer = NULL;
    memory->state = TLMI_BLOCK_GONE;
    reserve->first = memory;
    reserve->free_bytes = bytes;
    reserve->stretches = 1;
    atomic_store_explicit(&reserve->bytes, bytes, memory_order_release);
    tlmi_spin_unlock(&reserve->lock);
}

static tlmi_block *end_of(tlmi_block *stretch)
{
    return (tlmi_block *)((uint8_t *)stretch + stretch->bytes);
}

/* Cuts the begin off a stretch; its rest takes its place in the list. */
static void cut_stretch(tlmi_reserve *reserve, tlmi_block **link, uint64_t bytes)
{
    tlmi_block *stretch = *link, *next = stretch->newer;
    uint64_t left = stretch->bytes - bytes;
    if (left == 0) {
        TLMI_STORE_AFTER(*link, next);
        reserve->stretches--;
        return;
    }
    tlmi_block *rest = (tlmi_block *)((uint8_t *)stretch + bytes);
    *rest = (tlmi_block){.newer = next, .bytes = left, .state = TLMI_BLOCK_GONE};
    TLMI_STORE_AFTER(*link, rest);
}

tlmi_block *tlmi_reserve_alloc(tlmi_reserve *reserve, uint64_t bytes)
{
    tlmi_block *found = NULL;
    tlmi_spin_lock(&reserve->lock);
    for (tlmi_block **link = &reserve->first; *link; link = &(*link)->newer) {
        if ((*link)->bytes >= bytes) {
            found = *link;
            cut_stretch(reserve, link, bytes);
            reserve->free_bytes -= bytes;
            break;
        }
    }
    tlmi_spin_unlock(&reserve->lock);
    if (found)
        *found = (tlmi_block){.bytes = bytes, .reserved = true};
    return found;
}

/* Joins a stretch with the next one in the list when nothing lies between them. */
static void join_next(tlmi_reserve *reserve, tlmi_block *stretch)
{
    tlmi_block *next = stretch->newer;
    if (next == NULL || end_of(stretch) != next)
        return;
    stretch->newer = next->newer;
    TLMI_STORE_AFTER(stretch->bytes, stretch->bytes + next->bytes);
    reserve->stretches--;
}

void tlmi_reserve_free(tlmi_reserve *reserve, tlmi_block *block)
{
    tlmi_spin_lock(&reserve->lock);
    tlmi_block *before = NULL;
    for (tlmi_block *at = reserve->first; at && at < block; at = at->newer)
        before = at;
    tlmi_block **link = before ? &before->newer : &reserve->first;
    block->newer = *link;
    TLMI_STORE_AFTER(*link, block);
    reserve->stretches++;
    reserve->free_bytes += block->bytes;
    join_next(reserve, block);
    if (before)
        join_next(reserve, before);
    tlmi_spin_unlock(&reserve->lock);
}

void tlmi_reserve_mend(tlmi_reserve *reserve)
{
    if (!tlmi_spin_is_held(&reserve->lock))
        return;
    reserve->free_bytes = reserve->stretches = 0;
    for (const tlmi_block *at = reserve->first; at; at = at->newer) {
        reserve->free_bytes += at->bytes;
        reserve->stretches++;
    }
    tlmi_spin_unlock(&reserve->lock);
}
