/* SPDX-License-Identifier: MIT
 * holders_when.c: when the program's objects are searched for holders, and how long that may take.
 *
 * Asked for and at the end: always. At marks, when tracked memory has doubled and when the run is half as long again: only as
 * long as all of these together stay below 1 % of the CPU time that the process has used since the start, or of the time that
 * passed if several threads used more. A program that waits for most of its time may be searched for 0.1 % of it, and one of
 * less than two seconds for 20 ms, at 5 % of the time: what a function holds is gone at the end, and 1 % of half a second is
 * too little for whole searches, of which the last must have seen half of what survives: the more so where a busy machine takes
 * as much again for each. The cost of a search is that of the one before.
 * The service thread knows when one is due and leaves it to the main thread as a pending call, which that makes between two
 * instructions. A main thread that waits, for the threads that do the work, makes none: where it has not used its processor for
 * a while, a thread of ours that lives for this one search waits for the GIL instead of it.
 * The import of a large library is not the program's work. While the main thread is in one, searches may take half of that share;
 * and when it is over, the run counts as begun anew, so that work much shorter than the import is searched, too.
 * What a snapshot takes is CPU time of its thread: waiting for a processor is not its doing, and no reason to stop.
 * Numbers that the service thread reads are atomic; everything else is under the GIL.
 */
#include "python/holders/holders_when.h"
#include "memory/memory.h"
#include "python/holders/holders.h"
#include "python/sources/sources.h"

#include "python/stack/pycode.h"

#ifdef PYINSIDE_KNOWN
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ASKED = 1, AT_MARK = 2, MEMORY_DOUBLED = 3, TIME_PASSED = 4, AT_END = 5 };
enum { LOOK_AT_IMPORT = 255 }; /* no search, and in no file */
enum { SHARE = 100, SHARE_OF_WAITING = 1000, EARLY_SHARE = 20, FREE_SNAPSHOTS = 8 };
enum { ELSEWHERE_ROOM = 16384, MOST_FRAMES = 1000 };
#define MS UINT64_C(1000000)
#define LEAST_SHARE_NS (20 * MS)
#define EARLY_NS (EARLY_SHARE * LEAST_SHARE_NS)
#define LONGEST_NS (50 * MS)
#define LEAST_AT_END_NS (200 * MS)
#define LONGEST_ASKED_NS (500 * MS)
#define FIRST_ESTIMATE_NS (1 * MS)
#define WORTHWHILE_NS (4 * MS)
#define FIRST_TIME_NS (100 * MS)
#define FIRST_TIME_WITHOUT_NS (500 * MS)
#define LOOK_AGAIN_NS (50 * MS)
#define LEAST_MEMORY_BYTES (UINT64_C(1) << 20)
#define WORTHWHILE_BYTES (UINT64_C(64) << 10)
#define LEAST_CHANGE_BYTES (UINT64_C(512) << 10) /* of Python's heap: half of what counts as growth */
#define WAITS_FOR_MAIN_NS (100 * MS)
#define SNAPSHOT_BYTES (UINT64_C(64) << 10)
#define ALL_SNAPSHOTS_BYTES (UINT64_C(16) << 20)

static struct {
    _Atomic bool on;
    _Atomic bool is_asked; /* the main thread has a pending call */
    _Atomic uint8_t why;
    _Atomic uint64_t start_ns, start_process_ns, spent_ns, estimate_ns;
    _Atomic uint64_t last_at_ns;    /* since the start, when the last one was taken; 0: none yet */
    _Atomic bool is_importing;      /* the main thread, when it was last looked at */
    _Atomic uint64_t looked_ns;     /* since the start, then */
    _Atomic uint64_t work_ns;       /* since the start, when an import was last seen to be over */
    _Atomic uint64_t base_bytes;    /* tracked at the last one, or less since */
    _Atomic uint64_t highest_bytes; /* the most that was tracked at any of them */
    _Atomic uint64_t rare;          /* taken without being asked for */
    uint64_t epoch;
    uint64_t counted_at_ns;         /* since the start, when objects were last counted by type */
    uint64_t counted_heap_bytes;    /* of Python's heap, then; 0: not yet */
    uint32_t last_owners;           /* found by the last one */
    uint64_t each_bytes, all_bytes; /* room in the file */
    tlm_holders_statistics statistics;
    char elsewhere[ELSEWHERE_ROOM]; /* texts one after another, an empty one at the end */
} state;

