/* SPDX-License-Identifier: MIT
 * handover.c: one count changes hands, out of a scope as well: what a move into a field and a put into a pool have in common.
 */
#include "memory/memory.h"

static const tlm_holder floating = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);

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
