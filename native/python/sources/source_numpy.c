/* SPDX-License-Identifier: MIT
 * source_numpy.c: sees every array data block that NumPy's default handler allocates, resizes and frees, in every thread.
 *
 * NumPy's handler setting is local to a context, so a handler of ours would be missing in threads the script starts. Instead
 * the four functions of the one default handler are replaced in place. Blocks get no header: whatever is freed after
 * uninstalling, or was allocated before installing, is the original's as it stands. Each pointer is stored atomically, and
 * a thread that meets old and new ones mixed loses nothing but an event.
 * A free is recorded before the block goes, an allocation after it came: so no address is ever seen twice alive.
 */
#include <Python.h>

#include <string.h>

#include "memory/devices/quarantine.h"
#include "platform/address_map.h"
#include "python/sources/sources.h"
#include "python/stack/pystack.h"

/* NumPy's PyDataMem_Handler as of its C interface version 1 (NEP 49). */
typedef struct {
    char name[127];
    uint8_t version;
    struct {
        void *context;
        void *(*take)(void *context, size_t bytes);
        void *(*take_zeroed)(void *context, size_t count, size_t bytes);
        void *(*resize)(void *context, void *block, size_t bytes);
        void (*give_back)(void *context, void *block, size_t bytes);
    } allocator;
} numpy_handler;

#define DEFAULT_HANDLER_SLOT 306 /* of the table of NumPy's C interface */
#define HANDLER_VERSION 1
#define HANDLER_NAME "default_allocator"
#define RESIZE_ANNOUNCED 1
#define RESIZE_FAILED UINT64_MAX

static numpy_handler *_Atomic patched; /* NULL: not installed; changes under the GIL, read without it */
static numpy_handler original;
static tlmi_map watched_blocks = TLMI_MAP_EMPTY; /* address -> bytes + 1 of those that go into quarantine filled */
static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

static uint32_t site_if_recorded(void)
{
    return tlmi_probe_on() ? tlmi_pystack_site() : 0;
}

static void note_taken(void *block, uint64_t bytes, uint32_t site)
{
    tlmi_event_append(TLM_KIND_ALLOC, TLM_DEVICE_NUMPY, (uintptr_t)block, bytes, site, 1);
    tlmi_live_tally((int64_t)bytes);
    if (bytes >= TLMI_LARGE_BYTES)
        tlmi_live_keep((uintptr_t)block, bytes);
}

static void note_given_back(void *block, uint64_t argument, uint32_t site)
{
    tlmi_live_forget((uintptr_t)block);
    tlmi_event_append(TLM_KIND_FREE, TLM_DEVICE_NUMPY, (uintptr_t)block, argument, site, 0);
}

/* ---- from and to NumPy, or the quarantine ---- */

enum { ALIGNMENT = 16 }; /* what malloc promises */

static void free_to_numpy(void *block, uint64_t bytes)
{
    tlmi_pyheap_is_array = true;
    original.allocator.give_back(original.allocator.context, block, bytes);
    tlmi_pyheap_is_array = false;
}

static void *take_guarded(size_t bytes, uint32_t site)
{
    return tlmi_quarantine_alloc(bytes, 0, ALIGNMENT, TLM_DEVICE_NUMPY, site);
}

static void *take_block(void *context, size_t bytes, uint32_t site)
{
    bool is_watched = tlmi_quarantine_active();
    void *block = is_watched ? take_guarded(bytes, site) : NULL;
    if (block != NULL)
        return block;
    tlmi_pyheap_is_array = true;
    block = original.allocator.take(context, bytes);
    tlmi_pyheap_is_array = false;
    if (is_watched && block != NULL)
        tlmi_map_put(&watched_blocks, (uintptr_t)block, (uint64_t)bytes + 1);
    return block;
}

static void *take_zeroed_block(void *context, size_t count, size_t bytes, uint32_t site)
{
    uint64_t all = 0;
    bool is_watched = tlmi_quarantine_active() && !__builtin_mul_overflow((uint64_t)count, (uint64_t)bytes, &all);
    void *block = is_watched ? take_guarded(all, site) : NULL; /* fresh pages are zeros */
    if (block != NULL)
        return block;
    tlmi_pyheap_is_array = true;
    block = original.allocator.take_zeroed(context, count, bytes);
    tlmi_pyheap_is_array = false;
    if (is_watched && block != NULL)
        tlmi_map_put(&watched_blocks, (uintptr_t)block, all + 1);
    return block;
}

