/* SPDX-License-Identifier: MIT
 * pyinside.h: what is read of the interpreter's private layout beside frames: their locals, attributes of instances that have
 * no dict of their own, the lists of the collector. For the search for holders and the paths of PyTorch's modules.
 *
 * Beside pyframe.h, whose frames it takes. Where the layout is not known, or threads run without the GIL, PYINSIDE_KNOWN is
 * not defined and there are no searches. All of it under the GIL; nothing is created, counted or changed.
 */
#ifndef TLMI_PYINSIDE_H
#define TLMI_PYINSIDE_H

/* Python.h must not have been included before: with the layout it declares some things differently. */
#define Py_BUILD_CORE 1
#include <Python.h>
#if !defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x03100000
#define PYINSIDE_KNOWN 1
#if PY_VERSION_HEX < 0x030C0000
#include "internal/pycore_gc.h"
#endif
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_object.h"
#endif
#undef Py_BUILD_CORE

#include <string.h>

#include "python/stack/pyframe.h"

#ifdef PYSTACK_NEEDS_GIL
#undef PYINSIDE_KNOWN
#endif

#ifdef PYINSIDE_KNOWN

/* ---- pending calls ---- */

/* Up to 3.12 a pending call that another thread adds waits until something else makes the main thread look, which in a
 * loop that never gives up the GIL may be its end. This is what a signal does. Of any thread, without the GIL. */
static inline void pyinside_make_main_look(void)
{
#if PY_VERSION_HEX < 0x030D0000
    _Py_atomic_store_relaxed(&PyInterpreterState_Main()->ceval.eval_breaker, 1);
#endif
}

/* Of the caller, who has the GIL; NULL while a thread is being made or ended. */
static inline PyThreadState *pyinside_thread(void)
{
#if PY_VERSION_HEX < 0x030D0000
    return _PyThreadState_UncheckedGet();
#else
    return PyThreadState_GetUnchecked();
#endif
}

/* ---- names of attributes ---- */

/* What types were last asked for is kept in a table; the name is a str or None, NULL where nothing is. */
enum { PYINSIDE_CACHED_NAMES = 1 << MCACHE_SIZE_EXP };
static inline PyObject *pyinside_cached_name(const PyInterpreterState *interpreter, uint32_t at)
{
#if PY_VERSION_HEX < 0x030C0000
    return interpreter->type_cache.hashtable[at].name;
#else
    return interpreter->types.type_cache.hashtable[at].name;
#endif
}

/* ---- what is called at exit ---- */

/* What was registered with atexit, by number below the count: a function, its arguments and those by name; borrowed, NULL: none. */
static inline int pyinside_exit_count(void)
{
#if PY_VERSION_HEX < 0x030E0000
    return PyInterpreterState_Get()->atexit.ncallbacks;
#else
    return 0; /* not known */
#endif
}

enum { PYINSIDE_EXIT_PARTS = 3 };
static inline PyObject *pyinside_exit_part(int number, int part)
{
#if PY_VERSION_HEX < 0x030E0000
    const void *callback = PyInterpreterState_Get()->atexit.callbacks[number];
    return callback == NULL ? NULL : ((PyObject *const *)callback)[part];
#else
    (void)number, (void)part;
    return NULL;
#endif
}

/* ---- caches of functions ---- */

/* functools.lru_cache's object; private, the same from 3.11 to 3.14. */
typedef struct {
    struct {
        PyObject_HEAD;
        void *before, *after;
        Py_hash_t hash;
        PyObject *key, *result;
    } root;
    void *wrapper;
    int typed;
    PyObject *results;
    Py_ssize_t hits;
    PyObject *function;
    Py_ssize_t most;
    Py_ssize_t misses;
    PyObject *mark;
    PyTypeObject *link_type;
    PyObject *information_type;
    PyObject *dict, *references;
} pyinside_lru;

/* The object as one, if its type has the fields that can be known where they should be; else NULL. */
static inline const pyinside_lru *pyinside_as_lru(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    bool fits = type->tp_basicsize >= (Py_ssize_t)sizeof(pyinside_lru) &&
                type->tp_dictoffset == (Py_ssize_t)offsetof(pyinside_lru, dict) &&
                type->tp_weaklistoffset == (Py_ssize_t)offsetof(pyinside_lru, references);
    return fits ? (const pyinside_lru *)object : NULL;
}

/* ---- frames ---- */

static inline PyObject *pyinside_local(pyframe *frame, int index)
{
#if PY_VERSION_HEX < 0x030E0000
    return frame->localsplus[index];
#else
    return pyframe_value(frame, index);
#endif
}

/* Locals and temporary values that may be read. While a frame runs C code its temporary values cannot be found. */
static inline int pyinside_values(pyframe *frame, PyCodeObject *code)
{
#if PY_VERSION_HEX < 0x030E0000
    int top = frame->stacktop;
#else /* the pointer is left as it was while the frame runs */
    int top = 0;
    if (frame->owner == FRAME_OWNED_BY_GENERATOR) {
        PyGenObject *generator = (PyGenObject *)((char *)frame - offsetof(PyGenObject, gi_iframe));
        if (FRAME_STATE_SUSPENDED(generator->gi_frame_state) && frame->stackpointer != NULL)
            top = (int)(frame->stackpointer - frame->localsplus);
    }
#endif
    return top > code->co_nlocalsplus ? top : code->co_nlocalsplus;
}

/* The dict of names that code without fast locals uses; NULL: none. */
static inline PyObject *pyinside_names(pyframe *frame)
{
    return frame->f_locals;
}

