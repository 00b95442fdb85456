/* SPDX-License-Identifier: MIT
 * clock.c: what time it is. The CPU's counter where it runs at one rate on all cores, else CLOCK_MONOTONIC.
 *
 * tlmi_clock_init is called before the first event; everything else is thread-safe and cannot fail.
 */
#include "internal.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool tlmi_clock_is_counter;
static uint32_t shift_bits;

uint64_t tlmi_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t tlmi_clock_thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
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

/* Counter ticks in 50 microseconds; good to a few percent, which is all that choosing a unit needs. */
static uint64_t measure_ticks(void)
{
    uint64_t start_ns = tlmi_clock_ns();
    uint64_t start = tlmi_clock_ticks();
    while (tlmi_clock_ns() - start_ns < 50000)
        ;
    uint64_t ticks = tlmi_clock_ticks() - start;
    return ticks * 50000 / (tlmi_clock_ns() - start_ns);
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
        uint64_t ticks = measure_ticks();
        while ((UINT64_C(2) << shift_bits) * 50000 <= ticks * 4 && shift_bits < 8)
            shift_bits++;
    }
    done = true;
}

uint32_t tlmi_clock_shift(void)
{
    return shift_bits;
}
