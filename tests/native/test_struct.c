/* SPDX-License-Identifier: MIT
 * test_struct.c: structs hold what their fields hold, no longer and no shorter, and let go of all of it, depth first.
 *
 * tlm-test: sources=core */
#include <string.h>

#include "starve.h"
#include "trace.h"

STAND_IN_FOR_SAMPLER

enum { DEEP = 100000, THREADS = 8, ROUNDS = 5000 };

static const tlm_holder FLOATING = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);
static const tlm_holder ME = TLM_HOLDER(TLM_HOLDER_HANDLE, 1);

static tlm_object make(uint64_t bytes)
{
    tlm_object object = 0;
    CHECK(tlm_object_alloc(TLM_DEVICE_CPU, bytes, &object) == TLM_OK && object != 0);
    return object;
}

/* Held by ME, as a local variable is. */
static tlm_object local(uint64_t bytes)
{
    tlm_object object = make(bytes);
    CHECK(tlm_move(object, FLOATING, ME) == TLM_OK);
    return object;
}

static tlm_object make_struct(const char *layout, uint32_t fields)
{
    tlm_object object = 0;
    CHECK(tlm_struct_create(tlm_label_of(layout), fields, &object) == TLM_OK && object != 0);
    return object;
}

static uint32_t count_of(tlm_object object)
{
    tlm_object_info info;
    CHECK(tlm_object_describe(object, &info) == TLM_OK && info.alive);
    CHECK(tlm_object_holders(object, NULL, 0) == info.count);
    return info.count;
}

static tlm_object field(tlm_object object, uint32_t number)
{
    tlm_object value = 42;
    CHECK(tlm_struct_get(object, number, &value) == TLM_OK);
    return value;
}

static void check_nothing_is_left(void)
{
    tlm_runtime_statistics out;
    tlm_runtime_stats(0, &out);
    CHECK(out.total_count - out.freed_count == 0 && out.total_bytes - out.freed_bytes == 0);
    CHECK(out.current_count == 0 && out.current_bytes == 0 && out.floating == 0 && tlm_scope_depth() == 0);
    CHECK(tlm_objects_alive(NULL, 0) == 0);
}

/* The first number of the field holders, as a reader learns it. */
static uint64_t first_number_in_trace(tlm_object object, const char *layout, uint32_t fields)
{
    const tlmi_event *event = &trace_events[trace_find(TLM_KIND_HOLDERS, object, 0)];
    CHECK(event->arg >> 40 == tlm_label_of(layout) && event->count == fields);
    CHECK(event[-1].kind == TLM_KIND_ALLOC && event[-1].object == object && event[-1].arg == 0);
    return event->arg & ((UINT64_C(1) << 40) - 1);
}

/* S16, S17: 1 to 2 at init, 2 to 1 when the local goes, and the struct's end is the field's. */
static void check_a_field_holds(void)
{
    trace_begin(TRACE_OBJECTS);
    tlm_object a = local(8), layer = make_struct("Layer{weight,bias}", 2);
    CHECK(tlm_struct_set(layer, 1, a) == TLM_OK && count_of(a) == 2 && field(layer, 1) == a && field(layer, 0) == 0);
    CHECK(tlm_release(a, ME) == TLM_OK && count_of(a) == 1 && tlm_release(layer, FLOATING) == TLM_OK);
    trace_end();
    uint64_t first = first_number_in_trace(layer, "Layer{weight,bias}", 2);
    tlm_holder bias = TLM_HOLDER(TLM_HOLDER_FIELD, first + 1);
    TRACE({TLM_KIND_ALLOC, a, 8, 1}, {TLM_KIND_REGISTER, a, ME, 1}, {TLM_KIND_ALLOC, layer, 0, 1},
          {TLM_KIND_HOLDERS, layer, (uint64_t)tlm_label_of("Layer{weight,bias}") << 40 | first, 2},
          {TLM_KIND_ACQUIRE, a, bias, 2}, {TLM_KIND_RELEASE, a, ME, 1}, {TLM_KIND_RELEASE, layer, FLOATING, 0},
          {TLM_KIND_RELEASE, a, bias, 0}, {TLM_KIND_FREE, a, 0, 0}, {TLM_KIND_FREE, layer, 0, 0});
    check_nothing_is_left();
}

