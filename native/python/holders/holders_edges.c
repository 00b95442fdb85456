/* SPDX-License-Identifier: MIT
 * holders_edges.c: what an object refers to, and what becomes of it in a search.
 *
 * Containers are read by their own structure, everything else by its tp_traverse, as the collector does it. Only objects that
 * the collector follows are asked that way: others may be half made. Dicts and tuples may be untracked with arrays in them,
 * because arrays are not followed by the collector.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

#include "python/tensor/pyreference.h"

/* How many objects ahead the processor is told to bring an object, what an array refers to, and what its base does. */
enum { REFERENCES_PER_LOOK = 2048, AHEAD = 24, AHEAD_ARRAY = 16, AHEAD_BASE = 8 };
#define NO_CONTAINER (Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS)

bool tlmi_search_is_late(tlmi_search *search)
{
    search->until_clock = REFERENCES_PER_LOOK;
    search->is_late = search->is_late || tlmi_clock_thread_ns() > search->deadline_ns;
    return search->is_late;
}

bool tlmi_search_matters(tlmi_search *search, PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type->tp_flags & Py_TPFLAGS_HAVE_GC)
        return true;
    return !(type->tp_flags & NO_CONTAINER) && type != &PyFloat_Type && type != Py_TYPE(Py_None) &&
           tlmi_search_kind(search, type) != TLMI_LEAF;
}

/* ---- children ---- */

typedef struct {
    tlmi_search *search;
    tlmi_meet meet;
    void *context;
    uint32_t ordinal, mark;
} visited;

static int visit_child(PyObject *child, void *context)
{
    visited *at = context;
    return child == NULL ? 0 : at->meet(at->context, child, at->ordinal++ | at->mark);
}

static int visit_all(tlmi_search *search, PyObject *object, tlmi_meet meet, void *context, uint32_t mark)
{
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    if (traverse == NULL || !PyObject_GC_IsTracked(object))
        return 0;
    visited at = {search, meet, context, 0, mark};
    return traverse(object, visit_child, &at);
}

static int each_entry(PyObject *dict, tlmi_meet meet, void *context)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int stop = 0;
    while (stop == 0 && PyDict_Next(dict, &at, &key, &value)) {
        stop = meet(context, value, (uint32_t)(at - 1));
        if (stop == 0 && !PyUnicode_CheckExact(key))
            stop = meet(context, key, (uint32_t)(at - 1) | TLMI_EDGE_KEY);
    }
    return stop;
}

static void fetch(const void *object)
{
    __builtin_prefetch(object);
    __builtin_prefetch((const char *)object + 64);
}

static int each_item(const tlmi_search *search, PyObject *const *items, uint64_t count, tlmi_meet meet, void *context)
{
    int stop = 0;
    for (uint64_t i = 0; stop == 0 && i < count; i++) {
        if (i + AHEAD < count)
            fetch(items[i + AHEAD]);
        if (i + AHEAD_ARRAY < count && items[i + AHEAD_ARRAY] != NULL)
            tlmi_array_fetch(search, items[i + AHEAD_ARRAY]);
        if (i + AHEAD_BASE < count && items[i + AHEAD_BASE] != NULL)
            tlmi_array_fetch_base(search, items[i + AHEAD_BASE]);
        if (items[i] != NULL)
            stop = meet(context, items[i], i < TLMI_EDGE_VISIT ? (uint32_t)i : TLMI_EDGE_VISIT - 1);
    }
    return stop;
}

/* What a frame has beside its locals and temporary values comes after them: the dict of names, if it has one. */
static int each_value(pyframe *frame, tlmi_meet meet, void *context)
{
    PyCodeObject *code = (PyCodeObject *)pyframe_code(frame);
    int stop = 0, values = code == NULL ? 0 : pyinside_values(frame, code);
    for (int i = 0; stop == 0 && i < values; i++)
        if (pyinside_local(frame, i) != NULL)
            stop = meet(context, pyinside_local(frame, i), (uint32_t)i);
    if (stop == 0 && code != NULL && pyinside_names(frame) != NULL)
        stop = meet(context, pyinside_names(frame), TLMI_EDGE_VISIT);
    return stop;
}

static int each_of_array(const tlmi_search *search, PyObject *array, tlmi_meet meet, void *context)
{
    uint64_t count;
    PyObject **objects = tlmi_array_objects(array, &count);
    if (tlmi_array_base(array) != NULL)
        return meet(context, tlmi_array_base(array), TLMI_EDGE_VISIT);
    return objects == NULL ? 0 : each_item(search, objects, count, meet, context);
}

