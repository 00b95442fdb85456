/* SPDX-License-Identifier: MIT
 * tlmem_probe.h: what a runtime in C or C++ includes so that tlmem sees who holds its memory. Nothing has to be linked.
 *
 * Put a probe where an object begins and ends and where somebody begins or ceases to hold it. Each probe names the file, the
 * function and the line where it stands, or those of the TLM_PROBE_CALL around it:
 *
 *     void *object_new(size_t bytes)
 *     {
 *         struct object *made = malloc(bytes);
 *         TLM_PROBE_ALLOC(made, bytes);                     after the memory is there
 *         return made;
 *     }
 *     void object_retain(struct object *it, void *owner)
 *     {
 *         it->count++;
 *         TLM_PROBE_ACQUIRE(it, tlm_probe_owner(owner), it->count);
 *     }
 *
 * An object is named by its address. A fresh one has count 1 and floats: nobody holds it yet. `count` is always the count
 * afterwards, and a *holder* is tlm_probe_owner(address), tlm_probe_name("cache") or tlm_probe_scope(id).
 *
 * Without tlmem, and while nothing is recorded, a probe is one branch, and its arguments are not evaluated: they must not do
 * anything. tlmem is found when it is in the process already: at the start, and later when somebody else loads it, by the
 * next allocations, within about a second (TLM_PROBE_LOOK(); looks at once). It is loaded only when the environment variable
 * TLMEM_RECORD says where to record: then from TLMEM_LIBRARY, or by its plain name from where libraries are looked for.
 *
 * Probes may be used from any thread and under locks of the runtime: they never wait for anything but a moment for the log,
 * never call malloc or Python. The header may be in several files and libraries of one process; a library that includes it
 * may be closed with dlclose. It is C99 or C++11 with a compiler that knows GNU attributes; with another one, and where
 * TLM_PROBE_OFF is defined, probes are nothing at all. A libc older than glibc 2.34 needs -ldl.
 */
#ifndef TLMEM_PROBE_H
#define TLMEM_PROBE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) && !defined(TLM_PROBE_OFF) && !defined(TLM_PROBE_TYPES_ONLY)
#define TLM_PROBE_WORKS
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what the library and the probes share ---- */

/* A place in static storage, as tlm_location in tlmem_log.h. `cache` is tlmem's. */
typedef struct {
    const char *file;
    const char *function;
    uint32_t line;
    uint32_t unused;
    uint64_t cache;
} tlm_probe_place;

enum { TLM_PROBE_VERSION = 1 };

/* What the library gives; its symbol is tlm_probe_table. A later library may append to it; the version changes when an old
 * probe could not use it. Everything but `on` is called only while *on is not 0. */
typedef struct {
    uint32_t version, bytes; /* of this table */
    const unsigned char *on; /* 1 while something is recorded */
    void (*event)(tlm_probe_place *place, int kind, uint64_t object, uint64_t arg, uint64_t count);
    void (*move)(tlm_probe_place *place, uint64_t object, uint64_t from, uint64_t to, uint64_t count);
    uint64_t (*scope_enter)(tlm_probe_place *place, const char *label);
    void (*mark)(tlm_probe_place *place, const char *label, int64_t index);
    void (*alloc_with)(tlm_probe_place *place, uint64_t object, uint64_t bytes, const char *allocator);
    void (*free_with)(tlm_probe_place *place, uint64_t object, const char *allocator);
    uint64_t (*name)(const char *text);
    tlm_probe_place *(*call)(tlm_probe_place *place);
    void (*back)(tlm_probe_place *former);
} tlm_probe_functions;

/* What `event` may say: numbers of tlm_kind in tlmem_log.h. */
enum {
    TLM_PROBE_KIND_ALLOC = 1,
    TLM_PROBE_KIND_FREE = 2,
    TLM_PROBE_KIND_ACQUIRE = 4,
    TLM_PROBE_KIND_RELEASE = 5,
    TLM_PROBE_KIND_REGISTER = 6,
    TLM_PROBE_KIND_UNREGISTER = 7,
    TLM_PROBE_KIND_PROMOTE = 8,
    TLM_PROBE_KIND_ESCAPE = 9,
    TLM_PROBE_KIND_SCOPE_EXIT = 11,
    TLM_PROBE_KIND_MISUSE = 34
};

