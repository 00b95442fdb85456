/* SPDX-License-Identifier: MIT
 * test_player.c: the player ends with its own exit code, whatever it is given, and touches nothing that is not its own.
 *
 * Its main runs in a child for each trace; a sanitizer that finds something ends the child with another code.
 *
 * tlm-test: sources= modes=address,thread */
#include <sys/wait.h>

#define main tlm_player_main
#include "player/player.c"
#undef main

#include "check.h"

enum { DONE = 0, BLOCKS = 16, MOST_EVENTS = 6000, RANDOM_TRACES = 60, HEAD_BYTES = 24 };

/* A block that the machine does not have is refused by malloc, and not by the sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:detect_leaks=0:max_allocation_size_mb=4096";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=4096";
}

#ifdef __SANITIZE_THREAD__
enum { MANY_THREADS = 50 }; /* it takes turns slowly */
#else
enum { MANY_THREADS = 2000 };
#endif

static event events[MOST_EVENTS];
static size_t count;

static void add(int kind, uint32_t of, uint64_t bytes, int thread, int flags)
{
    CHECK(count < MOST_EVENTS);
    events[count++] = (event){
        .bytes = bytes, .block = of, .thread = (uint16_t)thread, .kind = (uint8_t)kind, .flags = (uint8_t)flags};
}

static void write_whole(int file, const void *from, size_t bytes)
{
    CHECK(write(file, from, bytes) == (ssize_t)bytes);
}

/* The exit code of a player that reads a head and so many bytes of the events; 256 and more: a signal. */
static int played(uint64_t blocks_said, uint64_t events_said, size_t bytes)
{
    char path[256], *words[] = {"tlmem-player", "-", NULL};
    FILE *input = fopen(temporary_path(path, sizeof path, "player"), "w+");
    CHECK(input != NULL);
    remove(path);
    uint64_t head[3] = {0, blocks_said, events_said};
    memcpy(head, "TLMPLAY1", 8);
    write_whole(fileno(input), head, sizeof head);
    write_whole(fileno(input), events, bytes);
    CHECK(lseek(fileno(input), 0, SEEK_SET) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        CHECK(dup2(fileno(input), STDIN_FILENO) == STDIN_FILENO && dup2(nothing, STDOUT_FILENO) == STDOUT_FILENO);
        CHECK(dup2(nothing, STDERR_FILENO) == STDERR_FILENO || true);
        _exit(tlm_player_main(2, words));
    }
    int status_of_child;
    CHECK(waitpid(child, &status_of_child, 0) == child);
    fclose(input);
    return WIFEXITED(status_of_child) ? WEXITSTATUS(status_of_child) : 256 + WTERMSIG(status_of_child);
}

static int played_whole(void)
{
    while (count < BLOCKS)
        add(POINT, 0, 0, 0, 0);
    int code = played(BLOCKS, count, count * sizeof *events);
    count = 0;
    return code;
}

static void test_a_sound_trace_is_played(void)
{
    static const int flags[] = {0, ALIGNED, NUMPY, UNTOUCHED, ADVISED, NUMPY | UNTOUCHED};
    for (uint32_t n = 0; n < 6; n++)
        add(ALLOC, n, n % 2 ? 1 : 5 << 20, (int)n % 3, flags[n]);
    for (uint32_t n = 0; n < 6; n++) {
        add(RESIZE, n, 0, 1, 0);
        add(ALLOC, n + 6, 1 + 70000 * n, 1, NUMPY);
    }
    add(PAUSE, 0, 1000, 2, 0);
    add(BEGIN, 0, 0, 0, 0);
    add(END, 0, 0, 1, 0);
    for (uint32_t n = 6; n < 12; n++)
        add(FREE, n, 0, 1, 0);
    CHECK(played_whole() == DONE);
}

/* Cut at every byte of the head and of the first events. */
static void test_a_cut_trace_is_malformed(void)
{
    for (size_t bytes = 0; bytes < 3 * sizeof *events; bytes += 7) {
        for (uint32_t n = 0; n < BLOCKS; n++)
            add(ALLOC, n, 100, 0, 0);
        CHECK(played(BLOCKS, BLOCKS, bytes) == MALFORMED);
        count = 0;
    }
    CHECK(played(0, 0, 0) == MALFORMED && played(9, 8, 0) == MALFORMED);
    CHECK(played(UINT64_MAX, UINT64_MAX, 0) == MALFORMED && played(MOST_BLOCKS + 1, UINT64_MAX, 0) == MALFORMED);
}

static void test_sizes_of_zero_and_huge_ones(void)
{
    static const struct {
        uint64_t bytes;
        int code;
    } sizes[] = {{0, MALFORMED}, {LARGEST_BLOCK, NO_MEMORY}, {LARGEST_BLOCK + 1, MALFORMED}, {UINT64_MAX, MALFORMED}};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        for (int resizes = 0; resizes < 2; resizes++)
            for (int flags = 0; flags <= UNTOUCHED; flags++) {
                add(ALLOC, 0, 100, 0, NUMPY);
                if (resizes)
                    add(RESIZE, 0, 0, 0, 0);
                add(ALLOC, 1, sizes[n].bytes, 0, flags);
                CHECK(played_whole() == sizes[n].code);
            }
}

static void test_blocks_that_are_not_there(void)
{
    static const int kinds[] = {FREE, RESIZE};
    static const uint32_t of[] = {0, 1, BLOCKS - 1, BLOCKS, UINT32_MAX};
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t n = 0; n < 5; n++) {
            add(ALLOC, 0, 100, 0, 0);
            add(FREE, 0, 0, 3, 0);
            add(kinds[kind], of[n], 0, 0, 0);
            CHECK(played_whole() == MALFORMED);
        }
    add(ALLOC, 0, 100, 0, 0);
    add(RESIZE, 0, 0, 0, 0);
    add(ALLOC, 0, 200, 0, 0); /* into itself */
    CHECK(played_whole() == MALFORMED);
}

static void test_thousands_of_threads(void)
{
    for (int n = 0; n < MANY_THREADS; n++)
        add(ALLOC, (uint32_t)n, 1000, n + 1, 0);
    for (int n = 0; n < MANY_THREADS; n++) {
        add(END, 0, 0, n + 1, 0);
        add(FREE, (uint32_t)n, 0, MOST_THREADS - 1, 0);
    }
    int code = played(MANY_THREADS, count, count * sizeof *events);
    CHECK(code == DONE || code == NO_MEMORY); /* a system may have fewer threads left */
    count = 0;
}

static void test_random_events(void)
{
    uint64_t random = 7;
    for (int trace = 0; trace < RANDOM_TRACES; trace++) {
        for (int n = 0; n < 60; n++) {
            uint64_t some = next_random(&random);
            int kind = some % 50 ? 1 + (int)(some >> 8) % 5 : (int)(some >> 8) % 256;
            add(kind, (uint32_t)(some >> 16) % (BLOCKS + some % 70 / 69), kind == PAUSE ? 5 : (some >> 24) % 300000,
                (int)(some >> 44) % 4, (int)(some >> 50) % 9);
        }
        int code = played_whole();
        CHECK(code == DONE || code == MALFORMED);
    }
}

int main(void)
{
    test_a_sound_trace_is_played();
    test_a_cut_trace_is_malformed();
    test_sizes_of_zero_and_huge_ones();
    test_blocks_that_are_not_there();
    test_thousands_of_threads();
    test_random_events();
    return 0;
}
