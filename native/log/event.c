/* SPDX-License-Identifier: MIT
 * event.c: events, notes and samples that a program records by a call of its own, and misuse.
 */
#include "log/recording.h"

tlm_status tlm_note(const char *key, const char *text)
{
    if (!key || !text)
        return TLM_BAD_ARGUMENT;
    if (!tlmi_probe_on())
        return TLM_NOT_RUNNING;
    return tlmi_meta_note(key, text) ? TLM_OK : TLM_NO_SPACE;
}

tlm_status tlm_mark(const char *label, int64_t index)
{
    if (!label)
        return TLM_BAD_ARGUMENT;
    if (!tlmi_probe_on())
        return TLM_NOT_RUNNING;
    uint32_t number = tlmi_label_write(tlm_label_of(label));
    if (!number)
        return TLM_NO_SPACE;
    tlmi_event_append(TLM_KIND_MARK, TLM_DEVICE_NONE, number, (uint64_t)index, tlmi_site_here(), 0);
    return TLM_OK;
}

tlm_status tlm_thread_name(const char *name)
{
    if (!name)
        return TLM_BAD_ARGUMENT;
    return tlmi_probe_on() && tlmi_segment_name(name) ? TLM_OK : TLM_NOT_RUNNING;
}

tlm_status tlm_event_record(int kind, int device, uint64_t object, uint64_t arg)
{
    if (kind <= TLM_KIND_NONE || kind > TLM_KIND_MISUSE || device < 0 || device > 255)
        return TLM_BAD_ARGUMENT;
    if (!tlmi_probe_on())
        return TLM_NOT_RUNNING;
    tlmi_event_append((uint8_t)kind, (uint8_t)device, object, arg, tlmi_site_here(), 0);
    return TLM_OK;
}

tlm_status tlm_sample_now(void)
{
    if (!tlmi_probe_on())
        return TLM_NOT_RUNNING;
    tlmi_rss_fast();
    tlmi_rss_slow(true);
    return TLM_OK;
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
