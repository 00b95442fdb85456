/* SPDX-License-Identifier: MIT
 * faults.c: SIGSEGV and SIGBUS at addresses of ours, before what the program has in force for them.
 *
 * Two layers have memory that may fault: freed memory that is kept unreadable (trap.c), and the pages of the recording, whose
 * file another program may cut short (file.c). Each registers a watcher. A watcher that has put other memory there makes the
 * instruction run again; after any other the handler that was in force before ours is put back and the instruction runs
 * again: the program ends, or goes on, exactly as it would have without us. So it is with faults and signals that are not
 * ours.
 *
 * A program may set its handlers at any time. Whoever depends on ours asks for it again now and then; then ours stands before
 * the new one as well. A handler that remembers ours as the one before it puts that back once it is done or taken away
 * (faulthandler does both), so each place in the chain is a function of its own, which knows what it stands before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include "platform/platform.h"

/* Places in the chain: as many different handlers of the program as there may be before a new one stays without ours. */
enum { SIGNALS = 2, WATCHERS = 2, PLACES = 6 };

static const int numbers[SIGNALS] = {SIGSEGV, SIGBUS};
static struct sigaction previous[SIGNALS][PLACES];
static int places_used[SIGNALS];
static _Atomic bool handed_on[SIGNALS]; /* what was before us has had its turn since we were put in force */
static _Atomic(tlmi_fault_watcher) watchers[SIGNALS][WATCHERS];
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static __thread bool is_let_in; /* the thread blocks the signal, but for now */

/* Whether the instruction may run again as if nothing had been. */
static bool ask_watchers(int at, uintptr_t address, const void *context, bool came_back)
{
    for (int i = 0; i < WATCHERS; i++) {
        tlmi_fault_watcher watcher = atomic_load(&watchers[at][i]);
        if (watcher && watcher(address, context, came_back))
            return true;
    }
    return false;
}

/* Sends this thread the signal that it has just got, with what is known of its sender where the system allows that. */
static void send_again(int number, siginfo_t *info)
{
#if defined(__linux__)
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), number, info) == 0)
        return;
#else
    (void)info;
#endif
    raise(number);
}

/* A signal that was sent, and reached a thread of ours while it lets faults in: the program's threads get it, or wait for it. */
static void leave_to_program(int number, siginfo_t *info, void *context)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigaddset(&((ucontext_t *)context)->uc_sigmask, number);
#if defined(__linux__)
    if (syscall(SYS_rt_sigqueueinfo, getpid(), number, info) == 0)
        return;
#else
    (void)info;
#endif
    kill(getpid(), number);
}

static void hand_on(int number, int at, int place)
{
    atomic_store(&handed_on[at], true);
    sigaction(number, &previous[at][place], NULL);
}

