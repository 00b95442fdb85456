/* SPDX-License-Identifier: MIT
 * source.c: the text of the lines that sites are on, put into the file while the program runs.
 *
 * A reader must not open whatever a recording names, so the text is in the recording. The service thread follows the names as
 * meta.c writes them, and ten times a second reads the lines that are new, each source file once for all of its lines: no
 * thread of the program waits for a file, and a kill loses the lines of the last tenth of a second. No line is better than a
 * wrong one: a file that has changed since its first lines were read gives no more. Text that is in no file, as of `-c` and of
 * a notebook's cells, is offered by whoever has it.
 *
 * The program must not notice. Only regular files are opened, after a look at what they are: opening a pipe can wait, and a
 * device can act. Their numbers are high ones (own_memory.c). Closing a file gives up every record lock that the process has
 * on it, and programs lock their own script: a file with such a lock is left alone until it is free.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/recording.h"
#include "platform/address_map.h"

enum { PATH_ROOM = 4096, MOST_FILES = 4096, CHUNK_BYTES = 65536, RECORD_BYTES = 40 };
enum { MOST_FILE_BYTES = 10 << 20, MOST_KEPT_BYTES = 1 << 20, LIMIT_SHARE = 64 };
/* Reading a file again may take one part in so many of the time since it was last read. */
enum { REST = 100 };
#define WRITTEN UINT64_C(0xFFFFFFFF)

typedef struct {
    const char *path; /* not ended by 0: in a name's record, or before `text` */
    const char *text; /* what was offered; NULL: a file on disk */
    uint64_t text_bytes, blob_bytes;
    uint64_t inode, bytes, not_before_ns;
    int64_t changed_s, changed_ns;
    uint32_t path_bytes;
    uint32_t open_lines; /* wanted, and neither written nor known to be beyond its end */
    bool is_known;       /* its first lines were read: inode, bytes and changed are set */
    bool is_useless;     /* it cannot be read, or has changed */
    bool is_partial;     /* only the code that was named with the text is its own */
} source_file;

static struct {
    pthread_mutex_t lock;
    bool open;
    tlmi_meta_position position;
    source_file *files;
    uint32_t file_count;
    uint32_t line_count;
    uint64_t room_bytes, kept_bytes;
    uint8_t *chunk;
    tlmi_map numbers; /* hash of a path -> number of its file, from 1 */
    tlmi_map owners;  /* code -> number of its file */
    tlmi_map lines;   /* file and line -> code, or WRITTEN */
    tlmi_map own;     /* file, name and first line of code that an offer named */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .numbers = TLMI_MAP_EMPTY,
           .owners = TLMI_MAP_EMPTY,
           .lines = TLMI_MAP_EMPTY,
           .own = TLMI_MAP_EMPTY};

