/* SPDX-License-Identifier: MIT
 * label.c: names of scopes, fields, holders and marks, as numbers that are valid as long as the process lives.
 *
 * A label's text is written into a recording when it is first used there. Texts and tables are never given back: programs
 * have few labels. Making one takes a lock, using one does not.
 */
#include <string.h>

#include "log/log.h"

enum { BLOCK_BYTES = 65536, CHUNK = 1024, CHUNKS = TLMI_MOST_LABELS / CHUNK, TEXT_LIMIT = 65535 };

typedef struct {
    const char *text;
    uint64_t hash;
    _Atomic uint64_t written; /* the last recording that knows it */
} label_row;

static label_row *_Atomic chunks[CHUNKS]; /* rows by number; number 0 is none */
static _Atomic uint32_t count;
static uint32_t *table; /* hash -> number */
static uint32_t table_room;
static char *block;
static size_t block_left;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void mend_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

static label_row *row_of(uint32_t number)
{
    label_row *rows = atomic_load_explicit(&chunks[number / CHUNK], memory_order_acquire);
    return rows ? &rows[number % CHUNK] : NULL;
}

/* 64 bits of FNV-1a. */
static uint64_t hash_text(const char *text, size_t bytes)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001B3);
    return hash;
}

static bool is_text(const label_row *row, uint64_t hash, const char *text, size_t bytes)
{
    return row->hash == hash && strncmp(row->text, text, bytes) == 0 && row->text[bytes] == 0;
}

/* The place of the text in the table: its own, or the empty one where it belongs. */
static uint32_t *place_of(uint64_t hash, const char *text, size_t bytes)
{
    uint32_t at = (uint32_t)hash & (table_room - 1);
    while (table[at] && !is_text(row_of(table[at]), hash, text, bytes))
        at = (at + 1) & (table_room - 1);
    return &table[at];
}

static bool grow_table(void)
{
    uint32_t room = table_room ? table_room * 2 : 2048;
    uint32_t *bigger = tlmi_own_alloc(room * sizeof *bigger);
    if (!bigger)
        return false;
    tlmi_own_free(table, table_room * sizeof *table);
    table = bigger;
    table_room = room;
    for (uint32_t number = 1; number <= atomic_load_explicit(&count, memory_order_relaxed); number++) {
        uint32_t at = (uint32_t)row_of(number)->hash & (room - 1);
        while (table[at])
            at = (at + 1) & (room - 1);
        table[at] = number;
    }
    return true;
}

static char *keep_text(const char *text, size_t bytes)
{
    if (block_left < bytes + 1) {
        size_t wanted = bytes + 1 > BLOCK_BYTES ? bytes + 1 : BLOCK_BYTES;
        char *fresh = tlmi_own_alloc(wanted);
        if (!fresh)
            return NULL;
        block = fresh;
        block_left = wanted;
    }
    char *kept = block;
    memcpy(kept, text, bytes);
    kept[bytes] = 0;
    block += bytes + 1;
    block_left -= bytes + 1;
    return kept;
}

/* Under the lock. 0: no memory. */
static uint32_t make_label(uint64_t hash, const char *text, size_t bytes, uint32_t *place)
{
    uint32_t number = atomic_load_explicit(&count, memory_order_relaxed) + 1;
    if (number / CHUNK >= CHUNKS)
        return 0;
    if (!row_of(number)) {
        label_row *rows = tlmi_own_alloc(CHUNK * sizeof *rows);
        if (!rows)
            return 0;
        atomic_store_explicit(&chunks[number / CHUNK], rows, memory_order_release);
    }
    char *kept = keep_text(text, bytes);
    if (!kept)
        return 0;
    label_row *row = row_of(number);
    row->text = kept;
    row->hash = hash;
    *place = number;
    atomic_store_explicit(&count, number, memory_order_release);
    return number;
}

tlm_label tlm_label_of(const char *text)
{
    if (!text || !text[0])
        return 0;
    pthread_once(&fork_once, install_fork_handler);
    size_t bytes = strnlen(text, TEXT_LIMIT);
    uint64_t hash = hash_text(text, bytes);
    tlm_label number = 0;
    pthread_mutex_lock(&lock);
    bool room = atomic_load_explicit(&count, memory_order_relaxed) * 2 < table_room || grow_table();
    if (room) {
        uint32_t *place = place_of(hash, text, bytes);
        number = *place ? *place : make_label(hash, text, bytes, place);
    }
    pthread_mutex_unlock(&lock);
    return number;
}

const char *tlm_label_text(tlm_label label)
{
    return label && label <= atomic_load_explicit(&count, memory_order_acquire) ? row_of(label)->text : "";
}

tlm_label tlmi_label_write(tlm_label label)
{
    if (label == 0 || label > atomic_load_explicit(&count, memory_order_acquire))
        return 0;
    label_row *row = row_of(label);
    uint64_t epoch = atomic_load_explicit(&tlmi_recording_epoch, memory_order_acquire);
    if (tlmi_likely(atomic_load_explicit(&row->written, memory_order_acquire) == epoch))
        return label;
    /* Two threads may both write it; readers take either. */
    if (!tlmi_meta_label(label, row->text))
        return 0;
    atomic_store_explicit(&row->written, epoch, memory_order_release);
    return label;
}

void tlmi_label_write_holder(tlm_holder holder)
{
    tlm_holder_kind kind = TLM_HOLDER_KIND(holder);
    bool may_have = kind == TLM_HOLDER_FOREIGN || kind == TLM_HOLDER_REGISTRY;
    if (may_have && TLM_HOLDER_NUMBER(holder) < TLMI_MOST_LABELS && tlmi_probe_on())
        tlmi_label_write((tlm_label)TLM_HOLDER_NUMBER(holder));
}
