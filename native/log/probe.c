/* SPDX-License-Identifier: MIT
 * probe.c: the library's side of tlmem_probe.h: events of runtimes that keep their own counts.
 *
 * A probe may be called under locks of the runtime, so nothing here waits for an interpreter's lock, but for a call that is
 * entered. A place is read while its probe runs and never kept, so that the library it stands in may be closed.
 */
#define TLM_PROBE_TYPES_ONLY
#include "tlmem_probe.h"

#include "log/log.h"
#include "platform/address_map.h"

_Static_assert(sizeof(tlm_probe_place) == sizeof(tlm_location), "one is taken for the other");
_Static_assert(offsetof(tlm_probe_place, cache) == offsetof(tlm_location, cache), "one is taken for the other");
_Static_assert(sizeof tlmi_recording_on == 1, "probes read one byte");
_Static_assert((int)TLM_PROBE_KIND_SCOPE_EXIT == (int)TLM_KIND_SCOPE_EXIT, "the header repeats numbers");
_Static_assert((int)TLM_PROBE_KIND_ESCAPE == (int)TLM_KIND_ESCAPE, "the header repeats numbers");
_Static_assert((int)TLM_PROBE_KIND_MISUSE == (int)TLM_KIND_MISUSE, "the header repeats numbers");
_Static_assert((int)TLM_PROBE_WRONG_ALLOCATOR == (int)TLM_MISUSE_WRONG_DEVICE, "the header repeats numbers");

/* Scopes of probes have this bit, those of the runtime do not. */
#define PROBE_SCOPE (UINT64_C(1) << 48)

static _Atomic uint64_t last_scope;
static tlmi_map allocators = TLMI_MAP_EMPTY; /* address -> recording << 32 | label of the allocator it came from */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static __thread tlm_probe_place *calling; /* the call that this thread is in */
static __thread uint32_t depth;           /* of scopes */

static uint32_t site_of(tlm_probe_place *place)
{
    uint32_t outer = tlmi_interpreter_now()->site();
    return tlmi_location_site((tlm_location *)(calling ? calling : place), outer);
}

static uint16_t bounded(uint64_t count)
{
    return count < 65535 ? (uint16_t)count : 65535;
}

static void append(tlm_probe_place *place, tlm_kind kind, uint64_t object, uint64_t arg, uint64_t count)
{
    tlmi_event_append((uint8_t)kind, TLM_DEVICE_PROBE, object, arg, site_of(place), bounded(count));
}

static void record_event(tlm_probe_place *place, int kind, uint64_t object, uint64_t arg, uint64_t count)
{
    if (object == 0) /* the null object, or a scope that was entered while nothing was recorded */
        return;
    if (kind == TLM_KIND_ALLOC || kind == TLM_KIND_FREE) {
        if (tlmi_unlikely(atomic_load_explicit(&allocators.used, memory_order_relaxed) != 0))
            tlmi_map_take(&allocators, (uintptr_t)object);
    } else if (kind == TLM_KIND_SCOPE_EXIT) {
        depth -= depth > 0;
    } else {
        tlmi_label_write_holder(arg);
    }
    append(place, (tlm_kind)kind, object, arg, count);
}

static void record_move(tlm_probe_place *place, uint64_t object, uint64_t from, uint64_t to, uint64_t count)
{
    if (object == 0)
        return;
    tlmi_label_write_holder(from);
    tlmi_label_write_holder(to);
    if (from)
        append(place, TLM_KIND_UNREGISTER, object, from, count);
    if (to)
        append(place, TLM_KIND_REGISTER, object, to, count);
}

static uint64_t record_scope(tlm_probe_place *place, const char *label)
{
    uint64_t id = PROBE_SCOPE + atomic_fetch_add_explicit(&last_scope, 1, memory_order_relaxed) + 1;
    depth++;
    append(place, TLM_KIND_SCOPE_ENTER, id, tlmi_label_write(tlm_label_of(label)), depth);
    return id;
}

static void record_mark(tlm_probe_place *place, const char *label, int64_t index)
{
    tlm_label number = tlmi_label_write(tlm_label_of(label));
    if (number)
        tlmi_event_append(TLM_KIND_MARK, TLM_DEVICE_NONE, number, (uint64_t)index, site_of(place), 0);
}

static uint64_t name_holder(const char *text)
{
    return TLM_HOLDER(TLM_HOLDER_FOREIGN, tlm_label_of(text));
}

/* ---- allocators ---- */

static void mend_after_fork(void)
{
    tlmi_map_after_fork(&allocators);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

static uint64_t recording_number(void)
{
    return atomic_load_explicit(&tlmi_recording_epoch, memory_order_acquire) << 32;
}

static void record_alloc_with(tlm_probe_place *place, uint64_t object, uint64_t bytes, const char *allocator)
{
    if (object == 0)
        return;
    pthread_once(&fork_once, install_fork_handler);
    tlmi_map_put(&allocators, (uintptr_t)object, recording_number() | tlm_label_of(allocator));
    append(place, TLM_KIND_ALLOC, object, bytes, 1);
}

static void record_free_with(tlm_probe_place *place, uint64_t object, const char *allocator)
{
    if (object == 0)
        return;
    uint64_t from = tlmi_map_take(&allocators, (uintptr_t)object);
    bool known = from != 0 && from - recording_number() <= UINT32_MAX;
    if (known && (tlm_label)from != tlm_label_of(allocator)) {
        tlm_holder owner = TLM_HOLDER(TLM_HOLDER_FOREIGN, (tlm_label)from);
        tlmi_label_write_holder(owner);
        append(place, TLM_KIND_MISUSE, object, owner, TLM_MISUSE_WRONG_DEVICE);
    }
    append(place, TLM_KIND_FREE, object, 0, 0);
}

/* ---- calls ---- */

static tlm_probe_place *enter_call(tlm_probe_place *place)
{
    static tlm_probe_place nowhere;
    tlm_probe_place *former = calling;
    calling = place;
    return former ? former : &nowhere;
}

static void leave_call(tlm_probe_place *former)
{
    calling = former->file ? former : NULL;
}

#pragma GCC visibility push(default)
extern const tlm_probe_functions tlm_probe_table;
const tlm_probe_functions tlm_probe_table = {
    .version = TLM_PROBE_VERSION,
    .bytes = sizeof tlm_probe_table,
    .on = (const unsigned char *)&tlmi_recording_on,
    .event = record_event,
    .move = record_move,
    .scope_enter = record_scope,
    .mark = record_mark,
    .alloc_with = record_alloc_with,
    .free_with = record_free_with,
    .name = name_holder,
    .call = enter_call,
    .back = leave_call,
};
#pragma GCC visibility pop
