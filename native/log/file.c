/* SPDX-License-Identifier: MIT
 * file.c: the recording file: reserved on disk, cut into slots, mapped where it is written event by event.
 *
 * Space is reserved before it is used: a store into a mapped page that the disk has no room for would kill the program. So
 * would one into a page that another program has cut off the file. Then the page becomes memory of the process within the
 * handler of SIGBUS, the store goes nowhere, and the recording ends as soon as somebody looks at the file: at every sample, new
 * segment and block. Without a handler the last event would not survive a kill: the kernel has no mapping that
 * ignores a missing page, seals and leases are not for files with a name, and a write() per event takes a microsecond.
 * Only the header, event slots and meta slots are mapped; blocks go through pwrite, which survives a kill just as well and
 * keeps them out of the program's resident size. Everything is under recording.lock unless recording.h says otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/recording.h"

tlmi_file_handle tlmi_file = {.file.fd = -1};

static const char MAGIC[8] = "TLMEM\r\n\x1a";

enum { FIRST_SLOTS = 8, MOST_SLOTS_AT_ONCE = 64, LEAST_SPARE = 5, MOST_SPARE = 64 };

/* ---- pages that are gone ---- */

/* Where slots are mapped, for the handler: it must not read memory that may be given back. Slots beyond are not guarded. One
 * that was let go of stays, marked: a thread may have faulted there before and look here afterwards. */
enum { MOST_GUARDED = 4096, LET_GO = 1 };
static _Atomic uintptr_t guarded[MOST_GUARDED], guarded_header;
static _Atomic bool has_faulted;

static bool replace_pages(uintptr_t start, uint64_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    return mmap((void *)start, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
}

static bool mend_fault(uintptr_t address, const void *context, bool came_back)
{
    (void)context;
    (void)came_back;
    uintptr_t header = atomic_load(&guarded_header), start = 0;
    if (header && address - header < TLMI_HEADER_BYTES) {
        atomic_store(&has_faulted, true);
        return replace_pages(header, TLMI_HEADER_BYTES);
    }
    for (size_t i = 0; i < MOST_GUARDED && !start; i++) {
        uintptr_t slot = atomic_load_explicit(&guarded[i], memory_order_relaxed) & ~(uintptr_t)LET_GO;
        if (slot && address - slot < TLMI_SLOT_BYTES)
            start = slot;
    }
    if (!start)
        return false;
    atomic_store(&has_faulted, true);
    return replace_pages(start, TLMI_SLOT_BYTES);
}

static bool set_guarded(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < MOST_GUARDED; i++) {
        if (atomic_load_explicit(&guarded[i], memory_order_relaxed) == from) {
            atomic_store(&guarded[i], to);
            return true;
        }
    }
    return false;
}

static void guard_slot(uintptr_t start)
{
    if (set_guarded(0, start))
        return;
    for (size_t i = 0; i < MOST_GUARDED; i++) {
        if (atomic_load_explicit(&guarded[i], memory_order_relaxed) & LET_GO) {
            atomic_store(&guarded[i], start);
            return;
        }
    }
}

void tlmi_file_guard(void)
{
    tlmi_faults_watch(TLMI_FAULTS_OF_FILES, mend_fault);
}

static bool has_magic(void)
{
    return memcmp(tlmi_file.header->magic, MAGIC, sizeof tlmi_file.header->magic) == 0;
}

/* The file as the calling thread has it open. */
static tlmi_own_file *number_here(void)
{
    return tlmi_own_table_here() ? &tlmi_file.file_of_service : &tlmi_file.file;
}

tlm_early_end tlmi_file_examine(void)
{
    uint64_t bytes = UINT64_MAX, names = 1;
    if (tlmi_file_number() >= 0)
        tlmi_own_file_look(number_here(), &bytes, &names);
    if (bytes < tlmi_file_slot_offset(tlmi_file.slot_count) || !has_magic())
        return TLM_ENDED_CUT;
    if (atomic_load(&has_faulted))
        return TLM_ENDED_FAILED;
    return names ? TLM_ENDED_NOT : TLM_ENDED_REMOVED;
}

