/* SPDX-License-Identifier: MIT
 * scope.c: scopes: enter, register, escape, the exit that lets go of everything, last in first out, and the table of scopes by id.
 *
 * The table is read under its own lock, which comes after that of an object and before that of a scope. While a scope
 * closes nothing new comes in, and it is not in the table any more.
 *
 * A record is the handle of an object that the scope holds; the object knows its scope and its record. A record is struck,
 * never moved, when its object leaves.
 *
 * What a scope frees may call back (`drop`) and use scopes. To such a call the closing scope and those around it are not
 * entered: it cannot leave them. Scopes that it enters and does not leave are left with the closing one.
 */
#include <string.h>

#include "memory/memory.h"

enum { BUCKETS = 1024, SPARES = 4 };
#define FEW (sizeof((tlmi_scope){0}.few) / sizeof(tlm_object))

static tlmi_scope *table[BUCKETS];
static tlmi_spin table_lock;
static _Atomic uint64_t next_id = 1;

/* ---- the table ---- */

/* Under the table's lock. */
static tlmi_scope *find_scope(uint64_t id)
{
    tlmi_scope *scope = table[id % BUCKETS];
    while (scope && scope->id != id)
        scope = scope->next_in_table;
    return scope;
}

static void enter_in_table(tlmi_scope *scope)
{
    tlmi_spin_lock(&table_lock);
    scope->next_in_table = table[scope->id % BUCKETS];
    table[scope->id % BUCKETS] = scope;
    tlmi_spin_unlock(&table_lock);
}

/* Under the table's lock. */
static void remove_from_table(tlmi_scope *scope)
{
    tlmi_scope **at = &table[scope->id % BUCKETS];
    while (*at != scope)
        at = &(*at)->next_in_table;
    *at = scope->next_in_table;
}

tlmi_scope *tlmi_scope_lock(uint64_t id)
{
    tlmi_spin_lock(&table_lock);
    tlmi_scope *scope = find_scope(id);
    if (scope)
        tlmi_spin_lock(&scope->lock);
    tlmi_spin_unlock(&table_lock);
    return scope;
}

/* ---- a scope's own memory ---- */

static tlmi_scope *take_scope(tlm_context *context)
{
    tlmi_scope *scope = context ? context->spare : NULL;
    if (scope)
        context->spare = scope->outer;
    else
        scope = tlmi_slab_alloc(sizeof *scope);
    return scope;
}

static void give_scope(tlmi_scope *scope)
{
    if (scope->records != scope->few)
        tlmi_slab_free(scope->records, scope->records_room * sizeof *scope->records);
    tlmi_slab_free(scope, sizeof *scope);
}

void tlmi_scope_free_spares(tlm_context *context)
{
    while (context->spare) {
        tlmi_scope *scope = context->spare;
        context->spare = scope->outer;
        context->spare_count--;
        give_scope(scope);
    }
}

/* Keeps a left scope, with room for some records, for the next one. */
static void retire_scope(tlm_context *context, tlmi_scope *scope)
{
    if (!context || context->spare_count >= SPARES) {
        give_scope(scope);
        return;
    }
    scope->outer = context->spare;
    context->spare = scope;
    context->spare_count++;
}

/* ---- enter ---- */

static void begin_scope(tlmi_scope *scope, tlm_label label, tlm_context *context, tlmi_scope *outer)
{
    scope->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
    scope->parent = outer ? outer->id : 0;
    scope->outer = outer;
    scope->context = context;
    scope->closing = scope->is_frame = false;
    scope->label = label;
    scope->depth = outer ? outer->depth + 1 : 1;
    if (!scope->records) {
        scope->records = scope->few;
        scope->records_room = FEW;
    }
    scope->records_used = 0;
    scope->count = scope->frees = scope->escaped = scope->leaked = 0;
    scope->first_child = scope->next_sibling = NULL;
    scope->slots = 0;
}

static void record_enter(const tlmi_scope *scope)
{
    if (tlmi_probe_on())
        tlmi_event_append(TLM_KIND_SCOPE_ENTER, TLM_DEVICE_NONE, scope->id, tlmi_label_write(scope->label),
                          tlmi_site_here(), (uint16_t)(scope->depth < 65535 ? scope->depth : 65535));
}

