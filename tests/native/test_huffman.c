/* SPDX-License-Identifier: MIT
 * test_huffman.c: what is written without zlib is read back by zlib, for every shape of bytes, and nothing is written beyond the room.
 *
 * tlm-test: sources=huffman.c,deflate.c,own_memory.c,system.c modes=address,valgrind */
#include <string.h>

#include "check.h"

enum { MOST = 70000, SLACK = 8, GUARD = 0xA5 };

static uint8_t bytes[MOST], back[MOST], out[MOST + SLACK + 1];

static uint32_t check(uint32_t count)
{
    memset(out, GUARD, sizeof out);
    uint32_t size = tlmi_huffman(bytes, count, out, MOST + SLACK);
    CHECK(size < count || size == 0);
    if (size) {
        CHECK(tlmi_inflate(out, size, back, count));
        CHECK(memcmp(bytes, back, count) == 0);
        CHECK(out[size + SLACK] == GUARD);
        CHECK(tlmi_huffman(bytes, count, out, size + SLACK) == size);
        CHECK(tlmi_huffman(bytes, count, out, size + SLACK - 1) == 0);
    }
    return size;
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
    tlmi_deflate_close();
    return 0;
}
