/* SPDX-License-Identifier: MIT
 * source_rss.c: samples what the process as a whole occupies: resident memory, the C allocator, Python's heap.
 *
 * A fast sample costs one read of a file that is kept open. A slow sample asks everybody; early in a run it is taken often,
 * later each hundredth of the run's length, at most once a second, and each of its dear parts (the C allocator walks its
 * free chunks, the kernel its page tables) waits until it has used at most a third of a percent of the time that passed, or
 * all of them together a percent while resident memory grows by an eighth and more.
 * Runs in the service thread and in whoever calls tlm_sample_now(). One sample is taken and told before the next one is begun:
 * a number that was read before another one must not come after it in the recording, least of all at its end. That is one
 * lock, and nobody who has a lock of the recording takes it. The other one is about what is kept from sample to sample; it is
 * let go of before the events are appended, since that may need the recording's own locks. Never calls malloc.
 * On other systems than Linux and macOS nothing is sampled here; the recorder asks psutil.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach/mach.h>
#include <malloc/malloc.h>
#endif

#include "mappings.h"
#include "quarantine.h"
#include "runtime.h"

#define NANOSECONDS 1000000000u
#define FIRST_SLOW_NS 10000000u /* slow samples are at least so far apart in the first second */
#define DEAR_SHARE 300          /* a dear part rests for 300 times what it took */
#define EARLY_SHARE 100         /* the C allocator for 100 times in the first two seconds */
#define GROWN_SHARE 100         /* a picture for 100 times, if much has come since */
#define FORCED_SHARE 10         /* a picture that is asked for */
#define LEAST_GROWN_BYTES (4u << 20)
#define UNTOUCHED_BUDGET_NS 20000000u
#define SHARP_NS 50000u /* waiting in the midst of asking for what belongs to one moment */
#define SHARP_TRIES 3
#define EARLY_NS 2000000000u

enum dear_part { DEAR_ALLOCATOR, DEAR_UNTOUCHED, DEAR_MAPPINGS, DEAR_SMAPS, DEAR_PARTS };

typedef struct {
    uint64_t anon_bytes;
    uint64_t file_bytes;
} resident;

/* What one sample found, in the order in which it will stand in the file. */
typedef struct {
    uint32_t count;
    struct {
        tlm_metric metric;
        uint64_t value;
    } found[32];
} sample;

static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the other one */
static pthread_mutex_t sampler_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;
static bool with_smaps;
static uint64_t log_inode;
static uint64_t opened_ns;
static uint64_t next_slow_ns;
static uint64_t next_dear_ns[DEAR_PARTS];
static uint64_t last_recorder_bytes;
static uint64_t last_module_count;
static uint64_t last_driver_bytes;
static uint64_t last_tapes_bytes;
static uint64_t next_grown_ns, next_forced_ns;
static uint64_t pictured_bytes; /* resident at the last picture */
static resident last_resident;  /* of the last fast sample, which each slow one follows */
static bool resident_known;

static void add_metric(sample *taken, tlm_metric metric, uint64_t value)
{
    taken->found[taken->count].metric = metric;
    taken->found[taken->count++].value = value;
}

static void append_sample(const sample *taken)
{
    for (uint32_t i = 0; i < taken->count; i++)
        tlmi_event_append(TLM_KIND_SAMPLE, TLM_DEVICE_NONE, taken->found[i].metric, taken->found[i].value, 0, 0);
}

#if defined(__linux__)

/* As glibc declares it; found at run time so that another C library will do as well. */
typedef struct {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
} allocator_statistics;

static const char statm_path[] = "/proc/self/statm", status_path[] = "/proc/self/status",
                  smaps_path[] = "/proc/self/smaps_rollup", mappings_path[] = "/proc/self/smaps";
static tlmi_own_file statm = {.fd = -1}, status = {.fd = -1}, smaps = {.fd = -1}, mappings = {.fd = -1};
static allocator_statistics (*ask_allocator)(void);
static uint64_t page_bytes;

static void reopen_file(tlmi_own_file *file, const char *path)
{
    tlmi_own_file_close(file);
    tlmi_own_file_keep(file, path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC));
}

