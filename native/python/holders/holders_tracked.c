/* SPDX-License-Identifier: MIT
 * holders_tracked.c: every object that Python's collector follows.
 *
 * The collector has its objects in a few long rings, and who goes along one waits for memory at each object: where the next one
 * lies is known only when this one has come. So the rings are gone along from many places at once. A place is an object that is
 * known to be alive and followed: dicts of modules, and what the search has met. A walk that begins at one place ends at the next.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

#if PY_VERSION_HEX < 0x030E0000

enum {
    TOGETHER = 16,
    MOST_OF_EACH = 256,
    RINGS = NUM_GENERATIONS + 1,
    MOST_STARTS = 2 * MOST_OF_EACH + RINGS,
    SLOTS = 2048,
    FILTER_BITS = 1 << 15
};

/* The heads of the rings come first: a walk begins behind each, and does not visit it. */
typedef struct {
    PyGC_Head *starts[MOST_STARTS], *slots[SLOTS];
    uint64_t may_be[FILTER_BITS / 64]; /* one: read instead of the slots, which collide more */
    uint32_t count, begun;
} places;

static PyGC_Head **slot_of(places *all, const PyGC_Head *start)
{
    uint32_t at = tlmi_graph_home((uintptr_t)start, SLOTS - 1);
    while (all->slots[at] != NULL && all->slots[at] != start)
        at = (at + 1) % SLOTS;
    return &all->slots[at];
}

static bool is_start(places *all, const PyGC_Head *at)
{
    uint32_t bit = tlmi_graph_home((uintptr_t)at, FILTER_BITS - 1);
    return tlmi_unlikely(all->may_be[bit / 64] >> bit % 64 & 1) && *slot_of(all, at) != NULL;
}

static void add_start(places *all, PyGC_Head *start)
{
    PyGC_Head **slot = slot_of(all, start);
    if (*slot != NULL)
        return;
    uint32_t bit = tlmi_graph_home((uintptr_t)start, FILTER_BITS - 1);
    all->may_be[bit / 64] |= UINT64_C(1) << bit % 64;
    all->starts[all->count++] = *slot = start;
}

static void add_object(places *all, PyObject *object)
{
    if (_PyObject_GC_IS_TRACKED(object))
        add_start(all, (PyGC_Head *)object - 1);
}

/* Whether the node's object has a collector's head before it: types, for one, need not. */
static bool may_begin(const tlmi_node *node)
{
    return !(node->object & TLMI_NO_OBJECT) && (node->kind == TLMI_DICT || node->kind == TLMI_LIST);
}

static void find_places(const tlmi_search *search, struct _gc_runtime_state *gc, places *all)
{
    for (int i = 0; i < NUM_GENERATIONS; i++)
        add_start(all, &gc->generations[i].head);
    add_start(all, &gc->permanent_generation.head);
    if (PyInterpreterState_Next(PyInterpreterState_Main()) != NULL)
        return; /* others have rings of their own, which modules of C may mix with these */
    uint32_t step = search->modules_count / MOST_OF_EACH + 1;
    for (uint32_t i = 0; i < search->modules_count; i += step)
        add_object(all, search->modules[i].dict);
    step = search->graph.count / MOST_OF_EACH + 1;
    for (uint32_t i = 1; i < search->graph.count; i += step) {
        uint32_t at = i, end = i + step < search->graph.count ? i + step : search->graph.count;
        while (at < end && !may_begin(tlmi_graph_node(&search->graph, at)))
            at++;
        if (at < end)
            add_object(all, (PyObject *)tlmi_graph_node(&search->graph, at)->object);
    }
}

/* Where the next walk begins; NULL: all have. */
static PyGC_Head *begin_walk(places *all, bool *is_object)
{
    if (all->begun == all->count)
        return NULL;
    *is_object = all->begun >= RINGS;
    return all->starts[all->begun++];
}

static void walk(places *all, pyinside_visit visit, void *context)
{
    PyGC_Head *at[TOGETHER];
    uint32_t walks = TOGETHER;
    for (uint32_t i = 0; i < walks; i++)
        at[i] = all->starts[0];
    while (walks > 0)
        for (uint32_t i = 0; i < walks; i++) {
            bool is_object = true;
            PyGC_Head *now = at[i];
            if (is_start(all, now) && (now = begin_walk(all, &is_object)) == NULL) {
                at[i--] = at[--walks];
                continue;
            }
            if (is_object && !visit((PyObject *)(now + 1), context))
                return;
            at[i] = _PyGCHead_NEXT(now);
            __builtin_prefetch(at[i]);
            __builtin_prefetch(&((PyObject *)(at[i] + 1))->ob_type);
        }
}

bool tlmi_search_each_tracked(const tlmi_search *search, pyinside_visit visit, void *context)
{
    struct _gc_runtime_state *gc = &PyInterpreterState_Get()->gc;
    places *all = gc->collecting ? NULL : tlmi_own_alloc(sizeof *all);
    if (all == NULL)
        return false;
    find_places(search, gc, all);
    walk(all, visit, context);
    tlmi_own_free(all, sizeof *all);
    return true;
}

#else

bool tlmi_search_each_tracked(const tlmi_search *search, pyinside_visit visit, void *context)
{
    (void)search;
    return pyinside_each_tracked(visit, context);
}

#endif
#endif
