/* SPDX-License-Identifier: MIT
 * quarantine.c: memory that was freed and is not given back yet: oldest first out, bounded in bytes, records and mappings.
 *
 * Guarded memory is mapped by us alone, and from its free on without any right: it takes addresses then, no memory. What is
 * smaller is filled with a pattern, and was written after its free if the pattern is not whole when it leaves. One lock; it
 * is never held while memory is given back or an event is recorded. A fork waits for it, so that a child finds it whole.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log/log.h"
#include "memory/devices/quarantine.h"
#include "platform/address_map.h"

enum {
    RECORDS = 1 << 16,
    MOST_GUARDED = 1 << 14, /* each takes two mappings, of which Linux grants a process 65530 */
    MOST_HELD_GUARDED = MOST_GUARDED / 2,
};

typedef struct {
    uint32_t first, last; /* 0: empty */
} record_list;

_Atomic bool tlmi_quarantine_on, tlmi_quarantine_used;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static tlmi_map in_use = TLMI_MAP_EMPTY; /* address -> record. Changed under the gate */
static tlmi_quarantined *_Atomic records;
static uint32_t free_records, guarded_count, held_guarded;
static _Atomic uint32_t fresh_record = 1;
static record_list held, waiting; /* waiting: has left, to be given back by the next call of its source */
static uint64_t budget_bytes, held_bytes;
static uint32_t sample_nth;
static _Atomic uint32_t samples;
static _Atomic uint64_t filled_bytes;
static tlm_quarantine_statistics counted; /* under the gate */
static _Atomic uint64_t touches;

static __thread struct {
    tlm_object object;
    uint64_t bytes;
    uint32_t free_site;
} name;

/* ---- records. All under the gate ---- */

static tlmi_quarantined *record_of(uint32_t index)
{
    return &atomic_load_explicit(&records, memory_order_relaxed)[index];
}

/* 0: none is left. */
static uint32_t take_record(void)
{
    uint32_t index = free_records;
    if (index)
        free_records = record_of(index)->next;
    else if (fresh_record < RECORDS)
        index = fresh_record++;
    return index;
}

static void release_record(uint32_t index)
{
    tlmi_quarantined *record = record_of(index);
    atomic_store_explicit(&record->state, TLMI_QUARANTINED_NONE, memory_order_release);
    guarded_count -= record->pages != NULL;
    record->pages = NULL;
    record->next = free_records;
    free_records = index;
}

static void push(record_list *list, uint32_t index)
{
    record_of(index)->next = 0;
    if (list->last)
        record_of(list->last)->next = index;
    else
        list->first = index;
    list->last = index;
}

static uint32_t pop(record_list *list)
{
    uint32_t index = list->first;
    if (index)
        list->first = record_of(index)->next;
    if (list->first == 0)
        list->last = 0;
    return index;
}

/* ---- leaving ---- */

static uint8_t *payload_of(const tlmi_freed *freed)
{
    return (uint8_t *)freed->memory + freed->header;
}

static bool is_pattern_whole(const tlmi_freed *freed)
{
    const uint8_t *payload = payload_of(freed);
    uint64_t bytes = freed->bytes - freed->header;
    return bytes == 0 || (payload[0] == TLMI_FREED_PATTERN && memcmp(payload, payload + 1, (size_t)bytes - 1) == 0);
}

/* A write cannot be caught in the act here, so that what is named is where the memory was freed. */
static void look_for_writes(const tlmi_quarantined *record)
{
    const tlmi_freed *freed = &record->freed;
    if (is_pattern_whole(freed))
        return;
    bool known = record->free_epoch == atomic_load(&tlmi_recording_epoch);
    tlmi_misuse(TLM_MISUSE_WRITTEN_AFTER_FREE, freed->device, freed->object, 0, known ? freed->free_site : 0);
    pthread_mutex_lock(&gate);
    counted.written++;
    pthread_mutex_unlock(&gate);
}

