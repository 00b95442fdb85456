/* A stand-in for the library of an accelerator: it reports what its caching allocator does through the symbol that PyTorch's
 * real ones call, from several threads, each time under the allocator's lock. Addresses are its own, and memory is none. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int8_t type;
    int8_t index;
} device;

extern void report(void *block, int64_t change, size_t allocated, size_t reserved,
                   device of) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

enum { CUDA = 1, SEGMENT = 1 << 21, LIVE = 8 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t allocated[2], reserved[2], reserved_peak;

static void change(int8_t index, uint64_t address, int64_t bytes)
{
    pthread_mutex_lock(&lock);
    allocated[index] += (size_t)bytes;
    while (allocated[index] > reserved[index])
        reserved[index] += SEGMENT;
    report((void *)(uintptr_t)address, bytes, allocated[index], reserved[index], (device){CUDA, index});
    pthread_mutex_unlock(&lock);
}

typedef struct {
    int8_t index;
    uint64_t first;
    int rounds;
} job;

/* Each round allocates a block and frees the one before the last LIVE ones; the last LIVE stay. */
static void *work(void *argument)
{
    const job *mine = argument;
    for (int i = 0; i < mine->rounds; i++) {
        change(mine->index, mine->first + (uint64_t)(i % (LIVE + 1)) * 4096, 512 * (1 + i % 5));
        if (i >= LIVE)
            change(mine->index, mine->first + (uint64_t)((i - LIVE) % (LIVE + 1)) * 4096, -512 * (1 + (i - LIVE) % 5));
    }
    return NULL;
}

/* Two threads an accelerator; both accelerators use the same addresses. Returns what is reserved in the end, of both. */
uint64_t run_accelerators(int rounds)
{
    pthread_t threads[4];
    job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (job){(int8_t)(i / 2), 0x7f0000000000u + (uint64_t)(i % 2) * 0x1000000, rounds};
        pthread_create(&threads[i], NULL, work, &jobs[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return reserved[0] + reserved[1];
}
