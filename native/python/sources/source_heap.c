/* SPDX-License-Identifier: MIT
 * source_heap.c: samples blocks of the C allocator and of Python's heap that no other source records.
 *
 * What libraries call through slots (platform/linkage.h) comes here: malloc and its kin, and mappings of anonymous memory.
 * Python's own library keeps its slots, as its blocks come through its allocator domains (source_pyheap.c, source_objects.c),
 * and so do ours.
 *
 * Every byte is chosen with the same small chance, one in `rate` bytes, and a block with a chosen byte is a sample. So a block
 * of n bytes is one with the chance 1 - exp(-n / rate), whatever was allocated before it, and whoever reads the recording
 * divides by that. A thread counts down the bytes to its next chosen one: an allocation costs a subtraction, a free a look at
 * one byte, how many samples begin in its span of addresses. Samples are kept in a map until they are freed; a free has no stack.
 *
 * Blocks of arrays and tensors are counted down too, but other sources record them. The chance of all others stays the same.
 * Order: as for every source, a free is recorded before the block goes, an allocation after it came. Nothing here allocates.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <Python.h>

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "platform/address_map.h"
#include "platform/linkage.h"
#include "python/sources/sources.h"
#include "python/stack/pystack.h"

enum { WHILE_OFF_BYTES = 1 << 16, MOST_WAITS = 20 /* ms */ };
#define MOST_BYTES ((size_t)1 << 62) /* larger blocks are only asked for */

__thread uint64_t tlmi_heap_left;
_Atomic uint8_t tlmi_heap_spans[TLMI_HEAP_SPANS]; /* a full one stays */
static __thread uint32_t own_epoch;               /* of this thread's counts */
static __thread uint64_t own_random;
static __thread bool is_busy; /* what is allocated while a sample is recorded is ours */
static __thread struct {
    void *block; /* NULL: none */
    uint64_t heap_left, objects_left;
} frameless; /* a sample whose site is not known yet, and the counts of this thread but for what it counted since */

static _Atomic uint32_t epoch = 1; /* changes when sampling begins and ends */
static _Atomic uint64_t rate;      /* mean bytes between chosen ones; 0: off */
static _Atomic uint64_t seed;
static _Atomic uint64_t started_threads;
static tlmi_map samples = TLMI_MAP_EMPTY; /* address -> bytes */
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static bool is_installed;   /* under it, as the slots */
static const char *objects; /* how Python's small ones are seen */

/* ---- chance ---- */

/* xorshift64*, of Vigna, "An experimental exploration of Marsaglia's xorshift generators" (2016). */
static double random_fraction(void)
{
    own_random ^= own_random >> 12;
    own_random ^= own_random << 25;
    own_random ^= own_random >> 27;
    return ((double)((own_random * 0x2545F4914F6CDD1DULL) >> 11) + 0.5) / 9007199254740992.0;
}

static int64_t distance(uint64_t mean)
{
    return mean == 1 ? 0 : 1 + (int64_t)(-log(random_fraction()) * (double)mean);
}

/* Begins to count anew when sampling has begun or ended since. */
static void begin_counts(uint32_t now, uint64_t mean)
{
    uint64_t base = atomic_load_explicit(&seed, memory_order_relaxed);
    own_epoch = now;
    own_random = (base + 1 + atomic_fetch_add(&started_threads, 1)) * 0x9E3779B97F4A7C15ULL | 1;
    random_fraction();
    tlmi_heap_left = mean != 0 ? (uint64_t)distance(mean) : WHILE_OFF_BYTES;
    tlmi_objects_left = mean != 0 ? (uint64_t)distance(mean) : WHILE_OFF_BYTES;
}

/* It begins anew, at a place with a site. */
static void place_frameless(void)
{
    void *block = frameless.block;
    frameless.block = NULL;
    tlmi_heap_left += frameless.heap_left;
    tlmi_objects_left += frameless.objects_left;
    tlmi_heap_restore(block, tlmi_heap_gone(block), TLMI_HEAP_ARENA);
}

