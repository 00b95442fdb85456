/* SPDX-License-Identifier: MIT
 * train.c: a program in C that keeps its memory with tlmem: scopes, a struct, a pool, and a value that escapes.
 *
 *     cc $(tlmem doctor --cflags) -o train train.c $(tlmem doctor --libs)
 *     TLMEM_RECORD=train.tlm ./train && tlmem report train.tlm
 *
 * It prints what is alive at the end, which is nothing, and exits with 0 exactly then. `train leak` forgets to release the
 * losses.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tlmem.h"

enum { STEPS = 1000, ROWS = 32, PARAMETERS = 64 };

/* In this program a failure is the end; a runtime would raise its own error here. */
static void must(tlm_status status, const char *what)
{
    if (status == TLM_OK)
        return;
    tlm_failure failure;
    tlm_failure_last(&failure);
    fprintf(stderr, "%s: %s (object %" PRIu64 ")\n", what, tlm_status_text(status), failure.object);
    exit(1);
}

static tlm_object new_tensor(uint64_t count)
{
    tlm_object tensor;
    must(tlm_object_alloc(TLM_DEVICE_CPU, count * sizeof(float), &tensor), "new tensor");
    return tensor;
}

/* A struct whose fields own what they hold: releasing the struct releases both. */
static tlm_object new_layer(void)
{
    tlm_object layer;
    TLM_HERE();
    must(tlm_struct_create(tlm_label_of("Layer{weight,bias}"), 2, &layer), "new layer");
    must(tlm_struct_move(layer, 0, new_tensor(PARAMETERS * PARAMETERS), TLM_HOLDER(TLM_HOLDER_FLOATING, 0)), "weight");
    must(tlm_struct_move(layer, 1, new_tensor(PARAMETERS), TLM_HOLDER(TLM_HOLDER_FLOATING, 0)), "bias");
    return layer;
}

/* The same memory again in each step: from the pool, or new when it has none. */
static tlm_object take_rows(uint32_t pool, tlm_label key)
{
    tlm_object rows;
    TLM_HERE();
    must(tlm_pool_acquire(pool, key, &rows), "take rows");
    return rows ? rows : new_tensor(ROWS * PARAMETERS);
}

static float forward(tlm_object rows, tlm_object layer, tlm_object out)
{
    tlm_object weight;
    must(tlm_struct_get(layer, 0, &weight), "weight");
    const float *of_rows = tlm_payload(rows), *of_weight = tlm_payload(weight);
    float *of_out = tlm_payload(out), sum = 0;
    for (int i = 0; i < PARAMETERS; i++) {
        of_out[i] = of_rows[i] * of_weight[i];
        sum += of_out[i];
    }
    return sum;
}

/* One step: what it makes ends with its scope, but for the rows, which go back to the pool, and the loss, which escapes. */
static tlm_object step(uint32_t pool, tlm_object layer, tlm_holder trainer)
{
    uint64_t scope;
    tlm_label key = tlm_label_of("float32:[32,64]");
    must(tlm_scope_enter(tlm_label_of("step"), &scope), "enter");
    tlm_object rows = take_rows(pool, key);
    TLM_HERE();
    tlm_object product = new_tensor(ROWS * PARAMETERS);
    must(tlm_register(product), "register");
    TLM_HERE(); /* leaks here, when asked to */
    tlm_object loss = new_tensor(1);
    must(tlm_register(loss), "register");
    memset(tlm_payload(rows), 0, ROWS * PARAMETERS * sizeof(float));
    *(float *)tlm_payload(loss) = forward(rows, layer, product);
    int dropped;
    must(tlm_pool_put(pool, key, rows, TLM_HOLDER(TLM_HOLDER_FLOATING, 0), &dropped), "give rows back");
    must(tlm_escape(loss, trainer), "escape");
    must(tlm_scope_exit(scope, NULL), "exit");
    return loss;
}

int main(int count, char **words)
{
    int leaks = count > 1 && strcmp(words[1], "leak") == 0;
    tlm_holder trainer = TLM_HOLDER(TLM_HOLDER_FOREIGN, tlm_label_of("trainer"));
    uint32_t pool;
    uint64_t removed;
    tlm_pool_statistics of_pool;
    tlm_runtime_statistics now;
    must(tlm_pool_create(tlm_label_of("rows"), 4, &pool), "new pool");
    tlm_object layer = new_layer();
    must(tlm_move(layer, TLM_HOLDER(TLM_HOLDER_FLOATING, 0), trainer), "own layer");
    for (int i = 0; i < STEPS; i++) {
        tlm_mark("step", i);
        tlm_object loss = step(pool, layer, trainer);
        if (!leaks)
            must(tlm_release(loss, trainer), "release loss");
    }
    must(tlm_release(layer, trainer), "release layer");
    must(tlm_pool_stats(pool, &of_pool), "pool");
    must(tlm_pool_prune(pool, 0, NULL, NULL, 0, &removed), "prune");
    must(tlm_pool_destroy(pool), "end pool");
    tlm_runtime_stats(0, &now);
    printf("%" PRIu64 " pool hits, %" PRId64 " allocated, %" PRId64 " freed, %" PRId64 " bytes alive\n", of_pool.hits,
           now.total_count, now.freed_count, now.current_bytes);
    return now.current_bytes != 0;
}
