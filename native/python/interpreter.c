/* SPDX-License-Identifier: MIT
 * interpreter.c: gives the core its table of what this interpreter can tell, when the extension module is loaded.
 */
#include "log/log.h"
#include "python/holders/holders_when.h"
#include "python/sources/sources.h"
#include "python/stack/pystack.h"

static void tick(void)
{
    tlmi_holders_tick();
    tlmi_torch_look_again();
    tlmi_heap_look_again();
}

static const tlmi_interpreter_hooks cpython = {
    .site = tlmi_pystack_site,
    .patient_site = tlmi_pystack_patient_site,
    .stacks_open = tlmi_pystack_init,
    .stacks_close = tlmi_pystack_reset,
    .untouched_bytes = tlmi_live_untouched_bytes,
    .arena_bytes = tlmi_pyheap_arena_bytes,
    .large_bytes = tlmi_pyheap_large_bytes,
    .module_count = tlmi_pyheap_module_count,
    .tick = tick,
};

__attribute__((constructor)) static void offer_hooks(void)
{
    atomic_store_explicit(&tlmi_interpreter, &cpython, memory_order_release);
}
