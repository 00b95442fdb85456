/* SPDX-License-Identifier: MIT
 * test_log.c: many threads record at once, with and without a size limit, and nothing is lost, torn or counted twice.
 *
 * Each thread allocates and frees addresses of its own and keeps its own account; the sealed file is then read back here,
 * block by block, with the checkpoint's sums, and must agree. tests/recording reads such files again in Python.
 *
 * tlm-test: sources=core */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "log/fold.h"

STAND_IN_FOR_SAMPLER

enum { THREADS = 6, SHORT_THREADS = 40, EVENTS = 200000, LIMIT = 8 << 20 };

typedef struct {
    uint64_t events, allocs, frees, live_bytes;
} account;

static account accounts[THREADS + SHORT_THREADS];
static _Atomic bool keep_going;

static void record(uint8_t kind, uint64_t address, uint64_t arg, account *own)
{
    tlmi_event_append(kind, TLM_DEVICE_NUMPY, address, arg, 0, 0);
    own->events++;
}

/* Follows from the address, and looks like noise: blocks stay large, and a limit is reached for certain. */
static uint64_t size_of_block_at(uint64_t address)
{
    uint64_t number = (address & ((UINT64_C(1) << 36) - 1)) / 64;
    return 16 + ((number * UINT64_C(0x9E3779B97F4A7C15)) >> 8);
}

/* Keeps every 16th allocation of `count`. */
static void use_memory(account *own, uint64_t base, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t address = base + 64 * (uint64_t)i, bytes = size_of_block_at(address);
        record(TLM_KIND_ALLOC, address, bytes, own);
        own->allocs++;
        own->live_bytes += bytes;
        if (i % 16) {
            record(TLM_KIND_FREE, address, 0, own);
            own->frees++;
            own->live_bytes -= bytes;
        }
    }
}

static void *work(void *argument)
{
    account *own = argument;
    uint64_t base = (uint64_t)(own - accounts + 1) << 36;
    use_memory(own, base, own - accounts < THREADS ? EVENTS : 20);
    return NULL;
}

static void *disturb(void *unused) /* is still recording when the recording ends */
{
    (void)unused;
    while (atomic_load(&keep_going))
        if (tlmi_probe_on())
            tlmi_event_append(TLM_KIND_RESET, TLM_DEVICE_NONE, 1, 1, 0, 0);
    return NULL;
}

static void start(const char *path, uint64_t limit)
{
    tlm_recording_options options = {
        .path = path, .overwrite = 1, .limit_bytes = limit, .sample_ms = 1, .compact = 1, .stack_depth = 8};
    CHECK(tlm_recording_start(&options) == TLM_OK);
    CHECK(tlm_recording_start(&options) == TLM_ALREADY_RUNNING);
}

/* ---- reading back ---- */

typedef struct {
    uint64_t events, allocs, frees, live_bytes;
} seen;

static uint8_t *read_file(const char *path, uint64_t *bytes)
{
    struct stat info;
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &info) == 0);
    uint8_t *data = malloc((size_t)info.st_size + TLMI_SLOT_BYTES);
    CHECK(data && read(fd, data, (size_t)info.st_size) == info.st_size);
    close(fd);
    *bytes = (uint64_t)info.st_size;
    return data;
}

static void add_totals(const tlmi_block_header *block, seen *all)
{
    tlmi_fold_totals totals;
    uint8_t planes[sizeof totals];
    const uint8_t *from = (const uint8_t *)(block + 1);
    if (block->columns[0].stored_bytes != block->columns[0].raw_bytes) {
        CHECK(tlmi_inflate(from, block->columns[0].stored_bytes, planes, sizeof planes));
        from = planes;
    }
    tlmi_planes_join(from, 8, sizeof totals / 8, (uint8_t *)&totals);
    all->events += totals.events;
    all->allocs += totals.alloc_count;
    all->frees += totals.free_count;
    all->live_bytes += totals.current_bytes;
}

