/* SPDX-License-Identifier: MIT
 * source_objects.c: samples Python's small objects, which never come to the raw domain: the domains "mem" and "obj".
 *
 * Both are wrapped through Python's public interface; pointers and contexts are passed on unchanged, so a block may be
 * allocated before and freed after installing, or the other way round. Which bytes are chosen source_heap.c says; these
 * domains have a count of their own, since their larger blocks go on to the raw domain and are counted there.
 *
 * The fast way, with Python's own allocator: what is not due costs a subtraction and a jump. A block that is due is asked for
 * with one byte more than the allocator keeps in its pools. So it comes from the raw domain, where its end is seen anyway,
 * and no free of any other object is looked at. Python's count of blocks stays right. A block that shrinks from the raw domain
 * to so few bytes has two chances to be a sample.
 *
 * The thorough way, where that does not hold (PYTHONMALLOC=debug or mimalloc, tracemalloc, every block wanted): frees are
 * looked at here, and if need be the raw domain is wrapped too. A call within a call of these is not counted again.
 */
#include "python/stack/pyinside.h"

#include "python/sources/sources.h"

enum {
    SMALL_BYTES = 512, /* the most that Python keeps in pools, in every version there is */
    LARGE_BYTES = SMALL_BYTES + 1,
    LEAST_FAST_RATE = 16000, /* below it samples would take much more memory than the objects */
};
#define PUT_OFF ((uint64_t)1 << 40)

__thread uint64_t tlmi_objects_left, tlmi_objects_ended;

#ifdef Py_GIL_DISABLED
const char *tlmi_objects_install(uint64_t mean)
{
    (void)mean;
    return "none (Python without the GIL)";
}

void tlmi_objects_uninstall(void)
{
}
#else

/* mem and obj share theirs, raw has another. All of it under the GIL. */
typedef struct {
    PyMemAllocatorEx theirs, ours;
} domain_pair;

static domain_pair objects, raw;
static PyMemAllocatorEx former[3]; /* by PyMemAllocatorDomain */
static bool wrapped[3];
static size_t most_bytes; /* larger blocks are counted by the raw domain */
static __thread bool is_inside;

static bool is_due(size_t bytes)
{
    return tlmi_unlikely(__builtin_sub_overflow(tlmi_objects_left, bytes, &tlmi_objects_left));
}

/* What is counted here is not to be counted by the raw domain as well: nothing is due there until the former count, which is
 * returned, is put back. */
static uint64_t put_raw_off(void)
{
    uint64_t left = tlmi_heap_left;
    tlmi_heap_left = PUT_OFF;
    return left;
}

/* ---- names that are kept because they are samples ---- */

/* A type remembers the names that it was asked for, in a table where the address of a name decides its place. A name that is made
 * for one question has the address of the one before, and takes its place. A sampled one has an address of its own, and would
 * stay: so it stops being a sample when nothing but the table refers to it. With each sample a part of the table is looked
 * through: a small one, since that takes what the program has in the caches out of them, and a larger one where names like
 * these have been found. */
#ifdef PYINSIDE_KNOWN
/* A question about an attribute of a class asks the class and its own type, so one name may be there more than once. */
static bool is_only_remembered(const PyInterpreterState *interpreter, PyObject *name)
{
    enum { MOST_TYPES = 8 };
    Py_ssize_t references = Py_REFCNT(name);
    if (references > MOST_TYPES)
        return false;
    for (uint32_t i = 0; i < PYINSIDE_CACHED_NAMES; i++)
        references -= pyinside_cached_name(interpreter, i) == name;
    return references == 0;
}
#endif

static void end_remembered_names(void)
{
#ifdef PYINSIDE_KNOWN
    enum { FEW = PYINSIDE_CACHED_NAMES / 64, MANY = PYINSIDE_CACHED_NAMES / 8, LONG = 64 };
    static uint32_t next, many_left; /* how often it is still to be many */
    PyThreadState *thread = pyinside_thread();
    if (thread == NULL || thread->interp != PyInterpreterState_Main())
        return;
    uint32_t count = many_left > 0 ? MANY : FEW;
    many_left -= many_left > 0;
    for (uint32_t i = 0; i < count; i++, next = (next + 1) % PYINSIDE_CACHED_NAMES) {
        PyObject *name = pyinside_cached_name(thread->interp, next);
        if (name == NULL || !tlmi_heap_may_have(name))
            continue;
        if (tlmi_heap_has(name) && is_only_remembered(thread->interp, name)) {
            tlmi_heap_gone(name);
            many_left = LONG;
        }
    }
#endif
}

static void record_small(void *block, size_t bytes)
{
    end_remembered_names();
    tlmi_heap_record(block, bytes, TLMI_HEAP_ARENA); /* where it lies but for the sample */
}

/* ---- the fast way ---- */