tlm_status tlmi_scope_open(tlm_label label, tlmi_scope **out)
{
    tlm_context *context = tlmi_context_here();
    bool was_spare = context->spare != NULL;
    tlmi_scope *scope = take_scope(context);
    if (!scope)
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, sizeof *scope, 0);
    context->spare_count -= was_spare;
    begin_scope(scope, label, context, context->innermost);
    scope->arena_low = context->arena.low;
    scope->arena_high = context->arena.high;
    context->innermost = scope;
    enter_in_table(scope);
    record_enter(scope);
    *out = scope;
    return TLM_OK;
}

tlm_status tlm_scope_enter(tlm_label label, uint64_t *id)
{
    tlmi_scope *scope = NULL;
    tlm_status status = tlmi_scope_open(label, &scope);
    if (status == TLM_OK)
        *id = scope->id;
    return status;
}

tlm_status tlm_scope_create(tlm_label label, uint64_t parent, uint64_t *id)
{
    tlmi_scope *scope = take_scope(NULL);
    if (!scope)
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, sizeof *scope, 0);
    tlmi_spin_lock(&table_lock);
    tlmi_scope *outer = parent ? find_scope(parent) : NULL;
    bool good = !parent || (outer && !outer->context);
    if (good) {
        begin_scope(scope, label, NULL, outer);
        if (outer) {
            scope->next_sibling = outer->first_child;
            outer->first_child = scope;
        }
    }
    tlmi_spin_unlock(&table_lock);
    if (!good) {
        tlmi_slab_free(scope, sizeof *scope);
        return tlmi_fail(TLM_NOT_IN_SCOPE, 0, 0, 0, parent);
    }
    *id = scope->id;
    enter_in_table(scope);
    record_enter(scope);
    return TLM_OK;
}

/* ---- leave ---- */

typedef enum { GONE, FREED, HELD_BY_OTHERS } fate;

/* The scope's record of an object ends with the scope. */
static fate release_record(tlmi_scope *scope, tlm_object object, uint32_t site)
{
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot) {
        tlmi_foreign_purge(object, scope, site);
        return GONE;
    }
    if (slot->scope != scope || !tlmi_holder_remove(slot, tlmi_scope_holder(scope))) {
        tlmi_object_unlock(slot);
        return GONE;
    }
    slot->scope = NULL;
    bool last = atomic_load_explicit(&slot->count, memory_order_relaxed) == 1;
    bool in_arena = slot->flags & TLM_FLAG_ARENA;
    if (last || !in_arena) {
        tlmi_object_let_go(slot, tlmi_scope_holder(scope), site);
        return last ? FREED : HELD_BY_OTHERS;
    }
    /* Its memory ends here, whoever else holds it. */
    tlm_holder other = slot->holders[0] ? slot->holders[0] : slot->holders[1];
    tlmi_misuse(TLM_MISUSE_OUTLIVES_FRAME, slot->device, object, other, site);
    tlmi_object_end(slot, site);
    return FREED;
}

static void fill_statistics(const tlmi_scope *scope, tlm_scope_statistics *out)
{
    *out = (tlm_scope_statistics){
        .id = scope->id,
        .parent = scope->parent,
        .label = scope->label,
        .depth = scope->depth,
        .count = scope->count,
        .allocations = scope->count,
        .frees = scope->frees,
        .escaped = scope->escaped,
        .leaked = scope->leaked,
    };
}

static void record_exit(const tlmi_scope *scope, tlm_kind kind, uint64_t freed, uint32_t site)
{
    if (tlmi_probe_on())
        tlmi_event_append((uint8_t)kind, TLM_DEVICE_NONE, scope->id, freed, site, 0);
}

