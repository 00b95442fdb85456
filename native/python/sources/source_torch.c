/* SPDX-License-Identifier: MIT
 * source_torch.c: sees every block of PyTorch's CPU allocator, its shared and mapped memory, and what the caching allocators
 * of accelerators hand out, in every thread.
 *
 * PyTorch's libraries call three functions of libc10 through slots (platform/slots.h): alloc_cpu, free_cpu, and
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

#include "platform/slots.h"
#include "python/sources/sources.h"
#include "python/stack/pystack.h"

/* c10::Device: two signed bytes that are passed in one register. */
typedef struct {
    int8_t type;
    int8_t index;
} torch_device;

enum { DEVICE_CPU = 0, MOST_ACCELERATORS = 64, INDEX_SHIFT = 56 };
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
static void *(*original_alloc)(size_t bytes);
static void (*original_free)(void *block);
static void (*original_report)(void *block, int64_t change, size_t allocated, size_t reserved, torch_device device);

static bool is_installed;     /* under the GIL */
static uint64_t seen_loads;   /* likewise */
static _Atomic uint64_t reserved_bytes[MOST_ACCELERATORS];
static __thread bool is_test; /* the self-test counts, and is not recorded */
static __thread uint32_t test_allocs, test_frees;

/* ---- what PyTorch calls ---- */

static void note_alloc(void *block, uint64_t bytes, uint8_t device, uint64_t index)
{
    uint64_t object = (uintptr_t)block | index << INDEX_SHIFT;
    tlmi_event_append(TLM_KIND_ALLOC, device, object, bytes, tlmi_pystack_site(), 1);
    if (bytes >= KEPT_BYTES)
        tlmi_autograd_note(device, object, tlmi_modules_note(device, object));
}

static void note_free(void *block, uint8_t device, uint64_t index)
{
    tlmi_event_append(TLM_KIND_FREE, device, (uintptr_t)block | index << INDEX_SHIFT, 0, tlmi_pystack_site(), 0);
}

static void *traced_alloc(size_t bytes)
{
    void *block = original_alloc(bytes);
    if (!tlmi_probe_on() || block == NULL)
        return block;
    if (tlmi_unlikely(is_test)) {
        test_allocs++;
        return block;
    }
    note_alloc(block, bytes, TLM_DEVICE_TORCH, 0);
    if (bytes >= KEPT_BYTES) {
        tlmi_live_tally((int64_t)bytes);
        tlmi_live_keep((uintptr_t)block, bytes);
    }
    return block;
}

static void traced_free(void *block)
{
    if (tlmi_probe_on() && block != NULL) {
        if (tlmi_unlikely(is_test)) {
            test_frees++;
        } else {
            tlmi_live_tally(-(int64_t)tlmi_live_forget((uintptr_t)block));
            note_free(block, TLM_DEVICE_TORCH, 0);
            tlmi_modules_settle();
        }
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
                      index << INDEX_SHIFT, is_more ? bytes - former : former - bytes, 0, 0);
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

/* Makes a tensor and drops it, by PyTorch's C interface (from 2.1 on). false: that is not there, or it failed. */
static bool make_tensor(void)
{
    typedef int32_t (*empty_function)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, void **);
    typedef int32_t (*drop_function)(void *);
    empty_function empty = (empty_function)tlmi_slots_find("libtorch_cpu.so", "aoti_torch_empty_strided");
    drop_function drop = (drop_function)tlmi_slots_find("libtorch_cpu.so", "aoti_torch_delete_tensor_object");
    enum { FLOAT = 6 };
    static const int64_t size = 4, stride = 1;
    void *tensor = NULL;
    return empty && drop && empty(1, &size, &stride, FLOAT, DEVICE_CPU, 0, &tensor) == 0 && drop(tensor) == 0;
}

/* Why PyTorch's memory cannot be seen; NULL: it can. */
static const char *why_not(void)
{
    if (slots[ALLOC].count == 0 || slots[FREE].count == 0)
        return "no library calls libc10's allocator through a slot";
    is_test = true;
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
    seen_loads = tlmi_slots_loads();
    if (!tlmi_slots_point(slots, SLOT_COUNT)) {
        tlmi_meta_note("torch.hook", "none (not on this system)");
        return TLM_UNSUPPORTED;
    }
    const char *why = why_not();
    if (why != NULL) {
        char text[200];
        tlmi_slots_restore(slots, SLOT_COUNT);
        snprintf(text, sizeof text, "none (%s)", why);
        tlmi_meta_note("torch.hook", text);
        return TLM_UNSUPPORTED;
    }
    tlmi_meta_note("torch.hook", slots[REPORT].count ? "slots" : "slots, without mapped memory and accelerators");
    return TLM_OK;
}

static bool is_imported(void)
{
    return PyDict_GetItemString(PyImport_GetModuleDict(), "torch._C") != NULL;
}

tlm_status tlm_torch_install(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    tlm_status status = is_installed ? TLM_ALREADY_RUNNING : !is_imported() ? TLM_UNSUPPORTED : TLM_OK;
    if (status == TLM_OK) {
        for (int i = 0; i < MOST_ACCELERATORS; i++)
            atomic_store(&reserved_bytes[i], 0);
        tlmi_live_open();
        status = point_slots();
        is_installed = status == TLM_OK;
        if (!is_installed)
            tlmi_live_close();
        write_version();
    }
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
    return status;
}

tlm_status tlm_torch_uninstall(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    tlm_status status = is_installed ? TLM_OK : TLM_NOT_RUNNING;
    if (is_installed) {
        tlmi_slots_restore(slots, SLOT_COUNT);
        tlmi_modules_close();
        tlmi_live_close();
        write_version(); /* what was imported by then */
        is_installed = false;
    }
    PyGILState_Release(state);
    return status;
}

void tlmi_torch_look_again(void)
{
    uint64_t loads = is_installed ? tlmi_slots_loads() : seen_loads;
    if (loads == seen_loads)
        return;
    seen_loads = loads;
    tlmi_slots_point(slots, SLOT_COUNT);
}