static inline PyObject *pyinside_globals(pyframe *frame)
{
    return frame->f_globals;
}

static inline bool pyinside_is_generator(pyframe *frame)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR;
}

/* Of a frame object. Frames that were cleared have no values left. */
static inline pyframe *pyinside_frame_of(PyObject *frame_object)
{
    return ((PyFrameObject *)frame_object)->f_frame;
}

/* Of a generator, a coroutine or an asynchronous generator; NULL: it is finished. */
static inline pyframe *pyinside_generator_frame(PyObject *generator)
{
    PyGenObject *self = (PyGenObject *)generator;
#if PY_VERSION_HEX < 0x030E0000
    bool is_over = self->gi_frame_state >= FRAME_COMPLETED;
#else
    bool is_over = FRAME_STATE_FINISHED(self->gi_frame_state);
#endif
    return is_over ? NULL : (pyframe *)&self->gi_iframe;
}

/* ---- attributes of instances ---- */

/* The dict that an instance has, never a new one; NULL: none, or not yet. */
static inline PyObject *pyinside_dict(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
#if PY_VERSION_HEX < 0x030C0000
        return *_PyObject_ManagedDictPointer(object);
#elif PY_VERSION_HEX < 0x030D0000
        PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
        return _PyDictOrValues_IsValues(either) ? NULL : _PyDictOrValues_GetDict(either);
#else
        return (PyObject *)_PyObject_GetManagedDict(object);
#endif
    }
    Py_ssize_t offset = type->tp_dictoffset;
    if (offset < 0) {
        Py_ssize_t items = Py_SIZE(object);
        offset += (Py_ssize_t)_PyObject_VAR_SIZE(type, items < 0 ? -items : items);
    }
    return offset > 0 ? *(PyObject **)((char *)object + offset) : NULL;
}

/* The attributes of an instance without a dict, and their names; NULL: it has a dict, or none of them. */
static inline PyDictValues *pyinside_inline_values(PyObject *object, PyDictKeysObject **keys)
{
    PyTypeObject *type = Py_TYPE(object);
    PyDictValues *values = NULL;
    if (!(type->tp_flags & Py_TPFLAGS_MANAGED_DICT))
        return NULL;
#if PY_VERSION_HEX < 0x030C0000
    values = *_PyObject_ValuesPointer(object);
#elif PY_VERSION_HEX < 0x030D0000
    PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
    values = _PyDictOrValues_IsValues(either) ? _PyDictOrValues_GetValues(either) : NULL;
#else
    if ((type->tp_flags & Py_TPFLAGS_INLINE_VALUES) && _PyObject_InlineValues(object)->valid)
        values = _PyObject_InlineValues(object);
#endif
    *keys = ((PyHeapTypeObject *)type)->ht_cached_keys;
    return values != NULL && *keys != NULL && DK_IS_UNICODE(*keys) ? values : NULL;
}

/* The name under which an instance without a dict keeps the value; borrowed, NULL: it does not. */
static inline PyObject *pyinside_inline_name(PyObject *object, PyObject *value)
{
    PyDictKeysObject *keys;
    PyDictValues *values = pyinside_inline_values(object, &keys);
    for (Py_ssize_t i = 0; values != NULL && i < keys->dk_nentries; i++)
        if (values->values[i] == value)
            return DK_UNICODE_ENTRIES(keys)[i].me_key;
    return NULL;
}

/* Whether it is a str of these ASCII characters. */
static inline bool pyinside_is_text(PyObject *text, const char *characters, Py_ssize_t length)
{
    return PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT_ASCII(text) && PyUnicode_GET_LENGTH(text) == length &&
           memcmp(PyUnicode_1BYTE_DATA(text), characters, (size_t)length) == 0;
}

/* An attribute that the instance itself has, found without hashing; borrowed, NULL: it has none of that name. */
static inline PyObject *pyinside_attribute(PyObject *object, const char *name, Py_ssize_t length)
{
    PyObject *dict = pyinside_dict(object), *key, *value;
    if (dict != NULL) {
        for (Py_ssize_t at = 0; PyDict_Check(dict) && PyDict_Next(dict, &at, &key, &value);)
            if (pyinside_is_text(key, name, length))
                return value;
        return NULL;
    }
    PyDictKeysObject *keys;
    PyDictValues *values = pyinside_inline_values(object, &keys);
    for (Py_ssize_t i = 0; values != NULL && i < keys->dk_nentries; i++)
        if (values->values[i] != NULL && pyinside_is_text(DK_UNICODE_ENTRIES(keys)[i].me_key, name, length))
            return values->values[i];
    return NULL;
}

/* ---- the collector ---- */

typedef int (*pyinside_visit)(PyObject *object, void *context); /* 0: no more */

/* Every object that the collector follows, as long as there are no collections meanwhile. false: it is at work just now. */
static inline bool pyinside_each_tracked(pyinside_visit visit, void *context)
{
#if PY_VERSION_HEX < 0x030C0000
    struct _gc_runtime_state *gc = &PyInterpreterState_Get()->gc;
    if (gc->collecting)
        return false;
    for (int i = 0; i <= NUM_GENERATIONS; i++) {
        PyGC_Head *head = i < NUM_GENERATIONS ? &gc->generations[i].head : &gc->permanent_generation.head;
        for (PyGC_Head *at = _PyGCHead_NEXT(head); at != head; at = _PyGCHead_NEXT(at))
            if (!visit((PyObject *)(at + 1), context))
                return true;
    }
#else
    PyUnstable_GC_VisitObjects(visit, context);
#endif
    return true;
}
#endif
#endif
