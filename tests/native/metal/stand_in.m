/* SPDX-License-Identifier: MIT
 * stand_in.m: a driver with the habits of Metal: whole pages, and an autoreleased helper object in each call that makes one.
 */
#import <Metal/Metal.h>
#include <sys/mman.h>

#include "stand_in.h"

/* Changed by any thread; gcc's Objective-C has no _Atomic. */
static int64_t buffers, helpers, allocated_bytes;
static bool refuses, without_device;

static void add_to(int64_t *counter, int64_t change)
{
    __atomic_fetch_add(counter, change, __ATOMIC_SEQ_CST);
}

static int64_t value_of(const int64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

/* What the framework leaves in the pool in force. */
@interface StandInHelper : NSObject
@end

@implementation StandInHelper
- (id)init
{
    self = [super init];
    add_to(&helpers, 1);
    return self;
}
- (void)dealloc
{
    add_to(&helpers, -1);
    [super dealloc];
}
@end

@interface StandInBuffer : NSObject <MTLBuffer> {
    void *memory;
    NSUInteger whole;
}
- (id)initWithLength:(NSUInteger)length;
@end

@implementation StandInBuffer
- (id)initWithLength:(NSUInteger)length
{
    self = [super init];
    whole = (length + STAND_IN_PAGE_BYTES - 1) / STAND_IN_PAGE_BYTES * STAND_IN_PAGE_BYTES;
    memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    add_to(&buffers, 1);
    add_to(&allocated_bytes, (int64_t)whole);
    return self;
}
- (void)dealloc
{
    munmap(memory, whole);
    add_to(&buffers, -1);
    add_to(&allocated_bytes, -(int64_t)whole);
    [super dealloc];
}
- (void *)contents
{
    return memory;
}
- (NSUInteger)length
{
    return whole; /* not what was asked for: a pool that had it in its key would never hit */
}
- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)state
{
    [[[StandInHelper alloc] init] autorelease];
    if (state == MTLPurgeableStateEmpty)
        madvise(memory, whole, MADV_DONTNEED);
    return MTLPurgeableStateNonVolatile;
}
@end

@interface StandInDevice : NSObject <MTLDevice>
@end

@implementation StandInDevice
- (NSString *)name
{
    return @"stand-in";
}
- (NSUInteger)currentAllocatedSize
{
    return (NSUInteger)value_of(&allocated_bytes);
}
- (uint64_t)recommendedMaxWorkingSetSize
{
    return STAND_IN_WORKING_SET_BYTES;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options
{
    [[[StandInHelper alloc] init] autorelease];
    if (refuses || length == 0 || options != MTLResourceStorageModeShared)
        return nil;
    return [[StandInBuffer alloc] initWithLength:length];
}
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void)
{
    [[[StandInHelper alloc] init] autorelease];
    return without_device ? nil : [[StandInDevice alloc] init];
}

int64_t stand_in_buffers(void)
{
    return value_of(&buffers);
}

int64_t stand_in_helpers(void)
{
    return value_of(&helpers);
}

void stand_in_refuse(bool refuse)
{
    refuses = refuse;
}

void stand_in_without_device(bool none)
{
    without_device = none;
}

int64_t stand_in_use_carelessly(int count)
{
    NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    for (int i = 0; i < count; i++)
        [[device newBufferWithLength:100 options:MTLResourceStorageModeShared] release];
    [device release];
    int64_t left = value_of(&helpers);
    [pool drain];
    return left;
}
