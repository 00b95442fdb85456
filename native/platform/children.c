/* SPDX-License-Identifier: MIT
 * children.c: CPU time and resident size of other processes of ours; see children.h.
 *
 * Files of /proc are read into the stack: nothing is allocated, and no hook of the program sees it.
 */
#define _GNU_SOURCE /* memmem */
#include "platform/children.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

enum { PATH_ROOM = 64, TEXT_ROOM = 4096, MOST_CHILDREN = 256, MOST_NEEDLE = 5000 };

static tlmi_usage usage_of(int who)
{
    struct rusage used;
    if (getrusage(who, &used) != 0)
        return (tlmi_usage){0};
    uint64_t seconds = (uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec;
    uint64_t micros = (uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec;
#ifdef __APPLE__
    uint64_t unit = 1;
#else
    uint64_t unit = 1024;
#endif
    return (tlmi_usage){seconds * 1000000000u + micros * 1000u, (uint64_t)used.ru_maxrss * unit};
}

tlmi_usage tlmi_usage_of_this(void)
{
    return usage_of(RUSAGE_SELF);
}

tlmi_usage tlmi_usage_of_children(void)
{
    return usage_of(RUSAGE_CHILDREN);
}

#ifdef __linux__

/* The begin of a file as a text; its length, 0 when it cannot be read. */
static size_t read_text(const char *path, char *text, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    size_t length = 0;
    ssize_t more;
    while (length + 1 < room && (more = read(file, text + length, room - 1 - length)) > 0)
        length += (size_t)more;
    close(file);
    text[length] = 0;
    return length;
}

bool tlmi_file_contains(const char *path, const void *bytes, size_t size)
{
    char text[2 * MOST_NEEDLE];
    int file = size > 0 && size <= MOST_NEEDLE ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return false;
    size_t kept = 0;
    bool found = false;
    ssize_t more;
    while (!found && (more = read(file, text + kept, sizeof text - kept)) > 0) {
        size_t length = kept + (size_t)more;
        found = memmem(text, length, bytes, size) != NULL;
        kept = length < size - 1 ? length : size - 1; /* it may go on in what is read next */
        memmove(text, text + length - kept, kept);
    }
    close(file);
    return found;
}

static void add_child(int pid, tlmi_usage *sum)
{
    char path[PATH_ROOM], text[TEXT_ROOM];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *at = read_text(path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    unsigned long user = 0, system = 0;
    long per_second = sysconf(_SC_CLK_TCK);
    if (at != NULL && per_second > 0 &&
        sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2)
        sum->cpu_ns += (uint64_t)(user + system) * (1000000000u / (uint64_t)per_second);
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    at = read_text(path, text, sizeof text) > 0 ? strstr(text, "\nVmHWM:") : NULL;
    uint64_t peak = at ? strtoull(at + strlen("\nVmHWM:"), NULL, 10) * 1024u : 0;
    if (peak > sum->peak_bytes)
        sum->peak_bytes = peak;
}

static size_t add_children_of(const char *task, bool (*skip)(int, void *), void *with, tlmi_usage *sum)
{
    char path[PATH_ROOM], text[TEXT_ROOM];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/children", task);
    size_t count = 0;
    char *at = read_text(path, text, sizeof text) > 0 ? text : NULL, *rest;
    for (; at != NULL && count < MOST_CHILDREN; at = rest) {
        int pid = (int)strtol(at, &rest, 10);
        if (rest == at || *rest != ' ') /* the end, or a number that was cut */
            break;
        if (skip(pid, with))
            continue;
        add_child(pid, sum);
        count++;
    }
    return count;
}

struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

size_t tlmi_count_names(const char *path, bool (*counts)(const char *, void *), void *with)
{
    _Alignas(struct entry) char entries[TEXT_ROOM];
    size_t count = 0;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long more;
    while (folder >= 0 && (more = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (long at = 0; at < more; at += ((struct entry *)(entries + at))->bytes)
            count += counts(((struct entry *)(entries + at))->name, with);
    if (folder >= 0)
        close(folder);
    return count;
}

uint64_t tlmi_peak_since_exec(void)
{
    tlmi_usage own = {0};
    add_child(getpid(), &own);
    return own.peak_bytes;
}

struct search {
    bool (*skip)(int, void *);
    void *with;
    tlmi_usage *sum;
    size_t count;
};

static bool add_children_of_task(const char *name, void *with)
{
    struct search *search = with;
    if (name[0] != '.' && search->count < MOST_CHILDREN)
        search->count += add_children_of(name, search->skip, search->with, search->sum);
    return true;
}

size_t tlmi_running_children(bool (*skip)(int pid, void *with), void *with, tlmi_usage *sum)
{
    struct search search = {skip, with, sum, 0};
    *sum = (tlmi_usage){0};
    tlmi_count_names("/proc/self/task", add_children_of_task, &search);
    return search.count;
}

#else

size_t tlmi_running_children(bool (*skip)(int pid, void *with), void *with, tlmi_usage *sum)
{
    (void)skip;
    (void)with;
    *sum = (tlmi_usage){0};
    return 0;
}

bool tlmi_file_contains(const char *path, const void *bytes, size_t size)
{
    (void)path;
    (void)bytes;
    (void)size;
    return false;
}

size_t tlmi_count_names(const char *path, bool (*counts)(const char *, void *), void *with)
{
    (void)path;
    (void)counts;
    (void)with;
    return 0;
}

uint64_t tlmi_peak_since_exec(void)
{
    return tlmi_usage_of_this().peak_bytes;
}

#endif
