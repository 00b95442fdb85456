/* SPDX-License-Identifier: MIT
 * holders_cycles.c: objects that no root reaches and that live all the same: in a reference cycle, or held by C.
 *
 * Of the objects that the collector follows, those that were not met are looked at together. One that none of them refers to
 * is held from outside Python, as far as can be seen. Of the others each has a referrer among them; going back from referrer
 * to referrer an object must come again, and the way between is a cycle. Both become roots.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

enum { FIRST_STRAYS = 1 << 12, MOST_STRAYS = 1 << 26, LONGEST_RING = 32 };

typedef struct {
    tlmi_search *search;
    uintptr_t *strays;
    uint32_t *referrer; /* number of one of them + 1; 0: none */
    uint32_t *table;    /* numbers + 1 by address */
    uint32_t count, room, mask;
    uint32_t from; /* whose references are visited */
} stray_set;

static bool open_set(stray_set *set, uint32_t room)
{
    set->room = room;
    set->mask = 2 * room - 1;
    set->strays = tlmi_own_alloc(room * sizeof *set->strays);
    set->referrer = tlmi_own_alloc(room * sizeof *set->referrer);
    set->table = tlmi_own_alloc(2 * (size_t)room * sizeof *set->table);
    return set->strays != NULL && set->referrer != NULL && set->table != NULL;
}

static void close_set(stray_set *set)
{
    tlmi_own_free(set->strays, set->room * sizeof *set->strays);
    tlmi_own_free(set->referrer, set->room * sizeof *set->referrer);
    tlmi_own_free(set->table, 2 * (size_t)set->room * sizeof *set->table);
}

static uint32_t *place_of(const stray_set *set, uintptr_t object)
{
    uint32_t at = tlmi_graph_home(object, set->mask);
    while (set->table[at] != 0 && set->strays[set->table[at] - 1] != object)
        at = (at + 1) & set->mask;
    return &set->table[at];
}

static bool grow_set(stray_set *set)
{
    stray_set bigger = {.search = set->search, .count = set->count};
    if (set->room >= MOST_STRAYS || !open_set(&bigger, 2 * set->room)) {
        close_set(&bigger);
        return false;
    }
    memcpy(bigger.strays, set->strays, set->count * sizeof *set->strays);
    for (uint32_t i = 0; i < set->count; i++)
        *place_of(&bigger, set->strays[i]) = i + 1;
    close_set(set);
    *set = bigger;
    return true;
}

static int collect_stray(PyObject *object, void *context)
{
    stray_set *set = context;
    tlmi_search *search = set->search;
    if (--search->until_clock == 0 && tlmi_search_is_late(search))
        return 0;
    if (tlmi_graph_has(&search->graph, (uintptr_t)object))
        return 1;
    if (set->count == set->room && !grow_set(set)) {
        search->graph.is_full = true;
        return 0;
    }
    set->strays[set->count++] = (uintptr_t)object;
    *place_of(set, (uintptr_t)object) = set->count;
    return 1;
}

static int note_referrer(void *context, PyObject *child, uint32_t edge)
{
    stray_set *set = context;
    (void)edge;
    if (--set->search->until_clock == 0 && tlmi_search_is_late(set->search))
        return 1;
    uint32_t number = *place_of(set, (uintptr_t)child);
    /* An object's reference to itself is a cycle too. */
    if (number != 0 && set->referrer[number - 1] == 0)
        set->referrer[number - 1] = set->from + 1;
    return 0;
}

static void note_referrers(stray_set *set)
{
    for (set->from = 0; set->from < set->count && !set->search->is_late; set->from++)
        tlmi_search_each_child(set->search, set->strays[set->from], note_referrer, set);
}

/* ---- from them ---- */

