/* SPDX-License-Identifier: MIT
 * tlmem_replay.h: what an allocator would have reserved for allocations and frees that were recorded.
 *
 * Words. A *block* is what one allocation gets; the caller numbers them from 0. A *segment* is what the driver of the device gave;
 * blocks are cut from it. A *lane* is a stream of one pool: a free block serves only its own lane; lanes are numbered from 0.
 * The default pool is 0; others are *private*: of a CUDA graph, or made by the program.
 * *Reserved* are the bytes of all segments, of an expandable one those that are mapped.
 *
 * The rules are those of PyTorch's caching allocator for CUDA, with its numbers as settings, so that allocators of the same kind
 * with other numbers can be replayed too. `docs/decisions/replay.md` says where each rule is documented.
 *
 * Who owns what. A replay copies what it is given and keeps its state in our own bookkeeping memory, given back by
 * tlm_sim_destroy. It belongs to one thread at a time; different replays are independent. It never touches a device.
 */
#ifndef TLMEM_REPLAY_H
#define TLMEM_REPLAY_H

#include "tlmem_log.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* cffi: begin */
typedef struct {
    uint64_t capacity_bytes;  /* that the device has for segments; 0: more than is ever asked for */
    uint64_t allowed_bytes;   /* that the process may have: a memory fraction. A request whose segment would pass it is
                                    refused before the driver is asked; 0: no such limit */
    uint64_t max_split_bytes; /* blocks of this size and more are not split; 0: all may be */
    uint64_t max_rounding_bytes; /* such a block serves requests that are less than this smaller */
    uint64_t grain_bytes;        /* sizes are multiples of it; a power of two */
    uint64_t small_bytes;        /* requests up to this lie in small segments */
    uint64_t small_segment_bytes, large_segment_bytes;
    uint64_t own_segment_bytes; /* requests from this on get a segment of their own size, */
    uint64_t round_bytes;       /* rounded up to a multiple of this */
    double collect_above;       /* share of allowed_bytes; 0, or no such limit: unused segments are never collected */
    uint32_t divisions[16]; /* of sizes from 1 MiB, 2 MiB, ... on between powers of two; 0: multiples of the grain */
    uint32_t expandable;    /* 1: segments grow by pages, which are as large as a small and a large segment */
    uint32_t keeps_log;     /* 1: tlm_sim_log has what the driver gave and took */
} tlm_sim_settings;

typedef enum {
    TLM_SIM_ALLOC = 1,
    TLM_SIM_FREE = 2,    /* of a block that is in use */
    TLM_SIM_EMPTY = 3,   /* the program gives unused segments back, as torch.cuda.empty_cache() does */
    TLM_SIM_COLLECT = 4, /* unused segments are collected until `bytes` are; where these are not enough, the driver had
                            refused a request, and all that is unused goes back */
    TLM_SIM_WAIT = 5, /* the program frees a block that another stream still uses. It is reused after its FREE, or after
                            the allocator releases unused segments, which synchronizes all streams */
    TLM_SIM_IDLE =
        6, /* nothing uses the private pool of `lane` any more: its unused segments go back like all others */
} tlm_sim_kind;

/* Flags of an ALLOC: no free block fitted where this was recorded, and the driver refused so many times. */
enum { TLM_SIM_REFUSED_ONCE = 1, TLM_SIM_REFUSED_TWICE = 2, TLM_SIM_NOT_FOUND = 4 };

/* `flags`: TLM_SIM_NEVER_EXPANDS: segments of its pool come from an allocator of its own, so settings.expandable is not for it. */
typedef struct {
    uint32_t pool, flags;
} tlm_sim_lane;
enum { TLM_SIM_NEVER_EXPANDS = 1 };

typedef struct {
    uint64_t bytes; /* that were asked for; up to 2^46 */
    uint32_t block;
    uint16_t lane;
    uint8_t kind; /* tlm_sim_kind */
    uint8_t flags;
} tlm_sim_event;

/* After an event. Of an ALLOC also where its block begins and how large it is. */
typedef struct {
    uint64_t reserved_bytes, address, block_bytes;
} tlm_sim_step;

