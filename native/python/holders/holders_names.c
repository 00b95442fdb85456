/* SPDX-License-Identifier: MIT
 * holders_names.c: the objects on the way from a root to an array, as steps that a program's author knows.
 *
 * An instance and its dict are one step, as are a function, its closure and a cell, an exception and its tracebacks, a cache
 * and what it keeps its results in. docs/format.md says what each kind of step tells. Keys are compared as texts, so that no
 * hash and no __eq__ is called. Only asked for objects on a way to an array, after the search: looking on is cheap, naming is not.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <stdio.h>
#include <string.h>
#include <structmember.h>

/* A text that is being written, cut to the room. */
typedef struct {
    char *start;
    size_t used, room;
} tlmi_text;

typedef struct {
    tlmi_search *search;
    const tlmi_stop *way;
    uint32_t count;
    tlmi_step *steps; /* TLMI_MOST_STEPS of them */
    uint32_t steps_count;
    tlmi_text edge, type; /* of the step that is being made */
} tlmi_namer;

/* ---- texts, from the characters of Python's strings: nothing is made, and nothing is cached on a string ---- */

/* Bytes that fit, cut between two characters. */
static void add_bytes(tlmi_text *text, const char *bytes, size_t count)
{
    size_t room = text->room - text->used;
    if (count > room) {
        count = room;
        while (count > 0 && ((unsigned char)bytes[count] & 0xC0) == 0x80)
            count--;
        text->room = text->used + count; /* nothing more after a cut */
    }
    memcpy(text->start + text->used, bytes, count);
    text->used += count;
}

static void add_text(tlmi_text *text, const char *more)
{
    add_bytes(text, more, strlen(more));
}

static size_t encode(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(first[more] | c >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3F));
    return more + 1;
}

/* Nothing when it is not a str. */
static void add_str(tlmi_text *text, PyObject *str)
{
    if (str == NULL || !PyUnicode_Check(str))
        return;
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(str))
        return;
#endif
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(str) && text->used < text->room; i++) {
        char bytes[4];
        add_bytes(text, bytes, encode(PyUnicode_READ_CHAR(str, i), bytes));
    }
}

static void add_number(tlmi_text *text, long long number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", number);
    add_text(text, digits);
}

PyObject *tlmi_find_text_key(PyObject *dict, const char *wanted)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, length = (Py_ssize_t)strlen(wanted);
    while (dict != NULL && PyDict_Next(dict, &at, &key, &value))
        if (pyinside_is_text(key, wanted, length))
            return value;
    return NULL;
}

/* Class. */
static void add_short_type(tlmi_text *text, PyTypeObject *type)
{
    const char *dot = strrchr(type->tp_name, '.');
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        add_str(text, ((PyHeapTypeObject *)type)->ht_qualname);
    else
        add_text(text, dot == NULL ? type->tp_name : dot + 1);
}

/* Module.Class. */
static void add_type(tlmi_text *text, PyTypeObject *type)
{
    PyObject *module = NULL;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        add_text(text, type->tp_name);
        return;
    }
    module = tlmi_find_text_key(type->tp_dict, "__module__");
    if (module != NULL && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "builtins") != 0) {
        add_str(text, module);
        add_text(text, ".");
    }
    add_short_type(text, type);
}

/* Module.qualname of a function or a cache of one. */
static void add_named(tlmi_text *text, PyObject *object)
{
    PyObject *module, *name;
    if (PyFunction_Check(object)) {
        module = ((PyFunctionObject *)object)->func_module;
        name = ((PyFunctionObject *)object)->func_qualname;
    } else {
        PyObject *dict = pyinside_dict(object);
        module = tlmi_find_text_key(dict, "__module__");
        name = tlmi_find_text_key(dict, "__qualname__");
    }
    if (name == NULL || !PyUnicode_Check(name)) {
        add_type(text, Py_TYPE(object));
        return;
    }
    if (module != NULL && PyUnicode_Check(module)) {
        add_str(text, module);
        add_text(text, ".");
    }
    add_str(text, name);
}

/* Qualname, file, line; with newlines between. */
static void add_frame(tlmi_text *text, pyframe *frame)
{
    PyCodeObject *code = (PyCodeObject *)pyframe_code(frame);
    if (code == NULL)
        return;
    int line = PyCode_Addr2Line(code, pyframe_offset(code, pyframe_position(frame)));
    add_str(text, code->co_qualname);
    add_text(text, "\n");
    add_str(text, code->co_filename);
    add_text(text, "\n");
    add_number(text, line > 0 ? line : code->co_firstlineno);
}

