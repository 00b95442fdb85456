/* SPDX-License-Identifier: MIT
 * test_children.c: children that run are found and added up, those left out aside; bytes in files of any length; names.
 *
 * tlm-test: sources=children.c modes=address,valgrind */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "platform/children.h"

#ifdef __linux__
enum { CHILDREN = 3, SECONDS_AT_MOST = 120 };

static pid_t made[CHILDREN];
static int asked;

static bool is_first(int pid, void *with)
{
    CHECK(with == made);
    CHECK(pid == made[0] || pid == made[1] || pid == made[2]);
    asked++;
    return pid == made[0];
}

static void bytes_are_found(void)
{
    char path[256], text[5000];
    FILE *file = fopen(temporary_path(path, sizeof path, "children"), "wb");
    CHECK(file != NULL);
    memset(text, 'a', sizeof text);
    for (int i = 0; i < 5; i++)
        CHECK(fwrite(text, 1, 4997, file) == 4997);
    CHECK(fwrite("needle\0and more", 1, 15, file) == 15);
    CHECK(fclose(file) == 0);
    CHECK(tlmi_file_contains(path, "needle\0and", 10) && tlmi_file_contains(path, "more", 4));
    CHECK(tlmi_file_contains(path, text, 4997) && !tlmi_file_contains(path, "needles", 7));
    CHECK(!tlmi_file_contains(path, "", 0) && !tlmi_file_contains(path, text, 5001));
    CHECK(!tlmi_file_contains("/nowhere", "a", 1));
    remove(path);
}

static bool is_x(const char *name, void *with)
{
    (*(int *)with)++;
    return name[0] == 'x';
}

static void names_are_counted(void)
{
    char path[256], file[300];
    int looked = 0;
    enum { FILES = 300 }; /* more than fit into one answer of the system */
    CHECK(mkdir(temporary_path(path, sizeof path, "names"), 0700) == 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(file, sizeof file, "%s/%c-%d", path, i % 3 ? 'x' : 'y', i);
        FILE *made = fopen(file, "wb");
        CHECK(made != NULL && fclose(made) == 0);
    }
    CHECK(tlmi_count_names(path, is_x, &looked) == 200);
    CHECK(looked == FILES + 2); /* with . and .. */
    CHECK(tlmi_count_names("/nowhere", is_x, &looked) == 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(file, sizeof file, "%s/%c-%d", path, i % 3 ? 'x' : 'y', i);
        CHECK(remove(file) == 0);
    }
    CHECK(rmdir(path) == 0);
}

/* What the children but the first have used, once the system says that it is anything: it counts in ticks. */
static tlmi_usage usage_of_running(void)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    tlmi_usage sum = {0};
    for (time_t end = time(NULL) + SECONDS_AT_MOST; time(NULL) < end; nanosleep(&pause, NULL)) {
        asked = 0;
        CHECK(tlmi_running_children(is_first, made, &sum) == CHILDREN - 1 && asked == CHILDREN);
        if (sum.cpu_ns > 0)
            break;
    }
    return sum;
}

#endif

int main(void)
{
#ifdef __linux__
    bytes_are_found();
    names_are_counted();
    CHECK(tlmi_peak_since_exec() > 100000);
    for (int i = 0; i < CHILDREN; i++) {
        made[i] = fork();
        if (made[i] == 0) {
            alarm(2 * SECONDS_AT_MOST); /* the end, if the parent fails */
            for (;;)
                (void)getpid();
        }
        CHECK(made[i] > 0);
    }
    tlmi_usage sum = usage_of_running(), own = tlmi_usage_of_this();
    CHECK(sum.cpu_ns > 0 && sum.cpu_ns < UINT64_C(3600) * 1000000000);
    CHECK(sum.peak_bytes > 100000 && own.peak_bytes > 100000 && own.cpu_ns > 0);
    CHECK(tlmi_usage_of_children().cpu_ns == 0);
    for (int i = 0; i < CHILDREN; i++)
        CHECK(kill(made[i], SIGKILL) == 0 && waitpid(made[i], NULL, 0) == made[i]);
    CHECK(tlmi_running_children(is_first, made, &sum) == 0 && sum.cpu_ns == 0);
    CHECK(tlmi_usage_of_children().cpu_ns > 0);
#endif
    return 0;
}
