/* SPDX-License-Identifier: MIT
 * register.c: what comes into a scope and what leaves it before its end: register, unregister, promote, escape.
 *
 * A record is the handle of an object that the scope holds; the object knows its scope and its record. A record is struck,
 * never moved, when its object leaves.
 */
#include <string.h>

#include "memory/memory.h"

/* Under the scope's lock. */
static bool make_room(tlmi_scope *scope)
{
    if (tlmi_likely(scope->records_used < scope->records_room))
        return true;
    uint32_t room = scope->records_room * 2;
    tlm_object *bigger = room > scope->records_room ? tlmi_slab_alloc(room * sizeof *bigger) : NULL;
    if (!bigger)
        return false;
    memcpy(bigger, scope->records, scope->records_used * sizeof *bigger);
    if (scope->records != scope->few)
        tlmi_slab_free(scope->records, scope->records_room * sizeof *scope->records);
    scope->records = bigger;
    scope->records_room = room;
    return true;
}

/* Under the object's lock. */
static tlm_status add_record(tlmi_scope *scope, tlmi_slot_of_object *slot, tlm_object object)
{
    if (scope->closing)
        return TLM_NOT_IN_SCOPE;
    if (!make_room(scope))
        return TLM_NO_MEMORY;
    slot->scope = scope;
    slot->record = scope->records_used++;
    scope->records[slot->record] = object;
    scope->count++;
    return TLM_OK;
}

void tlmi_scope_strike(tlmi_slot_of_object *slot, bool escaped)
{
    tlmi_scope *scope = slot->scope;
    tlmi_spin_lock(&scope->lock);
    if (slot->record + 1 == scope->records_used && !scope->closing)
        scope->records_used--;
    else
        __atomic_store_n(&scope->records[slot->record], 0, __ATOMIC_RELAXED);
    *(escaped ? &scope->escaped : &scope->frees) += 1;
    tlmi_spin_unlock(&scope->lock);
    slot->scope = NULL;
}

static tlm_status register_twice(tlmi_slot_of_object *slot, tlm_object object, uint32_t site)
{
    tlm_holder holder = TLM_HOLDER(TLM_HOLDER_SCOPE, slot->scope->id);
    tlmi_misuse(TLM_MISUSE_DOUBLE_REGISTER, slot->device, object, holder, site);
    tlmi_object_unlock(slot);
    return tlmi_fail(TLM_ALREADY_REGISTERED, object, holder, 0, 0);
}

/* Makes the scope the holder: of the count of `from`, or of a floating object's, or of one more count when `from` is 0 and
 * nobody lets it float. The object is locked; the scope is, too. */
static tlm_status hold(tlmi_scope *scope, tlmi_slot_of_object *slot, tlm_object object, tlm_holder from, uint32_t site)
{
    tlm_holder floating = TLM_HOLDER(TLM_HOLDER_FLOATING, 0), holder = tlmi_scope_holder(scope);
    bool taken = tlmi_holder_replace(slot, from ? from : floating, holder);
    if (!taken && from)
        return TLM_NOT_A_HOLDER;
    if (!taken && !tlmi_holder_add(slot, holder))
        return TLM_NO_MEMORY;
    tlm_status status = add_record(scope, slot, object);
    if (status != TLM_OK) {
        if (taken)
            tlmi_holder_replace(slot, holder, from ? from : floating);
        else
            tlmi_holder_remove(slot, holder);
        return status;
    }
    if (!taken) {
        tlmi_object_count(slot, 1);
        tlmi_tally_counts(1, 0, 0);
        tlmi_object_event(TLM_KIND_ACQUIRE, slot, object, holder, site);
        return TLM_OK;
    }
    bool was_floating = !from || from == floating;
    if (was_floating)
        tlmi_tally_counts(0, 0, -1);
    else
        tlmi_object_event(TLM_KIND_UNREGISTER, slot, object, from, site);
    tlmi_object_event(TLM_KIND_REGISTER, slot, object, holder, site);
    return TLM_OK;
}

