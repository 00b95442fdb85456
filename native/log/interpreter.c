/* SPDX-License-Identifier: MIT
 * interpreter.c: what the core asks of an interpreter in the process; without one, nothing is known and nothing has a stack.
 *
 * The extension module puts its table here when it is loaded and never takes it away. Readers need no lock.
 */
#include "platform/internal.h"

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