static uint64_t get(_Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static void set(_Atomic uint64_t *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_relaxed);
}

static uint64_t tracked_bytes(void)
{
    int64_t arrays = tlmi_live_bytes(), objects = tlmi_tally_current_bytes();
    return (uint64_t)(arrays > 0 ? arrays : 0) + (uint64_t)(objects > 0 ? objects : 0);
}

/* Nanoseconds that may be spent now without being asked for. */
static uint64_t budget_ns(uint64_t elapsed_ns)
{
    uint64_t used_ns = tlmi_clock_process_ns() - get(&state.start_process_ns), spent = get(&state.spent_ns);
    uint64_t share = (used_ns < elapsed_ns ? used_ns : elapsed_ns) / SHARE, waiting = elapsed_ns / SHARE_OF_WAITING;
    share = share < waiting ? waiting : share;
    share = share < LEAST_SHARE_NS ? LEAST_SHARE_NS : share;
    share = atomic_load_explicit(&state.is_importing, memory_order_relaxed) ? share / 2 : share;
    return share > spent ? share - spent : 0;
}

/* What a short run may spend in all is kept for its later parts, too: memory that doubles thrice in its first tenth of a second
 * says little of what it has at the end. */
static bool is_affordable(uint64_t elapsed_ns)
{
    uint64_t pace = elapsed_ns / EARLY_SHARE, spent = get(&state.spent_ns), estimate = get(&state.estimate_ns);
    return budget_ns(elapsed_ns) >= estimate && (elapsed_ns >= EARLY_NS || pace >= spent + estimate);
}

/* How long the program was at work at this time since the start: since the last import that took long. */
static uint64_t at_work_ns(uint64_t elapsed_ns)
{
    uint64_t begin = get(&state.work_ns);
    return elapsed_ns > begin ? elapsed_ns - begin : 0;
}

/* The first few may come as they like; then the time between two grows with the run, so that their number does not. */
static bool is_rare(uint64_t elapsed_ns)
{
    return get(&state.rare) < FREE_SNAPSHOTS || at_work_ns(elapsed_ns) >= at_work_ns(get(&state.last_at_ns)) / 8 * 9;
}

static bool is_on(void)
{
    return atomic_load_explicit(&state.on, memory_order_relaxed) && tlmi_probe_on();
}

/* ---- taking one; under the GIL ---- */

/* Whether it counts against no budget. */
static bool is_unlimited(uint8_t trigger)
{
    return trigger == ASKED || trigger == AT_END;
}

static void note_taken(uint8_t trigger, uint64_t tracked, uint64_t found, uint64_t elapsed_ns, uint64_t took_ns,
                       bool is_whole)
{
    /* What is not whole would have taken longer; but the beginning tells most, so no more than some time is waited for. */
    uint64_t estimate = is_whole ? took_ns + took_ns / 4 : 2 * took_ns;
    set(&state.estimate_ns, estimate < WORTHWHILE_NS ? estimate : WORTHWHILE_NS);
    set(&state.last_at_ns, elapsed_ns);
    if (found > 0)
        set(&state.base_bytes, tracked);
    if (found > 0 && tracked > get(&state.highest_bytes))
        set(&state.highest_bytes, tracked);
    if (!is_unlimited(trigger)) {
        set(&state.spent_ns, get(&state.spent_ns) + took_ns);
        set(&state.rare, get(&state.rare) + (found > 0));
    }
    state.statistics.snapshots++;
    state.statistics.total_ns += took_ns;
    state.statistics.unasked_ns += is_unlimited(trigger) ? 0 : took_ns;
    state.statistics.last_ns = took_ns;
}

/* Going through all objects is seldom worth it where only the ways to arrays are wanted, and not where Python's heap is as large as
 * the last time. At the end there is time, and a thousand small objects may tell what keeps an autograd graph. */
static bool counts_types(uint8_t trigger, uint64_t elapsed_ns)
{
    bool arenas_known, large_known;
    uint64_t heap = tlmi_pyheap_arena_bytes(&arenas_known) + tlmi_pyheap_large_bytes(&large_known);
    uint64_t before = state.counted_heap_bytes, change = heap > before ? heap - before : before - heap;
    bool has_changed = !arenas_known || !large_known || change >= LEAST_CHANGE_BYTES;
    if (!is_unlimited(trigger) && !(elapsed_ns >= state.counted_at_ns / 2 * 3 && has_changed))
        return false;
    state.counted_at_ns = elapsed_ns;
    state.counted_heap_bytes = heap;
    return true;
}

