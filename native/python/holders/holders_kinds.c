/* SPDX-License-Identifier: MIT
 * holders_kinds.c: how objects are looked into, by their types; what NumPy's arrays are made of.
 *
 * Types are told by flags, by identity and, where Python does not export them, by name. Fields of arrays are read as NumPy's
 * own headers lay them out; a descriptor is laid out differently before NumPy 2.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/ndarraytypes.h>

#include "python/tensor/pyreference.h"

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
}

static bool is_named(PyTypeObject *type, const char *name)
{
    for (; type != NULL; type = type->tp_base)
        if (strcmp(type->tp_name, name) == 0)
            return true;
    return false;
}

static tlmi_kind kind_of_builtin(PyTypeObject *type)
{
    static const struct {
        PyTypeObject *type;
        tlmi_kind kind;
    } exact[] = {
        {&PyFunction_Type, TLMI_FUNCTION},     {&PyCell_Type, TLMI_CELL},
        {&PyFrame_Type, TLMI_FRAME},           {&PyGen_Type, TLMI_GENERATOR},
        {&PyCoro_Type, TLMI_GENERATOR},        {&PyAsyncGen_Type, TLMI_GENERATOR},
        {&PyTraceBack_Type, TLMI_TRACEBACK},   {&PyMethod_Type, TLMI_BOUND},
        {&PyCFunction_Type, TLMI_BOUND},       {&PyCMethod_Type, TLMI_BOUND},
        {&PyMemoryView_Type, TLMI_MEMORYVIEW},
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
    return is_named(type, "functools.partial") ? TLMI_BOUND : TLMI_ANY;
}

static tlmi_kind find_kind(const tlmi_search *search, PyTypeObject *type)
{
    unsigned long flags = type->tp_flags;
    if (search->array_type != NULL && PyType_IsSubtype(type, search->array_type))
        return TLMI_ARRAY;
    if (!(flags & Py_TPFLAGS_HAVE_GC))
        return TLMI_LEAF;
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
    return kind_of_builtin(type);
}

tlmi_kind tlmi_search_kind(tlmi_search *search, PyTypeObject *type)
{
    uint32_t at = tlmi_graph_home((uintptr_t)type, TLMI_TYPE_SLOTS - 1);
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

uint64_t tlmi_array_bytes(const tlmi_search *search, PyObject *array)
{
    const PyArrayObject_fields *fields = fields_of(array);
    return fields->descr == NULL ? 0 : count_items(fields) * item_bytes(search, fields);
}

bool tlmi_array_owns(PyObject *array)
{
    return (fields_of(array)->flags & NPY_ARRAY_OWNDATA) != 0 && fields_of(array)->data != NULL;
}

PyObject *tlmi_array_base(PyObject *array)
{
    return fields_of(array)->base;
}

uint64_t tlmi_array_address(PyObject *array)
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

void tlmi_array_fetch(const tlmi_search *search, PyObject *object)
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

void tlmi_array_fetch_base(const tlmi_search *search, PyObject *object)
{
    if (Py_TYPE(object) != search->array_type)
        return;
    const PyArrayObject_fields *fields = fields_of(object);
    if (fields->base != NULL && Py_TYPE(fields->base) == search->array_type)
        fields = fields_of(fields->base);
    __builtin_prefetch(fields->dimensions);
    tlmi_graph_fetch_owner(&search->graph, (uintptr_t)fields->data);
}
#endif
