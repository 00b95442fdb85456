/* SPDX-License-Identifier: MIT
 * file.c: the recording file: reserved on disk, cut into slots, mapped where it is written event by event.
 *
 * Space is reserved before it is used: a store into a mapped page that the disk has no room for would kill the program.
 * Only the header, event slots and meta slots are mapped; blocks go through pwrite, which survives a kill just as well and
 * keeps them out of the program's resident size. Everything is under recording.lock unless recording.h says otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/recording.h"

tlmi_file_handle tlmi_file = {.file.fd = -1};

enum { FIRST_SLOTS = 8, MOST_SLOTS_AT_ONCE = 64, LEAST_SPARE = 5, MOST_SPARE = 64 };

uint64_t tlmi_file_slot_offset(uint32_t slot)
{
    return TLMI_HEADER_BYTES + (uint64_t)slot * TLMI_SLOT_BYTES;
}

int tlmi_file_number(void)
{
    if (tlmi_own_file_is_ours(&tlmi_file.file))
        return tlmi_file.file.fd;
    tlmi_own_file again;
    tlmi_own_file_keep(&again, open(tlmi_file.path, O_RDWR | O_CLOEXEC));
    if (again.fd < 0 || again.device != tlmi_file.file.device || again.inode != tlmi_file.file.inode) {
        tlmi_own_file_close(&again);
        tlmi_file.error = EBADF;
        return -1;
    }
    tlmi_file.file = again;
    return again.fd;
}

/* Reserves [from, from + bytes) on disk and extends the file over it. */
static bool reserve(uint64_t from, uint64_t bytes)
{
    int error = tlmi_system_extend_file(tlmi_file_number(), from, bytes);
    if (error)
        tlmi_file.error = error;
    return error == 0;
}

static bool make_room_for_slots(uint32_t count)
{
    if (count <= tlmi_file.slots_room)
        return true;
    uint32_t room = tlmi_file.slots_room ? tlmi_file.slots_room : 512;
    while (room < count)
        room *= 2;
    tlmi_slot *slots = tlmi_own_alloc(room * sizeof *slots);
    if (!slots)
        return false;
    if (tlmi_file.slots) {
        memcpy(slots, tlmi_file.slots, tlmi_file.slot_count * sizeof *slots);
        tlmi_own_free(tlmi_file.slots, tlmi_file.slots_room * sizeof *slots);
    }
    tlmi_file.slots = slots;
    tlmi_file.slots_room = room;
    return true;
}

/* Grows with the file, an eighth at a time, so that it neither asks too often nor holds much more than it needs. */
static bool grow(void)
{
    if (tlmi_file.disk_full)
        return false;
    uint32_t wanted = tlmi_file.slot_count / 8;
    wanted = wanted < FIRST_SLOTS ? FIRST_SLOTS : wanted > MOST_SLOTS_AT_ONCE ? MOST_SLOTS_AT_ONCE : wanted;
    if (tlmi_file.slot_limit && tlmi_file.slot_count + wanted > tlmi_file.slot_limit)
        wanted = tlmi_file.slot_limit - tlmi_file.slot_count;
    for (; wanted; wanted /= 2) {
        if (!make_room_for_slots(tlmi_file.slot_count + wanted))
            return false;
        if (reserve(tlmi_file_slot_offset(tlmi_file.slot_count), (uint64_t)wanted * TLMI_SLOT_BYTES)) {
            for (uint32_t slot = tlmi_file.slot_count; slot < tlmi_file.slot_count + wanted; slot++)
                tlmi_file.slots[slot] = (tlmi_slot){.zeroed = true};
            tlmi_file.slot_count += wanted;
            tlmi_file.free_count += wanted;
            tlmi_file.header->slot_count = tlmi_file.slot_count;
            return true;
        }
    }
    if (tlmi_file.slot_limit == 0 || tlmi_file.slot_count < tlmi_file.slot_limit)
        tlmi_file.disk_full = true; /* from here on the file lives within what it has, as with a size limit */
    return false;
}