static uint64_t hash_of(uint64_t seed, const char *text, uint32_t bytes)
{
    uint64_t hash = 0xCBF29CE484222325u ^ seed;
    for (uint32_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3u;
    hash = (hash ^ bytes) * 0x9E3779B97F4A7C15u;
    return hash + (hash == 0);
}

static uint64_t key_of(uint32_t file, uint32_t line)
{
    return (uint64_t)file << 32 | line;
}

/* The number of a file, which gets one; 0: too many, no memory, or another path with the same hash. */
static uint32_t number_of(const char *path, uint32_t bytes)
{
    uint64_t hash = hash_of(0, path, bytes);
    uint32_t number = (uint32_t)tlmi_map_find(&state.numbers, hash);
    if (number != 0) {
        const source_file *file = &state.files[number - 1];
        return file->path_bytes == bytes && memcmp(file->path, path, bytes) == 0 ? number : 0;
    }
    if (state.file_count == MOST_FILES || !tlmi_map_put(&state.numbers, hash, state.file_count + 1))
        return 0;
    state.files[state.file_count] = (source_file){
        .path = path, .path_bytes = bytes, .is_useless = bytes == 0 || bytes >= PATH_ROOM || path[0] != '/'};
    return ++state.file_count;
}

/* ---- which lines are wanted ---- */

static void take_code(const uint8_t *payload, uint32_t bytes)
{
    uint32_t head[4]; /* code, first line, bytes of the path and of the name */
    if (bytes < sizeof head)
        return;
    memcpy(head, payload, sizeof head);
    if ((uint64_t)sizeof head + head[2] + head[3] > bytes)
        return;
    const char *path = (const char *)payload + sizeof head;
    uint32_t number = number_of(path, head[2]);
    if (number == 0)
        return;
    uint64_t seed = key_of(number, head[1]);
    if (state.files[number - 1].is_partial && !tlmi_map_take(&state.own, hash_of(seed, path + head[2], head[3])))
        return; /* another's; what has the name of one that was met is another's, too */
    tlmi_map_put(&state.owners, head[0], number);
}

static void take_site(const uint8_t *payload, uint32_t bytes)
{
    uint32_t fields[4]; /* site, parent, code, line */
    if (bytes < sizeof fields)
        return;
    memcpy(fields, payload, sizeof fields);
    uint32_t number = (uint32_t)tlmi_map_find(&state.owners, fields[2]);
    if (number == 0 || fields[3] == 0 || state.line_count == TLMI_MOST_LINES)
        return;
    uint64_t key = key_of(number, fields[3]);
    if (tlmi_map_find(&state.lines, key) == 0 && tlmi_map_put(&state.lines, key, fields[2])) {
        state.files[number - 1].open_lines++;
        state.line_count++;
    }
}

static void take_record(uint8_t type, const uint8_t *payload, uint32_t bytes)
{
    if (type == TLMI_META_CODE)
        take_code(payload, bytes);
    else if (type == TLMI_META_SITE)
        take_site(payload, bytes);
}

/* ---- finding them in a text ---- */

typedef struct {
    source_file *file;
    uint32_t number, line;
    uint32_t code; /* of the line at hand; 0: it is not wanted */
    uint32_t bytes;
    bool after_return; /* the last character was \r, which ends a line, alone or before \n */
    char text[TLMI_LINE_BYTES];
} line_search;

static void begin_line(line_search *search)
{
    search->line++;
    search->bytes = 0;
    uint64_t code = tlmi_map_find(&state.lines, key_of(search->number, search->line));
    search->code = code == WRITTEN ? 0 : (uint32_t)code;
}

/* Whole characters of the text, as much as there is room for; only bytes that continue one are 10xxxxxx. */
static uint32_t whole_characters(const char *text, uint32_t bytes)
{
    uint32_t end = bytes;
    while (end > 0 && end + 4 > bytes && ((unsigned char)text[end - 1] & 0xC0) == 0x80)
        end--;
    if (end == 0 || (unsigned char)text[end - 1] < 0xC0)
        return bytes;
    uint32_t lead = (unsigned char)text[end - 1];
    uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    return bytes - (end - 1) < length ? end - 1 : bytes;
}

static void end_line(line_search *search)
{
    if (search->code == 0)
        return;
    while (search->bytes > 0 && (unsigned char)search->text[search->bytes - 1] <= ' ')
        search->bytes--;
    uint32_t bytes = search->bytes == TLMI_LINE_BYTES ? whole_characters(search->text, search->bytes) : search->bytes;
    uint32_t record = RECORD_BYTES + bytes;
    if (bytes > 0 && (record > state.room_bytes || !tlmi_meta_line(search->code, search->line, search->text, bytes))) {
        state.room_bytes = 0;
        return;
    }
    state.room_bytes -= bytes > 0 ? record : 0;
    tlmi_map_put(&state.lines, key_of(search->number, search->line), WRITTEN);
    search->file->open_lines--;
}

/* How many of these bytes are before the next that may end a line. */
static size_t skip_unwanted(const uint8_t *from, size_t count)
{
    const uint8_t *end = memchr(from, '\n', count);
    size_t before = end ? (size_t)(end - from) : count;
    end = memchr(from, '\r', before);
    return end ? (size_t)(end - from) : before;
}

/* Looks through the next bytes of the text. A line begins with its first character that is not blank. */
static void search_bytes(line_search *search, const uint8_t *from, size_t count)
{
    for (size_t i = 0; i < count && search->file->open_lines > 0 && state.room_bytes > 0; i++) {
        if (search->code == 0 && !search->after_return)
            i += skip_unwanted(from + i, count - i);
        if (i == count)
            return;
        uint8_t c = from[i];
        bool is_end = c == '\r' || (c == '\n' && !search->after_return);
        bool is_second = c == '\n' && search->after_return;
        search->after_return = c == '\r';
        if (is_end) {
            end_line(search);
            begin_line(search);
        } else if (!is_second && search->code != 0 && search->bytes < TLMI_LINE_BYTES &&
                   (search->bytes > 0 || c > ' ')) {
            search->text[search->bytes++] = (char)c;
        }
    }
}

static line_search begin_search(uint32_t number)
{
    line_search search = {.file = &state.files[number - 1], .number = number};
    begin_line(&search);
    return search;
}

static void search_text(uint32_t number, const char *text, uint64_t bytes)
{
    line_search search = begin_search(number);
    search_bytes(&search, (const uint8_t *)text, bytes);
    end_line(&search);
}

/* ---- files ---- */

#if defined(__APPLE__)
#define CHANGED(status) ((status)->st_mtimespec)
#else
#define CHANGED(status) ((status)->st_mtim)
#endif

/* Whether there may be a record lock on the file that closing it would give up. */
static bool is_locked(uint64_t inode)
{
    tlmi_own_file locks;
    tlmi_own_file_keep(&locks, open("/proc/locks", O_RDONLY | O_CLOEXEC));
    if (locks.fd < 0)
        return false; /* another system, or hidden: nothing can be known */
    bool found = false;
    char line[256];
    uint32_t used = 0;
    ssize_t got;
    while (!found && (got = read(locks.fd, state.chunk, CHUNK_BYTES)) > 0)
        for (ssize_t i = 0; i < got; i++) {
            if (state.chunk[i] != '\n') {
                if (used + 1 < sizeof line)
                    line[used++] = (char)state.chunk[i];
                continue;
            }
            line[used] = 0; /* 1: POSIX  ADVISORY  WRITE 4711 08:01:131 0 EOF */
            used = 0;
            const char *kind = strstr(line, "POSIX"), *device = kind ? strchr(kind, ':') : NULL;
            const char *second = device ? strchr(device + 1, ':') : NULL;
            uint64_t number = 0;
            for (const char *at = second ? second + 1 : ""; *at >= '0' && *at <= '9'; at++)
                number = number * 10 + (uint64_t)(*at - '0');
            found |= second && number == inode;
        }
    tlmi_own_file_close(&locks);
    return found;
}

/* Whether it is a file to read, and still the one that the first lines are of. */
static bool is_sound(source_file *file, const struct stat *now)
{
    if (!S_ISREG(now->st_mode) || now->st_size <= 0 || now->st_size > MOST_FILE_BYTES)
        return false;
    if (file->is_known)
        return file->inode == (uint64_t)now->st_ino && file->bytes == (uint64_t)now->st_size &&
               file->changed_s == CHANGED(now).tv_sec && file->changed_ns == CHANGED(now).tv_nsec;
    file->inode = (uint64_t)now->st_ino;
    file->bytes = (uint64_t)now->st_size;
    file->changed_s = CHANGED(now).tv_sec;
    file->changed_ns = CHANGED(now).tv_nsec;
    return file->is_known = true;
}

static void search_file(uint32_t number)
{
    source_file *file = &state.files[number - 1];
    char path[PATH_ROOM];
    struct stat status;
    memcpy(path, file->path, file->path_bytes);
    path[file->path_bytes] = 0;
    if (stat(path, &status) != 0 || !is_sound(file, &status)) {
        file->is_useless = true;
        return;
    }
    if (is_locked(file->inode))
        return;
    tlmi_own_file own;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == EINTR))
        return; /* later */
    tlmi_own_file_keep(&own, fd);
    if (own.fd < 0 || fstat(own.fd, &status) != 0 || !is_sound(file, &status)) {
        file->is_useless = true;
        tlmi_own_file_close(&own);
        return;
    }
    line_search search = begin_search(number);
    uint64_t at = 0;
    while (at < file->bytes && file->open_lines > 0 && state.room_bytes > 0) {
        ssize_t got = pread(own.fd, state.chunk, CHUNK_BYTES, (off_t)at);
        if (got <= 0)
            break;
        size_t mark = at == 0 && got >= 3 && memcmp(state.chunk, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        search_bytes(&search, state.chunk + mark, (size_t)got - mark);
        at += (uint64_t)got;
    }
    if (at >= file->bytes) {
        end_line(&search);
        file->open_lines = 0; /* those that are left are beyond its end */
    }
    tlmi_own_file_close(&own);
}

