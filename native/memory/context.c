/* SPDX-License-Identifier: MIT
 * context.c: the stack of scopes and frames of each thread, or of an asynchronous task that runs on one thread after another.
 *
 * A thread's own context is in its thread-local memory; what is still entered when the thread ends is left then.
 */
#include "memory/memory.h"

static __thread tlm_context own_context;
static __thread tlm_context *here; /* NULL: the thread's own */
static __thread bool watched;      /* its end is watched */
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

/* Leaves whatever is entered and gives back what the context has. */
static void wind_up(tlm_context *context)
{
    uint32_t site = tlmi_site_for_events();
    while (context->innermost) {
        tlmi_misuse(context->innermost->is_frame ? TLM_MISUSE_UNBALANCED_FRAME : TLM_MISUSE_UNBALANCED_SCOPE,
                    TLM_DEVICE_NONE, 0, TLM_HOLDER(TLM_HOLDER_SCOPE, context->innermost->id), site);
        tlmi_scope_close(context, NULL, site);
    }
    tlmi_arena_close(&context->arena);
    tlmi_scope_free_spares(context);
}

static void on_thread_exit(void *context)
{
    here = NULL;
    wind_up(context);
    watched = false;
}

static void make_exit_key(void)
{
    pthread_key_create(&exit_key, on_thread_exit);
}

tlm_context *tlmi_context_here(void)
{
    if (tlmi_likely(here != NULL))
        return here;
    if (tlmi_unlikely(!watched)) {
        pthread_once(&exit_once, make_exit_key);
        watched = pthread_setspecific(exit_key, &own_context) == 0;
    }
    return &own_context;
}

tlm_status tlm_context_create(tlm_context **out)
{
    *out = tlmi_slab_alloc(sizeof **out);
    return *out ? TLM_OK : tlmi_fail(TLM_NO_MEMORY, 0, 0, 0, 0);
}

void tlm_context_destroy(tlm_context *context)
{
    if (!context)
        return;
    if (here == context)
        here = NULL;
    wind_up(context);
    tlmi_slab_free(context, sizeof *context);
}

tlm_context *tlm_context_switch(tlm_context *context)
{
    tlm_context *former = here;
    here = context;
    return former;
}
