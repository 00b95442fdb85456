/* SPDX-License-Identifier: MIT
 * test_scope.c: a scope lets go of what it holds exactly once, in reverse, on every way out, and knows what it did.
 *
 * tlm-test: sources=core */
#include "trace.h"

STAND_IN_FOR_SAMPLER

static const tlm_holder FLOATING = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);
static const tlm_holder ME = TLM_HOLDER(TLM_HOLDER_HANDLE, 1);

static tlm_object make(uint64_t bytes)
{
    tlm_object object = 0;
    CHECK(tlm_object_alloc(TLM_DEVICE_CPU, bytes, &object) == TLM_OK && object != 0);
    return object;
}

static tlm_object make_registered(void)
{
    tlm_object object = make(8);
    CHECK(tlm_register(object) == TLM_OK);
    return object;
}

static uint64_t enter(const char *label)
{
    uint64_t id = 0;
    CHECK(tlm_scope_enter(tlm_label_of(label), &id) == TLM_OK && id != 0);
    return id;
}

static tlm_holder scope_holder(uint64_t id)
{
    return TLM_HOLDER(TLM_HOLDER_SCOPE, id);
}

static void check_nothing_is_left(void)
{
    tlm_runtime_statistics out;
    tlm_runtime_stats(0, &out);
    CHECK(out.total_count - out.freed_count == 0 && out.current_count == 0 && out.current_bytes == 0);
    CHECK(out.floating == 0 && tlm_scope_depth() == 0 && tlm_scope_current() == 0);
}

static void check_exit_releases_in_reverse(void)
{
    trace_begin(TRACE_OBJECTS);
    uint64_t id = enter("epoch");
    tlm_object a = make_registered(), b = make_registered(), c = make_registered();
    CHECK(tlm_acquire(b, ME) == TLM_OK);
    tlm_scope_statistics left;
    CHECK(tlm_scope_exit(id, &left) == TLM_OK);
    trace_end();
    tlm_holder by = scope_holder(id);
    TRACE({TLM_KIND_SCOPE_ENTER, id, tlm_label_of("epoch"), 1}, {TLM_KIND_ALLOC, a, 8, 1},
          {TLM_KIND_REGISTER, a, by, 1}, {TLM_KIND_ALLOC, b, 8, 1}, {TLM_KIND_REGISTER, b, by, 1},
          {TLM_KIND_ALLOC, c, 8, 1}, {TLM_KIND_REGISTER, c, by, 1}, {TLM_KIND_ACQUIRE, b, ME, 2},
          {TLM_KIND_RELEASE, c, by, 0}, {TLM_KIND_FREE, c, 0, 0}, {TLM_KIND_RELEASE, b, by, 1},
          {TLM_KIND_RELEASE, a, by, 0}, {TLM_KIND_FREE, a, 0, 0}, {TLM_KIND_SCOPE_EXIT, id, 2, 0});
    CHECK(left.id == id && left.depth == 1 && left.parent == 0 && left.label == tlm_label_of("epoch"));
    CHECK(left.allocations == 3 && left.frees == 2 && left.leaked == 1 && left.escaped == 0);
    CHECK(tlm_check(b) == TLM_OK && tlm_release(b, ME) == TLM_OK);
    check_nothing_is_left();
}

static void check_a_label_is_a_number(void)
{
    CHECK(tlm_label_of("epoch") == tlm_label_of("epoch") && tlm_label_of("epoch") != tlm_label_of("step"));
    CHECK(tlm_label_of("") == 0 && tlm_label_of(NULL) == 0 && tlm_label_text(0)[0] == 0);
}

static void check_registering_twice_is_told_and_changes_nothing(void)
{
    uint64_t outer = enter("outer");
    tlm_object x = make_registered();
    uint64_t inner = enter("inner");
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_register(x) == TLM_ALREADY_REGISTERED && tlm_register_in(outer, x) == TLM_ALREADY_REGISTERED);
    trace_end();
    TRACE({TLM_KIND_MISUSE, x, scope_holder(outer), TLM_MISUSE_DOUBLE_REGISTER},
          {TLM_KIND_MISUSE, x, scope_holder(outer), TLM_MISUSE_DOUBLE_REGISTER});
    CHECK(tlm_object_holders(x, NULL, 0) == 1 && tlm_scope_exit(inner, NULL) == TLM_OK && tlm_check(x) == TLM_OK);
    CHECK(tlm_scope_exit(outer, NULL) == TLM_OK && tlm_check(x) == TLM_FREED);
    check_nothing_is_left();
}

