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
void tlmi_pystack_init(uint32_t stack_depth);
void tlmi_pystack_reset(void);
#endif