bool tlmi_heap_choose(uint64_t *left, size_t bytes)
{
    if (bytes > MOST_BYTES) { /* it will not come */
        *left += bytes;
        return false;
    }
    if (frameless.block != NULL)
        place_frameless();
    uint64_t mean = atomic_load_explicit(&rate, memory_order_relaxed);
    uint32_t now = atomic_load_explicit(&epoch, memory_order_acquire);
    if (own_epoch != now || mean == 0) {
        begin_counts(now, mean);
        if (mean == 0)
            return false;
        *left -= bytes;
    }
    if ((int64_t)*left >= 0)
        return false;
    int64_t next = (int64_t)*left;
    if (next <= -(int64_t)mean)
        next %= (int64_t)mean; /* the distances between the bytes of one block do not matter */
    while (next < 0)
        next += distance(mean);
    *left = (uint64_t)next;
    return !is_busy && !tlmi_pyheap_is_array && bytes != 0 && tlmi_probe_on();
}

/* ---- samples ---- */

/* A count, no bit that stays: blocks that share their span with a sample that is gone are freed as fast as others. The count changes
 * by one, unless it is at its end there. */
static void change_count(uintptr_t block, int change, uint8_t end)
{
    _Atomic uint8_t *count = &tlmi_heap_spans[tlmi_heap_span(block)];
    uint8_t now = atomic_load_explicit(count, memory_order_relaxed);
    while (now != UINT8_MAX && now != end &&
           !atomic_compare_exchange_weak_explicit(count, &now, (uint8_t)(now + change), memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

static void add_to_span(uintptr_t block)
{
    change_count(block, 1, UINT8_MAX);
}

static void take_from_span(uintptr_t block)
{
    change_count(block, -1, 0);
}

static uint64_t take_sample(void *block)
{
    uint64_t bytes = tlmi_map_take(&samples, (uintptr_t)block);
    if (bytes != 0)
        take_from_span((uintptr_t)block);
    return bytes;
}

bool tlmi_heap_has(const void *block)
{
    return tlmi_heap_may_have(block) && tlmi_map_find(&samples, (uintptr_t)block) != 0;
}

void tlmi_heap_record(void *block, size_t bytes, tlmi_heap_owner owner)
{
    if (is_busy || block == NULL)
        return;
    int error = errno;
    is_busy = true;
    if (tlmi_heap_may_have(block) && take_sample(block) != 0) /* its free was not seen */
        tlmi_event_append(TLM_KIND_FREE, TLM_DEVICE_HEAP, (uintptr_t)block, 0, 0, 0);
    is_busy = false;
    tlmi_heap_restore(block, bytes, owner);
    errno = error;
}

void tlmi_heap_sample(void *block, size_t bytes, tlmi_heap_owner owner)
{
    if (tlmi_heap_choose(&tlmi_heap_left, bytes))
        tlmi_heap_record(block, bytes, owner);
}

/* Its size; 0 if the block was not sampled. */
uint64_t tlmi_heap_end(void *block)
{
    if (is_busy)
        return 0;
    is_busy = true;
    uint64_t bytes = take_sample(block);
    if (bytes != 0 && tlmi_probe_on())
        tlmi_event_append(TLM_KIND_FREE, TLM_DEVICE_HEAP, (uintptr_t)block, 0, 0, 0);
    is_busy = false;
    return bytes;
}

void tlmi_heap_restore(void *block, uint64_t bytes, tlmi_heap_owner owner)
{
    if (bytes == 0 || is_busy || !tlmi_probe_on())
        return;
    is_busy = true;
    if (tlmi_map_put(&samples, (uintptr_t)block, bytes)) {
        add_to_span((uintptr_t)block);
        tlmi_event_append(TLM_KIND_ALLOC, TLM_DEVICE_HEAP, (uintptr_t)block, bytes, tlmi_pystack_site(),
                          (uint16_t)owner);
    }
    is_busy = false;
}

/* The next allocation is due, whatever its size. */
void tlmi_heap_await_frame(void *block)
{
    if (!tlmi_heap_has(block) || frameless.block != NULL || tlmi_pystack_site() != 0)
        return;
    frameless.block = block;
    frameless.heap_left = tlmi_heap_left;
    frameless.objects_left = tlmi_objects_left;
    tlmi_heap_left = tlmi_objects_left = 0;
}

/* ---- what libraries call ---- */

static void *sampled_malloc(size_t bytes);
static void *sampled_calloc(size_t count, size_t bytes);
static void *sampled_realloc(void *block, size_t bytes);
static void sampled_free(void *block);
static int sampled_posix_memalign(void **block, size_t alignment, size_t bytes);
static void *sampled_aligned_alloc(size_t alignment, size_t bytes);
static void *sampled_memalign(size_t alignment, size_t bytes);
static void *sampled_mmap(void *address, size_t bytes, int rights, int flags, int file, off_t offset);
static int sampled_munmap(void *address, size_t bytes);
static void *watched_dlsym(void *library, const char *name);

enum {
    MALLOC,
    CALLOC,
    REALLOC,
    FREE,
    POSIX_MEMALIGN,
    ALIGNED_ALLOC,
    MEMALIGN,
    MMAP,
    MMAP64,
    MUNMAP,
    SAMPLED_COUNT,
    DLSYM = SAMPLED_COUNT,
    SLOT_COUNT
};
#define SLOT(name, function) {.symbol = name, .ours = (void *)(function), .pointers = true}
static tlmi_slot slots[SLOT_COUNT] = {
    [MALLOC] = SLOT("malloc", sampled_malloc),
    [CALLOC] = SLOT("calloc", sampled_calloc),
    [REALLOC] = SLOT("realloc", sampled_realloc),
    [FREE] = SLOT("free", sampled_free),
    /* In libc10 it is PyTorch's tensors. */
    [POSIX_MEMALIGN] = {.symbol = "posix_memalign", .ours = (void *)sampled_posix_memalign, .omit = "libc10.so"},
    [ALIGNED_ALLOC] = SLOT("aligned_alloc", sampled_aligned_alloc),
    [MEMALIGN] = SLOT("memalign", sampled_memalign),
    [MMAP] = SLOT("mmap", sampled_mmap),
    [MMAP64] = SLOT("mmap64", sampled_mmap),
    [MUNMAP] = SLOT("munmap", sampled_munmap),
    [DLSYM] = {.symbol = "dlsym", .ours = (void *)watched_dlsym, .everywhere = true},
};
static tlmi_slots group = {.slots = slots, .count = SLOT_COUNT}; /* under `installing` */
static void *(*original_malloc)(size_t);
static void *(*original_calloc)(size_t, size_t);
static void *(*original_realloc)(void *, size_t);
static void (*original_free)(void *);
static int (*original_posix_memalign)(void **, size_t, size_t);
static void *(*original_aligned_alloc)(size_t, size_t);
static void *(*original_memalign)(size_t, size_t);
static void *(*original_mmap)(void *, size_t, int, int, int, off_t);
static int (*original_munmap)(void *, size_t);
static void *(*original_dlsym)(void *, const char *);

/* What is not due is a jump. The rest is apart, else the compiler saves registers for it on the fast way. */
#define APART __attribute__((noinline, cold))
/* Each lies in one line of the cache; over the border of two a call takes a cycle more. */
#define IN_ONE_LINE __attribute__((aligned(64)))

static APART void *malloc_due(size_t bytes)
{
    void *block = original_malloc(bytes);
    tlmi_heap_sample(block, bytes, TLMI_HEAP_NATIVE);
    return block;
}

static APART void *calloc_due(size_t count, size_t bytes)
{
    void *block = original_calloc(count, bytes);
    tlmi_heap_sample(block, count * bytes, TLMI_HEAP_NATIVE);
    return block;
}

static APART void *realloc_due(void *block, size_t bytes, bool due)
{
    uint64_t former = tlmi_heap_gone(block);
    void *moved = original_realloc(block, bytes);
    if (due)
        tlmi_heap_sample(moved, bytes, former != 0 ? TLMI_HEAP_NATIVE | TLMI_HEAP_RESIZED : TLMI_HEAP_NATIVE);
    if (moved == NULL && bytes != 0)
        tlmi_heap_restore(block, former, TLMI_HEAP_NATIVE);
    return moved;
}

/* Mostly a neighbour is the sample. */
static APART void free_due(void *block)
{
    tlmi_heap_end(block);
    original_free(block);
}

static IN_ONE_LINE void *sampled_malloc(size_t bytes)
{
    return tlmi_heap_is_due(bytes) ? malloc_due(bytes) : original_malloc(bytes);
}

static IN_ONE_LINE void *sampled_calloc(size_t count, size_t bytes)
{
    return tlmi_heap_is_due(count * bytes) ? calloc_due(count, bytes) : original_calloc(count, bytes);
}

static IN_ONE_LINE void *sampled_realloc(void *block, size_t bytes)
{
    bool due = tlmi_heap_is_due(bytes);
    return due || tlmi_heap_may_have(block) ? realloc_due(block, bytes, due) : original_realloc(block, bytes);
}

static IN_ONE_LINE void sampled_free(void *block)
{
    if (tlmi_heap_may_have(block))
        free_due(block);
    else
        original_free(block);
}

static int sampled_posix_memalign(void **block, size_t alignment, size_t bytes)
{
    int error = original_posix_memalign(block, alignment, bytes);
    if (error == 0)
        tlmi_heap_meet(*block, bytes, TLMI_HEAP_NATIVE);
    return error;
}

static void *sampled_aligned_alloc(size_t alignment, size_t bytes)
{
    void *block = original_aligned_alloc(alignment, bytes);
    tlmi_heap_meet(block, bytes, TLMI_HEAP_NATIVE);
    return block;
}

static void *sampled_memalign(size_t alignment, size_t bytes)
{
    void *block = original_memalign(alignment, bytes);
    tlmi_heap_meet(block, bytes, TLMI_HEAP_NATIVE);
    return block;
}

/* Memory that may be written and is not only reserved. What allocators of libraries take at once and hand out piece by piece is
 * at the line that took it. */
static void *sampled_mmap(void *address, size_t bytes, int rights, int flags, int file, off_t offset)
{
    void *block = original_mmap(address, bytes, rights, flags, file, offset);
    if (block != MAP_FAILED && flags & MAP_ANONYMOUS && rights & PROT_WRITE && !(flags & (MAP_NORESERVE | MAP_SHARED)))
        tlmi_heap_meet(block, bytes, TLMI_HEAP_MAPPING);
    return block;
}

/* A sample ends when its first page does. */
static int sampled_munmap(void *address, size_t bytes)
{
    uint64_t former = tlmi_heap_gone(address);
    int error = original_munmap(address, bytes);
    if (error != 0)
        tlmi_heap_restore(address, former, TLMI_HEAP_MAPPING);
    return error;
}

/* Waits for a look that another thread has begun, since that may have come too early; not for ever: who holds the lock may want
 * one of the linker's, which the caller has while a library's constructors run. */
static void look_at_once(void)
{
    for (int waits = 0; pthread_mutex_trylock(&installing) != 0; waits++) {
        if (waits == MOST_WAITS)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (is_installed)
        tlmi_slots_point_loaded(&group);
    pthread_mutex_unlock(&installing);
}

/* Whoever loads a library, ctypes and Python's import among them, looks up a function of it before it calls one: the moment to
 * point its slots. Who looks up malloc gets the sampled one, so that a block is not freed unseen. Anything else is a jump, since
 * the linker answers by who asks (RTLD_NEXT). */
static void *watched_dlsym(void *library, const char *name)
{
    look_at_once();
    const tlmi_slot *slot = slots;
    while (slot < slots + SAMPLED_COUNT && (strcmp(slot->symbol, name) != 0 || library == RTLD_NEXT))
        slot++;
    if (slot == slots + SAMPLED_COUNT)
        return original_dlsym(library, name);
    void *found = original_dlsym(library, name);
    return found != NULL && (found == slot->theirs || found == slot->alias) ? slot->ours : found;
}

/* ---- install, uninstall ---- */

static void find_originals(void)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        tlmi_slots_first(&slots[i]);
    original_malloc = (void *(*)(size_t))slots[MALLOC].theirs;
    original_calloc = (void *(*)(size_t, size_t))slots[CALLOC].theirs;
    original_realloc = (void *(*)(void *, size_t))slots[REALLOC].theirs;
    original_free = (void (*)(void *))slots[FREE].theirs;
    original_posix_memalign = (int (*)(void **, size_t, size_t))slots[POSIX_MEMALIGN].theirs;
    original_aligned_alloc = (void *(*)(size_t, size_t))slots[ALIGNED_ALLOC].theirs;
    original_memalign = (void *(*)(size_t, size_t))slots[MEMALIGN].theirs;
    original_mmap = (void *(*)(void *, size_t, int, int, int, off_t))slots[MMAP].theirs;
    original_munmap = (int (*)(void *, size_t))slots[MUNMAP].theirs;
    original_dlsym = (void *(*)(void *, const char *))slots[DLSYM].theirs;
}

static void forget_all(void)
{
    enum { TOGETHER = 64 };
    uintptr_t blocks[TOGETHER];
    uint64_t bytes[TOGETHER];
    uint32_t cursor = 0;
    atomic_fetch_add(&epoch, 1);
    /* Span by span would be a look at all of them. One that still has a count only makes frees of its blocks slower. */
    for (size_t count; (count = tlmi_map_copy(&samples, &cursor, TOGETHER, blocks, bytes)) > 0;)
        for (size_t i = 0; i < count; i++)
            atomic_store_explicit(&tlmi_heap_spans[tlmi_heap_span(blocks[i])], 0, memory_order_relaxed);
    tlmi_map_clear(&samples);
}

/* What a child frees was recorded by its parent. */
static void begin_in_child(void)
{
    pthread_mutex_init(&installing, NULL);
    tlmi_map_after_fork(&samples);
    forget_all();
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, begin_in_child);
}

static void write_notes(uint64_t mean)
{
    char text[100];
    snprintf(text, sizeof text, "%llu", (unsigned long long)mean);
    tlmi_meta_note("heap.rate", text);
    if (slots[MALLOC].count != 0)
        snprintf(text, sizeof text, "slots (%u of malloc, %u of free)", slots[MALLOC].count, slots[FREE].count);
    else
        snprintf(text, sizeof text, "none (no library calls malloc through a slot)");
    tlmi_meta_note("heap.hook", text);
    tlmi_meta_note("heap.python", objects);
}

tlm_status tlm_heap_install(uint64_t mean_bytes, uint64_t first_seed)
{
    static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;
    if (mean_bytes == 0 || mean_bytes > INT64_MAX / 64)
        return TLM_BAD_ARGUMENT;
    pthread_once(&fork_handler_once, install_fork_handler);
    PyGILState_STATE state = PyGILState_Ensure(); /* for Python's domains; never waited for under the lock */
    pthread_mutex_lock(&installing);
    tlm_status status = is_installed ? TLM_ALREADY_RUNNING : TLM_OK;
    if (!is_installed) {
        find_originals();
        tlmi_slots_spare((const void *)(uintptr_t)&PyMem_RawMalloc);
        tlmi_slots_spare((const void *)(uintptr_t)&tlm_heap_install);
        tlmi_slots_spare((const void *)(uintptr_t)&tlmi_map_put);
        forget_all();
        atomic_store(&seed, first_seed ? first_seed : tlmi_clock_ns());
        atomic_store(&started_threads, 0);
        atomic_store(&rate, mean_bytes);
        objects = tlmi_objects_install(mean_bytes);
        tlmi_heap_left = tlmi_objects_left = 0; /* other threads notice within WHILE_OFF_BYTES */
        tlmi_slots_point(&group);
        is_installed = true;
    }
    write_notes(atomic_load(&rate)); /* a forked child goes on sampling, and has a recording of its own */
    pthread_mutex_unlock(&installing);
    PyGILState_Release(state);
    return status;
}

tlm_status tlm_heap_uninstall(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    pthread_mutex_lock(&installing);
    tlm_status status = is_installed ? TLM_OK : TLM_NOT_RUNNING;
    if (is_installed) {
        tlmi_slots_restore(&group);
        tlmi_objects_uninstall();
        atomic_store(&rate, 0);
        forget_all();
        is_installed = false;
    }
    pthread_mutex_unlock(&installing);
    PyGILState_Release(state);
    return status;
}

void tlmi_heap_look_again(void)
{
    if (pthread_mutex_trylock(&installing) != 0)
        return; /* another time */
    if (is_installed)
        tlmi_slots_point_loaded(&group);
    pthread_mutex_unlock(&installing);
}
