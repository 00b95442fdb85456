/* SPDX-License-Identifier: MIT
 * backend_metal.m: memory of Metal buffers that processor and GPU share. On macOS; elsewhere backend_absent.c stands for it.
 *
 * Each call of the driver has an autorelease pool of its own: Metal leaves helper objects in whatever pool is in force, and a
 * thread that computes for hours may have none that is ever drained. No ARC and no blocks, so that the same source is built
 * and tested on other systems against a stand-in (tests/native/metal).
 * Metal does not work in a forked child: there the device is missing, and buffers of the parent are left alone.
 */
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#include <pthread.h>
#include <string.h>

#include "memory/devices/backend.h"

static pthread_once_t gpu_once = PTHREAD_ONCE_INIT;
static id<MTLDevice> gpu; /* nil: there is none */
static bool is_forked;    /* written while the child has one thread */

static void note_fork(void)
{
    is_forked = true;
}

static void open_gpu(void)
{
    NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
    gpu = MTLCreateSystemDefaultDevice();
    [pool drain];
    pthread_atfork(NULL, NULL, note_fork);
}

static const char *missing(void)
{
    pthread_once(&gpu_once, open_gpu);
    if (is_forked)
        return "Metal does not work in a forked child; start the process anew (spawn)";
    return gpu == nil ? "the system has no Metal device, or this process may not use it" : NULL;
}

/* Not beyond what the GPU can work with at once: more would only move other memory to disk. */
static id<MTLBuffer> new_buffer(uint64_t bytes)
{
    if (bytes > [gpu recommendedMaxWorkingSetSize] ||
        [gpu currentAllocatedSize] > [gpu recommendedMaxWorkingSetSize] - bytes)
        return nil;
    return [gpu newBufferWithLength:(NSUInteger)bytes options:MTLResourceStorageModeShared];
}

static bool alloc_memory(uint64_t bytes, void **memory, void **token)
{
    if (missing())
        return false;
    NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
    id<MTLBuffer> buffer = new_buffer(bytes);
    *memory = buffer == nil ? NULL : [buffer contents];
    *token = (void *)buffer;
    if (buffer != nil && *memory == NULL)
        [buffer release];
    [pool drain];
    return *memory != NULL;
}

static void free_memory(void *memory, void *token, uint64_t bytes)
{
    (void)memory, (void)bytes;
    if (missing())
        return;
    NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
    [(id<MTLBuffer>)token release];
    [pool drain];
}

/* Only whole buffers can be emptied: what is to be kept is put back. */
static void drop(void *memory, void *token, uint64_t bytes, uint64_t kept)
{
    enum { MOST_KEPT_BYTES = 64 };
    uint8_t saved[MOST_KEPT_BYTES];
    if (missing() || kept > sizeof saved) {
        memset((uint8_t *)memory + kept, 0, bytes - kept);
        return;
    }
    NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
    id<MTLBuffer> buffer = (id<MTLBuffer>)token;
    memcpy(saved, memory, kept);
    [buffer setPurgeableState:MTLPurgeableStateEmpty];
    [buffer setPurgeableState:MTLPurgeableStateNonVolatile];
    memcpy(memory, saved, kept);
    [pool drain];
}

static uint64_t driver_bytes(void)
{
    return missing() ? 0 : [gpu currentAllocatedSize];
}

const tlmi_backend tlmi_backend_metal = {
    .name = "metal",
    .missing = missing,
    .alloc = alloc_memory,
    .free = free_memory,
    .drop = drop,
    .driver_bytes = driver_bytes,
    .policy = TLM_BUFFERS_DIRECT,
    .preallocates = true,
};
