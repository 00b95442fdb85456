/* SPDX-License-Identifier: MIT
 * buffers.h: what the layers above use of devices: payloads.
 */
#ifndef TLMI_BUFFERS_H
#define TLMI_BUFFERS_H

#include "platform/platform.h"
#pragma GCC visibility push(hidden)

/* ---- buffers.c: payloads from devices, with what the device's policy says about reuse. Thread-safe ---- */
/* bytes 0 gives NULL and TLM_OK. The payload is aligned to 64 bytes. Needs no site; records device and pool events. */
tlm_status tlmi_buffers_alloc(uint32_t device, uint64_t bytes, void **payload);
void tlmi_buffers_free(uint32_t device, void *payload, uint64_t bytes); /* the same bytes as asked for */

#pragma GCC visibility pop
#endif
