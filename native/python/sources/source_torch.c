/* SPDX-License-Identifier: MIT
 * source_torch.c: sees every block of PyTorch's CPU allocator, its shared and mapped memory, and what the caching allocators
 * of accelerators hand out, in every thread.
 *
 * PyTorch's libraries call three functions of libc10 through slots (platform/linkage.h): alloc_cpu, free_cpu, and
 * reportMemoryUsageToProfiler, which mapped memory and accelerators call whether a profiler runs or not. The slots are pointed
 * here, and each function calls the original. libc10 itself keeps its slots for reports: there they repeat what alloc_cpu said.
 * Nothing is put before a block, so one that was allocated before installing or is freed after uninstalling is as it was.
 *
 * Order: a free is recorded before the block goes, an allocation after it came, so no address is seen twice alive. Accelerators
 * report under their allocator's lock, after its state changed. Nothing here waits for the GIL: most of PyTorch runs without
 * it, and some under such a lock.
 * An exception of alloc_cpu (no memory) passes through: there is nothing to undo.
 */
#include <Python.h>

#include <stdio.h>
#include <string.h>

#include "platform/linkage.h"
#include "python/sources/sources.h"
#include "python/stack/pystack.h"

/* c10::Device: two signed bytes that are passed in one register. */
typedef struct {
    int8_t type;
    int8_t index;
} torch_device;

enum { DEVICE_CPU = 0, MOST_ACCELERATORS = 64 };
/* Sizes and modules are kept from here on: 12 to 22 % of the blocks of a training step, and 99 % of its bytes. */
enum { KEPT_BYTES = 16 * 1024 };

static void *traced_alloc(size_t bytes);
static void traced_free(void *block);
static void traced_report(void *block, int64_t change, size_t allocated, size_t reserved, torch_device device);

enum { ALLOC, FREE, REPORT, EVALUATE, SLOT_COUNT };
static tlmi_slot slots[SLOT_COUNT] = {
    [ALLOC] = {.symbol = "_ZN3c109alloc_cpuEm", .ours = (void *)traced_alloc},
    [FREE] = {.symbol = "_ZN3c108free_cpuEPv", .ours = (void *)traced_free},
    [REPORT] = {.symbol = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
                .ours = (void *)traced_report,
                .omit = "libc10.so"},
    [EVALUATE] = {.symbol = TLMI_AUTOGRAD_EVALUATE, .ours = (void *)tlmi_autograd_evaluate},
};
static tlmi_slots group = {.slots = slots, .count = SLOT_COUNT}; /* under `installing` */
static void *(*original_alloc)(size_t bytes);
static void (*original_free)(void *block);
static void (*original_report)(void *block, int64_t change, size_t allocated, size_t reserved, torch_device device);

static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER; /* never waited for by what PyTorch calls */
static bool is_installed;                                      /* under it, as all of the slots */
static _Atomic uint64_t reserved_bytes[MOST_ACCELERATORS];
static __thread bool is_test; /* the self-test counts, and is not recorded */
static __thread uint32_t test_allocs, test_frees;

/* ---- what PyTorch calls ---- */

static void note_alloc(void *block, uint64_t bytes, uint8_t device, uint64_t index)
{
    uint64_t object = (uintptr_t)block | index << TLMI_ACCELERATOR_SHIFT;
    tlmi_event_append(TLM_KIND_ALLOC, device, object, bytes, tlmi_pystack_site(), 1);
    if (bytes >= KEPT_BYTES)
        tlmi_autograd_note(device, object, tlmi_modules_note(device, object));
}

static void note_free(void *block, uint8_t device, uint64_t index)
{
    tlmi_event_append(TLM_KIND_FREE, device, (uintptr_t)block | index << TLMI_ACCELERATOR_SHIFT, 0, tlmi_pystack_site(),
                      0);
}

/* Nothing says how large a block was that is freed. Of those whose size is not kept the mean stands for it: that is enough to
 * see when live memory has doubled. */
static __thread uint64_t small_bytes, small_count;
static _Atomic uint64_t small_mean;

static void tally_small(uint64_t bytes)
{
    enum { NOW_AND_THEN = 256 };
    tlmi_live_tally((int64_t)bytes);
    small_bytes += bytes;
    small_count++;
    if ((small_count & (small_count - 1)) == 0 || small_count % NOW_AND_THEN == 0)
        atomic_store_explicit(&small_mean, small_bytes / small_count, memory_order_relaxed);
}

static void tally_free(void *block)
{
    uint64_t bytes = tlmi_live_forget((uintptr_t)block);
    if (bytes == 0)
        bytes = atomic_load_explicit(&small_mean, memory_order_relaxed);
    tlmi_live_tally(-(int64_t)bytes);
}

static void *traced_alloc(size_t bytes)
{
    void *block = original_alloc(bytes);
    test_allocs += is_test;
    if (!tlmi_probe_on() || block == NULL || is_test)
        return block;
    note_alloc(block, bytes, TLM_DEVICE_TORCH, 0);
    if (bytes >= KEPT_BYTES) {
        tlmi_live_tally((int64_t)bytes);
        tlmi_live_keep((uintptr_t)block, bytes);
    } else {
        tally_small(bytes);
    }
    return block;
}

