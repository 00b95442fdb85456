/* SPDX-License-Identifier: MIT
 * clock.c: what time it is. The CPU's counter where it runs at one rate on all cores, else CLOCK_MONOTONIC.
 *
 * tlmi_clock_init is called before the first event; everything else is thread-safe and cannot fail.
 */
#include "platform/platform.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool tlmi_clock_is_counter;
static uint32_t shift_bits;
static uint64_t rough_ticks = TLMI_ROUGH_NS; /* in that time; of CLOCK_MONOTONIC a tick is a nanosecond */

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t tlmi_clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t tlmi_clock_thread_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t tlmi_clock_process_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static bool counter_is_constant(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
#elif defined(__aarch64__)
    return true; /* the generic timer is, by the architecture */
#else
    return false;
#endif
}

/* Good to a few percent: enough to choose a unit, and for the times of a program that is killed in its first milliseconds. */
static uint64_t measure_ticks(void)
{
    uint64_t start_ns = tlmi_clock_ns();
    uint64_t start = tlmi_clock_ticks();
    while (tlmi_clock_ns() - start_ns < TLMI_ROUGH_NS)
        ;
    uint64_t ticks = tlmi_clock_ticks() - start;
    return ticks * TLMI_ROUGH_NS / (tlmi_clock_ns() - start_ns);
}

void tlmi_clock_init(void)
{
    static bool done;
    if (done)
        return;
    tlmi_clock_is_counter = counter_is_constant();
    /* The unit on disk is the largest power of two of ticks within 4 ns: finer bits are noise that costs file size,
     * coarser ones could swap a free in one thread with the reuse of its address in another. */
    if (tlmi_clock_is_counter) {
        rough_ticks = measure_ticks();
        while ((UINT64_C(2) << shift_bits) * TLMI_ROUGH_NS <= rough_ticks * 4 && shift_bits < 8)
            shift_bits++;
    }
    done = true;
}

uint64_t tlmi_clock_rough_ticks(void)
{
    return rough_ticks;
}

uint32_t tlmi_clock_shift(void)
{
    return shift_bits;
}