static void check_what_is_known_of_a_struct(void)
{
    tlm_object_info info;
    tlm_object layer = make_struct("Layer", 3), other = make_struct("Layer", 3);
    CHECK(tlm_object_describe(layer, &info) == TLM_OK && info.type == TLM_OBJECT_STRUCT && info.fields == 3);
    CHECK(info.bytes == 0 && info.payload == NULL && tlm_payload(layer) == NULL && info.count == 1);
    tlm_holder held[2];
    tlm_object x = make(8);
    CHECK(tlm_struct_move(layer, 2, x, FLOATING) == TLM_OK && tlm_struct_set(other, 0, x) == TLM_OK);
    CHECK(tlm_object_holders(x, held, 2) == 2 && held[0] != held[1]); /* each field is a holder of its own */
    CHECK(TLM_HOLDER_KIND(held[0]) == TLM_HOLDER_FIELD && TLM_HOLDER_KIND(held[1]) == TLM_HOLDER_FIELD);
    CHECK(tlm_release(layer, FLOATING) == TLM_OK && count_of(x) == 1 && tlm_release(other, FLOATING) == TLM_OK);
    check_nothing_is_left();
}

/* S6: the old value goes at the overwrite, and `x.f = x.f` is harmless. */
static void check_overwriting(void)
{
    tlm_object a = local(8), b = local(8), x = make_struct("X{f}", 1);
    CHECK(tlm_struct_set(x, 0, a) == TLM_OK && tlm_release(a, ME) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_struct_set(x, 0, b) == TLM_OK);
    trace_end();
    tlm_holder held[2];
    CHECK(tlm_object_holders(b, held, 2) == 2 && held[0] == ME);
    TRACE({TLM_KIND_ACQUIRE, b, held[1], 2}, {TLM_KIND_RELEASE, a, held[1], 0}, {TLM_KIND_FREE, a, 0, 0});
    CHECK(tlm_release(b, ME) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_struct_set(x, 0, b) == TLM_OK);
    trace_end();
    TRACE({TLM_KIND_ACQUIRE, b, held[1], 2}, {TLM_KIND_RELEASE, b, held[1], 1});
    CHECK(count_of(b) == 1 && tlm_struct_set(x, 0, 0) == TLM_OK && tlm_check(b) == TLM_FREED && field(x, 0) == 0);
    CHECK(tlm_release(x, FLOATING) == TLM_OK);
    check_nothing_is_left();
}

/* B16: `s.f = step(s.f)` where the new value holds the old one, many times over. */
static void check_a_value_that_holds_the_old_one(void)
{
    tlm_object s = make_struct("S{f}", 1);
    CHECK(tlm_struct_move(s, 0, make_struct("F{next}", 1), FLOATING) == TLM_OK);
    for (int i = 0; i < 100; i++) {
        tlm_object old = field(s, 0), fresh = make_struct("F{next}", 1);
        CHECK(tlm_struct_set(fresh, 0, old) == TLM_OK && tlm_struct_move(s, 0, fresh, FLOATING) == TLM_OK);
        CHECK(tlm_check(old) == TLM_OK && count_of(old) == 1 && count_of(fresh) == 1);
    }
    tlm_object last = field(s, 0);
    CHECK(tlm_struct_set(s, 0, field(last, 0)) == TLM_OK && tlm_check(last) == TLM_FREED); /* s.f = s.f.next */
    CHECK(tlm_objects_alive(NULL, 0) == 101 && tlm_release(s, FLOATING) == TLM_OK);
    check_nothing_is_left();
}