/* Gives filled memory back, or its pages; the record is in no list. */
static void bury(uint32_t index)
{
    tlmi_quarantined *record = record_of(index);
    if (record->pages == NULL)
        record->freed.release(record->freed.memory, record->freed.bytes);
    else
        munmap(record->pages, record->page_bytes);
    pthread_mutex_lock(&gate);
    release_record(index);
    pthread_mutex_unlock(&gate);
}

/* Takes the oldest out. Under the gate; 0: nothing is held. */
static uint32_t pop_held(void)
{
    uint32_t index = pop(&held);
    if (index == 0)
        return 0;
    tlmi_quarantined *record = record_of(index);
    held_bytes -= record->freed.bytes;
    counted.held_bytes = held_bytes;
    counted.held_count--;
    counted.left_count++;
    if (record->pages)
        held_guarded--;
    else
        atomic_fetch_sub_explicit(&filled_bytes, record->freed.bytes, memory_order_relaxed);
    return index;
}

/* The oldest leaves. false: nothing is held. `is_bound`: within a call of the source that is bound to its own calls. */
static bool let_oldest_go(bool is_bound)
{
    pthread_mutex_lock(&gate);
    uint32_t index = pop_held();
    pthread_mutex_unlock(&gate);
    if (index == 0)
        return false;
    tlmi_quarantined *record = record_of(index);
    if (record->pages == NULL)
        look_for_writes(record);
    if (record->pages == NULL && record->freed.is_bound && !is_bound) {
        pthread_mutex_lock(&gate);
        push(&waiting, index);
        pthread_mutex_unlock(&gate);
    } else {
        bury(index);
    }
    return true;
}

static void give_back_waiting(void)
{
    for (;;) {
        pthread_mutex_lock(&gate);
        uint32_t index = pop(&waiting);
        pthread_mutex_unlock(&gate);
        if (index == 0)
            return;
        bury(index);
    }
}

static void make_room(bool is_bound)
{
    for (;;) {
        pthread_mutex_lock(&gate);
        bool over = held_bytes > budget_bytes || held_guarded > MOST_HELD_GUARDED;
        pthread_mutex_unlock(&gate);
        if (!over || !let_oldest_go(is_bound))
            return;
    }
}

/* ---- entering ---- */

void tlmi_quarantine_name(tlm_object object, uint64_t bytes, uint32_t free_site)
{
    name.object = object;
    name.bytes = bytes;
    name.free_site = free_site;
}

/* Completes what the last owner knew by the name that was left. */
static void describe(tlmi_quarantined *record, const tlmi_freed *freed)
{
    record->freed = *freed;
    record->object_bytes = freed->bytes - freed->header;
    record->free_epoch = atomic_load(&tlmi_recording_epoch);
    if (freed->object == 0 && name.object) {
        record->object_bytes = name.bytes;
        record->freed.object = name.object;
        record->freed.free_site = name.free_site;
    }
}

static void hold(uint32_t index)
{
    pthread_mutex_lock(&gate);
    tlmi_quarantined *record = record_of(index);
    held_bytes += record->freed.bytes;
    counted.held_bytes = held_bytes;
    counted.held_count++;
    counted.count++;
    counted.bytes += record->freed.bytes;
    if (record->pages)
        held_guarded++;
    else
        atomic_fetch_add_explicit(&filled_bytes, record->freed.bytes, memory_order_relaxed);
    push(&held, index);
    pthread_mutex_unlock(&gate);
}

