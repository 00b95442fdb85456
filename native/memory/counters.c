/* SPDX-License-Identifier: MIT
 * counters.c: the counters behind tlm_runtime_stats.
 *
 * What only ever grows is counted by each thread for itself and summed when asked. Current bytes, and so their peak, are one
 * atomic counter for each device; the sum over devices has one of its own as soon as a second device is used. Allocations
 * and frees are counted apart from it, so that `allocs - frees = live` in bytes is a check and not a definition.
 */
#include "memory/memory.h"

enum { DEVICES = 256 };

typedef struct shard {
    struct shard *next;
    tlmi_counts counts;
    struct {
        int64_t alloc_bytes, alloc_count, free_bytes, free_count;
    } of[DEVICES];
} shard;

static struct {
    _Atomic int64_t bytes, peak_bytes;
} current[DEVICES];                   /* [0]: all devices, once several are used */
static _Atomic uint32_t first_device; /* 0: none used yet */
static _Atomic bool several;

static __thread shard *own;
__thread tlmi_counts *tlmi_own_counts; /* in `own` */
static shard *shards;                  /* of threads that live */
static shard finished;                 /* sums of those that ended */
static tlmi_spin lock;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static __thread bool refused; /* no memory for a shard: this thread counts into `finished`, under the lock */

static void add_shard(shard *to, const shard *from)
{
    tlmi_tally_add(&to->counts.acquires, __atomic_load_n(&from->counts.acquires, __ATOMIC_RELAXED));
    tlmi_tally_add(&to->counts.releases, __atomic_load_n(&from->counts.releases, __ATOMIC_RELAXED));
    tlmi_tally_add(&to->counts.floating, __atomic_load_n(&from->counts.floating, __ATOMIC_RELAXED));
    for (int device = 0; device < DEVICES; device++) {
        tlmi_tally_add(&to->of[device].alloc_bytes, __atomic_load_n(&from->of[device].alloc_bytes, __ATOMIC_RELAXED));
        tlmi_tally_add(&to->of[device].alloc_count, __atomic_load_n(&from->of[device].alloc_count, __ATOMIC_RELAXED));
        tlmi_tally_add(&to->of[device].free_bytes, __atomic_load_n(&from->of[device].free_bytes, __ATOMIC_RELAXED));
        tlmi_tally_add(&to->of[device].free_count, __atomic_load_n(&from->of[device].free_count, __ATOMIC_RELAXED));
    }
}

static void on_thread_exit(void *ended)
{
    tlmi_spin_lock(&lock);
    add_shard(&finished, ended);
    shard **at = &shards;
    while (*at != ended)
        at = &(*at)->next;
    *at = (*at)->next;
    tlmi_spin_unlock(&lock);
    own = NULL;
    tlmi_own_counts = NULL;
    tlmi_own_free(ended, sizeof(shard));
}

static void make_exit_key(void)
{
    pthread_key_create(&exit_key, on_thread_exit);
}

__attribute__((noinline)) static shard *introduce(void)
{
    pthread_once(&exit_once, make_exit_key);
    shard *fresh = refused ? NULL : tlmi_own_alloc(sizeof(shard));
    if (!fresh) {
        refused = true;
        return NULL;
    }
    tlmi_spin_lock(&lock);
    fresh->next = shards;
    shards = fresh;
    tlmi_spin_unlock(&lock);
    pthread_setspecific(exit_key, fresh);
    tlmi_own_counts = &fresh->counts;
    return own = fresh;
}

/* The thread's own counters, or those of ended threads under the lock: then *locked. */
static shard *counters(bool *locked)
{
    shard *mine = own ? own : introduce();
    *locked = mine == NULL;
    if (tlmi_likely(mine != NULL))
        return mine;
    tlmi_spin_lock(&lock);
    return &finished;
}