/* S21: at the last use the count moves, without an acquire and without a release. */
static void check_moving(void)
{
    tlm_object x = local(8), s = make_struct("S{f}", 1);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_struct_move(s, 0, x, ME) == TLM_OK);
    trace_end();
    tlm_holder held;
    CHECK(tlm_object_holders(x, &held, 1) == 1 && TLM_HOLDER_KIND(held) == TLM_HOLDER_FIELD && count_of(x) == 1);
    TRACE({TLM_KIND_UNREGISTER, x, ME, 1}, {TLM_KIND_REGISTER, x, held, 1});
    CHECK(tlm_release(x, ME) == TLM_NOT_A_HOLDER && tlm_check(x) == TLM_OK); /* use of what was moved away */
    tlm_object y = make(8);
    CHECK(tlm_struct_move(s, 0, y, FLOATING) == TLM_OK && tlm_check(x) == TLM_FREED && count_of(y) == 1);
    CHECK(tlm_struct_move(s, 0, 0, ME) == TLM_OK && field(s, 0) == 0 && tlm_check(y) == TLM_FREED);
    CHECK(tlm_release(s, FLOATING) == TLM_OK);
    check_nothing_is_left();
}

static void check_moving_out_of_a_scope(void)
{
    uint64_t id;
    CHECK(tlm_scope_enter(0, &id) == TLM_OK);
    tlm_holder by = TLM_HOLDER(TLM_HOLDER_SCOPE, id);
    tlm_object x = make(8), s = make_struct("S{f}", 1);
    CHECK(tlm_register(x) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_struct_move(s, 0, x, TLM_HOLDER(TLM_HOLDER_SCOPE, id + 1)) == TLM_NOT_A_HOLDER && count_of(x) == 1);
    CHECK(tlm_struct_move(s, 0, x, by) == TLM_OK && count_of(x) == 1);
    trace_end();
    TRACE({TLM_KIND_MISUSE, x, TLM_HOLDER(TLM_HOLDER_SCOPE, id + 1), TLM_MISUSE_OVER_RELEASE},
          {TLM_KIND_UNREGISTER, x, by, 1}, {TLM_KIND_REGISTER, x, TRACE_ANY, 1});
    tlm_scope_statistics left;
    CHECK(tlm_scope_exit(id, &left) == TLM_OK && left.allocations == 1 && left.escaped == 1 && left.frees == 0);
    CHECK(tlm_check(x) == TLM_OK && tlm_release(s, FLOATING) == TLM_OK && tlm_check(x) == TLM_FREED);
    check_nothing_is_left();
}

/* S8, B8: struct in struct in struct, a shared field, a view and adopted memory: children first, nobody is forgotten. */
static _Atomic int dropped;
static void count_drop(void *unused)
{
    (void)unused;
    dropped++;
}

