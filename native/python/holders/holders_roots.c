/* SPDX-License-Identifier: MIT
 * holders_roots.c: where chains begin, the most telling first: the program's own modules, the frames of its threads from the
 * outermost on, exceptions, what threads keep for themselves, what atexit will call, all other modules; then what no root reaches.
 *
 * Each root is followed to its end before the next one, so that an array has the chain of the most telling root, and the
 * shortest of those. Dicts of modules are remembered before: nothing leads through one module's functions into another. What
 * is code waits until the data of all the program's own roots was seen: most arrays are found in the first thousandth.
 *
 * Objects that no root reaches live in a reference cycle, or are held by C. Those that were not met are looked at together. One
 * that none of them refers to is held from outside Python, as far as can be seen. Of the others each has a referrer among them;
 * going back from referrer to referrer an object must come again, and the way between is a cycle. Both become roots.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

static bool add_root(tlmi_search *search, tlmi_root root)
{
    if (search->roots_count == search->roots_room) {
        uint32_t room = search->roots_room ? 2 * search->roots_room : 1024;
        tlmi_root *roots = tlmi_own_alloc(room * sizeof *roots);
        if (roots == NULL) {
            search->graph.is_full = true;
            return false;
        }
        if (search->roots_count > 0)
            memcpy(roots, search->roots, search->roots_count * sizeof *roots);
        tlmi_own_free(search->roots, search->roots_room * sizeof *roots);
        search->roots = roots;
        search->roots_room = room;
    }
    search->roots[search->roots_count++] = root;
    return true;
}

static void follow(tlmi_search *search, tlmi_root root, uintptr_t object)
{
    if (search->is_late || search->graph.is_full || !add_root(search, root))
        return;
    uint32_t node = tlmi_graph_append(&search->graph, object, 0, search->roots_count - 1);
    if (node != 0 && !(object & TLMI_RUNNING))
        tlmi_search_note(search, (PyObject *)object, node);
    if (node != 0)
        tlmi_search_look_into(search, node);
    tlmi_search_drain(search);
}

/* A root that was not met yet, and everything behind it. */
static void search_from(tlmi_search *search, tlmi_root root, uintptr_t object)
{
    if (tlmi_graph_mark(&search->graph, object))
        follow(search, root, object);
}

/* The same, after all data of the program: what it holds has better names. */
static void put_off(tlmi_search *search, tlmi_root root, uintptr_t object)
{
    if (search->is_late || search->graph.is_full || !tlmi_graph_mark(&search->graph, object) || !add_root(search, root))
        return;
    uint32_t node = tlmi_graph_append(&search->graph, object, 0, search->roots_count - 1);
    if (node != 0)
        tlmi_search_put_off(search, node);
}

/* ---- modules ---- */

static bool begins_with(PyObject *text, const char *start)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        size_t wanted = strlen(start);
        return (size_t)length >= wanted && memcmp(PyUnicode_1BYTE_DATA(text), start, wanted) == 0;
    }
    for (Py_ssize_t i = 0; start[i] != 0; i++)
        if (i >= length || PyUnicode_READ_CHAR(text, i) != (unsigned char)start[i])
            return false;
    return true;
}

/* Whether a module is the program's own: it has a file, and that is not in a library. */
static bool is_own(const tlmi_module *module, const char *elsewhere)
{
    if (PyUnicode_CompareWithASCIIString(module->name, "__main__") == 0)
        return true;
    if (module->file == NULL || !PyUnicode_CheckExact(module->file))
        return false;
    for (; *elsewhere != 0; elsewhere += strlen(elsewhere) + 1)
        if (begins_with(module->file, elsewhere))
            return false;
    return true;
}

/* What waits for memory is done for all modules at once: meanwhile the processor brings what is looked at next. */
static uint32_t find_modules(tlmi_search *search)
{
    PyObject *name, *module, *modules = PyImport_GetModuleDict();
    Py_ssize_t at = 0;
    uint32_t met = 0, count = 0, room = modules == NULL ? 0 : (uint32_t)PyDict_GET_SIZE(modules);
    tlmi_module *found = search->modules = tlmi_own_alloc(room * sizeof *found);
    search->modules_room = found == NULL ? 0 : room;
    while (met < search->modules_room && PyDict_Next(modules, &at, &name, &module)) {
        found[met++] = (tlmi_module){.name = name, .dict = module};
        __builtin_prefetch(name);
        __builtin_prefetch(module);
    }
    for (uint32_t i = 0; i < met; i++) {
        PyObject *dict = PyModule_Check(found[i].dict) ? PyModule_GetDict(found[i].dict) : NULL;
        if (dict == NULL || !PyUnicode_CheckExact(found[i].name))
            continue;
        __builtin_prefetch(&((PyDictObject *)dict)->ma_keys);
        found[count++] = (tlmi_module){.name = found[i].name, .dict = dict};
    }
    for (uint32_t i = 0; i < count; i++)
        __builtin_prefetch(((PyDictObject *)found[i].dict)->ma_keys);
    return count;
}