typedef struct {
    uint64_t reserved_bytes, allocated_bytes, requested_bytes;
    uint64_t peak_reserved_bytes, peak_allocated_bytes, peak_requested_bytes;
    uint64_t peak_event; /* number of the event after which reserved was highest first; UINT64_MAX: before them all */
    uint64_t events;     /* done */
    uint64_t segments;   /* now; runs of mapped pages of expandable ones count one each */
    uint64_t driver_allocs;      /* that the driver granted: segments, or times that pages were mapped */
    uint64_t driver_frees;       /* that it got back */
    uint64_t retries;            /* allocations for which all unused segments had to be given back */
    uint64_t collections;        /* times that unused segments were collected */
    uint64_t failed_bytes;       /* that the driver refused even after the cache was released; 0: the replay goes on */
    uint64_t largest_free_bytes; /* block in any lane */
} tlm_sim_figures;

/* A part of a segment. */
typedef struct {
    uint64_t segment; /* address at which its segment, or its run of mapped pages, begins */
    uint64_t address, bytes, requested_bytes;
    uint32_t block; /* UINT32_MAX: free */
    uint16_t lane;
    uint8_t small, expandable;
} tlm_sim_part;

/* What the driver gave (1) or took back (0) at an event. */
typedef struct {
    uint64_t event, address, bytes;
    uint32_t lane;
    uint32_t given;
} tlm_sim_change;

typedef struct {
    uint64_t address, bytes;
} tlm_sim_range;

typedef struct tlm_sim tlm_sim;

/* A replay of up to `blocks` blocks in `count` lanes. A private pool keeps its memory until it is IDLE. A refused request from a
 * private pool fails, because the allocator releases nothing during the capture of a graph. TLM_BAD_ARGUMENT: settings that no
 * allocator has, no lane. TLM_NO_MEMORY. */
tlm_status tlm_sim_create(const tlm_sim_settings *settings, uint32_t blocks, uint32_t count, const tlm_sim_lane *lanes,
                          tlm_sim **replay);
/* A segment that is there before the first event, free as a whole. Of expandable ones of a lane each call is a run of mapped pages,
 * in the order of addresses. TLM_BAD_ARGUMENT: it overlaps another one, or an event was done. TLM_NO_MEMORY. */
tlm_status tlm_sim_segment(tlm_sim *replay, uint64_t address, uint64_t bytes, uint32_t lane, int small, int expandable);
/* A block that is in use before the first event. TLM_BAD_ARGUMENT: not all of it is free. TLM_NO_MEMORY. */
tlm_status tlm_sim_place(tlm_sim *replay, uint32_t block, uint64_t address, uint64_t bytes, uint64_t requested_bytes);
/* Where the driver put segments: one of the same size that comes later takes the next of these. TLM_NO_MEMORY. */
tlm_status tlm_sim_addresses(tlm_sim *replay, const tlm_sim_range *ranges, uint64_t count);
/* Replays events in order. `steps` has room for `count`, or is NULL. TLM_OUT_OF_MEMORY: the device is too small for the event with
 * the number figures.events, which was not done; the replay can only be looked at then. TLM_BAD_ARGUMENT: that event contradicts the
 * ones before. TLM_NO_MEMORY. */
tlm_status tlm_sim_run(tlm_sim *replay, const tlm_sim_event *events, uint64_t count, tlm_sim_step *steps);
void tlm_sim_look(const tlm_sim *replay, tlm_sim_figures *figures);
/* Parts of all segments by address, at most `room` of them (unmapped pages are none); returns how many there are. */
uint64_t tlm_sim_parts(const tlm_sim *replay, tlm_sim_part *parts, uint64_t room);
/* The same of what the driver gave and took, if it is kept. */
uint64_t tlm_sim_log(const tlm_sim *replay, tlm_sim_change *changes, uint64_t room);
/* 0: the state is sound; else the number of the rule that is broken (check.c). For tests; looks at everything. */
int tlm_sim_check(const tlm_sim *replay);
void tlm_sim_destroy(tlm_sim *replay); /* NULL is fine */

/* The same events through the runtime's own buffers: device `cpu` under a policy of tlm_buffers_policy, whose own state and policy
 * are as before afterwards. EMPTY trims. Returns what replays say, as far as there is such a thing: reserved is what the driver
 * has handed out. Sizes are real and memory is not touched beyond a page of each block. TLM_OUT_OF_MEMORY: the machine, or the
 * capacity, is too small. TLM_BAD_ARGUMENT, TLM_NO_MEMORY. */
tlm_status tlm_sim_pool(int policy, uint64_t budget_bytes, uint64_t capacity_bytes, const tlm_sim_event *events,
                        uint64_t count, uint32_t blocks, tlm_sim_step *steps, tlm_sim_figures *figures);
/* cffi: end */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