static int each_of_object(tlmi_search *search, PyObject *object, tlmi_meet meet, void *context)
{
    PyTypeObject *type = Py_TYPE(object);
    int stop = 0;
    switch (tlmi_search_kind(search, type)) {
    case TLMI_LEAF:
        return 0;
    case TLMI_ARRAY:
        stop = each_of_array(search, object, meet, context);
        return stop != 0 || !(type->tp_flags & Py_TPFLAGS_HAVE_GC)
                   ? stop
                   : visit_all(search, object, meet, context, TLMI_EDGE_VISIT);
    case TLMI_DICT:
        stop = each_entry(object, meet, context);
        return stop != 0 || type == &PyDict_Type ? stop : visit_all(search, object, meet, context, TLMI_EDGE_VISIT);
    case TLMI_LIST:
        stop = each_item(search, ((PyListObject *)object)->ob_item, (uint64_t)PyList_GET_SIZE(object), meet, context);
        return stop != 0 || type == &PyList_Type ? stop : visit_all(search, object, meet, context, TLMI_EDGE_VISIT);
    case TLMI_TUPLE:
        stop = each_item(search, ((PyTupleObject *)object)->ob_item, (uint64_t)PyTuple_GET_SIZE(object), meet, context);
        return stop != 0 || type == &PyTuple_Type ? stop : visit_all(search, object, meet, context, TLMI_EDGE_VISIT);
    case TLMI_TYPE:
        if (type->tp_is_gc == NULL || type->tp_is_gc(object))
            return visit_all(search, object, meet, context, 0);
        /* Types in static memory say that they are not to be traversed. */
        return ((PyTypeObject *)object)->tp_dict == NULL ? 0 : meet(context, ((PyTypeObject *)object)->tp_dict, 0);
    default:
        return PyObject_IS_GC(object) ? visit_all(search, object, meet, context, 0) : 0;
    }
}

int tlmi_search_each_child(tlmi_search *search, uintptr_t object, tlmi_meet meet, void *context)
{
    if (object & TLMI_RUNNING)
        return each_value((pyframe *)(object & ~TLMI_RUNNING), meet, context);
    return each_of_object(search, (PyObject *)object, meet, context);
}

/* ---- what is met ---- */

/* The array whose memory it is; NULL: it is nobody's array's. */
static PyObject *owner_of(const tlmi_search *search, PyObject *array)
{
    for (int i = 0; i < 16 && array != NULL && !tlmi_array_owns(array); i++) {
        array = tlmi_array_base(array);
        if (array != NULL && Py_TYPE(array) != search->array_type &&
            !PyType_IsSubtype(Py_TYPE(array), search->array_type))
            return NULL;
    }
    return array != NULL && tlmi_array_owns(array) ? array : NULL;
}

static void note_array(tlmi_search *search, PyObject *array, uint32_t node)
{
    PyObject *own = owner_of(search, array);
    tlmi_owner *owner =
        own == NULL ? NULL : tlmi_graph_owner(&search->graph, TLM_DEVICE_NUMPY, tlmi_array_address(own));
    if (owner == NULL)
        return;
    if (owner->held_bytes == 0)
        owner->held_bytes = tlmi_array_bytes(search, own);
    if (own != array) {
        owner->seen_bytes += node != 0 ? tlmi_array_bytes(search, array) : 0;
        return;
    }
    owner->is_direct = owner->is_direct || !search->parent_is_view;
    if (node != 0 && owner->node == 0) {
        owner->node = node;
        search->found_bytes += owner->held_bytes;
    }
}

/* A tensor or struct counts where its Python object is what holds the object; elsewhere that only names it. The Python object
 * of a struct does not know the device, which is cpu. */
static void note_tensor(tlmi_search *search, PyObject *object, uint32_t node)
{
    const tlmi_reference *tensor = (const tlmi_reference *)object;
    if (node == 0 || tensor->object == 0 || tensor->holder == 0 || tensor->base != 0 || tensor->moved)
        return;
    int device = tensor->device != 0 ? tensor->device : TLM_DEVICE_CPU;
    tlmi_owner *owner = tlmi_graph_owner(&search->graph, (uint8_t)device, tensor->object);
    if (owner == NULL || owner->node != 0)
        return;
    owner->held_bytes = tensor->span;
    owner->is_direct = true;
    owner->node = node;
    search->found_bytes += owner->held_bytes;
}

