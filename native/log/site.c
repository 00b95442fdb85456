/* SPDX-License-Identifier: MIT
 * site.c: the tree of call sites. A site is one frame (code number, instruction) called from its parent site.
 *
 * Nodes are hash-consed in one open-addressing table: the same path always gets the same number, from 2 on. Finding a node
 * takes no lock; making one does. A slot's key is written before its id, and the node's name record before both, so a number
 * that can be seen is already explained in the file. Tables are never unmapped (a reader may still look into the last one):
 * a grown tree keeps its smaller tables, and the next recording uses the largest again.
 * Knows nothing of Python.
 */
#include <unistd.h>

#include "log/log.h"

#define FIRST_SLOTS 4096
#define FIRST_SITE 2
/* A tree of this size means that stacks never repeat; stacks end at a known site from then on. It takes 64 MB. */
#define MAX_SITES (1u << 20)
/* When the file had no room for a name, so many sites are given up at once before it is asked again. */
#define REFUSED_AT_ONCE 256

typedef struct {
    _Atomic uint32_t parent;
    _Atomic uint32_t code;
    _Atomic uint32_t instruction;
    _Atomic uint32_t id; /* 0: empty */
} site_slot;

typedef struct {
    uint32_t mask; /* slots - 1 */
    site_slot slots[];
} site_table;

static _Atomic(site_table *) current_table; /* NULL: no recording, nothing is found or made */
static site_table *largest_table;           /* ours under the lock, also between recordings */
static _Atomic uint32_t next_site = FIRST_SITE;
static _Atomic uint32_t last_code;
static _Atomic uint32_t to_refuse;
static pthread_mutex_t site_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t lock_owner;

static uint32_t home_of(const site_table *table, uint32_t parent, uint32_t code, uint32_t instruction)
{
    uint64_t mixed = (((uint64_t)parent << 32) | code) * 0x9E3779B97F4A7C15u;
    mixed ^= (uint64_t)instruction * 0xC2B2AE3D27D4EB4Fu;
    mixed ^= mixed >> 29;
    return (uint32_t)((mixed * 0x165667B19E3779F9u) >> 32) & table->mask;
}

static bool holds_node(const site_slot *slot, uint32_t parent, uint32_t code, uint32_t instruction)
{
    return atomic_load_explicit(&slot->parent, memory_order_relaxed) == parent &&
           atomic_load_explicit(&slot->code, memory_order_relaxed) == code &&
           atomic_load_explicit(&slot->instruction, memory_order_relaxed) == instruction;
}

/* The node's number; 0 when it was not there. An empty slot must not be looked at twice: it may be another node's by then. */
static uint32_t find_site(site_table *table, uint32_t parent, uint32_t code, uint32_t instruction)
{
    for (uint32_t at = home_of(table, parent, code, instruction);; at = (at + 1) & table->mask) {
        uint32_t id = atomic_load_explicit(&table->slots[at].id, memory_order_acquire);
        if (id == 0 || holds_node(&table->slots[at], parent, code, instruction))
            return id;
    }
}

/* The slot of the node, or the empty one where it belongs. Under the lock. */
static site_slot *slot_of(site_table *table, uint32_t parent, uint32_t code, uint32_t instruction)
{
    uint32_t at = home_of(table, parent, code, instruction);
    while (table->slots[at].id != 0 && !holds_node(&table->slots[at], parent, code, instruction))
        at = (at + 1) & table->mask;
    return &table->slots[at];
}

static void fill_slot(site_slot *slot, uint32_t parent, uint32_t code, uint32_t instruction, uint32_t id)
{
    atomic_store_explicit(&slot->parent, parent, memory_order_relaxed);
    atomic_store_explicit(&slot->code, code, memory_order_relaxed);
    atomic_store_explicit(&slot->instruction, instruction, memory_order_relaxed);
    atomic_store_explicit(&slot->id, id, memory_order_release);
}

static site_table *create_table(uint32_t slots)
{
    site_table *table = tlmi_own_alloc(sizeof(site_table) + (size_t)slots * sizeof(site_slot));
    if (table != NULL)
        table->mask = slots - 1;
    return table;
}