/* For TLM_PROBE_MISUSE: numbers of tlm_misuse in tlmem.h. */
enum {
    TLM_PROBE_USE_AFTER_FREE = 1,
    TLM_PROBE_DOUBLE_FREE = 2,
    TLM_PROBE_OVER_RELEASE = 3,
    TLM_PROBE_WRONG_ALLOCATOR = 13
};

#if !defined(TLM_PROBE_TYPES_ONLY)

/* ---- holders ---- */

/* Whoever is at an address: another object, a variable, a thread. */
static inline uint64_t tlm_probe_owner(const void *address)
{
    return UINT64_C(11) << 56 | ((uint64_t)(uintptr_t)address & UINT64_C(0x00FFFFFFFFFFFFFF));
}
/* The scope that TLM_PROBE_SCOPE_ENTER gave the id. */
static inline uint64_t tlm_probe_scope(uint64_t id)
{
    return UINT64_C(2) << 56 | id;
}
/* Whoever has this name: "cache", "environment". 0 while nothing is recorded: then ask again later. */
static inline uint64_t tlm_probe_name(const char *text);

/* ---- probes ---- */

/* An object of so many bytes begins, with count 1. Say it after the allocation. */
#define TLM_PROBE_ALLOC(address, bytes)                                                                                \
    TLM_PROBE_BEGINS(event, TLM_PROBE_KIND_ALLOC, TLM_PROBE_AT(address), TLM_PROBE_NUMBER(bytes), 1)
/* It ends. Say it before the memory is given back, so that no other thread can have got it again. */
#define TLM_PROBE_FREE(address) TLM_PROBE_DO(event, TLM_PROBE_KIND_FREE, TLM_PROBE_AT(address), 0, 0)
/* The same for runtimes with several allocators, of which each has a name. What begins in one and ends in another is a misuse;
 * an object that began with a name must end with one. */
#define TLM_PROBE_ALLOC_WITH(address, bytes, allocator)                                                                \
    TLM_PROBE_BEGINS(alloc_with, TLM_PROBE_AT(address), TLM_PROBE_NUMBER(bytes), (allocator))
#define TLM_PROBE_FREE_WITH(address, allocator) TLM_PROBE_DO(free_with, TLM_PROBE_AT(address), (allocator))
/* The holder has one count more, or gives one up. */
#define TLM_PROBE_ACQUIRE(address, holder, count)                                                                      \
    TLM_PROBE_DO(event, TLM_PROBE_KIND_ACQUIRE, TLM_PROBE_AT(address), (holder), TLM_PROBE_NUMBER(count))
#define TLM_PROBE_RELEASE(address, holder, count)                                                                      \
    TLM_PROBE_DO(event, TLM_PROBE_KIND_RELEASE, TLM_PROBE_AT(address), (holder), TLM_PROBE_NUMBER(count))
/* One count goes from a holder to another; `from` 0: the object floated; `to` 0: it floats now. */
#define TLM_PROBE_MOVE(address, from, to, count)                                                                       \
    TLM_PROBE_DO(move, TLM_PROBE_AT(address), (from), (to), TLM_PROBE_NUMBER(count))
/* A scope takes the count of a floating object; gives it up, so that the object floats; gives it up for a caller that will
 * register it; gives it to another holder. */
#define TLM_PROBE_REGISTER(address, scope, count)                                                                      \
    TLM_PROBE_DO(event, TLM_PROBE_KIND_REGISTER, TLM_PROBE_AT(address), tlm_probe_scope(scope), TLM_PROBE_NUMBER(count))
#define TLM_PROBE_UNREGISTER(address, scope, count)                                                                    \
    TLM_PROBE_DO(event, TLM_PROBE_KIND_UNREGISTER, TLM_PROBE_AT(address), tlm_probe_scope(scope),                      \
                 TLM_PROBE_NUMBER(count))
#define TLM_PROBE_PROMOTE(address, scope, count)                                                                       \
    TLM_PROBE_DO(event, TLM_PROBE_KIND_PROMOTE, TLM_PROBE_AT(address), tlm_probe_scope(scope), TLM_PROBE_NUMBER(count))
#define TLM_PROBE_ESCAPE(address, holder, count)                                                                       \
    TLM_PROBE_DO(event, TLM_PROBE_KIND_ESCAPE, TLM_PROBE_AT(address), (holder), TLM_PROBE_NUMBER(count))
