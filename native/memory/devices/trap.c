/* SPDX-License-Identifier: MIT
 * trap.c: records and reports touches of quarantined memory: faults at an address that quarantine.c knows.
 *
 * A touch is synchronous: the thread stands in an instruction of the program, holds no lock of ours and is in no function of
 * ours, so that events and sites can be written as from anywhere. Then the fault takes its course, see faults.c. Whenever
 * memory enters the quarantine our handlers are put before those in force again.
 */
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "memory/devices/quarantine.h"

/* ---- the report ----
 *
 * What was touched, where it was allocated, freed and used, as lines on stderr, from within a signal handler. Names come from the
 * records of the recording, which are mapped; they are read without a lock and without memory of their own. One record after
 * another is looked at for each frame: a program does this once.
 */

enum { TEXT_ROOM = 32768, MOST_FRAMES = 16, RECORD_HEADER = 16, CODE = 1, SITE = 2, CUT_ROOT = 1 };

static struct {
    char text[TEXT_ROOM];
    size_t used;
} report;

static void add_bytes(const char *text, size_t bytes)
{
    size_t room = sizeof report.text - report.used;
    bytes = bytes < room ? bytes : room;
    memcpy(report.text + report.used, text, bytes);
    report.used += bytes;
}

static void add(const char *text)
{
    add_bytes(text, strlen(text));
}

static void add_number(uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    add_bytes(digits + at, sizeof digits - at);
}

/* What is looked for: the record of this type that begins with this number. */
typedef struct {
    uint32_t type, number;
    const uint8_t *payload;
} search;

static bool search_records(void *context, const uint8_t *records, uint32_t bytes)
{
    search *wanted = context;
    for (uint32_t at = 0; at + RECORD_HEADER <= bytes;) {
        uint32_t head[4], number;
        memcpy(head, records + at, sizeof head);
        memcpy(&number, records + at + RECORD_HEADER, sizeof number);
        if (head[3] == wanted->type && number == wanted->number) {
            wanted->payload = records + at + RECORD_HEADER;
            return true;
        }
        if (head[0] == 0)
            return false;
        at += head[0];
    }
    return false;
}

static const uint8_t *find(uint32_t type, uint32_t number)
{
    search wanted = {type, number, NULL};
    tlmi_meta_peek(search_records, &wanted);
    return wanted.payload;
}

/* One line for the frame that a site is; returns its parent. */
static uint32_t add_frame(uint32_t site)
{
    const uint8_t *payload = find(SITE, site);
    if (payload == NULL)
        return 0;
    uint32_t fields[4]; /* site, parent, code, line */
    memcpy(fields, payload, sizeof fields);
    const uint8_t *code = find(CODE, fields[2]);
    if (code) {
        uint32_t head[4]; /* code, first line, bytes of the file name and of the name */
        memcpy(head, code, sizeof head);
        add("tlmem:     ");
        add_bytes((const char *)code + sizeof head, head[2]);
        add(":");
        add_number(fields[3]);
        add(" in ");
        add_bytes((const char *)code + sizeof head + head[2], head[3]);
        add("\n");
    }
    return fields[1];
}

static void add_stack(const char *what, uint32_t site, bool is_known)
{
    add("tlmem:   ");
    add(what);
    if (!is_known || !tlmi_probe_on() || find(SITE, site) == NULL) {
        add(": the stack is not known\n");
        return;
    }
    add(":\n");
    int frames = 0;
    while (site > CUT_ROOT && frames++ < MOST_FRAMES)
        site = add_frame(site);
    if (site > CUT_ROOT)
        add("tlmem:     ... and further out\n");
}

static void add_place(const tlmi_quarantined *whose, uintptr_t address, bool is_freed)
{
    uintptr_t payload = (uintptr_t)whose->freed.memory + whose->freed.header;
    if (address < payload) {
        add_number(payload - address);
        add(" bytes before ");
    } else {
        add("byte ");
        add_number(address - payload);
        add(" of ");
    }
    add(whose->freed.device == TLM_DEVICE_NUMPY ? "a NumPy array" : "a tensor");
    add(" of ");
    add_number(whose->object_bytes);
    add(" bytes");
    if (whose->freed.object && whose->freed.device != TLM_DEVICE_NUMPY) {
        add(" (handle ");
        add_number(whose->freed.object);
        add(")");
    }
    add(is_freed ? " after it had been freed.\n" : ", which is past its end.\n");
}

static void write_all(void)
{
    for (size_t at = 0; at < report.used;) {
        ssize_t written = write(STDERR_FILENO, report.text + at, report.used - at);
        if (written <= 0)
            return;
        at += (size_t)written;
    }
}

static void report_touch(const tlmi_quarantined *whose, uintptr_t address, const char *how, uint32_t used_site)
{
    static _Atomic bool is_taken;
    bool is_freed = atomic_load(&whose->state) == TLMI_QUARANTINED_HELD;
    uint64_t epoch = atomic_load(&tlmi_recording_epoch);
    if (atomic_exchange(&is_taken, true))
        return; /* another thread is telling of its own */
    report.used = 0;
    add(is_freed ? "tlmem: use after free: the program has " : "tlmem: past the end: the program has ");
    add(how);
    add(" ");
    add_place(whose, address, is_freed);
    add_stack("used at", used_site, true);
    if (is_freed)
        add_stack("freed at", whose->freed.free_site, whose->free_epoch == epoch);
    add_stack("allocated at", whose->alloc_site, whose->alloc_epoch == epoch);
    write_all();
    atomic_store(&is_taken, false);
}

/* ---- the watcher ---- */

enum { MOST_REPORTS = 10 };

static _Atomic uint32_t reports;

static void record_touch(const tlmi_quarantined *whose, uintptr_t address, const void *context)
{
    bool is_freed = atomic_load(&whose->state) == TLMI_QUARANTINED_HELD;
    uint32_t site = tlmi_site_for_events();
    tlmi_misuse(is_freed ? TLM_MISUSE_USE_AFTER_FREE : TLM_MISUSE_PAST_THE_END, whose->freed.device,
                whose->freed.object, 0, site);
    tlmi_quarantine_count_touch();
    if (atomic_fetch_add(&reports, 1) < MOST_REPORTS)
        report_touch(whose, address, tlmi_system_kind_of_touch(context), site);
}

static bool on_fault(uintptr_t address, const void *context, bool came_back)
{
    const tlmi_quarantined *whose = came_back ? NULL : tlmi_quarantine_at(address);
    if (whose)
        record_touch(whose, address, context);
    return false;
}

void tlmi_trap_install(void)
{
    tlmi_faults_watch(TLMI_FAULTS_OF_MEMORY, on_fault);
}