static void search_due(uint32_t number, bool now)
{
    source_file *file = &state.files[number - 1];
    if (file->open_lines == 0 || state.room_bytes == 0)
        return;
    if (file->text) {
        search_text(number, file->text, file->text_bytes);
        file->open_lines = 0;
        return;
    }
    uint64_t begin_ns = tlmi_clock_ns();
    if (file->is_useless || (!now && begin_ns < file->not_before_ns))
        return;
    search_file(number);
    uint64_t end_ns = tlmi_clock_ns();
    file->not_before_ns = end_ns + REST * (end_ns - begin_ns);
}

/* ---- what others call ---- */

void tlmi_source_open(uint64_t limit_bytes)
{
    pthread_mutex_lock(&state.lock);
    uint64_t share = limit_bytes / LIMIT_SHARE;
    state.room_bytes = limit_bytes != 0 && share < TLMI_MOST_LINES_BYTES ? share : TLMI_MOST_LINES_BYTES;
    state.kept_bytes = 0;
    state.file_count = state.line_count = 0;
    state.position = (tlmi_meta_position){0, 0};
    tlmi_map_clear(&state.numbers);
    tlmi_map_clear(&state.owners);
    tlmi_map_clear(&state.lines);
    tlmi_map_clear(&state.own);
    state.files = tlmi_own_alloc(MOST_FILES * sizeof *state.files);
    state.chunk = tlmi_own_alloc(CHUNK_BYTES);
    state.open = state.files && state.chunk;
    pthread_mutex_unlock(&state.lock);
}

