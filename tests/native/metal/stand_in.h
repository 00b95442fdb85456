/* SPDX-License-Identifier: MIT
 * stand_in.h: what a test asks the stand-in for Metal, and makes it do.
 */
#ifndef TLMEM_STAND_IN_H
#define TLMEM_STAND_IN_H

#include <stdbool.h>
#include <stdint.h>

enum { STAND_IN_PAGE_BYTES = 16384, STAND_IN_WORKING_SET_BYTES = 256 << 20 };

int64_t stand_in_buffers(void);    /* buffers that are alive */
int64_t stand_in_helpers(void);    /* helper objects of the driver that are alive: they wait for a pool to be drained */
void stand_in_refuse(bool refuse); /* newBufferWithLength returns nil from now on */
void stand_in_without_device(bool none); /* MTLCreateSystemDefaultDevice returns nil; before the first use */
/* Takes and releases `count` buffers as a program without pools of its own does, inside one pool that is drained at the end;
 * returns how many helper objects were alive before that. */
int64_t stand_in_use_carelessly(int count);
#endif