static bool read_text(tlmi_own_file *file, const char *path, char *text, size_t room)
{
    if (file->fd >= 0 && !tlmi_own_file_is_ours(file))
        reopen_file(file, path);
    ssize_t got = file->fd < 0 ? -1 : pread(file->fd, text, room - 1, 0);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* The number of kB after a label at the start of a line, in bytes. */
static bool find_bytes(const char *text, const char *label, uint64_t *bytes)
{
    const char *found = strstr(text, label);
    if (found == NULL)
        return false;
    *bytes = strtoull(found + strlen(label), NULL, 10) * 1024;
    return true;
}

static void open_platform(void)
{
    page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    reopen_file(&statm, statm_path);
    reopen_file(&status, status_path);
    reopen_file(&smaps, with_smaps ? smaps_path : NULL);
    reopen_file(&mappings, mappings_path);
    ask_allocator = (allocator_statistics (*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
}

static void close_platform(void)
{
    reopen_file(&statm, NULL);
    reopen_file(&status, NULL);
    reopen_file(&smaps, NULL);
    reopen_file(&mappings, NULL);
}

static bool read_resident(resident *out)
{
    char text[128];
    if (!read_text(&statm, statm_path, text, sizeof text))
        return false;
    char *rest;
    strtoull(text, &rest, 10);
    uint64_t pages = strtoull(rest, &rest, 10);
    uint64_t shared = strtoull(rest, &rest, 10);
    out->anon_bytes = (pages > shared ? pages - shared : 0) * page_bytes;
    out->file_bytes = shared * page_bytes;
    return true;
}

static void add_limits(sample *taken)
{
    char text[2048];
    uint64_t bytes;
    if (!read_text(&status, status_path, text, sizeof text))
        return;
    if (find_bytes(text, "\nVmHWM:", &bytes))
        add_metric(taken, TLM_METRIC_HIGH_WATER, bytes);
    if (find_bytes(text, "\nVmSwap:", &bytes))
        add_metric(taken, TLM_METRIC_SWAP, bytes);
}

static void add_allocator(sample *taken)
{
    if (ask_allocator == NULL)
        return;
    allocator_statistics now = ask_allocator();
    add_metric(taken, TLM_METRIC_MALLOC_USED, now.uordblks + now.hblkhd);
    add_metric(taken, TLM_METRIC_MALLOC_FREE, now.fordblks);
    add_metric(taken, TLM_METRIC_MALLOC_MAPPED, now.hblkhd);
}

static void add_smaps(sample *taken)
{
    char text[4096];
    uint64_t bytes, dirty;
    if (!read_text(&smaps, smaps_path, text, sizeof text))
        return;
    if (find_bytes(text, "\nPss:", &bytes))
        add_metric(taken, TLM_METRIC_PSS, bytes);
    if (find_bytes(text, "\nPrivate_Clean:", &bytes) && find_bytes(text, "\nPrivate_Dirty:", &dirty))
        add_metric(taken, TLM_METRIC_PRIVATE, bytes + dirty);
}

static bool read_mappings(tlmi_mappings_reader *reader)
{
    char text[8192];
    off_t at = 0;
    if (mappings.fd >= 0 && !tlmi_own_file_is_ours(&mappings))
        reopen_file(&mappings, mappings_path);
    tlmi_mappings_begin(reader, log_inode, tlmi_quarantine_was_active());
    for (ssize_t got; mappings.fd >= 0 && (got = pread(mappings.fd, text, sizeof text, at)) > 0; at += got)
        tlmi_mappings_feed(reader, text, (size_t)got);
    return at > 0;
}

static void add_mappings(sample *taken)
{
    tlmi_mappings_reader reader;
    if (!read_mappings(&reader))
        return;
    const tlmi_mappings *now = tlmi_mappings_end(&reader);
    add_metric(taken, TLM_METRIC_LIBRARY_DATA, now->library_data);
    add_metric(taken, TLM_METRIC_STACKS, now->stacks);
    add_metric(taken, TLM_METRIC_ALLOCATOR_RESIDENT, now->allocator);
    add_metric(taken, TLM_METRIC_MAPPED, now->mapped);
    add_metric(taken, TLM_METRIC_LOG_FILE, now->log);
    add_metric(taken, TLM_METRIC_SHARED, now->shared);
    add_metric(taken, TLM_METRIC_DATA_FILES, now->data_files);
    add_metric(taken, TLM_METRIC_RECORDER_RESIDENT, tlmi_own_resident_bytes() + tlmi_quarantine_resident_bytes());
}

#elif defined(__APPLE__)

static void open_platform(void)
{
}

static void close_platform(void)
{
}

static bool ask_kernel(task_vm_info_data_t *info)
{
    mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
    return task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)info, &count) == KERN_SUCCESS;
}

static bool read_resident(resident *out)
{
    task_vm_info_data_t info;
    if (!ask_kernel(&info))
        return false;
    out->anon_bytes = info.phys_footprint;
    out->file_bytes = info.external;
    return true;
}

static void add_limits(sample *taken)
{
    task_vm_info_data_t info;
    if (!ask_kernel(&info))
        return;
    add_metric(taken, TLM_METRIC_HIGH_WATER, info.resident_size_peak);
    add_metric(taken, TLM_METRIC_SWAP, info.compressed);
}

static void add_allocator(sample *taken)
{
    malloc_statistics_t now = {0};
    malloc_zone_statistics(NULL, &now);
    add_metric(taken, TLM_METRIC_MALLOC_USED, now.size_in_use);
    add_metric(taken, TLM_METRIC_MALLOC_FREE, now.size_allocated - now.size_in_use);
}

static void add_smaps(sample *taken)
{
    (void)taken;
}

static void add_mappings(sample *taken)
{
    (void)taken;
}

#else

static void open_platform(void)
{
}

static void close_platform(void)
{
}

static bool read_resident(resident *out)
{
    (void)out;
    return false;
}

static void add_limits(sample *taken)
{
    (void)taken;
}

static void add_allocator(sample *taken)
{
    (void)taken;
}

static void add_smaps(sample *taken)
{
    (void)taken;
}

static void add_mappings(sample *taken)
{
    (void)taken;
}

#endif

static void add_faults(sample *taken)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    add_metric(taken, TLM_METRIC_MINOR_FAULTS, (uint64_t)usage.ru_minflt);
    add_metric(taken, TLM_METRIC_MAJOR_FAULTS, (uint64_t)usage.ru_majflt);
}