static void check_handing_over(void)
{
    trace_begin(TRACE_OBJECTS);
    uint64_t outer = enter("caller"), inner = enter("callee");
    tlm_object result = make_registered(), kept = make_registered(), moved = make_registered();
    CHECK(tlm_promote(result) == TLM_OK && tlm_escape(kept, ME) == TLM_OK && tlm_unregister(moved) == TLM_OK);
    tlm_scope_statistics left;
    CHECK(tlm_scope_stats(0, &left) == TLM_OK && left.id == inner && left.count == 3 && left.escaped == 3);
    CHECK(tlm_scope_exit(inner, &left) == TLM_OK && left.frees == 0 && left.leaked == 0 && left.escaped == 3);
    CHECK(tlm_register(result) == TLM_OK && tlm_register_in(outer, moved) == TLM_OK);
    CHECK(tlm_object_holders(result, NULL, 0) == 1 && tlm_scope_exit(outer, NULL) == TLM_OK);
    CHECK(tlm_check(kept) == TLM_OK && tlm_release(kept, ME) == TLM_OK);
    trace_end();
    tlm_holder by = scope_holder(inner), then = scope_holder(outer);
    CHECK(trace_count(TLM_KIND_ACQUIRE, TRACE_ANY) == 0);
    CHECK(trace_find(TLM_KIND_PROMOTE, result, 0) < trace_find(TLM_KIND_ESCAPE, kept, 0));
    for (uint32_t i = 0; i < trace_used; i++) {
        const tlmi_event *event = &trace_events[i];
        if (event->kind == TLM_KIND_PROMOTE || event->kind == TLM_KIND_UNREGISTER)
            CHECK(event->arg == by && event->count == 1);
        if (event->kind == TLM_KIND_ESCAPE)
            CHECK(event->arg == ME && event->count == 1);
        if (event->kind == TLM_KIND_RELEASE && event->object != kept)
            CHECK(event->arg == then && event->count == 0);
    }
    check_nothing_is_left();
}

static void check_handing_over_needs_a_scope(void)
{
    tlm_object x = make(8);
    CHECK(tlm_register(x) == TLM_NOT_IN_SCOPE && tlm_object_holders(x, NULL, 0) == 1);
    CHECK(tlm_escape(x, ME) == TLM_NOT_IN_SCOPE && tlm_unregister(x) == TLM_NOT_REGISTERED);
    uint64_t id = enter("here");
    CHECK(tlm_escape(x, ME) == TLM_NOT_REGISTERED && tlm_promote(x) == TLM_NOT_REGISTERED);
    CHECK(tlm_register_from(id, x, ME) == TLM_NOT_A_HOLDER && tlm_object_holders(x, NULL, 0) == 1);
    CHECK(tlm_register_from(id, x, FLOATING) == TLM_OK && tlm_escape(x, FLOATING) == TLM_BAD_ARGUMENT);
    CHECK(tlm_scope_exit(id, NULL) == TLM_OK && tlm_check(x) == TLM_FREED);
    x = make(8);
    CHECK(tlm_register_in(id, x) == TLM_NOT_IN_SCOPE && tlm_scope_stats(id, &(tlm_scope_statistics){0}) != TLM_OK);
    CHECK(tlm_scope_stats(0, &(tlm_scope_statistics){0}) == TLM_NOT_IN_SCOPE && tlm_free(x) == TLM_OK);
    CHECK(tlm_register(x) == TLM_NOT_IN_SCOPE);
    check_nothing_is_left();
}

