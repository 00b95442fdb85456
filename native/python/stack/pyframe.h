/* SPDX-License-Identifier: MIT
 * pyframe.h: frames of this build's interpreter, for a walk: one header for each private layout, and one for any other.
 *
 * Each of them gives
 *     PYSTACK_METHOD, pyframe, pyframe_current(tstate), pyframe_outer(frame), pyframe_release(frame),
 *     pyframe_position(frame): an address inside the code object that tells the instruction, never odd,
 *     pyframe_code(frame): the code object, NULL for a frame that stands for none,
 *     pyframe_offset(code, position): bytes from the first instruction, negative before it,
 *     pyframe_first_local(frame): its first argument, NULL where that cannot be read.
 */
#ifndef TLMI_PYFRAME_H
#define TLMI_PYFRAME_H

#include <Python.h>

#if defined(Py_GIL_DISABLED) || defined(TLMEM_PUBLIC_STACK_WALK)
#include "python/stack/pystack_public.h"
#elif PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "python/stack/pystack_311.h"
#elif PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#include "python/stack/pystack_312.h"
#elif PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#include "python/stack/pystack_313.h"
#elif PY_VERSION_HEX >= 0x030E0000 && PY_VERSION_HEX < 0x03100000 &&                                                   \
    __has_include("internal/pycore_interpframe_structs.h")
#include "python/stack/pystack_314.h"
#else
#include "python/stack/pystack_public.h"
#endif
#endif