/* ['key'], [3] or []. */
static void add_key(tlmi_text *text, PyObject *key)
{
    int overflow = 0;
    add_text(text, "[");
    if (key != NULL && PyUnicode_CheckExact(key)) {
        add_text(text, "'");
        add_str(text, key);
        add_text(text, "'");
    } else if (key != NULL && PyLong_CheckExact(key)) {
        long long number = PyLong_AsLongLongAndOverflow(key, &overflow);
        if (overflow == 0)
            add_number(text, number);
    }
    add_text(text, "]");
}

/* The member of the object, as its types declare them, that is the value. NULL: none. */
static const char *member_name_of(PyObject *object, PyObject *value)
{
    for (PyTypeObject *type = Py_TYPE(object); type != NULL; type = type->tp_base)
        for (PyMemberDef *member = type->tp_members; member != NULL && member->name != NULL; member++)
            if ((member->type == T_OBJECT || member->type == T_OBJECT_EX) && member->offset > 0 &&
                *(PyObject **)((char *)object + member->offset) == value)
                return member->name;
    return NULL;
}

/* ---- which attribute, variable or item an edge is, found by comparing addresses; which edges are alike ---- */

/* Likenesses of edges that have no name; below every address. */
enum { ITEM = 0, TEMPORARY = 1, NAMES = 2, BASE = 3, GRADIENT = 4, PART = 5, UNNAMED = 16, MOST_UNNAMED = 16 };

/* The dict that has the object's attributes, names or variables; borrowed, NULL: none. */
static PyObject *attribute_dict_of(tlmi_search *search, uintptr_t object)
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

/* The key of an entry of a dict: at the position, or else wherever the value is; borrowed; NULL: it is not a value. */
static PyObject *key_of(PyObject *dict, uint32_t edge, PyObject *value)
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

/* The frame of a root, a frame object or a generator; NULL: none. */
static pyframe *frame_of(tlmi_search *search, uintptr_t object)
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

/* The index of a value among those of a frame; -1: it is none. */
static int index_of_value(pyframe *frame, PyObject *value, uint32_t edge)
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

/* The name of a variable; borrowed, NULL: it is a temporary value. */
static PyObject *variable_of(PyCodeObject *code, int index)
{
    bool is_named = index >= 0 && index < PyTuple_GET_SIZE(code->co_localsplusnames);
    return is_named ? PyTuple_GET_ITEM(code->co_localsplusnames, index) : NULL;
}

static PyObject *value_name_of(pyframe *frame, int index)
{
    PyCodeObject *code = (PyCodeObject *)pyframe_code(frame);
    return code == NULL ? NULL : variable_of(code, index);
}

/* ---- likeness ---- */

static tlmi_kind kind_of(tlmi_search *search, uintptr_t object)
{
    return object & TLMI_RUNNING ? TLMI_FRAME : tlmi_search_kind(search, Py_TYPE((PyObject *)object));
}

bool tlmi_search_is_namespace(tlmi_search *search, const tlmi_node *dict)
{
    if (dict->parent == 0) {
        tlmi_root_kind kind = search->roots[dict->edge].kind;
        return kind == TLMI_ROOT_MODULE || kind == TLMI_ROOT_GLOBALS;
    }
    const tlmi_node *of = tlmi_graph_node(&search->graph, dict->parent);
    if (attribute_dict_of(search, of->object) == (PyObject *)dict->object)
        return true;
    /* A thread-local object has a dict of dicts, one for each thread. */
    return of->parent != 0 && kind_of(search, of->object) == TLMI_DICT &&
           kind_of(search, tlmi_graph_node(&search->graph, of->parent)->object) == TLMI_THREAD_LOCAL;
}

static uint64_t liken_attribute(PyObject *object, PyObject *value, uint32_t edge)
{
    PyObject *name = pyinside_inline_name(object, value);
    const char *member = name == NULL ? member_name_of(object, value) : NULL;
    uint32_t ordinal = edge & ~TLMI_EDGE_VISIT;
    if (name != NULL || member != NULL)
        return name != NULL ? (uintptr_t)name : (uintptr_t)member;
    return UNNAMED + (ordinal < MOST_UNNAMED ? ordinal : MOST_UNNAMED);
}

