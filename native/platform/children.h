/* SPDX-License-Identifier: MIT
 * children.h: what the system says of this process and of those that it has made.
 */
#ifndef TLMI_CHILDREN_H
#define TLMI_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* CPU time, and the highest resident size: of children the largest one's, with what it had before an exec. */
typedef struct {
    uint64_t cpu_ns, peak_bytes;
} tlmi_usage;

/* Of this process, or of all below it that were waited for; all 0 where the system does not say. */
tlmi_usage tlmi_usage_of_this(void);
tlmi_usage tlmi_usage_of_children(void);
/* Adds up the children of this process that run now, but for those that `skip` returns true for; returns their number, 0 where
 * the system does not list them. Allocates nothing. */
size_t tlmi_running_children(bool (*skip)(int pid, void *with), void *with, tlmi_usage *sum);
/* Whether a file of /proc, of any length, contains these bytes. */
bool tlmi_file_contains(const char *path, const void *bytes, size_t size);
/* How many names in a folder `counts` returns true for; 0 when it cannot be read, or where the system does not list it so.
 * Allocates nothing. */
size_t tlmi_count_names(const char *folder, bool (*counts)(const char *name, void *with), void *with);
/* The highest resident size of this process since its last exec; 0 when the system does not say. */
uint64_t tlmi_peak_since_exec(void);

#pragma GCC visibility pop
#endif
