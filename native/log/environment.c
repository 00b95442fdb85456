/* SPDX-License-Identifier: MIT
 * environment.c: records a process without Python from the moment the library is loaded, when its environment says so.
 *
 *   TLMEM_RECORD=FILE            where to write; %p in it becomes the process number. A file that exists is left alone
 *   TLMEM_RECORD_MAX_FILE=SIZE   keep the file below this: 200MB, 64MiB, 100000000
 *   TLMEM_RECORD_MODE=OCTAL      who may read and write the file: 600 unless given, three digits, the first 6 or 7
 *   TLMEM_RECORD_CHILDREN=1      forked children record to files of their own, as the recorder names them: X.PID.tlm for X.tlm
 *
 * The file is sealed by exit(), after the program's own handlers; a process that ends in another way leaves an open one, which
 * is complete. A process with Python in it is recorded by `tlmem record` or tlmem.Recorder, never from here. Children are
 * not recorded unless asked for: a C program forks mostly in order to become another program at once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "log/log.h"

enum { SAMPLE_MS = 10, STACK_DEPTH = 64, PATH_ROOM = 4096, TEXT_ROOM = 4096 };

static char path[PATH_ROOM];
static tlm_recording_options options = {.path = path, .sample_ms = SAMPLE_MS, .stack_depth = STACK_DEPTH, .compact = 1};
static pid_t recorded; /* the process whose recording is ours; 0: none */
static bool children;

/* Says one line on stderr; the program goes on without a recording. */
static void complain(const char *what, const char *subject, const char *advice)
{
    char line[PATH_ROOM + 256];
    int bytes = snprintf(line, sizeof line, "tlmem: %s '%s'; %s.\n", what, subject, advice);
    size_t length = bytes < (int)sizeof line ? (size_t)bytes : sizeof line - 1;
    while (write(STDERR_FILENO, line, length) < 0 && errno == EINTR)
        continue;
}

/* ---- what the environment says ---- */

/* Copies FILE with its %p, absolute, so that children find the folder wherever the program has gone. */
static bool fill_path(const char *file)
{
    size_t used = 0;
    if (file[0] != '/') {
        if (!getcwd(path, sizeof path - 1))
            return false;
        used = strlen(path);
        path[used++] = '/';
    }
    for (const char *at = file; *at; at++) {
        int bytes;
        if (at[0] == '%' && at[1] == 'p') {
            bytes = snprintf(path + used, sizeof path - used, "%d", (int)getpid());
            at++;
        } else {
            bytes = snprintf(path + used, sizeof path - used, "%c", *at);
        }
        used += (size_t)bytes;
        if (used >= sizeof path)
            return false;
    }
    return true;
}

static double factor_of(const char *unit)
{
    static const char letters[] = "kmgt";
    const char *letter = unit[0] ? strchr(letters, unit[0] | 0x20) : NULL;
    double base = letter && (unit[1] | 0x20) == 'i' ? 1024 : 1000, factor = 1;
    for (const char *at = letters; letter && at <= letter; at++)
        factor *= base;
    unit += letter ? (base == 1024 ? 2 : 1) : 0;
    unit += (unit[0] | 0x20) == 'b';
    return unit[0] ? 0 : factor;
}

static bool read_size(const char *text, uint64_t *bytes)
{
    char *unit;
    *bytes = 0;
    if (!text || !text[0])
        return true;
    double number = strtod(text, &unit);
    double size = number * factor_of(unit + (unit[0] == ' '));
    if (unit == text || !(size >= 1) || size > 1e18)
        return false;
    *bytes = (uint64_t)size;
    return true;
}

static bool read_mode(const char *text, uint32_t *mode)
{
    enum { OWNER = 0600, ALL = 0777 };
    char *end;
    *mode = 0;
    if (!text || !text[0])
        return true;
    unsigned long number = strtoul(text, &end, 8);
    *mode = (uint32_t)number;
    return strspn(text, "01234567") == strlen(text) && *end == 0 && number <= ALL && (number & OWNER) == OWNER;
}

static bool says_yes(const char *text)
{
    return text && text[0] && strcmp(text, "0") != 0;
}

/* ---- notes ---- */

