/* SPDX-License-Identifier: MIT
 * holders_names.c: the objects on the way from a root to an array, as steps that a program's author knows.
 *
 * An instance and its dict are one step, as are a function, its closure and a cell, an exception and its tracebacks, a cache
 * and what it keeps its results in. docs/format.md says what each kind of step tells.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <stdio.h>
#include <string.h>

enum { PLAIN_STEPS = 12, LOOK_BACK = 4 };

static PyObject *object_at(const tlmi_namer *n, uint32_t i)
{
    return (PyObject *)n->way[i].object;
}

static tlmi_kind kind_at(const tlmi_namer *n, uint32_t i)
{
    if (i >= n->count)
        return TLMI_LEAF;
    return n->way[i].object & TLMI_RUNNING ? TLMI_FRAME : tlmi_search_kind(n->search, Py_TYPE(object_at(n, i)));
}

/* ---- one step ---- */

tlmi_step *tlmi_step_begin(tlmi_namer *n)
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

void tlmi_step_end(tlmi_namer *n, uint8_t kind, Py_ssize_t items)
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
    tlmi_text_add(&n->edge, "[");
    if (!to->is_varied && to->edge < TLMI_EDGE_VISIT)
        tlmi_text_number(&n->edge, to->edge);
    tlmi_text_add(&n->edge, "]");
}

/* ---- containers ---- */

static uint32_t name_dict(tlmi_namer *n, uint32_t i)
{
    PyObject *dict = object_at(n, i);
    const tlmi_stop *to = &n->way[i + 1];
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, Py_TYPE(dict));
    PyObject *key = to->is_varied ? NULL : tlmi_key_of(dict, to->edge & ~TLMI_EDGE_KEY, (PyObject *)to->object);
    tlmi_text_key(&n->edge, key);
    tlmi_step_end(n, TLMI_STEP_DICT, PyDict_GET_SIZE(dict));
    return i + 1;
}

static uint32_t name_container(tlmi_namer *n, uint32_t i, uint8_t kind, Py_ssize_t items)
{
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, Py_TYPE(object_at(n, i)));
    if (kind == TLMI_STEP_LIST || kind == TLMI_STEP_TUPLE || kind == TLMI_STEP_OBJECT_ARRAY)
        tell_item(n, i);
    else
        tlmi_text_add(&n->edge, "[]");
    tlmi_step_end(n, kind, items);
    return i + 1;
}

/* ---- attributes ---- */

/* Writes the name of the reference to the next object and returns that object's place, or that of the one after it, when the
 * next is only the dict that the attributes are in. */
static uint32_t tell_attribute(tlmi_namer *n, uint32_t i)
{
    PyObject *object = object_at(n, i), *next = object_at(n, i + 1);
    if (i + 2 < n->count && kind_at(n, i + 1) == TLMI_DICT &&
        tlmi_attribute_dict(n->search, n->way[i].object) == next) {
        tlmi_text_str(&n->edge, tlmi_key_of(next, n->way[i + 2].edge, object_at(n, i + 2)));
        return i + 2;
    }
    PyObject *name = pyinside_inline_name(object, next);
    const char *member = name != NULL ? NULL : tlmi_member_name(object, next);
    tlmi_text_str(&n->edge, name);
    if (member != NULL)
        tlmi_text_add(&n->edge, member);
    return i + 1;
}

static uint32_t name_object(tlmi_namer *n, uint32_t i)
{
    PyTypeObject *type = Py_TYPE(object_at(n, i));
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, type);
    uint32_t next = tell_attribute(n, i);
    tlmi_step_end(n, n->edge.used > 0 || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) ? TLMI_STEP_INSTANCE : TLMI_STEP_OTHER,
                  0);
    return next;
}

static uint32_t name_of_kind(tlmi_namer *n, uint32_t i, uint8_t kind)
{
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, Py_TYPE(object_at(n, i)));
    uint32_t next = tell_attribute(n, i);
    tlmi_step_end(n, kind, 0);
    return next;
}

uint32_t tlmi_name_module(tlmi_namer *n, PyObject *dict, PyObject *name, uint32_t next)
{
    tlmi_step_begin(n);
    tlmi_text_str(&n->type, name != NULL ? name : tlmi_find_text_key(dict, "__name__"));
    tlmi_text_str(&n->edge, tlmi_key_of(dict, n->way[next].edge, object_at(n, next)));
    tlmi_step_end(n, TLMI_STEP_MODULE, 0);
    return next;
}

