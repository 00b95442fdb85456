/* SPDX-License-Identifier: MIT
 * pooling.h: what the tests of pools have in common.
 */
#ifndef TLMEM_POOLING_H
#define TLMEM_POOLING_H

#include "starve.h"
#include "trace.h"

static const tlm_holder FLOATING = TLM_HOLDER(TLM_HOLDER_FLOATING, 0);
static const tlm_holder ME = TLM_HOLDER(TLM_HOLDER_HANDLE, 1), OTHER = TLM_HOLDER(TLM_HOLDER_HANDLE, 2);
enum { A = 1, B = 2, C = 3 }; /* keys */

static inline tlm_object make(uint64_t bytes)
{
    tlm_object object = 0;
    CHECK(tlm_object_alloc(TLM_DEVICE_CPU, bytes, &object) == TLM_OK && object != 0);
    return object;
}

static inline uint32_t make_pool(uint32_t max_per_key)
{
    uint32_t pool = 0;
    CHECK(tlm_pool_create(tlm_label_of("pool"), max_per_key, &pool) == TLM_OK && pool != 0);
    return pool;
}

static inline bool put(uint32_t pool, tlm_label key, tlm_object object)
{
    int dropped = 42;
    CHECK(tlm_pool_put(pool, key, object, FLOATING, &dropped) == TLM_OK && (dropped == 0 || dropped == 1));
    return !dropped;
}

static inline bool put_item(uint32_t pool, tlm_label key, uint64_t item)
{
    int dropped = 42;
    CHECK(tlm_pool_put_item(pool, key, item, &dropped) == TLM_OK && (dropped == 0 || dropped == 1));
    return !dropped;
}

static inline uint64_t get(uint32_t pool, tlm_label key)
{
    uint64_t item = 42;
    CHECK(tlm_pool_acquire(pool, key, &item) == TLM_OK);
    return item;
}

static inline uint64_t prune(uint32_t pool, uint64_t target)
{
    uint64_t removed = 42;
    CHECK(tlm_pool_prune(pool, target, NULL, NULL, 0, &removed) == TLM_OK);
    return removed;
}

static inline tlm_pool_statistics stats(uint32_t pool)
{
    tlm_pool_statistics out;
    CHECK(tlm_pool_stats(pool, &out) == TLM_OK);
    return out;
}

static inline tlm_object_info about(tlm_object object)
{
    tlm_object_info info;
    CHECK(tlm_object_describe(object, &info) == TLM_OK);
    return info;
}

static inline tlm_holder pool_holder(uint32_t pool)
{
    return TLM_HOLDER(TLM_HOLDER_POOL, pool);
}

static inline void finish(uint32_t pool)
{
    tlm_runtime_statistics out;
    prune(pool, 0);
    CHECK(stats(pool).size == 0 && tlm_pool_keys(pool, NULL, NULL, 0) == 0 && tlm_pool_destroy(pool) == TLM_OK);
    tlm_runtime_stats(0, &out);
    CHECK(out.total_count - out.freed_count == 0 && out.total_bytes - out.freed_bytes == 0);
    CHECK(out.current_count == 0 && out.current_bytes == 0 && out.floating == 0);
}
#endif
