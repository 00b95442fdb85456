/* SPDX-License-Identifier: MIT
 * holders_edges.c: how an object is looked into, by its type; what it refers to, and what becomes of it in a search.
 *
 * Types are recognized by flags, by identity and, where Python does not export them, by name. Fields of arrays are read as NumPy's
 * own headers lay them out; a descriptor is laid out differently before NumPy 2.
 *
 * Containers are read by their own structure, everything else by its tp_traverse, as the collector does it. Only objects that
 * the collector follows are asked that way: others may be half made. Dicts and tuples may be untracked with arrays in them,
 * because arrays are not followed by the collector.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/ndarraytypes.h>

#include "platform/simd.h"
#include "python/tensor/pyreference.h"

/* ---- types, and what NumPy's arrays are made of ---- */

enum { VERSION_SLOT = 0, ARRAY_TYPE_SLOT = 2 }; /* of the table of NumPy's C interface */
#define NUMPY_2 0x02000000u

static PyObject *module_dict(const char *name)
{
    PyObject *module = tlmi_find_text_key(PyImport_GetModuleDict(), name);
    return module != NULL && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
}

void tlmi_search_find_types(tlmi_search *search)
{
    PyObject *dict = module_dict("numpy._core._multiarray_umath");
    if (dict == NULL)
        dict = module_dict("numpy.core._multiarray_umath");
    PyObject *capsule = dict == NULL ? NULL : tlmi_find_text_key(dict, "_ARRAY_API");
    void **table = capsule != NULL && PyCapsule_IsValid(capsule, NULL) ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    if (table != NULL) {
        search->array_type = table[ARRAY_TYPE_SLOT];
        search->array_version = ((unsigned int (*)(void))table[VERSION_SLOT])();
    }
    search->tensor_type = tlmi_reference_type();
    tlmi_graph_mark(&search->graph, (uintptr_t)Py_None);
    tlmi_search_find_torch(search);
}

static bool is_named(PyTypeObject *type, const char *name)
{
    for (; type != NULL; type = type->tp_base)
        if (strcmp(type->tp_name, name) == 0)
            return true;
    return false;
}

static tlmi_kind kind_of_builtin(PyTypeObject *type, bool has_torch)
{
    static const struct {
        PyTypeObject *type;
        tlmi_kind kind;
    } exact[] = {
        {&PyFunction_Type, TLMI_FUNCTION},
        {&PyCell_Type, TLMI_CELL},
        {&PyFrame_Type, TLMI_FRAME},
        {&PyGen_Type, TLMI_GENERATOR},
        {&PyCoro_Type, TLMI_GENERATOR},
        {&PyAsyncGen_Type, TLMI_GENERATOR},
        {&PyTraceBack_Type, TLMI_TRACEBACK},
        {&PyMethod_Type, TLMI_BOUND},
        {&PyCFunction_Type, TLMI_BOUND},
        {&PyCMethod_Type, TLMI_BOUND},
        {&PyMemoryView_Type, TLMI_MEMORYVIEW},
        {&PyGetSetDescr_Type, TLMI_DESCRIPTOR},
        {&PyMethodDescr_Type, TLMI_DESCRIPTOR},
        {&PyWrapperDescr_Type, TLMI_DESCRIPTOR},
        {&PyMemberDescr_Type, TLMI_DESCRIPTOR},
        {&PyClassMethodDescr_Type, TLMI_DESCRIPTOR},
    };
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (type == exact[i].type)
            return exact[i].kind;
    if (is_named(type, "managedbuffer") || is_named(type, "_buffer_wrapper"))
        return TLMI_MEMORYVIEW;
    if (is_named(type, "collections.deque"))
        return TLMI_DEQUE;
    if (is_named(type, "functools._lru_cache_wrapper"))
        return TLMI_LRU_CACHE;
    if (is_named(type, "_thread._local"))
        return TLMI_THREAD_LOCAL;
    if (has_torch && is_named(type, "Optimizer"))
        return TLMI_OPTIMIZER;
    return is_named(type, "functools.partial") ? TLMI_BOUND : TLMI_ANY;
}