static uint32_t name_class(tlmi_namer *n, uint32_t i)
{
    PyTypeObject *type = (PyTypeObject *)object_at(n, i);
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, type);
    uint32_t next = tell_attribute(n, i);
    tlmi_step_end(n, TLMI_STEP_CLASS, 0);
    return next;
}

/* ---- functions and what is bound to them ---- */

static uint32_t name_function(tlmi_namer *n, uint32_t i)
{
    PyFunctionObject *function = (PyFunctionObject *)object_at(n, i);
    PyObject *next = object_at(n, i + 1);
    bool is_closure = next == function->func_closure && i + 2 < n->count;
    tlmi_step_begin(n);
    if (!is_closure)
        tlmi_text_add(&n->type, "function ");
    tlmi_text_named(&n->type, (PyObject *)function);
    if (!is_closure) {
        uint32_t after = tell_attribute(n, i);
        if (n->edge.used == 0)
            tlmi_text_add(&n->edge, next == function->func_defaults     ? "__defaults__"
                                    : next == function->func_kwdefaults ? "__kwdefaults__"
                                                                        : "");
        tlmi_step_end(n, TLMI_STEP_INSTANCE, 0);
        return after;
    }
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(next); k++)
        if (PyTuple_GET_ITEM(next, k) == object_at(n, i + 2))
            tlmi_text_str(&n->edge, tlmi_variable(code, code->co_nlocalsplus - code->co_nfreevars + (int)k));
    tlmi_step_end(n, TLMI_STEP_CLOSURE, 0);
    return kind_at(n, i + 2) == TLMI_CELL && i + 3 < n->count ? i + 3 : i + 2;
}

static uint32_t name_bound(tlmi_namer *n, uint32_t i)
{
    PyObject *object = object_at(n, i), *next = object_at(n, i + 1);
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, Py_TYPE(object));
    uint32_t after = i + 1;
    if ((PyMethod_Check(object) && PyMethod_GET_SELF(object) == next) ||
        (PyCFunction_Check(object) && PyCFunction_GET_SELF(object) == next))
        tlmi_text_add(&n->edge, "__self__");
    else if (PyMethod_Check(object))
        tlmi_text_add(&n->edge, "__func__");
    else
        after = tell_attribute(n, i);
    tlmi_step_end(n, TLMI_STEP_BOUND, 0);
    return after;
}

/* ---- containers with a bound ---- */

/* Adds what a container may have at most, when that is known, behind its type. */
static void tell_bound(tlmi_namer *n, PyObject *bound)
{
    long long most = bound != NULL && PyLong_CheckExact(bound) ? PyLong_AsLongLong(bound) : 0;
    if (most == -1 && PyErr_Occurred())
        PyErr_Clear(); /* so large that it bounds nothing */
    if (most <= 0)
        return;
    char text[24];
    snprintf(text, sizeof text, "\n%lld", most);
    tlmi_text_add(&n->type, text);
}

static uint32_t name_deque(tlmi_namer *n, uint32_t i)
{
    PyObject *deque = object_at(n, i), *bound = NULL;
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, Py_TYPE(deque));
    const char *name = Py_TYPE(deque)->tp_name;
    if (strcmp(name, "collections.deque") == 0) { /* a member of C; of a subclass it might be the program's code */
        bound = PyObject_GetAttrString(deque, "maxlen");
        if (bound == NULL)
            PyErr_Clear();
    }
    tell_bound(n, bound);
    Py_XDECREF(bound);
    tlmi_text_add(&n->edge, "[]");
    tlmi_step_end(n, TLMI_STEP_DEQUE, Py_SIZE(deque));
    return i + 1;
}

/* What lru_cache was told as its maxsize, borrowed; NULL: it is not known. Its function `cache_parameters`, which is in the
 * dict of each cache, is not called: maxsize is the only int in its closure. */
static PyObject *lru_bound(PyObject *attributes)
{
    PyObject *tells = attributes == NULL ? NULL : PyDict_GetItemString(attributes, "cache_parameters");
    PyObject *cells = tells != NULL && PyFunction_Check(tells) ? PyFunction_GetClosure(tells) : NULL;
    for (Py_ssize_t i = 0; cells != NULL && i < PyTuple_GET_SIZE(cells); i++) {
        PyObject *cell = PyTuple_GET_ITEM(cells, i), *value = PyCell_Check(cell) ? PyCell_GET(cell) : NULL;
        if (value != NULL && PyLong_CheckExact(value))
            return value;
    }
    return NULL;
}

static int find_results(PyObject *child, void *context)
{
    PyObject **found = context;
    if (child != NULL && PyDict_CheckExact(child) && child != found[1])
        found[0] = child;
    return found[0] != NULL;
}