static tlm_status take(uint8_t trigger, uint64_t limit_ns, PyObject *error)
{
    uint64_t begin_ns = tlmi_clock_thread_ns(), elapsed_ns = tlmi_clock_ns() - get(&state.start_ns), bytes = 0;
    uint64_t used_room = state.statistics.bytes, each = state.each_bytes;
    if (trigger != AT_END && used_room + each > state.all_bytes)
        return TLM_NO_SPACE;
    uint32_t objects = 0;
    tlmi_snapshot snapshot = {.number = (uint32_t)state.statistics.snapshots + 1,
                              .trigger = trigger,
                              .begin_ns = begin_ns,
                              .tracked_bytes = tracked_bytes(),
                              .room_bytes = each};
    tlmi_search_request request = {.limit_ns = limit_ns,
                                   .may_stop = !is_unlimited(trigger),
                                   .counts_types = counts_types(trigger, elapsed_ns),
                                   .elsewhere = state.elsewhere,
                                   .error = error,
                                   .objects = (uint32_t)state.statistics.last_objects,
                                   .owners = state.last_owners};
    bool taken = tlmi_search_run(&request, &snapshot, &objects, &state.last_owners, &bytes);
    uint64_t took_ns = tlmi_clock_thread_ns() - begin_ns;
    note_taken(trigger, snapshot.tracked_bytes, snapshot.found_bytes, elapsed_ns, taken ? took_ns : LONGEST_NS,
               took_ns < limit_ns);
    if (trigger != AT_END)
        tlm_torch_look_at_modes(); /* at the end that is asked without a search, too */
    state.statistics.bytes += bytes;
    state.statistics.last_objects = objects;
    return taken ? TLM_OK : TLM_NO_MEMORY;
}

static bool may_take(void)
{
    /* Python 3.11.0 shows frames while they are being cleared. */
    return Py_Version >= 0x030B0100 && is_on() && state.epoch == atomic_load(&tlmi_recording_epoch) &&
           !tlmi_python_is_ending() && PyInterpreterState_Get() == PyInterpreterState_Main();
}

static tlm_status take_unasked(uint8_t trigger)
{
    uint64_t budget = budget_ns(tlmi_clock_ns() - get(&state.start_ns));
    return take(trigger, budget < LONGEST_NS ? budget : LONGEST_NS, NULL);
}

/* Whether the caller is in an import statement: a frame of importlib's is among its frames. */
static bool is_importing(void)
{
    static const char name[] = "_find_and_load";
    pyframe *frame = pyframe_current(PyThreadState_Get());
    for (uint32_t depth = 0; frame != NULL && depth < MOST_FRAMES; depth++) {
        PyCodeObject *code = (PyCodeObject *)pyframe_code(frame);
        if (code != NULL && pyinside_is_text(code->co_name, name, sizeof name - 1))
            return true;
        frame = pyframe_outer(frame);
    }
    return false;
}

static void look_at_import(void)
{
    bool was = atomic_load(&state.is_importing), is = is_importing();
    uint64_t elapsed_ns = tlmi_clock_ns() - get(&state.start_ns);
    set(&state.looked_ns, elapsed_ns);
    if (was && !is)
        set(&state.work_ns, elapsed_ns);
    atomic_store(&state.is_importing, is);
}

/* Of the service thread: the longer the import, the rarer. */
static bool is_look_due(uint64_t elapsed_ns)
{
    return atomic_load(&state.is_importing) && elapsed_ns >= get(&state.looked_ns) + LOOK_AGAIN_NS + elapsed_ns / 64;
}

static int take_pending(void *unused)
{
    (void)unused;
    if (atomic_load(&state.is_asked) && may_take()) {
        uint8_t why = atomic_load(&state.why);
        look_at_import();
        if (why != LOOK_AT_IMPORT)
            take_unasked(why);
    }
    atomic_store(&state.is_asked, false); /* not before: until then the service thread must not ask again */
    return 0;
}

/* ---- in place of a main thread that waits ---- */