/* A scope begins, and `id`, a variable of type uint64_t, becomes its number, never used again; 0 while nothing is recorded.
 * It ends in the same thread, and so many objects were freed. */
#define TLM_PROBE_SCOPE_ENTER(id, label) TLM_PROBE_GIVES(id, scope_enter, (label))
#define TLM_PROBE_SCOPE_EXIT(id, freed) TLM_PROBE_DO(event, TLM_PROBE_KIND_SCOPE_EXIT, (id), TLM_PROBE_NUMBER(freed), 0)
/* The program is here: TLM_PROBE_MARK("epoch", 3). */
#define TLM_PROBE_MARK(label, index) TLM_PROBE_BEGINS(mark, (label), (int64_t)(index))
/* The runtime found that an object was misused, by this holder or 0; `misuse`: one of the four numbers above. */
#define TLM_PROBE_MISUSE(address, holder, misuse)                                                                      \
    TLM_PROBE_DO(event, TLM_PROBE_KIND_MISUSE, TLM_PROBE_AT(address), (holder), TLM_PROBE_NUMBER(misuse))
/* Runs one statement, of which no break, continue, goto or longjmp leads out: the probes that it meets name this place and
 * not their own. For calls of the runtime that should be distinguished by their callers. In a Python process it may wait for the
 * interpreter's lock: hold no lock that a thread could wait for with that one. */
#define TLM_PROBE_CALL(...) TLM_PROBE_FROM_HERE(__VA_ARGS__)
/* Looks for the library now. */
#define TLM_PROBE_LOOK() TLM_PROBE_LOOK_NOW()

/* ---- how they work ---- */

#define TLM_PROBE_AT(address) ((uint64_t)(uintptr_t)(address))
#define TLM_PROBE_NUMBER(number) ((uint64_t)(number))

#if defined(TLM_PROBE_WORKS)

#if defined(__APPLE__)
#define TLM_PROBE_LIBRARY "libtlmem.dylib"
#define TLM_PROBE_LOADED "@rpath/libtlmem.dylib"
#else
#define TLM_PROBE_LIBRARY "libtlmem.so"
#define TLM_PROBE_LOADED TLM_PROBE_LIBRARY
#endif

/* One for each program or library, however many of its files have probes. */
typedef struct {
    const unsigned char *on; /* the table's, or &absent; stored after the table */
    const tlm_probe_functions *table;
    long looked; /* the second of the last look */
    unsigned char absent;
} tlm_probe_finder;
__attribute__((weak, visibility("hidden"))) tlm_probe_finder tlm_probe_found = {&tlm_probe_found.absent, NULL, 0, 0};
static __thread unsigned tlm_probe_turn __attribute__((unused));

static __attribute__((unused)) int tlm_probe_may_load(void)
{
    const char *record = getenv("TLMEM_RECORD");
    return record && record[0] && getuid() == geteuid() && getgid() == getegid();
}

static __attribute__((unused)) void tlm_probe_look(int may_load)
{
    const tlm_probe_functions *table = NULL;
    int error = errno;
    if (__atomic_load_n(&tlm_probe_found.table, __ATOMIC_RELAXED))
        return;
    void *library = dlopen(TLM_PROBE_LOADED, RTLD_LAZY | RTLD_NOLOAD);
    if (!library && may_load) {
        const char *named = getenv("TLMEM_LIBRARY");
        library = dlopen(named && named[0] ? named : TLM_PROBE_LIBRARY, RTLD_LAZY);
    }
    if (library)
        table = (const tlm_probe_functions *)dlsym(library, "tlm_probe_table");
    if (!table)
        (void)dlerror(); /* the program must not find an error that is not its own */
    errno = error;
    if (table && table->version == TLM_PROBE_VERSION && table->bytes >= sizeof *table) {
        __atomic_store_n(&tlm_probe_found.table, table, __ATOMIC_RELAXED);
        __atomic_store_n(&tlm_probe_found.on, table->on, __ATOMIC_RELEASE);
    }
}

__attribute__((constructor)) static void tlm_probe_begin(void)
{
    if (__atomic_exchange_n(&tlm_probe_found.looked, 1, __ATOMIC_RELAXED) == 0)
        tlm_probe_look(tlm_probe_may_load());
}