static void check_freeing_goes_depth_first(void)
{
    tlm_object outer = make_struct("Outer{a,b,c}", 3), middle = make_struct("Middle{a,b}", 2);
    tlm_object inner = make_struct("Inner{a}", 1), leaf = make(8), shared = local(8), base = make(8), view, adopted;
    CHECK(tlm_object_adopt(TLM_DEVICE_CPU, NULL, 0, count_drop, NULL, &adopted) == TLM_OK);
    CHECK(tlm_object_view(base, &view) == TLM_OK && tlm_release(base, FLOATING) == TLM_OK);
    CHECK(tlm_struct_move(inner, 0, leaf, FLOATING) == TLM_OK && tlm_struct_move(middle, 0, inner, FLOATING) == TLM_OK);
    CHECK(tlm_struct_set(middle, 1, shared) == TLM_OK && tlm_struct_move(outer, 0, middle, FLOATING) == TLM_OK);
    CHECK(tlm_struct_move(outer, 1, view, FLOATING) == TLM_OK);
    CHECK(tlm_struct_move(outer, 2, adopted, FLOATING) == TLM_OK && count_of(shared) == 2);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_release(outer, FLOATING) == TLM_OK);
    trace_end();
    tlm_object children[] = {leaf, inner, middle, base, view, adopted};
    for (int i = 0; i < 6; i++) {
        CHECK(trace_count(TLM_KIND_FREE, children[i]) == 1);
        CHECK(trace_find(TLM_KIND_FREE, children[i], 0) < trace_find(TLM_KIND_FREE, outer, 0));
    }
    CHECK(trace_find(TLM_KIND_FREE, leaf, 0) < trace_find(TLM_KIND_FREE, inner, 0));
    CHECK(trace_find(TLM_KIND_FREE, inner, 0) < trace_find(TLM_KIND_FREE, middle, 0));
    CHECK(trace_find(TLM_KIND_FREE, base, 0) < trace_find(TLM_KIND_FREE, view, 0));
    CHECK(trace_count(TLM_KIND_FREE, shared) == 0 && count_of(shared) == 1 && dropped == 1);
    CHECK(trace_count(TLM_KIND_FREE, TRACE_ANY) == 7 && tlm_release(shared, ME) == TLM_OK);
    check_nothing_is_left();
}

/* A list as long as no stack is deep. */
static void check_freeing_needs_no_stack(void)
{
    tlm_object list = 0;
    for (int i = 0; i < DEEP; i++) {
        tlm_object node = make_struct("Node{next}", 1);
        CHECK(tlm_struct_move(node, 0, list, FLOATING) == TLM_OK);
        list = node;
    }
    CHECK(tlm_objects_alive(NULL, 0) == DEEP && tlm_release(list, FLOATING) == TLM_OK);
    check_nothing_is_left();
}

/* S9, S18, B16: a struct is returned: its own record goes, its fields' counts are as they were, however often. */
static void check_returning_a_struct(void)
{
    tlm_object s = make_struct("S{a,b}", 2), a = make(8), b = make(8);
    uint64_t outer, inner;
    CHECK(tlm_struct_move(s, 0, a, FLOATING) == TLM_OK && tlm_struct_move(s, 1, b, FLOATING) == TLM_OK);
    CHECK(tlm_scope_enter(0, &outer) == TLM_OK);
    for (int i = 0; i < 10; i++) {
        CHECK(tlm_scope_enter(0, &inner) == TLM_OK && tlm_register(s) == TLM_OK);
        trace_begin(TRACE_OBJECTS);
        CHECK(tlm_promote(s) == TLM_OK);
        trace_end();
        TRACE({TLM_KIND_PROMOTE, s, TLM_HOLDER(TLM_HOLDER_SCOPE, inner), 1});
        CHECK(tlm_scope_exit(inner, NULL) == TLM_OK && count_of(s) == 1 && count_of(a) == 1 && count_of(b) == 1);
    }
    CHECK(tlm_register(s) == TLM_OK && tlm_scope_exit(outer, NULL) == TLM_OK && tlm_check(b) == TLM_FREED);
    check_nothing_is_left();
}

/* S22, B21: a struct without fields is nothing, and nothing happens to it. */
/* ---- memory that ends with a scope ---- */

static tlm_object struct_of(tlm_object value, tlm_object other)
{
    tlm_object made = 0;
    CHECK(tlm_struct_create(0, 2, &made) == TLM_OK);
    CHECK(tlm_struct_set(made, 0, value) == TLM_OK && tlm_struct_set(made, 1, other) == TLM_OK);
    return made;
}

static void leaves_with(tlm_status wanted, tlm_object part, tlm_object object)
{
    tlm_failure failure;
    CHECK(tlm_register(object) == TLM_OK);
    CHECK(tlm_may_leave(object) == wanted && tlm_promote(object) == wanted);
    if (wanted == TLM_OK)
        CHECK(tlm_register(object) == TLM_OK);
    CHECK(tlm_escape(object, ME) == wanted);
    tlm_failure_last(&failure);
    CHECK(wanted == TLM_OK || (failure.object == object && failure.detail == part));
    if (wanted == TLM_OK)
        CHECK(tlm_release(object, ME) == TLM_OK);
}