static void put_guarded(uint32_t index, const tlmi_freed *freed)
{
    tlmi_quarantined *record = record_of(index);
    if (!tlmi_quarantine_active()) {
        bury(index);
        return;
    }
    tlmi_freed whole = *freed;
    whole.bytes = record->freed.bytes; /* what the caller says of the size may be wrong */
    describe(record, &whole);
    atomic_store_explicit(&record->state, TLMI_QUARANTINED_HELD, memory_order_release);
    void *closed = mmap(record->pages, record->page_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (closed == MAP_FAILED) { /* no more mappings: it leaves at once */
        bury(index);
        return;
    }
    hold(index);
    tlmi_trap_install();
}

/* A free record, for which old ones may have to leave. */
static uint32_t find_record(bool is_bound)
{
    for (;;) {
        pthread_mutex_lock(&gate);
        uint32_t index = take_record();
        pthread_mutex_unlock(&gate);
        if (index || !let_oldest_go(is_bound))
            return index;
    }
}

static bool put_filled(const tlmi_freed *freed)
{
    if (!tlmi_quarantine_active() || freed->bytes <= freed->header)
        return false;
    uint32_t index = find_record(freed->is_bound);
    if (index == 0)
        return false;
    tlmi_quarantined *record = record_of(index);
    record->pages = NULL;
    describe(record, freed);
    memset(payload_of(freed), TLMI_FREED_PATTERN, (size_t)(freed->bytes - freed->header));
    atomic_store_explicit(&record->state, TLMI_QUARANTINED_HELD, memory_order_release);
    hold(index);
    return true;
}

/* The record of guarded memory that is in use, and forgets it; 0: it is none. */
static uint32_t end_use(const void *memory)
{
    if (tlmi_map_find(&in_use, (uintptr_t)memory) == 0)
        return 0;
    pthread_mutex_lock(&gate);
    uint64_t value = tlmi_map_take(&in_use, (uintptr_t)memory);
    pthread_mutex_unlock(&gate);
    return (uint32_t)value;
}

bool tlmi_quarantine_put(const tlmi_freed *freed)
{
    uint32_t index = end_use(freed->memory);
    bool is_taken = true;
    if (index)
        put_guarded(index, freed);
    else
        is_taken = put_filled(freed);
    name.object = 0;
    if (freed->is_bound)
        give_back_waiting();
    make_room(freed->is_bound);
    return is_taken;
}

/* ---- memory in use ---- */

static bool is_chosen(uint64_t payload_bytes)
{
    if (!tlmi_quarantine_active())
        return false;
    if (payload_bytes >= TLMI_GUARDED_FROM)
        return true;
    return sample_nth && (atomic_fetch_add_explicit(&samples, 1, memory_order_relaxed) + 1) % sample_nth == 0;
}

/* Pages and behind them one that nobody may touch; NULL: the system has none. */
static uint8_t *map_pages(uint64_t room, uint64_t page)
{
    uint8_t *pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    if (mprotect(pages + room, page, PROT_NONE) == 0)
        return pages;
    munmap(pages, room + page);
    return NULL;
}

/* 0: no more guarded memory. */
static uint32_t begin_guarded(void)
{
    pthread_mutex_lock(&gate);
    uint32_t index = guarded_count < MOST_GUARDED ? take_record() : 0;
    guarded_count += index != 0;
    counted.unguarded_count += index == 0;
    pthread_mutex_unlock(&gate);
    return index;
}

void *tlmi_quarantine_alloc(uint64_t bytes, uint32_t header, uint32_t alignment, uint8_t device, uint32_t site)
{
    if (!is_chosen(bytes - header))
        return NULL;
    uint32_t index = begin_guarded();
    if (index == 0)
        return NULL;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t room = (bytes + page - 1) & ~(page - 1);
    uint8_t *pages = map_pages(room, page);
    uint8_t *memory = pages ? pages + ((room - bytes) & ~(uint64_t)(alignment - 1)) : NULL;
    pthread_mutex_lock(&gate);
    tlmi_quarantined *record = record_of(index);
    bool is_known = pages && tlmi_map_put(&in_use, (uintptr_t)memory, index);
    if (is_known) {
        record->pages = pages;
        record->page_bytes = room + page;
        record->alloc_epoch = atomic_load(&tlmi_recording_epoch);
        record->alloc_site = site;
        record->object_bytes = bytes - header;
        record->freed = (tlmi_freed){.memory = memory, .bytes = bytes, .header = header, .device = device};
        record->freed.object = device < TLM_DEVICE_CPU ? (uintptr_t)memory : 0;
        atomic_store_explicit(&record->state, TLMI_QUARANTINED_LIVE, memory_order_release);
    } else {
        release_record(index);
        guarded_count--;
    }
    pthread_mutex_unlock(&gate);
    if (!is_known && pages)
        munmap(pages, room + page);
    return is_known ? memory : NULL;
}

uint64_t tlmi_quarantine_bytes(const void *memory)
{
    uint64_t index = tlmi_map_find(&in_use, (uintptr_t)memory);
    return index ? record_of((uint32_t)index)->freed.bytes : 0;
}

/* ---- looking ---- */

const tlmi_quarantined *tlmi_quarantine_at(uintptr_t address)
{
    tlmi_quarantined *all = atomic_load_explicit(&records, memory_order_acquire);
    for (uint32_t i = 1; all && i < RECORDS; i++) {
        const tlmi_quarantined *record = &all[i];
        bool is_one = atomic_load_explicit(&record->state, memory_order_acquire) != TLMI_QUARANTINED_NONE;
        if (is_one && record->pages && address - (uintptr_t)record->pages < record->page_bytes)
            return record;
    }
    return NULL;
}

/* For the sampler: filled memory, and what we need to know it. */
static uint64_t resident_bytes(void)
{
    uint64_t touched = atomic_load_explicit(&fresh_record, memory_order_relaxed) * sizeof(tlmi_quarantined);
    return touched + atomic_load_explicit(&filled_bytes, memory_order_relaxed);
}

static bool has_guard_pages(void)
{
    return tlmi_quarantine_was_active();
}

__attribute__((constructor(TLMI_GAUGES_PRIORITY))) static void offer_gauges(void)
{
    tlmi_gauges_of_layers.quarantine_bytes = resident_bytes;
    tlmi_gauges_of_layers.has_guard_pages = has_guard_pages;
}

void tlmi_quarantine_count_touch(void)
{
    atomic_fetch_add_explicit(&touches, 1, memory_order_relaxed);
}

/* ---- begin and end ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&gate);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&gate);
}

static void install_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* Not from own_memory.c: what is never touched of them is not to count as ours. */
static bool map_records(void)
{
    size_t bytes = RECORDS * sizeof(tlmi_quarantined);
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return false;
    atomic_store(&records, start);
    return true;
}

tlm_status tlm_quarantine_start(uint64_t bytes, uint32_t nth)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (bytes == 0)
        return TLM_BAD_ARGUMENT;
    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&gate);
    bool is_ready = atomic_load(&records) != NULL || map_records();
    budget_bytes = bytes;
    sample_nth = nth;
    pthread_mutex_unlock(&gate);
    if (!is_ready)
        return TLM_NO_MEMORY;
    tlmi_trap_install();
    atomic_store(&tlmi_quarantine_used, true);
    atomic_store(&tlmi_quarantine_on, true);
    return TLM_OK;
}

void tlm_quarantine_stop(void)
{
    if (!atomic_exchange(&tlmi_quarantine_on, false))
        return;
    pthread_mutex_lock(&gate);
    uint32_t index = held.first;
    held = (record_list){0};
    pthread_mutex_unlock(&gate);
    while (index) {
        tlmi_quarantined *record = record_of(index);
        uint32_t next = record->next;
        bool is_filled = record->pages == NULL;
        if (is_filled)
            look_for_writes(record);
        pthread_mutex_lock(&gate);
        if (is_filled)
            atomic_fetch_sub_explicit(&filled_bytes, record->freed.bytes, memory_order_relaxed);
        held_bytes -= is_filled ? record->freed.bytes : 0;
        if (!is_filled || record->freed.is_bound)
            push(is_filled ? &waiting : &held, index);
        pthread_mutex_unlock(&gate);
        if (is_filled && !record->freed.is_bound)
            bury(index);
        index = next;
    }
}

void tlm_quarantine_stats(tlm_quarantine_statistics *out)
{
    pthread_mutex_lock(&gate);
    *out = counted;
    pthread_mutex_unlock(&gate);
    out->touches = atomic_load(&touches);
}
