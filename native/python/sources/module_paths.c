/* SPDX-License-Identifier: MIT
 * module_paths.c: in which of PyTorch's modules a block is allocated: GPT/blocks.3.fc.
 *
 * Every call of a module passes through one function (tlmi_pycode_module_call). The `self` of its frames on the calling thread,
 * from the outermost to the innermost, are a chain. A chain has a label; on first sight one with the names of the classes,
 * GPT/Block/Linear#7, which needs no GIL. Whoever has the GIL next finds the names of attributes, by a pending call of the main
 * thread, and writes them under the same number: readers take a label's last text. From then on the chain has the label of its
 * path.
 *
 * Without the GIL only the thread's own frames, their `self` and its type are looked at, which the frames keep alive. With it,
 * an object is looked into if a frame that runs has it or if it was found in the `_modules` of one that was; a remembered
 * address is only compared.
 *
 * An address may come to mean another module, so a module is known by a number that ends with it. Deaths are noticed by
 * tp_finalize of the module's class, which no class without __del__ uses, and which then calls what stood there: an instance's
 * life, its weak references and its attributes are as before. tp_dealloc and tp_free would be noticed: the one by subclasses,
 * the other by assignments to __class__. It stays when recording ends, since the class may be gone.
 *
 * Locks: `all.lock` is never held while somebody waits for the GIL, and is held where names are written.
 */
#include "python/stack/pyinside.h"

#include <stdio.h>
#include <string.h>

#include "platform/address_map.h"
#include "python/sources/sources.h"
#include "python/stack/pycode.h"
#include "python/stack/pystack.h"

enum {
    MOST_STEPS = 32, /* of a chain; where there are more, those between the outermost and the innermost are left out */
    MOST_WAITING = 128,  /* chains without names */
    MOST_CHAINS = 65536, /* then all are forgotten, and met anew */
    MOST_NUMBERED =
        16384,       /* labels that are written twice; later ones have class names alone until the path is known */
    MOST_TRIES = 64, /* of a chain whose modules are not in a frame when they are looked for */
    MOST_OWED = 16,
    MOST_MET = 1024,
    MOST_ROOTS = 64,
    MOST_SEARCHED = 4096, /* modules below one of them */
    NEAR = 256,           /* of these, once searches have looked in vain at */
    MOST_IN_VAIN = 1 << 21,
    TEXT_ROOM = 1024,
    CLASS_ROOM = 100,
};
/* Of a chain's entry: its names are not known yet. */
#define IS_WAITING (UINT64_C(1) << 32)

typedef struct {
    uintptr_t module; /* only compared, unless it was met */
    uint64_t number;
} step;

typedef struct {
    uint64_t key;
    tlm_label classes;     /* GPT/Block/Linear */
    tlm_label placeholder; /* the same with a number; 0: none */
    uint32_t tries, count;
    step steps[MOST_STEPS]; /* from the outermost on */
} chain;

typedef struct {
    char bytes[TEXT_ROOM];
    size_t used;
} path_text;

/* Of one recording. */
static tlmi_map modules = TLMI_MAP_EMPTY; /* address -> number */
static tlmi_map chains = TLMI_MAP_EMPTY;  /* key -> label, with IS_WAITING or without */
static tlmi_map places = TLMI_MAP_EMPTY; /* place_key -> label of a module's path << 1 | it was called by another one */
static tlmi_map paths = TLMI_MAP_EMPTY;  /* label with the path's text -> the label that its events have */
static _Atomic uint64_t known_epoch;     /* the recording that they are of */
static _Atomic uint32_t waiting_count;
static _Atomic bool is_asked;              /* a pending call is on its way */
static _Atomic(destructor) their_finalize; /* of every class that has __del__ */
__thread uint32_t tlmi_modules_owed;