/* Leaves the innermost scope, which should have been left before. */
static void leave_unbalanced(tlm_context *context, uint32_t site)
{
    const tlmi_scope *scope = context->innermost;
    tlmi_misuse(scope->is_frame ? TLM_MISUSE_UNBALANCED_FRAME : TLM_MISUSE_UNBALANCED_SCOPE, TLM_DEVICE_NONE, 0,
                tlmi_scope_holder(scope), site);
    tlmi_scope_close(context, NULL, site);
}

/* Releases every record. The scope is not in the table any more, so nothing new finds it but through its objects. */
static void end_scope(tlmi_scope *scope, tlm_scope_statistics *out, uint32_t site)
{
    tlmi_spin_lock(&scope->lock);
    scope->closing = true;
    uint32_t left = scope->records_used;
    tlmi_spin_unlock(&scope->lock);
    uint64_t fates[3] = {0};
    while (left-- > 0) {
        tlm_object object = __atomic_load_n(&scope->records[left], __ATOMIC_RELAXED);
        if (object)
            fates[release_record(scope, object, site)]++;
    }
    while (scope->context && scope->context->innermost != scope)
        leave_unbalanced(scope->context, site);
    /* Whoever was about to strike a record of ours is done after this. */
    tlmi_spin_lock(&scope->lock);
    scope->frees += fates[FREED];
    scope->leaked += fates[HELD_BY_OTHERS];
    tlmi_spin_unlock(&scope->lock);
    record_exit(scope, TLM_KIND_SCOPE_EXIT, scope->frees, site);
    if (scope->is_frame)
        record_exit(scope, TLM_KIND_FRAME_EXIT, tlmi_frame_end(scope, site), site);
    if (out)
        fill_statistics(scope, out);
}

void tlmi_scope_close(tlm_context *context, tlm_scope_statistics *out, uint32_t site)
{
    tlmi_scope *scope = context->innermost;
    uint64_t low = context->arena.low;
    if (tlmi_likely(!scope->closing)) { /* else the thread was ended by a `drop`, and this is its exit */
        tlmi_spin_lock(&table_lock);
        remove_from_table(scope);
        tlmi_spin_unlock(&table_lock);
    }
    end_scope(scope, out, site);
    context->innermost = scope->outer;
    if (scope->is_frame)
        context->frame = scope->outer_frame;
    if (context->arena.low == low) /* else the scope around it has got objects above */
        tlmi_arena_end_low(&context->arena, scope->arena_low);
    if (scope->is_frame)
        tlmi_arena_end_high(&context->arena, scope->arena_high);
    retire_scope(context, scope);
}

/* Whether the scope is entered in this context. */
static bool is_entered(const tlm_context *context, uint64_t id)
{
    const tlmi_scope *scope = context->innermost;
    while (scope && !scope->closing && scope->id != id)
        scope = scope->outer;
    return scope && !scope->closing;
}

tlm_status tlm_scope_exit(uint64_t id, tlm_scope_statistics *out)
{
    tlm_context *context = tlmi_context_here();
    uint32_t site = tlmi_site_for_events();
    if (!is_entered(context, id)) {
        tlmi_misuse(TLM_MISUSE_UNBALANCED_SCOPE, TLM_DEVICE_NONE, 0, TLM_HOLDER(TLM_HOLDER_SCOPE, id), site);
        return tlmi_fail(TLM_NOT_IN_SCOPE, 0, 0, 0, id);
    }
    uint64_t inner = context->innermost->id;
    while (context->innermost->id != id)
        leave_unbalanced(context, site);
    tlmi_scope_close(context, out, site);
    return inner == id ? TLM_OK : tlmi_fail(TLM_UNBALANCED, 0, TLM_HOLDER(TLM_HOLDER_SCOPE, inner), 0, id);
}

/* The newest scope at the bottom of the tree below this one. Under the table's lock. */
static tlmi_scope *newest_leaf(tlmi_scope *scope)
{
    while (scope->first_child)
        scope = scope->first_child;
    return scope;
}

/* Takes a leaf that belongs to no context out of the tree and the table. Under the table's lock. */
static void detach_leaf(tlmi_scope *leaf)
{
    if (leaf->outer) {
        tlmi_scope **at = &leaf->outer->first_child;
        while (*at != leaf)
            at = &(*at)->next_sibling;
        *at = leaf->next_sibling;
    }
    remove_from_table(leaf);
}

