/* SPDX-License-Identifier: MIT
 * processes.c: which processes this one has made, and which of them record themselves; see processes.h.
 *
 * Everything is under the GIL. Files are looked at by system calls: no audit hook of the program sees it.
 */
#include "python/program/processes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/children.h"

enum { MOST_UNCERTAIN = 4096, LINE_ROOM = 512, PATH_ROOM = 4200, VARIABLE_ROOM = 8192 };

static const char name_of_variable[] = TLM_FOLLOW_VARIABLE;

static tlm_follow followed_are = TLM_FOLLOW_FORK;
static uint64_t followed, others, pythons;
static int uncertain[MOST_UNCERTAIN]; /* processes that record themselves if they have a file in the end */
static size_t uncertain_count;
static char variable[VARIABLE_ROOM]; /* NAME=VALUE; empty: there is none */

/* ---- counters ---- */

void tlmi_processes_forked(void)
{
    if (followed_are == TLM_FOLLOW_NONE)
        tlmi_processes_add(TLM_CHILD_UNSEEN, 0);
    else
        followed++;
}

void tlmi_processes_begin(void)
{
    followed = others = pythons = uncertain_count = 0;
}

uint64_t tlmi_processes_forks(void)
{
    return followed;
}

void tlmi_processes_set_forks(uint64_t forks)
{
    followed = forks;
}

bool tlmi_processes_all(void)
{
    return followed_are == TLM_FOLLOW_ALL;
}

void tlmi_processes_add(tlm_child_fate fate, int pid)
{
    if (fate == TLM_CHILD_UNCERTAIN && uncertain_count < MOST_UNCERTAIN) {
        uncertain[uncertain_count++] = pid;
        return;
    }
    followed += fate == TLM_CHILD_FOLLOWED;
    others += fate == TLM_CHILD_OTHER || fate == TLM_CHILD_UNSEEN || fate == TLM_CHILD_UNCERTAIN;
    pythons += fate == TLM_CHILD_UNSEEN || fate == TLM_CHILD_UNCERTAIN;
}

/* ---- what became of them ---- */

/* Whether a child records itself: its recording is mapped, or that of a program that took its place, or it only makes others that
 * do; and helpers of multiprocessing. */
static bool is_seen(int pid, void *stem)
{
    static const char *const ours[] = {"multiprocessing.resource_tracker", "loky.backend.resource_tracker",
                                       "tlmem.recorder.children"};
    char path[64], file[PATH_ROOM];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (tlmi_file_contains(path, ours[i], strlen(ours[i])))
            return true;
    int length = snprintf(file, sizeof file, "%s.%d.", (const char *)stem, pid);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    return length < (int)sizeof file && tlmi_file_contains(path, file, (size_t)length);
}

static bool has_recording(const char *stem, int pid, struct stat *found)
{
    char file[PATH_ROOM];
    int length = snprintf(file, sizeof file, "%s.%d.tlm", stem, pid);
    return length < (int)sizeof file && stat(file, found) == 0;
}

struct family {
    const char *stem, *base;
    int64_t since_s;
};

/* Whether it is the name of a recording that a process below this one has made since then. */
static bool is_member(const char *name, void *with)
{
    const struct family *family = with;
    size_t length = strlen(family->base);
    if (strncmp(name, family->base, length) != 0 || name[length] != '.')
        return false;
    char *end;
    long pid = strtol(name + length + 1, &end, 10);
    struct stat found;
    return end > name + length + 1 && strcmp(end, ".tlm") == 0 && has_recording(family->stem, (int)pid, &found) &&
           (int64_t)found.st_mtime >= family->since_s;
}

static uint64_t recordings_below(const char *stem, int64_t since_s)
{
    const char *slash = strrchr(stem, '/');
    char folder[PATH_ROOM];
    int length = slash ? (int)(slash - stem) : 0;
    struct family family = {stem, slash ? slash + 1 : stem, since_s};
    if (snprintf(folder, sizeof folder, "%.*s/", length, stem) >= (int)sizeof folder)
        return 0;
    return tlmi_count_names(slash ? folder : ".", is_member, &family);
}

void tlm_made_processes(const char *stem, int64_t since_s, tlm_processes *out)
{
    tlmi_usage own = tlmi_usage_of_this(), children = tlmi_usage_of_children(), running = {0};
    size_t count = stem ? tlmi_running_children(is_seen, (void *)stem, &running) : 0;
    for (size_t i = 0; stem != NULL && i < uncertain_count; i++) {
        struct stat found;
        tlmi_processes_add(has_recording(stem, uncertain[i], &found) ? TLM_CHILD_FOLLOWED : TLM_CHILD_UNSEEN, 0);
    }
    uncertain_count = stem ? 0 : uncertain_count;
    *out = (tlm_processes){.followed = followed,
                           .others = others,
                           .pythons = pythons,
                           .recordings = stem && tlmi_processes_all() ? recordings_below(stem, since_s) : 0,
                           .own_cpu_ns = own.cpu_ns,
                           .own_peak_bytes = own.peak_bytes,
                           .children_cpu_ns = children.cpu_ns,
                           .children_peak_bytes = children.peak_bytes,
                           .running = count,
                           .running_cpu_ns = running.cpu_ns,
                           .running_peak_bytes = running.peak_bytes};
}