static tlmi_kind find_kind(const tlmi_search *search, PyTypeObject *type)
{
    unsigned long flags = type->tp_flags;
    if (search->array_type != NULL && PyType_IsSubtype(type, search->array_type))
        return TLMI_ARRAY;
    if (!(flags & Py_TPFLAGS_HAVE_GC))
        return TLMI_LEAF;
    if (search->torch_type != NULL && PyType_IsSubtype(type, search->torch_type))
        return TLMI_TORCH;
    if (flags & Py_TPFLAGS_DICT_SUBCLASS)
        return TLMI_DICT;
    if (flags & Py_TPFLAGS_LIST_SUBCLASS)
        return TLMI_LIST;
    if (flags & Py_TPFLAGS_TUPLE_SUBCLASS)
        return TLMI_TUPLE;
    if (flags & Py_TPFLAGS_TYPE_SUBCLASS)
        return TLMI_TYPE;
    if (flags & Py_TPFLAGS_BASE_EXC_SUBCLASS)
        return TLMI_EXCEPTION;
    if (search->tensor_type != NULL && PyType_IsSubtype(type, search->tensor_type))
        return TLMI_TENSOR;
    if (PyType_IsSubtype(type, &PyModule_Type))
        return TLMI_MODULE;
    if (PyType_IsSubtype(type, &PySet_Type) || PyType_IsSubtype(type, &PyFrozenSet_Type))
        return TLMI_SET;
    return kind_of_builtin(type, search->torch_type != NULL);
}

tlmi_kind tlmi_search_find_kind(tlmi_search *search, PyTypeObject *type, uint32_t at)
{
    while (search->kinds[at].type != NULL && search->kinds[at].type != type)
        at = (at + 1) % TLMI_TYPE_SLOTS;
    if (search->kinds[at].type == type)
        return search->kinds[at].kind;
    tlmi_kind kind = find_kind(search, type);
    if (search->kinds_count < TLMI_TYPE_SLOTS / 2) {
        search->kinds[at].type = type;
        search->kinds[at].kind = kind;
        search->kinds_count++;
    }
    return kind;
}

/* ---- arrays ---- */

static const PyArrayObject_fields *fields_of(PyObject *array)
{
    return (const PyArrayObject_fields *)array;
}

/* What a descriptor begins with, in every NumPy. */
typedef struct {
    PyObject_HEAD PyTypeObject *type;
    char characters[4];
    int type_number;
} descriptor;
typedef struct {
    descriptor head;
    int item_bytes;
} descriptor_1;
typedef struct {
    descriptor head;
    uint64_t flags;
    npy_intp item_bytes;
} descriptor_2;

static uint64_t item_bytes(const tlmi_search *search, const PyArrayObject_fields *fields)
{
    if (search->array_version >= NUMPY_2)
        return (uint64_t)((const descriptor_2 *)fields->descr)->item_bytes;
    return (uint64_t)((const descriptor_1 *)fields->descr)->item_bytes;
}

static uint64_t count_items(const PyArrayObject_fields *fields)
{
    uint64_t count = 1;
    for (int i = 0; i < fields->nd; i++)
        count *= (uint64_t)fields->dimensions[i];
    return count;
}

/* Of an array: bytes of its elements. */
static uint64_t bytes_of_array(const tlmi_search *search, PyObject *array)
{
    const PyArrayObject_fields *fields = fields_of(array);
    return fields->descr == NULL ? 0 : count_items(fields) * item_bytes(search, fields);
}

static bool owns_memory(PyObject *array)
{
    return (fields_of(array)->flags & NPY_ARRAY_OWNDATA) != 0 && fields_of(array)->data != NULL;
}

PyObject *tlmi_array_base(PyObject *array)
{
    return fields_of(array)->base;
}

static uint64_t address_of_array(PyObject *array)
{
    return (uintptr_t)fields_of(array)->data;
}

PyObject **tlmi_array_objects(PyObject *array, uint64_t *count)
{
    const PyArrayObject_fields *fields = fields_of(array);
    bool in_one_piece = (fields->flags & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)) != 0;
    if (!in_one_piece || fields->data == NULL || fields->descr == NULL ||
        ((const descriptor *)fields->descr)->type_number != NPY_OBJECT)
        return NULL;
    *count = count_items(fields); /* last: few arrays have references, and their sizes lie elsewhere in memory */
    return (PyObject **)fields->data;
}

/* Lets the processor bring, when the object is an array, its sizes and its base; some objects later the sizes of its base
 * and the place of who owns its memory. Most of a search's time is waiting for these. */
static void fetch_array(const tlmi_search *search, PyObject *object)
{
    if (Py_TYPE(object) != search->array_type)
        return;
    const PyArrayObject_fields *fields = fields_of(object);
    __builtin_prefetch(fields->dimensions);
    if (fields->base == NULL)
        return;
    __builtin_prefetch(fields->base);
    __builtin_prefetch(&fields_of(fields->base)->flags);
}

static void fetch_base(const tlmi_search *search, PyObject *object)
{
    if (Py_TYPE(object) != search->array_type)
        return;
    const PyArrayObject_fields *fields = fields_of(object);
    if (fields->base != NULL && Py_TYPE(fields->base) == search->array_type)
        fields = fields_of(fields->base);
    __builtin_prefetch(fields->dimensions);
    tlmi_graph_fetch_owner(&search->graph, (uintptr_t)fields->data);
}

/* ---- references ---- */