static void check_what_a_struct_looks_into(void)
{
    tlm_context *context = NULL;
    CHECK(tlm_context_create(&context) == TLM_OK);
    tlm_context *former = tlm_context_switch(context);
    uint64_t outer = 0, inner = 0;
    tlm_object far = 0, near = 0, buffer = 0, view = 0, deep = 0;
    CHECK(tlm_scope_enter(0, &outer) == TLM_OK && tlm_arena_object(64, &far) == TLM_OK);
    CHECK(tlm_frame_enter(0, 1, &inner) == TLM_OK && tlm_arena_object(64, &near) == TLM_OK);
    CHECK(tlm_frame_buffer(0, 1 << 22, &buffer) == TLM_OK); /* more than the arena has */
    CHECK(tlm_object_view(buffer, &view) == TLM_OK && tlm_register(view) == TLM_OK);
    leaves_with(TLM_OK, 0, struct_of(0, 0));
    leaves_with(TLM_IN_ARENA, near, struct_of(0, near));
    leaves_with(TLM_IN_ARENA, buffer, struct_of(view, 0));
    CHECK(tlm_escape(view, ME) == TLM_IN_ARENA && tlm_may_leave(view) == TLM_IN_ARENA);
    /* 2^60 ways lead to the bottom, and more structs than the walk has room for at first. */
    deep = struct_of(near, near);
    CHECK(tlm_register(deep) == TLM_OK);
    for (int i = 0; i < 60; i++) {
        deep = struct_of(deep, deep);
        CHECK(tlm_register(deep) == TLM_OK);
    }
    CHECK(tlm_escape(deep, ME) == TLM_IN_ARENA);
    tlm_object wide = 0;
    CHECK(tlm_struct_create(0, 1000, &wide) == TLM_OK);
    for (uint32_t i = 0; i < 1000; i++)
        CHECK(tlm_struct_set(wide, i, deep) == TLM_OK);
    leaves_with(TLM_IN_ARENA, near, wide);
    /* What ends with a scope further out may go there, but not to a handle. */
    tlm_object handed = struct_of(far, 0);
    CHECK(tlm_register(handed) == TLM_OK && tlm_may_leave(handed) == TLM_OK && tlm_escape(handed, ME) == TLM_IN_ARENA);
    CHECK(tlm_promote(handed) == TLM_OK);
    CHECK(tlm_frame_exit(inner, NULL) == TLM_OK);
    CHECK(tlm_register(handed) == TLM_OK && tlm_escape(handed, ME) == TLM_IN_ARENA);
    CHECK(tlm_may_leave(0) == TLM_OK && tlm_may_leave(deep) == TLM_OK); /* gone */
    CHECK(tlm_scope_exit(outer, NULL) == TLM_OK);
    tlm_context_switch(former);
    tlm_context_destroy(context);
    check_nothing_is_left();
}