static void check_a_registered_object_that_is_freed_leaves_no_record(void)
{
    uint64_t id = enter("early");
    tlm_object x = make_registered(), y = make_registered();
    CHECK(tlm_free(x) == TLM_OK);
    tlm_object again[100];
    for (int i = 0; i < 100; i++)
        again[i] = make(1); /* one of them has the slot of x */
    tlm_scope_statistics left;
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_scope_exit(id, &left) == TLM_OK && left.frees == 2 && left.leaked == 0);
    trace_end();
    TRACE({TLM_KIND_RELEASE, y, scope_holder(id), 0}, {TLM_KIND_FREE, y, 0, 0}, {TLM_KIND_SCOPE_EXIT, id, 2, 0});
    for (int i = 0; i < 100; i++)
        CHECK(tlm_free(again[i]) == TLM_OK);
    check_nothing_is_left();
}

static void check_leaving_out_of_order(void)
{
    uint64_t outer = enter("outer"), inner = enter("inner");
    tlm_object x = make_registered();
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_scope_exit(outer, NULL) == TLM_UNBALANCED && tlm_check(x) == TLM_FREED && tlm_scope_depth() == 0);
    CHECK(tlm_scope_exit(inner, NULL) == TLM_NOT_IN_SCOPE && tlm_scope_exit(outer, NULL) == TLM_NOT_IN_SCOPE);
    trace_end();
    CHECK(trace_count(TLM_KIND_MISUSE, 0) == 3 && trace_count(TLM_KIND_SCOPE_EXIT, TRACE_ANY) == 2);
    check_nothing_is_left();
}

static void check_contexts_are_apart(void)
{
    tlm_context *one, *two;
    CHECK(tlm_context_create(&one) == TLM_OK && tlm_context_create(&two) == TLM_OK);
    uint64_t mine = enter("thread");
    CHECK(tlm_context_switch(one) == NULL && tlm_scope_depth() == 0);
    uint64_t first = enter("first");
    tlm_object a = make_registered();
    CHECK(tlm_context_switch(two) == one && tlm_scope_depth() == 0);
    uint64_t second = enter("second");
    tlm_object b = make_registered();
    CHECK(tlm_scope_exit(first, NULL) == TLM_NOT_IN_SCOPE && tlm_context_switch(one) == two);
    CHECK(tlm_scope_exit(first, NULL) == TLM_OK && tlm_check(a) == TLM_FREED && tlm_check(b) == TLM_OK);
    CHECK(tlm_context_switch(two) == one && tlm_scope_current() == second);
    tlm_context_destroy(two); /* leaves what is entered, and the thread has its own context again */
    CHECK(tlm_check(b) == TLM_FREED && tlm_scope_current() == mine);
    CHECK(tlm_scope_exit(mine, NULL) == TLM_OK);
    tlm_context_destroy(one);
    tlm_context_destroy(NULL);
    check_nothing_is_left();
}

static void check_scopes_outside_any_context(void)
{
    uint64_t root, child, grandchild;
    CHECK(tlm_scope_create(tlm_label_of("root"), 0, &root) == TLM_OK && tlm_scope_depth() == 0);
    CHECK(tlm_scope_create(0, root, &child) == TLM_OK && tlm_scope_create(0, child, &grandchild) == TLM_OK);
    tlm_object a = make(8), b = make(8), c = make(8);
    CHECK(tlm_register_in(root, a) == TLM_OK && tlm_register_in(child, b) == TLM_OK);
    CHECK(tlm_register_in(grandchild, c) == TLM_OK && tlm_scope_exit(child, NULL) == TLM_NOT_IN_SCOPE);
    trace_begin(TRACE_OBJECTS);
    CHECK(tlm_scope_destroy(root, NULL) == TLM_OK);
    trace_end();
    CHECK(trace_find(TLM_KIND_FREE, c, 0) < trace_find(TLM_KIND_FREE, b, 0));
    CHECK(trace_find(TLM_KIND_FREE, b, 0) < trace_find(TLM_KIND_FREE, a, 0));
    CHECK(tlm_scope_destroy(root, NULL) == TLM_NOT_IN_SCOPE && tlm_scope_destroy(child, NULL) == TLM_NOT_IN_SCOPE);
    uint64_t here = enter("context"), other;
    CHECK(tlm_scope_destroy(here, NULL) == TLM_NOT_IN_SCOPE && tlm_scope_create(0, here, &other) == TLM_NOT_IN_SCOPE);
    CHECK(tlm_scope_exit(here, NULL) == TLM_OK && tlm_scope_create(0, root, &other) == TLM_NOT_IN_SCOPE);
    check_nothing_is_left();
}

