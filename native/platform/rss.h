/* SPDX-License-Identifier: MIT
 * rss.h: what is asked of the operating system and of the C allocator for one sample of memory.
 *
 * All of it is called under one lock, that of sampler.c, and never calls malloc. What a system does not know adds
 * nothing to the sample.
 */
#ifndef TLMEM_RSS_H
#define TLMEM_RSS_H

#include <stdbool.h>
#include <stdint.h>

#include "tlmem_log.h"

typedef struct {
    uint64_t anon_bytes;
    uint64_t file_bytes;
} tlmi_resident;

/* What one sample found, in the order in which it will stand in the file. There is room for every metric once. */
typedef struct {
    uint32_t count;
    struct {
        tlm_metric metric;
        uint64_t value;
    } found[32];
} tlmi_sample;

void tlmi_sample_add(tlmi_sample *taken, tlm_metric metric, uint64_t value);

/* Opens what is asked often; anew, also when it is open: after a fork the open files are the parent's.
 * ask_smaps: tlmi_system_smaps() will be asked. inode: of the recording file, 0 without one. */
void tlmi_system_open(bool ask_smaps, uint64_t inode);
void tlmi_system_close(void);

bool tlmi_system_resident(tlmi_resident *out); /* false, and nothing is written, when it is not known */
void tlmi_system_limits(tlmi_sample *taken);
void tlmi_system_delays(tlmi_sample *taken);
void tlmi_system_allocator(tlmi_sample *taken);
void tlmi_system_smaps(tlmi_sample *taken);
/* other_guards: see mappings.h. false: nothing is known, and nothing was added. */
bool tlmi_system_mappings(tlmi_sample *taken, bool other_guards);
#endif
