/* SPDX-License-Identifier: MIT
 * steps.c: a program of the runtime of refs.h with a leak that can be switched on: a value is retained to look at it, and kept.
 *
 *     cc -g $(tlmem doctor --cflags) -o steps steps.c refs.c
 *     TLMEM_RECORD=steps.tlm TLMEM_LIBRARY=... ./steps [leak] [STEPS]
 *
 * It needs nothing of tlmem but a header; docs/how-to/other-languages.md says what is between the lines.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "refs.h"

enum { STEPS = 3000, VALUES = 100 };

static void wait_a_moment(void)
{
    struct timespec moment = {0, 50000};
    nanosleep(&moment, NULL);
}

static double look(refs_object *cell, int leaks)
{
    refs_object *value;
    refs_get(value, cell, "look"); /* retained here */
    double first = *(double *)refs_payload(value);
    if (!leaks)
        refs_release(value, "look");
    return first;
}

/* What one step sees. Also called from Python, with ctypes. */
double steps_run(int steps, int leaks)
{
    double sum = 0;
    for (int step = 0; step < steps; step++) {
        uint64_t scope;
        refs_object *value, *cell;
        TLM_PROBE_SCOPE_ENTER(scope, "step");
        refs_new(value, VALUES * sizeof(double)); /* leaks here */
        *(double *)refs_payload(value) = step;
        refs_cell(cell, value);
        sum += look(cell, leaks);
        refs_release(cell, "program");
        TLM_PROBE_SCOPE_EXIT(scope, leaks ? 1 : 2);
        wait_a_moment();
    }
    return sum;
}

int main(int count, char **words)
{
    int leaks = count > 1 && strcmp(words[1], "leak") == 0;
    int steps = count > 1 + leaks ? atoi(words[1 + leaks]) : STEPS;
    return steps_run(steps, leaks) < 0;
}
