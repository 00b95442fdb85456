/* SPDX-License-Identifier: MIT
 * owning.c: the public operations on objects: make, acquire, release, move, free, look. tlmem.h has every promise.
 */
#include "memory/memory.h"

/* No device has more: the address space ends here. */
#define MOST_BYTES (UINT64_C(1) << 46)

static _Atomic uint64_t next_number = 1;

static bool is_device(uint32_t device)
{
    return device >= TLM_DEVICE_CPU && device <= UINT8_MAX;
}

static bool may_hold(tlm_holder holder)
{
    tlm_holder_kind kind = TLM_HOLDER_KIND(holder);
    return kind > TLM_HOLDER_FLOATING && kind <= TLM_HOLDER_FOREIGN && kind != TLM_HOLDER_SCOPE;
}

tlm_status tlm_object_alloc(uint32_t device, uint64_t bytes, tlm_object *out)
{
    uint32_t site = tlmi_site_for_events();
    if (!is_device(device))
        return tlmi_fail(TLM_NO_DEVICE, 0, 0, bytes, device);
    if (bytes > MOST_BYTES)
        return tlmi_fail(TLM_OVERFLOW, 0, 0, bytes, device);
    void *payload = NULL;
    tlm_status status = tlmi_buffers_take(device, bytes, &payload);
    if (status != TLM_OK)
        return tlmi_fail(status, 0, 0, bytes, device);
    tlmi_slot_of_object *slot = tlmi_object_create(TLM_OBJECT_TENSOR, (uint8_t)device);
    if (!slot) {
        tlmi_buffers_give(device, payload, bytes);
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, bytes, device);
    }
    slot->payload = payload;
    tlmi_object_set_bytes(slot, bytes);
    *out = tlmi_object_publish(slot, site);
    return TLM_OK;
}

tlm_status tlm_object_adopt(uint32_t device, void *payload, uint64_t bytes, tlm_drop drop, void *context,
                            tlm_object *out)
{
    uint32_t site = tlmi_site_for_events();
    if (device > UINT8_MAX)
        return tlmi_fail(TLM_NO_DEVICE, 0, 0, bytes, device);
    tlmi_slot_of_object *slot = tlmi_object_create(TLM_OBJECT_FOREIGN, (uint8_t)device);
    if (!slot)
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, bytes, device);
    slot->payload = payload;
    tlmi_object_set_bytes(slot, bytes);
    slot->as.foreign.drop = drop;
    slot->as.foreign.context = context;
    *out = tlmi_object_publish(slot, site);
    return TLM_OK;
}

/* The object that a view of `base` looks into: views of views hold the first base. */
static tlm_object root_of(tlm_object base)
{
    tlmi_slot_of_object *slot = tlmi_object_lock(base);
    if (!slot)
        return base;
    tlm_object root = slot->type == TLM_OBJECT_VIEW ? slot->as.view.base : base;
    tlmi_object_unlock(slot);
    return root;
}

tlm_status tlm_object_view(tlm_object base, tlm_object *out)
{
    uint32_t site = tlmi_site_for_events();
    if (base == 0) {
        *out = 0;
        return TLM_OK;
    }
    tlm_object root = root_of(base);
    tlmi_slot_of_object *held = tlmi_object_lock(root);
    if (!held)
        return tlmi_object_missing(root, 0, TLM_MISUSE_USE_AFTER_FREE);
    uint8_t device = held->device;
    void *payload = held->payload;
    tlmi_object_unlock(held);
    tlmi_slot_of_object *slot = tlmi_object_create(TLM_OBJECT_VIEW, device);
    if (!slot)
        return tlmi_fail(TLM_NO_MEMORY, base, 0, 0, 0);
    tlm_status status = tlm_acquire(root, TLM_HOLDER(TLM_HOLDER_VIEW, tlmi_object_handle(slot)));
    if (status != TLM_OK) {
        tlmi_object_cancel(slot);
        return status;
    }
    slot->payload = payload;
    slot->as.view.base = root;
    *out = tlmi_object_publish(slot, site);
    return TLM_OK;
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
    tlm_holder floating = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);
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

tlm_status tlm_free_unless(tlm_object object, int kind)
{
    if (object == 0)
        return TLM_OK;
    uint32_t site = tlmi_site_for_events();
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, 0, TLM_MISUSE_DOUBLE_FREE);
    if (kind != TLM_HOLDER_NONE && tlmi_holder_has_kind(slot, (tlm_holder_kind)kind)) {
        tlmi_object_unlock(slot);
        return tlmi_fail(TLM_STILL_HELD, object, 0, 0, (uint64_t)kind);
    }
    tlmi_object_end(slot, site);
    return TLM_OK;
}

tlm_status tlm_free(tlm_object object)
{
    return tlm_free_unless(object, TLM_HOLDER_NONE);
}

tlm_status tlm_check(tlm_object object)
{
    tlmi_slot_of_object *slot = object ? tlmi_object_lock(object) : NULL;
    if (tlmi_unlikely(object && !slot))
        return tlmi_object_missing(object, 0, TLM_MISUSE_USE_AFTER_FREE);
    if (slot)
        tlmi_object_unlock(slot);
    return TLM_OK;
}

void *tlm_payload(tlm_object object)
{
    tlmi_slot_of_object *slot = object ? tlmi_object_lock(object) : NULL;
    if (!slot) {
        if (object)
            tlmi_object_missing(object, 0, TLM_MISUSE_USE_AFTER_FREE);
        return NULL;
    }
    void *payload = slot->payload;
    tlmi_object_unlock(slot);
    return payload;
}

tlm_status tlm_object_describe(tlm_object object, tlm_object_info *out)
{
    *out = (tlm_object_info){.object = object};
    if (object == 0)
        return TLM_OK;
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_glance(object, out) ? TLM_OK : tlmi_fail(TLM_FREED, object, 0, 0, 0);
    *out = (tlm_object_info){
        .object = object,
        .alive = 1,
        .type = slot->type,
        .device = slot->device,
        .flags = slot->flags,
        .bytes = slot->bytes,
        .alloc_site = slot->alloc_site,
        .payload = slot->payload,
        .count = atomic_load_explicit(&slot->count, memory_order_relaxed),
        .fields = slot->type == TLM_OBJECT_STRUCT ? slot->as.record.fields : 0,
        .base = slot->type == TLM_OBJECT_VIEW ? slot->as.view.base : 0,
        .scope = slot->scope ? slot->scope->id : 0,
    };
    tlmi_object_unlock(slot);
    return TLM_OK;
}

uint64_t tlm_holder_number(uint32_t count)
{
    return atomic_fetch_add_explicit(&next_number, count, memory_order_relaxed);
}