enum { REFERENCES_PER_LOOK = 2048 };
#define NO_CONTAINER (Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS)

bool tlmi_search_is_late(tlmi_search *search)
{
    search->until_clock = REFERENCES_PER_LOOK;
    search->is_late = search->is_late || tlmi_clock_thread_ns() > search->deadline_ns;
    return search->is_late;
}

/* Whether an object which the collector does not follow may be an array. */
static bool matters(tlmi_search *search, PyTypeObject *type)
{
    return !(type->tp_flags & NO_CONTAINER) && type != &PyFloat_Type && type != Py_TYPE(Py_None) &&
           tlmi_search_kind(search, type) != TLMI_LEAF;
}

/* ---- children ---- */

typedef struct {
    tlmi_meet meet;
    void *context;
    uint32_t ordinal, mark;
} visited;

static int visit_child(PyObject *child, void *context)
{
    visited *at = context;
    return child == NULL ? 0 : at->meet(at->context, child, at->ordinal++ | at->mark);
}

static int visit_all(PyObject *object, tlmi_meet meet, void *context, uint32_t mark)
{
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    if (traverse == NULL || !_PyObject_GC_IS_TRACKED(object))
        return 0;
    visited at = {meet, context, 0, mark};
    return traverse(object, visit_child, &at);
}

/* Without a look at the keys where the dict knows that all of them are plain strings: they lie anywhere in memory. */
TLMI_INLINE int each_named_value(PyDictKeysObject *keys, tlmi_meet meet, void *context)
{
    const PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    int stop = 0;
    for (Py_ssize_t i = 0; stop == 0 && i < keys->dk_nentries; i++)
        if (entries[i].me_value != NULL)
            stop = meet(context, entries[i].me_value, (uint32_t)i);
    return stop;
}

TLMI_INLINE int each_key_and_value(PyDictKeysObject *keys, tlmi_meet meet, void *context)
{
    const PyDictKeyEntry *entries = DK_ENTRIES(keys);
    int stop = 0;
    for (Py_ssize_t i = 0; stop == 0 && i < keys->dk_nentries; i++) {
        if (entries[i].me_value == NULL)
            continue;
        stop = meet(context, entries[i].me_value, (uint32_t)i);
        if (stop == 0 && !PyUnicode_CheckExact(entries[i].me_key))
            stop = meet(context, entries[i].me_key, (uint32_t)i | TLMI_EDGE_KEY);
    }
    return stop;
}

TLMI_INLINE int each_entry(PyObject *dict, tlmi_meet meet, void *context)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int stop = 0;
    PyDictKeysObject *keys = ((PyDictObject *)dict)->ma_keys;
    if (((PyDictObject *)dict)->ma_values == NULL)
        return DK_IS_UNICODE(keys) ? each_named_value(keys, meet, context) : each_key_and_value(keys, meet, context);
    while (stop == 0 && PyDict_Next(dict, &at, &key, &value))
        stop = meet(context, value, (uint32_t)(at - 1));
    return stop;
}

