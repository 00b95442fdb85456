/* SPDX-License-Identifier: MIT
 * meta.c: names in the file: code objects, sites, threads, notes, labels. Written once, when first seen.
 *
 * Records go one after another into meta slots; a record counts when the slot's used_bytes covers it, which is stored last.
 * Thread-safe: everything here is under recording.lock, and the public half takes it.
 */
#include <string.h>

#include "log/recording.h"

enum { RECORD_HEADER = 16, TEXT_LIMIT = 65536 };
enum { CODE = TLMI_META_CODE, SITE = TLMI_META_SITE, THREAD = 3, NOTE = 4 };
enum { LABEL = 5, HOLDING = 6, LINE = 7, CONTENT = 8 };

typedef struct {
    const void *start;
    uint32_t bytes;
} part;

static struct {
    int64_t slot; /* being filled; -1: none, or closed */
    uint32_t used_bytes;
    uint32_t *slots; /* all of ours, oldest first */
    uint32_t slots_room, slots_count;
    bool open;
} meta = {.slot = -1};

bool tlmi_meta_open(void)
{
    /* A thread that saw the last recording end may still come to write its name. */
    pthread_mutex_lock(&tlmi_recording.lock);
    meta.slot = -1;
    meta.slots_count = 0;
    meta.slots_room = 1024; /* 256 MB of names before it grows */
    meta.slots = tlmi_own_alloc(meta.slots_room * sizeof *meta.slots);
    meta.open = meta.slots != NULL;
    bool opened = meta.open;
    if (!opened)
        tlmi_meta_close();
    pthread_mutex_unlock(&tlmi_recording.lock);
    return opened;
}

void tlmi_meta_close(void)
{
    tlmi_own_free(meta.slots, meta.slots_room * sizeof *meta.slots);
    meta.slots = NULL;
    meta.open = false;
    meta.slot = -1;
}

static bool next_slot(void)
{
    if (meta.slots_count == meta.slots_room)
        return false;
    int64_t slot = tlmi_file_acquire(TLMI_SLOT_META);
    if (slot < 0) {
        tlmi_segment_free_ready();
        slot = tlmi_file_acquire(TLMI_SLOT_META);
    }
    if (slot < 0)
        return false;
    if (!tlmi_file_map((uint32_t)slot)) {
        tlmi_file_release((uint32_t)slot);
        return false;
    }
    meta.slots[meta.slots_count++] = (uint32_t)slot;
    meta.slot = slot;
    meta.used_bytes = 0;
    return true;
}

/* Writes one record made of parts. Under lock. */
static bool append(uint8_t type, const part *parts, int count)
{
    uint32_t payload = 0;
    for (int i = 0; i < count; i++)
        payload += parts[i].bytes;
    uint32_t bytes = (RECORD_HEADER + payload + 7u) & ~7u;
    if (!meta.open)
        return false;
    if ((meta.slot < 0 || meta.used_bytes + bytes > TLMI_SLOT_PAYLOAD_BYTES) && !next_slot())
        return false;
    uint8_t *map = tlmi_file.slots[meta.slot].map;
    uint8_t *record = map + TLMI_SLOT_HEADER_BYTES + meta.used_bytes, *at = record + RECORD_HEADER;
    for (int i = 0; i < count; at += parts[i].bytes, i++)
        memcpy(at, parts[i].start, parts[i].bytes);
    memset(at, 0, bytes - RECORD_HEADER - payload);
    uint32_t head[4] = {bytes, payload, tlmi_checksum(record + RECORD_HEADER, payload), type};
    memcpy(record, head, sizeof head);
    meta.used_bytes += bytes;
    atomic_store_explicit(&((tlmi_slot_header *)map)->used_bytes, meta.used_bytes, memory_order_release);
    return true;
}

static bool append_locked(uint8_t type, const part *parts, int count)
{
    pthread_mutex_lock(&tlmi_recording.lock);
    bool written = append(type, parts, count);
    pthread_mutex_unlock(&tlmi_recording.lock);
    return written;
}

static uint32_t bounded(size_t bytes)
{
    return bytes > TEXT_LIMIT ? TEXT_LIMIT : (uint32_t)bytes;
}

bool tlmi_meta_code(uint32_t code, uint32_t first_line, const char *file, uint32_t file_bytes, const char *name,
                    uint32_t name_bytes)
{
    uint32_t head[4] = {code, first_line, bounded(file_bytes), bounded(name_bytes)};
    return append_locked(CODE, (part[]){{head, sizeof head}, {file, head[2]}, {name, head[3]}}, 3);
}

bool tlmi_meta_site(uint32_t site, uint32_t parent, uint32_t code, uint32_t line)
{
    uint32_t fields[4] = {site, parent, code, line};
    return append_locked(SITE, (part[]){{fields, sizeof fields}}, 1);
}