/* `node`: 0 when it was met before. */
static inline void note_owner(tlmi_search *search, PyObject *object, uint32_t node)
{
    /* Most objects are told to be neither by their type alone. */
    PyTypeObject *type = Py_TYPE(object);
    bool is_followed = (type->tp_flags & Py_TPFLAGS_HAVE_GC) != 0;
    if (is_followed && node == 0)
        return;
    tlmi_kind kind = type == search->array_type ? TLMI_ARRAY : tlmi_search_kind(search, type);
    if (kind == TLMI_ARRAY)
        note_array(search, object, node);
    else if (kind == TLMI_TENSOR)
        note_tensor(search, object, node);
}

void tlmi_search_note(tlmi_search *search, PyObject *object, uint32_t node)
{
    search->parent_is_view = false;
    note_owner(search, object, node);
}

static int meet_child(void *context, PyObject *child, uint32_t edge)
{
    tlmi_search *search = context;
    if (tlmi_unlikely(--search->until_clock == 0) && tlmi_search_is_late(search))
        return 1;
    if (!tlmi_search_matters(search, child))
        return 0;
    uint32_t node = tlmi_graph_mark(&search->graph, (uintptr_t)child)
                        ? tlmi_graph_append(&search->graph, (uintptr_t)child, search->parent, edge)
                        : 0;
    note_owner(search, child, node);
    return search->graph.is_full;
}

/* Types, modules and plain functions lead to much code and little data. */
static bool is_code(tlmi_search *search, PyObject *object)
{
    switch (tlmi_search_kind(search, Py_TYPE(object))) {
    case TLMI_TYPE:
    case TLMI_MODULE:
        return true;
    case TLMI_FUNCTION:
        return ((PyFunctionObject *)object)->func_closure == NULL;
    default:
        return false;
    }
}

static bool put_off(tlmi_search *search, uint32_t node)
{
    if (search->later_count == search->later_room) {
        uint32_t room = search->later_room ? 2 * search->later_room : 1024;
        uint32_t *later = tlmi_own_alloc(room * sizeof *later);
        if (later == NULL)
            return false;
        if (search->later_count > 0)
            memcpy(later, search->later, search->later_count * sizeof *later);
        tlmi_own_free(search->later, search->later_room * sizeof *later);
        search->later = later;
        search->later_room = room;
    }
    search->later[search->later_count++] = node;
    return true;
}

/* false: the search is to end. */
static bool look_into(tlmi_search *search, uint32_t node)
{
    uintptr_t object = tlmi_graph_node(&search->graph, node)->object;
    bool is_object = (object & TLMI_RUNNING) == 0;
    if (is_object && !search->is_code_next && is_code(search, (PyObject *)object) && put_off(search, node))
        return true;
    search->parent = node;
    search->parent_is_view = is_object && tlmi_search_kind(search, Py_TYPE((PyObject *)object)) == TLMI_ARRAY &&
                             tlmi_array_base((PyObject *)object) != NULL;
    return tlmi_search_each_child(search, object, meet_child, search) == 0;
}

void tlmi_search_drain_code(tlmi_search *search)
{
    search->is_code_next = true;
    while (search->later_next < search->later_count && !search->is_late && !search->graph.is_full) {
        look_into(search, search->later[search->later_next++]);
        tlmi_search_drain(search);
    }
}

/* The object of a node that will be looked into; NULL: there is none yet, or it is an interpreter's frame. */
static PyObject *coming(const tlmi_search *search, uint32_t ahead)
{
    if (search->next + ahead >= search->graph.count)
        return NULL;
    uintptr_t object = tlmi_graph_node(&search->graph, search->next + ahead)->object;
    return object & TLMI_RUNNING ? NULL : (PyObject *)object;
}

void tlmi_search_drain(tlmi_search *search)
{
    for (; search->next < search->graph.count && !search->is_late && !search->graph.is_full; search->next++) {
        PyObject *object = coming(search, AHEAD), *array = coming(search, AHEAD_ARRAY);
        if (object != NULL)
            fetch((const char *)object - 16); /* where what is of the collector begins */
        if (array != NULL)
            tlmi_array_fetch(search, array);
        if (!look_into(search, search->next))
            break;
    }
}
#endif