/* The program may be killed at any moment: who finds the magic number finds all the rest too, and times that are about right. */
static void fill_header(const tlm_recording_options *options)
{
    static const char magic[8] = "TLMEM\r\n\x1a";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    tlmi_file_header *header = tlmi_file.header;
    header->version = 1;
    header->header_bytes = TLMI_HEADER_BYTES;
    header->slot_bytes = TLMI_SLOT_BYTES;
    header->event_bytes = sizeof(tlmi_event);
    header->created_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    header->pid = (uint32_t)getpid();
    header->parent_pid = options->parent_pid;
    header->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    header->clock = tlmi_clock_is_counter ? 1 : 2;
    header->time_shift = tlmi_clock_shift();
    uint8_t whole[offsetof(tlmi_file_header, static_crc)];
    memcpy(whole, header, sizeof whole);
    memcpy(whole, magic, sizeof magic);
    header->static_crc = tlmi_checksum(whole, sizeof whole);
    header->first_ns = tlmi_clock_ns();
    header->first_ticks = tlmi_clock_ticks();
    header->last_ns = header->first_ns + TLMI_ROUGH_NS; /* until the first sample */
    header->last_ticks = header->first_ticks + tlmi_clock_rough_ticks();
    header->limit_bytes = options->limit_bytes;
    header->state = TLMI_STATE_OPEN;
    uint64_t word;
    memcpy(&word, magic, sizeof word);
    atomic_store_explicit((_Atomic uint64_t *)(void *)header->magic, word, memory_order_release);
}

void tlmi_file_remove(void)
{
    unlink(tlmi_file.path);
}

uint64_t tlmi_file_size(void)
{
    off_t bytes = lseek(tlmi_file_number(), 0, SEEK_END);
    return bytes < 0 ? 0 : (uint64_t)bytes;
}

static tlm_status fail(tlm_status status)
{
    int error = tlmi_file.error;
    if (tlmi_file.file.fd >= 0)
        tlmi_file_remove();
    tlmi_file_close();
    tlmi_file.error = error;
    return status;
}

/* Takes away a file that is to be replaced. To cut it short instead would kill a program that still records into it at its
 * next event, and one that reads it. Where this fails, by the rights of its folder, the file is cut short all the same. */
static void make_way(const char *path)
{
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISREG(about.st_mode))
        unlink(path);
}

tlm_status tlmi_file_create(const tlm_recording_options *options)
{
    memset(&tlmi_file, 0, sizeof tlmi_file);
    tlmi_file.file.fd = -1;
    tlmi_file.next_seq = 1;
    if (!options->path || strlen(options->path) >= sizeof tlmi_file.path)
        return TLM_BAD_ARGUMENT;
    strcpy(tlmi_file.path, options->path);
    if (options->limit_bytes)
        tlmi_file.slot_limit = (uint32_t)((options->limit_bytes - TLMI_HEADER_BYTES) / TLMI_SLOT_BYTES);
    if (options->overwrite)
        make_way(tlmi_file.path);
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | (options->overwrite ? 0 : O_EXCL);
    int fd = open(tlmi_file.path, flags, 0644);
    if (fd < 0) {
        tlmi_file.error = errno;
        return errno == EEXIST ? TLM_EXISTS : TLM_IO;
    }
    tlmi_own_file_keep_out_of_reach(&tlmi_file.file, fd);
    if (options->overwrite && ftruncate(tlmi_file_number(), 0) != 0) {
        tlmi_file.error = errno;
        tlmi_file_close();
        return TLM_IO;
    }
    if (!reserve(0, TLMI_HEADER_BYTES))
        return fail(tlmi_file.error == ENOSPC || tlmi_file.error == EDQUOT ? TLM_NO_SPACE : TLM_IO);
    tlmi_file.header = mmap(NULL, TLMI_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, tlmi_file_number(), 0);
    if (tlmi_file.header == MAP_FAILED) {
        tlmi_file.header = NULL;
        tlmi_file.error = errno;
        return fail(TLM_IO);
    }
    if (!grow())
        return fail(tlmi_file.error == 0 ? TLM_NO_MEMORY : TLM_NO_SPACE);
    fill_header(options);
    return TLM_OK;
}

void tlmi_file_close(void)
{
    for (uint32_t slot = 0; slot < tlmi_file.slot_count; slot++)
        tlmi_file_unmap(slot);
    tlmi_own_free(tlmi_file.slots, tlmi_file.slots_room * sizeof *tlmi_file.slots);
    /* Not unmapped: a probe that is just counting a lost event in another thread must still find memory here. */
    if (tlmi_file.header)
        mmap(tlmi_file.header, TLMI_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0);
    tlmi_own_file_close(&tlmi_file.file);
    tlmi_file.header = NULL;
    tlmi_file.slots = NULL;
    tlmi_file.slot_count = tlmi_file.slots_room = tlmi_file.free_count = 0;
}

