/* SPDX-License-Identifier: MIT
 * player.c: allocates, resizes and frees what a trace says, by the malloc of this process, and reports resident memory.
 *
 * What it needs for itself never comes from malloc: the table of blocks and the threads are shared mappings, which the kernel
 * counts apart from the heap. The thread that reads the trace is the program's first one; for every other thread of the trace
 * there is one here, which runs its events while the reader waits: one event at a time, in the order of the trace, each in
 * its own thread. So nothing is locked.
 *
 * Standard input: the 8 letters TLMPLAY1, the number of blocks and of events as u64, then so many events of 16 bytes:
 * u64 bytes, u32 block, u16 thread (0 is the first), u8 kind, u8 flags. All little-endian.
 *   1 ALLOC    a new block; flags: 1 aligned to 64 bytes, 2 as NumPy does (with a small block for the shape, which it keeps
 *              for later when few are kept; huge pages are advised from 4 MiB on), 4 untouched, 8 with that advice only
 *   2 FREE     the block
 *   3 RESIZE   the block of this event becomes that of the next one, which is of kind 1 and of the same thread
 *   4 POINT    report resident memory now
 *   5 END      the thread ends; a later event of it begins another
 *   6 PAUSE    sleep for `bytes` nanoseconds, at most an hour
 *   7 BEGIN    resident memory counts from here (otherwise from before the first event)
 * Standard output: two u64 for each POINT, the number of events before it and the bytes resident since the begin; at the
 * end two more, of which the first is 2^64 - 1 and the second is the highest of these bytes at any time.
 * Exit: 0 all was replayed; 2 the input is malformed; 3 the allocator has no memory; 4 it is not the allocator that was
 * meant (the one argument names a function that it must have, or is "-"); 5 the system does not answer. A sentence on
 * standard error says which event.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT, MAP_ANONYMOUS */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum kind { ALLOC = 1, FREE, RESIZE, POINT, END, PAUSE, BEGIN };
enum flag { ALIGNED = 1, NUMPY = 2, UNTOUCHED = 4, ADVISED = 8, FLAGS = 15 };
enum { MALFORMED = 2, NO_MEMORY, OTHER_ALLOCATOR, NO_SYSTEM };
enum {
    PAGE = 4096,
    READ_AT_ONCE = 4096,
    MOST_THREADS = 1 << 16,
    STACK_BYTES = 256 << 10,
    SHAPE_BYTES = 16,
    MOST_SHAPES = 7
};
#define MOST_BLOCKS (UINT64_C(1) << 28)
#define LARGEST_BLOCK (UINT64_C(1) << 46)
#define LONGEST_PAUSE_NS UINT64_C(3600000000000)
#define NUMPY_ADVISES (UINT64_C(4) << 20)
#define LAST_ROW UINT64_MAX

typedef struct {
    uint64_t bytes;
    uint32_t block;
    uint16_t thread;
    uint8_t kind;
    uint8_t flags;
} event;

/* `bytes` is 0 while it is not alive; `shape` is NULL where it has none. */
typedef struct {
    void *memory;
    void *shape;
    uint64_t bytes;
} block;

/* `first` to `end` are what it runs next; both NULL: it ends. */
typedef struct {
    pthread_t id;
    sem_t go, done;
    const event *first, *end;
    bool runs;
} worker;

static block *blocks;
static uint64_t block_count, event_count, done_count;
static worker *workers;
static void *shapes[MOST_SHAPES];
static int shape_count;
static event buffer[READ_AT_ONCE];
static const event *resized; /* what the next event goes on with */
static event resized_event;
static int statm = -1, status = -1;
static uint64_t base_anon, base_resident, base_peak, highest;

__attribute__((noreturn)) static void stop(int code, const char *why)
{
    char text[256];
    int length = snprintf(text, sizeof text, "event %llu: %s\n", (unsigned long long)done_count, why);
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        code = NO_SYSTEM;
    _exit(code);
}

static void *shared_memory(uint64_t bytes, int flags)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags, -1, 0);
    if (memory == MAP_FAILED)
        stop(NO_MEMORY, "no memory for the table of blocks");
    return memory;
}

/* ---- resident memory ---- */

static void look(uint64_t *anon, uint64_t *resident)
{
    char text[128];
    ssize_t got = pread(statm, text, sizeof text - 1, 0);
    if (got <= 0)
        stop(NO_SYSTEM, "/proc/self/statm does not answer");
    text[got] = 0;
    char *rest;
    strtoull(text, &rest, 10);
    uint64_t all = strtoull(rest, &rest, 10), shared = strtoull(rest, &rest, 10),
             page = (uint64_t)sysconf(_SC_PAGESIZE);
    *anon = (all > shared ? all - shared : 0) * page;
    *resident = all * page;
}