/* Finds modules, which of them are the program's own, and remembers their dicts. */
static void open_modules(tlmi_search *search, const char *elsewhere)
{
    uint32_t count = search->modules_count = find_modules(search);
    for (uint32_t i = 0; i < count; i++) {
        const char *entries = (const char *)DK_ENTRIES(((PyDictObject *)search->modules[i].dict)->ma_keys);
        tlmi_graph_mark(&search->graph, (uintptr_t)search->modules[i].dict);
        __builtin_prefetch(entries);
        __builtin_prefetch(entries + 64);
    }
    for (uint32_t i = 0; i < count; i++)
        search->modules[i].file = tlmi_find_text_key(search->modules[i].dict, "__file__");
    for (uint32_t i = 0; i < count; i++)
        search->modules[i].is_own = is_own(&search->modules[i], elsewhere);
}

static void each_module(tlmi_search *search, bool (*is_wanted)(const tlmi_module *))
{
    for (uint32_t i = 0; i < search->modules_count; i++)
        if (is_wanted(&search->modules[i]) && search->found_bytes < search->enough_bytes)
            follow(search, (tlmi_root){.kind = TLMI_ROOT_MODULE, .name = search->modules[i].name},
                   (uintptr_t)search->modules[i].dict);
}

static bool is_main(const tlmi_module *module)
{
    return PyUnicode_CompareWithASCIIString(module->name, "__main__") == 0;
}

static bool is_own_beside_main(const tlmi_module *module)
{
    return module->is_own && !is_main(module);
}

static bool is_other(const tlmi_module *module)
{
    return !module->is_own;
}

/* ---- threads ---- */

/* Whether a frame is of a method of an optimizer, or of what one calls in its own module: lists of parameters and states there
 * name nothing. `before`: the globals of the last such frame around it. */
static bool is_of_optimizer(tlmi_search *search, pyframe *frame, PyObject *before)
{
    PyCodeObject *code = (PyCodeObject *)pyframe_code(frame);
    PyObject *first = code->co_argcount > 0 && pyinside_values(frame, code) > 0 ? pyinside_local(frame, 0) : NULL;
    return (before != NULL && pyinside_globals(frame) == before) ||
           (first != NULL && tlmi_search_kind(search, Py_TYPE(first)) == TLMI_OPTIMIZER);
}

static void each_frame(tlmi_search *search, PyThreadState *thread)
{
    uint32_t count = 0;
    for (pyframe *frame = pyframe_current(thread); frame != NULL; frame = pyframe_outer(frame))
        count++;
    pyframe **frames = tlmi_own_alloc(count * sizeof(pyframe *));
    uint32_t met = 0;
    PyObject *optimizer = NULL;
    for (pyframe *frame = pyframe_current(thread); frames != NULL && frame != NULL; frame = pyframe_outer(frame))
        frames[met++] = frame;
    while (met > 0) {
        pyframe *frame = frames[--met];
        if (pyframe_code(frame) == NULL)
            continue;
        bool is_later = is_of_optimizer(search, frame, optimizer);
        optimizer = is_later ? pyinside_globals(frame) : optimizer;
        if (is_later)
            put_off(search, (tlmi_root){.kind = TLMI_ROOT_FRAME}, (uintptr_t)frame | TLMI_RUNNING);
        else
            search_from(search, (tlmi_root){.kind = TLMI_ROOT_FRAME}, (uintptr_t)frame | TLMI_RUNNING);
        if (pyinside_globals(frame) != NULL)
            search_from(search, (tlmi_root){.kind = TLMI_ROOT_GLOBALS}, (uintptr_t)pyinside_globals(frame));
    }
    tlmi_own_free(frames, count * sizeof(pyframe *));
}

static void from_object(tlmi_search *search, tlmi_root_kind kind, PyObject *object)
{
    if (object != NULL && object != Py_None)
        search_from(search, (tlmi_root){.kind = kind}, (uintptr_t)object);
}

static void each_error(tlmi_search *search, PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030C0000
    from_object(search, TLMI_ROOT_ERROR, thread->current_exception);
#else
    from_object(search, TLMI_ROOT_ERROR, thread->curexc_value);
    from_object(search, TLMI_ROOT_ERROR, thread->curexc_traceback);
#endif
    for (_PyErr_StackItem *item = thread->exc_info; item != NULL; item = item->previous_item)
        from_object(search, TLMI_ROOT_ERROR, item->exc_value);
}