tlm_status tlm_scope_destroy(uint64_t id, tlm_scope_statistics *out)
{
    uint32_t site = tlmi_site_for_events();
    for (bool found = false;;) {
        tlmi_spin_lock(&table_lock);
        tlmi_scope *scope = find_scope(id);
        if (!scope || scope->context) {
            tlmi_spin_unlock(&table_lock);
            return found ? TLM_OK : tlmi_fail(TLM_NOT_IN_SCOPE, 0, 0, 0, id);
        }
        found = true;
        tlmi_scope *leaf = newest_leaf(scope);
        detach_leaf(leaf);
        tlmi_spin_unlock(&table_lock);
        end_scope(leaf, leaf == scope ? out : NULL, site);
        bool done = leaf == scope;
        give_scope(leaf);
        if (done)
            return TLM_OK;
    }
}

/* ---- look ---- */

uint64_t tlm_scope_current(void)
{
    const tlmi_scope *scope = tlmi_scope_innermost(tlmi_context_here());
    return scope ? scope->id : 0;
}

uint32_t tlm_scope_depth(void)
{
    const tlmi_scope *scope = tlmi_scope_innermost(tlmi_context_here());
    return scope ? scope->depth : 0;
}

tlm_status tlm_scope_stats(uint64_t id, tlm_scope_statistics *out)
{
    uint64_t wanted = id ? id : tlm_scope_current();
    tlmi_scope *scope = wanted ? tlmi_scope_lock(wanted) : NULL;
    if (!scope)
        return tlmi_fail(TLM_NOT_IN_SCOPE, 0, 0, 0, id);
    fill_statistics(scope, out);
    tlmi_spin_unlock(&scope->lock);
    return TLM_OK;
}

/* ---- what comes into a scope, and what leaves before its end ---- */

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

/* In the innermost scope of this context, or, where that is NULL, in the one of this id. */
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
    tlmi_scope *innermost = tlmi_scope_innermost(tlmi_context_here());
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

/* ---- memory that ends with a scope: of arenas, of slots of frames ----
 *
 * An object consists of itself, of what it looks into when it is a view, and of its fields when it is a struct. It may only
 * leave for longer than all of these live. */

enum { FIRST_PARTS = 64 };

typedef struct {
    tlm_object *objects;
    uint32_t used, room, number; /* of this walk: a struct that several share is looked at once */
    tlm_object few[FIRST_PARTS];
} parts;

static _Atomic uint32_t next_walk = 1;

static bool add_part(parts *waiting, tlm_object object)
{
    if (waiting->used == waiting->room) {
        uint32_t room = waiting->room * 2;
        tlm_object *bigger = tlmi_slab_alloc(room * sizeof *bigger);
        if (!bigger)
            return false;
        memcpy(bigger, waiting->objects, waiting->used * sizeof *bigger);
        if (waiting->objects != waiting->few)
            tlmi_slab_free(waiting->objects, waiting->room * sizeof *bigger);
        waiting->objects = bigger;
        waiting->room = room;
    }
    waiting->objects[waiting->used++] = object;
    return true;
}

/* The parts of an object that are not looked at yet. The object is locked. false: no memory. */
static bool add_parts_of(parts *waiting, tlmi_slot_of_object *slot)
{
    if (slot->type == TLM_OBJECT_VIEW)
        return add_part(waiting, slot->as.view.base);
    if (slot->type != TLM_OBJECT_STRUCT || slot->walk == waiting->number)
        return true;
    slot->walk = waiting->number;
    for (uint32_t i = 0; i < slot->as.record.fields; i++)
        if (slot->as.record.values[i] && !add_part(waiting, slot->as.record.values[i]))
            return false;
    return true;
}

/* The scopes that an object is to leave: that of a context which is so deep, and those inside it; NULL: all there are. */
typedef struct {
    const tlm_context *context;
    uint32_t depth;
} left_scopes;

static bool is_left(left_scopes left, const tlmi_scope *scope)
{
    return !left.context || (scope->context == left.context && scope->depth >= left.depth);
}

