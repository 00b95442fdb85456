/* SPDX-License-Identifier: MIT
 * strand.c: the stack of scopes and frames of each thread, or of an asynchronous task that runs on one thread after another.
 *
 * A thread's own strand is in its thread-local memory; what is still entered when the thread ends is left then.
 */
#include "memory/memory.h"

static __thread tlm_strand own_strand;
static __thread tlm_strand *here; /* NULL: the thread's own */
static __thread bool watched;     /* its end is watched */
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

/* Leaves whatever is entered and gives back what the strand has. */
static void wind_up(tlm_strand *strand)
{
    uint32_t site = tlmi_site_for_events();
    while (strand->innermost) {
        tlmi_misuse(strand->innermost->is_frame ? TLM_MISUSE_UNBALANCED_FRAME : TLM_MISUSE_UNBALANCED_SCOPE,
                    TLM_DEVICE_NONE, 0, TLM_HOLDER(TLM_HOLDER_SCOPE, strand->innermost->id), site);
        tlmi_scope_close(strand, NULL, site);
    }
    tlmi_arena_close(&strand->arena);
    tlmi_scope_give_spares(strand);
}

static void on_thread_exit(void *strand)
{
    here = NULL;
    wind_up(strand);
    watched = false;
}

static void make_exit_key(void)
{
    pthread_key_create(&exit_key, on_thread_exit);
}

tlm_strand *tlmi_strand_here(void)
{
    if (tlmi_likely(here != NULL))
        return here;
    if (tlmi_unlikely(!watched)) {
        pthread_once(&exit_once, make_exit_key);
        watched = pthread_setspecific(exit_key, &own_strand) == 0;
    }
    return &own_strand;
}

tlm_status tlm_strand_create(tlm_strand **out)
{
    *out = tlmi_slab_alloc(sizeof **out);
    return *out ? TLM_OK : tlmi_fail(TLM_NO_MEMORY, 0, 0, 0, 0);
}

void tlm_strand_destroy(tlm_strand *strand)
{
    if (!strand)
        return;
    if (here == strand)
        here = NULL;
    wind_up(strand);
    tlmi_slab_free(strand, sizeof *strand);
}

tlm_strand *tlm_strand_switch(tlm_strand *strand)
{
    tlm_strand *former = here;
    here = strand;
    return former;
}
