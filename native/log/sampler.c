/* SPDX-License-Identifier: MIT
 * sampler.c: samples what the process as a whole occupies: resident memory, the C allocator, Python's heap.
 *
 * A fast sample costs one read of a file that is kept open, and the wake-up before it several times that: in a long
 * run they are farther apart, since what grows for minutes is seen as well with fewer. A full sample reads every
 * source; early in a run it is taken often, later each hundredth of the run's length, at most once a second, and each
 * of its expensive probes (the C allocator walks its free chunks, the kernel its page tables) waits until it has used
 * at most a third of a percent of the time that passed, from twenty seconds on less and less down to a tenth, or all
 * of them together a percent while resident memory grows by an eighth and more. An allocator whose free chunks are
 * many gets two thirds of a percent until there are twelve points.
 * Runs in the service thread and in whoever calls tlm_sample_now(). One sample is taken and recorded before the next one begins:
 * a number that was read before another one must not come after it in the recording, least of all at its end. That is one
 * lock, which is never taken by a holder of a lock of the recording. The other one is about what is kept from sample to sample; it is
 * let go of before the events are appended, since that may need the recording's own locks. Never calls malloc.
 * What the answers are on each system: rss_system.c.
 */
#include <string.h>
#include <sys/resource.h>

#include "log/recording.h"
#include "platform/rss.h"

#define NANOSECONDS 1000000000u
#define FAST_SHARE 200          /* fast samples are one of so many parts of the run's age apart, */
#define MOST_APART 5            /* but at most so many times what was asked for */
#define FIRST_FULL_NS 10000000u /* full samples are at least so far apart in the first second */
#define REST_SHARE 300          /* an expensive probe rests for 300 times what it took */
#define LONG_REST_SHARE 1000 /* the same when the run is long: a slope over an hour does not need a point each second */
#define LONG_NS UINT64_C(20000000000)
#define SPARSE_SHARE 150 /* the C allocator for 150 times, where it would have fewer points by then than these */
#define FEWEST_POINTS 12
#define EARLY_SHARE 100 /* the C allocator for 100 times in the first two seconds */
#define GROWN_SHARE 100 /* a snapshot for 100 times, if much has come since */
#define FORCED_SHARE 10 /* a snapshot that is asked for */
#define LEAST_GROWN_BYTES (4u << 20)
#define UNTOUCHED_BUDGET_NS 20000000u
#define SHARP_NS 50000u /* waiting while what belongs to one moment is read */
#define SHARP_TRIES 3
#define EARLY_NS 2000000000u
#define LEAPS 4 /* the allocator cost at most so many times what it cost before */

enum probe { PROBE_ALLOCATOR, PROBE_UNTOUCHED, PROBE_MAPPINGS, PROBE_SMAPS, PROBES };

static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the other one */
static pthread_mutex_t sampler_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;
static bool with_smaps;
static uint64_t opened_ns;
static uint64_t next_full_ns;
static uint64_t next_probe_ns[PROBES];
static uint64_t allocator_cost_ns;
static uint64_t last_recorder_bytes;
static uint64_t last_module_count;
static uint64_t last_driver_bytes;
static uint64_t last_tapes_bytes;
static uint64_t next_grown_ns, next_forced_ns;
static uint64_t snapshot_bytes;     /* resident at the last snapshot */
static tlmi_resident last_resident; /* of the last fast sample, which each full one follows */
static bool resident_known;

static void append_sample(const tlmi_sample *taken)
{
    for (uint32_t i = 0; i < taken->count; i++)
        tlmi_event_append(TLM_KIND_SAMPLE, TLM_DEVICE_NONE, taken->found[i].metric, taken->found[i].value, 0, 0);
}

static void add_faults(tlmi_sample *taken)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    tlmi_sample_add(taken, TLM_METRIC_MINOR_FAULTS, (uint64_t)usage.ru_minflt);
    tlmi_sample_add(taken, TLM_METRIC_MAJOR_FAULTS, (uint64_t)usage.ru_majflt);
}

static void add_untouched(tlmi_sample *taken)
{
    bool known;
    uint64_t bytes = tlmi_interpreter_now()->untouched_bytes(UNTOUCHED_BUDGET_NS, &known);
    if (known)
        tlmi_sample_add(taken, TLM_METRIC_UNTOUCHED, bytes);
}

static void add_python_heap(tlmi_sample *taken)
{
    bool known;
    uint64_t bytes = tlmi_interpreter_now()->arena_bytes(&known);
    if (known)
        tlmi_sample_add(taken, TLM_METRIC_PYTHON_ARENA, bytes);
    bytes = tlmi_interpreter_now()->large_bytes(&known);
    if (known)
        tlmi_sample_add(taken, TLM_METRIC_PYTHON_LARGE, bytes);
}

