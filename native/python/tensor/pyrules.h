/* SPDX-License-Identifier: MIT
 * pyrules.h: what pyrules.c, pyoptim.c and the recording of ops share: rules in Python, optimisers, computing again.
 */
#ifndef TLMI_PYRULES_H
#define TLMI_PYRULES_H

#include "python/tensor/pyops.h"

/* ---- pyrules.c ---- */
extern PyMethodDef tlmi_rules_methods[];
extern int tlmi_recompute_blocks; /* how many `recompute` blocks are entered, in all threads */
bool tlmi_recompute_asked(int row);
/* Whether the program asks, where it is now, that the output of this op is computed again instead of saved. Needs the GIL. */
static inline bool tlmi_recompute_wanted(int row)
{
    return tlmi_unlikely(tlmi_recompute_blocks != 0) && tlmi_recompute_asked(row);
}
/* Whether this thread runs a function without recording that will run again with it, and what it has read so far. */
enum { TLMI_NOT_WATCHING = 0, TLMI_WATCHING = 1, TLMI_READ_WHAT_NEEDS = 2 };
extern __thread int tlmi_watching;
/* Such a function reads a tensor that needs a gradient. Needs the GIL. */
void tlmi_watch_need(tlmi_reference *tensor);

/* ---- pyoptim.c ---- */
extern PyMethodDef tlmi_optim_methods[];
#endif
