/* SPDX-License-Identifier: MIT
 * last_words.c: the lines at the end of stderr, written when the interpreter is gone: nothing of the program comes after them.
 *
 * The verdict is another process' answer; this one has been changed by the program in any way, and its memory is not to grow
 * at the end. The other one gets the environment that this one had at the start. Only the main thread is here, once.
 */
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/platform.h"
#include "tlmem_python.h"

extern char **environ;

enum { ANSWER_ROOM = 16384 };

static struct stat stderr_at_start;
static bool stderr_was_open;
static char **environment_at_start;
static char **judge; /* its command line; NULL: nobody is asked */
static char **words; /* what is said instead of its answer, and what is said then */
static pid_t speaker;

/* A copy of a list of texts that ends with NULL, or NULL; it stays to the end of the process. */
static char **copy_texts(const char *const *texts)
{
    size_t count = 0, bytes = 0;
    for (; texts != NULL && texts[count] != NULL; count++)
        bytes += strlen(texts[count]) + 1;
    char **copies = tlmi_own_alloc((count + 1) * sizeof *copies + bytes);
    char *to = (char *)(copies + count + 1);
    for (size_t i = 0; copies != NULL && i < count; i++) {
        size_t length = strlen(texts[i]) + 1;
        copies[i] = memcpy(to, texts[i], length);
        to += length;
    }
    return copies;
}

void tlm_remember_stderr(void)
{
    stderr_was_open = fstat(STDERR_FILENO, &stderr_at_start) == 0;
    if (environment_at_start == NULL)
        environment_at_start = copy_texts((const char *const *)environ);
}

int tlm_stderr_is_open(void)
{
    struct stat now;
    return fstat(STDERR_FILENO, &now) == 0 && stderr_was_open && now.st_dev == stderr_at_start.st_dev &&
           now.st_ino == stderr_at_start.st_ino;
}

static void say(const char *text)
{
    size_t left = text ? strlen(text) : 0;
    while (left > 0) {
        ssize_t put = write(STDERR_FILENO, text, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return;
        text += put;
        left -= (size_t)put;
    }
}

/* Starts the judge with its stdout as a pipe; the end to read from, or -1. */
static int start_judge(pid_t *child, bool interrupts)
{
    int ends[2], out = -1;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    if (pipe(ends) != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        /* Away from the three: the program may have closed some. */
        int high = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(ends[i]);
        ends[i] = high;
    }
    if (posix_spawn_file_actions_init(&files) != 0) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    if (posix_spawnattr_init(&attributes) == 0) {
        sigset_t none, usual;
        sigemptyset(&none);
        sigemptyset(&usual);
        sigaddset(&usual, SIGALRM);
        if (interrupts)
            sigaddset(&usual, SIGINT);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &usual);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        bool ready = posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO) == 0 &&
                     posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
                     posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0;
        if (ready && posix_spawn(child, judge[0], &files, &attributes, judge, environment_at_start) == 0)
            out = ends[0];
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (out < 0)
        close(ends[0]);
    return out;
}

/* The judge's sentence on one line, without what a terminal would take for a command. */
static size_t ask_judge(char *answer, size_t room, bool interrupts)
{
    pid_t child;
    size_t got = 0, kept = 0;
    int from = judge && environment_at_start ? start_judge(&child, interrupts) : -1;
    if (from < 0)
        return 0;
    for (;;) {
        char discarded[512];
        bool full = got == room - 1;
        ssize_t more = full ? read(from, discarded, sizeof discarded) : read(from, answer + got, room - 1 - got);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            break;
        got += full ? 0 : (size_t)more;
    }
    close(from);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    for (size_t i = 0; i < got; i++) {
        bool blank = (unsigned char)answer[i] <= ' ' || answer[i] == 0x7F;
        if (!blank)
            answer[kept++] = answer[i];
        else if (kept > 0 && answer[kept - 1] != ' ')
            answer[kept++] = ' ';
    }
    while (kept > 0 && answer[kept - 1] == ' ')
        kept--;
    answer[kept] = 0;
    return kept;
}

static void speak(void)
{
    static const int ended_by[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGPIPE, SIGXFSZ, SIGXCPU, SIGINT};
    static char answer[ANSWER_ROOM];
    if (speaker != getpid() || !tlm_stderr_is_open())
        return;
    /* The program is over: a timer of its own must not change its exit code because we take our time. */
    struct sigaction before;
    bool interrupts = sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN;
    for (size_t i = 0; i < sizeof ended_by / sizeof *ended_by; i++)
        signal(ended_by[i], SIG_IGN);
    bool answered = ask_judge(answer, sizeof answer, interrupts) > 0;
    say("tlmem: ");
    say(answered ? answer : words[0]);
    say("\n");
    say(words[1]);
}

void tlm_last_words(const char *const *command, const char *instead, const char *more)
{
    const char *both[] = {instead, more, NULL};
    judge = command ? copy_texts(command) : NULL;
    words = copy_texts(both);
    if (words != NULL && speaker == 0 && Py_AtExit(speak) == 0)
        speaker = getpid();
}
