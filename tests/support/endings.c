/* SPDX-License-Identifier: MIT
 * endings.c: a program with probes that ends in the way its first word says, after it made and freed ROUNDS objects.
 *
 * A second word is the library that "close" opens and closes.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tlmem_probe.h"

enum { ROUNDS = 20000, THREADS = 4 };

static char objects[256][64];
static _Atomic int busy;

static void use_memory(int count)
{
    for (int i = 0; i < count; i++) {
        char *it = objects[i & 255];
        TLM_PROBE_ALLOC(it, 64);
        TLM_PROBE_FREE(it);
    }
}

static void *keep_going(void *unused)
{
    use_memory(ROUNDS);
    atomic_fetch_add(&busy, 1);
    for (;;)
        use_memory(1);
    return unused;
}

/* Ends while other threads are in the middle of it. */
static void end_with_threads(void)
{
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, keep_going, NULL);
    while (atomic_load(&busy) < THREADS)
        sched_yield();
}

/* The child makes ten objects more, and its own child ten more again. */
static void end_with_children(void)
{
    for (int depth = 0; depth < 2; depth++) {
        pid_t child = fork();
        if (child > 0) {
            int status;
            waitpid(child, &status, 0);
            use_memory(5); /* the parent goes on recording */
            exit(status != 0);
        }
        use_memory(10);
    }
}

static void end_with_closed_library(const char *name)
{
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        double (*run)(int, int) = library ? (double (*)(int, int))dlsym(library, "steps_run") : NULL;
        if (!run)
            exit(2);
        run(10, 0);
        dlclose(library);
        if (dlopen(name, RTLD_NOW | RTLD_NOLOAD))
            exit(3); /* it is still there: the test would show nothing */
    }
}

static void use_memory_at_exit(void)
{
    use_memory(3);
}

/* The second of two objects goes back to where it did not come from. */
static void mix_allocators(void)
{
    TLM_PROBE_ALLOC_WITH(objects[0], 64, "heap");
    TLM_PROBE_ALLOC_WITH(objects[1], 64, "heap");
    TLM_PROBE_FREE_WITH(objects[0], "heap");
    TLM_PROBE_FREE_WITH(objects[1], "pool"); /* wrong here */
}

int main(int count, char **words)
{
    const char *way = count > 1 ? words[1] : "";
    use_memory(ROUNDS);
    if (strcmp(way, "threads") == 0)
        end_with_threads();
    else if (strcmp(way, "children") == 0)
        end_with_children();
    else if (strcmp(way, "close") == 0)
        end_with_closed_library(words[2]);
    else if (strcmp(way, "allocators") == 0)
        mix_allocators();
    else if (strcmp(way, "handler") == 0)
        atexit(use_memory_at_exit);
    else if (strcmp(way, "_exit") == 0)
        _exit(0);
    else if (strcmp(way, "kill") == 0)
        kill(getpid(), SIGKILL);
    exit(0);
}
