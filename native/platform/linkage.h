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
    void *theirs;     /* the function; from tlmi_slots_find */
    const char *omit; /* libraries whose name begins so keep their slots; NULL: none */
    uint32_t count;   /* slots that point to ours; set by tlmi_slots_point */
    bool pointers;    /* also initialised pointers to the function, as in a table of functions */
} tlmi_slot;

/* The address of a symbol in the first loaded library whose file name begins with `library`; NULL: none. Loads nothing. */
void *tlmi_slots_find(const char *library, const char *symbol);
/* The address of a symbol that a program would find first; NULL: none. */
void *tlmi_slots_first(const char *symbol);
/* From now on the library that has this address in it keeps all of its slots. At most four; false: too many. */
bool tlmi_slots_spare(const void *address);
/* Points the slots of all loaded libraries from theirs to ours, and counts them. Slots that somebody else has pointed
 * elsewhere stay. To be called again when libraries were loaded. false: not on this system, nothing is changed. */
bool tlmi_slots_point(tlmi_slot *slots, size_t count);
/* Points them again if libraries were loaded since `loads` was taken, and takes it anew. */
void tlmi_slots_point_loaded(tlmi_slot *slots, size_t count, uint64_t *loads);
/* Points them back. */
void tlmi_slots_restore(tlmi_slot *slots, size_t count);
/* Changes when libraries are loaded. */
uint64_t tlmi_slots_loads(void);

#pragma GCC visibility pop
#endif