static site_table *grow_table(site_table *old)
{
    site_table *table = create_table((old->mask + 1) * 2);
    if (table == NULL)
        return old;
    for (uint32_t at = 0; at <= old->mask; at++) {
        site_slot *slot = &old->slots[at];
        if (slot->id != 0)
            fill_slot(slot_of(table, slot->parent, slot->code, slot->instruction), slot->parent, slot->code,
                      slot->instruction, slot->id);
    }
    largest_table = table;
    atomic_store_explicit(&current_table, table, memory_order_release);
    return table;
}

bool tlmi_site_init(uint32_t stack_depth)
{
    tlmi_site_reset();
    if (stack_depth == 0)
        return true;
    pthread_mutex_lock(&site_lock);
    if (largest_table == NULL)
        largest_table = create_table(FIRST_SLOTS);
    else
        for (uint32_t at = 0; at <= largest_table->mask; at++)
            if (largest_table->slots[at].id != 0)
                fill_slot(&largest_table->slots[at], 0, 0, 0, 0);
    atomic_store_explicit(&next_site, FIRST_SITE, memory_order_relaxed);
    atomic_store_explicit(&last_code, 0, memory_order_relaxed);
    atomic_store_explicit(&to_refuse, 0, memory_order_relaxed);
    atomic_store_explicit(&current_table, largest_table, memory_order_release);
    bool ready = largest_table != NULL;
    pthread_mutex_unlock(&site_lock);
    return ready;
}

void tlmi_site_reset(void)
{
    /* In a forked child the lock may belong to a thread that does not exist any more. */
    if (lock_owner != getpid()) {
        if (lock_owner != 0)
            pthread_mutex_init(&site_lock, NULL);
        lock_owner = getpid();
    }
    atomic_store_explicit(&current_table, NULL, memory_order_release);
}

static uint32_t make_site(uint32_t parent, uint32_t code, uint32_t instruction, uint32_t line)
{
    uint32_t id = 0;
    pthread_mutex_lock(&site_lock);
    site_table *table = atomic_load_explicit(&current_table, memory_order_relaxed);
    uint32_t next = atomic_load_explicit(&next_site, memory_order_relaxed);
    uint32_t used = next - FIRST_SITE;
    if (table != NULL && used > table->mask / 4 * 3)
        table = grow_table(table);
    if (table != NULL) {
        site_slot *slot = slot_of(table, parent, code, instruction);
        id = slot->id;
        /* Without memory for a larger table the old one serves until it is nearly full. */
        if (id == 0 && used < MAX_SITES && used + used / 8 + 1 < table->mask) {
            if (tlmi_meta_site(next, parent, code, line)) {
                id = next;
                fill_slot(slot, parent, code, instruction, id);
                atomic_store_explicit(&next_site, next + 1, memory_order_relaxed);
            } else {
                atomic_store_explicit(&to_refuse, REFUSED_AT_ONCE, memory_order_relaxed);
            }
        }
    }
    pthread_mutex_unlock(&site_lock);
    return id;
}

static bool is_refused(void)
{
    if (tlmi_site_count() >= MAX_SITES)
        return true;
    uint32_t left = atomic_load_explicit(&to_refuse, memory_order_relaxed);
    if (tlmi_likely(left == 0))
        return false;
    atomic_store_explicit(&to_refuse, left - 1, memory_order_relaxed); /* a race refuses once more or less */
    return true;
}

uint32_t tlmi_site_child(uint32_t parent, uint32_t code, uint32_t instruction, uint32_t (*line)(void *), void *context)
{
    site_table *table = atomic_load_explicit(&current_table, memory_order_acquire);
    if (tlmi_unlikely(table == NULL))
        return 0;
    uint32_t id = find_site(table, parent, code, instruction);
    if (tlmi_likely(id != 0))
        return id;
    return is_refused() ? 0 : make_site(parent, code, instruction, line(context));
}

uint64_t tlmi_site_count(void)
{
    return atomic_load_explicit(&next_site, memory_order_relaxed) - FIRST_SITE;
}

uint32_t tlmi_site_new_code(void)
{
    return atomic_fetch_add_explicit(&last_code, 1, memory_order_relaxed) + 1;
}

uint32_t tlmi_site_code_count(void)
{
    return atomic_load_explicit(&last_code, memory_order_relaxed);
}