static void give_block(void *context, void *block, size_t bytes, uint32_t site)
{
    if (tlmi_quarantine_was_active() && block != NULL) {
        tlmi_freed freed = {.memory = block,
                            .object = (uintptr_t)block,
                            .release = free_to_numpy,
                            .free_site = site,
                            .device = TLM_DEVICE_NUMPY,
                            .is_bound = true};
        /* What NumPy says of the bytes need not be what it asked for. */
        uint64_t watched = tlmi_map_take(&watched_blocks, (uintptr_t)block);
        freed.bytes = watched ? watched - 1 : 0;
        if (tlmi_quarantine_put(&freed))
            return;
    }
    tlmi_pyheap_is_array = true;
    original.allocator.give_back(context, block, bytes);
    tlmi_pyheap_is_array = false;
}

/* Another block with the contents; NULL: no memory, and the block stays. */
static void *move_block(void *context, void *block, uint64_t former_bytes, size_t bytes, uint32_t site)
{
    void *moved = take_block(context, bytes, site);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, former_bytes < bytes ? former_bytes : bytes);
    give_block(context, block, former_bytes, site);
    return moved;
}

static void *resize_block(void *context, void *block, size_t bytes, uint32_t site)
{
    if (tlmi_quarantine_was_active() && block != NULL) {
        uint64_t former_bytes = tlmi_quarantine_bytes(block);
        if (former_bytes != 0)
            return move_block(context, block, former_bytes, bytes, site);
        tlmi_map_take(&watched_blocks, (uintptr_t)block); /* it may move */
    }
    tlmi_pyheap_is_array = true;
    void *moved = original.allocator.resize(context, block, bytes);
    tlmi_pyheap_is_array = false;
    if (tlmi_quarantine_active() && moved != NULL)
        tlmi_map_put(&watched_blocks, (uintptr_t)moved, (uint64_t)bytes + 1);
    return moved;
}

/* ---- what NumPy calls ---- */

static void *traced_take(void *context, size_t bytes)
{
    uint32_t site = site_if_recorded();
    void *block = take_block(context, bytes, site);
    if (tlmi_probe_on() && block != NULL)
        note_taken(block, bytes, site);
    return block;
}

static void *traced_take_zeroed(void *context, size_t count, size_t bytes)
{
    uint32_t site = site_if_recorded();
    void *block = take_zeroed_block(context, count, bytes, site);
    if (tlmi_probe_on() && block != NULL)
        note_taken(block, (uint64_t)count * bytes, site);
    return block;
}

static void traced_give_back(void *context, void *block, size_t bytes)
{
    uint32_t site = site_if_recorded();
    if (tlmi_probe_on() && block != NULL) {
        note_given_back(block, 0, site);
        tlmi_live_tally(-(int64_t)bytes);
    }
    give_block(context, block, bytes, site);
}

static void *traced_resize(void *context, void *block, size_t bytes)
{
    /* Whether it is recorded is decided once, so that the two events always come together. */
    if (!tlmi_probe_on())
        return resize_block(context, block, bytes, 0);
    uint32_t site = tlmi_pystack_site();
    if (block == NULL || bytes == 0) {
        if (block != NULL)
            note_given_back(block, 0, site);
        void *other = resize_block(context, block, bytes, site);
        if (other != NULL)
            note_taken(other, bytes, site);
        return other;
    }
    uint64_t former_bytes = tlmi_live_size((uintptr_t)block);
    note_given_back(block, RESIZE_ANNOUNCED, site);
    void *moved = resize_block(context, block, bytes, site);
    bool failed = moved == NULL;
    tlmi_event_append(TLM_KIND_REALLOC, TLM_DEVICE_NUMPY, (uintptr_t)(failed ? block : moved),
                      failed ? RESIZE_FAILED : bytes, site, 1);
    uint64_t now_bytes = failed ? former_bytes : bytes;
    if (now_bytes >= TLMI_LARGE_BYTES)
        tlmi_live_keep((uintptr_t)(failed ? block : moved), now_bytes);
    return moved;
}