/* Sums what is not folded. `sizes` finds what a free gives back: the threads' sizes follow from their addresses. */
static void add_events(const tlmi_block_header *block, const uint64_t *consumed, seen *all)
{
    static tlmi_event events[TLMI_SEGMENT_EVENTS];
    CHECK(tlmi_codec_decode(block, tlmi_clock_shift(), events));
    for (uint32_t i = 0; i < block->count; i++) {
        if (block->thread_first + i < consumed[block->thread])
            continue;
        all->events++;
        CHECK(i == 0 || events[i].ticks >= events[i - 1].ticks);
        if (events[i].device != TLM_DEVICE_NUMPY)
            continue;
        uint64_t bytes = size_of_block_at(events[i].object);
        if (events[i].kind == TLM_KIND_ALLOC) {
            CHECK(events[i].arg == bytes);
            all->allocs++;
            all->live_bytes += bytes;
        } else {
            all->frees++;
            all->live_bytes -= bytes;
        }
    }
}

static void add_consumed(const tlmi_block_header *block, uint64_t *consumed)
{
    enum { ENTRY = 16 };
    uint8_t *planes = malloc(ENTRY * block->count), *entries = malloc(ENTRY * block->count);
    const uint8_t *from = (const uint8_t *)(block + 1);
    CHECK(planes && entries);
    if (block->columns[0].stored_bytes != block->columns[0].raw_bytes) {
        CHECK(tlmi_inflate(from, block->columns[0].stored_bytes, planes, ENTRY * block->count));
        from = planes;
    }
    tlmi_planes_join(from, ENTRY, block->count, entries);
    for (uint32_t i = 0; i < block->count; i++) {
        uint64_t entry[2];
        memcpy(entry, entries + ENTRY * i, ENTRY);
        consumed[entry[1]] = entry[0];
    }
    free(planes);
    free(entries);
}

static void each_block(const uint8_t *data, int pass, uint64_t *consumed, uint64_t *contiguous, seen *all)
{
    const tlmi_file_header *header = (const tlmi_file_header *)data;
    for (uint64_t slot = 0; slot < header->slot_count; slot++) {
        const uint8_t *start = data + tlmi_file_slot_offset((uint32_t)slot);
        const tlmi_slot_header *s = (const tlmi_slot_header *)start;
        CHECK(s->type == TLMI_SLOT_BLOCKS);
        for (uint32_t at = 0; at < s->used_bytes;) {
            const tlmi_block_header *block = (const tlmi_block_header *)(start + sizeof *s + at);
            CHECK(tlmi_block_valid(block));
            bool fold = block->type == TLMI_BLOCK_FOLD && block->seq == header->fold_number;
            if (pass == 0 && fold && block->thread == 0)
                add_totals(block, all);
            if (pass == 0 && fold && block->thread == 2)
                add_consumed(block, consumed);
            if (pass == 1 && block->type == TLMI_BLOCK_EVENTS) {
                add_events(block, consumed, all);
                contiguous[block->thread] += block->count;
            }
            at += tlmi_block_bytes(block->payload_bytes);
        }
    }
}

static seen read_back(const char *path)
{
    static uint64_t consumed[65536], contiguous[65536];
    uint64_t bytes;
    seen all = {0};
    uint8_t *data = read_file(path, &bytes);
    const tlmi_file_header *header = (const tlmi_file_header *)data;
    memset(consumed, 0, sizeof consumed);
    memset(contiguous, 0, sizeof contiguous);
    CHECK(header->state == TLMI_STATE_SEALED && header->index_offset && header->lost_events == 0);
    CHECK(header->limit_bytes == 0 || bytes <= header->limit_bytes);
    CHECK(tlmi_codec_open());
    if (tlm_zlib_available())
        CHECK(tlmi_deflate_open());
    each_block(data, 0, consumed, contiguous, &all);
    each_block(data, 1, consumed, contiguous, &all);
    tlmi_codec_close();
    tlmi_deflate_close();
    CHECK(all.events == header->total_events);
    free(data);
    return all;
}

