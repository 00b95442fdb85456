/* SPDX-License-Identifier: MIT
 * failure.c: what the last failed call of each thread was about.
 */
#include "platform/platform.h"

static __thread tlm_failure last;

void tlmi_failure_keep(const tlm_failure *failure)
{
    last = *failure;
}

tlm_status tlmi_fail_bytes(tlm_status status, uint64_t bytes, uint64_t detail)
{
    last = (tlm_failure){.status = (int)status, .bytes = bytes, .detail = detail};
    return status;
}

void tlm_failure_last(tlm_failure *out)
{
    *out = last;
}