static bool keep_ring(tlmi_search *search, uintptr_t object)
{
    if (search->ring_count == search->ring_room) {
        uint32_t room = search->ring_room ? 2 * search->ring_room : 1024;
        uintptr_t *ring = tlmi_own_alloc(room * sizeof *ring);
        if (ring == NULL)
            return false;
        if (search->ring_count > 0)
            memcpy(ring, search->ring, search->ring_count * sizeof *ring);
        tlmi_own_free(search->ring, search->ring_room * sizeof *ring);
        search->ring = ring;
        search->ring_room = room;
    }
    search->ring[search->ring_count++] = object;
    return true;
}

/* An instance of a class of the program says more than a dict or a list. */
static bool tells_more(uintptr_t object)
{
    PyTypeObject *type = Py_TYPE((PyObject *)object);
    return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && !PyType_Check((PyObject *)object);
}

/* A stray on a cycle that keeps this one: going back twice as fast as slowly, both meet on it (Floyd). */
static uint32_t find_cycle(const stray_set *set, uint32_t stray)
{
    uint32_t slow = stray, fast = stray;
    do {
        slow = set->referrer[slow] - 1;
        fast = set->referrer[set->referrer[fast] - 1] - 1;
    } while (slow != fast);
    uint32_t on = slow;
    do {
        if (tells_more(set->strays[slow]))
            return slow;
        slow = set->referrer[slow] - 1;
    } while (slow != on);
    return on;
}

static void follow_cycle(stray_set *set, uint32_t entry)
{
    tlmi_search *search = set->search;
    tlmi_root root = {.kind = TLMI_ROOT_CYCLE, .ring = search->ring_count};
    uint32_t on = entry, length = 0;
    /* From referrer to referrer: backwards. A long one is cut; its length is told. */
    do {
        if (length < LONGEST_RING && keep_ring(search, set->strays[on]))
            root.ring_count++;
        length++;
        on = set->referrer[on] - 1;
    } while (on != entry);
    root.ring_length = length;
    tlmi_search_from(search, root, set->strays[entry]);
}

static void follow_unseen(tlmi_search *search, uintptr_t object)
{
    bool is_generator = tlmi_search_kind(search, Py_TYPE((PyObject *)object)) == TLMI_GENERATOR;
    tlmi_root_kind kind = is_generator ? TLMI_ROOT_GENERATOR : TLMI_ROOT_UNSEEN;
    tlmi_search_from(search, (tlmi_root){.kind = kind}, object);
}

static void follow_strays(stray_set *set)
{
    tlmi_search *search = set->search;
    for (uint32_t i = 0; i < set->count; i++)
        if (set->referrer[i] == 0)
            follow_unseen(search, set->strays[i]);
    /* Of those that are left, all referrers are left as well. */
    for (uint32_t i = 0; i < set->count && !search->is_late && !search->graph.is_full; i++)
        if (!tlmi_graph_has(&search->graph, set->strays[i]))
            follow_cycle(set, find_cycle(set, i));
}

static int collect_generator(PyObject *object, void *context)
{
    stray_set *set = context;
    PyTypeObject *type = Py_TYPE(object);
    if (--set->search->until_clock == 0 && tlmi_search_is_late(set->search))
        return 0;
    return type == &PyGen_Type || type == &PyCoro_Type || type == &PyAsyncGen_Type ? collect_stray(object, context) : 1;
}

void tlmi_search_generators(tlmi_search *search)
{
    stray_set set = {.search = search};
    if (open_set(&set, FIRST_STRAYS) && pyinside_each_tracked(collect_generator, &set))
        for (uint32_t i = 0; i < set.count; i++)
            follow_unseen(search, set.strays[i]);
    close_set(&set);
}

void tlmi_search_unreached(tlmi_search *search)
{
    stray_set set = {.search = search};
    if (search->is_late || search->graph.is_full)
        return;
    if (open_set(&set, FIRST_STRAYS) && pyinside_each_tracked(collect_stray, &set) && !search->is_late &&
        !search->graph.is_full) {
        note_referrers(&set);
        if (!search->is_late)
            follow_strays(&set);
    }
    close_set(&set);
}
#endif