void tlmi_source_close(void)
{
    pthread_mutex_lock(&state.lock);
    for (uint32_t i = 0; i < state.file_count; i++)
        if (state.files[i].blob_bytes)
            tlmi_own_free((void *)(uintptr_t)state.files[i].path, state.files[i].blob_bytes);
    tlmi_own_free(state.files, MOST_FILES * sizeof *state.files);
    tlmi_own_free(state.chunk, CHUNK_BYTES);
    state.files = NULL;
    state.chunk = NULL;
    state.file_count = 0;
    state.open = false;
    pthread_mutex_unlock(&state.lock);
}

void tlmi_source_after_fork(void)
{
    pthread_mutex_init(&state.lock, NULL);
    tlmi_map_after_fork(&state.numbers);
    tlmi_map_after_fork(&state.owners);
    tlmi_map_after_fork(&state.lines);
    tlmi_map_after_fork(&state.own);
}

void tlmi_source_step(bool all)
{
    pthread_mutex_lock(&state.lock);
    if (state.open && state.room_bytes > 0) {
        tlmi_meta_follow(&state.position, take_record);
        for (uint32_t number = 1; number <= state.file_count; number++)
            search_due(number, all);
    }
    pthread_mutex_unlock(&state.lock);
}

/* Keeps name and text; false: no room. */
static bool keep_text(const char *name, uint32_t name_bytes, const char *text, uint64_t bytes, uint32_t *number)
{
    if (bytes > MOST_KEPT_BYTES - state.kept_bytes || state.file_count == MOST_FILES)
        return false;
    char *blob = tlmi_own_alloc(name_bytes + bytes + 1);
    if (!blob)
        return false;
    memcpy(blob, name, name_bytes);
    memcpy(blob + name_bytes, text, bytes);
    *number = number_of(blob, name_bytes);
    source_file *file = *number ? &state.files[*number - 1] : NULL;
    if (!file || file->blob_bytes) {
        tlmi_own_free(blob, name_bytes + bytes + 1);
        return file != NULL;
    }
    file->path = blob;
    file->text = blob + name_bytes;
    file->text_bytes = bytes;
    file->blob_bytes = name_bytes + bytes + 1;
    state.kept_bytes += bytes;
    return true;
}

tlm_status tlm_source_offer(const char *name, const char *text, uint64_t bytes)
{
    uint32_t name_bytes = (uint32_t)strlen(name), number = 0;
    tlm_status status = TLM_NOT_RUNNING;
    pthread_mutex_lock(&state.lock);
    if (state.open && tlmi_probe_on()) {
        tlmi_meta_follow(&state.position, take_record);
        number = (uint32_t)tlmi_map_find(&state.numbers, hash_of(0, name, name_bytes));
        if (number == 0)
            status = keep_text(name, name_bytes, text, bytes, &number) ? TLM_OK : TLM_NO_SPACE;
        else if (state.files[number - 1].open_lines > 0)
            search_text(number, text, bytes);
        status = number ? TLM_OK : status;
    }
    pthread_mutex_unlock(&state.lock);
    return status;
}

tlm_status tlm_source_code(const char *name, const char *function, uint32_t first_line)
{
    tlm_status status = TLM_NOT_RUNNING;
    pthread_mutex_lock(&state.lock);
    uint32_t number = 0;
    if (state.open)
        number = (uint32_t)tlmi_map_find(&state.numbers, hash_of(0, name, (uint32_t)strlen(name)));
    if (number != 0) {
        uint64_t key = hash_of(key_of(number, first_line), function, (uint32_t)strlen(function));
        state.files[number - 1].is_partial = true;
        status = tlmi_map_put(&state.own, key, 1) ? TLM_OK : TLM_NO_MEMORY;
    }
    pthread_mutex_unlock(&state.lock);
    return status;
}

uint32_t tlm_source_missing(const char *name)
{
    uint32_t missing = 0;
    pthread_mutex_lock(&state.lock);
    if (state.open) {
        tlmi_meta_follow(&state.position, take_record);
        uint32_t number = (uint32_t)tlmi_map_find(&state.numbers, hash_of(0, name, (uint32_t)strlen(name)));
        const source_file *file = number ? &state.files[number - 1] : NULL;
        if (file && !file->text)
            search_due(number, true); /* in a short recording it has not been tried yet */
        missing = file && file->is_useless ? file->open_lines : 0;
    }
    pthread_mutex_unlock(&state.lock);
    return missing;
}