static void check_nothing_is_made_of_nothing(void)
{
    tlm_object nothing = 42, x = 42, s = make_struct("S{f}", 1);
    uint64_t id, bytes = tlmi_own_current_bytes();
    CHECK(tlm_scope_enter(0, &id) == TLM_OK);
    trace_begin(TRACE_ALL);
    for (int i = 0; i < 100000; i++)
        CHECK(tlm_struct_create(tlm_label_of("Empty"), 0, &nothing) == TLM_OK && nothing == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(tlm_acquire(nothing, ME) == TLM_OK && tlm_release(nothing, ME) == TLM_OK &&
              tlm_register(nothing) == TLM_OK);
        CHECK(tlm_unregister(nothing) == TLM_OK && tlm_promote(nothing) == TLM_OK && tlm_escape(nothing, ME) == TLM_OK);
        CHECK(tlm_move(nothing, FLOATING, ME) == TLM_OK && tlm_free(nothing) == TLM_OK && tlm_check(nothing) == TLM_OK);
        CHECK(tlm_payload(nothing) == NULL && tlm_object_holders(nothing, NULL, 0) == 0);
        CHECK(tlm_struct_set(nothing, 3, nothing) == TLM_OK && tlm_struct_move(nothing, 3, nothing, ME) == TLM_OK);
        CHECK(tlm_struct_get(nothing, 3, &x) == TLM_OK && x == 0 && tlm_struct_set(s, 0, nothing) == TLM_OK);
        CHECK(tlm_object_view(nothing, &x) == TLM_OK && x == 0);
    }
    trace_end();
    TRACE_NOTHING();
    CHECK(tlm_objects_alive(NULL, 0) == 1 && tlmi_own_current_bytes() == bytes && tlm_scope_exit(id, NULL) == TLM_OK);
    CHECK(tlm_release(s, FLOATING) == TLM_OK);
    check_nothing_is_left();
}

static void check_misuse(void)
{
    tlm_object s = make_struct("S{f}", 1), x = local(8), gone = make(8), out = 42;
    tlm_failure failure;
    CHECK(tlm_release(gone, FLOATING) == TLM_OK && tlm_struct_set(s, 0, x) == TLM_OK);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_struct_set(s, 1, x) == TLM_BAD_SLOT);
    tlm_failure_last(&failure);
    CHECK(failure.status == TLM_BAD_SLOT && failure.object == s && failure.detail == 1);
    CHECK(tlm_struct_move(s, UINT32_MAX, x, ME) == TLM_BAD_SLOT && tlm_struct_get(s, 1, &out) == TLM_BAD_SLOT);
    CHECK(tlm_struct_set(x, 0, s) == TLM_WRONG_TYPE && tlm_struct_move(x, 0, s, FLOATING) == TLM_WRONG_TYPE);
    CHECK(tlm_struct_get(x, 0, &out) == TLM_WRONG_TYPE && out == 42);
    trace_end();
    TRACE_NOTHING();
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_struct_set(s, 0, gone) == TLM_FREED && tlm_struct_move(s, 0, gone, FLOATING) == TLM_FREED);
    CHECK(tlm_struct_set(gone, 0, x) == TLM_FREED && tlm_struct_get(gone, 0, &out) == TLM_FREED && out == 42);
    CHECK(tlm_struct_move(s, 0, x, TLM_HOLDER(TLM_HOLDER_HANDLE, 99)) == TLM_NOT_A_HOLDER);
    trace_end();
    TRACE({TLM_KIND_MISUSE, gone, TRACE_ANY, TLM_MISUSE_USE_AFTER_FREE},
          {TLM_KIND_MISUSE, gone, FLOATING, TLM_MISUSE_USE_AFTER_FREE},
          {TLM_KIND_MISUSE, gone, 0, TLM_MISUSE_USE_AFTER_FREE}, {TLM_KIND_MISUSE, gone, 0, TLM_MISUSE_USE_AFTER_FREE},
          {TLM_KIND_MISUSE, x, TLM_HOLDER(TLM_HOLDER_HANDLE, 99), TLM_MISUSE_OVER_RELEASE});
    CHECK(count_of(x) == 2 && count_of(s) == 1 && field(s, 0) == x);
    CHECK(tlm_free(x) == TLM_OK); /* whoever holds it; the field then holds nothing */
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_struct_set(s, 0, 0) == TLM_OK && tlm_release(s, FLOATING) == TLM_OK);
    trace_end();
    TRACE({TLM_KIND_RELEASE, s, FLOATING, 0}, {TLM_KIND_FREE, s, 0, 0});
    check_nothing_is_left();
}