/* In the innermost scope of this strand, or, where that is NULL, in the one of this id. */
static tlm_status register_object(tlmi_scope *innermost, uint64_t id, tlm_object object, tlm_holder from)
{
    uint32_t site = tlmi_site_for_events();
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, from, TLM_MISUSE_USE_AFTER_FREE);
    if (slot->scope)
        return register_twice(slot, object, site);
    tlmi_scope *scope = innermost ? innermost : tlmi_scope_lock(id);
    if (innermost)
        tlmi_spin_lock(&innermost->lock);
    tlm_status status = TLM_NOT_IN_SCOPE;
    if (scope) {
        status = hold(scope, slot, object, from, site);
        tlmi_spin_unlock(&scope->lock);
    }
    if (status == TLM_NOT_A_HOLDER)
        tlmi_misuse(TLM_MISUSE_OVER_RELEASE, slot->device, object, from, site);
    tlmi_object_unlock(slot);
    return status == TLM_OK ? TLM_OK : tlmi_fail(status, object, from, 0, id);
}

tlm_status tlm_register(tlm_object object)
{
    if (object == 0)
        return TLM_OK;
    tlmi_scope *innermost = tlmi_scope_innermost(tlmi_strand_here());
    if (!innermost)
        return tlmi_fail(TLM_NOT_IN_SCOPE, object, 0, 0, 0);
    return register_object(innermost, 0, object, 0);
}

tlm_status tlm_register_in(uint64_t scope, tlm_object object)
{
    return object == 0 ? TLM_OK : register_object(NULL, scope, object, 0);
}

tlm_status tlm_register_from(uint64_t scope, tlm_object object, tlm_holder from)
{
    return object == 0 ? TLM_OK : register_object(NULL, scope, object, from);
}

/* Takes an object out of its scope and gives the count to `to`. */
static tlm_status hand_over(tlm_object object, tlm_holder to, tlm_kind kind)
{
    uint32_t site = tlmi_site_for_events();
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, to, TLM_MISUSE_USE_AFTER_FREE);
    tlm_status status = TLM_OK;
    if (!slot->scope)
        status =
            kind != TLM_KIND_ESCAPE || tlmi_scope_innermost(tlmi_strand_here()) ? TLM_NOT_REGISTERED : TLM_NOT_IN_SCOPE;
    else if (slot->flags & TLM_FLAG_ARENA)
        status = TLM_IN_ARENA;
    if (status != TLM_OK) {
        tlm_misuse misuse = status == TLM_NOT_IN_SCOPE ? TLM_MISUSE_NOT_IN_SCOPE
                            : status == TLM_IN_ARENA   ? TLM_MISUSE_OUTLIVES_FRAME
                                                       : TLM_MISUSE_UNPAIRED_REGISTER;
        tlmi_misuse(misuse, slot->device, object, to, site);
        tlmi_object_unlock(slot);
        return tlmi_fail(status, object, to, 0, 0);
    }
    tlm_holder holder = tlmi_scope_holder(slot->scope);
    tlmi_holder_replace(slot, holder, to);
    tlmi_scope_strike(slot, true);
    bool floats = TLM_HOLDER_KIND(to) == TLM_HOLDER_FLOATING;
    if (floats)
        tlmi_tally_counts(0, 0, 1);
    else
        slot->flags |= TLM_FLAG_ESCAPED;
    tlmi_object_event(kind, slot, object, kind == TLM_KIND_ESCAPE ? to : holder, site);
    tlmi_object_unlock(slot);
    return TLM_OK;
}

tlm_status tlm_unregister(tlm_object object)
{
    return object == 0 ? TLM_OK : hand_over(object, TLM_HOLDER(TLM_HOLDER_FLOATING, 0), TLM_KIND_UNREGISTER);
}

tlm_status tlm_promote(tlm_object object)
{
    return object == 0 ? TLM_OK : hand_over(object, TLM_HOLDER(TLM_HOLDER_FLOATING, 0), TLM_KIND_PROMOTE);
}

tlm_status tlm_escape(tlm_object object, tlm_holder to)
{
    tlm_holder_kind kind = TLM_HOLDER_KIND(to);
    if (object == 0)
        return TLM_OK;
    if (kind <= TLM_HOLDER_SCOPE || kind > TLM_HOLDER_FOREIGN)
        return tlmi_fail(TLM_BAD_ARGUMENT, object, to, 0, 0);
    tlmi_label_write_holder(to);
    return hand_over(object, to, TLM_KIND_ESCAPE);
}