enum { STACK_BYTES = 512 << 10 };
static struct {
    pthread_mutex_t lock; /* of what is not atomic */
    pid_t process;        /* a child of a fork has no such thread */
    pthread_t thread;
    uint64_t asked_ns, main_ns;
    _Atomic uint64_t number; /* of the thread */
    _Atomic bool is_started; /* and not joined */
    _Atomic bool is_done;    /* joining it takes no time */
} instead = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Time that the main thread has used; 0: not known. */
static uint64_t main_ns(void)
{
#ifdef __linux__
    struct timespec used;
    clockid_t clock =
        (clockid_t)(~(uint32_t)getpid() << 3 | 6); /* of the thread with this number, see clock_getcpuclockid(3) */
    return clock_gettime(clock, &used) == 0 ? (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec : 0;
#else
    return 0;
#endif
}

static void *take_instead(void *unused)
{
    atomic_store(&instead.number, tlmi_system_thread_id());
    PyGILState_STATE gil = PyGILState_Ensure();
    if (atomic_load(&state.is_asked) && may_take() && atomic_load(&state.why) != LOOK_AT_IMPORT)
        take_unasked(atomic_load(&state.why));
    atomic_store(&state.is_asked, false);
    PyGILState_Release(gil);
    atomic_store(&instead.is_done, true);
    return unused;
}

/* Without the GIL. Waits until the thread is gone, also for who counts threads. */
static void join_instead(void)
{
    if (atomic_load(&instead.is_started) && instead.process == getpid()) {
        pthread_join(instead.thread, NULL);
        tlmi_system_thread_gone(atomic_load(&instead.number));
    }
    atomic_store(&instead.is_started, false);
}

static void start_instead(void)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    join_instead();
    atomic_store(&instead.is_done, false);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&instead.is_started, pthread_create(&instead.thread, &attributes, take_instead, NULL) == 0);
    instead.process = getpid();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* Of the service thread, while it has asked the main thread. It never waits for the GIL: who forks has it, and waits for us. */
static void look_at_main(void)
{
    uint64_t now_ns = tlmi_clock_ns(), used_ns = main_ns();
    if (pthread_mutex_trylock(&instead.lock) != 0)
        return;
    bool is_free = !atomic_load(&instead.is_started) || instead.process != getpid() || atomic_load(&instead.is_done);
    if (!is_free || used_ns == 0 || used_ns != instead.main_ns) {
        instead.main_ns = used_ns;
        instead.asked_ns = now_ns;
    } else if (now_ns - instead.asked_ns >= WAITS_FOR_MAIN_NS) {
        instead.main_ns = 0; /* not twice */
        start_instead();
    }
    pthread_mutex_unlock(&instead.lock);
}

void tlmi_holders_settle(void)
{
    if (!atomic_load(&instead.is_started))
        return;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&instead.lock);
    join_instead();
    pthread_mutex_unlock(&instead.lock);
    Py_END_ALLOW_THREADS;
}

/* ---- when ---- */

/* Of the service thread, without the GIL. 0: none is due. */
static uint8_t find_reason(uint64_t elapsed_ns)
{
    uint64_t tracked = tracked_bytes(), base = get(&state.base_bytes), highest = get(&state.highest_bytes);
    if (tracked < base)
        set(&state.base_bytes, base = tracked);
    if (tracked >= LEAST_MEMORY_BYTES && tracked >= 2 * highest)
        return MEMORY_DOUBLED;
    if (tracked >= LEAST_MEMORY_BYTES && tracked >= 2 * base && is_rare(elapsed_ns))
        return MEMORY_DOUBLED;
    /* Without arrays, too, but later: containers grow, and may hold arrays over other memory. */
    uint64_t first_ns = tracked >= WORTHWHILE_BYTES ? FIRST_TIME_NS : FIRST_TIME_WITHOUT_NS;
    uint64_t work_ns = at_work_ns(elapsed_ns);
    bool is_old = work_ns >= first_ns && work_ns >= at_work_ns(get(&state.last_at_ns)) / 2 * 3;
    return is_old ? TIME_PASSED : 0;
}

void tlmi_holders_tick(void)
{
    if (!is_on())
        return;
    if (atomic_load_explicit(&state.is_asked, memory_order_relaxed)) {
        look_at_main();
        return;
    }
    uint64_t elapsed_ns = tlmi_clock_ns() - get(&state.start_ns);
    uint8_t why = is_affordable(elapsed_ns) ? find_reason(elapsed_ns) : 0;
    if (why == 0 && is_look_due(elapsed_ns))
        why = LOOK_AT_IMPORT;
    if (why == 0)
        return;
    atomic_store(&state.why, why);
    atomic_store(&state.is_asked, true);
    if (Py_AddPendingCall(take_pending, NULL) != 0)
        atomic_store(&state.is_asked, false); /* too many wait; at the next sample */
    else
        pyinside_make_main_look();
}

