/* SPDX-License-Identifier: MIT
 * test_codec.c: events go to a block and back unchanged, and a damaged block is refused.
 *
 * tlm-test: sources=codec.c,deflate.c,matches.c,huffman.c,checksum.c,own_memory.c,system.c modes=address,valgrind */
#include <string.h>
#include <unistd.h>

#include "check.h"

static tlmi_event events[TLMI_SEGMENT_EVENTS], back[TLMI_SEGMENT_EVENTS];
static tlmi_block_header *block;
enum { SHIFT = 2 };

static void check_round_trip(uint32_t count)
{
    tlmi_codec_encode(events, count, SHIFT, block);
    block->seq = 7;
    block->thread = 3;
    tlmi_block_finish(block);
    CHECK(tlmi_block_bytes(block->payload_bytes) <= TLMI_SLOT_PAYLOAD_BYTES);
    CHECK(tlmi_codec_decode(block, SHIFT, back));
    for (uint32_t i = 0; i < count; i++) {
        CHECK(back[i].ticks == events[i].ticks >> SHIFT << SHIFT);
        CHECK(memcmp((char *)&back[i] + 8, (char *)&events[i] + 8, sizeof *events - 8) == 0);
    }
}

/* variety: how many different values objects, args and sites take; gap: largest time step. */
static void fill(uint64_t *random, uint32_t count, uint64_t variety, uint64_t gap)
{
    uint64_t ticks = next_random(random) >> 20;
    for (uint32_t i = 0; i < count; i++) {
        ticks += next_random(random) % gap;
        events[i] = (tlmi_event){.ticks = ticks,
                                 .object = 0x7f0000000000u + next_random(random) % variety * 16,
                                 .arg = next_random(random) % variety,
                                 .site = (uint32_t)(next_random(random) % variety),
                                 .count = (uint16_t)next_random(random),
                                 .device = (uint8_t)(next_random(random) % 3)};
        if (variety < 1000)
            events[i].count = 0;
        events[i].kind = (uint8_t)(1 + next_random(random) % 34);
    }
}

static void check_damage(uint64_t *random)
{
    uint32_t bytes = TLMI_BLOCK_HEADER_BYTES + block->payload_bytes;
    uint8_t *raw = (uint8_t *)block;
    for (int trial = 0; trial < 2000; trial++) {
        uint32_t at = (uint32_t)(next_random(random) % bytes);
        uint8_t flip = (uint8_t)(1u << next_random(random) % 8);
        raw[at] ^= flip;
        CHECK(!tlmi_codec_decode(block, SHIFT, back) || at >= 124); /* the last word of the header is unused */
        raw[at] ^= flip;
    }
    /* Damage with a checksum that agrees, as a hostile file would have it: refused or decoded, never out of bounds. */
    for (int trial = 0; trial < 2000; trial++) {
        uint32_t at = 56 + (uint32_t)(next_random(random) % (bytes - 56));
        uint8_t before = raw[at];
        raw[at] = (uint8_t)next_random(random);
        tlmi_column columns[TLMI_BLOCK_COLUMNS];
        memcpy(columns, block->columns, sizeof columns);
        block->payload_crc = tlmi_checksum(block + 1, block->payload_bytes);
        block->header_crc = tlmi_checksum(block, offsetof(tlmi_block_header, header_crc));
        tlmi_codec_decode(block, SHIFT, back);
        raw[at] = before;
    }
}

static void check_all(void)
{
    static const uint32_t counts[] = {1, 2, 3, 255, 256, 257, 4000, TLMI_SEGMENT_EVENTS};
    static const uint64_t varieties[] = {1, 2, 200, 300, 100000, UINT64_C(1) << 44};
    static const uint64_t gaps[] = {1, 300, 200000, UINT64_C(1) << 33};
    uint64_t random = 88172645463325252u;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t v = 0; v < sizeof varieties / sizeof *varieties; v++)
            for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
                fill(&random, counts[c], varieties[v], gaps[g]);
                check_round_trip(counts[c]);
            }
    fill(&random, 500, 50, 300);
    check_round_trip(500);
    check_damage(&random);
}

static void check_planes(void)
{
    uint8_t entries[7 * 24], planes[7 * 24], again[7 * 24];
    for (size_t i = 0; i < sizeof entries; i++)
        entries[i] = (uint8_t)(i * 37);
    tlmi_planes_split(entries, 24, 7, planes);
    CHECK(planes[0] == entries[0] && planes[1] == entries[24] && planes[7] == entries[1]);
    tlmi_planes_join(planes, 24, 7, again);
    CHECK(memcmp(entries, again, sizeof entries) == 0);
}

int main(void)
{
    tlmi_checksum_init();
    CHECK(tlmi_checksum("123456789", 9) == 0xCBF43926u); /* the check value of CRC-32 */
    block = malloc(TLMI_SLOT_BYTES + TLMI_BLOCK_HEADER_BYTES);
    CHECK(block && tlmi_codec_open());
    check_planes();
    check_all(); /* plain columns */
    if (tlm_zlib_available()) {
        CHECK(tlmi_deflate_open());
        check_all();
        tlmi_deflate_close();
    }
    tlmi_codec_close();
    free(block);
    CHECK(tlmi_own_current_bytes() == 0);
    return 0;
}