/* The main thread is the one that was made first, and the last in the interpreter's list. */
static void each_thread(tlmi_search *search, void (*visit)(tlmi_search *, PyThreadState *))
{
    PyThreadState *first = PyInterpreterState_ThreadHead(PyInterpreterState_Get()), *oldest = first;
    for (PyThreadState *thread = first; thread != NULL; thread = PyThreadState_Next(thread))
        oldest = thread;
    visit(search, oldest);
    for (PyThreadState *thread = first; thread != oldest; thread = PyThreadState_Next(thread))
        visit(search, thread);
}

static void each_own_object(tlmi_search *search, PyThreadState *thread)
{
    from_object(search, TLMI_ROOT_THREAD, thread->dict);
    from_object(search, TLMI_ROOT_THREAD, thread->context);
}

static void each_exit(tlmi_search *search)
{
    for (int number = 0; number < pyinside_exit_count(); number++)
        for (int part = 0; part < PYINSIDE_EXIT_PARTS; part++)
            from_object(search, TLMI_ROOT_EXIT, pyinside_exit_part(number, part));
}

void tlmi_search_own_roots(tlmi_search *search, const char *elsewhere, PyObject *error)
{
    open_modules(search, elsewhere);
    each_module(search, is_main);
    each_module(search, is_own_beside_main);
    from_object(search, TLMI_ROOT_ERROR, error);
    each_thread(search, each_frame);
    each_thread(search, each_error);
    each_thread(search, each_own_object);
    tlmi_search_drain_own_code(search);
    each_exit(search);
}

void tlmi_search_other_roots(tlmi_search *search)
{
    tlmi_search_drain_code(search);
    search->is_elsewhere = true;
    each_module(search, is_other);
    from_object(search, TLMI_ROOT_THREAD, PyImport_GetModuleDict());
}

/* ---- what no root reaches ---- */

enum { FIRST_STRAYS = 1 << 12, MOST_STRAYS = 1 << 26, LONGEST_RING = 32 };

typedef struct {
    tlmi_search *search;
    uintptr_t *strays;
    uint32_t *referrer; /* number of one of them + 1; 0: none */
    uint32_t *table;    /* numbers + 1 by address */
    uint32_t count, room, mask;
    uint32_t from; /* whose references are visited */
} stray_set;

static bool open_set(stray_set *set, uint32_t room)
{
    set->room = room;
    set->mask = 2 * room - 1;
    set->strays = tlmi_own_alloc(room * sizeof *set->strays);
    set->referrer = tlmi_own_alloc(room * sizeof *set->referrer);
    set->table = tlmi_own_alloc(2 * (size_t)room * sizeof *set->table);
    return set->strays != NULL && set->referrer != NULL && set->table != NULL;
}

static void close_set(stray_set *set)
{
    tlmi_own_free(set->strays, set->room * sizeof *set->strays);
    tlmi_own_free(set->referrer, set->room * sizeof *set->referrer);
    tlmi_own_free(set->table, 2 * (size_t)set->room * sizeof *set->table);
}

static uint32_t *place_of(const stray_set *set, uintptr_t object)
{
    uint32_t at = tlmi_graph_home(object, set->mask);
    while (set->table[at] != 0 && set->strays[set->table[at] - 1] != object)
        at = (at + 1) & set->mask;
    return &set->table[at];
}

static bool grow_set(stray_set *set)
{
    stray_set bigger = {.search = set->search, .count = set->count};
    if (set->room >= MOST_STRAYS || !open_set(&bigger, 2 * set->room)) {
        close_set(&bigger);
        return false;
    }
    memcpy(bigger.strays, set->strays, set->count * sizeof *set->strays);
    for (uint32_t i = 0; i < set->count; i++)
        *place_of(&bigger, set->strays[i]) = i + 1;
    close_set(set);
    *set = bigger;
    return true;
}

static int collect_stray(PyObject *object, void *context)
{
    stray_set *set = context;
    tlmi_search *search = set->search;
    if (--search->until_clock == 0 && tlmi_search_is_late(search))
        return 0;
    if (tlmi_graph_has(&search->graph, (uintptr_t)object))
        return 1;
    if (set->count == set->room && !grow_set(set)) {
        search->graph.is_full = true;
        return 0;
    }
    set->strays[set->count++] = (uintptr_t)object;
    *place_of(set, (uintptr_t)object) = set->count;
    return 1;
}

