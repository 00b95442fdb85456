/* SPDX-License-Identifier: MIT
 * test_huffman.c: what is written without zlib is read back by zlib, for every shape of bytes and matches, and nothing is written
 * beyond the room.
 *
 * tlm-test: sources=huffman.c,matches.c,deflate.c,own_memory.c,system.c modes=address,valgrind */
#include <string.h>

#include "check.h"

enum { MOST = 70000, SLACK = 8, GUARD = 0xA5 };

static uint8_t bytes[MOST], back[MOST], out[MOST + SLACK + 1];
static tlmi_match matches[MOST];
static tlmi_matcher *matcher;

static uint32_t check_with(uint32_t matched, uint32_t count)
{
    memset(out, GUARD, sizeof out);
    uint32_t size = tlmi_huffman(bytes, count, matches, matched, out, MOST + SLACK);
    CHECK(size < count || size == 0);
    if (size) {
        CHECK(tlmi_inflate(out, size, back, count));
        CHECK(memcmp(bytes, back, count) == 0);
        CHECK(out[size + SLACK] == GUARD);
        CHECK(tlmi_huffman(bytes, count, matches, matched, out, size + SLACK) == size);
        CHECK(tlmi_huffman(bytes, count, matches, matched, out, size + SLACK - 1) == 0);
    }
    return size;
}

/* Size without matches. */
static uint32_t check(uint32_t count)
{
    check_with(tlmi_runs_find(bytes, count, matches, MOST), count);
    check_with(tlmi_runs_find(bytes, count, matches, 5), count);
    check_with(tlmi_matches_find(matcher, bytes, count, matches, 5), count);
    check_with(tlmi_matches_find(matcher, bytes, count, matches, MOST), count);
    return check_with(0, count);
}

static uint32_t size_with_matches(uint32_t count)
{
    return check_with(tlmi_matches_find(matcher, bytes, count, matches, MOST), count);
}

/* Some bytes, then pieces of what stands before, of all lengths and distances, with some bytes between. */
static void fill_repeated(uint64_t *random, uint32_t count, uint32_t longest, uint32_t farthest)
{
    for (uint32_t at = 0; at < count;) {
        uint32_t fresh = (uint32_t)(next_random(random) % 20), length = (uint32_t)(next_random(random) % longest);
        for (; fresh-- && at < count; at++)
            bytes[at] = (uint8_t)next_random(random);
        uint32_t most = at < farthest ? at : farthest;
        uint32_t distance = most ? 1 + (uint32_t)(next_random(random) % most) : 0;
        for (; distance && length-- && at < count; at++)
            bytes[at] = bytes[at - distance];
    }
}

static void check_repetition(uint64_t *random)
{
    static const uint32_t lengths[] = {3, 10, 259, 600, 70000}, distances[] = {1, 4, 300, 32768, 40000};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (size_t d = 0; d < sizeof distances / sizeof *distances; d++) {
            fill_repeated(random, 8184, lengths[l], distances[d]);
            check(8184);
        }
    }
    fill_repeated(random, MOST, 70000, 40000);
    check(MOST);
    for (uint32_t length = 255; length < 800; length++) { /* the rest of a long match is never too short */
        memset(bytes, 1, length);
        bytes[length] = 2;
        check_with(tlmi_runs_find(bytes, length + 1, matches, MOST), length + 1);
    }
    memset(bytes, 7, MOST);
    CHECK(size_with_matches(MOST) < 200);
    CHECK(check_with(tlmi_runs_find(bytes, MOST, matches, MOST), MOST) < 200);
    for (uint32_t i = 0; i < MOST; i++)
        bytes[i] = (uint8_t)(i < 32768 ? next_random(random) : bytes[i - 32768]);
    CHECK(size_with_matches(MOST) < 34000); /* the farthest distance there is */
    for (uint32_t i = 0; i < MOST; i++)
        bytes[i] = (uint8_t)(i < 32769 ? next_random(random) : bytes[i - 32769]);
    CHECK(size_with_matches(MOST) == 0); /* one more */
    /* What earlier calls saw is never taken for something of this one. */
    memset(bytes, 1, 8184);
    for (int turn = 0; turn < 140000; turn++)
        tlmi_matches_find(matcher, bytes, 100, matches, MOST);
    CHECK(size_with_matches(8184) < 100);
}

/* Byte n about as often as a power of `ratio` says. */
static void fill_skewed(uint64_t *random, uint32_t count, uint32_t ratio, uint32_t values)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t value = 0;
        while (value + 1 < values && next_random(random) % 100 < ratio)
            value++;
        bytes[i] = (uint8_t)(value * 37);
    }
}

/* Counts like the Fibonacci numbers have the longest codes: longer than the format takes. */
static uint32_t fill_fibonacci(int values)
{
    uint32_t count = 0, last = 1, now = 1;
    for (int value = 0; value < values; value++) {
        for (uint32_t i = 0; i < last && count < MOST; i++)
            bytes[count++] = (uint8_t)value;
        uint32_t next = last + now;
        last = now;
        now = next;
    }
    return count;
}

int main(void)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 47, 255, 256, 257, 5551, 5552, 5553, 8184};
    uint64_t random = 20;
    if (!tlmi_deflate_open()) {
        puts("zlib is not on this machine: nothing could be read back");
        return 1;
    }
    matcher = tlmi_own_alloc(tlmi_matcher_bytes());
    CHECK(matcher);
    check_repetition(&random);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (uint32_t ratio = 0; ratio <= 100; ratio += 20) {
            for (uint32_t values = 1; values <= 256; values += values < 4 ? 1 : 63) {
                fill_skewed(&random, counts[c], ratio, values);
                check(counts[c]);
            }
        }
    }
    fill_skewed(&random, MOST, 90, 100);
    CHECK(check(MOST) > 0);
    memset(bytes, 7, MOST);
    CHECK(check(8184) < 8184 / 8 + 100); /* one bit each */
    for (uint32_t i = 0; i < MOST; i++)
        bytes[i] = (uint8_t)next_random(&random);
    CHECK(check(8184) == 0); /* noise does not get smaller */
    for (int values = 2; values <= 24; values++)
        check(fill_fibonacci(values));
    CHECK(check(fill_fibonacci(23)) > 0);
    tlmi_own_free(matcher, tlmi_matcher_bytes());
    tlmi_deflate_close();
    CHECK(tlmi_own_current_bytes() == 0);
    return 0;
}