/* ---- the variable that new interpreters look at ---- */

tlm_status tlm_follow_variable(tlm_follow which, const char *value)
{
    followed_are = which;
    variable[0] = 0;
    if (value == NULL) {
        unsetenv(name_of_variable);
        return TLM_OK;
    }
    int length = snprintf(variable, sizeof variable, "%s=%s", name_of_variable, value);
    if (length >= (int)sizeof variable || setenv(name_of_variable, value, 1) != 0) {
        variable[0] = 0;
        return TLM_NO_SPACE;
    }
    return TLM_OK;
}

/* Other sequences run code of the program when they are looked into; subprocess has none. */
static bool is_plain_sequence(PyObject *given)
{
    return given != NULL && (PyTuple_CheckExact(given) || PyList_CheckExact(given));
}

PyObject *tlmi_processes_environment(PyObject *given)
{
    PyObject *list = variable[0] != 0 && is_plain_sequence(given) ? PySequence_List(given) : NULL;
    PyObject *ours = list ? PyBytes_FromString(variable) : NULL;
    size_t length = strlen(name_of_variable) + 1; /* with the = */
    bool good = ours != NULL;
    for (Py_ssize_t i = good ? PyList_GET_SIZE(list) : 0; good && i-- > 0;) {
        PyObject *each = PyList_GET_ITEM(list, i);
        if (PyBytes_CheckExact(each) && strncmp(PyBytes_AS_STRING(each), variable, length) == 0)
            good = PyList_SetSlice(list, i, i + 1, NULL) == 0;
    }
    good = good && PyList_Append(list, ours) == 0;
    Py_XDECREF(ours);
    if (!good)
        Py_CLEAR(list);
    PyErr_Clear();
    return list;
}

PyObject *tlmi_processes_mapping(PyObject *given)
{
    PyObject *os = variable[0] != 0 && given != NULL ? PyImport_ImportModule("os") : NULL;
    PyObject *current = os ? PyObject_GetAttrString(os, "environ") : NULL;
    bool is_known = given != NULL && (PyDict_CheckExact(given) || given == current);
    PyObject *made = current != NULL && is_known ? PyDict_New() : NULL;
    PyObject *value = made ? PyUnicode_DecodeFSDefault(variable + strlen(name_of_variable) + 1) : NULL;
    if (value == NULL || PyDict_Update(made, given) != 0 || PyDict_SetItemString(made, name_of_variable, value) != 0)
        Py_CLEAR(made);
    Py_XDECREF(value);
    Py_XDECREF(current);
    Py_XDECREF(os);
    PyErr_Clear();
    return made;
}

/* ---- what is executed ---- */

static bool is_named_as_python(const char *path, size_t length)
{
    while (length > 0 && path[length - 1] == '/')
        length--;
    size_t begin = length;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return (length - begin >= 6 && memcmp(path + begin, "python", 6) == 0) ||
           (length - begin >= 4 && memcmp(path + begin, "pypy", 4) == 0);
}

/* The interpreter that a script names after "#!", if it is a Python; its length, 0 when it is none. */
static size_t named_interpreter(const char *path, char *line, const char **begin)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = file >= 0 ? read(file, line, LINE_ROOM - 1) : 0;
    if (file >= 0)
        close(file);
    if (got < 3 || line[0] != '#' || line[1] != '!')
        return 0;
    line[got] = 0;
    line[strcspn(line, "\n")] = 0;
    *begin = line + 2 + strspn(line + 2, " \t");
    size_t length = strcspn(*begin, " \t");
    if (is_named_as_python(*begin, length))
        return length;
    bool searches = length >= 4 && memcmp(*begin + length - 4, "/env", 4) == 0; /* "/usr/bin/env python3" */
    *begin = searches ? strstr(*begin + length, "python") : NULL;
    return 0;
}

PyObject *tlmi_processes_interpreter(PyObject *paths)
{
    PyObject *each = NULL, *found = NULL;
    for (Py_ssize_t i = 0; is_plain_sequence(paths) && found == NULL && i < PySequence_Size(paths); i++) {
        Py_XSETREF(each, PySequence_GetItem(paths, i));
        char line[LINE_ROOM];
        const char *path = each != NULL && PyBytes_CheckExact(each) ? PyBytes_AS_STRING(each) : "", *begin = NULL;
        if (access(path, X_OK) != 0)
            continue;
        if (is_named_as_python(path, strlen(path))) {
            found = Py_NewRef(each);
            break;
        }
        size_t length = named_interpreter(path, line, &begin);
        if (begin != NULL)
            found = PyBytes_FromStringAndSize(begin, (Py_ssize_t)length);
        break;
    }
    Py_XDECREF(each);
    PyErr_Clear();
    return found;
}

int tlm_remove_recording(const char *path)
{
    return unlink(path);
}

uint64_t tlm_peak_since_exec(void)
{
    return tlmi_peak_since_exec();
}

const char *tlm_environment(const char *name)
{
    return getenv(name);
}