static void add_mappings(tlmi_sample *taken)
{
    const tlmi_gauges *layers = &tlmi_gauges_of_layers;
    if (tlmi_system_mappings(taken, layers->has_guard_pages()))
        tlmi_sample_add(taken, TLM_METRIC_RECORDER_RESIDENT, tlmi_own_resident_bytes() + layers->quarantine_bytes());
}

static uint64_t rest_share(uint64_t now)
{
    uint64_t share = (now - opened_ns) / (LONG_NS / REST_SHARE);
    return share < REST_SHARE ? REST_SHARE : share > LONG_REST_SHARE ? LONG_REST_SHARE : share;
}

/* Runs an expensive probe when it is due, and puts it off by the processor time it cost: on a busy machine the time that passes
 * is mostly spent waiting, and a probe put off by that would hardly ever run. */
static void add_expensive(tlmi_sample *taken, enum probe which, void (*add)(tlmi_sample *), bool force)
{
    if (!force && tlmi_clock_ns() < next_probe_ns[which])
        return;
    uint64_t begin = tlmi_clock_thread_ns();
    add(taken);
    uint64_t cost = tlmi_clock_thread_ns() - begin, now = tlmi_clock_ns();
    next_probe_ns[which] = now + cost * rest_share(now);
}

/* How long the C allocator is not asked, at a time of the run. */
static uint64_t allocator_rest(uint64_t age_ns)
{
    if (age_ns < EARLY_NS)
        return allocator_cost_ns * EARLY_SHARE;
    uint64_t rest = allocator_cost_ns * rest_share(opened_ns + age_ns);
    uint64_t apart = age_ns / FEWEST_POINTS, least = allocator_cost_ns * SPARSE_SHARE;
    return rest <= apart ? rest : apart > least ? apart : least;
}

/* What tracked memory is subtracted from comes last, next to the events that tell it, and is asked again when the thread had
 * to wait for a processor meanwhile: a burst of arrays between the question and its event looks like a dip of the rest. What
 * takes long anyway is not asked again. A short run is asked more often: a few points say nothing of growth; and what took
 * much longer than the last time is believed little by little, since the processor time of a thread has in it what a
 * hypervisor or an interrupt took from it. */
static void add_moment(tlmi_sample *taken, bool force)
{
    bool due = force || tlmi_clock_ns() >= next_probe_ns[PROBE_ALLOCATOR];
    uint32_t before = taken->count;
    uint64_t used = 0;
    for (int tries = 0; tries < SHARP_TRIES; tries++) {
        uint64_t begin = tlmi_clock_ns(), begin_thread = tlmi_clock_thread_ns();
        taken->count = before;
        add_python_heap(taken);
        if (!due)
            return;
        tlmi_system_allocator(taken);
        uint64_t worked = tlmi_clock_thread_ns() - begin_thread;
        used += worked;
        if (worked > SHARP_NS || tlmi_clock_ns() - begin <= worked + SHARP_NS)
            break;
    }
    uint64_t most = LEAPS * allocator_cost_ns + SHARP_NS;
    allocator_cost_ns = used < most ? used : most;
    next_probe_ns[PROBE_ALLOCATOR] = tlmi_clock_ns() + allocator_rest(tlmi_clock_ns() - opened_ns);
}

static bool are_all_due(uint64_t now)
{
    return now >= next_probe_ns[PROBE_ALLOCATOR] && now >= next_probe_ns[PROBE_UNTOUCHED] &&
           now >= next_probe_ns[PROBE_MAPPINGS];
}

static bool has_grown(void)
{
    uint64_t least = snapshot_bytes / 8 < LEAST_GROWN_BYTES ? LEAST_GROWN_BYTES : snapshot_bytes / 8;
    return resident_known && last_resident.anon_bytes > snapshot_bytes + least;
}

/* Parts that belong together: only when taken at one moment can they add up. A snapshot is taken when each of them is due, or
 * earlier when much has come since the last one. */
static void add_snapshot(tlmi_sample *taken, bool force)
{
    uint64_t now = tlmi_clock_ns();
    bool whole = (force && now >= next_forced_ns) || are_all_due(now) || (now >= next_grown_ns && has_grown());
    uint64_t begin = tlmi_clock_thread_ns();
    if (whole)
        add_expensive(taken, PROBE_MAPPINGS, add_mappings, true);
    add_expensive(taken, PROBE_UNTOUCHED, add_untouched, force || whole);
    add_moment(taken, force || whole);
    if (!whole)
        return;
    uint64_t cost = tlmi_clock_thread_ns() - begin;
    next_grown_ns = tlmi_clock_ns() + cost * GROWN_SHARE;
    next_forced_ns = tlmi_clock_ns() + cost * FORCED_SHARE;
    snapshot_bytes = last_resident.anon_bytes;
}

