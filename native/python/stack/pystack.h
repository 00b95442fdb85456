/* SPDX-License-Identifier: MIT
 * pystack.h: the site of a thread's Python stack. pystack.c walks the interpreter's frames.
 */
#ifndef TLMI_PYSTACK_H
#define TLMI_PYSTACK_H

#include "log/log.h"

uint32_t tlmi_pystack_site(void);         /* site of the calling thread's Python stack; 0: none. Needs no GIL */
uint32_t tlmi_pystack_whole_site(void);   /* the same; 0 when a part of it is new and cannot be named without the GIL */
uint32_t tlmi_pystack_patient_site(void); /* the same with the GIL, waiting for it; 0 without an interpreter or stack */
void tlmi_pystack_init(uint32_t stack_depth);
void tlmi_pystack_reset(void);
#endif