static struct {
    pthread_mutex_t lock;
    chain waiting[MOST_WAITING];
    uint64_t last_number, in_vain;
    uint32_t chains_count, numbered;
    struct {
        uint64_t number;
        tlm_label label;
    } roots[MOST_ROOTS]; /* outermost modules that are alive */
    uintptr_t met[MOST_MET];
    uint32_t met_count;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- text ---- */

static void add_bytes(path_text *text, const char *bytes, size_t count)
{
    if (text->used + count >= TEXT_ROOM)
        return;
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
    text->bytes[text->used] = 0;
}

static void add_text(path_text *text, const char *more)
{
    add_bytes(text, more, strlen(more));
}

/* The last part of a class's name, without what has a meaning in a path. */
static void add_class(path_text *text, PyTypeObject *type)
{
    const char *name = type->tp_name, *dot = strrchr(name, '.');
    char plain[CLASS_ROOM];
    size_t used = 0;
    for (const char *at = dot == NULL ? name : dot + 1; *at != 0; at++) {
        bool begins = ((unsigned char)*at & 0xC0) != 0x80;
        if (used + (begins ? 4 : 1) > sizeof plain)
            break;
        plain[used++] = strchr("/#()", *at) ? '_' : *at;
    }
    add_bytes(text, plain, used);
}

/* Part `index` of a text with slashes between. */
static void add_part(path_text *text, const char *parts, uint32_t index)
{
    for (; index > 0 && parts != NULL; index--)
        parts = (parts = strchr(parts, '/')) == NULL ? NULL : parts + 1;
    if (parts != NULL)
        add_bytes(text, parts, strcspn(parts, "/"));
}

/* ---- modules and their deaths ---- */

static void forget_root(uint64_t number)
{
    for (int i = 0; i < MOST_ROOTS; i++)
        if (all.roots[i].number == number)
            all.roots[i].number = 0;
}

static void name_waiting(PyObject *dying, bool is_last);

/* Of a module that is alive. One whose class has changed is called anew. */
static uintptr_t place_key(uintptr_t module, uint64_t number)
{
    return (uintptr_t)(number * 0x9E3779B97F4A7C15u) ^ (uintptr_t)Py_TYPE((PyObject *)module);
}

/* The module dies, and is whole until this returns. Under the GIL. */
static void forget_module(PyObject *module)
{
    uint64_t number = tlmi_map_find(&modules, (uintptr_t)module);
    if (number == 0)
        return;
    pthread_mutex_lock(&all.lock);
    name_waiting(module, false);
    tlmi_map_take(&modules, (uintptr_t)module);
    tlmi_map_take(&places, place_key((uintptr_t)module, number));
    forget_root(number);
    pthread_mutex_unlock(&all.lock);
}

static void ends(PyObject *module)
{
    forget_module(module);
}

static void ends_with_theirs(PyObject *module)
{
    forget_module(module);
    atomic_load_explicit(&their_finalize, memory_order_relaxed)(module);
}

static bool is_watched(PyTypeObject *type)
{
    destructor now = __atomic_load_n(&type->tp_finalize, __ATOMIC_RELAXED);
    return now == ends || now == ends_with_theirs;
}

/* From here on the deaths of its instances are noticed. false: they are not, something unknown stands there. */
static bool watch_deaths(PyTypeObject *type)
{
    destructor now = __atomic_load_n(&type->tp_finalize, __ATOMIC_ACQUIRE), none = NULL;
    if (now == ends || now == ends_with_theirs)
        return true;
    if (now != NULL && !atomic_compare_exchange_strong(&their_finalize, &none, now) && none != now)
        return false;
    return __atomic_compare_exchange_n(&type->tp_finalize, &now, now == NULL ? ends : ends_with_theirs, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Under the lock. 0: its death would not be noticed, or there is no memory. */
static uint64_t number_module(PyObject *module)
{
    PyTypeObject *type = Py_TYPE(module);
    bool was_watched = is_watched(type), is_class = type->tp_flags & Py_TPFLAGS_HEAPTYPE;
    if (!is_class || !watch_deaths(type) || PyObject_GC_IsFinalized(module))
        return 0;
    /* Numbers from a time when the class was another one, or was changed, may be of a module that is gone. */
    uint64_t number = was_watched ? tlmi_map_find(&modules, (uintptr_t)module) : 0;
    if (number == 0 && tlmi_map_put(&modules, (uintptr_t)module, all.last_number + 1))
        number = ++all.last_number;
    return number;
}

/* ---- chains ---- */

static void forget_all(void)
{
    atomic_store(&waiting_count, 0);
    tlmi_map_clear(&modules);
    tlmi_map_clear(&chains);
    tlmi_map_clear(&places);
    tlmi_map_clear(&paths);
    memset(all.roots, 0, sizeof all.roots);
    all.chains_count = 0;
}

static void mend_after_fork(void)
{
    pthread_mutex_init(&all.lock, NULL);
    tlmi_map_after_fork(&modules);
    tlmi_map_after_fork(&chains);
    tlmi_map_after_fork(&places);
    tlmi_map_after_fork(&paths);
    atomic_store(&known_epoch, 0);
    atomic_store(&waiting_count, 0);
    atomic_store(&is_asked, false);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

/* Under the lock. */
static void begin_recording(void)
{
    uint64_t epoch = atomic_load(&tlmi_recording_epoch);
    if (atomic_load(&known_epoch) == epoch)
        return;
    forget_all();
    all.numbered = 0;
    all.in_vain = 0;
    atomic_store(&known_epoch, epoch);
}

/* The chain, from the outermost on. A module that calls itself again, by others or not, is where it was first. */
static uint32_t order_chain(const uintptr_t *selves, uint32_t count, uintptr_t *chain_of)
{
    uint32_t used = 0;
    while (count-- > 0) {
        uint32_t at = 0;
        while (at < used && chain_of[at] != selves[count])
            at++;
        chain_of[at] = selves[count];
        used = at + 1;
        if (selves[count] == 0)
            return 0;
    }
    return used;
}

/* 0: not all of the modules are known. */
static uint64_t key_of(const uintptr_t *chain_of, uint32_t count)
{
    uint64_t key = count;
    for (uint32_t i = 0; i < count; i++) {
        PyTypeObject *type = Py_TYPE((PyObject *)chain_of[i]);
        uint64_t number = is_watched(type) ? tlmi_map_find(&modules, chain_of[i]) : 0;
        if (number == 0)
            return 0;
        key = (key ^ number) * 0x9E3779B97F4A7C15u;
        key = (key ^ key >> 32 ^ (uintptr_t)type) * 0xD6E8FEB86659FD93u;
        key ^= key >> 32;
    }
    return key + (key == 0);
}

/* Under the lock, with room. */
static tlm_label let_wait(chain *fresh, path_text *text)
{
    if (all.numbered < MOST_NUMBERED) {
        char number[16];
        snprintf(number, sizeof number, "#%u", ++all.numbered);
        add_text(text, number);
        fresh->placeholder = tlm_label_of(text->bytes);
    }
    tlm_label label = fresh->placeholder ? fresh->placeholder : fresh->classes;
    if (!tlmi_map_put(&chains, fresh->key, label | IS_WAITING))
        return fresh->classes;
    all.chains_count++;
    uint32_t count = atomic_load(&waiting_count);
    all.waiting[count] = *fresh;
    atomic_store(&waiting_count, count + 1);
    return label;
}

/* Under the lock, without the GIL or with it. */
static tlm_label meet_chain(const uintptr_t *chain_of, uint32_t count)
{
    chain fresh = {.count = count};
    path_text text = {.used = 0};
    bool are_known = true;
    begin_recording();
    if (all.chains_count >= MOST_CHAINS)
        forget_all();
    for (uint32_t i = 0; i < count; i++) {
        PyObject *module = (PyObject *)chain_of[i];
        fresh.steps[i] = (step){chain_of[i], number_module(module)};
        are_known &= fresh.steps[i].number != 0;
        add_text(&text, i > 0 ? "/" : "");
        add_class(&text, Py_TYPE(module));
    }
    fresh.classes = tlm_label_of(text.bytes);
    fresh.key = are_known ? key_of(chain_of, count) : 0;
    uint64_t label = fresh.key != 0 ? tlmi_map_find(&chains, fresh.key) : fresh.classes;
    if (label == 0)
        label = atomic_load(&waiting_count) < MOST_WAITING ? let_wait(&fresh, &text) : fresh.classes;
    return tlmi_label_write((tlm_label)label);
}

/* ---- names: under the GIL and the lock ---- */

static bool is_met(uintptr_t module)
{
    for (uint32_t i = 0; i < all.met_count; i++)
        if (all.met[i] == module)
            return true;
    return false;
}

static void meet_frames(PyThreadState *thread)
{
    uintptr_t call = atomic_load(&tlmi_pycode_module_call);
    if (call != 0)
        all.met_count += tlmi_pystack_selves_of(thread, call, all.met + all.met_count, MOST_MET - all.met_count);
}

static void meet_all_frames(void)
{
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    for (; thread != NULL && all.met_count < MOST_MET; thread = PyThreadState_Next(thread))
        meet_frames(thread);
}

/* The dict of a module's own modules; borrowed, NULL: it has none. */
static PyObject *modules_of(PyObject *object)
{
#ifdef PYINSIDE_KNOWN
    static const char name[] = "_modules";
    PyObject *dict = pyinside_attribute(object, name, sizeof name - 1);
    return dict != NULL && PyDict_Check(dict) ? dict : NULL;
#else
    (void)object;
    return NULL;
#endif
}

static struct {
    PyObject *module, *key;
    uint32_t parent;
} search[MOST_SEARCHED + 1]; /* the last one: what is being compared */

static void add_keys(path_text *text, uint32_t at)
{
    char key[CLASS_ROOM];
    if (search[at].key == NULL)
        return;
    add_keys(text, search[at].parent);
    add_text(text, strchr(text->bytes, '/') ? "." : "/");
    add_bytes(text, key, tlmi_pycode_text(search[at].key, key, sizeof key));
}

/* Adds the way from a module to one below it, the shortest one. false: it is not there. */
static bool add_way(path_text *text, PyObject *from, uintptr_t to)
{
    PyObject *key, *value;
    uint32_t count = 1, most = all.in_vain < MOST_IN_VAIN ? MOST_SEARCHED : NEAR;
    search[0].module = from;
    search[0].key = NULL;
    for (uint32_t at = 0; at < count; at++) {
        PyObject *dict = modules_of(search[at].module);
        for (Py_ssize_t i = 0; dict != NULL && PyDict_Next(dict, &i, &key, &value);) {
            if (!PyUnicode_Check(key) || value == Py_None)
                continue;
            search[count].module = value;
            search[count].key = key;
            search[count].parent = at;
            if ((uintptr_t)value == to) {
                add_keys(text, count);
                return true;
            }
            count += count < most;
        }
    }
    all.in_vain += count;
    return false;
}

/* The name of an outermost module: its class, and which one it is where several of that name are alive. */
static tlm_label name_root(const chain *from)
{
    char number[16];
    for (uint32_t which = 1;; which++) {
        path_text text = {.used = 0};
        add_part(&text, tlm_label_text(from->classes), 0);
        snprintf(number, sizeof number, "(%u)", which);
        add_text(&text, which > 1 ? number : "");
        tlm_label label = tlm_label_of(text.bytes);
        int free_one = -1;
        bool is_taken = false;
        for (int i = 0; i < MOST_ROOTS; i++) {
            is_taken |= all.roots[i].number != 0 && all.roots[i].label == label;
            free_one = all.roots[i].number == 0 ? i : free_one;
        }
        if (is_taken && free_one >= 0)
            continue;
        if (free_one >= 0) {
            all.roots[free_one].number = from->steps[0].number;
            all.roots[free_one].label = label;
        }
        return label;
    }
}

/* Where a module was found first; that it has a place in another one says more than that it was called by itself. */
static void keep_place(const step *at, const path_text *text)
{
    uintptr_t key = place_key(at->module, at->number);
    if ((tlmi_map_find(&places, key) & 1) == 0)
        tlmi_map_put(&places, key, (uint64_t)tlm_label_of(text->bytes) << 1 | 1);
}

static void begin_path(path_text *text, const chain *of)
{
    uintptr_t key = place_key(of->steps[0].module, of->steps[0].number);
    uint64_t place = tlmi_map_find(&places, key);
    if (place == 0) {
        place = (uint64_t)name_root(of) << 1;
        tlmi_map_put(&places, key, place);
    }
    add_text(text, tlm_label_text((tlm_label)(place >> 1)));
}

/* The path of a chain. false: it cannot be known now. */
static bool find_path(path_text *text, const chain *of)
{
    if (!is_met(of->steps[0].module))
        return false;
    PyObject *at = (PyObject *)of->steps[0].module;
    begin_path(text, of);
    for (uint32_t i = 1; i < of->count; i++) {
        const step *next = &of->steps[i];
        if (!add_way(text, at, next->module)) {
            if (!is_met(next->module))
                return false;
            add_text(text, strchr(text->bytes, '/') ? "." : "/");
            add_part(text, tlm_label_text(of->classes), i);
        }
        at = (PyObject *)next->module;
        keep_place(next, text);
    }
    return true;
}

static bool is_alive(const chain *of)
{
    for (uint32_t i = 0; i < of->count; i++)
        if (tlmi_map_find(&modules, of->steps[i].module) != of->steps[i].number)
            return false;
    return true;
}

/* From now on the chain's placeholder means its path. The first one of a path is its label; other chains of the same path,
 * from a model that was made anew, have that one from now on. */
static void settle_chain(const chain *of, const path_text *text)
{
    tlm_label own = tlm_label_of(text->bytes);
    if (of->placeholder != 0)
        tlmi_meta_label(of->placeholder, text->bytes);
    tlm_label label = (tlm_label)tlmi_map_find(&paths, own);
    if (label == 0) {
        label = of->placeholder != 0 ? of->placeholder : tlmi_label_write(own);
        tlmi_map_put(&paths, own, label);
    }
    if (label != 0)
        tlmi_map_put(&chains, of->key, label);
}

/* No more questions because of it; what it waits for may still come. */
static void give_up(const chain *of)
{
    tlmi_map_put(&chains, of->key, of->placeholder ? of->placeholder : of->classes);
}

static void name_met(bool is_last)
{
    uint32_t kept = 0, count = atomic_load(&waiting_count);
    for (uint32_t i = 0; i < count; i++) {
        chain *of = &all.waiting[i];
        path_text text = {.used = 0};
        if (!is_alive(of))
            continue;
        if (find_path(&text, of)) {
            settle_chain(of, &text);
            continue;
        }
        if (++of->tries == MOST_TRIES)
            give_up(of);
        bool is_in_the_way = of->tries >= MOST_TRIES && count > MOST_WAITING / 2;
        if (!is_last && !is_in_the_way)
            all.waiting[kept++] = *of;
    }
    atomic_store(&waiting_count, kept);
}

#ifdef PYINSIDE_KNOWN
static int meet_tracked(PyObject *object, void *unused)
{
    (void)unused;
    if (tlmi_map_find(&modules, (uintptr_t)object) != 0 && all.met_count < MOST_MET)
        all.met[all.met_count++] = (uintptr_t)object;
    return 1;
}
#endif

/* dying: a module that is about to be freed and still whole; NULL: none. is_last: the last call, which looks through all objects. */
static void name_waiting(PyObject *dying, bool is_last)
{
    if (atomic_load(&waiting_count) == 0 || !tlmi_probe_on() ||
        atomic_load(&known_epoch) != atomic_load(&tlmi_recording_epoch))
        return;
    all.met_count = 0;
    if (dying != NULL)
        all.met[all.met_count++] = (uintptr_t)dying;
    meet_all_frames();
#ifdef PYINSIDE_KNOWN
    if (is_last)
        pyinside_each_tracked(meet_tracked, NULL);
#endif
    name_met(is_last);
}

static void name_now(bool is_last)
{
    pthread_mutex_lock(&all.lock);
    name_waiting(NULL, is_last);
    pthread_mutex_unlock(&all.lock);
}

static int name_pending(void *unused)
{
    (void)unused;
    atomic_store(&is_asked, false);
    name_now(false);
    return 0;
}

/* Without the GIL or with it; never under the lock. */
static void ask_for_names(void)
{
    tlmi_modules_owed = MOST_OWED;
    if (tlmi_python_is_ending() || atomic_exchange(&is_asked, true))
        return;
    if (Py_AddPendingCall(name_pending, NULL) != 0) {
        atomic_store(&is_asked, false); /* too many wait; at the next block */
        return;
    }
#ifdef PYINSIDE_KNOWN
    pyinside_make_main_look();
#endif
}

/* ---- what the source calls ---- */

void tlmi_modules_pay(void)
{
    PyThreadState *own = tlmi_pycode_own_thread();
    if (atomic_load(&waiting_count) == 0) {
        tlmi_modules_owed = 0;
    } else if (own != NULL && tlmi_pycode_holds_gil(own)) {
        tlmi_modules_owed--;
        name_now(false);
    }
}

bool tlmi_modules_note(uint8_t device, uint64_t object)
{
    uintptr_t selves[MOST_STEPS], chain_of[MOST_STEPS];
    uintptr_t call = atomic_load_explicit(&tlmi_pycode_module_call, memory_order_relaxed);
    if (call == 0)
        return false;
    uint32_t count = order_chain(selves, tlmi_pystack_selves(call, selves, MOST_STEPS), chain_of);
    if (count == 0)
        return false;
    bool is_this_recording = atomic_load_explicit(&known_epoch, memory_order_acquire) ==
                             atomic_load_explicit(&tlmi_recording_epoch, memory_order_acquire);
    uint64_t key = is_this_recording ? key_of(chain_of, count) : 0;
    uint64_t label = key != 0 ? tlmi_map_find(&chains, key) : 0;
    bool is_waiting = label & IS_WAITING;
    if (tlmi_unlikely(label == 0)) {
        pthread_once(&fork_once, install_fork_handler);
        pthread_mutex_lock(&all.lock);
        label = meet_chain(chain_of, count);
        pthread_mutex_unlock(&all.lock);
        is_waiting = true;
    }
    if ((tlm_label)label != 0)
        tlmi_event_append(TLM_KIND_MODULE_PATH, device, object, (tlm_label)label, 0, 0);
    if (tlmi_unlikely(is_waiting))
        ask_for_names();
    return true;
}

void tlmi_modules_close(void)
{
    name_now(true);
}
