/* SPDX-License-Identifier: MIT
 * device.h: what device.c, reserve.c, size_class.c, buffers.c and limit.c share: the device, and the block around a payload.
 *
 *     block (64 bytes)                  payload, aligned to 64
 *     | links token bytes asked ... |   | capacity of the size class ...        |
 *     ^ what the driver gave            ^ what an object has
 *
 * The block lies in the device's own memory, so that giving back needs no look-up. All bytes here and in the statistics of
 * buffers are as the driver counts them: the block and the capacity.
 *
 * device.c and buffers.c are one layer in two files: who talks to the driver, and who keeps what the program gave back.
 */
#ifndef TLMI_DEVICE_H
#define TLMI_DEVICE_H

#include "log/log.h"
#include "memory/devices/backend.h"
#include "memory/devices/buffers.h"
#pragma GCC visibility push(hidden)

enum {
    TLMI_BLOCK_BYTES = 64,
    TLMI_CLASSES = 156,
    TLMI_FIRST_DEVICE = TLM_DEVICE_CPU,
    TLMI_DEVICES = 3,
    TLMI_FIRST_LIMIT = 32, /* numbers of adaptors: 32 to 255, what an event has room for */
    TLMI_LIMITS = 224,
};
#define TLMI_MOST_BYTES (UINT64_C(1) << 46) /* more than the address space of a process */

/* A store that is seen after all that come before it: also by a child that another thread forks just now. */
#define TLMI_STORE_AFTER(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELEASE)

/* Odd numbers, so that memory that is not a block is hardly ever taken for one. */
typedef enum {
    TLMI_BLOCK_ACTIVE = 0xA17E3D05,
    TLMI_BLOCK_FREE = 0xF3EEB10B,
    TLMI_BLOCK_GONE = 0x60E5B10B,
} tlmi_block_state;

typedef struct tlmi_block tlmi_block;
struct tlmi_block {
    tlmi_block *newer, *older; /* of the free ones of its class; `newer` is the next stretch in a reserve */
    void *token;               /* the driver's */
    uint64_t bytes;            /* this block and the capacity */
    uint64_t asked;            /* by the object that has it */
    uint64_t stamp;            /* puts of the device so far when it was put: its age */
    uint32_t state;            /* tlmi_block_state, under the lock of its class */
    uint16_t class;
    uint8_t device; /* that it came from */
    uint8_t owner;  /* that it was asked from: the device, or an adaptor over it */
    bool reserved;  /* cut from the reserve: goes back there, never to the driver */
};
_Static_assert(sizeof(tlmi_block) == TLMI_BLOCK_BYTES, "the payload behind it is aligned to 64");

static inline tlmi_block *tlmi_block_of(void *payload)
{
    return (tlmi_block *)((uint8_t *)payload - TLMI_BLOCK_BYTES);
}
static inline void *tlmi_block_payload(tlmi_block *block)
{
    return (uint8_t *)block + TLMI_BLOCK_BYTES;
}

/* Free blocks of one size, newest first, and what was counted of that size. At every instant `newest` and the blocks' `older`
 * are a list; the rest follows from it, and is made anew in a forked child when a thread that is not there had the lock. */
typedef struct {
    tlmi_spin lock;
    uint32_t free_count;
    tlmi_block *newest, *oldest;
    uint64_t active_count, hits, misses;
    uint64_t unused;
} __attribute__((aligned(64))) tlmi_size_class;

/* One piece of memory from the driver, cut to size on demand. */
typedef struct {
    tlmi_spin lock;
    uint32_t stretches;     /* free ones */
    _Atomic uint64_t bytes; /* 0: nothing was reserved */
    uint64_t free_bytes;
    tlmi_block *first; /* free stretches by address; `bytes` is their length */
} tlmi_reserve;

typedef struct {
    const tlmi_backend *backend;
    _Atomic bool used;
    tlmi_spin lock;   /* what follows, up to the gap */
    uint32_t claimed; /* fork epoch of the one that prepares the first use; 0: nobody yet */
    tlm_device_statistics counted;

    _Atomic int policy;
    _Atomic uint64_t budget_bytes; /* of TLM_BUFFERS_BOUNDED */
    _Atomic uint64_t kept_bytes;   /* in the classes' lists; what the budget bounds */
    _Atomic uint64_t puts;         /* approximately; only compared */
    _Atomic uint64_t
        oldest[TLMI_CLASSES]; /* stamp of each class's oldest block; UINT64_MAX: none. A hint outside its lock */
    tlmi_size_class classes[TLMI_CLASSES];
    _Atomic uint32_t reserving; /* 1: a reserve is made or being made */
    tlmi_reserve reserve;
    const char *ignored; /* a variable of the environment that says nothing useful */
} tlmi_device;

/* ---- device.c ---- */
tlmi_device *tlmi_device_of(uint32_t number);    /* also of an adaptor: the device below it. NULL: none */
tlmi_device *tlmi_device_ready(uint32_t number); /* the same; NULL also when it cannot be used here */
uint32_t tlmi_device_number(const tlmi_device *device);
/* From the driver, counted and recorded. NULL: refused, counted. */
tlmi_block *tlmi_device_alloc(tlmi_device *device, uint64_t bytes);
void tlmi_device_free(tlmi_device *device, tlmi_block *block);

/* ---- reserve.c ---- */
/* Takes over a piece of memory from the driver, once. */
void tlmi_reserve_open(tlmi_reserve *reserve, tlmi_block *memory);
tlmi_block *tlmi_reserve_alloc(tlmi_reserve *reserve, uint64_t bytes); /* NULL: no stretch is long enough */
void tlmi_reserve_free(tlmi_reserve *reserve, tlmi_block *block);
void tlmi_reserve_mend(tlmi_reserve *reserve); /* in a forked child, its only thread */

/* ---- size_class.c ---- */
uint32_t tlmi_class_of(uint64_t bytes); /* of a payload of 1 to TLMI_MOST_BYTES */
uint64_t tlmi_class_bytes(uint32_t class);
/* Both under the lock of the block's class. */
void tlmi_class_push(tlmi_device *device, tlmi_block *block);
void tlmi_class_unlink(tlmi_device *device, tlmi_block *block);
/* A block that is in no list and no object's goes to the reserve or the driver. */
void tlmi_class_return(tlmi_device *device, tlmi_block *block);
uint64_t tlmi_class_return_oldest(tlmi_device *device);           /* its bytes; 0: nothing is kept */
uint64_t tlmi_class_shrink(tlmi_device *device, uint64_t target); /* until so much is kept; the bytes that went */
void tlmi_class_mend(tlmi_device *device);                        /* in a forked child, its only thread */
static inline void tlmi_buffers_event(const tlmi_device *device, tlm_kind kind, uint64_t bytes)
{
    if (tlmi_probe_on())
        tlmi_event_append((uint8_t)kind, (uint8_t)tlmi_device_number(device), 0, bytes, 0, 0);
}

/* ---- limit.c ---- */
uint32_t tlmi_limit_inner(uint32_t number); /* the device it stands before; 0: no such adaptor */
const char *tlmi_limit_name(uint32_t number);
tlm_status tlmi_limit_alloc(uint32_t number, uint64_t bytes, void **payload);
/* Memory of an adaptor was given back: what it stands before. */
uint32_t tlmi_limit_leave(uint32_t number, uint64_t bytes);
void tlmi_limit_stats(uint32_t number, tlm_device_statistics *out);
#pragma GCC visibility pop
#endif