static void check_without_memory_nothing_changes(void)
{
    uint64_t outer = enter("outer");
    int refused = 0;
    enum { MOST = 3000 };
    static tlm_object made[MOST];
    for (int i = 0; i < MOST; i++) {
        made[i] = make(0);
        tlm_own_fail_after(1);
        tlm_status status = tlm_register(made[i]);
        tlm_own_fail_after(0);
        if (status != TLM_OK) {
            CHECK(status == TLM_NO_MEMORY && tlm_object_holders(made[i], NULL, 0) == 1);
            CHECK(tlm_register(made[i]) == TLM_OK);
            refused++;
        }
    }
    CHECK(refused > 0);
    tlm_scope_statistics left;
    CHECK(tlm_scope_exit(outer, &left) == TLM_OK && left.frees == MOST);
    check_nothing_is_left();
}

/* ---- many threads ---- */

enum { THREADS = 8, ROUNDS = 1500 };
static uint64_t common;
static _Atomic int handed_over;

/* Objects go through scopes of several threads while other threads free them or take them out. */
static void *work(void *argument)
{
    uint64_t seed = 77 + (uint64_t)(uintptr_t)argument;
    static _Atomic tlm_object board[64];
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t number = next_random(&seed), id = enter("round");
        for (int k = 0; k < 4; k++) {
            tlm_object x = make_registered();
            tlm_object former = atomic_exchange(&board[(number >> (8 * k)) % 64], x);
            if (!former)
                continue;
            tlm_status status = number & 1 ? tlm_free(former) : tlm_promote(former);
            if (status == TLM_OK && !(number & 1)) {
                status = tlm_register_in(common, former);
                handed_over += status == TLM_OK;
                CHECK(status == TLM_OK || status == TLM_FREED);
            }
        }
        CHECK(tlm_scope_exit(id, NULL) == TLM_OK && tlm_scope_depth() == 0);
    }
    for (int i = 0; i < 64; i++)
        atomic_store(&board[i], 0);
    return NULL;
}

static void check_threads(void)
{
    pthread_t threads[THREADS];
    CHECK(tlm_scope_create(tlm_label_of("common"), 0, &common) == TLM_OK);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    tlm_scope_statistics left;
    CHECK(tlm_scope_destroy(common, &left) == TLM_OK && left.count == (uint64_t)handed_over);
    CHECK(left.allocations == left.frees + left.escaped + left.leaked && left.leaked == 0);
    check_nothing_is_left();
}

static void *enter_and_end(void *unused)
{
    (void)unused;
    enter("never left");
    make_registered();
    return NULL;
}

static void check_a_thread_that_ends_leaves_its_scopes(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, enter_and_end, NULL) == 0);
    pthread_join(thread, NULL);
    check_nothing_is_left();
}

/* ---- scopes used by what a scope frees ---- */

typedef struct {
    uint64_t outer, inner, forgotten, current, depth;
    tlm_object made, in_arena;
    tlm_status left_inner, left_outer;
} seen_by_drop;

static void use_scopes(void *context)
{
    seen_by_drop *seen = context;
    seen->current = tlm_scope_current();
    seen->depth = tlm_scope_depth();
    seen->left_inner = tlm_scope_exit(seen->inner, NULL);
    seen->left_outer = tlm_scope_exit(seen->outer, NULL);
    seen->made = make_registered();
    CHECK(tlm_arena_object(64, &seen->in_arena) == TLM_OK);
    uint64_t left = enter("left");
    make_registered();
    CHECK(tlm_scope_exit(left, NULL) == TLM_OK);
    seen->forgotten = enter("forgotten");
    make_registered();
}