static void add_untouched(sample *taken)
{
    bool known;
    uint64_t bytes = tlmi_interpreter_now()->untouched_bytes(UNTOUCHED_BUDGET_NS, &known);
    if (known)
        add_metric(taken, TLM_METRIC_UNTOUCHED, bytes);
}

static void add_python_heap(sample *taken)
{
    bool known;
    uint64_t bytes = tlmi_interpreter_now()->arena_bytes(&known);
    if (known)
        add_metric(taken, TLM_METRIC_PYTHON_ARENA, bytes);
    bytes = tlmi_interpreter_now()->large_bytes(&known);
    if (known)
        add_metric(taken, TLM_METRIC_PYTHON_LARGE, bytes);
}

/* Takes a dear part when it is due, and puts it off by the processor time it cost: on a busy machine the time that passes
 * is mostly spent waiting, and a part put off by that would hardly ever be taken. */
static void add_dear(sample *taken, enum dear_part part, void (*add)(sample *), bool force)
{
    if (!force && tlmi_clock_ns() < next_dear_ns[part])
        return;
    uint64_t begin = tlmi_clock_thread_ns();
    add(taken);
    next_dear_ns[part] = tlmi_clock_ns() + (tlmi_clock_thread_ns() - begin) * DEAR_SHARE;
}

/* What tracked memory is subtracted from comes last, next to the events that tell it, and is asked again when the thread had
 * to wait for a processor meanwhile: a burst of arrays between the question and its event looks like a dip of the rest. What
 * takes long anyway is not asked again. A short run is asked more often: a few points say nothing of growth. */
static void add_moment(sample *taken, bool force)
{
    bool due = force || tlmi_clock_ns() >= next_dear_ns[DEAR_ALLOCATOR];
    uint32_t before = taken->count;
    uint64_t used = 0;
    for (int tries = 0; tries < SHARP_TRIES; tries++) {
        uint64_t begin = tlmi_clock_ns(), begin_thread = tlmi_clock_thread_ns();
        taken->count = before;
        add_python_heap(taken);
        if (!due)
            return;
        add_allocator(taken);
        uint64_t worked = tlmi_clock_thread_ns() - begin_thread;
        used += worked;
        if (worked > SHARP_NS || tlmi_clock_ns() - begin <= worked + SHARP_NS)
            break;
    }
    uint64_t now = tlmi_clock_ns();
    next_dear_ns[DEAR_ALLOCATOR] = now + used * (now - opened_ns < EARLY_NS ? EARLY_SHARE : DEAR_SHARE);
}

static bool are_all_due(uint64_t now)
{
    return now >= next_dear_ns[DEAR_ALLOCATOR] && now >= next_dear_ns[DEAR_UNTOUCHED] &&
           now >= next_dear_ns[DEAR_MAPPINGS];
}