bool tlmi_file_is_in_place(void)
{
    struct stat about;
    return lstat(tlmi_file.path, &about) == 0 && (uint64_t)about.st_dev == tlmi_file.file.device &&
           (uint64_t)about.st_ino == tlmi_file.file.inode;
}

/* ---- slots ---- */

uint64_t tlmi_file_slot_offset(uint32_t slot)
{
    return TLMI_HEADER_BYTES + (uint64_t)slot * TLMI_SLOT_BYTES;
}

static bool take_if_ours(tlmi_own_file *again, int fd)
{
    tlmi_own_file_keep(again, fd);
    if (again->fd >= 0 && again->device == tlmi_file.file.device && again->inode == tlmi_file.file.inode)
        return true;
    tlmi_own_file_close(again);
    return false;
}

/* Opens the file by its path or, where that is another file's by now or none, as in another root, takes it from the program's
 * table; where the system does not let us, through /proc. */
static bool open_again(tlmi_own_file *again)
{
    enum { FLAGS = O_RDWR | O_CLOEXEC | O_NONBLOCK };
    char number[64];
    if (take_if_ours(again, open(tlmi_file.path, FLAGS | O_NOFOLLOW)))
        return true;
    snprintf(number, sizeof number, "/proc/self/fd/%d", tlmi_file.file.fd);
    return tlmi_own_table_here() && (take_if_ours(again, tlmi_system_borrow_file(tlmi_file.file.fd)) ||
                                     take_if_ours(again, open(number, FLAGS)));
}

/* A program that took our number is often about to take many, the new one among them: it is only used if it was still ours
 * after a moment. Nobody takes it from a table of our own. */
int tlmi_file_number(void)
{
    enum { MOST_TIMES = 20, NS_OF_A_MOMENT = 1000000 };
    tlmi_own_file again, *number = number_here();
    bool ours = tlmi_own_file_is_ours(number);
    for (int times = 0; !ours && times < MOST_TIMES && open_again(&again); times++) {
        *number = again;
        if (number == &tlmi_file.file)
            nanosleep(&(struct timespec){.tv_nsec = NS_OF_A_MOMENT}, NULL);
        ours = tlmi_own_file_is_ours(number);
    }
    if (ours)
        return number->fd;
    tlmi_file.error = EBADF;
    return -1;
}

void tlmi_file_open_here(void)
{
    number_here()->fd = -1;
    tlmi_file_number();
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
            tlmi_file.length = tlmi_file_slot_offset(tlmi_file.slot_count);
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
    memcpy(whole, MAGIC, sizeof MAGIC);
    header->static_crc = tlmi_checksum(whole, sizeof whole);
    header->first_ns = tlmi_clock_ns();
    header->first_ticks = tlmi_clock_ticks();
    header->last_ns = header->first_ns + TLMI_ROUGH_NS; /* until the first sample */
    header->last_ticks = header->first_ticks + tlmi_clock_rough_ticks();
    header->limit_bytes = options->limit_bytes;
    header->state = TLMI_STATE_OPEN;
    uint64_t word;
    memcpy(&word, MAGIC, sizeof word);
    atomic_store_explicit((_Atomic uint64_t *)(void *)header->magic, word, memory_order_release);
}

