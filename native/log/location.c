/* SPDX-License-Identifier: MIT
 * location.c: where in native code an event happens. A location is a static variable of the caller's, named in the file when
 * first met in a recording; the site of an event is the Python stack, if there is one, and the location called from it.
 *
 * Thread-safe: what a location caches is one atomic word.
 */
#include <string.h>

#include "log/log.h"

__thread tlm_location *tlmi_location_here;

typedef struct {
    uint32_t line;
} line_source;

static uint32_t line_of(void *context)
{
    return ((const line_source *)context)->line;
}

/* The location's code number in this recording; 0: no room. */
static uint32_t code_of(tlm_location *location)
{
    uint64_t epoch = atomic_load_explicit(&tlmi_recording_epoch, memory_order_acquire);
    uint64_t cached = __atomic_load_n(&location->cache, __ATOMIC_ACQUIRE);
    if (tlmi_likely(cached >> 32 == epoch))
        return (uint32_t)cached;
    uint32_t code = tlmi_site_new_code();
    if (!tlmi_meta_code(code, location->line, location->file, (uint32_t)strlen(location->file), location->function,
                        (uint32_t)strlen(location->function)))
        code = 0;
    __atomic_store_n(&location->cache, epoch << 32 | code, __ATOMIC_RELEASE);
    return code;
}

uint32_t tlmi_location_site(tlm_location *location, uint32_t parent)
{
    uint32_t code = code_of(location);
    line_source source = {location->line};
    uint32_t site = code ? tlmi_site_child(parent, code, location->line, line_of, &source) : 0;
    return site ? site : parent;
}

tlm_location *tlm_location_set(tlm_location *location)
{
    tlm_location *former = tlmi_location_here;
    tlmi_location_here = location;
    return former;
}

uint32_t tlmi_site_here(void)
{
    const tlmi_interpreter_hooks *interpreter = tlmi_interpreter_now();
    uint32_t site = interpreter->site();
    if (tlmi_unlikely(site == 0))
        site = interpreter->patient_site();
    tlm_location *location = tlmi_location_here;
    return location ? tlmi_location_site(location, site) : site;
}

uint32_t tlm_site_current(void)
{
    return tlmi_probe_on() ? tlmi_site_here() : 0;
}
