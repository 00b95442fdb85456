/* SPDX-License-Identifier: MIT
 * test_site.c: the tree of call sites: same path, same number; named before seen; many threads; memory that runs out.
 *
 * tlm-test: sources=own_memory.c,system.c,site.c */
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4, CODES = 40, STEPS = 60000, MOST = 1 << 20 };

typedef struct {
    uint32_t parent, code, line;
} named_site;

/* What would be in the file: written under the tree's lock, read by any thread that was given the number. */
static named_site named[MOST];
static _Atomic uint32_t named_count;
static _Atomic bool refuse_names;
static _Atomic uint32_t lines_asked;

bool tlmi_meta_site(uint32_t site, uint32_t parent, uint32_t code, uint32_t line)
{
    if (refuse_names)
        return false;
    CHECK(site < MOST && named[site].code == 0);
    CHECK(parent < 2 || named[parent].code != 0);
    named[site] = (named_site){parent, code, line};
    named_count++;
    return true;
}

static uint32_t line_of(void *context)
{
    lines_asked++;
    return *(uint32_t *)context / 2;
}

static uint32_t child(uint32_t parent, uint32_t code, uint32_t instruction)
{
    return tlmi_site_child(parent, code, instruction, line_of, &instruction);
}

static void begin(void)
{
    memset(named, 0, sizeof named);
    named_count = 0;
    CHECK(tlmi_site_init(64));
    CHECK(tlmi_site_count() == 0);
}

static void check_small_tree(void)
{
    begin();
    lines_asked = 0;
    uint32_t a = child(0, 7, 10), b = child(a, 7, 10), c = child(0, 7, 12), d = child(1, 7, 10);
    CHECK(a == 2 && b == 3 && c == 4 && d == 5);
    CHECK(child(0, 7, 10) == a && child(a, 7, 10) == b && child(1, 7, 10) == d);
    CHECK(lines_asked == 4 && tlmi_site_count() == 4);
    CHECK(named[b].parent == a && named[b].code == 7 && named[b].line == 5);
}

/* Each thread walks the same tree in another order and compares what it is given with what was named. */
static void *walk(void *seed)
{
    uint64_t random = (uint64_t)(uintptr_t)seed;
    uint32_t site = 0, depth = 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t next = next_random(&random);
        if (depth == 12 || next % 7 == 0) {
            site = 0;
            depth = 0;
        }
        uint32_t code = 1 + (uint32_t)(next >> 8) % CODES, instruction = 2 * ((uint32_t)(next >> 20) % 2);
        uint32_t below = child(site, code, instruction);
        CHECK(below >= 2);
        CHECK(named[below].parent == site && named[below].code == code && named[below].line == instruction / 2);
        site = below;
        depth++;
    }
    return NULL;
}

static void check_many_threads(void)
{
    pthread_t threads[THREADS];
    begin();
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, walk, (void *)(i % 2 + 12345)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(tlmi_site_count() == named_count);
    CHECK(named_count > 8192); /* so that the table has grown twice */
    /* Every site is found again by its path alone. */
    for (uint32_t site = 2; site < 2 + named_count; site++)
        CHECK(child(named[site].parent, named[site].code, named[site].line * 2) == site);
}

static void check_full_file(void)
{
    begin();
    uint32_t a = child(0, 1, 0);
    refuse_names = true;
    CHECK(child(a, 2, 0) == 0 && child(a, 2, 0) == 0);
    CHECK(child(0, 1, 0) == a);
    refuse_names = false;
    int tries = 0; /* it is not asked each time whether there is room again */
    while (child(a, 2, 0) == 0)
        CHECK(++tries < 1000);
    CHECK(child(a, 2, 0) == a + 1);
}

/* The table cannot grow: it serves until it is nearly full, then new sites are refused and old ones still found. */
static void check_no_memory(void)
{
    uint32_t made = 0, below;
    uint64_t before = tlmi_own_current_bytes();
    begin();
    CHECK(tlmi_own_current_bytes() == before); /* a later recording uses the same memory again */
    for (uint32_t i = 0; i < MOST / 4; i++) {
        tlm_own_fail_after(1);
        below = child(0, i + 1, 0);
        if (below == 0)
            break;
        made++;
    }
    tlm_own_fail_after(0);
    CHECK(tlmi_own_current_bytes() == before);
    CHECK(below == 0 && made > 4096 / 2);
    for (uint32_t i = 0; i < made; i++)
        CHECK(child(0, i + 1, 0) == i + 2);
    CHECK(child(0, made + 1, 0) == made + 2);
    CHECK(tlmi_own_current_bytes() > before);
}

static void check_off(void)
{
    tlmi_site_reset();
    CHECK(child(0, 1, 0) == 0);
    CHECK(tlmi_site_init(0));
    CHECK(child(0, 1, 0) == 0);
}

static void check_first_memory(void)
{
    tlm_own_fail_after(1);
    CHECK(!tlmi_site_init(64));
    CHECK(child(0, 1, 0) == 0);
}

int main(void)
{
    check_first_memory();
    check_small_tree();
    check_many_threads();
    check_full_file();
    check_no_memory();
    check_off();
    return 0;
}
