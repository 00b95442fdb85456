/* SPDX-License-Identifier: MIT
 * tape_saves.c: what a tape holds of objects, counted for each object once; and whether what was saved has been written since.
 */
#include <string.h>

#include "tape/tape.h"

/* ---- counts of objects ---- */

static void (*drop_place)(tlm_place place);

void tlm_tape_places(void (*drop)(tlm_place place))
{
    drop_place = drop;
}

void tlmi_place_drop(tlm_place place)
{
    if (place.code && drop_place)
        drop_place(place);
}

tlm_status tlmi_hold(tlm_object object, tlm_holder holder, bool owned)
{
    return owned ? tlm_move(object, TLM_HOLDER(TLM_HOLDER_FLOATING, 0), holder) : tlm_acquire(object, holder);
}

/* The program may have freed it by hand, whoever held it: that is not a second misuse. */
void tlmi_let_go(tlm_object object, tlm_holder holder)
{
    if (!object)
        return;
    uint32_t site = tlmi_site_for_events();
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (slot && tlmi_holder_remove(slot, holder))
        tlmi_object_let_go(slot, holder, site);
    else if (slot)
        tlmi_object_unlock(slot);
}

bool tlmi_is_sole(tlm_object object)
{
    tlmi_slot_of_object *slot = object ? tlmi_object_lock(object) : NULL;
    if (!slot)
        return false;
    bool is_sole = slot->type == TLM_OBJECT_TENSOR && atomic_load_explicit(&slot->count, memory_order_relaxed) == 1;
    tlmi_object_unlock(slot);
    return is_sole;
}

/* ---- each object once ---- */

