/* SPDX-License-Identifier: MIT
 * holders_ways.c: a whole chain in steps: what its root is, the cycle that keeps it, and the objects from there on.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

static tlmi_step scratch[TLMI_MOST_STEPS]; /* of a cycle; under the GIL */

static void add_count(tlmi_text *text, const char *bytes, size_t count)
{
    char part[TLMI_EDGE_ROOM + 1];
    memcpy(part, bytes, count);
    part[count] = 0;
    tlmi_text_add(text, part);
}

/* "Node.parent -> Node.children[] -> Node": attributes with their class, containers as brackets behind what has them. */
static void tell_link(tlmi_text *text, const tlmi_step *step, PyTypeObject *type, bool is_first)
{
    bool is_container = step->kind >= TLMI_STEP_DICT && step->kind <= TLMI_STEP_DEQUE;
    if (is_container && !is_first) {
        tlmi_text_add(text, "[]");
        return;
    }
    if (!is_first)
        tlmi_text_add(text, " -> ");
    tlmi_text_short_type(text, type);
    if (step->edge_bytes > 0 && step->edge[0] != '[')
        tlmi_text_add(text, ".");
    add_count(text, step->edge, step->edge_bytes);
}

/* The objects of a cycle were found backwards, from its entry on. */
static void tell_cycle(tlmi_search *search, const tlmi_root *root, tlmi_text *text)
{
    tlmi_stop way[64];
    uint32_t count = 0;
    const uintptr_t *ring = &search->ring[root->ring];
    bool is_cut = root->ring_count < root->ring_length;
    way[count++] = (tlmi_stop){ring[0], TLMI_EDGE_UNKNOWN, true};
    if (is_cut)
        way[0].object = ring[root->ring_count - 1];
    for (uint32_t i = root->ring_count - (is_cut ? 1 : 0); i-- > 1;)
        way[count++] = (tlmi_stop){ring[i], TLMI_EDGE_UNKNOWN, true};
    way[count++] = (tlmi_stop){ring[0], TLMI_EDGE_UNKNOWN, true};
    tlmi_namer namer = {.search = search, .way = way, .count = count, .steps = scratch};
    if (is_cut)
        tlmi_text_add(text, "\xE2\x80\xA6 -> ");
    for (uint32_t i = 0; i + 1 < count;) {
        PyTypeObject *type = Py_TYPE((PyObject *)way[i].object);
        namer.steps_count = 0;
        uint32_t next = tlmi_name_next(&namer, i);
        tell_link(text, &scratch[0], type, i == 0);
        i = next;
    }
    tlmi_text_add(text, " -> ");
    tlmi_text_short_type(text, Py_TYPE((PyObject *)ring[0]));
}

/* A step before the first object; returns where that begins. */
static uint32_t name_root(tlmi_namer *n, const tlmi_root *root)
{
    PyObject *object = (PyObject *)n->way[0].object;
    switch (root->kind) {
    case TLMI_ROOT_MODULE:
    case TLMI_ROOT_GLOBALS:
        return n->count > 1 ? tlmi_name_module(n, object, root->name, 1) : 0;
    case TLMI_ROOT_CYCLE:
        tlmi_step_begin(n);
        tlmi_text_type(&n->type, Py_TYPE(object));
        tell_cycle(n->search, root, &n->edge);
        tlmi_step_end(n, TLMI_STEP_CYCLE, root->ring_length);
        return 0;
    case TLMI_ROOT_UNSEEN:
        tlmi_step_begin(n);
        tlmi_text_type(&n->type, Py_TYPE(object));
        tlmi_step_end(n, TLMI_STEP_OTHER, 0);
        return 0;
    case TLMI_ROOT_THREAD:
        tlmi_step_begin(n);
        tlmi_text_add(&n->type, "thread");
        tlmi_step_end(n, TLMI_STEP_THREAD, 0);
        return 0;
    default:
        return 0;
    }
}

uint32_t tlmi_name_way(tlmi_search *search, const tlmi_root *root, const tlmi_stop *way, uint32_t count, tlmi_step *out)
{
    tlmi_namer namer = {.search = search, .way = way, .count = count, .steps = out};
    for (uint32_t i = name_root(&namer, root); i + 1 < count;)
        i = tlmi_name_next(&namer, i);
    return namer.steps_count;
}
#endif