/* Else the compiler saves registers for it on the fast way. */
#define APART __attribute__((noinline, cold))

static APART void *malloc_due(void *context, size_t bytes)
{
    bool chosen = tlmi_heap_choose(&tlmi_objects_left, bytes);
    void *block = NULL;
    if (chosen && bytes <= SMALL_BYTES) {
        tlmi_heap_left += LARGE_BYTES;                       /* the raw domain takes it away again */
        block = objects.theirs.malloc(context, LARGE_BYTES); /* tlm-lint: ok */
        record_small(block, bytes);
    }
    return block != NULL ? block : objects.theirs.malloc(context, bytes); /* tlm-lint: ok */
}

static APART void *calloc_due(void *context, size_t count, size_t bytes)
{
    bool chosen = tlmi_heap_choose(&tlmi_objects_left, count * bytes);
    void *block = NULL;
    if (chosen && count * bytes <= SMALL_BYTES) {
        uint64_t left = put_raw_off();
        block = objects.theirs.calloc(context, 1, LARGE_BYTES); /* tlm-lint: ok */
        tlmi_heap_left = left;
        record_small(block, count * bytes);
    }
    return block != NULL ? block : objects.theirs.calloc(context, count, bytes); /* tlm-lint: ok */
}

static APART void *realloc_due(void *context, void *block, size_t bytes)
{
    bool chosen = tlmi_heap_choose(&tlmi_objects_left, bytes);
    void *moved = NULL;
    if (chosen && bytes <= SMALL_BYTES) {
        uint64_t left = put_raw_off();
        moved = objects.theirs.realloc(context, block, LARGE_BYTES); /* tlm-lint: ok */
        tlmi_heap_left = left;
        record_small(moved, bytes);
    }
    return moved != NULL ? moved : objects.theirs.realloc(context, block, bytes); /* tlm-lint: ok */
}

static void *fast_malloc(void *context, size_t bytes)
{
    if (is_due(bytes))
        return malloc_due(context, bytes);
    return objects.theirs.malloc(context, bytes); /* tlm-lint: ok */
}

static void *fast_calloc(void *context, size_t count, size_t bytes)
{
    if (is_due(count * bytes))
        return calloc_due(context, count, bytes);
    return objects.theirs.calloc(context, count, bytes); /* tlm-lint: ok */
}

static void *fast_realloc(void *context, void *block, size_t bytes)
{
    if (is_due(bytes))
        return realloc_due(context, block, bytes);
    return objects.theirs.realloc(context, block, bytes); /* tlm-lint: ok */
}

/* ---- the thorough way ---- */

static void *count_block(void *block, size_t bytes, tlmi_heap_owner owner)
{
    if (block != NULL && bytes <= most_bytes && is_due(bytes) && tlmi_heap_choose(&tlmi_objects_left, bytes))
        tlmi_heap_record(block, bytes, owner);
    return block;
}

/* Small objects lie in arenas; what is larger, and all of the raw domain, is malloc's. */
static tlmi_heap_owner owner_of(const domain_pair *pair, size_t bytes)
{
    return pair == &objects && bytes <= SMALL_BYTES ? TLMI_HEAP_ARENA : TLMI_HEAP_PYTHON;
}

static void *thorough_malloc(const domain_pair *pair, void *context, size_t bytes)
{
    if (is_inside)
        return pair->theirs.malloc(context, bytes); /* tlm-lint: ok */
    is_inside = true;
    void *block = pair->theirs.malloc(context, bytes); /* tlm-lint: ok */
    is_inside = false;
    return count_block(block, bytes, owner_of(pair, bytes));
}

static void *thorough_calloc(const domain_pair *pair, void *context, size_t count, size_t bytes)
{
    if (is_inside)
        return pair->theirs.calloc(context, count, bytes); /* tlm-lint: ok */
    is_inside = true;
    void *block = pair->theirs.calloc(context, count, bytes); /* tlm-lint: ok */
    is_inside = false;
    return count_block(block, count * bytes, owner_of(pair, count * bytes));
}

static void *thorough_realloc(const domain_pair *pair, void *context, void *block, size_t bytes)
{
    if (is_inside)
        return pair->theirs.realloc(context, block, bytes); /* tlm-lint: ok */
    uint64_t before = tlmi_heap_gone(block);
    bool is_counted_here = bytes <= most_bytes;
    uint64_t left = tlmi_heap_left;
    tlmi_heap_owner owner = owner_of(pair, bytes);
    is_inside = true;
    if (is_counted_here)
        put_raw_off();
    tlmi_objects_ended = before;
    void *moved = pair->theirs.realloc(context, block, bytes); /* tlm-lint: ok */
    tlmi_objects_ended = 0;
    if (is_counted_here && tlmi_heap_left != PUT_OFF) /* a larger block shrank, and stays malloc's */
        owner = before != 0 ? TLMI_HEAP_PYTHON | TLMI_HEAP_RESIZED : TLMI_HEAP_PYTHON;
    if (is_counted_here)
        tlmi_heap_left = left;
    is_inside = false;
    if (moved == NULL)
        tlmi_heap_restore(block, before, owner);
    return count_block(moved, bytes, owner);
}

