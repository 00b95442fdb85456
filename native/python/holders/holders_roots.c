/* SPDX-License-Identifier: MIT
 * holders_roots.c: where chains begin, the most telling first: the program's own modules, the frames of its threads from the
 * outermost on, exceptions, what threads keep for themselves, all other modules.
 *
 * Each root is followed to its end before the next one, so that an array has the chain of the most telling root, and the
 * shortest of those. Dicts of modules are remembered before: nothing leads through one module's functions into another. What
 * is code waits until the data of all the program's own roots was seen: most arrays are found in the first thousandth.
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
    tlmi_search_drain(search);
}

void tlmi_search_from(tlmi_search *search, tlmi_root root, uintptr_t object)
{
    if (tlmi_graph_mark(&search->graph, object))
        follow(search, root, object);
}

/* ---- modules ---- */

static bool begins_with(PyObject *text, const char *start)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    for (Py_ssize_t i = 0; start[i] != 0; i++)
        if (i >= length || PyUnicode_READ_CHAR(text, i) != (unsigned char)start[i])
            return false;
    return true;
}

/* Whether a module is the program's own: it has a file, and that is not in a library. */
static bool is_own(PyObject *name, PyObject *dict, const char *elsewhere)
{
    if (PyUnicode_CompareWithASCIIString(name, "__main__") == 0)
        return true;
    PyObject *file = tlmi_find_text_key(dict, "__file__");
    if (file == NULL || !PyUnicode_CheckExact(file))
        return false;
    for (; *elsewhere != 0; elsewhere += strlen(elsewhere) + 1)
        if (begins_with(file, elsewhere))
            return false;
    return true;
}

typedef bool (*wanted_module)(PyObject *name, PyObject *dict, const char *elsewhere);

static bool is_main(PyObject *name, PyObject *dict, const char *elsewhere)
{
    (void)dict, (void)elsewhere;
    return PyUnicode_CompareWithASCIIString(name, "__main__") == 0;
}

static bool is_own_beside_main(PyObject *name, PyObject *dict, const char *elsewhere)
{
    return is_own(name, dict, elsewhere) && !is_main(name, dict, elsewhere);
}

static bool is_other(PyObject *name, PyObject *dict, const char *elsewhere)
{
    return !is_own(name, dict, elsewhere);
}

static void each_module(tlmi_search *search, const char *elsewhere, wanted_module wanted)
{
    PyObject *name, *module, *modules = PyImport_GetModuleDict();
    Py_ssize_t at = 0;
    while (modules != NULL && PyDict_Next(modules, &at, &name, &module)) {
        PyObject *dict = PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
        if (dict == NULL || !PyUnicode_CheckExact(name))
            continue;
        if (wanted == NULL)
            tlmi_graph_mark(&search->graph, (uintptr_t)dict);
        else if (wanted(name, dict, elsewhere))
            follow(search, (tlmi_root){.kind = TLMI_ROOT_MODULE, .name = name}, (uintptr_t)dict);
    }
}

/* ---- threads ---- */

static void each_frame(tlmi_search *search, PyThreadState *thread)
{
    uint32_t count = 0;
    for (pyframe *frame = pyframe_current(thread); frame != NULL; frame = pyframe_outer(frame))
        count++;
    pyframe **frames = tlmi_own_alloc(count * sizeof(pyframe *));
    uint32_t met = 0;
    for (pyframe *frame = pyframe_current(thread); frames != NULL && frame != NULL; frame = pyframe_outer(frame))
        frames[met++] = frame;
    while (met > 0) {
        pyframe *frame = frames[--met];
        if (pyframe_code(frame) == NULL)
            continue;
        tlmi_search_from(search, (tlmi_root){.kind = TLMI_ROOT_FRAME}, (uintptr_t)frame | TLMI_RUNNING);
        if (pyinside_globals(frame) != NULL)
            tlmi_search_from(search, (tlmi_root){.kind = TLMI_ROOT_GLOBALS}, (uintptr_t)pyinside_globals(frame));
    }
    tlmi_own_free(frames, count * sizeof(pyframe *));
}

static void from_object(tlmi_search *search, tlmi_root_kind kind, PyObject *object)
{
    if (object != NULL && object != Py_None)
        tlmi_search_from(search, (tlmi_root){.kind = kind}, (uintptr_t)object);
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

void tlmi_search_own_roots(tlmi_search *search, const char *elsewhere, PyObject *error)
{
    each_module(search, elsewhere, NULL);
    each_module(search, elsewhere, is_main);
    each_module(search, elsewhere, is_own_beside_main);
    from_object(search, TLMI_ROOT_ERROR, error);
    each_thread(search, each_frame);
    each_thread(search, each_error);
    each_thread(search, each_own_object);
}

void tlmi_search_other_roots(tlmi_search *search, const char *elsewhere)
{
    tlmi_search_drain_code(search);
    each_module(search, elsewhere, is_other);
    from_object(search, TLMI_ROOT_THREAD, PyImport_GetModuleDict());
}
#endif
