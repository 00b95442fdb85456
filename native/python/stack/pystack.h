/* SPDX-License-Identifier: MIT
 * pystack.h: the site of a thread's Python stack. pystack.c walks the interpreter's frames.
 */
#ifndef TLMI_PYSTACK_H
#define TLMI_PYSTACK_H

#include "log/log.h"

/* Site of the calling thread's Python stack; 0: none. Needs no GIL where the interpreter's frames are known (pyframe.h). */
uint32_t tlmi_pystack_site(void);
/* Where they are not: the same with the GIL, waiting for it. 0 elsewhere. */
uint32_t tlmi_pystack_patient_site(void);
/* The first arguments of the calling thread's frames of this code, innermost first; how many, at most `room`. Where there are
 * more, the last one is the outermost, and those between are left out. Never waits for the GIL: a thread's own frames keep
 * them alive. The second: of the thread with this state, under the GIL. */
uint32_t tlmi_pystack_selves(uintptr_t code, uintptr_t *selves, uint32_t room);
uint32_t tlmi_pystack_selves_of(void *thread_state, uintptr_t code, uintptr_t *selves, uint32_t room);
void tlmi_pystack_init(uint32_t stack_depth);
void tlmi_pystack_reset(void);
#endif
