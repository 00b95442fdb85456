/* SPDX-License-Identifier: MIT
 * test_environment.c: a process that the environment records, from the first constructor to exit, with forks in between.
 *
 * It runs itself again with TLMEM_RECORD set, so that the recording is opened as in any program, and looks at the files.
 * ThreadSanitizer does not let a forked child start threads, as each recording does.
 *
 * tlm-test: sources=core modes=address,valgrind */
#include <glob.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

STAND_IN_FOR_SAMPLER

enum { FORKS = 3 };

static char file[256];

static bool is_running(void)
{
    tlm_recording_statistics now;
    tlm_recording_stats(&now);
    return now.running;
}

static void wait_for(pid_t child, int expected)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

/* ---- the recorded program ---- */

static void *fork_often(void *unused)
{
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(is_running() == (getenv("TLMEM_RECORD_CHILDREN") != NULL));
            tlmi_event_append(TLM_KIND_RESET, TLM_DEVICE_NONE, 1, 1, 0, 0);
            exit(7);
        }
        wait_for(child, 7);
    }
    return unused;
}

/* AddressSanitizer holds no locks of its allocator across a fork: a child whose parent created or ended a thread at that
 * moment may wait for one forever. Under it two threads fork one after the other. */
#ifdef __SANITIZE_ADDRESS__
enum { FORK_AT_ONCE = 0 };
#else
enum { FORK_AT_ONCE = 1 };
#endif

/* Two threads fork, at first while one of them records. */
static int be_recorded(void)
{
    pthread_t forking;
    if (!is_running())
        return 1;
    CHECK(pthread_create(&forking, NULL, fork_often, NULL) == 0);
    for (int i = 0; i < 20000; i++)
        tlmi_event_append(TLM_KIND_RESET, TLM_DEVICE_NONE, 1, 1, 0, 0);
    if (FORK_AT_ONCE)
        fork_often(NULL);
    CHECK(pthread_join(forking, NULL) == 0);
    if (!FORK_AT_ONCE)
        fork_often(NULL);
    CHECK(is_running());
    return 0;
}

/* ---- who runs it and looks ---- */

static void run_again(const char *program, int expected)
{
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "recorded", (char *)NULL);
        _exit(127);
    }
    wait_for(child, expected);
}

static tlmi_file_header header_of(const char *path)
{
    tlmi_file_header header;
    FILE *opened = fopen(path, "rb");
    CHECK(opened && fread(&header, sizeof header, 1, opened) == 1 && fclose(opened) == 0);
    return header;
}

/* Checks and removes the files of the children; returns how many there were. */
static int check_children(uint32_t parent)
{
    char pattern[320];
    glob_t children;
    snprintf(pattern, sizeof pattern, "%.*s.*.tlm", (int)strlen(file) - 4, file);
    int failed = glob(pattern, 0, NULL, &children);
    if (failed == GLOB_NOMATCH)
        return 0;
    CHECK(failed == 0);
    int found = (int)children.gl_pathc;
    for (int i = 0; i < found; i++) {
        tlmi_file_header header = header_of(children.gl_pathv[i]);
        CHECK(header.state == TLMI_STATE_SEALED && header.parent_pid == parent);
        snprintf(pattern, sizeof pattern, "%.*s.%u.tlm", (int)strlen(file) - 4, file, header.pid);
        CHECK(strcmp(children.gl_pathv[i], pattern) == 0 && remove(pattern) == 0);
    }
    globfree(&children);
    return found;
}

static void check_run(const char *program, int children)
{
    run_again(program, 0);
    tlmi_file_header header = header_of(file);
    CHECK(header.state == TLMI_STATE_SEALED && header.total_events > 20000 && header.lost_events == 0);
    CHECK(check_children(header.pid) == children);
    CHECK(remove(file) == 0);
}

int main(int count, char **words)
{
    if (count > 1)
        return be_recorded();
    CHECK(!is_running());
    setenv("TLMEM_RECORD", temporary_path(file, sizeof file, "environment"), 1);
    check_run(words[0], 0);
    setenv("TLMEM_RECORD_CHILDREN", "1", 1);
    check_run(words[0], 2 * FORKS);
    setenv("TLMEM_RECORD_MAX_FILE", "three", 1);
    run_again(words[0], 1); /* it found that it is not recorded */
    CHECK(access(file, F_OK) != 0);
    return 0;
}