/* Calls the handler before ours as the system would; ours stays in force. */
static void call_previous(int number, siginfo_t *info, void *context, const struct sigaction *action)
{
    sigset_t mask = action->sa_mask, before;
    if (!(action->sa_flags & SA_NODEFER))
        sigaddset(&mask, number);
    pthread_sigmask(SIG_BLOCK, &mask, &before);
    if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction(number, info, context);
    else
        action->sa_handler(number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A signal that was sent does not come again by itself. */
static void hand_on_sent(int number, siginfo_t *info, void *context, int place)
{
    int at = number == numbers[0] ? 0 : 1;
    struct sigaction action = previous[at][place];
    bool is_plain = !(action.sa_flags & SA_SIGINFO);
    if (is_plain && action.sa_handler == SIG_IGN)
        return;
    if (action.sa_flags & (int)SA_RESETHAND || (is_plain && action.sa_handler == SIG_DFL)) {
        hand_on(number, at, place);
        send_again(number, info);
    } else {
        call_previous(number, info, context, &action);
    }
}

static void on_fault(int number, siginfo_t *info, void *context, int place)
{
    int at = number == numbers[0] ? 0 : 1;
    int error = errno;
    bool is_fault = info->si_code > 0;
    if (!is_fault && is_let_in)
        leave_to_program(number, info, context);
    else if (!is_fault)
        hand_on_sent(number, info, context, place);
    else if (!ask_watchers(at, (uintptr_t)info->si_addr, context, atomic_load(&handed_on[at])))
        hand_on(number, at, place);
    errno = error;
}

#define HANDLER(place)                                                                                                 \
    static void handler_##place(int number, siginfo_t *info, void *context)                                            \
    {                                                                                                                  \
        on_fault(number, info, context, place);                                                                        \
    }
HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
HANDLER(4)
HANDLER(5)
static void (*const handlers[PLACES])(int, siginfo_t *, void *) = {handler_0, handler_1, handler_2,
                                                                   handler_3, handler_4, handler_5};

/* Which of our handlers it is; -1: none. */
static int place_of(const struct sigaction *action)
{
    for (int place = 0; place < PLACES; place++)
        if (action->sa_flags & SA_SIGINFO && action->sa_sigaction == handlers[place])
            return place;
    return -1;
}

/* The place before this handler: the one it had before, or a new one; -1: all are taken. */
static int place_before(int at, const struct sigaction *now)
{
    int place = 0;
    while (place < places_used[at] &&
           (previous[at][place].sa_handler != now->sa_handler || previous[at][place].sa_flags != now->sa_flags))
        place++;
    return place < PLACES ? place : -1;
}

/* Calls that a sent signal interrupts are begun again, or not, as without us. */
static int restart_flag(const struct sigaction *action)
{
    bool is_ignored = !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN;
    return is_ignored ? SA_RESTART : action->sa_flags & SA_RESTART;
}

static void install(int at)
{
    struct sigaction now, ours;
    if (sigaction(numbers[at], NULL, &now) != 0 || place_of(&now) >= 0)
        return;
    int place = place_before(at, &now);
    if (place < 0)
        return;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = handlers[place];
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | restart_flag(&now);
    sigemptyset(&ours.sa_mask);
    previous[at][place] = now;
    if (place == places_used[at])
        places_used[at]++;
    atomic_store(&handed_on[at], false);
    sigaction(numbers[at], &ours, NULL);
}

/* Puts back what was before us, unless a handler of the program stands before ours by now: it may come back to us. */
static void uninstall(int at)
{
    struct sigaction now;
    int place = sigaction(numbers[at], NULL, &now) == 0 ? place_of(&now) : -1;
    if (place >= 0)
        sigaction(numbers[at], &previous[at][place], NULL);
}

static void mend_after_fork(void)
{
    pthread_mutex_init(&changing, NULL);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

static void add_watcher(int at, tlmi_fault_watcher watcher)
{
    for (int i = 0; i < WATCHERS; i++) {
        tlmi_fault_watcher none = NULL;
        if (atomic_load(&watchers[at][i]) == watcher ||
            atomic_compare_exchange_strong(&watchers[at][i], &none, watcher))
            return;
    }
}

static bool remove_watcher(int at, tlmi_fault_watcher watcher)
{
    bool others = false;
    for (int i = 0; i < WATCHERS; i++) {
        if (atomic_load(&watchers[at][i]) == watcher)
            atomic_store(&watchers[at][i], NULL);
        others = others || atomic_load(&watchers[at][i]);
    }
    return !others;
}

void tlmi_faults_watch(tlmi_fault_signals which, tlmi_fault_watcher watcher)
{
    pthread_once(&fork_once, install_fork_handler);
    if (pthread_mutex_trylock(&changing) != 0)
        return; /* another thread is at it */
    for (int at = which == TLMI_FAULTS_OF_FILES; at < SIGNALS; at++) {
        add_watcher(at, watcher);
        install(at);
    }
    pthread_mutex_unlock(&changing);
}

void tlmi_faults_forget(tlmi_fault_watcher watcher)
{
    pthread_mutex_lock(&changing);
    for (int at = 0; at < SIGNALS; at++)
        if (remove_watcher(at, watcher))
            uninstall(at);
    pthread_mutex_unlock(&changing);
}

static bool is_pending(int number)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, number) == 1;
}

void tlmi_faults_let_in(bool in)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGBUS);
    is_let_in = in && !is_pending(SIGBUS); /* one that was sent waits for a thread of the program */
    pthread_sigmask(is_let_in ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}