void tlmi_file_remove(void)
{
    if (tlmi_file_is_in_place())
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

/* Makes a new file, never opens one through a link or one that another process has open: recordings hold command lines, and
 * in a folder that all users can write to, another user can guess the name of a child's recording and put something there.
 * A file to be replaced is unlinked first: truncating it would end a recording that is still written into it. */
static tlm_status open_new(const tlm_recording_options *options)
{
    struct stat about;
    mode_t mode = options->mode ? options->mode : 0600;
    bool is_there = lstat(tlmi_file.path, &about) == 0;
    if (is_there && (!options->overwrite || !S_ISREG(about.st_mode)))
        return TLM_EXISTS;
    if (is_there && unlink(tlmi_file.path) != 0) {
        tlmi_file.error = errno;
        return TLM_IO;
    }
    int fd = open(tlmi_file.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) {
        tlmi_file.error = errno;
        return errno == EEXIST ? TLM_EXISTS : TLM_IO;
    }
    if (fchmod(fd, mode) != 0) {
        /* A file system without rights: what it gives is all there is. */
    }
    tlmi_own_file_keep_out_of_reach(&tlmi_file.file, fd);
    return TLM_OK;
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
    tlm_status status = open_new(options);
    if (status != TLM_OK)
        return status;
    if (!reserve(0, TLMI_HEADER_BYTES))
        return fail(tlmi_file.error == ENOSPC || tlmi_file.error == EDQUOT ? TLM_NO_SPACE : TLM_IO);
    tlmi_file.header = mmap(NULL, TLMI_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, tlmi_file_number(), 0);
    if (tlmi_file.header == MAP_FAILED) {
        tlmi_file.header = NULL;
        tlmi_file.error = errno;
        return fail(TLM_IO);
    }
    atomic_store(&has_faulted, false);
    atomic_store(&guarded_header, (uintptr_t)tlmi_file.header);
    tlmi_file_guard();
    if (!grow())
        return fail(tlmi_file.error == 0 ? TLM_NO_MEMORY : TLM_NO_SPACE);
    fill_header(options);
    return TLM_OK;
}

/* Whether no page can have been missing: none is of the file any more, and it is as long as we made it. */
static bool was_whole(void)
{
    uint64_t bytes = 0, names;
    return !atomic_load(&has_faulted) && tlmi_own_file_look(&tlmi_file.file, &bytes, &names) &&
           bytes >= tlmi_file.length;
}

void tlmi_file_close(void)
{
    for (uint32_t slot = 0; slot < tlmi_file.slot_count; slot++)
        tlmi_file_unmap(slot);
    tlmi_own_free(tlmi_file.slots, tlmi_file.slots_room * sizeof *tlmi_file.slots);
    /* Not unmapped: a probe that is just counting a lost event in another thread must still find memory here. */
    if (tlmi_file.header)
        replace_pages((uintptr_t)tlmi_file.header, TLMI_HEADER_BYTES);
    /* A thread that has just met a missing page may be stopped before its signal arrives, and would die without us: then the
     * handler stays for good, and knows the pages of this file. */
    if (!tlmi_file.header || was_whole()) {
        tlmi_faults_forget(mend_fault);
        atomic_store(&guarded_header, 0);
    }
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
    if (tlmi_file.lost)
        return -1;
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
        guard_slot((uintptr_t)map);
    }
    return entry->map;
}

void tlmi_file_unmap(uint32_t slot)
{
    tlmi_slot *entry = &tlmi_file.slots[slot];
    if (entry->map) {
        set_guarded((uintptr_t)entry->map, 0); /* first: the address may be another's at once */
        munmap(entry->map, TLMI_SLOT_BYTES);
    }
    entry->map = NULL;
}

void tlmi_file_let_go(uint32_t slot)
{
    tlmi_slot *entry = &tlmi_file.slots[slot];
    replace_pages((uintptr_t)entry->map, TLMI_SLOT_BYTES);
    set_guarded((uintptr_t)entry->map, (uintptr_t)entry->map | LET_GO);
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
    uint64_t length, names;
    int fd = tlmi_file_number();
    /* All room was reserved: a shorter file was cut short, and to write on would only leave a hole. */
    if (tlmi_file.lost || !tlmi_own_file_look(number_here(), &length, &names) || length < offset + bytes)
        return false;
    if (!tlmi_system_may_write(offset + bytes)) {
        tlmi_file.error = EFBIG;
        return false;
    }
    while (bytes) {
        ssize_t written = pwrite(fd, at, bytes, (off_t)offset);
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