static uint64_t liken_edge(tlmi_search *search, const tlmi_node *parent, const tlmi_node *node)
{
    PyObject *value = (PyObject *)node->object;
    if (node->object & TLMI_NATIVE)
        return node->edge == TLMI_EDGE_PART ? PART : GRADIENT;
    pyframe *frame = frame_of(search, parent->object);
    if (frame != NULL) {
        if (node->edge == TLMI_EDGE_VISIT || value == pyinside_names(frame))
            return NAMES;
        PyObject *name = value_name_of(frame, index_of_value(frame, value, node->edge));
        return name == NULL ? TEMPORARY : (uintptr_t)name;
    }
    PyObject *of = (PyObject *)parent->object;
    tlmi_kind kind = kind_of(search, parent->object);
    if (kind == TLMI_DICT && !(node->edge & (TLMI_EDGE_VISIT | TLMI_EDGE_KEY)))
        return tlmi_search_is_namespace(search, parent) ? (uintptr_t)key_of(of, node->edge, value) : ITEM;
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
    if (object & TLMI_NATIVE)
        return GRADIENT ^ (uintptr_t)tlmi_torch_graph_of(object);
    pyframe *frame = frame_of(search, object);
    if (frame != NULL)
        return (uintptr_t)pyframe_code(frame);
    PyObject *of = (PyObject *)object;
    switch (kind_of(search, object)) {
    case TLMI_FUNCTION:
        return (uintptr_t)PyFunction_GET_CODE(of);
    case TLMI_TYPE:
    case TLMI_LRU_CACHE:
        return object;
    case TLMI_TORCH: /* losses and accuracies are not alike */
        return (uintptr_t)Py_TYPE(of) ^ (uintptr_t)tlmi_torch_graph_of(object);
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

/* ---- steps ---- */

enum { PLAIN_STEPS = 12, LOOK_BACK = 4 };

static PyObject *object_at(const tlmi_namer *n, uint32_t i)
{
    return (PyObject *)n->way[i].object;
}

static tlmi_kind kind_at(const tlmi_namer *n, uint32_t i)
{
    if (i >= n->count || n->way[i].object & TLMI_NATIVE)
        return TLMI_LEAF;
    return n->way[i].object & TLMI_RUNNING ? TLMI_FRAME : tlmi_search_kind(n->search, Py_TYPE(object_at(n, i)));
}

/* ---- one step ---- */

static tlmi_step *begin_step(tlmi_namer *n)
{
    if (n->steps_count == TLMI_MOST_STEPS)
        n->steps_count--; /* the last one, next to the array, is worth more than the one before */
    tlmi_step *step = &n->steps[n->steps_count];
    memset(step, 0, offsetof(tlmi_step, edge));
    n->edge = (tlmi_text){step->edge, 0, sizeof step->edge};
    n->type = (tlmi_text){step->type, 0, sizeof step->type};
    return step;
}

static bool is_same(const tlmi_step *a, const tlmi_step *b)
{
    return a->kind == b->kind && a->edge_bytes == b->edge_bytes && a->type_bytes == b->type_bytes &&
           memcmp(a->edge, b->edge, a->edge_bytes) == 0 && memcmp(a->type, b->type, a->type_bytes) == 0;
}

static void end_step(tlmi_namer *n, uint8_t kind, Py_ssize_t items)
{
    tlmi_step *step = &n->steps[n->steps_count];
    step->kind = kind;
    step->edge_bytes = (uint8_t)n->edge.used;
    step->type_bytes = (uint16_t)n->type.used;
    step->items = items < 0 ? 0 : items > UINT32_MAX ? UINT32_MAX : (uint32_t)items;
    for (uint32_t back = 1; n->steps_count >= PLAIN_STEPS && back <= LOOK_BACK; back++)
        if (is_same(step, step - back))
            return; /* a chain of many like links */
    n->steps_count++;
}

static void tell_item(tlmi_namer *n, uint32_t i)
{
    const tlmi_stop *to = &n->way[i + 1];
    add_text(&n->edge, "[");
    if (!to->is_varied && to->edge < TLMI_EDGE_VISIT)
        add_number(&n->edge, to->edge);
    add_text(&n->edge, "]");
}

/* ---- containers ---- */

static uint32_t name_dict(tlmi_namer *n, uint32_t i)
{
    PyObject *dict = object_at(n, i);
    const tlmi_stop *to = &n->way[i + 1];
    begin_step(n);
    add_type(&n->type, Py_TYPE(dict));
    PyObject *key = to->is_varied ? NULL : key_of(dict, to->edge & ~TLMI_EDGE_KEY, (PyObject *)to->object);
    add_key(&n->edge, key);
    end_step(n, TLMI_STEP_DICT, PyDict_GET_SIZE(dict));
    return i + 1;
}

static uint32_t name_container(tlmi_namer *n, uint32_t i, uint8_t kind, Py_ssize_t items)
{
    begin_step(n);
    add_type(&n->type, Py_TYPE(object_at(n, i)));
    if (kind == TLMI_STEP_LIST || kind == TLMI_STEP_TUPLE || kind == TLMI_STEP_OBJECT_ARRAY)
        tell_item(n, i);
    else
        add_text(&n->edge, "[]");
    end_step(n, kind, items);
    return i + 1;
}

/* ---- attributes ---- */

/* Writes the name of the reference to the next object and returns that object's place, or that of the one after it, when the
 * next is only the dict that the attributes are in. */
static uint32_t tell_attribute(tlmi_namer *n, uint32_t i)
{
    PyObject *object = object_at(n, i), *next = object_at(n, i + 1);
    if (i + 2 < n->count && kind_at(n, i + 1) == TLMI_DICT && attribute_dict_of(n->search, n->way[i].object) == next) {
        add_str(&n->edge, key_of(next, n->way[i + 2].edge, object_at(n, i + 2)));
        return i + 2;
    }
    PyObject *name = pyinside_inline_name(object, next);
    const char *member = name != NULL ? NULL : member_name_of(object, next);
    add_str(&n->edge, name);
    if (member != NULL)
        add_text(&n->edge, member);
    return i + 1;
}

static uint32_t name_object(tlmi_namer *n, uint32_t i)
{
    PyTypeObject *type = Py_TYPE(object_at(n, i));
    begin_step(n);
    add_type(&n->type, type);
    uint32_t next = tell_attribute(n, i);
    end_step(n, n->edge.used > 0 || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) ? TLMI_STEP_INSTANCE : TLMI_STEP_OTHER, 0);
    return next;
}

static uint32_t name_of_kind(tlmi_namer *n, uint32_t i, uint8_t kind)
{
    begin_step(n);
    add_type(&n->type, Py_TYPE(object_at(n, i)));
    uint32_t next = tell_attribute(n, i);
    end_step(n, kind, 0);
    return next;
}

/* The step from a module, which this is the dict of, to object `next`. name: NULL, the dict says it. */
static uint32_t name_module(tlmi_namer *n, PyObject *dict, PyObject *name, uint32_t next)
{
    begin_step(n);
    add_str(&n->type, name != NULL ? name : tlmi_find_text_key(dict, "__name__"));
    add_str(&n->edge, key_of(dict, n->way[next].edge, object_at(n, next)));
    end_step(n, TLMI_STEP_MODULE, 0);
    return next;
}

static uint32_t name_class(tlmi_namer *n, uint32_t i)
{
    PyTypeObject *type = (PyTypeObject *)object_at(n, i);
    begin_step(n);
    add_type(&n->type, type);
    uint32_t next = tell_attribute(n, i);
    end_step(n, TLMI_STEP_CLASS, 0);
    return next;
}

/* ---- functions and what is bound to them ---- */

static uint32_t name_function(tlmi_namer *n, uint32_t i)
{
    PyFunctionObject *function = (PyFunctionObject *)object_at(n, i);
    PyObject *next = object_at(n, i + 1);
    bool is_closure = next == function->func_closure && i + 2 < n->count;
    begin_step(n);
    if (!is_closure)
        add_text(&n->type, "function ");
    add_named(&n->type, (PyObject *)function);
    if (!is_closure) {
        uint32_t after = tell_attribute(n, i);
        if (n->edge.used == 0)
            add_text(&n->edge, next == function->func_defaults     ? "__defaults__"
                               : next == function->func_kwdefaults ? "__kwdefaults__"
                                                                   : "");
        end_step(n, TLMI_STEP_INSTANCE, 0);
        return after;
    }
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(next); k++)
        if (PyTuple_GET_ITEM(next, k) == object_at(n, i + 2))
            add_str(&n->edge, variable_of(code, code->co_nlocalsplus - code->co_nfreevars + (int)k));
    end_step(n, TLMI_STEP_CLOSURE, 0);
    return kind_at(n, i + 2) == TLMI_CELL && i + 3 < n->count ? i + 3 : i + 2;
}

