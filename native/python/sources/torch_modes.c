/* SPDX-License-Identifier: MIT
 * torch_modes.c: whether PyTorch's anomaly mode or its autograd profiler is on, looked at now and then.
 *
 * Both are tools for a while: the profiler keeps an event for each operation until it is stopped, anomaly mode a stack for each
 * node of a graph. What is read is a flag of the process and, by a function without arguments that changes nothing, one of the
 * calling thread; no Python code runs, and a program without PyTorch is asked nothing. Under the GIL.
 *
 * The note torch.modes has the numbers, once one of them was seen to be on.
 */
#include "python/sources/sources.h"

#include <stdio.h>

#include "platform/linkage.h"

static const _Bool *anomaly;
static bool (*profiler)(void);
static uint32_t looks, anomaly_looks, profiler_looks;

void tlmi_torch_modes_open(void)
{
    anomaly = tlmi_slots_find("libtorch_cpu.so", "_ZN5torch8autograd11AnomalyMode8_enabledE");
    profiler = (bool (*)(void))tlmi_slots_find("libtorch_cpu.so", "_ZN5torch8profiler4impl15profilerEnabledEv");
    looks = anomaly_looks = profiler_looks = 0;
}

void tlmi_torch_modes_close(void)
{
    anomaly = NULL;
    profiler = NULL;
}

void tlm_torch_look_at_modes(void)
{
    if (anomaly == NULL && profiler == NULL)
        return;
    bool is_anomaly = anomaly != NULL && *anomaly, is_profiler = profiler != NULL && profiler();
    looks++;
    anomaly_looks += is_anomaly;
    profiler_looks += is_profiler;
    if (anomaly_looks + profiler_looks == 0)
        return;
    char text[160];
    snprintf(text, sizeof text, "looks=%u anomaly=%u anomaly_last=%d profiler=%u profiler_last=%d", looks,
             anomaly_looks, is_anomaly, profiler_looks, is_profiler);
    tlmi_meta_note("torch.modes", text);
}