static bool write_slot_header(uint32_t slot, const tlmi_slot_header *header)
{
    uint8_t *map = tlmi_file.slots[slot].map;
    if (!map)
        return tlmi_file_write(tlmi_file_slot_offset(slot), header, sizeof *header);
    atomic_store_explicit(&((tlmi_slot_header *)map)->type, TLMI_SLOT_FREE, memory_order_release);
    memcpy(map + 8, (const uint8_t *)header + 8, sizeof *header - 8);
    memcpy(map, header, 4);
    atomic_store_explicit(&((tlmi_slot_header *)map)->type, header->type, memory_order_release);
    return true;
}

/* Slots held ready while the disk has room, so that a full disk is noticed while there still is room for a checkpoint. */
static uint32_t spare_slots(void)
{
    uint32_t share = LEAST_SPARE + tlmi_file.slot_count / 8;
    return share < MOST_SPARE ? share : MOST_SPARE;
}

int64_t tlmi_file_acquire(uint8_t type)
{
    if (tlmi_file.free_count <= spare_slots() && !grow() && tlmi_file.free_count == 0)
        return -1;
    uint32_t slot = tlmi_file.first_free;
    while (tlmi_file.slots[slot].type != TLMI_SLOT_FREE)
        slot++;
    /* A slot is not said to hold events before its payload is zero and its thread is known: segment.c says it then. */
    uint8_t said = type == TLMI_SLOT_EVENTS ? TLMI_SLOT_FREE : type;
    tlmi_slot_header header = {.magic = TLMI_SLOT_MAGIC, .type = said, .seq = tlmi_file.next_seq};
    if (!write_slot_header(slot, &header))
        return -1;
    tlmi_file.next_seq++;
    tlmi_file.slots[slot].type = type;
    if (type != TLMI_SLOT_EVENTS)
        tlmi_file.slots[slot].zeroed = false;
    tlmi_file.first_free = slot + 1;
    tlmi_file.free_count--;
    return slot;
}

void tlmi_file_release(uint32_t slot)
{
    tlmi_slot_header header = {.magic = TLMI_SLOT_MAGIC, .type = TLMI_SLOT_FREE};
    write_slot_header(slot, &header);
    tlmi_file.slots[slot].type = TLMI_SLOT_FREE;
    tlmi_file.free_count++;
    if (slot < tlmi_file.first_free)
        tlmi_file.first_free = slot;
}

uint8_t *tlmi_file_map(uint32_t slot)
{
    tlmi_slot *entry = &tlmi_file.slots[slot];
    if (!entry->map) {
        void *map = mmap(NULL, TLMI_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, tlmi_file_number(),
                         (off_t)tlmi_file_slot_offset(slot));
        if (map == MAP_FAILED) {
            tlmi_file.error = errno;
            return NULL;
        }
        entry->map = map;
    }
    return entry->map;
}

void tlmi_file_unmap(uint32_t slot)
{
    tlmi_slot *entry = &tlmi_file.slots[slot];
    if (entry->map)
        munmap(entry->map, TLMI_SLOT_BYTES);
    entry->map = NULL;
}

uint32_t tlmi_file_room(void)
{
    if (tlmi_file.disk_full || tlmi_file.slot_limit == 0)
        return tlmi_file.disk_full ? tlmi_file.free_count : UINT32_MAX;
    return tlmi_file.slot_limit - tlmi_file.slot_count + tlmi_file.free_count;
}

bool tlmi_file_write(uint64_t offset, const void *start, size_t bytes)
{
    const uint8_t *at = start;
    if (!tlmi_system_may_write(offset + bytes)) {
        tlmi_file.error = EFBIG;
        return false;
    }
    while (bytes) {
        ssize_t written = pwrite(tlmi_file_number(), at, bytes, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            tlmi_file.error = errno;
            return false;
        }
        at += written;
        offset += (uint64_t)written;
        bytes -= (size_t)written;
    }
    return true;
}

bool tlmi_file_read(uint64_t offset, void *start, size_t bytes)
{
    uint8_t *at = start;
    while (bytes) {
        ssize_t got = pread(tlmi_file_number(), at, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return true;
}

void tlmi_file_calibrate(void)
{
    tlmi_file_header *header = tlmi_file.header;
    atomic_fetch_add(&header->calibration_seq, 1);
    header->last_ns = tlmi_clock_ns();
    header->last_ticks = tlmi_clock_ticks();
    atomic_fetch_add(&header->calibration_seq, 1);
}
