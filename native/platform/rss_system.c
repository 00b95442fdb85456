/* SPDX-License-Identifier: MIT
 * rss_system.c: what the operating system and the C allocator answer about the memory of this process. See rss.h.
 *
 * Files that are asked again and again are kept open, where a program cannot close them unseen. Never calls malloc.
 * On other systems than Linux and macOS nothing is known here; the recorder asks psutil.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach/mach.h>
#include <malloc/malloc.h>
#endif

#include "platform/mappings.h"
#include "platform/platform.h"
#include "platform/rss.h"

void tlmi_sample_add(tlmi_sample *taken, tlm_metric metric, uint64_t value)
{
    taken->found[taken->count].metric = metric;
    taken->found[taken->count++].value = value;
}

#if defined(__linux__)

/* As glibc declares it; found at run time so that another C library will do as well. */
typedef struct {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
} allocator_statistics;

enum asked { STATM, STATUS, MAPPINGS, DELAYS, SMAPS, ASKED };
static const char *const paths[ASKED] = {"/proc/self/statm", "/proc/self/status", "/proc/self/smaps",
                                         "/proc/self/schedstat", "/proc/self/smaps_rollup"};
static tlmi_own_file shared[ASKED] = {
    {.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}}; /* in the program's table */
static tlmi_own_file apart[ASKED] = {
    {.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}}; /* in a table of our own */
static allocator_statistics (*ask_allocator)(void);
static uint64_t page_bytes;
static uint64_t log_inode;

static bool wants_smaps, is_open;

static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The file as the calling thread has it open, opened again where the program has closed it, or where it was put away. */
static tlmi_own_file *opened(enum asked which)
{
    tlmi_own_file *file = &(tlmi_own_table_here() ? apart : shared)[which];
    if (is_open && !tlmi_own_file_is_ours(file))
        tlmi_own_file_keep(file, open_file(paths[which]));
    return file;
}

/* A program that may have 24 files misses each one of ours: it has them only while they are read. */
static void put_away(tlmi_own_file *file)
{
    if (!tlmi_own_table_here() && tlmi_own_file_is_in_the_way(file))
        tlmi_own_file_close(file);
}

static void open_first(enum asked which)
{
    tlmi_own_file *file = &shared[which];
    tlmi_own_file_close(file);
    tlmi_own_file_keep_out_of_reach(file, open_file(paths[which]));
    put_away(file);
}