static void traced_free(void *block)
{
    test_frees += is_test;
    if (tlmi_probe_on() && block != NULL && !is_test) {
        tally_free(block);
        note_free(block, TLM_DEVICE_TORCH, 0);
        tlmi_modules_settle();
    }
    original_free(block);
}

/* What the caching allocator has from the driver, as one figure: its changes stand for the segments. */
static void note_reserved(uint64_t index, uint64_t bytes)
{
    uint64_t former = atomic_exchange_explicit(&reserved_bytes[index], bytes, memory_order_relaxed);
    if (bytes == former)
        return;
    bool is_more = bytes > former;
    tlmi_event_append(is_more ? TLM_KIND_DEVICE_ALLOC : TLM_KIND_DEVICE_FREE, TLM_DEVICE_TORCH_ACCELERATOR,
                      index << TLMI_ACCELERATOR_SHIFT, is_more ? bytes - former : former - bytes, 0, 0);
}

static void traced_report(void *block, int64_t change, size_t allocated, size_t reserved, torch_device device)
{
    if (tlmi_probe_on() && block != NULL && change != 0) {
        bool is_mapped = device.type == DEVICE_CPU;
        uint8_t of = is_mapped ? TLM_DEVICE_TORCH_MAPPED : TLM_DEVICE_TORCH_ACCELERATOR;
        uint64_t index = is_mapped || device.index < 0 ? 0 : (uint64_t)device.index % MOST_ACCELERATORS;
        if (!is_mapped)
            note_reserved(index, reserved);
        if (change > 0)
            note_alloc(block, (uint64_t)change, of, index);
        else
            note_free(block, of, index);
    }
    original_report(block, change, allocated, reserved, device);
}

/* ---- install, test, uninstall ---- */

bool tlmi_torch_is_module(const char *name)
{
    return strcmp(name, "torch._C") == 0;
}

/* Functions of PyTorch's C interface (from 2.1 on) and, by their C++ names, two getters. A handle is at::Tensor, one pointer. */
typedef int32_t (*empty_function)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, void **);
typedef int32_t (*drop_function)(void *);
typedef int32_t (*address_function)(void *, void **);
#define CPU_LIBRARY "libtorch_cpu.so"
#define GRADIENT "_ZNK3c1010TensorImpl4gradEv"
#define GRAPH "_ZNK2at10TensorBase7grad_fnEv"

enum { ROWS = 79, COLUMNS = 97, ITEMS = ROWS * COLUMNS, FLOAT = 6, FLOAT_BYTES = 4 };

static tlmi_torch_layout layout;
static bool is_layout_known;

const tlmi_torch_layout *tlmi_torch_known(void)
{
    return is_layout_known ? &layout : NULL;
}

/* The offset of 64 bits that have a value, of the first `room` bytes of an object; 0: none. An object begins with a pointer. */
static uint32_t offset_of(const void *object, uint64_t value, uint32_t room)
{
    for (uint32_t at = 8; at < room; at += 8)
        if (memcmp((const char *)object + at, &value, sizeof value) == 0)
            return at;
    return 0;
}

/* Finds the fields of a tensor by what they must contain. Whatever is not found leaves the layout unknown. */
static void learn_layout(void *const *handle, uint64_t address)
{
    /* A tensor has the storage behind one or two words of counts; a storage the data, who frees it, the device, its bytes. */
    enum { FIRST = 16, SECOND = 24, STORAGE_ROOM = 80, TENSOR_ROOM = 176, DEVICE_AFTER = 24 };
    const char *tensor = *handle;
    for (uint32_t at = FIRST; at <= SECOND; at += SECOND - FIRST) {
        const void *storage;
        memcpy(&storage, tensor + at, sizeof storage);
        if ((uintptr_t)storage <= UINT16_MAX || (uintptr_t)storage % sizeof(void *) != 0)
            continue;
        layout.storage = at;
        layout.data = offset_of(storage, address, STORAGE_ROOM);
        layout.bytes = offset_of(storage, (uint64_t)ITEMS * FLOAT_BYTES, STORAGE_ROOM);
        break;
    }
    layout.count = offset_of(tensor, ITEMS, TENSOR_ROOM);
    layout.type = layout.count + 8;
    layout.device = layout.data + DEVICE_AFTER;
    uint16_t type;
    memcpy(&type, tensor + layout.type, sizeof type);
    memcpy(&layout.functions, tensor, sizeof layout.functions);
    layout.gradient = (const void *const *(*)(const void *))tlmi_slots_find("libc10.so", GRADIENT);
    layout.graph = (const void *const *(*)(const void *))tlmi_slots_find(CPU_LIBRARY, GRAPH);
    is_layout_known = layout.data != 0 && layout.bytes > layout.device && layout.count != 0 && type == FLOAT;
}