static void check_without_memory_nothing_changes(void)
{
    tlm_object s = 42, x = local(8), other = make_struct("S{f}", 1);
    starve(0);
    tlm_own_fail_after(1);
    CHECK(tlm_struct_create(0, 3, &s) == TLM_NO_MEMORY && s == 42);
    feed();
    starve_slots(0);
    tlm_own_fail_after(1);
    CHECK(tlm_struct_create(0, 3, &s) == TLM_NO_MEMORY && s == 42);
    feed_slots();
    CHECK(tlm_struct_create(0, 1000000, &s) == TLM_OK && tlm_struct_set(s, 999999, x) == TLM_OK);
    CHECK(tlm_struct_set(other, 0, other) == TLM_OK && tlm_struct_set(other, 0, 0) == TLM_OK);
    starve(0);
    tlm_own_fail_after(1);
    CHECK(tlm_struct_set(other, 0, x) == TLM_NO_MEMORY && count_of(x) == 2 &&
          field(other, 0) == 0); /* a third holder */
    feed();
    CHECK(tlm_struct_set(other, 0, x) == TLM_OK && count_of(x) == 3 && tlm_release(s, FLOATING) == TLM_OK);
    CHECK(tlm_release(other, FLOATING) == TLM_OK && tlm_release(x, ME) == TLM_OK);
    check_nothing_is_left();
}

/* Threads overwrite the same fields with values of their own: each value ends exactly once. */
static tlm_object common;
static void *overwrite(void *unused)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        tlm_object x = make(8), seen;
        if (i % 3)
            CHECK(tlm_struct_move(common, i % 4, x, FLOATING) == TLM_OK);
        else
            CHECK(tlm_struct_set(common, i % 4, x) == TLM_OK && tlm_release(x, FLOATING) == TLM_OK);
        CHECK(tlm_struct_get(common, (i + 1) % 4, &seen) == TLM_OK);
    }
    return unused;
}

static void check_threads(void)
{
    pthread_t threads[THREADS];
    common = make_struct("Common{a,b,c,d}", 4);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, overwrite, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(tlm_objects_alive(NULL, 0) == 5 && tlm_release(common, FLOATING) == TLM_OK);
    check_nothing_is_left();
}

/* Threads write into a struct that another one frees: what they were about to put in is theirs again. */
static _Atomic tlm_object target;
static void *write_until_gone(void *unused)
{
    tlm_object s = atomic_load(&target);
    for (tlm_status status = TLM_OK; status == TLM_OK;) {
        tlm_object x = local(8);
        status = tlm_struct_set(s, 0, x);
        CHECK(tlm_release(x, ME) == TLM_OK);
        x = local(8);
        if (tlm_struct_move(s, 0, x, ME) != TLM_OK)
            CHECK(tlm_release(x, ME) == TLM_OK);
    }
    return unused;
}

static void check_a_struct_that_goes_while_it_is_written(void)
{
    pthread_t threads[2];
    for (int round = 0; round < 50; round++) {
        atomic_store(&target, make_struct("S{f}", 1));
        for (int i = 0; i < 2; i++)
            CHECK(pthread_create(&threads[i], NULL, write_until_gone, NULL) == 0);
        usleep(200);
        CHECK(tlm_release(target, FLOATING) == TLM_OK);
        for (int i = 0; i < 2; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        check_nothing_is_left();
    }
}

int main(void)
{
    check_a_field_holds();
    check_what_is_known_of_a_struct();
    check_overwriting();
    check_a_value_that_holds_the_old_one();
    check_moving();
    check_moving_out_of_a_scope();
    check_freeing_goes_depth_first();
    check_freeing_needs_no_stack();
    check_returning_a_struct();
    check_what_a_struct_looks_into();
    check_nothing_is_made_of_nothing();
    check_misuse();
    check_without_memory_nothing_changes();
    check_threads();
    check_a_struct_that_goes_while_it_is_written();
    trace_forget();
    return 0;
}
