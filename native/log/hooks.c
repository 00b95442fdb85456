/* SPDX-License-Identifier: MIT
 * hooks.c: what the log asks of the layers above it: of an interpreter in the process, and for figures that samples have.
 *
 * Without an interpreter nothing is known and nothing has a stack. The extension module puts its table here when it is loaded
 * and never takes it away; the layers of the library set their gauges before the first recording. Readers need no lock.
 */
#include "log/log.h"

static uint32_t no_site(void)
{
    return 0;
}

static void ignore_depth(uint32_t stack_depth)
{
    (void)stack_depth;
}

static void do_nothing(void)
{
}

static uint64_t unknown_untouched(uint64_t budget_ns, bool *known)
{
    (void)budget_ns;
    *known = false;
    return 0;
}

static uint64_t unknown_bytes(bool *known)
{
    *known = false;
    return 0;
}

static const tlmi_interpreter_hooks none = {
    .site = no_site,
    .patient_site = no_site,
    .stacks_open = ignore_depth,
    .stacks_close = do_nothing,
    .untouched_bytes = unknown_untouched,
    .arena_bytes = unknown_bytes,
    .large_bytes = unknown_bytes,
    .module_count = unknown_bytes,
    .tick = do_nothing,
};

const tlmi_interpreter_hooks *_Atomic tlmi_interpreter = &none;

static uint64_t no_bytes(void)
{
    return 0;
}

static bool are_absent(void)
{
    return false;
}

tlmi_gauges tlmi_gauges_of_layers = {no_bytes, no_bytes, no_bytes, are_absent};