tlm_status tlm_holders_offer(void)
{
    uint64_t elapsed_ns = tlmi_clock_ns() - get(&state.start_ns);
    if (!is_on() || !is_affordable(elapsed_ns) || !is_rare(elapsed_ns))
        return TLM_NOT_RUNNING;
    PyGILState_STATE gil = PyGILState_Ensure();
    tlm_status status = may_take() ? take_unasked(AT_MARK) : TLM_NOT_RUNNING;
    PyGILState_Release(gil);
    return status;
}

static uint64_t longest_at_end(void)
{
    uint64_t share = (tlmi_clock_ns() - get(&state.start_ns)) / 10;
    return share < LEAST_AT_END_NS ? LEAST_AT_END_NS : share > LONGEST_ASKED_NS ? LONGEST_ASKED_NS : share;
}

tlm_status tlm_holders_now(int at_end, uint64_t error)
{
    if (!is_on())
        return TLM_NOT_RUNNING;
    PyGILState_STATE gil = PyGILState_Ensure();
    tlm_status status = TLM_NOT_RUNNING;
    if (may_take())
        status =
            take(at_end ? AT_END : ASKED, at_end ? longest_at_end() : LONGEST_ASKED_NS, (PyObject *)(uintptr_t)error);
    /* What the service thread asked for until now has been answered; after the end it would show the runner's frames. */
    if (status == TLM_OK)
        atomic_store(&state.is_asked, false);
    PyGILState_Release(gil);
    return status;
}

tlm_status tlm_holders_start(const char *elsewhere, uint64_t limit_bytes)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    memset(&state.statistics, 0, sizeof state.statistics);
    memset(state.elsewhere, 0, sizeof state.elsewhere);
    strncpy(state.elsewhere, elsewhere, ELSEWHERE_ROOM - 2);
    for (char *at = state.elsewhere; *at != 0; at++)
        if (*at == '\n')
            *at = 0;
    state.each_bytes = limit_bytes != 0 && limit_bytes / 128 < SNAPSHOT_BYTES ? limit_bytes / 128 : SNAPSHOT_BYTES;
    state.all_bytes = limit_bytes != 0 && limit_bytes / 8 < ALL_SNAPSHOTS_BYTES ? limit_bytes / 8 : ALL_SNAPSHOTS_BYTES;
    state.epoch = atomic_load(&tlmi_recording_epoch);
    state.last_owners = 0;
    state.counted_at_ns = state.counted_heap_bytes = 0;
    set(&state.start_ns, tlmi_clock_ns());
    set(&state.start_process_ns, tlmi_clock_process_ns());
    set(&state.spent_ns, 0);
    set(&state.estimate_ns, FIRST_ESTIMATE_NS);
    set(&state.last_at_ns, 0);
    set(&state.looked_ns, 0);
    set(&state.work_ns, 0);
    atomic_store(&state.is_importing, false);
    set(&state.base_bytes, 0);
    set(&state.highest_bytes, 0);
    set(&state.rare, 0);
    atomic_store(&state.is_asked, false);
    atomic_store(&state.on, true);
    PyGILState_Release(gil);
    return TLM_OK;
}

void tlm_holders_stop(void)
{
    atomic_store(&state.on, false);
    PyGILState_STATE gil = PyGILState_Ensure();
    tlmi_holders_settle();
    PyGILState_Release(gil);
}

void tlm_holders_stats(tlm_holders_statistics *out)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    *out = state.statistics;
    PyGILState_Release(gil);
}

#else

void tlmi_holders_tick(void)
{
}

void tlmi_holders_settle(void)
{
}

tlm_status tlm_holders_offer(void)
{
    return TLM_UNSUPPORTED;
}

tlm_status tlm_holders_now(int at_end, uint64_t error)
{
    (void)at_end, (void)error;
    return TLM_UNSUPPORTED;
}

tlm_status tlm_holders_start(const char *elsewhere, uint64_t limit_bytes)
{
    (void)elsewhere, (void)limit_bytes;
    return TLM_UNSUPPORTED;
}

void tlm_holders_stop(void)
{
}

void tlm_holders_stats(tlm_holders_statistics *out)
{
    *out = (tlm_holders_statistics){0};
}

#endif
