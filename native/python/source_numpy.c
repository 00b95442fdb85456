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
#include <sys/mman.h>
#include <unistd.h>

#include "address_map.h"
#include "python.h"

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
/* Blocks from here on are worth asking the kernel which of their pages were ever touched. */
#define LARGE_BYTES (1u << 20)

static numpy_handler *_Atomic patched; /* NULL: not installed; changes under the GIL, read without it */
static numpy_handler original;
static tlmi_map large_blocks = TLMI_MAP_EMPTY; /* address -> bytes */
static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

static void note_taken(void *block, uint64_t bytes)
{
    tlmi_event_append(TLM_KIND_ALLOC, TLM_DEVICE_NUMPY, (uintptr_t)block, bytes, tlmi_pystack_site(), 1);
    if (bytes >= LARGE_BYTES)
        tlmi_map_put(&large_blocks, (uintptr_t)block, bytes);
}

static void note_given_back(void *block, uint64_t argument)
{
    tlmi_map_take(&large_blocks, (uintptr_t)block);
    tlmi_event_append(TLM_KIND_FREE, TLM_DEVICE_NUMPY, (uintptr_t)block, argument, tlmi_pystack_site(), 0);
}

static void *resize_block(void *context, void *block, size_t bytes)
{
    tlmi_pyheap_is_array = true;
    void *moved = original.allocator.resize(context, block, bytes);
    tlmi_pyheap_is_array = false;
    return moved;
}

static void *traced_take(void *context, size_t bytes)
{
    tlmi_pyheap_is_array = true;
    void *block = original.allocator.take(context, bytes);
    tlmi_pyheap_is_array = false;
    if (tlmi_probe_on() && block != NULL)
        note_taken(block, bytes);
    return block;
}

static void *traced_take_zeroed(void *context, size_t count, size_t bytes)
{
    tlmi_pyheap_is_array = true;
    void *block = original.allocator.take_zeroed(context, count, bytes);
    tlmi_pyheap_is_array = false;
    if (tlmi_probe_on() && block != NULL)
        note_taken(block, (uint64_t)count * bytes);
    return block;
}

static void traced_give_back(void *context, void *block, size_t bytes)
{
    if (tlmi_probe_on() && block != NULL)
        note_given_back(block, 0);
    tlmi_pyheap_is_array = true;
    original.allocator.give_back(context, block, bytes);
    tlmi_pyheap_is_array = false;
}

static void *traced_resize(void *context, void *block, size_t bytes)
{
    /* Whether it is recorded is decided once, so that the two events always come together. */
    if (!tlmi_probe_on())
        return resize_block(context, block, bytes);
    if (block == NULL || bytes == 0) {
        if (block != NULL)
            note_given_back(block, 0);
        void *other = resize_block(context, block, bytes);
        if (other != NULL)
            note_taken(other, bytes);
        return other;
    }
    uint64_t former_bytes = tlmi_map_find(&large_blocks, (uintptr_t)block);
    note_given_back(block, RESIZE_ANNOUNCED);
    void *moved = resize_block(context, block, bytes);
    bool failed = moved == NULL;
    tlmi_event_append(TLM_KIND_REALLOC, TLM_DEVICE_NUMPY, (uintptr_t)(failed ? block : moved),
                      failed ? RESIZE_FAILED : bytes, tlmi_pystack_site(), 1);
    uint64_t now_bytes = failed ? former_bytes : bytes;
    if (now_bytes >= LARGE_BYTES)
        tlmi_map_put(&large_blocks, (uintptr_t)(failed ? block : moved), now_bytes);
    return moved;
}

static PyObject *numpy_core_module(void)
{
    static const char *const names[] = {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"};
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PyObject *module = PyDict_GetItemString(modules, names[i]); /* borrowed */
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
    tlmi_map_after_fork(&large_blocks);
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
        tlmi_map_clear(&large_blocks);
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
        status = is_ours(patched) ? TLM_OK : TLM_UNSUPPORTED;
        if (status == TLM_OK) {
            store_functions(patched, &original);
            patched = NULL;
            tlmi_map_clear(&large_blocks);
        }
    }
    PyGILState_Release(state);
    return status;
}

/* Pages of the block that are not resident, in bytes; 0 for a block that is gone. */
static uint64_t untouched_of(uintptr_t block, uint64_t bytes, uint64_t page)
{
#ifdef __APPLE__
    typedef char residency;
#else
    typedef unsigned char residency;
#endif
    residency pages[4096];
    uint64_t untouched = 0;
    uintptr_t at = (block + page - 1) & ~(uintptr_t)(page - 1);
    uintptr_t end = (block + bytes) & ~(uintptr_t)(page - 1);
    while (at < end) {
        size_t count = (end - at) / page < sizeof pages ? (end - at) / page : sizeof pages;
        if (mincore((void *)at, count * page, pages) != 0)
            return 0;
        for (size_t i = 0; i < count; i++)
            untouched += (pages[i] & 1) == 0;
        at += count * page;
    }
    return untouched * page;
}

uint64_t tlmi_numpy_untouched_bytes(uint64_t budget_ns, bool *known)
{
    enum { BATCH = 64 };
    uintptr_t blocks[BATCH];
    uint64_t bytes[BATCH], untouched = 0, begin = tlmi_clock_ns();
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint32_t cursor = 0;
    *known = patched != NULL;
    while (*known) {
        size_t count = tlmi_map_copy(&large_blocks, &cursor, BATCH, blocks, bytes);
        if (count == 0)
            break;
        for (size_t i = 0; i < count && *known; i++) {
            untouched += untouched_of(blocks[i], bytes[i], page);
            *known = tlmi_clock_ns() - begin <= budget_ns;
        }
    }
    return untouched;
}