static void add_resident(tlmi_sample *taken)
{
    resident_known = tlmi_system_resident(&last_resident);
    if (resident_known)
        tlmi_sample_add(taken, TLM_METRIC_ANON, last_resident.anon_bytes);
    uint64_t recorder = tlmi_own_current_bytes() + tlmi_gauges_of_layers.quarantine_bytes();
    if (recorder != last_recorder_bytes)
        tlmi_sample_add(taken, TLM_METRIC_RECORDER, recorder);
    last_recorder_bytes = recorder;
    uint64_t driver = tlmi_gauges_of_layers.driver_bytes();
    if (driver != last_driver_bytes)
        tlmi_sample_add(taken, TLM_METRIC_DRIVER, driver);
    last_driver_bytes = driver;
    uint64_t tapes = tlmi_gauges_of_layers.tape_bytes();
    if (tapes != last_tapes_bytes)
        tlmi_sample_add(taken, TLM_METRIC_TAPES, tapes);
    last_tapes_bytes = tapes;
    bool known;
    uint64_t module_count = tlmi_interpreter_now()->module_count(&known);
    if (known && module_count != last_module_count)
        tlmi_sample_add(taken, TLM_METRIC_MODULES, module_count);
    last_module_count = module_count;
}

/* In a forked child the locks may belong to a thread that is not here. */
static void free_locks_after_fork(void)
{
    pthread_mutex_init(&order_lock, NULL);
    pthread_mutex_init(&sampler_lock, NULL);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, free_locks_after_fork);
}

void tlmi_sampler_open(bool smaps, const tlmi_own_file *log)
{
    pthread_once(&fork_handler_once, install_fork_handler);
    pthread_mutex_lock(&sampler_lock);
    with_smaps = smaps;
    uint64_t log_inode = log != NULL && log->fd >= 0 ? log->inode : 0;
    tlmi_system_open(smaps, log_inode); /* anew, also when open: after a fork the open files are the parent's */
    opened_ns = tlmi_clock_ns();
    next_full_ns = next_grown_ns = next_forced_ns = snapshot_bytes = allocator_cost_ns = 0;
    memset(next_probe_ns, 0, sizeof next_probe_ns);
    last_recorder_bytes = last_module_count = last_driver_bytes = last_tapes_bytes = 0;
    resident_known = false;
    pthread_mutex_unlock(&sampler_lock);
}

void tlmi_sampler_close(void)
{
    pthread_mutex_lock(&sampler_lock);
    tlmi_system_close();
    pthread_mutex_unlock(&sampler_lock);
}

uint64_t tlmi_sample_interval(uint64_t now, uint64_t least_ns)
{
    uint64_t apart = (now - opened_ns) / FAST_SHARE, most_ns = MOST_APART * least_ns;
    return apart < least_ns ? least_ns : apart > most_ns ? most_ns : apart;
}

void tlmi_sample_fast(void)
{
    tlmi_sample taken = {0};
    pthread_mutex_lock(&order_lock);
    pthread_mutex_lock(&sampler_lock);
    add_resident(&taken);
    pthread_mutex_unlock(&sampler_lock);
    append_sample(&taken);
    pthread_mutex_unlock(&order_lock);
}

void tlmi_sample_full(bool force)
{
    tlmi_sample taken = {0};
    pthread_mutex_lock(&order_lock);
    pthread_mutex_lock(&sampler_lock);
    uint64_t now = tlmi_clock_ns();
    if (force || now >= next_full_ns) {
        uint64_t apart = (now - opened_ns) / 100;
        apart = apart < FIRST_FULL_NS ? FIRST_FULL_NS : apart > NANOSECONDS ? NANOSECONDS : apart;
        next_full_ns = now + apart;
        if (resident_known)
            tlmi_sample_add(&taken, TLM_METRIC_FILE, last_resident.file_bytes);
        tlmi_system_limits(&taken);
        tlmi_system_delays(&taken);
        add_snapshot(&taken, force);
        if (with_smaps) {
            add_faults(&taken);
            add_expensive(&taken, PROBE_SMAPS, tlmi_system_smaps, force);
        }
    }
    pthread_mutex_unlock(&sampler_lock);
    append_sample(&taken);
    pthread_mutex_unlock(&order_lock);
}