static void raise_peak(_Atomic int64_t *peak, int64_t value)
{
    int64_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (value > seen &&
           !atomic_compare_exchange_weak_explicit(peak, &seen, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

static void change_current(int device, int64_t bytes)
{
    int64_t now = atomic_fetch_add_explicit(&current[device].bytes, bytes, memory_order_relaxed) + bytes;
    if (bytes > 0)
        raise_peak(&current[device].peak_bytes, now);
}

/* A second device comes into use: from here on the sum is kept, too. */
__attribute__((noinline)) static void begin_sum(uint32_t former)
{
    tlmi_spin_lock(&lock);
    if (!atomic_load(&several)) {
        current[0].bytes = atomic_load(&current[former].bytes);
        current[0].peak_bytes = atomic_load(&current[former].peak_bytes);
        atomic_store(&several, true);
    }
    tlmi_spin_unlock(&lock);
}

static void change(uint8_t device, int64_t bytes)
{
    if (bytes == 0)
        return;
    uint32_t first = atomic_load_explicit(&first_device, memory_order_relaxed);
    if (tlmi_unlikely(first != device) && !atomic_load_explicit(&several, memory_order_relaxed)) {
        if (first == 0 && atomic_compare_exchange_strong(&first_device, &first, device))
            first = device;
        if (first != device)
            begin_sum(first);
    }
    change_current(device, bytes);
    if (tlmi_unlikely(atomic_load_explicit(&several, memory_order_relaxed)))
        change_current(0, bytes);
}

void tlmi_tally_alloc(uint8_t device, uint64_t bytes)
{
    bool locked;
    shard *mine = counters(&locked);
    tlmi_tally_add(&mine->of[device].alloc_bytes, (int64_t)bytes);
    tlmi_tally_add(&mine->of[device].alloc_count, 1);
    if (locked)
        tlmi_spin_unlock(&lock);
    change(device, (int64_t)bytes);
}

void tlmi_tally_free(uint8_t device, uint64_t bytes)
{
    bool locked;
    shard *mine = counters(&locked);
    tlmi_tally_add(&mine->of[device].free_bytes, (int64_t)bytes);
    tlmi_tally_add(&mine->of[device].free_count, 1);
    if (locked)
        tlmi_spin_unlock(&lock);
    change(device, -(int64_t)bytes);
}

void tlmi_tally_first_counts(int acquires, int releases, int floating)
{
    bool locked;
    shard *mine = counters(&locked);
    tlmi_tally_add(&mine->counts.acquires, acquires);
    tlmi_tally_add(&mine->counts.releases, releases);
    tlmi_tally_add(&mine->counts.floating, floating);
    if (locked)
        tlmi_spin_unlock(&lock);
}

int64_t tlmi_tally_current_bytes(void)
{
    uint32_t shown = atomic_load(&several) ? 0 : atomic_load(&first_device);
    return atomic_load_explicit(&current[shown].bytes, memory_order_relaxed);
}

void tlm_runtime_stats(uint32_t device, tlm_runtime_statistics *out)
{
    static shard sum; /* 8 kB: not on the stack of a thread that may be small; under the lock */
    tlmi_spin_lock(&lock);
    sum = (shard){0};
    add_shard(&sum, &finished);
    for (const shard *at = shards; at; at = at->next)
        add_shard(&sum, at);
    *out = (tlm_runtime_statistics){
        .acquires = sum.counts.acquires, .releases = sum.counts.releases, .floating = sum.counts.floating};
    for (uint32_t i = 0; i < DEVICES; i++) {
        if (device != 0 && i != device)
            continue;
        out->total_bytes += sum.of[i].alloc_bytes;
        out->total_count += sum.of[i].alloc_count;
        out->freed_bytes += sum.of[i].free_bytes;
        out->freed_count += sum.of[i].free_count;
    }
    out->current_count = out->total_count - out->freed_count;
    uint32_t shown = device || atomic_load(&several) ? device : atomic_load(&first_device);
    tlmi_spin_unlock(&lock);
    if (shown >= DEVICES)
        return;
    out->current_bytes = atomic_load(&current[shown].bytes);
    out->peak_bytes = atomic_load(&current[shown].peak_bytes);
}