TLMI_INLINE int each_item(PyObject *const *items, uint64_t count, tlmi_meet meet, void *context)
{
    int stop = 0;
    for (uint64_t i = 0; stop == 0 && i < count; i++)
        if (items[i] != NULL)
            stop = meet(context, items[i], i < TLMI_EDGE_VISIT ? (uint32_t)i : TLMI_EDGE_VISIT - 1);
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

static int each_of_array(PyObject *array, tlmi_meet meet, void *context)
{
    uint64_t count;
    PyObject **objects = tlmi_array_objects(array, &count);
    if (tlmi_array_base(array) != NULL)
        return meet(context, tlmi_array_base(array), TLMI_EDGE_VISIT);
    return objects == NULL ? 0 : each_item(objects, count, meet, context);
}

/* As its tp_traverse, in the same order and with the same edges, but without its code and its names: they refer to no data. */
TLMI_INLINE int each_of_function(PyObject *object, tlmi_meet meet, void *context)
{
    const PyFunctionObject *function = (PyFunctionObject *)object;
    PyObject *const before_name[] = {function->func_globals,  function->func_builtins,   function->func_module,
                                     function->func_defaults, function->func_kwdefaults, function->func_doc};
    PyObject *const after_name[] = {
        function->func_dict,       function->func_closure, function->func_annotations,
#if PY_VERSION_HEX >= 0x030E0000
        function->func_annotate,
#endif
#if PY_VERSION_HEX >= 0x030C0000
        function->func_typeparams,
#endif
    };
    uint32_t edge = 1; /* the code */
    int stop = 0;
    for (size_t i = 0; stop == 0 && i < sizeof before_name / sizeof *before_name; i++)
        if (before_name[i] != NULL)
            stop = meet(context, before_name[i], edge++);
    edge++;
    for (size_t i = 0; stop == 0 && i < sizeof after_name / sizeof *after_name; i++)
        if (after_name[i] != NULL)
            stop = meet(context, after_name[i], edge++);
    return stop;
}

TLMI_INLINE int each_of_object(PyObject *object, tlmi_kind kind, tlmi_meet meet, void *context)
{
    PyTypeObject *type = Py_TYPE(object);
    int stop = 0;
    switch (kind) {
    case TLMI_LEAF:
        return 0;
    case TLMI_ARRAY:
        stop = each_of_array(object, meet, context);
        return stop != 0 || !(type->tp_flags & Py_TPFLAGS_HAVE_GC) ? stop
                                                                   : visit_all(object, meet, context, TLMI_EDGE_VISIT);
    case TLMI_DICT:
        stop = each_entry(object, meet, context);
        return stop != 0 || type == &PyDict_Type ? stop : visit_all(object, meet, context, TLMI_EDGE_VISIT);
    case TLMI_LIST:
        stop = each_item(((PyListObject *)object)->ob_item, (uint64_t)PyList_GET_SIZE(object), meet, context);
        return stop != 0 || type == &PyList_Type ? stop : visit_all(object, meet, context, TLMI_EDGE_VISIT);
    case TLMI_TUPLE:
        stop = each_item(((PyTupleObject *)object)->ob_item, (uint64_t)PyTuple_GET_SIZE(object), meet, context);
        return stop != 0 || type == &PyTuple_Type ? stop : visit_all(object, meet, context, TLMI_EDGE_VISIT);
    case TLMI_FUNCTION:
        return each_of_function(object, meet, context);
    case TLMI_DESCRIPTOR:
        return meet(context, (PyObject *)PyDescr_TYPE(object), 0);
    case TLMI_BOUND:
        if (type != &PyCFunction_Type)
            return visit_all(object, meet, context, 0);
        if (PyCFunction_GET_SELF(object) != NULL)
            stop = meet(context, PyCFunction_GET_SELF(object), 0);
        if (stop != 0 || ((PyCFunctionObject *)object)->m_module == NULL)
            return stop;
        return meet(context, ((PyCFunctionObject *)object)->m_module, PyCFunction_GET_SELF(object) != NULL);
    case TLMI_CELL:
        return PyCell_GET(object) == NULL ? 0 : meet(context, PyCell_GET(object), 0);
    case TLMI_TYPE:
        if (type->tp_is_gc == NULL || type->tp_is_gc(object))
            return visit_all(object, meet, context, 0);
        /* Types in static memory say that they are not to be traversed. */
        return ((PyTypeObject *)object)->tp_dict == NULL ? 0 : meet(context, ((PyTypeObject *)object)->tp_dict, 0);
    default:
        return _PyObject_IS_GC(object) ? visit_all(object, meet, context, 0) : 0;
    }
}

int tlmi_search_each_child(tlmi_search *search, uintptr_t object, tlmi_meet meet, void *context)
{
    if (object & TLMI_RUNNING)
        return each_value((pyframe *)(object & ~TLMI_RUNNING), meet, context);
    tlmi_kind kind = tlmi_search_kind(search, Py_TYPE((PyObject *)object));
    return each_of_object((PyObject *)object, kind, meet, context);
}

/* ---- what is met ---- */

static bool is_array(const tlmi_search *search, PyObject *object)
{
    return Py_TYPE(object) == search->array_type || PyType_IsSubtype(Py_TYPE(object), search->array_type);
}

/* The array that owns the memory, or else the last one on the way to who does. */
static PyObject *owner_of(const tlmi_search *search, PyObject *array)
{
    for (int i = 0; i < 16 && !owns_memory(array); i++) {
        PyObject *base = tlmi_array_base(array);
        if (base == NULL || !is_array(search, base))
            break;
        array = base;
    }
    return array;
}

/* Whether an array that does not own its memory shows memory which is not tracked: neither of an array or a tensor, seen
 * through buffers, nor pages of a file. */
static bool is_untracked(tlmi_search *search, PyObject *array)
{
    static const char *const others[] = {"mmap.mmap", "tlmem._native.Lent", "tlmem._native.Pinned", "_buffer_wrapper"};
    PyObject *of = array;
    for (int i = 0; i < 16 && of != NULL; i++) {
        if (PyMemoryView_Check(of))
            of = PyMemoryView_GET_BUFFER(of)->obj;
        else if (!is_array(search, of))
            break;
        else if (owns_memory(of))
            return false;
        else
            of = tlmi_array_base(of);
    }
    if (of == NULL)
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_named(Py_TYPE(of), others[i]))
            return false;
    tlmi_kind kind = tlmi_search_kind(search, Py_TYPE(of));
    return !PyMemoryView_Check(of) && kind != TLMI_TENSOR && kind != TLMI_TORCH;
}