static uint32_t name_bound(tlmi_namer *n, uint32_t i)
{
    PyObject *object = object_at(n, i), *next = object_at(n, i + 1);
    begin_step(n);
    add_type(&n->type, Py_TYPE(object));
    uint32_t after = i + 1;
    if ((PyMethod_Check(object) && PyMethod_GET_SELF(object) == next) ||
        (PyCFunction_Check(object) && PyCFunction_GET_SELF(object) == next))
        add_text(&n->edge, "__self__");
    else if (PyMethod_Check(object))
        add_text(&n->edge, "__func__");
    else
        after = tell_attribute(n, i);
    end_step(n, TLMI_STEP_BOUND, 0);
    return after;
}

/* ---- containers with a bound ---- */

/* Adds what a container may have at most, when that is known, behind its type. */
static void tell_most(tlmi_namer *n, long long most)
{
    if (most <= 0)
        return;
    char text[24];
    snprintf(text, sizeof text, "\n%lld", most);
    add_text(&n->type, text);
}

static uint32_t name_deque(tlmi_namer *n, uint32_t i)
{
    PyObject *deque = object_at(n, i), *bound = NULL;
    begin_step(n);
    add_type(&n->type, Py_TYPE(deque));
    const char *name = Py_TYPE(deque)->tp_name;
    if (strcmp(name, "collections.deque") == 0) { /* a member of C; of a subclass it might be the program's code */
        bound = PyObject_GetAttrString(deque, "maxlen");
        if (bound == NULL)
            PyErr_Clear();
    }
    long long most = bound != NULL && PyLong_CheckExact(bound) ? PyLong_AsLongLong(bound) : 0;
    if (most == -1 && PyErr_Occurred())
        PyErr_Clear(); /* so large that it bounds nothing */
    tell_most(n, most);
    Py_XDECREF(bound);
    add_text(&n->edge, "[]");
    end_step(n, TLMI_STEP_DEQUE, Py_SIZE(deque));
    return i + 1;
}

