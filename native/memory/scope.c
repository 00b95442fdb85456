/* SPDX-License-Identifier: MIT
 * scope.c: scopes: enter, the exit that lets go of everything, last in first out, and the table that finds one by its id.
 *
 * The table is read under its own lock, which comes after that of an object and before that of a scope. While a scope
 * closes nothing new comes in, and it is not in the table any more.
 *
 * What a scope frees may call back (`drop`) and use scopes. To such a call the closing scope and those around it are not
 * entered: it cannot leave them. Scopes that it enters and does not leave are left with the closing one.
 */
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

static tlmi_scope *take_scope(tlm_strand *strand)
{
    tlmi_scope *scope = strand ? strand->spare : NULL;
    if (scope)
        strand->spare = scope->outer;
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

void tlmi_scope_give_spares(tlm_strand *strand)
{
    while (strand->spare) {
        tlmi_scope *scope = strand->spare;
        strand->spare = scope->outer;
        strand->spare_count--;
        give_scope(scope);
    }
}

/* Keeps a left scope, with room for some records, for the next one. */
static void retire_scope(tlm_strand *strand, tlmi_scope *scope)
{
    if (!strand || strand->spare_count >= SPARES) {
        give_scope(scope);
        return;
    }
    scope->outer = strand->spare;
    strand->spare = scope;
    strand->spare_count++;
}

/* ---- enter ---- */

static void begin_scope(tlmi_scope *scope, tlm_label label, tlm_strand *strand, tlmi_scope *outer)
{
    scope->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
    scope->parent = outer ? outer->id : 0;
    scope->outer = outer;
    scope->strand = strand;
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
    tlm_strand *strand = tlmi_strand_here();
    bool was_spare = strand->spare != NULL;
    tlmi_scope *scope = take_scope(strand);
    if (!scope)
        return tlmi_fail(TLM_NO_MEMORY, 0, 0, sizeof *scope, 0);
    strand->spare_count -= was_spare;
    begin_scope(scope, label, strand, strand->innermost);
    scope->arena_low = strand->arena.low;
    scope->arena_high = strand->arena.high;
    strand->innermost = scope;
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
    bool good = !parent || (outer && !outer->strand);
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
static void leave_unbalanced(tlm_strand *strand, uint32_t site)
{
    const tlmi_scope *scope = strand->innermost;
    tlmi_misuse(scope->is_frame ? TLM_MISUSE_UNBALANCED_FRAME : TLM_MISUSE_UNBALANCED_SCOPE, TLM_DEVICE_NONE, 0,
                tlmi_scope_holder(scope), site);
    tlmi_scope_close(strand, NULL, site);
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
    while (scope->strand && scope->strand->innermost != scope)
        leave_unbalanced(scope->strand, site);
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

void tlmi_scope_close(tlm_strand *strand, tlm_scope_statistics *out, uint32_t site)
{
    tlmi_scope *scope = strand->innermost;
    uint64_t low = strand->arena.low;
    if (tlmi_likely(!scope->closing)) { /* else the thread was ended by a `drop`, and this is its exit */
        tlmi_spin_lock(&table_lock);
        remove_from_table(scope);
        tlmi_spin_unlock(&table_lock);
    }
    end_scope(scope, out, site);
    strand->innermost = scope->outer;
    if (scope->is_frame)
        strand->frame = scope->outer_frame;
    if (strand->arena.low == low) /* else the scope around it has got objects above */
        tlmi_arena_end_low(&strand->arena, scope->arena_low);
    if (scope->is_frame)
        tlmi_arena_end_high(&strand->arena, scope->arena_high);
    retire_scope(strand, scope);
}

/* Whether the scope is entered in this strand. */
static bool is_entered(const tlm_strand *strand, uint64_t id)
{
    const tlmi_scope *scope = strand->innermost;
    while (scope && !scope->closing && scope->id != id)
        scope = scope->outer;
    return scope && !scope->closing;
}

tlm_status tlm_scope_exit(uint64_t id, tlm_scope_statistics *out)
{
    tlm_strand *strand = tlmi_strand_here();
    uint32_t site = tlmi_site_for_events();
    if (!is_entered(strand, id)) {
        tlmi_misuse(TLM_MISUSE_UNBALANCED_SCOPE, TLM_DEVICE_NONE, 0, TLM_HOLDER(TLM_HOLDER_SCOPE, id), site);
        return tlmi_fail(TLM_NOT_IN_SCOPE, 0, 0, 0, id);
    }
    uint64_t inner = strand->innermost->id;
    while (strand->innermost->id != id)
        leave_unbalanced(strand, site);
    tlmi_scope_close(strand, out, site);
    return inner == id ? TLM_OK : tlmi_fail(TLM_UNBALANCED, 0, TLM_HOLDER(TLM_HOLDER_SCOPE, inner), 0, id);
}

/* The newest scope at the bottom of the tree below this one. Under the table's lock. */
static tlmi_scope *newest_leaf(tlmi_scope *scope)
{
    while (scope->first_child)
        scope = scope->first_child;
    return scope;
}

/* Takes a leaf that belongs to no strand out of the tree and the table. Under the table's lock. */
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
        if (!scope || scope->strand) {
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
    const tlmi_scope *scope = tlmi_scope_innermost(tlmi_strand_here());
    return scope ? scope->id : 0;
}

uint32_t tlm_scope_depth(void)
{
    const tlmi_scope *scope = tlmi_scope_innermost(tlmi_strand_here());
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