/* NumPy 2's and NumPy 1's name of the module that has its allocator. */
static const char *const module_names[] = {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"};

bool tlmi_numpy_is_module(const char *name)
{
    return strcmp(name, module_names[0]) == 0 || strcmp(name, module_names[1]) == 0;
}

static PyObject *numpy_core_module(void)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    for (size_t i = 0; i < sizeof module_names / sizeof *module_names; i++) {
        PyObject *module = PyDict_GetItemString(modules, module_names[i]); /* borrowed */
        if (module != NULL)
            return module;
    }
    return NULL;
}

/* The default handler, NULL when this NumPy has none that is known here. Leaves no exception. */
static numpy_handler *find_handler(void)
{
    numpy_handler *handler = NULL;
    PyObject *module = numpy_core_module();
    PyObject *table_capsule = module == NULL ? NULL : PyObject_GetAttrString(module, "_ARRAY_API");
    if (table_capsule != NULL) {
        void **table = PyCapsule_GetPointer(table_capsule, NULL);
        PyObject **slot = table == NULL ? NULL : table[DEFAULT_HANDLER_SLOT];
        if (slot != NULL && *slot != NULL && PyCapsule_IsValid(*slot, "mem_handler"))
            handler = PyCapsule_GetPointer(*slot, "mem_handler");
        Py_DECREF(table_capsule);
    }
    PyErr_Clear();
    if (handler == NULL || handler->version != HANDLER_VERSION || strcmp(handler->name, HANDLER_NAME) != 0)
        return NULL;
    return handler;
}

static void write_notes(void)
{
    PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
    PyObject *version = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "__version__");
    PyObject *text = version == NULL ? NULL : PyUnicode_AsUTF8String(version);
    if (text != NULL)
        tlmi_meta_note("numpy", PyBytes_AS_STRING(text));
    tlmi_meta_note("numpy.handler", patched->name);
    Py_XDECREF(text);
    Py_XDECREF(version);
    PyErr_Clear();
}

static void mend_after_fork(void)
{
    tlmi_map_after_fork(&watched_blocks);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

static void store_functions(numpy_handler *handler, const numpy_handler *functions)
{
    __atomic_store_n(&handler->allocator.give_back, functions->allocator.give_back, __ATOMIC_RELEASE);
    __atomic_store_n(&handler->allocator.resize, functions->allocator.resize, __ATOMIC_RELEASE);
    __atomic_store_n(&handler->allocator.take, functions->allocator.take, __ATOMIC_RELEASE);
    __atomic_store_n(&handler->allocator.take_zeroed, functions->allocator.take_zeroed, __ATOMIC_RELEASE);
}

static const numpy_handler traced = {
    .allocator = {NULL, traced_take, traced_take_zeroed, traced_resize, traced_give_back},
};

static bool is_ours(const numpy_handler *handler)
{
    return handler->allocator.take == traced_take && handler->allocator.take_zeroed == traced_take_zeroed &&
           handler->allocator.resize == traced_resize && handler->allocator.give_back == traced_give_back;
}

tlm_status tlm_numpy_install(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    tlm_status status = TLM_OK;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    numpy_handler *handler = find_handler();
    if (patched != NULL || (handler != NULL && is_ours(handler))) {
        status = TLM_ALREADY_RUNNING;
    } else if (handler == NULL) {
        status = TLM_UNSUPPORTED;
    } else {
        pthread_once(&fork_handler_once, install_fork_handler);
        tlmi_live_open();
        original = *handler;
        patched = handler;
        store_functions(handler, &traced);
    }
    if (patched != NULL)
        write_notes();
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
    return status;
}

tlm_status tlm_numpy_uninstall(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    tlm_status status = TLM_NOT_RUNNING;
    /* Where somebody wrapped our functions in turn they stay, and pass everything on to the original. */
    if (patched != NULL) {
        /* So it is while memory in use may be the quarantine's, which NumPy's own functions cannot take back. */
        status = is_ours(patched) ? TLM_OK : TLM_UNSUPPORTED;
        if (status == TLM_OK && !tlmi_quarantine_was_active()) {
            store_functions(patched, &original);
            patched = NULL;
            tlmi_live_close();
        }
    }
    PyGILState_Release(state);
    return status;
}
