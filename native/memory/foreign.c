/* SPDX-License-Identifier: MIT
 * foreign.c: objects that are found by their address: memory of somebody else, which may free it and get the same address
 * again without telling.
 *
 * When its owner says that the memory is gone while a scope still has a record of it, the slot is kept: the record is
 * stale, and whoever meets it, the next tenant of the address or the scope's exit, purges it and says so.
 */
#include "memory/memory.h"
#include "platform/address_map.h"

static tlmi_map objects = TLMI_MAP_EMPTY; /* address -> object, alive or kept for a stale record */

static void mend_after_fork(void)
{
    tlmi_map_after_fork(&objects);
}

__attribute__((constructor)) static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

bool tlmi_foreign_purge(tlm_object object, tlmi_scope *scope, uint32_t site)
{
    tlmi_slot_of_object *slot = tlmi_object_lock_stale(object);
    if (!slot)
        return false;
    if (scope != NULL && slot->scope != scope) {
        tlmi_object_unlock(slot);
        return false;
    }
    uint64_t id = slot->scope->id;
    uintptr_t address = slot->as.foreign.address;
    tlmi_scope_strike(slot, false);
    tlmi_misuse(TLM_MISUSE_STALE_RECORD, slot->device, object, TLM_HOLDER(TLM_HOLDER_SCOPE, id), site);
    atomic_store_explicit(&slot->handle, 0, memory_order_release);
    tlmi_object_recycle(slot);
    tlmi_foreign_forget(address, object);
    return true;
}

void tlmi_foreign_forget(uintptr_t address, tlm_object object)
{
    /* Another object may have the address by now: then it is put back. */
    uint64_t known = tlmi_map_take(&objects, address);
    if (known != 0 && known != object)
        tlmi_map_put(&objects, address, known);
}

tlm_status tlm_foreign_register(void *address, uint64_t bytes, tlm_drop drop, void *context, tlm_object *out)
{
    if (!address)
        return tlmi_fail(TLM_BAD_ARGUMENT, 0, 0, bytes, 0);
    uint32_t site = tlmi_site_for_events();
    tlm_object known = tlmi_map_find(&objects, (uintptr_t)address);
    if (known && tlm_foreign_find(address) == known) {
        *out = known;
        tlmi_misuse(TLM_MISUSE_DOUBLE_REGISTER, TLM_DEVICE_FOREIGN, known, 0, site);
        return tlmi_fail(TLM_ALREADY_REGISTERED, known, 0, bytes, 0);
    }
    if (known)
        tlmi_foreign_purge(known, NULL, site);
    tlmi_slot_of_object *slot = tlmi_object_create(TLM_OBJECT_FOREIGN, TLM_DEVICE_FOREIGN);
    if (!slot)
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, bytes, 0);
    tlm_object object = tlmi_object_handle(slot);
    if (!tlmi_map_put(&objects, (uintptr_t)address, object)) {
        tlmi_object_cancel(slot);
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, bytes, 0);
    }
    slot->payload = address;
    tlmi_object_set_bytes(slot, bytes);
    slot->as.foreign.drop = drop;
    slot->as.foreign.context = context;
    slot->as.foreign.address = (uintptr_t)address;
    *out = tlmi_object_publish(slot, site);
    return TLM_OK;
}

tlm_object tlm_foreign_find(const void *address)
{
    tlm_object object = tlmi_map_find(&objects, (uintptr_t)address);
    tlmi_slot_of_object *slot = object ? tlmi_object_lock(object) : NULL;
    if (!slot)
        return 0;
    tlmi_object_unlock(slot);
    return object;
}

tlm_status tlm_foreign_gone(void *address)
{
    uint32_t site = tlmi_site_for_events();
    tlm_object object = tlmi_map_find(&objects, (uintptr_t)address);
    tlmi_slot_of_object *slot = object ? tlmi_object_lock(object) : NULL;
    if (!slot)
        return tlmi_object_missing(object, 0, TLM_MISUSE_DOUBLE_FREE);
    slot->as.foreign.drop = NULL;
    if (!slot->scope) {
        tlmi_object_end(slot, site);
        return TLM_OK;
    }
    uint32_t ended = atomic_exchange_explicit(&slot->count, 0, memory_order_relaxed);
    uint64_t bytes = slot->bytes;
    uint8_t device = slot->device;
    __atomic_store_n(&slot->free_site, site, __ATOMIC_RELAXED); /* tlmi_object_glance may look */
    slot->holders[0] = slot->holders[1] = 0;
    if (slot->more)
        slot->more[1] = 0;
    atomic_store_explicit(&slot->handle, object | TLMI_STALE, memory_order_release);
    if (tlmi_probe_on())
        tlmi_event_append(TLM_KIND_FREE, device, object, ended, site, 0);
    tlmi_tally_free(device, bytes);
    tlmi_object_unlock(slot);
    return TLM_OK;
}
