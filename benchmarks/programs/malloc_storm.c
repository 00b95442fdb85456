/* Takes and gives back blocks of 64 to 319 bytes, one at a time: nothing but the allocator. */
#include <stdlib.h>

void storm(long pairs)
{
    unsigned state = 1;
    for (long i = 0; i < pairs; i++) {
        state = state * 1664525u + 1013904223u;
        volatile char *block = malloc(64 + (state >> 8 & 255));
        if (block)
            *block = 1;
        free((void *)block);
    }
}