/* The highest resident memory so far, 0 where that is not known. */
static uint64_t high_water(void)
{
    char text[4096];
    ssize_t got = status < 0 ? -1 : pread(status, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = 0;
    const char *found = strstr(text, "\nVmHWM:");
    return found == NULL ? 0 : strtoull(found + 7, NULL, 10) * 1024;
}

static void open_system(void)
{
    statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
}

static void begin_to_look(void)
{
    int refs = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC); /* 5: the high-water mark begins anew */
    if (refs >= 0 && write(refs, "5", 1) != 1)
        base_peak = 0;
    if (refs >= 0)
        close(refs);
    look(&base_anon, &base_resident);
    base_peak = high_water();
    highest = 0;
}

static void report(uint64_t first, uint64_t second)
{
    uint64_t row[2] = {first, second};
    const char *from = (const char *)row;
    for (size_t left = sizeof row; left > 0;) {
        ssize_t put = write(STDOUT_FILENO, from, left);
        if (put < 0 && errno != EINTR)
            stop(NO_SYSTEM, "the reader of the answers has gone");
        from += put > 0 ? put : 0;
        left -= put > 0 ? (size_t)put : 0;
    }
}

static void report_point(void)
{
    uint64_t anon, resident;
    look(&anon, &resident);
    uint64_t grown = anon > base_anon ? anon - base_anon : 0;
    highest = grown > highest ? grown : highest;
    report(done_count, grown);
}

static void report_peak(void)
{
    uint64_t peak = high_water();
    if (peak > base_peak && peak - base_resident > highest)
        highest = peak - base_resident;
    report(LAST_ROW, highest);
}

/* ---- events ---- */

/* One byte of every page: resident memory is that of a program that writes it whole. */
static void touch(void *memory, uint64_t from, uint64_t bytes)
{
    volatile char *at = memory;
    for (uint64_t place = from; place < bytes;
         place = ((((uintptr_t)memory + place) | (PAGE - 1)) + 1) - (uintptr_t)memory)
        at[place] = 1;
}

/* NumPy asks for huge pages where an array is large; what it asks for begins with the second page. */
static void advise(void *memory, uint64_t bytes)
{
    uint64_t offset = PAGE - (uintptr_t)memory % PAGE;
    madvise((char *)memory + offset, bytes - offset, MADV_HUGEPAGE);
}

/* Extent and stride of one axis. NumPy makes it before the data and drops it after them. */
static void *alloc_shape(void)
{
    return shape_count > 0 ? shapes[--shape_count] : malloc(SHAPE_BYTES);
}

static void free_shape(void *shape)
{
    if (shape != NULL && shape_count < MOST_SHAPES)
        shapes[shape_count++] = shape;
    else
        free(shape);
}

static void run_alloc(const event *one)
{
    block *mine = &blocks[one->block];
    if (mine->bytes != 0)
        stop(MALFORMED, "the block is alive already");
    if (one->bytes == 0 || one->bytes > LARGEST_BLOCK)
        stop(MALFORMED, "no block has that size");
    void *memory = NULL, *shape = NULL;
    uint64_t before = 0;
    if (resized != NULL) {
        block *old = &blocks[resized->block];
        before = old->bytes;
        shape = old->shape;
        memory = realloc(old->memory, one->bytes);
        *old = (block){0};
        resized = NULL;
    } else if ((one->flags & ALIGNED) != 0) {
        if (posix_memalign(&memory, 64, one->bytes) != 0)
            memory = NULL;
    } else {
        if ((one->flags & NUMPY) != 0)
            shape = alloc_shape();
        memory = malloc(one->bytes);
    }
    if (memory == NULL)
        stop(NO_MEMORY, "the allocator has no memory");
    if ((one->flags & (NUMPY | ADVISED)) != 0 && one->bytes >= NUMPY_ADVISES && before == 0)
        advise(memory, one->bytes);
    if ((one->flags & UNTOUCHED) == 0)
        touch(memory, before, one->bytes);
    *mine = (block){memory, shape, one->bytes};
}

static void run_event(const event *one)
{
    if (resized != NULL && (one->kind != ALLOC || one->thread != resized->thread))
        stop(MALFORMED, "a resize without its second half");
    if ((one->kind <= RESIZE) && one->block >= block_count)
        stop(MALFORMED, "there are fewer blocks");
    if ((one->kind == FREE || one->kind == RESIZE) && blocks[one->block].bytes == 0)
        stop(MALFORMED, "the block is not alive");
    switch (one->kind) {
    case ALLOC:
        run_alloc(one);
        break;
    case FREE:
        free(blocks[one->block].memory);
        free_shape(blocks[one->block].shape);
        blocks[one->block] = (block){0};
        break;
    case RESIZE:
        resized_event = *one; /* the buffer is filled anew before the second half may come */
        resized = &resized_event;
        break;
    case POINT:
        report_point();
        break;
    case BEGIN:
        begin_to_look();
        break;
    case PAUSE: {
        struct timespec length = {(time_t)(one->bytes / 1000000000), (long)(one->bytes % 1000000000)};
        nanosleep(&length, NULL);
        break;
    }
    default:
        break;
    }
    done_count++;
}

