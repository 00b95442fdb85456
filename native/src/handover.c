/* SPDX-License-Identifier: MIT
 * handover.c: one count changes hands, out of a scope as well: what a move into a field and a put into a pool have in common.
 */
#include "runtime.h"

static const tlm_holder floating = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);

bool tlmi_is_holder(tlmi_slot_of_object *slot, tlm_holder holder)
{
    bool is_scope = TLM_HOLDER_KIND(holder) == TLM_HOLDER_SCOPE;
    bool is_elsewhere = is_scope && !(slot->scope && slot->scope->id == TLM_HOLDER_NUMBER(holder));
    return !is_elsewhere && tlmi_holder_replace(slot, holder, holder);
}

bool tlmi_hand_over(tlmi_slot_of_object *slot, tlm_holder from, tlm_holder to, uint32_t site)
{
    tlm_object object = tlmi_object_handle(slot);
    if (!tlmi_is_holder(slot, from))
        return false;
    tlmi_holder_replace(slot, from, to);
    if (TLM_HOLDER_KIND(from) == TLM_HOLDER_SCOPE)
        tlmi_scope_strike(slot, true);
    if (from != floating)
        tlmi_object_event(TLM_KIND_UNREGISTER, slot, object, from, site);
    if (to != floating)
        tlmi_object_event(TLM_KIND_REGISTER, slot, object, to, site);
    tlmi_tally_counts(0, 0, (to == floating) - (from == floating));
    return true;
}