static bool read_text(enum asked which, char *text, size_t room)
{
    tlmi_own_file *file = opened(which);
    ssize_t got = file->fd < 0 ? -1 : pread(file->fd, text, room - 1, 0);
    put_away(file);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* The number of kB after a label at the start of a line, in bytes. */
static bool find_bytes(const char *text, const char *label, uint64_t *bytes)
{
    const char *found = strstr(text, label);
    if (found == NULL)
        return false;
    *bytes = strtoull(found + strlen(label), NULL, 10) * 1024;
    return true;
}

void tlmi_system_open(bool ask_smaps, uint64_t inode)
{
    log_inode = inode;
    page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    wants_smaps = ask_smaps;
    is_open = true;
    for (enum asked which = STATM; which < (ask_smaps ? ASKED : SMAPS); which++)
        open_first(which);
    ask_allocator = (allocator_statistics (*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
}

void tlmi_system_close(void)
{
    is_open = false;
    for (enum asked which = STATM; which < ASKED; which++)
        tlmi_own_file_close(&shared[which]);
}

bool tlmi_system_resident(tlmi_resident *out)
{
    char text[128];
    if (!read_text(STATM, text, sizeof text))
        return false;
    char *rest;
    strtoull(text, &rest, 10);
    uint64_t pages = strtoull(rest, &rest, 10);
    uint64_t shared = strtoull(rest, &rest, 10);
    out->anon_bytes = (pages > shared ? pages - shared : 0) * page_bytes;
    out->file_bytes = shared * page_bytes;
    return true;
}

void tlmi_system_limits(tlmi_sample *taken)
{
    char text[2048];
    uint64_t bytes;
    if (!read_text(STATUS, text, sizeof text))
        return;
    if (find_bytes(text, "\nVmHWM:", &bytes))
        tlmi_sample_add(taken, TLM_METRIC_HIGH_WATER, bytes);
    if (find_bytes(text, "\nVmSwap:", &bytes))
        tlmi_sample_add(taken, TLM_METRIC_SWAP, bytes);
}

/* The second number is of the main thread, whichever asks: /proc/self is the process. Linux counts it unless built without. */
void tlmi_system_delays(tlmi_sample *taken)
{
    char text[128], *rest;
    if (!read_text(DELAYS, text, sizeof text))
        return;
    strtoull(text, &rest, 10);
    tlmi_sample_add(taken, TLM_METRIC_DELAYED, strtoull(rest, NULL, 10));
}

void tlmi_system_allocator(tlmi_sample *taken)
{
    if (ask_allocator == NULL)
        return;
    allocator_statistics now = ask_allocator();
    tlmi_sample_add(taken, TLM_METRIC_MALLOC_USED, now.uordblks + now.hblkhd);
    tlmi_sample_add(taken, TLM_METRIC_MALLOC_FREE, now.fordblks);
    tlmi_sample_add(taken, TLM_METRIC_MALLOC_MAPPED, now.hblkhd);
}

void tlmi_system_smaps(tlmi_sample *taken)
{
    char text[4096];
    uint64_t bytes, dirty;
    if (!wants_smaps || !read_text(SMAPS, text, sizeof text))
        return;
    if (find_bytes(text, "\nPss:", &bytes))
        tlmi_sample_add(taken, TLM_METRIC_PSS, bytes);
    if (find_bytes(text, "\nPrivate_Clean:", &bytes) && find_bytes(text, "\nPrivate_Dirty:", &dirty))
        tlmi_sample_add(taken, TLM_METRIC_PRIVATE, bytes + dirty);
}

static bool read_mappings(tlmi_mappings_reader *reader, bool other_guards)
{
    char text[8192];
    off_t at = 0;
    tlmi_own_file *file = opened(MAPPINGS);
    tlmi_mappings_begin(reader, log_inode, other_guards);
    for (ssize_t got; file->fd >= 0 && (got = pread(file->fd, text, sizeof text, at)) > 0; at += got)
        tlmi_mappings_feed(reader, text, (size_t)got);
    put_away(file);
    return at > 0;
}

bool tlmi_system_mappings(tlmi_sample *taken, bool other_guards)
{
    tlmi_mappings_reader reader;
    if (!read_mappings(&reader, other_guards))
        return false;
    const tlmi_mappings *now = tlmi_mappings_end(&reader);
    tlmi_sample_add(taken, TLM_METRIC_LIBRARY_DATA, now->library_data);
    tlmi_sample_add(taken, TLM_METRIC_STACKS, now->stacks);
    tlmi_sample_add(taken, TLM_METRIC_ALLOCATOR_RESIDENT, now->allocator);
    tlmi_sample_add(taken, TLM_METRIC_MAPPED, now->mapped);
    tlmi_sample_add(taken, TLM_METRIC_LOG_FILE, now->log);
    tlmi_sample_add(taken, TLM_METRIC_SHARED, now->shared);
    tlmi_sample_add(taken, TLM_METRIC_SHARED_SIZE, now->shared_size);
    tlmi_sample_add(taken, TLM_METRIC_DATA_FILES, now->data_files);
    return true;
}

#elif defined(__APPLE__)

void tlmi_system_open(bool ask_smaps, uint64_t inode)
{
    (void)ask_smaps;
    (void)inode;
}

void tlmi_system_close(void)
{
}

static bool ask_kernel(task_vm_info_data_t *info)
{
    mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
    return task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)info, &count) == KERN_SUCCESS;
}

bool tlmi_system_resident(tlmi_resident *out)
{
    task_vm_info_data_t info;
    if (!ask_kernel(&info))
        return false;
    out->anon_bytes = info.phys_footprint;
    out->file_bytes = info.external;
    return true;
}

void tlmi_system_limits(tlmi_sample *taken)
{
    task_vm_info_data_t info;
    if (!ask_kernel(&info))
        return;
    tlmi_sample_add(taken, TLM_METRIC_HIGH_WATER, info.resident_size_peak);
    tlmi_sample_add(taken, TLM_METRIC_SWAP, info.compressed);
}

void tlmi_system_delays(tlmi_sample *taken)
{
    (void)taken;
}

void tlmi_system_allocator(tlmi_sample *taken)
{
    malloc_statistics_t now = {0};
    malloc_zone_statistics(NULL, &now);
    tlmi_sample_add(taken, TLM_METRIC_MALLOC_USED, now.size_in_use);
    tlmi_sample_add(taken, TLM_METRIC_MALLOC_FREE, now.size_allocated - now.size_in_use);
}

void tlmi_system_smaps(tlmi_sample *taken)
{
    (void)taken;
}

bool tlmi_system_mappings(tlmi_sample *taken, bool other_guards)
{
    (void)taken;
    (void)other_guards;
    return false;
}

#else

void tlmi_system_open(bool ask_smaps, uint64_t inode)
{
    (void)ask_smaps;
    (void)inode;
}

void tlmi_system_close(void)
{
}

bool tlmi_system_resident(tlmi_resident *out)
{
    (void)out;
    return false;
}

void tlmi_system_limits(tlmi_sample *taken)
{
    (void)taken;
}

void tlmi_system_delays(tlmi_sample *taken)
{
    (void)taken;
}

void tlmi_system_allocator(tlmi_sample *taken)
{
    (void)taken;
}

void tlmi_system_smaps(tlmi_sample *taken)
{
    (void)taken;
}

bool tlmi_system_mappings(tlmi_sample *taken, bool other_guards)
{
    (void)taken;
    (void)other_guards;
    return false;
}

#endif