static int note_referrer(void *context, PyObject *child, uint32_t edge)
{
    stray_set *set = context;
    (void)edge;
    if (--set->search->until_clock == 0 && tlmi_search_is_late(set->search))
        return 1;
    uint32_t number = *place_of(set, (uintptr_t)child);
    /* An object's reference to itself is a cycle too. */
    if (number != 0 && set->referrer[number - 1] == 0)
        set->referrer[number - 1] = set->from + 1;
    return 0;
}

static void note_referrers(stray_set *set)
{
    for (set->from = 0; set->from < set->count && !set->search->is_late; set->from++)
        tlmi_search_each_child(set->search, set->strays[set->from], note_referrer, set);
}

/* ---- from them ---- */

static bool keep_ring(tlmi_search *search, uintptr_t object)
{
    if (search->ring_count == search->ring_room) {
        uint32_t room = search->ring_room ? 2 * search->ring_room : 1024;
        uintptr_t *ring = tlmi_own_alloc(room * sizeof *ring);
        if (ring == NULL)
            return false;
        if (search->ring_count > 0)
            memcpy(ring, search->ring, search->ring_count * sizeof *ring);
        tlmi_own_free(search->ring, search->ring_room * sizeof *ring);
        search->ring = ring;
        search->ring_room = room;
    }
    search->ring[search->ring_count++] = object;
    return true;
}

/* An instance of a class of the program says more than a dict or a list. */
static bool tells_more(uintptr_t object)
{
    PyTypeObject *type = Py_TYPE((PyObject *)object);
    return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && !PyType_Check((PyObject *)object);
}

/* A stray on a cycle that keeps this one: going back twice as fast as slowly, both meet on it (Floyd). */
static uint32_t find_cycle(const stray_set *set, uint32_t stray)
{
    uint32_t slow = stray, fast = stray;
    do {
        slow = set->referrer[slow] - 1;
        fast = set->referrer[set->referrer[fast] - 1] - 1;
    } while (slow != fast);
    uint32_t on = slow;
    do {
        if (tells_more(set->strays[slow]))
            return slow;
        slow = set->referrer[slow] - 1;
    } while (slow != on);
    return on;
}

static void follow_cycle(stray_set *set, uint32_t entry)
{
    tlmi_search *search = set->search;
    tlmi_root root = {.kind = TLMI_ROOT_CYCLE, .ring = search->ring_count};
    uint32_t on = entry, length = 0;
    /* From referrer to referrer: backwards. A long one is cut; its length is kept. */
    do {
        if (length < LONGEST_RING && keep_ring(search, set->strays[on]))
            root.ring_count++;
        length++;
        on = set->referrer[on] - 1;
    } while (on != entry);
    root.ring_length = length;
    search_from(search, root, set->strays[entry]);
}

static void follow_unseen(tlmi_search *search, uintptr_t object)
{
    bool is_generator = tlmi_search_kind(search, Py_TYPE((PyObject *)object)) == TLMI_GENERATOR;
    tlmi_root_kind kind = is_generator ? TLMI_ROOT_GENERATOR : TLMI_ROOT_UNSEEN;
    search_from(search, (tlmi_root){.kind = kind}, object);
}

static void follow_strays(stray_set *set)
{
    tlmi_search *search = set->search;
    for (uint32_t i = 0; i < set->count; i++)
        if (set->referrer[i] == 0)
            follow_unseen(search, set->strays[i]);
    /* Of those that are left, all referrers are left as well. */
    for (uint32_t i = 0; i < set->count && !search->is_late && !search->graph.is_full; i++)
        if (!tlmi_graph_has(&search->graph, set->strays[i]))
            follow_cycle(set, find_cycle(set, i));
}

static int collect_generator(PyObject *object, void *context)
{
    stray_set *set = context;
    PyTypeObject *type = Py_TYPE(object);
    if (--set->search->until_clock == 0 && tlmi_search_is_late(set->search))
        return 0;
    return type == &PyGen_Type || type == &PyCoro_Type || type == &PyAsyncGen_Type ? collect_stray(object, context) : 1;
}

void tlmi_search_generators(tlmi_search *search)
{
    stray_set set = {.search = search};
    if (open_set(&set, FIRST_STRAYS) && tlmi_search_each_tracked(search, collect_generator, &set))
        for (uint32_t i = 0; i < set.count; i++)
            follow_unseen(search, set.strays[i]);
    close_set(&set);
}

void tlmi_search_unreached(tlmi_search *search)
{
    stray_set set = {.search = search};
    if (search->is_late || search->graph.is_full)
        return;
    if (open_set(&set, FIRST_STRAYS) && tlmi_search_each_tracked(search, collect_stray, &set) && !search->is_late &&
        !search->graph.is_full) {
        note_referrers(&set);
        if (!search->is_late)
            follow_strays(&set);
    }
    close_set(&set);
}
#endif