static void check_threads(uint64_t limit)
{
    char path[256];
    pthread_t threads[THREADS], other, brief;
    account own = {0}, sum = {0};
    memset(accounts, 0, sizeof accounts);
    start(temporary_path(path, sizeof path, "log"), limit);
    atomic_store(&keep_going, true);
    CHECK(pthread_create(&other, NULL, disturb, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &accounts[i]) == 0);
    for (int i = THREADS; i < THREADS + SHORT_THREADS; i++) {
        CHECK(pthread_create(&brief, NULL, work, &accounts[i]) == 0);
        CHECK(pthread_join(brief, NULL) == 0);
    }
    use_memory(&own, UINT64_C(1) << 46, 1000);
    CHECK(tlm_mark("epoch", 3) == TLM_OK && tlm_note("key", "text") == TLM_OK && tlm_thread_name("main") == TLM_OK);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(tlm_recording_stop(1) == TLM_OK);
    atomic_store(&keep_going, false);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(tlm_recording_stop(1) == TLM_NOT_RUNNING);
    for (int i = 0; i < THREADS + SHORT_THREADS; i++) {
        sum.allocs += accounts[i].allocs;
        sum.frees += accounts[i].frees;
        sum.live_bytes += accounts[i].live_bytes;
    }
    seen all = read_back(path);
    CHECK(all.allocs == sum.allocs + own.allocs && all.frees == sum.frees + own.frees);
    CHECK(all.live_bytes == sum.live_bytes + own.live_bytes);
    tlm_recording_statistics after;
    tlm_recording_stats(&after);
    CHECK(after.events == all.events && after.lost_events == 0 && (limit == 0) == (after.folded_events == 0));
    CHECK(remove(path) == 0);
}

/* Every request for our own memory fails once: a clear status, nothing left behind, and the next try works. */
static void check_no_memory(void)
{
    char path[256];
    tlm_recording_options options = {.path = temporary_path(path, sizeof path, "memory"), .compact = 1, .sample_ms = 5};
    for (uint64_t n = 1; n < 40; n++) {
        account own = {0};
        tlm_own_fail_after(n);
        tlm_status status = tlm_recording_start(&options);
        CHECK(status == TLM_OK || status == TLM_NO_MEMORY);
        CHECK((access(path, F_OK) == 0) == (status == TLM_OK));
        if (status == TLM_OK) {
            use_memory(&own, UINT64_C(1) << 40, 20000);
            CHECK(tlm_recording_stop(1) == TLM_OK);
            CHECK(remove(path) == 0);
        }
        tlm_own_fail_after(0);
    }
}

static void check_refusals(void)
{
    char path[256];
    tlm_recording_options options = {.path = temporary_path(path, sizeof path, "refused"), .limit_bytes = 1000};
    CHECK(tlm_recording_start(&options) == TLM_BAD_ARGUMENT);
    options.limit_bytes = 0;
    options.stack_depth = 5000;
    CHECK(tlm_recording_start(&options) == TLM_BAD_ARGUMENT);
    options.stack_depth = 1;
    FILE *there = fopen(path, "w");
    CHECK(there && fclose(there) == 0);
    CHECK(tlm_recording_start(&options) == TLM_EXISTS);
    CHECK(remove(path) == 0);
    options.path = "/no/such/folder/file.tlm";
    CHECK(tlm_recording_start(&options) == TLM_IO && tlm_recording_errno() != 0);
    CHECK(tlm_mark("x", 0) == TLM_NOT_RUNNING && tlm_event_record(99, 0, 0, 0) == TLM_BAD_ARGUMENT);
    for (int status = TLM_OK; status <= TLM_BAD_FORMAT; status++)
        CHECK(strcmp(tlm_status_text((tlm_status)status), "unknown status") != 0);
}

/* A program may be killed before the first sample; its times are about right even so. */
static void check_new_file(void)
{
    char path[256];
    tlm_recording_options options = {.path = temporary_path(path, sizeof path, "new")};
    tlmi_clock_init();
    tlmi_checksum_init();
    CHECK(tlmi_file_create(&options) == TLM_OK);
    const tlmi_file_header *header = tlmi_file.header;
    CHECK(memcmp(header->magic, "TLMEM\r\n\x1a", 8) == 0);
    CHECK(header->static_crc == tlmi_checksum(header, offsetof(tlmi_file_header, static_crc)));
    CHECK(header->last_ns - header->first_ns == TLMI_ROUGH_NS);
    CHECK(header->last_ticks - header->first_ticks == tlmi_clock_rough_ticks() && tlmi_clock_rough_ticks() > 0);
    tlmi_file_close();
    CHECK(remove(path) == 0);
}

int main(void)
{
    check_new_file();
    check_refusals();
    check_no_memory();
    check_threads(0);
    check_threads(LIMIT);
    return 0;
}