static void *work(void *of)
{
    worker *me = of;
    for (;;) {
        while (sem_wait(&me->go) != 0)
            continue;
        if (me->first == NULL)
            return NULL;
        for (const event *one = me->first; one < me->end; one++)
            run_event(one);
        sem_post(&me->done);
    }
}

static void start_worker(worker *me)
{
    pthread_attr_t attributes;
    sem_init(&me->go, 0, 0);
    sem_init(&me->done, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&me->id, &attributes, work, me) != 0)
        stop(NO_MEMORY, "the system has no thread left");
    pthread_attr_destroy(&attributes);
    me->runs = true;
}

static void end_worker(worker *me)
{
    if (!me->runs)
        return;
    me->first = me->end = NULL;
    sem_post(&me->go);
    pthread_join(me->id, NULL);
    me->runs = false;
}

/* Events of one thread, none of kind END. */
static void run_in(uint16_t thread, const event *first, const event *end)
{
    if (thread == 0) {
        for (const event *one = first; one < end; one++)
            run_event(one);
        return;
    }
    worker *me = &workers[thread];
    if (!me->runs)
        start_worker(me);
    me->first = first;
    me->end = end;
    sem_post(&me->go);
    while (sem_wait(&me->done) != 0)
        continue;
}

static void check_event(const event *one)
{
    if (one->kind < ALLOC || one->kind > BEGIN || (one->flags & ~FLAGS) != 0)
        stop(MALFORMED, "no such kind or flag");
    if (one->kind == PAUSE && one->bytes > LONGEST_PAUSE_NS)
        stop(MALFORMED, "a pause of more than an hour");
    if (one->kind == END && one->thread == 0)
        stop(MALFORMED, "the first thread does not end");
}

static void run_events(const event *first, const event *end)
{
    while (first < end) {
        const event *next = first;
        check_event(next);
        if (first->kind == END) {
            if (resized != NULL)
                stop(MALFORMED, "a resize without its second half");
            end_worker(&workers[first->thread]);
            done_count++;
            first++;
            continue;
        }
        while (next < end && next->thread == first->thread && next->kind != END)
            check_event(next++);
        run_in(first->thread, first, next);
        first = next;
    }
}

/* ---- input ---- */

static void read_whole(void *into, size_t bytes)
{
    for (char *at = into; bytes > 0;) {
        ssize_t got = read(STDIN_FILENO, at, bytes);
        if (got == 0 || (got < 0 && errno != EINTR))
            stop(MALFORMED, "the input ends before the last event");
        at += got > 0 ? got : 0;
        bytes -= got > 0 ? (size_t)got : 0;
    }
}

static void read_head(void)
{
    struct {
        char magic[8];
        uint64_t blocks, events;
    } head;
    read_whole(&head, sizeof head);
    if (memcmp(head.magic, "TLMPLAY1", 8) != 0)
        stop(MALFORMED, "the input is not a trace for this player");
    if (head.blocks == 0 || head.blocks > MOST_BLOCKS || head.blocks > head.events)
        stop(MALFORMED, "the number of blocks cannot be");
    block_count = head.blocks;
    event_count = head.events;
}

/* Who needs so much memory that the system has none left is this program, not one of its neighbours. */
static void be_the_first_to_go(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    if (write(file, "1000", 4) != 4)
        errno = 0;
    close(file);
}

int main(int count, char **words) /* tlm-lint: ok, a program of its own */
{
    if (count != 2)
        stop(MALFORMED, "usage: tlmem-player FUNCTION|- <TRACE >POINTS");
    if (strcmp(words[1], "-") != 0 && dlsym(RTLD_DEFAULT, words[1]) == NULL)
        stop(OTHER_ALLOCATOR, "the allocator was not loaded");
    be_the_first_to_go();
    read_head();
    blocks = shared_memory(block_count * sizeof *blocks, MAP_POPULATE);
    workers = shared_memory(MOST_THREADS * sizeof *workers, 0);
    open_system();
    begin_to_look();
    for (uint64_t left = event_count; left > 0;) {
        uint64_t now = left < READ_AT_ONCE ? left : READ_AT_ONCE;
        read_whole(buffer, now * sizeof *buffer);
        run_events(buffer, buffer + now);
        left -= now;
    }
    char more;
    if (resized != NULL)
        stop(MALFORMED, "a resize without its second half");
    if (read(STDIN_FILENO, &more, 1) > 0)
        stop(MALFORMED, "the input goes on after the last event");
    report_peak();
    return 0;
}