static uint32_t name_lru_cache(tlmi_namer *n, uint32_t i)
{
    PyObject *cache = object_at(n, i), *next = object_at(n, i + 1);
    const pyinside_lru *inside = pyinside_as_lru(cache);
    PyObject *results = inside != NULL ? inside->results : NULL;
    begin_step(n);
    add_named(&n->type, cache);
    tell_most(n, inside != NULL ? inside->most : 0);
    uint32_t after = i + 1;
    if (next == pyinside_dict(cache) || PyFunction_Check(next)) {
        after = tell_attribute(n, i);
        if (n->edge.used == 0)
            add_text(&n->edge, "__wrapped__");
    } else {
        add_text(&n->edge, "[]");
        after = next == results && i + 2 < n->count ? i + 2 : i + 1;
    }
    end_step(n, TLMI_STEP_LRU_CACHE, results == NULL ? 0 : PyDict_GET_SIZE(results));
    return after;
}

static uint32_t name_thread_local(tlmi_namer *n, uint32_t i)
{
    bool is_value = i + 3 < n->count && kind_at(n, i + 1) == TLMI_DICT && kind_at(n, i + 2) == TLMI_DICT;
    if (!is_value)
        return name_of_kind(n, i, TLMI_STEP_THREAD);
    begin_step(n);
    add_type(&n->type, Py_TYPE(object_at(n, i)));
    add_str(&n->edge, key_of(object_at(n, i + 2), n->way[i + 3].edge, object_at(n, i + 3)));
    end_step(n, TLMI_STEP_THREAD, 0);
    return i + 3;
}

/* ---- frames, exceptions, views ---- */

