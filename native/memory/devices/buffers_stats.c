/* SPDX-License-Identifier: MIT
 * buffers_stats.c: what the buffers of a device amount to, as numbers and as a text.
 *
 * What is active and what is free is counted class by class, what was taken from the driver by device.c: that the one is the
 * sum of the others is a check of both, and not an identity.
 */
#include <stdarg.h>
#include <stdio.h>

#include "memory/devices/device.h"

static void add_class(tlmi_device *device, uint32_t number, tlm_buffers_statistics *out)
{
    tlmi_size_class *class = &device->classes[number];
    uint64_t bytes = tlmi_class_bytes(number) + TLMI_BLOCK_BYTES;
    tlmi_spin_lock(&class->lock);
    out->active_count += class->active_count;
    out->active_bytes += class->active_count * bytes;
    out->free_count += class->free_count;
    out->free_bytes += class->free_count * bytes;
    out->hits += class->hits;
    out->misses += class->misses;
    tlmi_spin_unlock(&class->lock);
}

void tlm_buffers_stats(uint32_t number, tlm_buffers_statistics *out)
{
    *out = (tlm_buffers_statistics){0};
    tlmi_device *device = tlmi_device_of(number);
    if (device == NULL)
        return;
    for (uint32_t i = 0; i < TLMI_CLASSES; i++)
        add_class(device, i, out);
    tlmi_reserve *reserve = &device->reserve;
    tlmi_spin_lock(&reserve->lock);
    out->reserved_bytes = atomic_load_explicit(&reserve->bytes, memory_order_relaxed);
    out->free_bytes += reserve->free_bytes;
    out->free_count += reserve->stretches;
    tlmi_spin_unlock(&reserve->lock);
    tlmi_spin_lock(&device->lock);
    out->total_allocated_bytes = device->counted.total_bytes;
    tlmi_spin_unlock(&device->lock);
}

/* ---- as a text ---- */

typedef struct {
    char *out;
    uint64_t room, length;
} text_writer;

__attribute__((format(printf, 2, 3))) static void write_line(text_writer *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    uint64_t left = text->length < text->room ? text->room - text->length : 0;
    int wanted = vsnprintf(left ? text->out + text->length : NULL, left, format, values);
    va_end(values);
    text->length += wanted > 0 ? (uint64_t)wanted : 0;
}

static void write_class(text_writer *text, tlmi_device *device, uint32_t number)
{
    tlmi_size_class *class = &device->classes[number];
    tlmi_spin_lock(&class->lock);
    tlmi_size_class now = *class;
    tlmi_spin_unlock(&class->lock);
    if (now.active_count || now.free_count || now.hits || now.misses)
        write_line(text, "  up to %llu bytes: %llu active, %u free, %llu hits, %llu misses\n",
                   (unsigned long long)tlmi_class_bytes(number), (unsigned long long)now.active_count, now.free_count,
                   (unsigned long long)now.hits, (unsigned long long)now.misses);
}

uint64_t tlm_buffers_dump(uint32_t number, char *out, uint64_t room)
{
    static const char *const policies[] = {"direct", "bounded", "persistent", "persistent, reusing"};
    text_writer text = {out, room, 0};
    if (room)
        out[0] = 0;
    tlmi_device *device = tlmi_device_ready(number);
    if (device == NULL)
        return 0;
    tlm_buffers_statistics now;
    tlm_buffers_stats(number, &now);
    write_line(&text, "buffers of %s: %s\n", device->backend->name, policies[atomic_load(&device->policy)]);
    write_line(&text, "  taken from the driver: %llu bytes, of them reserved: %llu\n",
               (unsigned long long)now.total_allocated_bytes, (unsigned long long)now.reserved_bytes);
    write_line(&text, "  active: %llu bytes in %llu; free: %llu bytes in %llu; hits: %llu; misses: %llu\n",
               (unsigned long long)now.active_bytes, (unsigned long long)now.active_count,
               (unsigned long long)now.free_bytes, (unsigned long long)now.free_count, (unsigned long long)now.hits,
               (unsigned long long)now.misses);
    if (device->ignored)
        write_line(&text, "  %s is ignored: not a whole number, or too large\n", device->ignored);
    for (uint32_t i = 0; i < TLMI_CLASSES; i++)
        write_class(&text, device, i);
    return text.length;
}
