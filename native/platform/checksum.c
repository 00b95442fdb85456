/* SPDX-License-Identifier: MIT
 * checksum.c: the CRC-32 of zlib and PNG, eight bytes a step. Thread-safe after tlmi_checksum_init; cannot fail.
 */
#include <string.h>

#include "platform/platform.h"

static uint32_t table[8][256];

void tlmi_checksum_init(void)
{
    if (table[0][1])
        return;
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++)
            rest = (rest >> 1) ^ (0xEDB88320u & (0u - (rest & 1u)));
        table[0][byte] = rest;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int step = 1; step < 8; step++)
            table[step][byte] = (table[step - 1][byte] >> 8) ^ table[0][table[step - 1][byte] & 255u];
}

uint32_t tlmi_checksum(const void *start, size_t bytes)
{
    const uint8_t *at = start;
    uint32_t rest = 0xFFFFFFFFu;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint32_t low, high;
        memcpy(&low, at, 4);
        memcpy(&high, at + 4, 4);
        low ^= rest;
        rest = table[7][low & 255u] ^ table[6][(low >> 8) & 255u] ^ table[5][(low >> 16) & 255u] ^ table[4][low >> 24] ^
               table[3][high & 255u] ^ table[2][(high >> 8) & 255u] ^ table[1][(high >> 16) & 255u] ^
               table[0][high >> 24];
    }
    for (; bytes; bytes--, at++)
        rest = (rest >> 8) ^ table[0][(rest ^ *at) & 255u];
    return ~rest;
}