/* Whether it was met in one of our tensors, whose memory it shows. */
static bool is_of_tensor(const tlmi_search *search, uint32_t node)
{
    uint32_t parent = node != 0 ? tlmi_graph_node(&search->graph, node)->parent : 0;
    return parent != 0 && tlmi_graph_node(&search->graph, parent)->kind == TLMI_TENSOR;
}

static void note_array(tlmi_search *search, PyObject *array, uint32_t node, bool is_of_view)
{
    PyObject *own = owner_of(search, array);
    bool is_tracked = owns_memory(own);
    if (!is_tracked && (bytes_of_array(search, own) == 0 || is_of_tensor(search, node) || !is_untracked(search, own)))
        return;
    uint8_t device = is_tracked ? TLM_DEVICE_NUMPY : TLM_DEVICE_NONE;
    tlmi_owner *owner = tlmi_graph_owner(&search->graph, device, address_of_array(own));
    if (owner == NULL)
        return;
    if (owner->held_bytes == 0)
        owner->held_bytes = bytes_of_array(search, own);
    if (own != array) {
        owner->seen_bytes += node != 0 ? bytes_of_array(search, array) : 0;
        return;
    }
    owner->is_direct = owner->is_direct || !is_of_view;
    if (node != 0 && owner->node == 0) {
        owner->node = node;
        search->found_bytes += is_tracked ? owner->held_bytes : 0;
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

static bool may_own(tlmi_kind kind)
{
    return kind == TLMI_ARRAY || kind == TLMI_TENSOR || kind == TLMI_TORCH;
}

static void note_owner(tlmi_search *search, const tlmi_noted *noted)
{
    if (noted->kind == TLMI_ARRAY)
        note_array(search, noted->object, noted->node, noted->is_of_view);
    else if (noted->kind == TLMI_TENSOR)
        note_tensor(search, noted->object, noted->node);
    else if (noted->kind == TLMI_TORCH)
        tlmi_search_note_torch(search, noted->object, noted->node);
}

void tlmi_search_note(tlmi_search *search, PyObject *object, uint32_t node)
{
    tlmi_kind kind = tlmi_search_kind(search, Py_TYPE(object));
    tlmi_graph_node(&search->graph, node)->kind = kind;
    note_owner(search, &(tlmi_noted){.object = object, .node = node, .kind = kind});
}

/* ---- references that wait ---- */

static tlmi_piece *add_piece(tlmi_search *search)
{
    tlmi_queue *queue = &search->queue;
    tlmi_piece *piece = queue->spare;
    if (piece != NULL)
        queue->spare = piece->next;
    else if ((piece = tlmi_own_alloc(sizeof *piece)) == NULL) {
        search->graph.is_full = true;
        return NULL;
    }
    piece->next = NULL;
    if (queue->last != NULL)
        queue->last->next = piece;
    else
        queue->first = piece;
    queue->last = piece;
    queue->end = 0;
    return piece;
}

static inline void find(tlmi_search *search, uintptr_t object, uint32_t edge)
{
    tlmi_queue *queue = &search->queue;
    bool is_room = queue->last != NULL && queue->end < TLMI_REFERENCES_PER_PIECE;
    tlmi_piece *piece = tlmi_likely(is_room) ? queue->last : add_piece(search);
    if (tlmi_likely(piece != NULL))
        piece->found[queue->end++] = (tlmi_found){object, search->parent, edge};
}

/* Lets the processor bring what waits, as far as some places ahead. */
static void fetch_waiting(tlmi_queue *queue, uint32_t ahead, uint32_t end)
{
    const tlmi_found *found = queue->first->found;
    for (end = ahead < end ? ahead : end; queue->fetched < end; queue->fetched++)
        __builtin_prefetch((const void *)(found[queue->fetched].object & ~TLMI_MARKS));
}

/* Takes the next ones out of the queue, one piece of it at most: references, or one to items; how many. They stay where they
 * are until the next call. */
static uint32_t take(tlmi_queue *queue, const tlmi_found **taken)
{
    tlmi_piece *piece = queue->first;
    if (piece != NULL && queue->begin == TLMI_REFERENCES_PER_PIECE) {
        queue->first = piece->next;
        queue->begin = queue->fetched = 0;
        piece->next = queue->spare;
        queue->spare = piece;
        piece = queue->first;
        if (piece == NULL)
            queue->last = NULL;
    }
    if (piece == NULL)
        return 0;
    uint32_t begin = queue->begin, end = piece == queue->last ? queue->end : TLMI_REFERENCES_PER_PIECE, count = 0;
    fetch_waiting(queue, begin + TLMI_AHEAD, end);
    while (begin + count < end && count < TLMI_TOGETHER && !(piece->found[begin + count].object & TLMI_ITEMS))
        count++;
    *taken = &piece->found[begin];
    count += count == 0 && begin < end; /* items */
    queue->begin += count;
    return count;
}

void tlmi_search_close_queue(tlmi_search *search)
{
    tlmi_queue *queue = &search->queue;
    tlmi_piece *lists[] = {queue->first, queue->spare};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (tlmi_piece *piece = lists[i], *next; piece != NULL; piece = next) {
            next = piece->next;
            tlmi_own_free(piece, sizeof *piece);
        }
    *queue = (tlmi_queue){0};
}

/* Without a branch on what was met, which cannot be foreseen: the processor looks up many children at once. */
TLMI_INLINE int meet_child(void *context, PyObject *child, uint32_t edge)
{
    tlmi_search *search = context;
    tlmi_queue *queue = &search->queue;
    if (tlmi_unlikely(queue->last == NULL || queue->end == TLMI_REFERENCES_PER_PIECE) && add_piece(search) == NULL)
        return 1;
    queue->last->found[queue->end] = (tlmi_found){(uintptr_t)child | search->parent_mark, search->parent, edge};
    queue->end += !tlmi_graph_is_done(&search->graph, (uintptr_t)child);
    return search->graph.is_full;
}

/* Types, modules and plain functions lead to much code and little data. */
static bool is_code(PyObject *object, tlmi_kind kind)
{
    return kind == TLMI_TYPE || kind == TLMI_MODULE ||
           (kind == TLMI_FUNCTION && ((PyFunctionObject *)object)->func_closure == NULL);
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

void tlmi_search_put_off(tlmi_search *search, uint32_t node)
{
    tlmi_graph_node(&search->graph, node)->kind = TLMI_OPTIMIZER;
    put_off(search, node);
}

/* ---- the largest containers ---- */

/* The length of a container, read without calling a method; 0 when the object is not a container. */
static uint64_t items_of(PyObject *object, tlmi_kind kind)
{
    switch (kind) {
    case TLMI_DICT:
        return (uint64_t)PyDict_GET_SIZE(object);
    case TLMI_LIST:
        return (uint64_t)PyList_GET_SIZE(object);
    case TLMI_TUPLE:
        return (uint64_t)PyTuple_GET_SIZE(object);
    case TLMI_SET:
        return (uint64_t)PySet_GET_SIZE(object);
    case TLMI_DEQUE:
        return (uint64_t)Py_SIZE(object);
    default:
        return 0;
    }
}

enum { LEAST_ITEMS = 10 };

static void note_container(tlmi_search *search, uint32_t number, PyObject *object, tlmi_kind kind)
{
    uint64_t items = search->is_elsewhere ? 0 : items_of(object, kind);
    bool is_room = search->containers_count < TLMI_CONTAINERS;
    if (items < LEAST_ITEMS || (!is_room && items <= search->containers[search->smallest].items))
        return;
    const tlmi_node *node = tlmi_graph_node(&search->graph, number);
    if (node->parent == 0 || (kind == TLMI_DICT && tlmi_search_is_namespace(search, node)))
        return;
    uint32_t at = is_room ? search->containers_count++ : search->smallest;
    search->containers[at] = (tlmi_container){number, items};
    for (uint32_t i = 0; i < search->containers_count; i++)
        if (i == 0 || search->containers[i].items < search->containers[search->smallest].items)
            search->smallest = i;
}

static bool is_large(PyObject *object, tlmi_kind kind)
{
    enum { LARGE = 512 };
    uint64_t items = items_of(object, kind);
    if (kind == TLMI_ARRAY)
        tlmi_array_objects(object, &items);
    return items >= LARGE;
}

/* Puts what the object of the node refers to into the queue. false: the search is to end. */
static bool look_into(tlmi_search *search, uint32_t node, bool is_code_next)
{
    uintptr_t address = tlmi_graph_node(&search->graph, node)->object;
    tlmi_kind kind = tlmi_graph_node(&search->graph, node)->kind;
    PyObject *object = (PyObject *)address;
    search->parent = node;
    search->parent_mark = 0;
    if (address & TLMI_RUNNING)
        return each_value((pyframe *)(address & ~TLMI_RUNNING), meet_child, search) == 0;
    /* An optimizer of PyTorch holds every parameter, and the module that has one is a better name for it. */
    bool is_later = !is_code_next && (kind == TLMI_OPTIMIZER || is_code(object, kind));
    if (is_later && put_off(search, node))
        return true;
    if (kind == TLMI_ARRAY && tlmi_array_base(object) != NULL)
        search->parent_mark = TLMI_OF_VIEW;
    note_container(search, node, object, kind);
    if (kind == TLMI_TORCH)
        find(search, address | TLMI_NATIVE, TLMI_EDGE_GRADIENT);
    if (is_large(object, kind)) {
        find(search, address | TLMI_ITEMS, 0);
        return true;
    }
    return each_of_object(object, kind, meet_child, search) == 0;
}

void tlmi_search_look_into(tlmi_search *search, uint32_t node)
{
    look_into(search, node, search->is_code_next);
}

/* Classes that the program made, and functions that have more than their code. */
static bool keeps_data(PyObject *object)
{
    if (PyType_Check(object))
        return (((PyTypeObject *)object)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
    if (!PyFunction_Check(object))
        return false;
    const PyFunctionObject *function = (PyFunctionObject *)object;
    return function->func_defaults != NULL || function->func_kwdefaults != NULL || function->func_dict != NULL;
}

void tlmi_search_drain_own_code(tlmi_search *search)
{
    uint32_t count = search->later_count;
    for (uint32_t i = search->later_next; i < count && !search->is_late && !search->graph.is_full; i++) {
        const tlmi_node *node = tlmi_graph_node(&search->graph, search->later[i]);
        bool is_global = node->parent != 0 && tlmi_graph_node(&search->graph, node->parent)->parent == 0;
        bool is_data = is_global && keeps_data((PyObject *)node->object);
        if (!is_data && node->kind != TLMI_OPTIMIZER)
            continue;
        look_into(search, search->later[i], true);
        search->later[i] = 0; /* done */
        tlmi_search_drain(search);
    }
}

void tlmi_search_drain_code(tlmi_search *search)
{
    search->is_code_next = true;
    while (search->later_next < search->later_count && !search->is_late && !search->graph.is_full) {
        uint32_t node = search->later[search->later_next++];
        if (node != 0)
            look_into(search, node, true);
        tlmi_search_drain(search);
    }
}

/* ---- references are followed ---- */

/* An object that was met for the first time, or one of which each reference is noted. */
typedef struct {
    tlmi_found found;
    PyObject *object;
    tlmi_kind kind;
} met;

static PyObject *object_of(const tlmi_found *found)
{
    return (PyObject *)(found->object & ~TLMI_MARKS);
}

/* What an object has at its beginning, and what belongs to it before that, from four words on. */
static void fetch_object(const tlmi_search *search, PyObject *object, tlmi_kind kind)
{
    const char *start = (const char *)object;
    __builtin_prefetch(start + 40);
    switch (kind) {
    case TLMI_FUNCTION:
        __builtin_prefetch(start + 104);
        break;
    case TLMI_TYPE:
        __builtin_prefetch(start + offsetof(PyTypeObject, tp_base));
        __builtin_prefetch(start + offsetof(PyTypeObject, tp_mro));
        __builtin_prefetch(start - 16);
        break;
    case TLMI_ARRAY:
        fetch_array(search, object);
        break;
    case TLMI_DICT:
    case TLMI_LIST:
    case TLMI_TUPLE:
    case TLMI_CELL:
    case TLMI_DESCRIPTOR:
        break;
    default:
        __builtin_prefetch(start - 32);
    }
}

/* What an object keeps outside of itself. */
static void fetch_inside(tlmi_search *search, PyObject *object, tlmi_kind kind)
{
    PyDictKeysObject *keys;
    if (kind == TLMI_DICT)
        __builtin_prefetch(((PyDictObject *)object)->ma_keys);
    else if (kind == TLMI_LIST)
        __builtin_prefetch(((PyListObject *)object)->ob_item);
    else if (kind == TLMI_ANY && (Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT))
        __builtin_prefetch(pyinside_inline_values(object, &keys));
    else if (kind == TLMI_ARRAY)
        fetch_base(search, object);
}

static void fetch_entries(PyObject *object, tlmi_kind kind)
{
    const PyDictObject *dict = (PyDictObject *)object;
    if (kind != TLMI_DICT)
        return;
    const char *entries = (const char *)DK_ENTRIES(dict->ma_keys);
    __builtin_prefetch(entries);
    __builtin_prefetch(entries + 64);
}

/* What matters of these references: objects that were not met yet, and arrays and tensors that the collector does not follow,
 * of which each reference counts. */
static uint32_t sort_out(tlmi_search *search, const tlmi_found *found, uint32_t count, met *kept)
{
    uint32_t kept_count = 0;
    PyTypeObject *types[TLMI_TOGETHER];
    for (uint32_t i = 0; i < count; i++)
        types[i] = found[i].object & TLMI_NATIVE ? NULL : Py_TYPE(object_of(&found[i]));
    for (uint32_t i = 0; i < count; i++) {
        PyObject *object = object_of(&found[i]);
        met *next = &kept[kept_count];
        next->found = found[i];
        next->object = object;
        next->kind = TLMI_LEAF;
        if (tlmi_unlikely(found[i].object & TLMI_NATIVE)) {
            kept_count++;
            continue;
        }
        if (tlmi_graph_is_done(&search->graph, (uintptr_t)object))
            continue;
        PyTypeObject *type = types[i];
        bool is_followed = (type->tp_flags & Py_TPFLAGS_HAVE_GC) != 0;
        bool is_leaf = !is_followed && !matters(search, type);
        if (is_followed || is_leaf)
            tlmi_graph_mark(&search->graph, (uintptr_t)object);
        if (is_leaf)
            continue;
        next->kind = tlmi_search_kind(search, type);
        fetch_object(search, object, next->kind);
        kept_count++;
    }
    return kept_count;
}

/* Whether the node of an object that leads to nothing is needed. */
static bool is_kept(const tlmi_search *search, PyObject *object, tlmi_kind kind)
{
    return may_own(kind) || (!search->is_elsewhere && items_of(object, kind) >= LEAST_ITEMS) || kind == TLMI_OPTIMIZER;
}

/* false: the search is to end. */
static bool follow(tlmi_search *search, const met *met)
{
    tlmi_graph *graph = &search->graph;
    PyObject *object = met->object;
    if (tlmi_unlikely(met->found.object & TLMI_NATIVE)) {
        tlmi_search_meet_gradient(search, object, met->found.parent);
        return !graph->is_full;
    }
    bool is_followed = (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HAVE_GC) != 0;
    bool is_new = is_followed || tlmi_graph_meet(graph, (uintptr_t)object);
    uint32_t node = is_new ? tlmi_graph_append(graph, (uintptr_t)object, met->found.parent, met->found.edge) : 0;
    if (node != 0)
        tlmi_graph_node(graph, node)->kind = met->kind;
    if (may_own(met->kind))
        note_owner(search, &(tlmi_noted){object, node, met->kind, (met->found.object & TLMI_OF_VIEW) != 0});
    if (node == 0)
        return !graph->is_full;
    uint32_t end = search->queue.end, later = search->later_count;
    const tlmi_piece *last = search->queue.last;
    bool goes_on = look_into(search, node, search->is_code_next);
    if (search->queue.end == end && search->queue.last == last && search->later_count == later &&
        !is_kept(search, object, met->kind)) {
        graph->count--;
        search->passed++;
    }
    return goes_on && !graph->is_full;
}

/* Follows them. All that takes a look at memory is done for many references at once: meanwhile the processor brings what is
 * looked at next. false: the search is to end. */
static bool follow_together(tlmi_search *search, const tlmi_found *found, uint32_t count)
{
    met all[TLMI_TOGETHER];
    uint32_t kept = sort_out(search, found, count, all);
    for (uint32_t i = 0; i < kept; i++)
        fetch_inside(search, all[i].object, all[i].kind);
    for (uint32_t i = 0; i < kept; i++)
        fetch_entries(all[i].object, all[i].kind);
    for (uint32_t i = 0; i < kept; i++)
        if (!follow(search, &all[i]))
            return false;
    if (search->until_clock > count) {
        search->until_clock -= count;
        return true;
    }
    return !tlmi_search_is_late(search);
}

/* References of a large container. */
typedef struct {
    tlmi_search *search;
    tlmi_found found[TLMI_TOGETHER];
    uint32_t count, parent;
    uintptr_t mark;
} items;

static int meet_item(void *context, PyObject *child, uint32_t edge)
{
    items *all = context;
    if (tlmi_graph_is_done(&all->search->graph, (uintptr_t)child))
        return 0;
    __builtin_prefetch(child);
    all->found[all->count++] = (tlmi_found){(uintptr_t)child | all->mark, all->parent, edge};
    if (all->count < TLMI_TOGETHER)
        return 0;
    all->count = 0;
    return !follow_together(all->search, all->found, TLMI_TOGETHER);
}

static bool follow_items(tlmi_search *search, PyObject *object, uint32_t node)
{
    tlmi_kind kind = tlmi_graph_node(&search->graph, node)->kind;
    items all = {.search = search, .parent = node};
    if (kind == TLMI_ARRAY && tlmi_array_base(object) != NULL)
        all.mark = TLMI_OF_VIEW;
    return each_of_object(object, kind, meet_item, &all) == 0 && follow_together(search, all.found, all.count);
}

void tlmi_search_drain(tlmi_search *search)
{
    const tlmi_found *found;
    bool goes_on = !search->is_late && !search->graph.is_full;
    for (uint32_t count; goes_on && (count = take(&search->queue, &found)) > 0;) {
        bool is_items = (found->object & TLMI_ITEMS) != 0;
        goes_on =
            is_items ? follow_items(search, object_of(found), found->parent) : follow_together(search, found, count);
    }
}
#endif