bool tlmi_meta_thread(uint32_t thread, uint32_t flags, uint64_t os_id, uint64_t ticks, const char *name)
{
    struct {
        uint32_t thread, flags;
        uint64_t os_id, ticks;
    } fields = {thread, flags, os_id, ticks};
    return append_locked(THREAD, (part[]){{&fields, sizeof fields}, {name, bounded(strlen(name))}}, 2);
}

bool tlmi_meta_note(const char *key, const char *text)
{
    uint32_t head[2] = {bounded(strlen(key)), bounded(strlen(text))};
    return append_locked(NOTE, (part[]){{head, sizeof head}, {key, head[0]}, {text, head[1]}}, 3);
}

bool tlmi_meta_label(uint32_t label, const char *text)
{
    uint32_t head[2] = {label, bounded(strlen(text))};
    return append_locked(LABEL, (part[]){{head, sizeof head}, {text, head[1]}}, 2);
}

bool tlmi_meta_line(uint32_t code, uint32_t line, const char *text, uint32_t bytes)
{
    uint32_t head[3] = {code, line, bounded(bytes)};
    return append_locked(LINE, (part[]){{head, sizeof head}, {text, head[2]}}, 2);
}

bool tlmi_meta_holding(const void *payload, uint32_t bytes)
{
    return append_locked(HOLDING, (part[]){{payload, bytes}}, 1);
}

bool tlmi_meta_content(const void *payload, uint32_t bytes)
{
    return append_locked(CONTENT, (part[]){{payload, bytes}}, 1);
}

static uint32_t used_of(const uint8_t *map)
{
    uint32_t used = atomic_load(&((const tlmi_slot_header *)map)->used_bytes);
    return used <= TLMI_SLOT_PAYLOAD_BYTES ? used : 0; /* another program has written here */
}

bool tlmi_meta_each(bool (*visit)(void *context, const uint8_t *records, uint32_t bytes), void *context)
{
    for (uint32_t i = 0; i < meta.slots_count; i++) {
        const uint8_t *map = tlmi_file.slots[meta.slots[i]].map;
        uint32_t used = used_of(map);
        if (!visit(context, map + TLMI_SLOT_HEADER_BYTES, used))
            return false;
    }
    return true;
}

bool tlmi_meta_peek(bool (*visit)(void *context, const uint8_t *records, uint32_t bytes), void *context)
{
    for (uint32_t i = 0; meta.open && i < meta.slots_count; i++) {
        const uint8_t *map = tlmi_file.slots[meta.slots[i]].map;
        uint32_t used = used_of(map);
        if (visit(context, map + TLMI_SLOT_HEADER_BYTES, used))
            return true;
    }
    return false;
}

/* What is written in slot `number` of ours, and how much; NULL: there are fewer slots. */
static const uint8_t *written_in(uint32_t number, uint32_t *bytes)
{
    const uint8_t *map = NULL;
    pthread_mutex_lock(&tlmi_recording.lock);
    if (meta.open && number < meta.slots_count) {
        map = tlmi_file.slots[meta.slots[number]].map;
        *bytes = atomic_load(&((const tlmi_slot_header *)map)->used_bytes);
    }
    pthread_mutex_unlock(&tlmi_recording.lock);
    return map ? map + TLMI_SLOT_HEADER_BYTES : NULL;
}

void tlmi_meta_follow(tlmi_meta_position *from, void (*visit)(uint8_t type, const uint8_t *payload, uint32_t bytes))
{
    uint32_t end = 0;
    for (bool is_full = true; is_full; from->slot += is_full, from->bytes = is_full ? 0 : from->bytes) {
        uint32_t unused;
        /* Asked first: once there is a next slot, nothing is added to this one. */
        is_full = written_in(from->slot + 1, &unused) != NULL;
        const uint8_t *records = written_in(from->slot, &end);
        while (records != NULL && from->bytes < end) {
            uint32_t head[4];
            memcpy(head, records + from->bytes, sizeof head);
            /* What another program wrote over the file must not lead out of the slot, nor round and round in it. */
            if (head[0] < RECORD_HEADER || head[0] > end - from->bytes || head[1] > head[0] - RECORD_HEADER)
                return;
            visit((uint8_t)head[3], records + from->bytes + RECORD_HEADER, head[1]);
            from->bytes += head[0];
        }
    }
}

void tlmi_meta_release(void)
{
    for (uint32_t i = 0; i < meta.slots_count; i++) {
        tlmi_file_release(meta.slots[i]);
        tlmi_file_unmap(meta.slots[i]);
    }
    meta.slots_count = 0;
    meta.slot = -1;
    meta.open = false;
}
