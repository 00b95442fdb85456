/* SPDX-License-Identifier: MIT
 * failure.c: what the last failed call of each thread was about, and misuse as events.
 */
#include "memory/runtime.h"

static __thread tlm_failure last;

tlm_status tlmi_fail(tlm_status status, tlm_object object, tlm_holder holder, uint64_t bytes, uint64_t detail)
{
    last = (tlm_failure){.status = (int)status, .object = object, .holder = holder, .bytes = bytes, .detail = detail};
    tlm_object_info info;
    if (tlmi_object_glance(object, &info)) {
        last.alloc_site = info.alloc_site;
        last.free_site = info.free_site;
    }
    return status;
}

void tlm_failure_last(tlm_failure *out)
{
    *out = last;
}

void tlmi_misuse(tlm_misuse misuse, uint8_t device, tlm_object object, tlm_holder holder, uint32_t site)
{
    if (!tlmi_probe_on())
        return;
    tlmi_label_write_holder(holder);
    tlmi_event_append(TLM_KIND_MISUSE, device, object, holder, site, (uint16_t)misuse);
}

void tlm_misuse_record(int misuse, tlm_object object, tlm_holder holder)
{
    if (tlmi_probe_on())
        tlmi_misuse((tlm_misuse)misuse, TLM_DEVICE_NONE, object, holder, tlmi_site_here());
}

void tlm_copy_record(tlm_object from, tlm_object to, uint64_t bytes)
{
    (void)from;
    if (tlmi_probe_on())
        tlmi_event_append(TLM_KIND_COPY, TLM_DEVICE_NONE, to, bytes, tlmi_site_here(), 0);
}

tlm_status tlmi_object_missing(tlm_object object, tlm_holder holder, tlm_misuse misuse)
{
    tlmi_misuse(misuse, TLM_DEVICE_NONE, object, holder, tlmi_site_for_events());
    return tlmi_fail(TLM_FREED, object, holder, 0, 0);
}
