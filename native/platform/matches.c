/* SPDX-License-Identifier: MIT
 * matches.c: finds what repeats in a column, greedily: for each place the last one where the same three bytes stood, or only
 * runs of one byte.
 *
 * Nothing is cleared between calls: places of earlier ones lie too far below those of this one.
 */
#include <string.h>

#include "platform/platform.h"

enum {
    HASH_BITS = 13,
    LEAST = 3, /* bytes of a match */
    LEAST_RUN = 4,
    NEAR = 1000,       /* farther back, the distance of so short a match takes more than its bytes */
    FARTHEST = 32768,  /* the window of RFC 1951 */
    MOST = UINT16_MAX, /* bytes of a match */
    REMEMBERED = 16,   /* last places in a match where another may begin */
    PATIENCE = 8,      /* every second place is looked at after 2 to the power of it without a match, and so on */
    LOAD = 4,          /* bytes that are read to look at a place */
};

struct tlmi_matcher {
    uint32_t base;
    uint32_t last[1 << HASH_BITS]; /* place + base, by what stands there */
};

size_t tlmi_matcher_bytes(void)
{
    return sizeof(tlmi_matcher);
}

static inline uint32_t three_at(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, LOAD);
    return value << 8;
}

static inline uint32_t *last_of(tlmi_matcher *matcher, uint32_t value)
{
    return &matcher->last[value * 0x9E3779B1u >> (32 - HASH_BITS)];
}

/* How many bytes are equal, up to the end; `before` lies before `at`. */
static inline uint32_t equal_bytes(const uint8_t *before, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *start = at;
    for (; end - at >= 8; at += 8, before += 8) {
        uint64_t one, other;
        memcpy(&one, before, 8);
        memcpy(&other, at, 8);
        if (one != other)
            return (uint32_t)(at - start) + (uint32_t)__builtin_ctzll(one ^ other) / 8;
    }
    for (; at < end && *at == *before; before++)
        at++;
    return (uint32_t)(at - start);
}

uint32_t tlmi_runs_find(const uint8_t *from, uint32_t bytes, tlmi_match *found, uint32_t room)
{
    uint32_t count = 0, literals = 0, length;
    for (uint32_t at = 1; at < bytes && count < room; at += length) {
        length = equal_bytes(from + at - 1, from + at, from + bytes);
        length = length < MOST ? length : MOST;
        if (length >= LEAST_RUN) {
            found[count++] = (tlmi_match){at - literals, (uint16_t)length, 1};
            literals = at + length;
        } else {
            length++;
        }
    }
    return count;
}

uint32_t tlmi_matches_find(tlmi_matcher *matcher, const uint8_t *from, uint32_t bytes, tlmi_match *found, uint32_t room)
{
    if (matcher->base > UINT32_MAX - bytes - FARTHEST - 1)
        memset(matcher, 0, sizeof *matcher);
    uint32_t base = matcher->base + FARTHEST + 1, count = 0, literals = 0; /* what was never there is too far */
    for (uint32_t at = 0; at + LOAD <= bytes && count < room;) {
        uint32_t value = three_at(from + at), *last = last_of(matcher, value);
        uint32_t distance = base + at - *last, length = 0;
        *last = base + at;
        if (distance <= FARTHEST && three_at(from + at - distance) == value)
            length = equal_bytes(from + at - distance, from + at, from + bytes);
        if (length < LEAST || (length == LEAST && distance > NEAR)) {
            at += 1 + ((at - literals) >> PATIENCE);
            continue;
        }
        length = length < MOST ? length : MOST;
        found[count++] = (tlmi_match){at - literals, (uint16_t)length, (uint16_t)distance};
        literals = at + length;
        at += length > REMEMBERED ? length - REMEMBERED : 1;
        for (; at < literals && at + LOAD <= bytes; at++)
            *last_of(matcher, three_at(from + at)) = base + at;
        at = literals;
    }
    matcher->base = base + bytes;
    return count;
}