static void note_command(void)
{
    char text[TEXT_ROOM];
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    for (ssize_t i = 0; i + 1 < bytes; i++)
        if (text[i] == 0)
            text[i] = ' ';
    if (bytes > 0) {
        text[bytes] = 0;
        tlm_note("command", text);
    }
    bytes = readlink("/proc/self/exe", text, sizeof text - 1);
    if (bytes > 0) {
        text[bytes] = 0;
        tlm_note("executable", text);
    }
}

static void note_process(void)
{
    char text[TEXT_ROOM];
    struct utsname system;
    note_command();
    if (getcwd(text, sizeof text))
        tlm_note("cwd", text);
    if (uname(&system) == 0) {
        snprintf(text, sizeof text, "%s %s %s", system.sysname, system.release, system.machine);
        tlm_note("platform", text);
    }
    snprintf(text, sizeof text, "%d", STACK_DEPTH);
    tlm_note("stack_depth", text);
    snprintf(text, sizeof text, "%d", SAMPLE_MS);
    tlm_note("rss_interval_ms", text);
}

/* ---- begin, fork and end ---- */

static bool begin(void)
{
    tlm_status status = tlm_recording_start(&options);
    if (status == TLM_EXISTS) {
        complain("this process is not recorded, for there is a file", path, "remove it, or put %p into TLMEM_RECORD");
    } else if (status != TLM_OK) {
        int error = tlm_recording_errno();
        complain("this process cannot be recorded to", path, error ? strerror(error) : tlm_status_text(status));
    }
    if (status != TLM_OK)
        return false;
    recorded = getpid();
    note_process();
    tlm_mark("tlmem:begin", 0);
    return true;
}

static void before_fork(void)
{
    if (recorded)
        tlm_fork_before();
}

static void after_fork_in_parent(void)
{
    if (recorded)
        tlm_fork_after_in_parent();
}

/* Path of a child's recording from that of its parent. */
static bool name_child(void)
{
    size_t stem = strlen(path);
    if (stem > 4 && strcmp(path + stem - 4, ".tlm") == 0)
        stem -= 4;
    int bytes = snprintf(path + stem, sizeof path - stem, ".%d.tlm", (int)getpid());
    return (size_t)bytes < sizeof path - stem;
}

static void after_fork_in_child(void)
{
    if (!recorded)
        return;
    options.parent_pid = (uint32_t)recorded;
    options.overwrite = 1; /* process numbers come again */
    recorded = 0;
    tlm_fork_after_in_child();
    if (children && name_child())
        begin();
}

static bool is_python_here(void)
{
    return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL;
}

__attribute__((constructor)) static void begin_if_told(void)
{
    const char *file = getenv("TLMEM_RECORD");
    const char *limit = getenv("TLMEM_RECORD_MAX_FILE");
    const char *mode = getenv("TLMEM_RECORD_MODE");
    if (!file || !file[0] || getuid() != geteuid() || getgid() != getegid() || is_python_here())
        return;
    children = says_yes(getenv("TLMEM_RECORD_CHILDREN"));
    if (!read_size(limit, &options.limit_bytes))
        complain("TLMEM_RECORD_MAX_FILE is", limit, "it should be a size such as 200MB, 64MiB or 100000000");
    else if (!read_mode(mode, &options.mode))
        complain("TLMEM_RECORD_MODE is", mode, "it should be three octal digits, the first 6 or 7, such as 640");
    else if (!fill_path(file))
        complain("TLMEM_RECORD is", file, "that path is too long");
    else if (begin())
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* What happened to the file from outside; a disk without room is noted in the file itself. */
static void complain_of_loss(void)
{
    static const char *const what[] = {
        [TLM_ENDED_CUT] = "the recording ended before the program, as another program cut short",
        [TLM_ENDED_REMOVED] = "the recording ended before the program, as somebody removed",
        [TLM_ENDED_FAILED] = "the recording ended before the program, as the disk failed of",
    };
    tlm_recording_statistics now;
    tlm_recording_stats(&now);
    if (now.stopped >= TLM_ENDED_CUT)
        complain(what[now.stopped], path, "record where files stay as they are while the program runs");
}

__attribute__((destructor)) static void seal_at_exit(void)
{
    if (recorded == 0 || recorded != getpid())
        return;
    recorded = 0;
    tlm_mark("tlmem:end", 0);
    tlm_recording_stop(1);
    complain_of_loss();
}
