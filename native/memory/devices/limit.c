/* SPDX-License-Identifier: MIT
 * limit.c: adaptors over a device: at most so many bytes at once, and the n-th next request fails.
 *
 * An adaptor counts what was asked for, not what the device below rounds it to, and decides before any kept buffer is
 * looked at: the n-th request fails whatever the device keeps. Everything else (policy, preallocation, trim, statistics of
 * buffers) is that of the device below. Under one lock each, so that limit and count are exact with any number of threads.
 * The rows are static: the number of a closed adaptor is not a device, and never a wild pointer.
 */
#include <stdio.h>

#include "memory/devices/device.h"

enum { NAME_ROOM = 64 };

typedef struct {
    tlmi_spin lock;
    bool open;
    uint32_t inner;
    uint32_t over;        /* adaptors that stand before this one */
    uint64_t limit_bytes; /* 0: none */
    uint64_t fail_nth;    /* requests until one fails, that one included; 0: none will */
    tlm_device_statistics counted;
    char name[NAME_ROOM];
} limit_row;

static limit_row rows[TLMI_LIMITS];
static tlmi_spin numbering; /* which rows are open. Order: numbering, then a row; of rows none within another */
static uint32_t next_row;

static limit_row *row_of(uint32_t number)
{
    return number - TLMI_FIRST_LIMIT < TLMI_LIMITS ? &rows[number - TLMI_FIRST_LIMIT] : NULL;
}

/* The adaptor, locked; NULL: there is none. */
static limit_row *lock_row(uint32_t number)
{
    limit_row *row = row_of(number);
    if (row == NULL)
        return NULL;
    tlmi_spin_lock(&row->lock);
    if (row->open)
        return row;
    tlmi_spin_unlock(&row->lock);
    return NULL;
}

uint32_t tlmi_limit_inner(uint32_t number)
{
    limit_row *row = lock_row(number);
    uint32_t inner = row ? row->inner : 0;
    if (row)
        tlmi_spin_unlock(&row->lock);
    return inner;
}

const char *tlmi_limit_name(uint32_t number)
{
    limit_row *row = lock_row(number);
    if (row)
        tlmi_spin_unlock(&row->lock);
    return row ? row->name : NULL;
}

/* A closed row; numbers are used again as late as possible, so that a recording hardly ever has one for two adaptors. */
static limit_row *unused_row(void)
{
    for (uint32_t tried = 0; tried < TLMI_LIMITS; tried++) {
        limit_row *row = &rows[next_row];
        next_row = (next_row + 1) % TLMI_LIMITS;
        if (!row->open)
            return row;
    }
    return NULL;
}

static void open_row(limit_row *row, uint32_t inner, uint64_t limit_bytes, uint64_t fail_nth)
{
    tlmi_spin_lock(&row->lock);
    row->inner = inner;
    row->over = 0;
    row->limit_bytes = limit_bytes;
    row->fail_nth = fail_nth;
    row->counted = (tlm_device_statistics){0};
    row->open = true;
    tlmi_spin_unlock(&row->lock);
}

tlm_status tlm_device_limit(uint32_t inner, uint64_t limit_bytes, uint64_t fail_nth, uint32_t *device)
{
    const char *below = tlm_device_name(inner);
    if (below == NULL || !tlm_device_available(inner, NULL))
        return tlmi_fail_bytes(TLM_NO_DEVICE, 0, inner);
    tlm_status status = TLM_OK;
    tlmi_spin_lock(&numbering);
    limit_row *row = unused_row(), *under = row_of(inner);
    if (row == NULL) {
        status = TLM_NO_MEMORY;
    } else if (under && !under->open) {
        status = TLM_NO_DEVICE;
    } else {
        if (under)
            under->over++;
        snprintf(row->name, sizeof row->name, "limit(%.40s)", below);
        open_row(row, inner, limit_bytes, fail_nth);
        *device = (uint32_t)(row - rows) + TLMI_FIRST_LIMIT;
    }
    tlmi_spin_unlock(&numbering);
    return status ? tlmi_fail_bytes(status, 0, inner) : TLM_OK;
}

