/* SPDX-License-Identifier: MIT
 * holders_attributes.c: which attribute, variable or item an edge is, found by comparing addresses; which edges are alike.
 *
 * Only asked for objects on a way to an array, after the search: looking on is cheap, naming is not.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN

/* Likenesses of edges that have no name; below every address. */
enum { ITEM = 0, TEMPORARY = 1, NAMES = 2, BASE = 3, UNNAMED = 16, MOST_UNNAMED = 16 };

PyObject *tlmi_attribute_dict(tlmi_search *search, uintptr_t object)
{
    if (object & TLMI_RUNNING)
        return pyinside_names((pyframe *)(object & ~TLMI_RUNNING));
    PyObject *of = (PyObject *)object;
    switch (tlmi_search_kind(search, Py_TYPE(of))) {
    case TLMI_TYPE:
        return ((PyTypeObject *)of)->tp_dict;
    case TLMI_FRAME:
        return pyinside_names(pyinside_frame_of(of));
    case TLMI_LEAF:
        return NULL;
    default:
        return pyinside_dict(of);
    }
}

PyObject *tlmi_key_of(PyObject *dict, uint32_t edge, PyObject *value)
{
    PyObject *key, *found;
    Py_ssize_t at = edge;
    if (edge < TLMI_EDGE_UNKNOWN && PyDict_Next(dict, &at, &key, &found) && found == value)
        return key;
    at = 0;
    while (PyDict_Next(dict, &at, &key, &found))
        if (found == value)
            return key;
    return NULL;
}

pyframe *tlmi_frame_of(tlmi_search *search, uintptr_t object)
{
    if (object & TLMI_RUNNING)
        return (pyframe *)(object & ~TLMI_RUNNING);
    switch (tlmi_search_kind(search, Py_TYPE((PyObject *)object))) {
    case TLMI_FRAME:
        return pyinside_frame_of((PyObject *)object);
    case TLMI_GENERATOR:
        return pyinside_generator_frame((PyObject *)object);
    default:
        return NULL;
    }
}

int tlmi_value_index(pyframe *frame, PyObject *value, uint32_t edge)
{
    PyCodeObject *code = (PyCodeObject *)pyframe_code(frame);
    int count = code == NULL ? 0 : pyinside_values(frame, code);
    if (edge < (uint32_t)count && pyinside_local(frame, (int)edge) == value)
        return (int)edge;
    for (int i = 0; i < count; i++)
        if (pyinside_local(frame, i) == value)
            return i;
    return -1;
}

PyObject *tlmi_variable(PyCodeObject *code, int index)
{
    bool is_named = index >= 0 && index < PyTuple_GET_SIZE(code->co_localsplusnames);
    return is_named ? PyTuple_GET_ITEM(code->co_localsplusnames, index) : NULL;
}

PyObject *tlmi_value_name(pyframe *frame, int index)
{
    PyCodeObject *code = (PyCodeObject *)pyframe_code(frame);
    return code == NULL ? NULL : tlmi_variable(code, index);
}

/* ---- likeness ---- */

static tlmi_kind kind_of(tlmi_search *search, uintptr_t object)
{
    return object & TLMI_RUNNING ? TLMI_FRAME : tlmi_search_kind(search, Py_TYPE((PyObject *)object));
}

/* Whether the keys of a dict are names of attributes or variables, so that each of them is told. */
static bool is_namespace(tlmi_search *search, const tlmi_node *dict)
{
    if (dict->parent == 0) {
        tlmi_root_kind kind = search->roots[dict->edge].kind;
        return kind == TLMI_ROOT_MODULE || kind == TLMI_ROOT_GLOBALS;
    }
    const tlmi_node *of = tlmi_graph_node(&search->graph, dict->parent);
    if (tlmi_attribute_dict(search, of->object) == (PyObject *)dict->object)
        return true;
    /* A thread-local object has a dict of dicts, one for each thread. */
    return of->parent != 0 && kind_of(search, of->object) == TLMI_DICT &&
           kind_of(search, tlmi_graph_node(&search->graph, of->parent)->object) == TLMI_THREAD_LOCAL;
}

static uint64_t liken_attribute(PyObject *object, PyObject *value, uint32_t edge)
{
    PyObject *name = pyinside_inline_name(object, value);
    const char *member = name == NULL ? tlmi_member_name(object, value) : NULL;
    uint32_t ordinal = edge & ~TLMI_EDGE_VISIT;
    if (name != NULL || member != NULL)
        return name != NULL ? (uintptr_t)name : (uintptr_t)member;
    return UNNAMED + (ordinal < MOST_UNNAMED ? ordinal : MOST_UNNAMED);
}

static uint64_t liken_edge(tlmi_search *search, const tlmi_node *parent, const tlmi_node *node)
{
    PyObject *value = (PyObject *)node->object;
    pyframe *frame = tlmi_frame_of(search, parent->object);
    if (frame != NULL) {
        if (node->edge == TLMI_EDGE_VISIT || value == pyinside_names(frame))
            return NAMES;
        PyObject *name = tlmi_value_name(frame, tlmi_value_index(frame, value, node->edge));
        return name == NULL ? TEMPORARY : (uintptr_t)name;
    }
    PyObject *of = (PyObject *)parent->object;
    tlmi_kind kind = kind_of(search, parent->object);
    if (kind == TLMI_DICT && !(node->edge & (TLMI_EDGE_VISIT | TLMI_EDGE_KEY)))
        return is_namespace(search, parent) ? (uintptr_t)tlmi_key_of(of, node->edge, value) : ITEM;
    if (kind == TLMI_ARRAY && tlmi_array_base(of) == value)
        return BASE;
    bool is_container = kind == TLMI_LIST || kind == TLMI_TUPLE || kind == TLMI_DICT || kind == TLMI_ARRAY;
    if (kind == TLMI_SET || kind == TLMI_DEQUE || kind == TLMI_LRU_CACHE ||
        (is_container && !(node->edge & TLMI_EDGE_VISIT)))
        return ITEM;
    return liken_attribute(of, value, node->edge);
}

/* Functions of one definition are alike; types, and caches of functions, are each for themselves. */
static uint64_t liken_type(tlmi_search *search, uintptr_t object)
{
    pyframe *frame = tlmi_frame_of(search, object);
    if (frame != NULL)
        return (uintptr_t)pyframe_code(frame);
    PyObject *of = (PyObject *)object;
    switch (kind_of(search, object)) {
    case TLMI_FUNCTION:
        return (uintptr_t)PyFunction_GET_CODE(of);
    case TLMI_TYPE:
    case TLMI_LRU_CACHE:
        return object;
    default:
        return (uintptr_t)Py_TYPE(of);
    }
}

tlmi_likeness tlmi_search_liken(void *context, uint32_t number)
{
    tlmi_search *search = context;
    const tlmi_node *node = tlmi_graph_node(&search->graph, number);
    if (node->parent != 0)
        return (tlmi_likeness){liken_edge(search, tlmi_graph_node(&search->graph, node->parent), node),
                               liken_type(search, node->object)};
    const tlmi_root *root = &search->roots[node->edge];
    bool is_module = root->kind == TLMI_ROOT_MODULE || root->kind == TLMI_ROOT_GLOBALS;
    return (tlmi_likeness){root->kind, is_module ? node->object : liken_type(search, node->object)};
}
#endif
