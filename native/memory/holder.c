/* SPDX-License-Identifier: MIT
 * holder.c: who holds an object, and how a count changes hands: acquire, release, move.
 *
 * Two holders stand in the object's slot, further ones in a block that grows; always under the slot's lock.
 *
 * An object has exactly as many holders here as its count says; the same holder may stand here more than once.
 */
#include <string.h>

#include "memory/memory.h"

static _Atomic uint64_t next_number = 1;
static const tlm_holder floating = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);

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

/* ---- one count changes hands ---- */

bool tlmi_is_holder(tlmi_slot_of_object *slot, tlm_holder holder)
{
    return tlmi_holder_replace(slot, holder, holder);
}

bool tlmi_hand_over(tlmi_slot_of_object *slot, tlm_holder from, tlm_holder to, uint32_t site)
{
    if (tlmi_likely(from && slot->holders[0] == from)) /* mostly: it has the first place */
        slot->holders[0] = to;
    else if (!tlmi_holder_replace(slot, from, to))
        return false;
    if (TLM_HOLDER_KIND(from) == TLM_HOLDER_SCOPE)
        tlmi_scope_strike(slot, true);
    if (from != floating)
        tlmi_object_event(TLM_KIND_UNREGISTER, slot, tlmi_object_handle(slot), from, site);
    if (to != floating)
        tlmi_object_event(TLM_KIND_REGISTER, slot, tlmi_object_handle(slot), to, site);
    tlmi_tally_counts(0, 0, (to == floating) - (from == floating));
    return true;
}

static bool may_hold(tlm_holder holder)
{
    tlm_holder_kind kind = TLM_HOLDER_KIND(holder);
    return kind > TLM_HOLDER_FLOATING && kind <= TLM_HOLDER_FOREIGN && kind != TLM_HOLDER_SCOPE;
}

tlm_status tlm_acquire(tlm_object object, tlm_holder holder)
{
    if (object == 0)
        return TLM_OK;
    if (!may_hold(holder))
        return tlmi_fail(TLM_BAD_ARGUMENT, object, holder, 0, 0);
    uint32_t site = tlmi_site_for_events();
    tlmi_label_write_holder(holder);
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, holder, TLM_MISUSE_USE_AFTER_FREE);
    if (!tlmi_holder_add(slot, holder)) {
        tlmi_object_unlock(slot);
        return tlmi_fail(TLM_NO_MEMORY, object, holder, 0, 0);
    }
    tlmi_object_count(slot, 1);
    tlmi_tally_counts(1, 0, 0);
    tlmi_object_event(TLM_KIND_ACQUIRE, slot, object, holder, site);
    tlmi_object_unlock(slot);
    return TLM_OK;
}

static tlm_status not_a_holder(tlmi_slot_of_object *slot, tlm_object object, tlm_holder holder, uint32_t site)
{
    tlmi_misuse(TLM_MISUSE_OVER_RELEASE, slot->device, object, holder, site);
    tlmi_object_unlock(slot);
    return tlmi_fail(TLM_NOT_A_HOLDER, object, holder, 0, 0);
}

tlm_status tlm_release(tlm_object object, tlm_holder holder)
{
    if (object == 0)
        return TLM_OK;
    uint32_t site = tlmi_site_for_events();
    if (TLM_HOLDER_KIND(holder) == TLM_HOLDER_SCOPE)
        return tlmi_fail(TLM_BAD_ARGUMENT, object, holder, 0, 0);
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, holder, TLM_MISUSE_DOUBLE_FREE);
    if (!tlmi_holder_remove(slot, holder))
        return not_a_holder(slot, object, holder, site);
    tlmi_object_let_go(slot, holder, site);
    return TLM_OK;
}

tlm_status tlm_move(tlm_object object, tlm_holder from, tlm_holder to)
{
    if (object == 0)
        return TLM_OK;
    if ((from != floating && !may_hold(from)) || (to != floating && !may_hold(to)))
        return tlmi_fail(TLM_BAD_ARGUMENT, object, from, 0, 0);
    uint32_t site = tlmi_site_for_events();
    tlmi_label_write_holder(to);
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, from, TLM_MISUSE_USE_AFTER_FREE);
    if (!tlmi_holder_replace(slot, from, to))
        return not_a_holder(slot, object, from, site);
    if (from != floating)
        tlmi_object_event(TLM_KIND_UNREGISTER, slot, object, from, site);
    if (to != floating)
        tlmi_object_event(TLM_KIND_REGISTER, slot, object, to, site);
    tlmi_tally_counts(0, 0, (to == floating) - (from == floating));
    tlmi_object_unlock(slot);
    return TLM_OK;
}

uint64_t tlm_holder_number(uint32_t count)
{
    return atomic_fetch_add_explicit(&next_number, count, memory_order_relaxed);
}