tlm_status tlm_device_fail_nth(uint32_t device, uint64_t fail_nth)
{
    limit_row *row = lock_row(device);
    if (row == NULL)
        return tlmi_fail_bytes(TLM_NO_DEVICE, 0, device);
    row->fail_nth = fail_nth;
    tlmi_spin_unlock(&row->lock);
    return TLM_OK;
}

tlm_status tlm_device_close(uint32_t device)
{
    tlm_status status = TLM_NO_DEVICE;
    tlmi_spin_lock(&numbering);
    limit_row *row = lock_row(device);
    if (row) {
        bool is_held = row->counted.current_count || row->over;
        status = is_held ? TLM_STILL_HELD : TLM_OK;
        row->open = is_held;
        uint32_t inner = row->inner;
        tlmi_spin_unlock(&row->lock);
        if (!is_held && row_of(inner))
            row_of(inner)->over--;
    }
    tlmi_spin_unlock(&numbering);
    return status ? tlmi_fail_bytes(status, 0, device) : TLM_OK;
}

/* Under the row's lock: whether the request may go on; counted either way. */
static bool admit_request(limit_row *row, uint64_t bytes)
{
    tlm_device_statistics *counted = &row->counted;
    bool fails = row->fail_nth == 1;
    row->fail_nth -= row->fail_nth > 0;
    if (fails || (row->limit_bytes && bytes > row->limit_bytes - counted->current_bytes)) {
        counted->failed_count++;
        return false;
    }
    counted->current_bytes += bytes;
    counted->current_count++;
    return true;
}

/* Totals and peaks tell of requests that were served; until then the bytes are only set aside. */
static void settle_request(uint32_t number, uint64_t bytes, bool is_served)
{
    limit_row *row = row_of(number);
    tlm_device_statistics *counted = &row->counted;
    tlmi_spin_lock(&row->lock);
    if (is_served) {
        counted->total_bytes += bytes;
        counted->total_count++;
        if (counted->current_bytes > counted->peak_bytes)
            counted->peak_bytes = counted->current_bytes;
        if (counted->current_count > counted->peak_count)
            counted->peak_count = counted->current_count;
    } else {
        counted->current_bytes -= bytes;
        counted->current_count--;
        counted->failed_count++;
    }
    tlmi_spin_unlock(&row->lock);
}

tlm_status tlmi_limit_alloc(uint32_t number, uint64_t bytes, void **payload)
{
    limit_row *row = lock_row(number);
    if (row == NULL)
        return TLM_NO_DEVICE;
    uint32_t inner = row->inner;
    bool admitted = bytes == 0 || bytes > TLMI_MOST_BYTES || admit_request(row, bytes);
    tlmi_spin_unlock(&row->lock);
    if (!admitted)
        return TLM_OUT_OF_MEMORY;
    tlm_status status = tlmi_buffers_alloc(inner, bytes, payload);
    if (bytes == 0 || bytes > TLMI_MOST_BYTES)
        return status; /* no request of the driver: nothing to count */
    if (status == TLM_OK)
        tlmi_block_of(*payload)->owner = (uint8_t)number;
    settle_request(number, bytes, status == TLM_OK);
    return status;
}

uint32_t tlmi_limit_leave(uint32_t number, uint64_t bytes)
{
    limit_row *row = row_of(number);
    tlmi_spin_lock(&row->lock);
    row->counted.current_bytes -= bytes;
    row->counted.current_count--;
    uint32_t inner = row->inner;
    tlmi_spin_unlock(&row->lock);
    return inner;
}

void tlmi_limit_stats(uint32_t number, tlm_device_statistics *out)
{
    limit_row *row = lock_row(number);
    if (row == NULL)
        return;
    *out = row->counted;
    tlmi_spin_unlock(&row->lock);
}