static void thorough_free(const domain_pair *pair, void *context, void *block)
{
    if (!is_inside)
        tlmi_heap_gone(block);
    pair->theirs.free(context, block); /* tlm-lint: ok */
}

#define THOROUGH(name, pair)                                                                                           \
    static void *name##_malloc(void *context, size_t bytes)                                                            \
    {                                                                                                                  \
        return thorough_malloc(pair, context, bytes);                                                                  \
    }                                                                                                                  \
    static void *name##_calloc(void *context, size_t count, size_t bytes)                                              \
    {                                                                                                                  \
        return thorough_calloc(pair, context, count, bytes);                                                           \
    }                                                                                                                  \
    static void *name##_realloc(void *context, void *block, size_t bytes)                                              \
    {                                                                                                                  \
        return thorough_realloc(pair, context, block, bytes);                                                          \
    }                                                                                                                  \
    static void name##_free(void *context, void *block)                                                                \
    {                                                                                                                  \
        thorough_free(pair, context, block);                                                                           \
    }
THOROUGH(object, &objects)
THOROUGH(raw, &raw)

/* ---- install, uninstall ---- */

static bool same_functions(const PyMemAllocatorEx *a, const PyMemAllocatorEx *b)
{
    return a->malloc == b->malloc && a->calloc == b->calloc && a->realloc == b->realloc && a->free == b->free;
}

/* Whether a block of so many bytes is counted by the wrapper of the raw domain. */
static bool comes_to_raw(size_t bytes)
{
    uint64_t left = put_raw_off();
    void *block = objects.theirs.malloc(objects.theirs.ctx, bytes); /* tlm-lint: ok */
    bool counted = tlmi_heap_left == PUT_OFF - bytes;
    objects.theirs.free(objects.theirs.ctx, block); /* tlm-lint: ok */
    tlmi_heap_left = left;
    return counted;
}

static void wrap(PyMemAllocatorDomain domain, const domain_pair *pair)
{
    PyMemAllocatorEx ours = pair->ours;
    PyMem_GetAllocator(domain, &former[domain]);
    ours.ctx = former[domain].ctx;
    PyMem_SetAllocator(domain, &ours);
    wrapped[domain] = true;
}

static const char *wrap_all(uint64_t mean)
{
    PyMemAllocatorEx mem;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &objects.theirs);
    PyMem_GetAllocator(PYMEM_DOMAIN_MEM, &mem);
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &raw.theirs);
    if (comes_to_raw(SMALL_BYTES))
        return "raw domain";
    bool sees_large = comes_to_raw(LARGE_BYTES);
    bool is_fast = sees_large && mean >= LEAST_FAST_RATE;
    most_bytes = sees_large ? SMALL_BYTES : SIZE_MAX;
    objects.ours = is_fast ? (PyMemAllocatorEx){NULL, fast_malloc, fast_calloc, fast_realloc, objects.theirs.free}
                           : (PyMemAllocatorEx){NULL, object_malloc, object_calloc, object_realloc, object_free};
    raw.ours = (PyMemAllocatorEx){NULL, raw_malloc, raw_calloc, raw_realloc, raw_free};
    if (!sees_large)
        wrap(PYMEM_DOMAIN_RAW, &raw);
    if (same_functions(&mem, &objects.theirs))
        wrap(PYMEM_DOMAIN_MEM, &objects);
    wrap(PYMEM_DOMAIN_OBJ, &objects);
    return is_fast ? "domains" : "domains, each free";
}

const char *tlmi_objects_install(uint64_t mean)
{
    static const char *how;
    /* A wrapper over which another lies is still there. */
    if (!wrapped[PYMEM_DOMAIN_OBJ] && !wrapped[PYMEM_DOMAIN_MEM] && !wrapped[PYMEM_DOMAIN_RAW])
        how = wrap_all(mean);
    return how;
}

static void unwrap(PyMemAllocatorDomain domain, const domain_pair *pair)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(domain, &now);
    if (!wrapped[domain] || !same_functions(&now, &pair->ours))
        return;
    PyMem_SetAllocator(domain, &former[domain]);
    wrapped[domain] = false;
}

void tlmi_objects_uninstall(void)
{
    unwrap(PYMEM_DOMAIN_OBJ, &objects);
    unwrap(PYMEM_DOMAIN_MEM, &objects);
    unwrap(PYMEM_DOMAIN_RAW, &raw);
}
#endif