static uint32_t name_frame(tlmi_namer *n, uint32_t i)
{
    pyframe *frame = frame_of(n->search, n->way[i].object);
    const tlmi_stop *to = &n->way[i + 1];
    uint32_t next = i + 1;
    begin_step(n);
    if (frame == NULL) {
        add_type(&n->type, Py_TYPE(object_at(n, i)));
        end_step(n, TLMI_STEP_GENERATOR, 0);
        return next;
    }
    bool is_generator =
        !(n->way[i].object & TLMI_RUNNING) ? kind_at(n, i) == TLMI_GENERATOR : pyinside_is_generator(frame);
    add_frame(&n->type, frame);
    if ((PyObject *)to->object == pyinside_names(frame) && i + 2 < n->count) {
        next = i + 2;
        add_str(&n->edge, key_of((PyObject *)to->object, n->way[next].edge, object_at(n, next)));
    } else {
        int index = index_of_value(frame, (PyObject *)to->object, to->edge);
        add_str(&n->edge, value_name_of(frame, index));
        if (kind_at(n, next) == TLMI_CELL && next + 1 < n->count)
            next++;
    }
    end_step(n, is_generator ? TLMI_STEP_GENERATOR : TLMI_STEP_FRAME, 0);
    return next;
}

static uint32_t name_exception(tlmi_namer *n, uint32_t i)
{
    PyBaseExceptionObject *error = (PyBaseExceptionObject *)object_at(n, i);
    PyObject *next = object_at(n, i + 1);
    const char *field = next == error->traceback ? "__traceback__"
                        : next == error->args    ? "args"
                        : next == error->cause   ? "__cause__"
                        : next == error->context ? "__context__"
                                                 : NULL;
    begin_step(n);
    add_type(&n->type, Py_TYPE((PyObject *)error));
    uint32_t after = i + 1;
    if (field != NULL)
        add_text(&n->edge, field);
    else
        after = tell_attribute(n, i);
    end_step(n, TLMI_STEP_EXCEPTION, 0);
    while (kind_at(n, after) == TLMI_TRACEBACK && after + 1 < n->count)
        after++;
    return after;
}

static uint32_t name_traceback(tlmi_namer *n, uint32_t i)
{
    begin_step(n);
    add_text(&n->type, "traceback");
    while (kind_at(n, i) == TLMI_TRACEBACK && i + 1 < n->count)
        i++;
    add_text(&n->edge, kind_at(n, i) == TLMI_FRAME ? "tb_frame" : "");
    end_step(n, TLMI_STEP_EXCEPTION, 0);
    return i;
}

static uint32_t name_view(tlmi_namer *n, uint32_t i)
{
    begin_step(n);
    add_type(&n->type, Py_TYPE(object_at(n, i)));
    add_text(&n->edge, "base");
    end_step(n, TLMI_STEP_VIEW, 0);
    if (kind_at(n, i) != TLMI_MEMORYVIEW)
        return i + 1;
    do
        i++;
    while (kind_at(n, i) == TLMI_MEMORYVIEW && i + 1 < n->count);
    return i;
}

static uint32_t name_array(tlmi_namer *n, uint32_t i)
{
    uint64_t items;
    PyObject *array = object_at(n, i);
    if (tlmi_array_base(array) == object_at(n, i + 1))
        return name_view(n, i);
    if (n->way[i + 1].edge & TLMI_EDGE_VISIT)
        return name_object(n, i);
    tlmi_array_objects(array, &items);
    return name_container(n, i, TLMI_STEP_OBJECT_ARRAY, (Py_ssize_t)items);
}

/* ---- tensors of PyTorch ---- */

/* The last word of a C++ name, such as "N5torch8autograd9generated16NllLossBackward0E": lengths stand before its parts. */
static void add_last_part(tlmi_text *text, const char *name)
{
    char word[TLMI_EDGE_ROOM] = "";
    for (const char *at = name; *at != 0;) {
        size_t length = 0;
        for (; *at >= '0' && *at <= '9' && length < sizeof word; at++)
            length = 10 * length + (size_t)(*at - '0');
        if (length == 0) {
            at++;
            continue;
        }
        if (length >= sizeof word || strnlen(at, length) < length)
            break;
        memcpy(word, at, length);
        word[length] = 0;
        at += length;
    }
    add_text(text, word);
}

/* "SparseTensor" of "N2at16SparseTensorImplE". */
static void add_class(tlmi_text *text, const char *name)
{
    size_t before = text->used;
    static const char end[] = "Impl";
    add_last_part(text, name);
    if (text->used - before > sizeof end - 1 &&
        memcmp(text->start + text->used - (sizeof end - 1), end, sizeof end - 1) == 0)
        text->used -= sizeof end - 1;
}

