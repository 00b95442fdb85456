/* SPDX-License-Identifier: MIT
 * linkage.h: the places through which loaded libraries call a function of another one, and putting another function there.
 *
 * A library that calls across its border does so through a slot, a pointer that the dynamic linker fills in. Pointing the
 * slots elsewhere sees every such call, in every thread, and leaves the code and the caller's result as they are. Calls
 * inside one library, and pointers to the function that were taken before, are not seen.
 */
#ifndef TLMI_LINKAGE_H
#define TLMI_LINKAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

typedef struct {
    const char *symbol;
    void *ours;
    void *theirs;     /* the function; from tlmi_slots_find or tlmi_slots_first */
    void *alias;      /* a second address of it; from tlmi_slots_first; NULL: none */
    const char *omit; /* libraries whose name begins so keep their slots; NULL: none */
    uint32_t count;   /* slots that were pointed to ours; set by tlmi_slots_point */
    bool pointers;    /* also initialised pointers to the function, as in a table of functions */
    bool everywhere;  /* also in libraries that keep their other slots (tlmi_slots_spare) */
} tlmi_slot;

enum { TLMI_MOST_SETTLED = 1024 };
/* Functions that are replaced together, and the libraries whose slots were pointed. The caller sets `slots` and `count`, the
 * rest to zero, and lets one thread at a time use it. With more libraries than TLMI_MOST_SETTLED, those beyond are looked
 * through again whenever another one is loaded. */
typedef struct {
    tlmi_slot *slots;
    size_t count;
    uint64_t loads, unloads;
    bool is_unsettled; /* a library is still being loaded */
    uint32_t settled_count;
    const void *settled[TLMI_MOST_SETTLED];
} tlmi_slots;

/* The address of a symbol in the first loaded library whose file name begins with `library`; NULL: none. Loads nothing. */
void *tlmi_slots_find(const char *library, const char *symbol);
/* Sets `theirs` to the function that a program would find first, NULL: none. An executable that is not position-independent and
 * takes the address of a function, as Debian's Python does with malloc, has code of its own for it that jumps there: all
 * pointers are to that code, and it becomes the alias. */
void tlmi_slots_first(tlmi_slot *slot);
/* From now on the library that has this address in it keeps its slots. At most four; false: too many. */
bool tlmi_slots_spare(const void *address);
/* Points the slots of all loaded libraries from theirs to ours, and counts them. Slots that somebody else has pointed
 * elsewhere stay. false: not on this system, nothing is changed. */
bool tlmi_slots_point(tlmi_slots *group);
/* To be called now and then: does the same in libraries that were loaded since, and in those that the linker had not finished
 * when they were met. */
void tlmi_slots_point_loaded(tlmi_slots *group);
/* Points them back. */
void tlmi_slots_restore(tlmi_slots *group);

#pragma GCC visibility pop
#endif