static inline int tlm_probe_is_on(void)
{
    const unsigned char *on = __atomic_load_n(&tlm_probe_found.on, __ATOMIC_ACQUIRE);
    return __builtin_expect(__atomic_load_n(on, __ATOMIC_RELAXED) != 0, 0) != 0;
}

static __attribute__((unused, noinline)) int tlm_probe_look_again(void)
{
    long now = (long)time(NULL);
    if (__atomic_load_n(&tlm_probe_found.table, __ATOMIC_RELAXED) || /* it is there and records nothing */
        __atomic_exchange_n(&tlm_probe_found.looked, now, __ATOMIC_RELAXED) == now)
        return 0;
    tlm_probe_look(0);
    return tlm_probe_is_on();
}

/* Each 256th time in a thread it is asked whether the library has come meanwhile, and looked for once a second at most. */
static inline int tlm_probe_is_on_or_comes(void)
{
    return tlm_probe_is_on() || (__builtin_expect((tlm_probe_turn++ & 255) == 255, 0) && tlm_probe_look_again());
}

static inline uint64_t tlm_probe_name(const char *text)
{
    return tlm_probe_is_on() ? tlm_probe_found.table->name(text) : 0;
}

static inline void tlm_probe_return(tlm_probe_place *const *former)
{
    if (*former)
        tlm_probe_found.table->back(*former);
}

#define TLM_PROBE_PLACE(name) static tlm_probe_place name = {__FILE__, __func__, __LINE__, 0, 0}
#define TLM_PROBE_DO(function, ...)                                                                                    \
    do {                                                                                                               \
        if (tlm_probe_is_on()) {                                                                                       \
            TLM_PROBE_PLACE(tlm_probe_here);                                                                           \
            tlm_probe_found.table->function(&tlm_probe_here, __VA_ARGS__);                                             \
        }                                                                                                              \
    } while (0)
#define TLM_PROBE_BEGINS(function, ...)                                                                                \
    do {                                                                                                               \
        if (tlm_probe_is_on_or_comes()) {                                                                              \
            TLM_PROBE_PLACE(tlm_probe_here);                                                                           \
            tlm_probe_found.table->function(&tlm_probe_here, __VA_ARGS__);                                             \
        }                                                                                                              \
    } while (0)
#define TLM_PROBE_GIVES(variable, function, argument)                                                                  \
    do {                                                                                                               \
        (variable) = 0;                                                                                                \
        if (tlm_probe_is_on_or_comes()) {                                                                              \
            TLM_PROBE_PLACE(tlm_probe_here);                                                                           \
            (variable) = tlm_probe_found.table->function(&tlm_probe_here, argument);                                   \
        }                                                                                                              \
    } while (0)
#define TLM_PROBE_FROM_HERE(...)                                                                                       \
    do {                                                                                                               \
        TLM_PROBE_PLACE(tlm_probe_caller);                                                                             \
        __attribute__((cleanup(tlm_probe_return))) tlm_probe_place *tlm_probe_former =                                 \
            tlm_probe_is_on() ? tlm_probe_found.table->call(&tlm_probe_caller) : NULL;                                 \
        __VA_ARGS__;                                                                                                   \
    } while (0)
#define TLM_PROBE_LOOK_NOW() tlm_probe_look(0)

#else

static inline uint64_t tlm_probe_name(const char *text)
{
    (void)text;
    return 0;
}

/* Never called: so that what the arguments mention counts as used. */
static inline void tlm_probe_nothing(int unused, ...)
{
    (void)unused;
}

#define TLM_PROBE_DO(function, ...)                                                                                    \
    do {                                                                                                               \
        if (0)                                                                                                         \
            tlm_probe_nothing(0, __VA_ARGS__);                                                                         \
    } while (0)
#define TLM_PROBE_BEGINS(function, ...) TLM_PROBE_DO(function, __VA_ARGS__)
#define TLM_PROBE_GIVES(variable, function, argument)                                                                  \
    do {                                                                                                               \
        (variable) = 0;                                                                                                \
        TLM_PROBE_DO(function, argument);                                                                              \
    } while (0)
#define TLM_PROBE_FROM_HERE(...)                                                                                       \
    do {                                                                                                               \
        __VA_ARGS__;                                                                                                   \
    } while (0)
#define TLM_PROBE_LOOK_NOW() ((void)0)

#endif
#endif

#ifdef __cplusplus
}
#endif
#endif
