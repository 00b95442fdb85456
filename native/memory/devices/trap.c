/* SPDX-License-Identifier: MIT
 * trap.c: hears of touches of quarantined memory: SIGSEGV and SIGBUS at an address that quarantine.c knows.
 *
 * A touch is synchronous: the thread stands in an instruction of the program, holds no lock of ours and is in no function of
 * ours, so that events and sites can be written as from anywhere. What was in force before is then put back, and the
 * instruction runs again: the program ends, or goes on, exactly as it would have without us. So it is with faults that are
 * not ours. Handlers that remember ours as the one before them (faulthandler, when it is enabled later) come back to us once
 * they are done; then it is the turn of what stood below us at the very beginning. Whatever is in force when memory enters
 * the quarantine gets ours before it again.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>

#include "log/log.h"
#include "memory/devices/quarantine.h"

enum { SIGNALS = 2, MOST_REPORTS = 10 };

static const int numbers[SIGNALS] = {SIGSEGV, SIGBUS};
static struct sigaction bottom[SIGNALS], previous[SIGNALS];
static bool is_installed[SIGNALS];
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool handed_on[SIGNALS]; /* what was before us has had its turn since we were put in force */
static _Atomic uint32_t reports;

static void tell(const tlmi_quarantined *whose, uintptr_t address, const void *context)
{
    bool is_freed = atomic_load(&whose->state) == TLMI_QUARANTINED_HELD;
    uint32_t site = tlmi_site_for_events();
    tlmi_misuse(is_freed ? TLM_MISUSE_USE_AFTER_FREE : TLM_MISUSE_PAST_THE_END, whose->freed.device,
                whose->freed.object, 0, site);
    tlmi_quarantine_count_touch();
    if (atomic_fetch_add(&reports, 1) < MOST_REPORTS)
        tlmi_trap_tell(whose, address, tlmi_system_kind_of_touch(context), site);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int at = number == numbers[0] ? 0 : 1;
    bool came_back = atomic_exchange(&handed_on[at], true), is_fault = info->si_code > 0;
    const tlmi_quarantined *whose = is_fault && !came_back ? tlmi_quarantine_at((uintptr_t)info->si_addr) : NULL;
    if (whose)
        tell(whose, (uintptr_t)info->si_addr, context);
    sigaction(number, came_back ? &bottom[at] : &previous[at], NULL);
    if (!is_fault) /* it was sent, and does not come again by itself */
        raise(number);
}

static bool is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_fault;
}

static void install(int at)
{
    struct sigaction now, ours;
    if (sigaction(numbers[at], NULL, &now) != 0 || is_ours(&now))
        return;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    previous[at] = now;
    if (!is_installed[at])
        bottom[at] = now;
    is_installed[at] = true;
    atomic_store(&handed_on[at], false);
    sigaction(numbers[at], &ours, NULL);
}

void tlmi_trap_install(void)
{
    if (pthread_mutex_trylock(&installing) != 0)
        return; /* another thread is at it */
    for (int at = 0; at < SIGNALS; at++)
        install(at);
    pthread_mutex_unlock(&installing);
}
