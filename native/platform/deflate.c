/* SPDX-License-Identifier: MIT
 * deflate.c: columns to zlib streams, by matches.c and huffman.c, and back by zlib, found at run time.
 *
 * zlib is on every system that has a CPython, but its header often is not, so the library is opened by name and the few
 * public names and the one public struct that are needed are declared here (docs/decisions/zlib-at-run-time.md). Its state
 * lives in our own memory. One call at a time: the caller holds recording.work.
 */
#include <dlfcn.h>
#include <string.h>

#include "platform/platform.h"

typedef struct { /* z_stream of zlib 1.x, a stable public layout */
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *msg;
    void *state;
    void *(*zalloc)(void *, unsigned, unsigned);
    void (*zfree)(void *, void *);
    void *opaque;
    int data_type;
    unsigned long adler, reserved;
} stream;

enum { Z_FINISH_FLUSH = 4, Z_END = 1, ARENA_BYTES = 1 << 17, MOST_MATCHES = 1 << 15 };

static struct {
    int (*inflate_init)(stream *, const char *, int);
    int (*inflate)(stream *, int);
    int (*inflate_reset)(stream *);
} zlib;
static bool searched, found, opened;
static uint8_t *arena; /* the inflater's state; given out once, never back */
static size_t arena_used;
static stream inflater;
static tlmi_matcher *matcher;
static tlmi_match *matches;

static void *arena_alloc(void *unused, unsigned items, unsigned size)
{
    (void)unused;
    size_t bytes = ((size_t)items * size + 15) & ~(size_t)15;
    if (arena_used + bytes > ARENA_BYTES)
        return NULL;
    void *start = arena + arena_used;
    arena_used += bytes;
    return start;
}

static void arena_free(void *unused, void *start)
{
    (void)unused;
    (void)start;
}

static bool find_zlib(void)
{
    static const char *const names[] = {"libz.so.1", "libz.1.dylib", "libz.dylib", "libz.so"};
    void *library = NULL;
    if (searched)
        return found;
    searched = true;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&zlib.inflate_init = dlsym(library, "inflateInit_");
    *(void **)&zlib.inflate = dlsym(library, "inflate");
    *(void **)&zlib.inflate_reset = dlsym(library, "inflateReset");
    found = zlib.inflate_init && zlib.inflate && zlib.inflate_reset;
    return found;
}

int tlm_zlib_available(void)
{
    return find_zlib();
}

bool tlmi_deflate_open(void)
{
    if (!find_zlib())
        return false;
    arena = tlmi_own_alloc(ARENA_BYTES);
    matcher = tlmi_own_alloc(tlmi_matcher_bytes());
    matches = tlmi_own_alloc(MOST_MATCHES * sizeof *matches);
    arena_used = 0;
    inflater = (stream){.zalloc = arena_alloc, .zfree = arena_free};
    opened = arena && matcher && matches && zlib.inflate_init(&inflater, "1", (int)sizeof(stream)) == 0;
    if (!opened)
        tlmi_deflate_close();
    return opened;
}

void tlmi_deflate_close(void)
{
    tlmi_own_free(arena, ARENA_BYTES);
    tlmi_own_free(matcher, tlmi_matcher_bytes());
    tlmi_own_free(matches, MOST_MATCHES * sizeof *matches);
    arena = NULL;
    matcher = NULL;
    matches = NULL;
    opened = false;
}

uint32_t tlmi_deflate(tlmi_deflate_mode mode, const uint8_t *from, uint32_t bytes, uint8_t *to, uint32_t room)
{
    enum { NOT_WORTH_IT = 48 };
    uint32_t count = 0;
    if (!opened || bytes < NOT_WORTH_IT)
        return 0;
    if (mode == TLMI_DEFLATE_MATCHES)
        count = tlmi_matches_find(matcher, from, bytes, matches, MOST_MATCHES);
    else if (mode == TLMI_DEFLATE_RUNS)
        count = tlmi_runs_find(from, bytes, matches, MOST_MATCHES);
    return tlmi_huffman(from, bytes, matches, count, to, room);
}

bool tlmi_inflate(const uint8_t *from, uint32_t bytes, uint8_t *to, uint32_t expected)
{
    if (!opened)
        return false;
    zlib.inflate_reset(&inflater);
    inflater.next_in = from;
    inflater.avail_in = bytes;
    inflater.next_out = to;
    inflater.avail_out = expected;
    return zlib.inflate(&inflater, Z_FINISH_FLUSH) == Z_END && inflater.avail_out == 0;
}
