/* SPDX-License-Identifier: MIT
 * system.c: what Linux and macOS do in different ways: threads, waiting, room on disk, pages, faults. rss_system.c has what
 * they say about resident memory.
 *
 * Keeps nothing; any thread may call. Never calls malloc.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <sys/uio.h>
#endif
#if defined(__linux__) && defined(__x86_64__)
#include <ucontext.h>
#endif

#include "platform/platform.h"

uint64_t tlmi_system_thread_id(void)
{
#if defined(__linux__)
    return (uint64_t)syscall(SYS_gettid);
#else
    uint64_t id = 0;
    pthread_threadid_np(NULL, &id);
    return id;
#endif
}

void tlmi_system_thread_gone(uint64_t id)
{
#if defined(__linux__)
    enum { MOST_LOOKS = 2000 };
    int error = errno;
    for (int looks = 0; looks < MOST_LOOKS && syscall(SYS_tgkill, getpid(), (pid_t)id, 0) == 0; looks++)
        nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    errno = error;
#else
    (void)id;
#endif
}

bool tlmi_system_copy(const void *from, void *to, size_t bytes)
{
#if defined(__linux__)
    struct iovec source = {(void *)(uintptr_t)from, bytes}, target = {to, bytes};
    return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == (ssize_t)bytes;
#else
    (void)from, (void)to, (void)bytes;
    return false;
#endif
}

bool tlmi_system_is_main_thread(void)
{
#if defined(__linux__)
    return tlmi_system_thread_id() == (uint64_t)getpid();
#else
    return pthread_main_np() == 1;
#endif
}

bool tlmi_system_part_files(void)
{
/* ThreadSanitizer takes a number for the same file in all threads, and has none to print to where 2 is closed. */
#if defined(SYS_close_range) && !defined(__SANITIZE_THREAD__)
    enum { UNSHARE = 2 }; /* CLOSE_RANGE_UNSHARE; Linux 5.9 */
    return syscall(SYS_close_range, 0u, ~0u, UNSHARE) == 0;
#else
    return false;
#endif
}

int tlmi_system_borrow_file(int number)
{
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_getfd)
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0); /* Linux 5.3 and 5.6 */
    if (process < 0)
        return -1;
    int file = (int)syscall(SYS_pidfd_getfd, process, number, 0);
    close(process);
    return file;
#else
    (void)number;
    return -1;
#endif
}

void tlmi_system_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
#if !defined(__APPLE__)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

void tlmi_system_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline_ns)
{
#if defined(__APPLE__)
    struct timespec clock;
    clock_gettime(CLOCK_MONOTONIC, &clock);
    uint64_t now = (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
    uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    struct timespec span = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    pthread_cond_timedwait_relative_np(condition, lock, &span);
#else
    struct timespec at = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
    pthread_cond_timedwait(condition, lock, &at);
#endif
}

bool tlmi_system_may_write(uint64_t end)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

int tlmi_system_extend_file(int fd, uint64_t from, uint64_t bytes)
{
    if (!tlmi_system_may_write(from + bytes))
        return EFBIG;
#if defined(__APPLE__)
    fstore_t store = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, (off_t)bytes, 0};
    bool extended = fcntl(fd, F_PREALLOCATE, &store) == 0 && ftruncate(fd, (off_t)(from + bytes)) == 0;
    return extended ? 0 : errno;
#else
    int error;
    do
        error = posix_fallocate(fd, (off_t)from, (off_t)bytes);
    while (error == EINTR);
    if (error && ftruncate(fd, (off_t)from) != 0) {
        /* What a failed reservation kept stays: no harm. */
    }
    return error;
#endif
}

uint64_t tlmi_system_absent_bytes(uintptr_t start, uint64_t bytes)
{
#ifdef __APPLE__
    typedef char residency;
#else
    typedef unsigned char residency;
#endif
    residency pages[4096];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t absent = 0;
    for (uintptr_t end = start + bytes, at = start; at < end;) {
        size_t count = (end - at) / page < sizeof pages ? (end - at) / page : sizeof pages;
        if (mincore((void *)at, count * page, pages) != 0)
            return 0;
        for (size_t i = 0; i < count; i++)
            absent += (pages[i] & 1) == 0;
        at += count * page;
    }
    return absent * page;
}

void tlmi_system_drop_pages(void *memory, uint64_t bytes, uint64_t kept)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint8_t *start = (uint8_t *)memory + kept, *end = (uint8_t *)memory + bytes;
    uint8_t *first = (uint8_t *)(((uintptr_t)start + page - 1) & ~(page - 1));
    uint8_t *last = (uint8_t *)((uintptr_t)end & ~(page - 1));
    if (first >= last) {
        memset(start, 0, (size_t)(end - start));
        return;
    }
    memset(start, 0, (size_t)(first - start));
    memset(last, 0, (size_t)(end - last));
#ifdef __APPLE__
    madvise(first, (size_t)(last - first), MADV_FREE);
#else
    if (madvise(first, (size_t)(last - first), MADV_DONTNEED) != 0)
        memset(first, 0, (size_t)(last - first)); /* locked pages stay */
#endif
}

const char *tlmi_system_kind_of_touch(const void *context)
{
#if defined(__linux__) && defined(__x86_64__)
    enum { WAS_WRITE = 2 };
    return ((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & WAS_WRITE ? "written" : "read";
#else
    (void)context;
    return "used";
#endif
}