static void check_what_a_scope_frees_may_use_scopes(void)
{
    seen_by_drop seen = {0};
    tlm_object adopted = 0, in_arena = 0;
    tlm_context *context = NULL;
    CHECK(tlm_context_create(&context) == TLM_OK && tlm_context_switch(context) == NULL);
    seen.outer = enter("outer");
    seen.inner = enter("inner");
    CHECK(tlm_arena_object(64, &in_arena) == TLM_OK);
    CHECK(tlm_object_adopt(TLM_DEVICE_CPU, NULL, 0, use_scopes, &seen, &adopted) == TLM_OK);
    CHECK(tlm_register(adopted) == TLM_OK);
    tlm_scope_statistics left;
    CHECK(tlm_scope_exit(seen.inner, &left) == TLM_OK && left.frees == 2 && left.parent == seen.outer);
    CHECK(seen.current == seen.outer && seen.depth == 1);
    CHECK(seen.left_inner == TLM_NOT_IN_SCOPE && seen.left_outer == TLM_NOT_IN_SCOPE);
    CHECK(tlm_scope_current() == seen.outer && tlm_scope_stats(seen.forgotten, &left) == TLM_NOT_IN_SCOPE);
    tlm_object later = 0;
    CHECK(tlm_check(seen.made) == TLM_OK && tlm_arena_object(64, &later) == TLM_OK);
    CHECK(tlm_payload(later) != tlm_payload(seen.in_arena)); /* though `inner` gave its part of the arena back */
    CHECK(tlm_scope_exit(seen.outer, &left) == TLM_OK && left.frees == 3);
    CHECK(tlm_context_switch(NULL) == context);
    tlm_context_destroy(context); /* with its arena */
    check_nothing_is_left();
}

static void end_thread(void *unused)
{
    (void)unused;
    pthread_exit(NULL); /* as the interpreter does to threads that come back to it when it has ended */
}

static void *leave_and_never_return(void *unused)
{
    tlm_object adopted = 0;
    uint64_t outer = enter("outer");
    make_registered();
    enter("inner");
    make_registered();
    CHECK(tlm_object_adopt(TLM_DEVICE_CPU, NULL, 0, end_thread, NULL, &adopted) == TLM_OK);
    CHECK(tlm_register(adopted) == TLM_OK);
    make_registered();
    tlm_scope_exit(outer, NULL);
    CHECK(!"the thread goes on");
    return unused;
}

static void check_a_thread_may_end_while_a_scope_ends(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, leave_and_never_return, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    check_nothing_is_left();
}

static void end_parent(void *context)
{
    CHECK(tlm_scope_destroy(*(uint64_t *)context, NULL) == TLM_OK);
}

static void check_a_parent_may_end_while_its_child_ends(void)
{
    uint64_t parent = 0, child = 0;
    tlm_object adopted = 0;
    CHECK(tlm_scope_create(0, 0, &parent) == TLM_OK && tlm_scope_create(0, parent, &child) == TLM_OK);
    CHECK(tlm_object_adopt(TLM_DEVICE_CPU, NULL, 0, end_parent, &parent, &adopted) == TLM_OK);
    CHECK(tlm_register_in(child, adopted) == TLM_OK);
    tlm_scope_statistics left;
    CHECK(tlm_scope_destroy(child, &left) == TLM_OK && left.parent == parent && left.frees == 1);
    check_nothing_is_left();
}

int main(void)
{
    check_exit_releases_in_reverse();
    check_a_label_is_a_number();
    check_registering_twice_is_told_and_changes_nothing();
    check_handing_over();
    check_handing_over_needs_a_scope();
    check_a_registered_object_that_is_freed_leaves_no_record();
    check_leaving_out_of_order();
    check_contexts_are_apart();
    check_scopes_outside_any_context();
    check_what_a_scope_frees_may_use_scopes();
    check_a_parent_may_end_while_its_child_ends();
    check_a_thread_may_end_while_a_scope_ends();
    check_without_memory_nothing_changes();
    check_threads();
    check_a_thread_that_ends_leaves_its_scopes();
    trace_forget();
    return 0;
}
