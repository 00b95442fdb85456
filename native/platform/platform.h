/* SPDX-License-Identifier: MIT
 * platform.h: the ground that every file stands on: time, our own memory, locks, and what differs between systems.
 *
 * Prototypes stand under the file that defines them. Nothing here knows of events, recordings or objects. Beside it:
 * address_map.h, rss.h and mappings.h, simd.h.
 */
#ifndef TLMI_PLATFORM_H
#define TLMI_PLATFORM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "tlmem.h"

#define tlmi_likely(x) __builtin_expect(!!(x), 1)
#define tlmi_unlikely(x) __builtin_expect(!!(x), 0)

/* The extension module sees these names too; tlmem.h has what the world sees. */
#pragma GCC visibility push(default)
/* ---- clock.c: the one place that knows what time is ---- */
#if defined(__x86_64__)
static inline uint64_t tlmi_cycle_counter(void)
{
    uint32_t lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return ((uint64_t)hi << 32) | lo;
}
#elif defined(__aarch64__)
static inline uint64_t tlmi_cycle_counter(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#endif
extern bool tlmi_clock_is_counter;    /* the CPU counter is constant and may be used; set once by tlmi_clock_init */
uint64_t tlmi_clock_ns(void);         /* CLOCK_MONOTONIC */
uint64_t tlmi_clock_thread_ns(void);  /* CPU time of the calling thread */
uint64_t tlmi_clock_process_ns(void); /* CPU time of all threads of the process together */
void tlmi_clock_init(void);
#define TLMI_ROUGH_NS UINT64_C(50000)
uint64_t tlmi_clock_rough_ticks(void); /* about so many pass in that time */
uint32_t tlmi_clock_shift(void);       /* lowest bits of ticks that are dropped on disk */
static inline uint64_t tlmi_clock_ticks(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    if (tlmi_likely(tlmi_clock_is_counter))
        return tlmi_cycle_counter();
#endif
    return tlmi_clock_ns();
}

/* What the clock says from here on is later than all that this thread has seen so far; without it the counter may be read before
 * a lock is taken, since processors read ahead. Costs some 15 ns. */
static inline void tlmi_clock_order(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* ---- own_memory.c: our own bookkeeping memory: mapped, zeroed, counted, never from malloc; can be made to fail ---- */
void *tlmi_own_alloc(size_t bytes);            /* NULL on failure; page aligned, rounded up to pages */
void tlmi_own_free(void *start, size_t bytes); /* the same size as asked for; NULL is fine */
uint64_t tlmi_own_current_bytes(void);
uint64_t tlmi_own_resident_bytes(void); /* of these, what was ever touched; asks the kernel about every page */
/* A file of ours that is kept open. Its number is a high one, so that the program's files have the numbers they would have
 * without us; and since programs close numbers that they did not open, it is looked at before each use. */
typedef struct {
    int fd; /* -1: none */
    uint64_t device;
    uint64_t inode;
} tlmi_own_file;
void tlmi_own_file_keep(tlmi_own_file *file, int fd); /* takes an open file over; -1 for none */
/* The same, if possible under a number above the program's limit. It raises the limit for a moment: only at a start. */
void tlmi_own_file_keep_out_of_reach(tlmi_own_file *file, int fd);
bool tlmi_own_file_is_in_the_way(const tlmi_own_file *file); /* the program has few numbers, and this is one of them */
bool tlmi_own_file_is_ours(const tlmi_own_file *file);       /* false: none, or its number is another file's by now */
/* Its length, and how many names it has. false: it is not ours. */
bool tlmi_own_file_look(const tlmi_own_file *file, uint64_t *bytes, uint64_t *names);
void tlmi_own_file_close(tlmi_own_file *file); /* unless it is another's by now */
/* Gives the calling thread an empty table of open files, apart from the one that the program's threads share: the program
 * neither sees nor closes what is opened here, and closing it gives up none of its record locks. What is open in one table
 * is not in the other. One thread at a time, until it ends; false: not on this system, all threads go on sharing. */
bool tlmi_own_table_begin(void);
void tlmi_own_table_end(void);  /* just before the thread ends, which closes its files */
bool tlmi_own_table_here(void); /* whether the calling thread is the one with a table of its own */

/* ---- system.c: what Linux and macOS do in different ways ---- */
/* Pages in [start, start + bytes) that are not resident, in bytes; 0 for memory that is gone. Both are multiples of a page. */
uint64_t tlmi_system_absent_bytes(uintptr_t start, uint64_t bytes);
/* Copies memory of this process that may not be there. false: it is not, or this system cannot tell. */
bool tlmi_system_copy(const void *from, void *to, size_t bytes);
bool tlmi_system_part_files(
    void); /* the calling thread no longer shares open files and has none; false: not possible here */
/* The file that the main thread has under a number, open in the calling thread's table too; -1: none, or not possible here. It
 * needs no path, so it works where the program has another root or no /proc. */
int tlmi_system_borrow_file(int number);
uint64_t tlmi_system_thread_id(void); /* as the system numbers threads */
/* Waits until the system no longer counts a thread that was joined: that comes a little later. 20 ms at most. */
void tlmi_system_thread_gone(uint64_t id);
#pragma GCC visibility pop

#pragma GCC visibility push(hidden)
bool tlmi_system_is_main_thread(void);
/* A condition whose deadlines are those of tlmi_clock_ns. */
void tlmi_system_condition_init(pthread_cond_t *condition);
void tlmi_system_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline_ns);
/* Reserves [from, from + bytes) on disk and extends a file that ends at `from` over it. 0, or errno: it ends there still. */
int tlmi_system_extend_file(int fd, uint64_t from, uint64_t bytes);
bool tlmi_system_may_write(uint64_t end); /* false: a file may not be so long, and to try would raise SIGXFSZ */
/* The contents of private memory from byte `kept` on are not needed any more: zeros, or anything, and whole pages stop being
 * resident where the system can do that. */
void tlmi_system_drop_pages(void *memory, uint64_t bytes, uint64_t kept);
/* "read", "written", or "used" where that is not known; of the context that a handler of SIGSEGV gets. */
const char *tlmi_system_kind_of_touch(const void *context);
/* ---- faults.c: SIGSEGV and SIGBUS at addresses of ours ---- */
/* Is asked in the thread that has faulted, within the handler, with what the handler got: it locks and allocates nothing, and
 * keeps errno. true: other memory is there by now, the instruction may run again. came_back: the program's handler has had
 * this fault already. */
typedef bool (*tlmi_fault_watcher)(uintptr_t address, const void *context, bool came_back);
typedef enum { TLMI_FAULTS_OF_MEMORY, TLMI_FAULTS_OF_FILES } tlmi_fault_signals; /* both signals, or SIGBUS alone */
/* Puts our handlers before those in force; again when the program has set its own meanwhile. */
void tlmi_faults_watch(tlmi_fault_signals which, tlmi_fault_watcher watcher);
void tlmi_faults_forget(tlmi_fault_watcher watcher); /* the last one to go takes our handlers away */
/* For a thread that blocks all signals: lets faults of files in while it touches one. */
void tlmi_faults_let_in(bool in);
/* ---- spin.c ---- */
typedef struct {
    _Atomic uint32_t word; /* odd: held, by a thread of this fork epoch; even: free, and the mark of who held it last */
} tlmi_spin;
extern _Atomic uint32_t tlmi_fork_epoch; /* odd; another in every forked child */
/* Even. What a thread leaves in the locks that it held: unique in the process from its first event on (segment.c), before that 0. */
extern __thread uint32_t tlmi_thread_mark;
void tlmi_spin_wait(tlmi_spin *lock); /* takes a lock that is not free, or that another thread held last */
/* Whoever takes a lock behind another thread waits for the clock (tlmi_clock_order), so that the events of both are in order;
 * behind itself there is nothing to order, and nothing to pay. */
static inline void tlmi_spin_lock(tlmi_spin *lock)
{
    uint32_t mine = tlmi_thread_mark;
    uint32_t epoch = atomic_load_explicit(&tlmi_fork_epoch, memory_order_relaxed);
    if (tlmi_unlikely(!atomic_compare_exchange_strong_explicit(&lock->word, &mine, epoch, memory_order_acquire,
                                                               memory_order_relaxed)))
        tlmi_spin_wait(lock);
}
static inline void tlmi_spin_unlock(tlmi_spin *lock)
{
    atomic_store_explicit(&lock->word, tlmi_thread_mark, memory_order_release);
}
static inline bool tlmi_spin_is_held(const tlmi_spin *lock)
{
    return atomic_load_explicit(&lock->word, memory_order_relaxed) & 1;
}

/* ---- slab.c: small blocks for bookkeeping, from own_memory.c. Thread-safe ---- */
void *tlmi_slab_alloc(size_t bytes); /* zeroed; NULL: no memory */
void tlmi_slab_free(void *block, size_t bytes);

/* ---- checksum.c ---- */
void tlmi_checksum_init(void);
uint32_t tlmi_checksum(const void *start, size_t bytes);

/* ---- deflate.c: columns to zlib streams and back; without zlib, which reads them, columns stay plain ---- */
/* What to look for: whatever repeats, runs of one byte, or nothing, as in noise. */
typedef enum { TLMI_DEFLATE_MATCHES, TLMI_DEFLATE_RUNS, TLMI_DEFLATE_LITERALS } tlmi_deflate_mode;
bool tlmi_deflate_open(void); /* false: no zlib here, or no memory; tlmi_deflate then returns 0 */
void tlmi_deflate_close(void);
/* Bytes written, or 0 when it would not get smaller or needs more than `room`, which has eight bytes more than the result. One
 * call at a time (recording.work). */
uint32_t tlmi_deflate(tlmi_deflate_mode mode, const uint8_t *from, uint32_t bytes, uint8_t *to, uint32_t room);
bool tlmi_inflate(const uint8_t *from, uint32_t bytes, uint8_t *to, uint32_t expected);

/* ---- matches.c: what repeats ---- */
/* Bytes that stand for themselves, then as many as `length`, which stand `distance` before, too. */
typedef struct {
    uint32_t literals;
    uint16_t length, distance;
} tlmi_match;
typedef struct tlmi_matcher tlmi_matcher; /* all zero at first; one call at a time */
size_t tlmi_matcher_bytes(void);
/* How many matches were found, at most `room`; what follows the last one stands for itself. */
uint32_t tlmi_matches_find(tlmi_matcher *matcher, const uint8_t *from, uint32_t bytes, tlmi_match *found,
                           uint32_t room);
uint32_t tlmi_runs_find(const uint8_t *from, uint32_t bytes, tlmi_match *found, uint32_t room);

/* ---- huffman.c: bytes and matches in the format of zlib ---- */
/* As tlmi_deflate, but thread-safe. */
uint32_t tlmi_huffman(const uint8_t *from, uint32_t bytes, const tlmi_match *matches, uint32_t count, uint8_t *to,
                      uint32_t room);

/* ---- failure.c: what tlm_failure_last reports, of the calling thread ---- */
void tlmi_failure_keep(const tlm_failure *failure);
/* Keeps a failure that is about no object; returns the status. */
tlm_status tlmi_fail_bytes(tlm_status status, uint64_t bytes, uint64_t detail);
#pragma GCC visibility pop
#endif
