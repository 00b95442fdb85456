/* SPDX-License-Identifier: MIT
 * holder.c: who holds an object: two names in its slot, further ones in a block that grows. Always under the slot's lock.
 *
 * An object has exactly as many holders here as its count says; the same holder may stand here more than once.
 */
#include <string.h>

#include "memory/memory.h"

enum { INLINE = 2, FIRST_ROOM = 6 }; /* with room and use, the first block is one of 64 bytes */

/* The last one in is the likeliest to go. */
static inline tlm_holder *find(tlmi_slot_of_object *slot, tlm_holder holder)
{
    for (uint64_t i = tlmi_unlikely(slot->more != NULL) ? slot->more[1] : 0; i > 0; i--)
        if (slot->more[1 + i] == holder)
            return &slot->more[1 + i];
    if (slot->holders[1] == holder)
        return &slot->holders[1];
    return slot->holders[0] == holder ? &slot->holders[0] : NULL;
}

static bool grow(tlmi_slot_of_object *slot)
{
    uint64_t room = slot->more ? slot->more[0] : 0, bigger = room ? 2 * room + 2 : FIRST_ROOM;
    uint64_t *block = tlmi_slab_alloc((size_t)(2 + bigger) * sizeof *block);
    if (!block)
        return false;
    if (slot->more) {
        memcpy(block, slot->more, (size_t)(2 + room) * sizeof *block);
        tlmi_slab_free(slot->more, (size_t)(2 + room) * sizeof *block);
    }
    block[0] = bigger;
    slot->more = block;
    return true;
}

bool tlmi_holder_add(tlmi_slot_of_object *slot, tlm_holder holder)
{
    tlm_holder *place = slot->holders[0] == 0 ? &slot->holders[0] : &slot->holders[1];
    if (tlmi_likely(*place == 0)) {
        *place = holder;
        return true;
    }
    if ((!slot->more || slot->more[1] == slot->more[0]) && !grow(slot))
        return false;
    slot->more[2 + slot->more[1]++] = holder;
    return true;
}

bool tlmi_holder_remove(tlmi_slot_of_object *slot, tlm_holder holder)
{
    tlm_holder *found = holder ? find(slot, holder) : NULL;
    if (!found)
        return false;
    if (slot->more && slot->more[1] > 0) {
        *found = slot->more[1 + slot->more[1]];
        slot->more[1]--;
    } else {
        *found = 0;
    }
    return true;
}

bool tlmi_holder_replace(tlmi_slot_of_object *slot, tlm_holder from, tlm_holder to)
{
    tlm_holder *found = from ? find(slot, from) : NULL;
    if (found)
        *found = to;
    return found != NULL;
}

bool tlmi_holder_has_kind(const tlmi_slot_of_object *slot, tlm_holder_kind kind)
{
    for (int i = 0; i < INLINE; i++)
        if (TLM_HOLDER_KIND(slot->holders[i]) == kind)
            return true;
    for (uint64_t i = 0; slot->more && i < slot->more[1]; i++)
        if (TLM_HOLDER_KIND(slot->more[2 + i]) == kind)
            return true;
    return false;
}

uint32_t tlm_object_holders(tlm_object object, tlm_holder *out, uint32_t room)
{
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    uint32_t count = 0;
    if (!slot)
        return 0;
    for (int i = 0; i < INLINE; i++)
        if (slot->holders[i] && count++ < room)
            out[count - 1] = slot->holders[i];
    for (uint64_t i = 0; slot->more && i < slot->more[1]; i++)
        if (count++ < room)
            out[count - 1] = slot->more[2 + i];
    tlmi_object_unlock(slot);
    return count;
}
