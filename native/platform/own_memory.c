/* SPDX-License-Identifier: MIT
 * own_memory.c: memory for our own bookkeeping, straight from the kernel, and the files that we keep open.
 *
 * Never malloc: the program's allocator, its arenas and its statistics must look as they would without us. Every byte is
 * counted, so that a report can subtract it. Thread-safe. For tests, the n-th next request can be made to fail.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/platform.h"

static _Atomic uint64_t current_bytes;
static _Atomic uint64_t fail_countdown;

/* Where our memory lies, to ask how much of it is resident. What finds no place counts as resident. */
enum { PLACES = 1024 };
static struct {
    _Atomic uintptr_t start; /* 0: empty */
    _Atomic size_t bytes;
} places[PLACES];
static _Atomic uint64_t placeless_bytes;

static size_t round_to_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static bool fails_on_demand(void)
{
    uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    while (tlmi_unlikely(left)) {
        if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
            return left == 1;
    }
    return false;
}

static void remember(uintptr_t start, size_t bytes)
{
    for (size_t i = 0; i < PLACES; i++) {
        uintptr_t empty = 0;
        if (atomic_load_explicit(&places[i].start, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&places[i].start, &empty, start)) {
            atomic_store(&places[i].bytes, bytes);
            return;
        }
    }
    atomic_fetch_add(&placeless_bytes, bytes);
}

static void forget(uintptr_t start, size_t bytes)
{
    for (size_t i = 0; i < PLACES; i++) {
        if (atomic_load_explicit(&places[i].start, memory_order_relaxed) == start) {
            atomic_store(&places[i].bytes, 0);
            atomic_store(&places[i].start, 0);
            return;
        }
    }
    atomic_fetch_sub(&placeless_bytes, bytes);
}

void *tlmi_own_alloc(size_t bytes)
{
    if (bytes == 0 || fails_on_demand())
        return NULL;
    size_t whole = round_to_pages(bytes);
    void *start = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    atomic_fetch_add_explicit(&current_bytes, whole, memory_order_relaxed);
    remember((uintptr_t)start, whole);
    return start;
}

void tlmi_own_free(void *start, size_t bytes)
{
    if (!start)
        return;
    size_t whole = round_to_pages(bytes);
    forget((uintptr_t)start, whole); /* first: the address may be another's at once */
    munmap(start, whole);
    atomic_fetch_sub_explicit(&current_bytes, whole, memory_order_relaxed);
}

uint64_t tlmi_own_current_bytes(void)
{
    return atomic_load_explicit(&current_bytes, memory_order_relaxed);
}

uint64_t tlmi_own_resident_bytes(void)
{
    uint64_t resident = atomic_load(&placeless_bytes);
    for (size_t i = 0; i < PLACES; i++) {
        uintptr_t start = atomic_load(&places[i].start);
        size_t bytes = atomic_load(&places[i].bytes);
        if (start != 0 && bytes != 0)
            resident += bytes - tlmi_system_absent_bytes(start, bytes);
    }
    return resident;
}

void tlm_own_fail_after(uint64_t n)
{
    atomic_store(&fail_countdown, n);
}

/* Low numbers are the program's, and many a program closes those below 256; far higher ones cost the kernel memory. Where
 * the program may have fewer than MODEST, each of ours would be one that it misses: numbers above its limit are best. */
enum { LEAST_NUMBER = 1000, NUMBERS_KEPT = 16, MODEST = 8192 };

/* Makes room above the program's limit; the caller puts the limit back. Where it may not be raised, the program goes without
 * the numbers. */
static bool raise_limit(const struct rlimit *before)
{
    struct rlimit raised = *before;
    raised.rlim_cur = before->rlim_cur < LEAST_NUMBER ? LEAST_NUMBER + NUMBERS_KEPT : before->rlim_cur + NUMBERS_KEPT;
    if (raised.rlim_cur > raised.rlim_max)
        raised.rlim_cur = before->rlim_cur + NUMBERS_KEPT;
    if (raised.rlim_cur > raised.rlim_max)
        raised.rlim_max = raised.rlim_cur; /* only the superuser may */
    return setrlimit(RLIMIT_NOFILE, &raised) == 0;
}

static void keep(tlmi_own_file *file, int fd, bool out_of_reach)
{
    *file = (tlmi_own_file){.fd = fd};
    if (fd < 0)
        return;
    struct rlimit limit;
    long least = LEAST_NUMBER;
    bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    bool raised = known && out_of_reach && limit.rlim_cur <= MODEST && raise_limit(&limit);
    if (raised)
        least = limit.rlim_cur < LEAST_NUMBER ? LEAST_NUMBER : (long)limit.rlim_cur;
    else if (known && limit.rlim_cur < LEAST_NUMBER + NUMBERS_KEPT)
        least = (long)limit.rlim_cur - NUMBERS_KEPT;
    int high = least > fd ? fcntl(fd, F_DUPFD_CLOEXEC, (int)least) : -1;
    if (high < 0 && raised && (long)limit.rlim_cur > fd)
        high = fcntl(fd, F_DUPFD_CLOEXEC, (int)limit.rlim_cur);
    if (raised)
        setrlimit(RLIMIT_NOFILE, &limit);
    if (high >= 0) {
        close(fd);
        file->fd = high;
    }
    struct stat now;
    if (fstat(file->fd, &now) == 0) {
        file->device = (uint64_t)now.st_dev;
        file->inode = (uint64_t)now.st_ino;
    }
}

void tlmi_own_file_keep(tlmi_own_file *file, int fd)
{
    keep(file, fd, false);
}

void tlmi_own_file_keep_out_of_reach(tlmi_own_file *file, int fd)
{
    keep(file, fd, true);
}

bool tlmi_own_file_is_in_the_way(const tlmi_own_file *file)
{
    struct rlimit limit;
    return file->fd >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < LEAST_NUMBER &&
           (rlim_t)file->fd < limit.rlim_cur;
}

bool tlmi_own_file_look(const tlmi_own_file *file, uint64_t *bytes, uint64_t *names)
{
    struct stat now;
    if (file->fd < 0 || fstat(file->fd, &now) != 0 || (uint64_t)now.st_dev != file->device ||
        (uint64_t)now.st_ino != file->inode)
        return false;
    *bytes = (uint64_t)now.st_size;
    *names = (uint64_t)now.st_nlink;
    return true;
}

bool tlmi_own_file_is_ours(const tlmi_own_file *file)
{
    uint64_t bytes, names;
    if (tlmi_own_table_here()) /* the program can neither see nor close its files */
        return file->fd >= 0;
    return tlmi_own_file_look(file, &bytes, &names);
}

void tlmi_own_file_close(tlmi_own_file *file)
{
    if (tlmi_own_file_is_ours(file))
        close(file->fd);
    file->fd = -1;
}

static pthread_t thread_apart;
static _Atomic bool is_apart; /* whether there is one */

bool tlmi_own_table_begin(void)
{
    if (!tlmi_system_part_files())
        return false;
    thread_apart = pthread_self();
    atomic_store_explicit(&is_apart, true, memory_order_release);
    return true;
}

void tlmi_own_table_end(void)
{
    if (tlmi_own_table_here())
        atomic_store(&is_apart, false);
}

bool tlmi_own_table_here(void)
{
    return atomic_load_explicit(&is_apart, memory_order_acquire) && pthread_equal(thread_apart, pthread_self());
}
