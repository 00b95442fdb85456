/* SPDX-License-Identifier: MIT
 * mappings.h: whose resident memory is in which mapping of the process, from the text of /proc/self/smaps.
 *
 * A reader takes the text in pieces of any length and belongs to one thread; it allocates nothing and cannot fail. A text that
 * is not understood adds nothing.
 */
#ifndef TLMEM_MAPPINGS_H
#define TLMEM_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Resident bytes. The first four are anonymous memory and leave none out; the others are of file-backed and shared memory,
 * the rest of which is code of programs and libraries. */
typedef struct {
    uint64_t library_data; /* written pages of mapped programs and libraries, and their zeroed data */
    uint64_t stacks;       /* of threads, as far as a guard page below tells them */
    uint64_t allocator;    /* the C allocator's heap and arenas, without blocks that it mapped singly */
    uint64_t mapped;       /* all other: Python's arenas, large blocks, ours, and what is mapped by whoever */
    uint64_t log;          /* the recording file */
    uint64_t shared;       /* shared memory without a file */
    uint64_t shared_size;  /* address space of that, resident or not */
    uint64_t data_files;   /* files without code */
} tlmi_mappings;

enum { TLMI_MAPPINGS_LINE = 256 };

typedef struct {
    uint64_t start, end, inode, resident_bytes, anonymous_bytes;
    bool accessible, writable, executable, shared;
    uint8_t name; /* an enum of mappings.c */
} tlmi_mapping;

typedef struct {
    tlmi_mappings found;
    uint64_t log_inode;
    tlmi_mapping before, now;              /* now is judged when the one after it is known */
    uint64_t group_bytes, group_copied;    /* of consecutive mappings of one file: its own pages, and copies of them */
    uint64_t group_size;                   /* their address space */
    uint64_t zeroed;                       /* memory of its zeroed data */
    bool group_executable, group_nameless; /* nameless: shared memory */
    bool other_guards;
    bool any;
    uint32_t line_bytes;
    char line[TLMI_MAPPINGS_LINE];
} tlmi_mappings_reader;

/* other_guards: guard pages lie below other memory too, so they tell no stack. */
void tlmi_mappings_begin(tlmi_mappings_reader *reader, uint64_t log_inode, bool other_guards);
void tlmi_mappings_feed(tlmi_mappings_reader *reader, const char *text, size_t bytes);
const tlmi_mappings *tlmi_mappings_end(tlmi_mappings_reader *reader);
#endif