/* Which hooks of a tensor a dict is, as Python calls them; NULL: none. They are the fields behind C++'s tensor
 * (THPVariable, since torch 2.1), which the collector's traversal passes without a name. */
static const char *hooks_of_tensor(PyObject *tensor, PyObject *dict)
{
    static const char *const names[] = {"_backward_hooks", "_post_accumulate_grad_hooks"};
    size_t first = sizeof(PyObject) + sizeof(void *), most = (size_t)Py_TYPE(tensor)->tp_basicsize;
    for (size_t k = 0; k < sizeof names / sizeof *names && first + (k + 1) * sizeof dict <= most; k++)
        if (((PyObject *const *)((const char *)tensor + first))[k] == dict)
            return names[k];
    return NULL;
}

/* The step from a tensor to its hooks or its gradient, or from one that consists of others to one of these. */
static uint32_t name_torch(tlmi_namer *n, uint32_t i)
{
    if (!(n->way[i + 1].object & TLMI_NATIVE)) {
        const char *hooks =
            kind_at(n, i + 1) == TLMI_DICT ? hooks_of_tensor(object_at(n, i), object_at(n, i + 1)) : NULL;
        if (hooks == NULL)
            return name_object(n, i);
        begin_step(n);
        add_type(&n->type, Py_TYPE(object_at(n, i)));
        add_text(&n->edge, hooks);
        end_step(n, TLMI_STEP_INSTANCE, 0);
        return i + 1;
    }
    begin_step(n);
    if (n->way[i + 1].edge == TLMI_EDGE_PART) {
        add_class(&n->type, tlmi_torch_class_of(n->way[i].object));
        end_step(n, TLMI_STEP_OTHER, 0);
    } else {
        add_type(&n->type, Py_TYPE(object_at(n, i)));
        add_text(&n->edge, "grad");
        end_step(n, TLMI_STEP_INSTANCE, 0);
    }
    return i + 1;
}

/* What a tensor keeps beside its own memory is worth a step. */
static void name_graph(tlmi_namer *n)
{
    uint32_t last = n->count - 1;
    if (last > 0 && n->count > 0 && n->way[last].edge == TLMI_EDGE_PART && (n->way[last].object & TLMI_NATIVE))
        last--;
    bool is_tensor = n->count > 0 && (kind_at(n, last) == TLMI_TORCH || (n->way[last].object & TLMI_NATIVE) != 0);
    const char *graph = is_tensor ? tlmi_torch_graph_of(n->way[last].object) : NULL;
    if (graph == NULL)
        return;
    begin_step(n);
    add_last_part(&n->type, graph);
    end_step(n, TLMI_STEP_GRAPH, tlmi_torch_depth_of(n->way[last].object));
}

/* ---- the way ---- */

/* The step from object i of the way on; returns where the next one begins. */
static uint32_t name_step(tlmi_namer *n, uint32_t i)
{
    PyObject *object = object_at(n, i);
    if (n->way[i].object & TLMI_NATIVE)
        return name_torch(n, i);
    /* An edge of a container that is not to one of its items is an attribute. */
    bool is_item = !(n->way[i + 1].edge & TLMI_EDGE_VISIT) || n->way[i + 1].edge == TLMI_EDGE_UNKNOWN;
    switch (kind_at(n, i)) {
    case TLMI_DICT:
        return is_item ? name_dict(n, i) : name_object(n, i);
    case TLMI_LIST:
        return is_item ? name_container(n, i, TLMI_STEP_LIST, PyList_GET_SIZE(object)) : name_object(n, i);
    case TLMI_TUPLE:
        return is_item ? name_container(n, i, TLMI_STEP_TUPLE, PyTuple_GET_SIZE(object)) : name_object(n, i);
    case TLMI_SET:
        return name_container(n, i, TLMI_STEP_SET, PySet_GET_SIZE(object));
    case TLMI_DEQUE:
        return name_deque(n, i);
    case TLMI_MODULE:
        if (object_at(n, i + 1) == PyModule_GetDict(object) && i + 2 < n->count)
            return name_module(n, object_at(n, i + 1), NULL, i + 2);
        return name_of_kind(n, i, TLMI_STEP_MODULE);
    case TLMI_TYPE:
        return name_class(n, i);
    case TLMI_FUNCTION:
        return name_function(n, i);
    case TLMI_CELL:
        return name_of_kind(n, i, TLMI_STEP_CLOSURE);
    case TLMI_FRAME:
    case TLMI_GENERATOR:
        return name_frame(n, i);
    case TLMI_TRACEBACK:
        return name_traceback(n, i);
    case TLMI_EXCEPTION:
        return name_exception(n, i);
    case TLMI_LRU_CACHE:
        return name_lru_cache(n, i);
    case TLMI_THREAD_LOCAL:
        return name_thread_local(n, i);
    case TLMI_BOUND:
        return name_bound(n, i);
    case TLMI_MEMORYVIEW:
    case TLMI_TENSOR:
        return name_view(n, i);
    case TLMI_ARRAY:
        return name_array(n, i);
    case TLMI_TORCH:
        return name_torch(n, i);
    default:
        return name_object(n, i);
    }
}

