/* SPDX-License-Identifier: MIT
 * deflate.c: zlib, found at run time.
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

enum {
    Z_FINISH_FLUSH = 4,
    Z_END = 1,
    Z_METHOD = 8,
    WINDOW_BITS = 15,
    MEMORY_LEVEL = 8,
    LEVEL = 1,
    STRATEGY_DEFAULT = 0,
    STRATEGY_RUNS = 3
};
enum { ARENA_BYTES = 1 << 20 };

static struct {
    int (*deflate_init)(stream *, int, int, int, int, int, const char *, int);
    int (*deflate)(stream *, int);
    int (*deflate_reset)(stream *);
    int (*inflate_init)(stream *, const char *, int);
    int (*inflate)(stream *, int);
    int (*inflate_reset)(stream *);
} zlib;
static bool searched, found, opened;
static uint8_t *arena; /* zlib's state; given out once, never back */
static size_t arena_used;
static stream deflaters[2], inflater;

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
    *(void **)&zlib.deflate_init = dlsym(library, "deflateInit2_");
    *(void **)&zlib.deflate = dlsym(library, "deflate");
    *(void **)&zlib.deflate_reset = dlsym(library, "deflateReset");
    *(void **)&zlib.inflate_init = dlsym(library, "inflateInit_");
    *(void **)&zlib.inflate = dlsym(library, "inflate");
    *(void **)&zlib.inflate_reset = dlsym(library, "inflateReset");
    found = zlib.deflate_init && zlib.deflate && zlib.deflate_reset && zlib.inflate_init && zlib.inflate &&
            zlib.inflate_reset;
    return found;
}

int tlm_zlib_available(void)
{
    return find_zlib();
}

static void prepare(stream *s)
{
    memset(s, 0, sizeof *s);
    s->zalloc = arena_alloc;
    s->zfree = arena_free;
}

bool tlmi_deflate_open(void)
{
    static const int strategies[2] = {[TLMI_DEFLATE_MATCHES] = STRATEGY_DEFAULT, [TLMI_DEFLATE_RUNS] = STRATEGY_RUNS};
    if (!find_zlib())
        return false;
    arena = tlmi_own_alloc(ARENA_BYTES);
    if (!arena)
        return false;
    arena_used = 0;
    bool good = true;
    for (int mode = 0; mode < 2; mode++) {
        prepare(&deflaters[mode]);
        good = good && zlib.deflate_init(&deflaters[mode], LEVEL, Z_METHOD, WINDOW_BITS, MEMORY_LEVEL, strategies[mode],
                                         "1", (int)sizeof(stream)) == 0;
    }
    prepare(&inflater);
    good = good && zlib.inflate_init(&inflater, "1", (int)sizeof(stream)) == 0;
    opened = good;
    if (!good)
        tlmi_deflate_close();
    return good;
}

void tlmi_deflate_close(void)
{
    tlmi_own_free(arena, ARENA_BYTES);
    arena = NULL;
    opened = false;
}

uint32_t tlmi_deflate(tlmi_deflate_mode mode, const uint8_t *from, uint32_t bytes, uint8_t *to, uint32_t room)
{
    enum { NOT_WORTH_IT = 48 };
    if (!opened || bytes < NOT_WORTH_IT)
        return 0;
    if (mode == TLMI_DEFLATE_LITERALS)
        return tlmi_huffman(from, bytes, to, room);
    stream *s = &deflaters[mode];
    zlib.deflate_reset(s);
    s->next_in = from;
    s->avail_in = bytes;
    s->next_out = to;
    s->avail_out = room < bytes ? room : bytes - 1;
    if (zlib.deflate(s, Z_FINISH_FLUSH) != Z_END)
        return 0;
    return (uint32_t)(s->next_out - to);
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
