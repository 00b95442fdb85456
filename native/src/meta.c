/* SPDX-License-Identifier: MIT
 * meta.c: names in the file: code objects, sites, threads, notes, labels. Written once, when first seen.
 *
 * Records go one after another into meta slots; a record counts when the slot's used_bytes covers it, which is stored last.
 * Thread-safe: everything here is under recording.lock, and the public half takes it.
 */
#include <string.h>

#include "log.h"

enum { RECORD_HEADER = 16, TEXT_LIMIT = 65536 };
enum { CODE = 1, SITE = 2, THREAD = 3, NOTE = 4, LABEL = 5 };

typedef struct {
    const void *start;
    uint32_t bytes;
} part;

static struct {
    int64_t slot; /* being filled; -1: none, or closed */
    uint32_t used_bytes;
    uint32_t *slots; /* all of ours, oldest first */
    uint32_t slots_room, slots_count;
    struct label {
        uint64_t hash; /* 0: empty */
        uint32_t number;
    } *labels;
    uint32_t labels_room, labels_count;
    bool open;
} meta = {.slot = -1};

bool tlmi_meta_open(void)
{
    /* A thread that saw the last recording end may still come to write its name. */
    pthread_mutex_lock(&tlmi_recording.lock);
    meta.slot = -1;
    meta.slots_count = meta.labels_count = 0;
    meta.slots_room = 1024; /* 256 MB of names before it grows */
    meta.labels_room = 1024;
    meta.slots = tlmi_own_alloc(meta.slots_room * sizeof *meta.slots);
    meta.labels = tlmi_own_alloc(meta.labels_room * sizeof *meta.labels);
    meta.open = meta.slots && meta.labels;
    bool opened = meta.open;
    if (!opened)
        tlmi_meta_close();
    pthread_mutex_unlock(&tlmi_recording.lock);
    return opened;
}

void tlmi_meta_close(void)
{
    tlmi_own_free(meta.slots, meta.slots_room * sizeof *meta.slots);
    tlmi_own_free(meta.labels, meta.labels_room * sizeof *meta.labels);
    meta.slots = NULL;
    meta.labels = NULL;
    meta.open = false;
    meta.slot = -1;
}

static bool next_slot(void)
{
    if (meta.slots_count == meta.slots_room)
        return false;
    int64_t slot = tlmi_file_take(TLMI_SLOT_META);
    if (slot < 0) {
        tlmi_segment_give_back();
        slot = tlmi_file_take(TLMI_SLOT_META);
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

/* 64 bits of FNV-1a: two labels of one program do not meet. Never 0. */
static uint64_t hash_text(const char *text, uint32_t bytes)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (uint32_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001B3);
    return hash ? hash : 1;
}

static struct label *find_label(struct label *labels, uint32_t room, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & (room - 1);
    while (labels[at].hash && labels[at].hash != hash)
        at = (at + 1) & (room - 1);
    return &labels[at];
}

static bool grow_labels(void)
{
    uint32_t room = meta.labels_room * 2;
    struct label *bigger = tlmi_own_alloc(room * sizeof *bigger);
    if (!bigger)
        return false;
    for (uint32_t i = 0; i < meta.labels_room; i++)
        if (meta.labels[i].hash)
            *find_label(bigger, room, meta.labels[i].hash) = meta.labels[i];
    tlmi_own_free(meta.labels, meta.labels_room * sizeof *meta.labels);
    meta.labels = bigger;
    meta.labels_room = room;
    return true;
}

static uint32_t label_number(const char *text)
{
    uint32_t bytes = bounded(strlen(text));
    uint64_t hash = hash_text(text, bytes);
    if (!meta.open || (meta.labels_count * 2 >= meta.labels_room && !grow_labels()))
        return 0;
    struct label *label = find_label(meta.labels, meta.labels_room, hash);
    if (label->hash)
        return label->number;
    uint32_t head[2] = {meta.labels_count + 1, bytes};
    if (!append(LABEL, (part[]){{head, sizeof head}, {text, bytes}}, 2))
        return 0;
    *label = (struct label){hash, ++meta.labels_count};
    return label->number;
}

uint32_t tlmi_meta_label(const char *text)
{
    pthread_mutex_lock(&tlmi_recording.lock);
    uint32_t number = label_number(text);
    pthread_mutex_unlock(&tlmi_recording.lock);
    return number;
}

bool tlmi_meta_each(bool (*visit)(void *context, const uint8_t *records, uint32_t bytes), void *context)
{
    for (uint32_t i = 0; i < meta.slots_count; i++) {
        const uint8_t *map = tlmi_file.slots[meta.slots[i]].map;
        uint32_t used = atomic_load(&((const tlmi_slot_header *)map)->used_bytes);
        if (!visit(context, map + TLMI_SLOT_HEADER_BYTES, used))
            return false;
    }
    return true;
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
