/* SPDX-License-Identifier: MIT
 * Metal.h: the part of Apple's framework that backend_metal.m uses, as a stand-in for systems without it.
 *
 * Names, types and ownership rules are those of the framework: methods that begin with `new`, and
 * MTLCreateSystemDefaultDevice, return an object that the caller owns.
 */
#ifndef TLMEM_STAND_IN_METAL_H
#define TLMEM_STAND_IN_METAL_H

#import <Foundation/Foundation.h>
#include <stdint.h>

typedef NSUInteger MTLResourceOptions;
enum { MTLResourceStorageModeShared = 0, MTLResourceStorageModePrivate = 2 << 4 };

typedef NSUInteger MTLPurgeableState;
enum {
    MTLPurgeableStateKeepCurrent = 1,
    MTLPurgeableStateNonVolatile = 2,
    MTLPurgeableStateVolatile = 3,
    MTLPurgeableStateEmpty = 4
};

@protocol MTLBuffer <NSObject>
- (void *)contents;
- (NSUInteger)length;
- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)state;
@end

@protocol MTLDevice <NSObject>
- (NSString *)name;
- (NSUInteger)currentAllocatedSize;
- (uint64_t)recommendedMaxWorkingSetSize;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void);
#endif
