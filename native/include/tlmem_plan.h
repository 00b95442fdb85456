/* SPDX-License-Identifier: MIT
 * tlmem_plan.h: the planner: offsets for buffers whose lives are known beforehand, so that they share one block of memory.
 *
 * Words. A *buffer* lives from `first` to `last`, both ends inclusive, and needs `size` bytes at an offset that is a multiple
 * of its `alignment`. Buffers that live at the same time must not overlap. The *peak* of a plan is the end of the highest
 * buffer; the *lower bound* is what lives at once at the worst moment, which no plan can go below.
 *
 * A plan is valid from the moment it is made: making it gives slots, which buffers share one after another. The first steps of
 * `tlm_plan_improve` place all buffers in one pass, in several orders, until `placed`; each further one is an attempt to find a
 * lower plan. `docs/decisions/planner.md` says how.
 *
 * Who owns what. The plan copies the buffers. Its memory is our own bookkeeping memory, given back by tlm_plan_destroy. A plan
 * belongs to one thread at a time, whose stack may be small; different plans are independent. Once `placed`, and before any further step,
 * the same buffers have the same offsets everywhere.
 */
#ifndef TLMEM_PLAN_H
#define TLMEM_PLAN_H

#include "tlmem_log.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* cffi: begin */
typedef struct {
    int64_t first, last; /* any clock; first <= last */
    uint64_t size;       /* bytes; 0 takes no room and gets offset 0 */
    uint64_t alignment;  /* a power of two */
} tlm_plan_buffer;

typedef struct {
    uint64_t peak_bytes;        /* of the best plan so far */
    uint64_t lower_bound_bytes; /* no plan has a lower peak */
    uint64_t attempts;          /* steps of tlm_plan_improve that searched */
    uint32_t placed;            /* 1: the first passes are made; they do not depend on time */
    uint32_t proven;            /* 1: no plan has a lower peak than this one */
    uint32_t finished;          /* 1: proven, or the capacity is met: improving does nothing more */
} tlm_plan_result;

typedef struct tlm_plan tlm_plan;

/* Makes a plan. `capacity` is the peak that is good enough; 0: as low as can be. On failure *plan is NULL and *wrong the number
 * of the buffer that is to blame. TLM_BAD_ARGUMENT: first > last, or an alignment that is not a power of two up to 2^32.
 * TLM_OVERFLOW: the sizes together pass 2^62 bytes. TLM_NO_MEMORY. */
tlm_status tlm_plan_create(const tlm_plan_buffer *buffers, uint64_t count, uint64_t capacity, tlm_plan **plan,
                           uint64_t *wrong);
/* One step to a lower peak, for about `cpu_ns` of this thread's CPU time. The plan is never worse afterwards. Does nothing
 * to a finished plan. TLM_NO_MEMORY: the plan is as it was. */
tlm_status tlm_plan_improve(tlm_plan *plan, uint64_t cpu_ns);
/* What is known of a plan. Cannot fail. */
void tlm_plan_look(const tlm_plan *plan, tlm_plan_result *result);
/* The offset of each buffer, in the order in which they were given: `count` numbers. Cannot fail. */
void tlm_plan_offsets(const tlm_plan *plan, uint64_t *offsets);
/* Ends a plan; NULL is fine. Cannot fail. */
void tlm_plan_destroy(tlm_plan *plan);
/* cffi: end */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