/* Makes a tensor, learns from it and drops it. false: there is no C interface, or it failed. */
static bool make_tensor(void)
{
    empty_function empty = (empty_function)tlmi_slots_find(CPU_LIBRARY, "aoti_torch_empty_strided");
    drop_function drop = (drop_function)tlmi_slots_find(CPU_LIBRARY, "aoti_torch_delete_tensor_object");
    address_function address_of = (address_function)tlmi_slots_find(CPU_LIBRARY, "aoti_torch_get_data_ptr");
    static const int64_t sizes[] = {ROWS, COLUMNS}, strides[] = {COLUMNS, 1};
    void *tensor = NULL, *address = NULL;
    if (!empty || !drop || empty(2, sizes, strides, FLOAT, DEVICE_CPU, 0, &tensor) != 0)
        return false;
    if (address_of && address_of(tensor, &address) == 0)
        learn_layout(tensor, (uintptr_t)address);
    return drop(tensor) == 0;
}

/* Why PyTorch's memory cannot be seen; NULL: it can. */
static const char *why_not(void)
{
    if (slots[ALLOC].count == 0 || slots[FREE].count == 0)
        return "no library calls libc10's allocator through a slot";
    is_test = true;
    is_layout_known = false;
    test_allocs = test_frees = 0;
    bool made = make_tensor();
    is_test = false;
    if (made && (test_allocs != 1 || test_frees != 1))
        return "a tensor was made and dropped, and its memory was not seen";
    return NULL;
}

static void write_version(void)
{
    PyObject *torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch"); /* borrowed */
    PyObject *version = torch ? PyObject_GetAttrString(torch, "__version__") : NULL;
    PyObject *text = version ? PyObject_Str(version) : NULL;
    const char *characters = text && PyUnicode_IS_ASCII(text) ? (const char *)PyUnicode_1BYTE_DATA(text) : NULL;
    if (characters)
        tlmi_meta_note("torch", characters);
    Py_XDECREF(text);
    Py_XDECREF(version);
    PyErr_Clear();
}

static tlm_status point_slots(void)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        slots[i].theirs = tlmi_slots_find(i == EVALUATE ? "libtorch_cpu.so" : "libc10.so", slots[i].symbol);
        if (slots[i].theirs == NULL && i < REPORT) {
            char why[200];
            snprintf(why, sizeof why, "none (libc10 has no %s)", slots[i].symbol);
            tlmi_meta_note("torch.hook", why);
            return TLM_UNSUPPORTED;
        }
    }
    original_alloc = (void *(*)(size_t))slots[ALLOC].theirs;
    original_free = (void (*)(void *))slots[FREE].theirs;
    original_report = (void (*)(void *, int64_t, size_t, size_t, torch_device))slots[REPORT].theirs;
    if (!tlmi_autograd_open(slots[EVALUATE].theirs))
        slots[EVALUATE].theirs = NULL;
    if (!tlmi_slots_point(&group)) {
        tlmi_meta_note("torch.hook", "none (not on this system)");
        return TLM_UNSUPPORTED;
    }
    const char *why = why_not();
    if (why != NULL) {
        char text[200];
        tlmi_slots_restore(&group);
        snprintf(text, sizeof text, "none (%s)", why);
        tlmi_meta_note("torch.hook", text);
        return TLM_UNSUPPORTED;
    }
    tlmi_meta_note("torch.hook", slots[REPORT].count ? "slots" : "slots, without mapped memory and accelerators");
    return TLM_OK;
}

static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

static void mend_after_fork(void)
{
    pthread_mutex_init(&installing, NULL);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

static bool is_imported(void)
{
    return PyDict_GetItemString(PyImport_GetModuleDict(), "torch._C") != NULL;
}

static tlm_status install(void)
{
    if (is_installed)
        return TLM_ALREADY_RUNNING;
    if (!is_imported())
        return TLM_UNSUPPORTED;
    for (int i = 0; i < MOST_ACCELERATORS; i++)
        atomic_store(&reserved_bytes[i], 0);
    tlmi_live_open();
    tlm_status status = point_slots();
    is_installed = status == TLM_OK;
    if (is_installed)
        tlmi_torch_modes_open();
    else
        tlmi_live_close();
    write_version();
    return status;
}

tlm_status tlm_torch_install(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    pthread_once(&fork_handler_once, install_fork_handler);
    pthread_mutex_lock(&installing);
    tlm_status status = install();
    pthread_mutex_unlock(&installing);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
    return status;
}

tlm_status tlm_torch_uninstall(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    pthread_mutex_lock(&installing);
    tlm_status status = is_installed ? TLM_OK : TLM_NOT_RUNNING;
    if (is_installed) {
        tlmi_slots_restore(&group);
        tlmi_torch_modes_close();
        tlmi_modules_close();
        tlmi_live_close();
        write_version(); /* now the package is imported whole */
        is_installed = false;
    }
    pthread_mutex_unlock(&installing);
    PyGILState_Release(state);
    return status;
}

void tlmi_torch_look_again(void)
{
    if (pthread_mutex_trylock(&installing) != 0)
        return; /* another time */
    if (is_installed)
        tlmi_slots_point_loaded(&group);
    pthread_mutex_unlock(&installing);
}