static uint32_t name_lru_cache(tlmi_namer *n, uint32_t i)
{
    PyObject *cache = object_at(n, i), *next = object_at(n, i + 1);
    PyObject *results[2] = {NULL, pyinside_dict(cache)};
    Py_TYPE(cache)->tp_traverse(cache, find_results, results);
    tlmi_step_begin(n);
    tlmi_text_named(&n->type, cache);
    tell_bound(n, lru_bound(results[1]));
    uint32_t after = i + 1;
    if (next == results[1] || PyFunction_Check(next)) {
        after = tell_attribute(n, i);
        if (n->edge.used == 0)
            tlmi_text_add(&n->edge, "__wrapped__");
    } else {
        tlmi_text_add(&n->edge, "[]");
        after = next == results[0] && i + 2 < n->count ? i + 2 : i + 1;
    }
    tlmi_step_end(n, TLMI_STEP_LRU_CACHE, results[0] == NULL ? 0 : PyDict_GET_SIZE(results[0]));
    return after;
}

static uint32_t name_thread_local(tlmi_namer *n, uint32_t i)
{
    bool is_value = i + 3 < n->count && kind_at(n, i + 1) == TLMI_DICT && kind_at(n, i + 2) == TLMI_DICT;
    if (!is_value)
        return name_of_kind(n, i, TLMI_STEP_THREAD);
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, Py_TYPE(object_at(n, i)));
    tlmi_text_str(&n->edge, tlmi_key_of(object_at(n, i + 2), n->way[i + 3].edge, object_at(n, i + 3)));
    tlmi_step_end(n, TLMI_STEP_THREAD, 0);
    return i + 3;
}

/* ---- frames, exceptions, views ---- */

static uint32_t name_frame(tlmi_namer *n, uint32_t i)
{
    pyframe *frame = tlmi_frame_of(n->search, n->way[i].object);
    const tlmi_stop *to = &n->way[i + 1];
    uint32_t next = i + 1;
    tlmi_step_begin(n);
    if (frame == NULL) {
        tlmi_text_type(&n->type, Py_TYPE(object_at(n, i)));
        tlmi_step_end(n, TLMI_STEP_GENERATOR, 0);
        return next;
    }
    bool is_generator =
        !(n->way[i].object & TLMI_RUNNING) ? kind_at(n, i) == TLMI_GENERATOR : pyinside_is_generator(frame);
    tlmi_text_frame(&n->type, frame);
    if ((PyObject *)to->object == pyinside_names(frame) && i + 2 < n->count) {
        next = i + 2;
        tlmi_text_str(&n->edge, tlmi_key_of((PyObject *)to->object, n->way[next].edge, object_at(n, next)));
    } else {
        int index = tlmi_value_index(frame, (PyObject *)to->object, to->edge);
        tlmi_text_str(&n->edge, tlmi_value_name(frame, index));
        if (kind_at(n, next) == TLMI_CELL && next + 1 < n->count)
            next++;
    }
    tlmi_step_end(n, is_generator ? TLMI_STEP_GENERATOR : TLMI_STEP_FRAME, 0);
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
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, Py_TYPE((PyObject *)error));
    uint32_t after = i + 1;
    if (field != NULL)
        tlmi_text_add(&n->edge, field);
    else
        after = tell_attribute(n, i);
    tlmi_step_end(n, TLMI_STEP_EXCEPTION, 0);
    while (kind_at(n, after) == TLMI_TRACEBACK && after + 1 < n->count)
        after++;
    return after;
}

static uint32_t name_traceback(tlmi_namer *n, uint32_t i)
{
    tlmi_step_begin(n);
    tlmi_text_add(&n->type, "traceback");
    while (kind_at(n, i) == TLMI_TRACEBACK && i + 1 < n->count)
        i++;
    tlmi_text_add(&n->edge, kind_at(n, i) == TLMI_FRAME ? "tb_frame" : "");
    tlmi_step_end(n, TLMI_STEP_EXCEPTION, 0);
    return i;
}

static uint32_t name_view(tlmi_namer *n, uint32_t i)
{
    tlmi_step_begin(n);
    tlmi_text_type(&n->type, Py_TYPE(object_at(n, i)));
    tlmi_text_add(&n->edge, "base");
    tlmi_step_end(n, TLMI_STEP_VIEW, 0);
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

/* ---- the way ---- */

uint32_t tlmi_name_next(tlmi_namer *n, uint32_t i)
{
    PyObject *object = object_at(n, i);
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
            return tlmi_name_module(n, object_at(n, i + 1), NULL, i + 2);
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
    default:
        return name_object(n, i);
    }
}
#endif