static bool frame_is_left(left_scopes left, tlm_holder holder)
{
    tlmi_scope *frame = TLM_HOLDER_KIND(holder) == TLM_HOLDER_FRAME ? tlmi_scope_lock(TLM_HOLDER_NUMBER(holder)) : NULL;
    bool found = frame && is_left(left, frame);
    if (frame)
        tlmi_spin_unlock(&frame->lock);
    return found;
}

/* Whether the memory of an object itself ends with one of these scopes. It is locked. */
static bool ends_with(left_scopes left, const tlmi_slot_of_object *slot)
{
    if (slot->type == TLM_OBJECT_BUFFER)
        return frame_is_left(left, slot->holders[0]) || frame_is_left(left, slot->holders[1]);
    return slot->flags & TLM_FLAG_ARENA && slot->scope && is_left(left, slot->scope);
}

/* TLM_IN_ARENA, and which, when a part of an object ends with one of these scopes. */
static tlm_status find_ending_part(tlm_object object, left_scopes left, tlm_object *found)
{
    parts waiting = {.room = FIRST_PARTS};
    waiting.objects = waiting.few;
    waiting.number = atomic_fetch_add_explicit(&next_walk, 1, memory_order_relaxed);
    tlm_status status = add_part(&waiting, object) ? TLM_OK : TLM_NO_MEMORY;
    while (waiting.used && status == TLM_OK) {
        *found = waiting.objects[--waiting.used];
        tlmi_slot_of_object *slot = tlmi_object_lock(*found);
        if (!slot)
            continue;
        if (ends_with(left, slot))
            status = TLM_IN_ARENA;
        else if (!add_parts_of(&waiting, slot))
            status = TLM_NO_MEMORY;
        tlmi_object_unlock(slot);
    }
    if (waiting.objects != waiting.few)
        tlmi_slab_free(waiting.objects, waiting.room * sizeof *waiting.objects);
    return status;
}

/* Whether an object that consists of others may live on behind its scope, or, for `ever`, behind any. */
static tlm_status may_outlive(tlm_object object, bool ever, tlm_holder to)
{
    left_scopes left = {0};
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    bool asks = slot && slot->scope && (slot->type == TLM_OBJECT_VIEW || slot->type == TLM_OBJECT_STRUCT);
    if (asks && !ever)
        left = (left_scopes){slot->scope->context, slot->scope->depth};
    if (slot)
        tlmi_object_unlock(slot);
    if (tlmi_likely(!asks || (!ever && !left.context))) /* a scope outside any context has no arena and no slots */
        return TLM_OK;
    tlm_object part = 0;
    tlm_status status = find_ending_part(object, left, &part);
    if (status == TLM_IN_ARENA)
        tlmi_misuse(TLM_MISUSE_OUTLIVES_FRAME, TLM_DEVICE_CPU, object, to, tlmi_site_for_events());
    return status == TLM_OK ? TLM_OK : tlmi_fail(status, object, to, 0, part);
}

tlm_status tlm_may_leave(tlm_object object)
{
    return may_outlive(object, false, TLM_HOLDER(TLM_HOLDER_FLOATING, 0));
}

/* Takes an object out of its scope and gives the count to `to`. */
static tlm_status hand_over(tlm_object object, tlm_holder to, tlm_kind kind)
{
    uint32_t site = tlmi_site_for_events();
    tlm_status may = kind == TLM_KIND_UNREGISTER ? TLM_OK : may_outlive(object, kind == TLM_KIND_ESCAPE, to);
    if (may != TLM_OK)
        return may;
    tlmi_slot_of_object *slot = tlmi_object_lock(object);
    if (!slot)
        return tlmi_object_missing(object, to, TLM_MISUSE_USE_AFTER_FREE);
    tlm_status status = TLM_OK;
    if (!slot->scope)
        status = kind != TLM_KIND_ESCAPE || tlmi_scope_innermost(tlmi_context_here()) ? TLM_NOT_REGISTERED
                                                                                      : TLM_NOT_IN_SCOPE;
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
