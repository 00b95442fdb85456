/* SPDX-License-Identifier: MIT
 * source_pyheap.c: how much memory Python's own objects take, counted at the two places it comes from.
 *
 * Small objects live in arenas: their allocator is wrapped, and the arenas that were there before are read from Python's own
 * statistics. Larger objects and Python's tables come through the raw domain: it is wrapped and its blocks are measured with
 * the C allocator's own idea of their size, from installation on. The wrappers pass pointers and contexts on unchanged and
 * keep no header, so a block may be allocated before and freed after installing, or the other way round, and a thread that
 * meets a pair of old function and new context works all the same.
 * Known limits: arenas are unknown where Python does not tell the number there were; raw blocks are unknown below another
 * wrapper that puts headers before them (PYTHONMALLOC=debug), and with mimalloc. With PYTHONMALLOC=malloc all objects count
 * as large. Pieces of Python's stack of frames come from the arenas' allocator, too, and are counted as far as they were used.
 * NumPy's array data is left out as long as source_numpy.c is installed.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <Python.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/address_map.h"
#include "platform/heap.h"
#include "python/sources/sources.h"

#define DOMAINS 3
enum { LEAST_ARENA_BYTES = 256 << 10 };

static PyObjectArenaAllocator original_arenas;
static PyMemAllocatorEx original[DOMAINS]; /* by PyMemAllocatorDomain; taken when its domain is wrapped */
static bool wrapped[DOMAINS];
static PyMemAllocatorEx plain; /* the functions that all wrapped domains share */
static bool arenas_wrapped;
static _Atomic bool installed; /* wrappers that could not be taken off may be there without it */
static _Atomic bool arenas_known;
static _Atomic bool large_known;
static _Atomic int64_t arena_bytes;
static _Atomic uint64_t newest_bytes;
static _Atomic uintptr_t newest_arena;   /* 0: none that came since installation, or it is gone */
static tlmi_map pieces = TLMI_MAP_EMPTY; /* of the stack of frames: address -> bytes that it counts as; under the GIL */
static _Atomic(PyDictObject *) modules;  /* sys.modules; borrowed, lives as long as the interpreter */
static _Atomic int64_t large_bytes;

__thread bool tlmi_pyheap_is_array;

static void count_arena(int64_t bytes)
{
    atomic_fetch_add_explicit(&arena_bytes, bytes, memory_order_relaxed);
}

/* Changes what a piece counts as; a new one for which the map has no memory does not count. */
static void count_piece(uintptr_t piece, uint64_t bytes)
{
    uint64_t before = tlmi_map_find(&pieces, piece);
    if (tlmi_map_put(&pieces, piece, bytes))
        count_arena((int64_t)bytes - (int64_t)before);
}

/* Frames are stacked in a piece until the next does not fit, and the thread, or greenlet, gets another. As far as that one has
 * been used then it counts; of the last one hardly more than a page may ever be. */
static void meet_piece(uintptr_t piece)
{
#if PY_VERSION_HEX < 0x030D0000
    PyThreadState *self = _PyThreadState_UncheckedGet();
#else
    PyThreadState *self = PyThreadState_GetUnchecked();
#endif
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (self != NULL && self->datastack_chunk != NULL) {
        uintptr_t last = (uintptr_t)self->datastack_chunk, top = (uintptr_t)self->datastack_top;
        if (top - last <= self->datastack_chunk->size)
            count_piece(last, (top - last + page - 1) / page * page);
    }
    count_piece(piece, page);
    if (tlmi_heap_is_due(page)) {
        tlmi_heap_sample((void *)piece, page, TLMI_HEAP_ARENA);
        tlmi_heap_await_frame((void *)piece); /* the frame that it is for comes after it */
    }
}

static void *counted_arena_alloc(void *context, size_t bytes)
{
    void *arena = original_arenas.alloc(context, bytes);
    if (arena != NULL && bytes >= LEAST_ARENA_BYTES) {
        count_arena((int64_t)bytes);
        atomic_store_explicit(&newest_bytes, bytes, memory_order_relaxed);
        atomic_store_explicit(&newest_arena, (uintptr_t)arena, memory_order_release);
    } else if (arena != NULL) {
        meet_piece((uintptr_t)arena);
    }
    return arena;
}

static void counted_arena_free(void *context, void *arena, size_t bytes)
{
    if (bytes >= LEAST_ARENA_BYTES) {
        uintptr_t gone = (uintptr_t)arena;
        atomic_compare_exchange_strong(&newest_arena, &gone, 0);
        count_arena(-(int64_t)bytes);
    } else {
        tlmi_heap_gone(arena);
        count_arena(-(int64_t)tlmi_map_take(&pieces, (uintptr_t)arena));
    }
    original_arenas.free(context, arena, bytes); /* tlm-lint: ok */
}