static bool has_grown(void)
{
    uint64_t least = pictured_bytes / 8 < LEAST_GROWN_BYTES ? LEAST_GROWN_BYTES : pictured_bytes / 8;
    return resident_known && last_resident.anon_bytes > pictured_bytes + least;
}

/* Parts that belong together: only when taken at one moment can they add up. A picture is taken when each of them is due, or
 * earlier when much has come since the last one. */
static void add_picture(sample *taken, bool force)
{
    uint64_t now = tlmi_clock_ns();
    bool whole = (force && now >= next_forced_ns) || are_all_due(now) || (now >= next_grown_ns && has_grown());
    uint64_t begin = tlmi_clock_thread_ns();
    if (whole)
        add_dear(taken, DEAR_MAPPINGS, add_mappings, true);
    add_dear(taken, DEAR_UNTOUCHED, add_untouched, force || whole);
    add_moment(taken, force || whole);
    if (!whole)
        return;
    uint64_t cost = tlmi_clock_thread_ns() - begin;
    next_grown_ns = tlmi_clock_ns() + cost * GROWN_SHARE;
    next_forced_ns = tlmi_clock_ns() + cost * FORCED_SHARE;
    pictured_bytes = last_resident.anon_bytes;
}

static void add_resident(sample *taken)
{
    resident_known = read_resident(&last_resident);
    if (resident_known)
        add_metric(taken, TLM_METRIC_ANON, last_resident.anon_bytes);
    uint64_t recorder = tlmi_own_current_bytes() + tlmi_quarantine_resident_bytes();
    if (recorder != last_recorder_bytes)
        add_metric(taken, TLM_METRIC_RECORDER, recorder);
    last_recorder_bytes = recorder;
    uint64_t driver = tlmi_devices_driver_bytes();
    if (driver != last_driver_bytes)
        add_metric(taken, TLM_METRIC_DRIVER, driver);
    last_driver_bytes = driver;
    uint64_t tapes = tlmi_tapes_record_bytes();
    if (tapes != last_tapes_bytes)
        add_metric(taken, TLM_METRIC_TAPES, tapes);
    last_tapes_bytes = tapes;
    bool known;
    uint64_t module_count = tlmi_interpreter_now()->module_count(&known);
    if (known && module_count != last_module_count)
        add_metric(taken, TLM_METRIC_MODULES, module_count);
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

void tlmi_rss_open(bool smaps, const tlmi_own_file *log)
{
    pthread_once(&fork_handler_once, install_fork_handler);
    pthread_mutex_lock(&sampler_lock);
    with_smaps = smaps;
    log_inode = log != NULL && log->fd >= 0 ? log->inode : 0;
    open_platform(); /* anew, also when open: after a fork the open files are the parent's */
    opened_ns = tlmi_clock_ns();
    next_slow_ns = next_grown_ns = next_forced_ns = pictured_bytes = 0;
    memset(next_dear_ns, 0, sizeof next_dear_ns);
    last_recorder_bytes = last_module_count = last_driver_bytes = last_tapes_bytes = 0;
    resident_known = false;
    pthread_mutex_unlock(&sampler_lock);
}

void tlmi_rss_close(void)
{
    pthread_mutex_lock(&sampler_lock);
    close_platform();
    pthread_mutex_unlock(&sampler_lock);
}

void tlmi_rss_fast(void)
{
    sample taken = {0};
    pthread_mutex_lock(&order_lock);
    pthread_mutex_lock(&sampler_lock);
    add_resident(&taken);
    pthread_mutex_unlock(&sampler_lock);
    append_sample(&taken);
    pthread_mutex_unlock(&order_lock);
}

void tlmi_rss_slow(bool force)
{
    sample taken = {0};
    pthread_mutex_lock(&order_lock);
    pthread_mutex_lock(&sampler_lock);
    uint64_t now = tlmi_clock_ns();
    if (force || now >= next_slow_ns) {
        uint64_t apart = (now - opened_ns) / 100;
        apart = apart < FIRST_SLOW_NS ? FIRST_SLOW_NS : apart > NANOSECONDS ? NANOSECONDS : apart;
        next_slow_ns = now + apart;
        if (resident_known)
            add_metric(&taken, TLM_METRIC_FILE, last_resident.file_bytes);
        add_limits(&taken);
        add_picture(&taken, force);
        if (with_smaps) {
            add_faults(&taken);
            add_dear(&taken, DEAR_SMAPS, add_smaps, force);
        }
    }
    pthread_mutex_unlock(&sampler_lock);
    append_sample(&taken);
    pthread_mutex_unlock(&order_lock);
}