/* ---- a whole chain ---- */

static tlmi_step scratch[TLMI_MOST_STEPS]; /* of a cycle; under the GIL */

static void add_count(tlmi_text *text, const char *bytes, size_t count)
{
    char part[TLMI_EDGE_ROOM + 1];
    memcpy(part, bytes, count);
    part[count] = 0;
    add_text(text, part);
}

/* "Node.parent -> Node.children[] -> Node": attributes with their class, containers as brackets behind what has them. */
static void tell_link(tlmi_text *text, const tlmi_step *step, PyTypeObject *type, bool is_first)
{
    bool is_container = step->kind >= TLMI_STEP_DICT && step->kind <= TLMI_STEP_DEQUE;
    if (is_container && !is_first) {
        add_text(text, "[]");
        return;
    }
    if (!is_first)
        add_text(text, " -> ");
    add_short_type(text, type);
    if (step->edge_bytes > 0 && step->edge[0] != '[')
        add_text(text, ".");
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
        add_text(text, "\xE2\x80\xA6 -> ");
    for (uint32_t i = 0; i + 1 < count;) {
        PyTypeObject *type = Py_TYPE((PyObject *)way[i].object);
        namer.steps_count = 0;
        uint32_t next = name_step(&namer, i);
        tell_link(text, &scratch[0], type, i == 0);
        i = next;
    }
    add_text(text, " -> ");
    add_short_type(text, Py_TYPE((PyObject *)ring[0]));
}

/* A step before the first object; returns where that begins. */
static uint32_t name_root(tlmi_namer *n, const tlmi_root *root)
{
    PyObject *object = (PyObject *)n->way[0].object;
    switch (root->kind) {
    case TLMI_ROOT_MODULE:
    case TLMI_ROOT_GLOBALS:
        return n->count > 1 ? name_module(n, object, root->name, 1) : 0;
    case TLMI_ROOT_CYCLE:
        begin_step(n);
        add_type(&n->type, Py_TYPE(object));
        tell_cycle(n->search, root, &n->edge);
        end_step(n, TLMI_STEP_CYCLE, root->ring_length);
        return 0;
    case TLMI_ROOT_UNSEEN:
        begin_step(n);
        add_type(&n->type, Py_TYPE(object));
        end_step(n, TLMI_STEP_OTHER, 0);
        return 0;
    case TLMI_ROOT_THREAD:
        begin_step(n);
        add_text(&n->type, "thread");
        end_step(n, TLMI_STEP_THREAD, 0);
        return 0;
    case TLMI_ROOT_EXIT:
        begin_step(n);
        add_text(&n->type, "atexit");
        end_step(n, TLMI_STEP_EXIT, 0);
        return 0;
    default:
        return 0;
    }
}

uint32_t tlmi_name_way(tlmi_search *search, const tlmi_root *root, const tlmi_stop *way, uint32_t count, tlmi_step *out)
{
    tlmi_namer namer = {.search = search, .way = way, .count = count, .steps = out};
    for (uint32_t i = name_root(&namer, root); i + 1 < count;)
        i = name_step(&namer, i);
    name_graph(&namer);
    return namer.steps_count;
}

void tlmi_name_type(PyTypeObject *type, tlmi_step *out)
{
    tlmi_namer namer = {.steps = out};
    begin_step(&namer);
    add_type(&namer.type, type);
    end_step(&namer, TLMI_STEP_INSTANCE, 0);
}
#endif