static uint32_t home_of(const tlm_tape *tape, tlm_object object)
{
    return (uint32_t)((object * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (tape->saved_room - 1);
}

/* The entry of an object, or the empty one where it belongs. Locked, with room. */
static tlmi_saved_object *entry_of(tlm_tape *tape, tlm_object object)
{
    uint32_t at = home_of(tape, object);
    while (tape->saved[at].object && tape->saved[at].object != object)
        at = (at + 1) & (tape->saved_room - 1);
    return &tape->saved[at];
}

static bool grow(tlm_tape *tape)
{
    uint32_t room = tape->saved_room ? 2 * tape->saved_room : 64, old_room = tape->saved_room;
    tlmi_saved_object *table = tlmi_slab_alloc(room * sizeof *table), *old = tape->saved;
    if (!table)
        return false;
    tape->saved = table;
    tape->saved_room = room;
    tape->own_bytes += (room - old_room) * sizeof *table;
    for (uint32_t i = 0; i < old_room; i++)
        if (old[i].object)
            *entry_of(tape, old[i].object) = old[i];
    if (old)
        tlmi_slab_free(old, old_room * sizeof *old);
    return true;
}

/* false: no memory. */
static bool count_in(tlm_tape *tape, tlm_object object, uint64_t bytes)
{
    tlmi_spin_lock(&tape->lock);
    bool has_room = 2 * (tape->saved_used + 1) <= tape->saved_room || grow(tape);
    if (has_room) {
        tlmi_saved_object *entry = entry_of(tape, object);
        if (!entry->object) {
            *entry = (tlmi_saved_object){.object = object, .bytes = bytes};
            tape->saved_used++;
            tape->sums.saved_bytes += bytes;
            tape->sums.saved_objects++;
            if (tape->sums.saved_bytes > tape->sums.peak_saved_bytes)
                tape->sums.peak_saved_bytes = tape->sums.saved_bytes;
        }
        entry->uses++;
    }
    tlmi_spin_unlock(&tape->lock);
    return has_room;
}

/* Takes an entry out and shifts back what stood behind it for want of its place. */
static void take_out(tlm_tape *tape, tlmi_saved_object *entry)
{
    uint32_t mask = tape->saved_room - 1, empty = (uint32_t)(entry - tape->saved);
    for (uint32_t at = (empty + 1) & mask; tape->saved[at].object; at = (at + 1) & mask) {
        if (((at - home_of(tape, tape->saved[at].object)) & mask) < ((at - empty) & mask))
            continue;
        tape->saved[empty] = tape->saved[at];
        empty = at;
    }
    tape->saved[empty] = (tlmi_saved_object){0};
    tape->saved_used--;
}

static void count_out(tlm_tape *tape, tlm_object object)
{
    tlmi_spin_lock(&tape->lock);
    tlmi_saved_object *entry = entry_of(tape, object);
    if (entry->object && --entry->uses == 0) {
        tape->sums.saved_bytes -= entry->bytes;
        tape->sums.saved_objects--;
        take_out(tape, entry);
    }
    tlmi_spin_unlock(&tape->lock);
}

/* ---- saving ---- */

/* Looks at an object that is to be saved: its bytes and version. */
static tlm_status look_at(tlm_object object, uint64_t *bytes, uint32_t *version)
{
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, 0, TLM_MISUSE_USE_AFTER_FREE);
    *bytes = slot->bytes;
    *version = slot->version;
    bool is_lent = slot->flags & TLM_FLAG_ARENA;
    tlmi_object_unlock(slot);
    return is_lent ? tlmi_fail(TLM_IN_ARENA, object, 0, *bytes, 0) : TLM_OK;
}

static void record_event(tlm_kind kind, const tlm_tensor *tensor, tlm_holder holder)
{
    if (!tlmi_probe_on())
        return;
    tlmi_op_write_names(TLM_TAPE_HOLDER_OP(holder)); /* a recording may begin while things are saved */
    tlmi_event_append((uint8_t)kind, (uint8_t)tensor->device, tensor->object, holder, tlmi_site_here(), 0);
}

tlm_status tlmi_save(tlm_tape *tape, const tlm_tensor *tensor, bool owned, tlm_holder holder, tlmi_saved *saved)
{
    uint64_t bytes;
    saved->link = 0;
    saved->version = 0;
    saved->tensor = *tensor;
    if (!tensor->object)
        return TLM_OK;
    saved->tensor.object = 0; /* until it is held, there is nothing to take back */
    tlm_status status = look_at(tensor->object, &bytes, &saved->version);
    if (status != TLM_OK)
        return status;
    if (!count_in(tape, tensor->object, bytes))
        return tlmi_fail(TLM_NO_MEMORY, tensor->object, holder, 0, 0);
    record_event(TLM_KIND_TAPE_SAVE, tensor, holder);
    status = tlmi_hold(tensor->object, holder, owned);
    if (status != TLM_OK) {
        count_out(tape, tensor->object);
        record_event(TLM_KIND_TAPE_UNSAVE, tensor, holder);
    } else
        saved->tensor.object = tensor->object;
    return status;
}

/* Ends what the tape counts of a save; its object, which is still held. */
static tlm_object uncount(tlm_tape *tape, tlmi_saved *saved, tlm_holder holder)
{
    tlm_object object = saved->link ? 0 : saved->tensor.object;
    if (!object)
        return 0;
    count_out(tape, object);
    record_event(TLM_KIND_TAPE_UNSAVE, &saved->tensor, holder);
    saved->tensor.object = 0;
    return object;
}

void tlmi_unsave(tlm_tape *tape, tlmi_saved *saved, tlm_holder holder)
{
    tlmi_let_go(uncount(tape, saved, holder), holder);
}

void tlmi_unsave_floating(tlm_tape *tape, tlmi_saved *saved, tlm_holder holder)
{
    tlm_move(uncount(tape, saved, holder), holder, TLM_HOLDER(TLM_HOLDER_FLOATING, 0));
}

/* ---- writing in place ---- */

/* The latest writes to what was saved: an error names them. Few, because writing to what is saved is rare. */
enum { WRITES = 64 };
static struct {
    tlmi_spin lock;
    uint64_t count;
    struct {
        tlm_object object;
        tlm_place place;
    } last[WRITES];
} writes;

static __thread tlm_conflict conflict;

/* A holder of what an op of the program saved, or of a value computed again for one. */
static bool is_saver(tlm_holder holder)
{
    uint32_t op = TLM_TAPE_HOLDER_OP(holder);
    return TLM_HOLDER_KIND(holder) == TLM_HOLDER_TAPE && (op >= TLMI_OP_FIRST || op == TLMI_OP_RECOMPUTED);
}

/* Of a locked slot; 0: no tape saved it. */
static tlm_holder saver_of(const tlmi_slot_of_object *slot)
{
    for (int i = 0; i < 2; i++)
        if (is_saver(slot->holders[i]))
            return slot->holders[i];
    for (uint64_t i = 0; slot->more && i < slot->more[1]; i++)
        if (is_saver(slot->more[2 + i]))
            return slot->more[2 + i];
    return 0;
}

/* The object that has the payload, locked. */
static tlmi_slot_of_object *lock_payload(tlm_object object)
{
    tlmi_slot_of_object *slot = object ? tlmi_object_lock(object) : NULL;
    if (slot && slot->type == TLM_OBJECT_VIEW) {
        object = slot->as.view.base;
        tlmi_object_unlock(slot);
        slot = tlmi_object_lock(object);
    }
    return slot;
}

int tlm_object_saved(tlm_object object, tlm_holder *holder)
{
    tlmi_slot_of_object *slot = lock_payload(object);
    *holder = slot ? saver_of(slot) : 0;
    if (slot)
        tlmi_object_unlock(slot);
    return *holder != 0;
}

int tlm_object_written(tlm_object object, tlm_place place, int *kept)
{
    tlmi_slot_of_object *slot = lock_payload(object);
    *kept = 0;
    if (!slot)
        return 0;
    slot->version++;
    bool is_saved = saver_of(slot) != 0;
    tlm_object written = tlmi_object_handle(slot);
    tlmi_object_unlock(slot);
    if (!is_saved)
        return 0;
    tlmi_spin_lock(&writes.lock);
    uint64_t at = writes.count++ % WRITES;
    tlm_place former = writes.last[at].place;
    writes.last[at].object = written;
    writes.last[at].place = place;
    tlmi_spin_unlock(&writes.lock);
    tlmi_place_drop(former);
    *kept = 1;
    return 1;
}

/* Takes the latest write to an object out: its place is the caller's. */
static tlm_place take_write(tlm_object object)
{
    tlm_place found = {0};
    tlmi_spin_lock(&writes.lock);
    uint64_t oldest = writes.count > WRITES ? writes.count - WRITES : 0;
    for (uint64_t i = writes.count; i > oldest && !found.code; i--)
        if (writes.last[(i - 1) % WRITES].object == object) {
            found = writes.last[(i - 1) % WRITES].place;
            writes.last[(i - 1) % WRITES].place = (tlm_place){0};
        }
    tlmi_spin_unlock(&writes.lock);
    return found;
}

tlm_status tlmi_saved_check(const tlmi_saved *saved, tlmi_tape_slot *slot)
{
    uint64_t bytes;
    uint32_t version;
    tlm_object object = saved->link ? 0 : saved->tensor.object;
    if (!object)
        return TLM_OK;
    tlm_status status = look_at(object, &bytes, &version);
    if (status != TLM_OK || version == saved->version)
        return status;
    tlm_holder holder = tlmi_tape_holder(slot->op, slot->sequence);
    tlm_conflict former = conflict;
    conflict = (tlm_conflict){
        .object = object,
        .saved_by = holder,
        .saved = slot->place, /* the slot may go before somebody asks */
        .written = take_write(object),
    };
    slot->place = (tlm_place){0};
    tlmi_place_drop(former.saved);
    tlmi_place_drop(former.written);
    tlmi_misuse(TLM_MISUSE_IN_PLACE_ON_SAVED, (uint8_t)saved->tensor.device, object, holder, tlmi_site_for_events());
    return tlmi_fail(TLM_CHANGED, object, holder, bytes, slot->sequence);
}

void tlm_tape_conflict(tlm_conflict *out)
{
    *out = conflict;
}