static void count_large(int64_t bytes)
{
    if (tlmi_likely(!tlmi_pyheap_is_array))
        atomic_fetch_add_explicit(&large_bytes, bytes, memory_order_relaxed);
}

static void *counted_alloc(void *context, size_t bytes)
{
    void *block = plain.malloc(context, bytes); /* tlm-lint: ok */
    if (block != NULL)
        count_large((int64_t)tlmi_usable_bytes(block));
    tlmi_heap_meet(block, bytes, TLMI_HEAP_PYTHON);
    return block;
}

static void *counted_zeroed(void *context, size_t count, size_t bytes)
{
    void *block = plain.calloc(context, count, bytes); /* tlm-lint: ok */
    if (block != NULL)
        count_large((int64_t)tlmi_usable_bytes(block));
    tlmi_heap_meet(block, block ? count * bytes : 0, TLMI_HEAP_PYTHON);
    return block;
}

static void *counted_resize(void *context, void *block, size_t bytes)
{
    int64_t before = block == NULL ? 0 : (int64_t)tlmi_usable_bytes(block);
    uint64_t sampled = tlmi_heap_gone(block);
    void *moved = plain.realloc(context, block, bytes); /* tlm-lint: ok */
    if (moved != NULL) {
        count_large((int64_t)tlmi_usable_bytes(moved) - before);
        bool known = sampled != 0 || tlmi_objects_ended != 0;
        tlmi_heap_meet(moved, bytes, known ? TLMI_HEAP_PYTHON | TLMI_HEAP_RESIZED : TLMI_HEAP_PYTHON);
    } else {
        tlmi_heap_restore(block, sampled, TLMI_HEAP_PYTHON);
    }
    return moved;
}

static void counted_free(void *context, void *block)
{
    if (block != NULL)
        count_large(-(int64_t)tlmi_usable_bytes(block));
    tlmi_heap_gone(block);
    plain.free(context, block); /* tlm-lint: ok */
}

/* Bytes of the arenas in use, from the text Python prints about itself; -1 when it does not say. */
static int64_t arenas_now(void)
{
    int (*print_statistics)(FILE *) = (int (*)(FILE *))dlsym(RTLD_DEFAULT, "_PyObject_DebugMallocStats");
    char *text = NULL;
    size_t length;
    FILE *out = print_statistics == NULL ? NULL : open_memstream(&text, &length);
    if (out == NULL)
        return -1;
    bool printed = print_statistics(out) != 0;
    fclose(out);
    int64_t bytes = -1;
    const char *sentence = printed && text != NULL ? strstr(text, " arenas * ") : NULL;
    if (sentence != NULL) {
        const char *count = sentence;
        while (count > text && count[-1] >= '0' && count[-1] <= '9')
            count--;
        bytes = strtoll(count, NULL, 10) * strtoll(sentence + strlen(" arenas * "), NULL, 10);
    }
    free(text); /* tlm-lint: ok */
    return bytes;
}

static void wrap_arenas(void)
{
    /* Between the two steps nothing allocates: the caller holds the GIL and the statistics have been printed. */
    int64_t there = arenas_now();
    PyObject_GetArenaAllocator(&original_arenas);
    PyObjectArenaAllocator counted = {original_arenas.ctx, counted_arena_alloc, counted_arena_free};
    tlmi_map_clear(&pieces);
    atomic_store(&newest_arena, 0);
    atomic_store_explicit(&arena_bytes, there < 0 ? 0 : there, memory_order_relaxed);
    atomic_store_explicit(&arenas_known, there >= 0, memory_order_relaxed);
    PyObject_SetArenaAllocator(&counted);
    arenas_wrapped = true;
}

static bool same_functions(const PyMemAllocatorEx *a, const PyMemAllocatorEx *b)
{
    return a->ctx == b->ctx && a->malloc == b->malloc && a->calloc == b->calloc && a->realloc == b->realloc &&
           a->free == b->free;
}

static void wrap_domain(PyMemAllocatorDomain domain)
{
    PyMemAllocatorEx counted = {plain.ctx, counted_alloc, counted_zeroed, counted_resize, counted_free};
    PyMem_GetAllocator(domain, &original[domain]);
    PyMem_SetAllocator(domain, &counted);
    wrapped[domain] = true;
}

static bool uses_mimalloc(void)
{
    const char *(*allocator_name)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "_PyMem_GetCurrentAllocatorName");
    const char *name = allocator_name == NULL ? NULL : allocator_name();
    return name != NULL && strncmp(name, "mimalloc", strlen("mimalloc")) == 0;
}

