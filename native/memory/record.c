/* SPDX-License-Identifier: MIT
 * record.c: structs: objects whose fields hold other objects. How a struct ends, its fields first, is in object.c.
 *
 * A field is a holder of its own, so that the trace says which field of which struct still holds a value. The new value is
 * held before the old one is let go, and the two are never locked at once: `x.f = x.f` and `x.f = g(x.f)` are harmless.
 */
#include "memory/memory.h"

enum { FIRST_NUMBER_BITS = 40 };

/* Tells the reader what the field holders of this struct are. `layout`: written to the recording already, or 0. */
static void record_holders(tlm_object object, uint64_t first_number, uint32_t fields, tlm_label layout, uint32_t site)
{
    uint64_t number = first_number & ((UINT64_C(1) << FIRST_NUMBER_BITS) - 1);
    tlmi_event_append(TLM_KIND_HOLDERS, TLM_DEVICE_CPU, object, (uint64_t)layout << FIRST_NUMBER_BITS | number, site,
                      (uint16_t)(fields < 65535 ? fields : 65535));
}

tlm_status tlm_struct_create(tlm_label layout, uint32_t fields, tlm_object *out)
{
    if (fields == 0) {
        *out = 0;
        return TLM_OK;
    }
    uint32_t site = tlmi_site_for_events();
    tlm_label written = tlmi_probe_on() ? tlmi_label_write(layout) : 0;
    size_t bytes = (size_t)fields * sizeof(tlm_object);
    tlm_object *values = tlmi_slab_alloc(bytes);
    tlmi_slot_of_object *slot = values ? tlmi_object_create(TLM_OBJECT_STRUCT, TLM_DEVICE_CPU) : NULL;
    if (!slot) {
        tlmi_slab_free(values, bytes);
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, bytes, fields);
    }
    uint64_t first_number = tlm_holder_number(fields);
    slot->as.record.values = values;
    slot->as.record.first_number = first_number;
    slot->as.record.fields = fields;
    slot->as.record.layout = layout;
    *out = tlmi_object_publish(slot, site);
    if (tlmi_probe_on())
        record_holders(*out, first_number, fields, written, site);
    return TLM_OK;
}

/* The struct, locked, when it has this field; otherwise NULL and *status says why. */
static tlmi_slot_of_object *lock_field(tlm_object object, uint32_t field, tlm_status *status)
{
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot) {
        *status = tlmi_object_missing(object, 0, TLM_MISUSE_USE_AFTER_FREE);
        return NULL;
    }
    *status = slot->type != TLM_OBJECT_STRUCT   ? TLM_WRONG_TYPE
              : field >= slot->as.record.fields ? TLM_BAD_SLOT
                                                : TLM_OK;
    if (*status == TLM_OK)
        return slot;
    tlmi_object_unlock(slot);
    tlmi_fail(*status, object, 0, 0, field);
    return NULL;
}

/* What the field is as a holder. */
static tlm_status field_holder(tlm_object object, uint32_t field, tlm_holder *holder)
{
    tlm_status status = TLM_OK;
    tlmi_slot_of_object *slot = lock_field(object, field, &status);
    if (slot) {
        *holder = TLM_HOLDER(TLM_HOLDER_FIELD, slot->as.record.first_number + field);
        tlmi_object_unlock(slot);
    }
    return status;
}

/* Lets the field's count go. A value that was freed whoever held it has none. */
static void let_field_go(tlm_object value, tlm_holder holder, uint32_t site)
{
    tlmi_slot_of_object *slot = tlmi_object_lock(value);
    if (!slot)
        return;
    if (tlmi_holder_remove(slot, holder))
        tlmi_object_let_go(slot, holder, site);
    else
        tlmi_object_unlock(slot);
}

/* Puts a value that the field holds already into its place, and lets the old one go. */
static tlm_status put_value(tlm_object object, uint32_t field, tlm_object value, tlm_holder holder, uint32_t site)
{
    tlm_status status = TLM_OK;
    tlmi_slot_of_object *slot = lock_field(object, field, &status);
    if (!slot)
        return status;
    tlm_object old = slot->as.record.values[field];
    slot->as.record.values[field] = value;
    tlmi_object_unlock(slot);
    let_field_go(old, holder, site);
    return TLM_OK;
}

tlm_status tlm_struct_set(tlm_object object, uint32_t field, tlm_object value)
{
    if (object == 0)
        return TLM_OK;
    uint32_t site = tlmi_site_for_events();
    tlm_holder holder = 0;
    tlm_status status = field_holder(object, field, &holder);
    if (status == TLM_OK)
        status = tlm_acquire(value, holder);
    if (status != TLM_OK)
        return status;
    status = put_value(object, field, value, holder, site);
    if (status != TLM_OK)
        let_field_go(value, holder, site); /* another thread freed the struct meanwhile */
    return status;
}

/* The count of `from` becomes the field's. */
static tlm_status take_over(tlm_object value, tlm_holder from, tlm_holder holder, uint32_t site)
{
    tlmi_slot_of_object *slot = tlmi_object_lock(value);
    if (!slot)
        return tlmi_object_missing(value, from, TLM_MISUSE_USE_AFTER_FREE);
    tlm_status status = TLM_OK;
    if (TLM_HOLDER_KIND(from) == TLM_HOLDER_SCOPE && slot->flags & TLM_FLAG_ARENA) {
        status = TLM_IN_ARENA;
        tlmi_misuse(TLM_MISUSE_OUTLIVES_FRAME, slot->device, value, holder, site);
    } else if (!tlmi_hand_over(slot, from, holder, site)) {
        status = TLM_NOT_A_HOLDER;
        tlmi_misuse(TLM_MISUSE_OVER_RELEASE, slot->device, value, from, site);
    }
    tlmi_object_unlock(slot);
    return status == TLM_OK ? TLM_OK : tlmi_fail(status, value, from, 0, 0);
}

tlm_status tlm_struct_move(tlm_object object, uint32_t field, tlm_object value, tlm_holder from)
{
    if (object == 0)
        return TLM_OK;
    uint32_t site = tlmi_site_for_events();
    tlm_holder holder = 0;
    tlm_status status = field_holder(object, field, &holder);
    if (status == TLM_OK && value != 0)
        status = take_over(value, from, holder, site);
    if (status != TLM_OK)
        return status;
    status = put_value(object, field, value, holder, site);
    if (status != TLM_OK && TLM_HOLDER_KIND(from) != TLM_HOLDER_SCOPE)
        tlm_move(value, holder, from); /* another thread freed the struct meanwhile */
    else if (status != TLM_OK)
        tlm_register_from(TLM_HOLDER_NUMBER(from), value, holder);
    return status;
}

tlm_status tlm_struct_get(tlm_object object, uint32_t field, tlm_object *out)
{
    tlm_status status = TLM_OK;
    tlm_object value = 0;
    if (object != 0) {
        tlmi_slot_of_object *slot = lock_field(object, field, &status);
        if (!slot)
            return status;
        value = slot->as.record.values[field];
        tlmi_object_unlock(slot);
    }
    *out = value;
    return TLM_OK;
}