/* Wraps the raw domain, and those that use its functions (PYTHONMALLOC=malloc). A context means that somebody else's wrapper
 * is there, whose pointers need not be the C allocator's. */
static bool wrap_raw(void)
{
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &plain);
    if (plain.ctx != NULL || uses_mimalloc())
        return false;
    const PyMemAllocatorDomain others[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
    for (size_t i = 0; i < 2; i++) {
        PyMemAllocatorEx other;
        PyMem_GetAllocator(others[i], &other);
        if (!same_functions(&other, &plain))
            continue;
        wrap_domain(others[i]);
        atomic_store_explicit(&arenas_known, true, memory_order_relaxed); /* there are none */
    }
    wrap_domain(PYMEM_DOMAIN_RAW);
    return true;
}

tlm_status tlm_pyheap_install(void)
{
#ifdef Py_GIL_DISABLED
    return TLM_UNSUPPORTED; /* neither arenas nor the C allocator are behind Python's objects there */
#else
    PyGILState_STATE state = PyGILState_Ensure();
    tlm_status status = TLM_ALREADY_RUNNING;
    if (!atomic_load_explicit(&installed, memory_order_relaxed)) {
        if (!arenas_wrapped)
            wrap_arenas();
        atomic_store_explicit(&large_bytes, 0, memory_order_relaxed);
        if (!wrapped[PYMEM_DOMAIN_RAW])
            atomic_store_explicit(&large_known, wrap_raw(), memory_order_relaxed);
        atomic_store_explicit(&modules, (PyDictObject *)PyImport_GetModuleDict(), memory_order_relaxed);
        atomic_store_explicit(&installed, true, memory_order_relaxed);
        status = TLM_OK;
    }
    PyGILState_Release(state);
    return status;
#endif
}

/* Takes the wrapper off unless another lies over it, in which case it stays and passes everything on. */
static bool unwrap_domain(PyMemAllocatorDomain domain)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(domain, &now);
    if (!wrapped[domain])
        return true;
    if (now.malloc != counted_alloc || now.free != counted_free)
        return false;
    PyMem_SetAllocator(domain, &original[domain]);
    wrapped[domain] = false;
    return true;
}

tlm_status tlm_pyheap_uninstall(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    tlm_status status = TLM_NOT_RUNNING;
    if (atomic_exchange_explicit(&installed, false, memory_order_relaxed)) {
        PyObjectArenaAllocator now;
        PyObject_GetArenaAllocator(&now);
        bool off = now.alloc == counted_arena_alloc;
        if (off) {
            PyObject_SetArenaAllocator(&original_arenas);
            arenas_wrapped = false;
        }
        off &= unwrap_domain(PYMEM_DOMAIN_OBJ);
        off &= unwrap_domain(PYMEM_DOMAIN_MEM);
        off &= unwrap_domain(PYMEM_DOMAIN_RAW);
        status = off ? TLM_OK : TLM_UNSUPPORTED;
    }
    PyGILState_Release(state);
    return status;
}

static bool is_known(const _Atomic bool *counted)
{
    return atomic_load_explicit(&installed, memory_order_relaxed) &&
           atomic_load_explicit(counted, memory_order_relaxed);
}

static uint64_t not_negative(int64_t bytes)
{
    return bytes < 0 ? 0 : (uint64_t)bytes;
}

/* Python takes a new arena when all others are full, and fills it from its begin on: what it has never touched of that one is not
 * in use. An arena that goes meanwhile has no pages to ask about, or those of what came there. */
uint64_t tlmi_pyheap_arena_bytes(bool *known)
{
    *known = is_known(&arenas_known);
    uintptr_t newest = atomic_load_explicit(&newest_arena, memory_order_acquire);
    uint64_t bytes = atomic_load_explicit(&newest_bytes, memory_order_relaxed);
    uint64_t untouched = newest != 0 ? tlmi_system_absent_bytes(newest, bytes) : 0;
    return not_negative(atomic_load_explicit(&arena_bytes, memory_order_relaxed) - (int64_t)untouched);
}

uint64_t tlmi_pyheap_large_bytes(bool *known)
{
    *known = is_known(&large_known);
    return not_negative(atomic_load_explicit(&large_bytes, memory_order_relaxed));
}

/* Read without the GIL: one word of a dict that stays. A value that is just changing is as good as the next one. */
uint64_t tlmi_pyheap_module_count(bool *known)
{
    PyDictObject *dict = atomic_load_explicit(&modules, memory_order_relaxed);
    *known = dict != NULL && atomic_load_explicit(&installed, memory_order_relaxed);
    return *known ? (uint64_t)__atomic_load_n(&dict->ma_used, __ATOMIC_RELAXED) : 0;
}
