/* SPDX-License-Identifier: MIT
 * pycode.c: gives each code object a number when first met, and writes its names into the file.
 *
 * No code object is kept alive, and nothing is kept on one: numbers stand in a map from addresses. An address may come to
 * mean another code object, so the type's dealloc passes by here, where the number is forgotten and a new epoch begins.
 * What CPython offers for that would be seen by the program: with an extra slot of ours (PyUnstable_Code_SetExtra), the
 * free functions of all others hear of code that they never touched, and get other indices; watchers (PyCode_AddWatcher,
 * from 3.12 on) are eight in all; weak references are counted and listed.
 *
 * Names are read from the characters of the str objects, so nothing is cached on them. Numbers are found and given without
 * the GIL: whoever asks runs the code, so that it stays, and its names and lines never change. PyTorch lets go of the GIL
 * around each operation, so that most of its code is first met there. Code that is made anew again and again, by exec or a
 * class factory, has the same number each time, as its names and lines are the same: otherwise a long run would fill the
 * file with them.
 */
#include "python/stack/pycode.h"

#include <string.h>
#include <unistd.h>

#include "platform/address_map.h"

#define PATH_ROOM 4096
#define NAME_ROOM 1024
/* When the file had no room for a name, so many code objects are given up at once before it is asked again. */
#define REFUSED_AT_ONCE 256
#define MAX_CODES (1u << 20)
/* Of a local variable that inner functions use: CPython's CO_FAST_CELL. */
#define KIND_CELL 0x40

_Atomic uint64_t tlmi_pycode_current_epoch = 1;
_Atomic uintptr_t tlmi_pycode_module_call;

static tlmi_map codes = TLMI_MAP_EMPTY; /* address -> number */
static tlmi_map twins = TLMI_MAP_EMPTY; /* hash of names and lines -> number */
static _Atomic uint32_t recording_number;
static _Atomic uint32_t to_refuse;
static _Atomic(destructor) dealloc_code;                 /* CPython's own, once ours stands before it */
static PyInterpreterState *_Atomic numbered_interpreter; /* whose code has numbers */
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
static char start_directory[PATH_ROOM]; /* relative file names are relative to this */
static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

/* In place of the dealloc of code objects, from the first number on to the end of the process. Any interpreter's. */
static void code_dies(PyObject *code)
{
    uintptr_t dying = (uintptr_t)code;
    atomic_compare_exchange_strong(&tlmi_pycode_module_call, &dying, 0);
    if (tlmi_map_take(&codes, (uintptr_t)code) != 0)
        atomic_fetch_add_explicit(&tlmi_pycode_current_epoch, 1, memory_order_release);
    atomic_load_explicit(&dealloc_code, memory_order_relaxed)(code);
}

/* From here on the death of every code object is noticed. Under the lock of naming. */
static void watch_deaths(PyThreadState *tstate)
{
    atomic_store(&dealloc_code, PyCode_Type.tp_dealloc);
    __atomic_store_n(&PyCode_Type.tp_dealloc, code_dies, __ATOMIC_RELEASE);
    atomic_store(&numbered_interpreter, PyThreadState_GetInterpreter(tstate));
}

static void mend_after_fork(void)
{
    tlmi_map_after_fork(&codes);
    tlmi_map_after_fork(&twins);
    pthread_mutex_init(&naming, NULL);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

/* Numbers belong to one recording. */
static void forget_numbers(void)
{
    tlmi_map_clear(&codes);
    tlmi_map_clear(&twins);
    atomic_store(&tlmi_pycode_module_call, 0);
    atomic_fetch_add_explicit(&tlmi_pycode_current_epoch, 1, memory_order_release);
}

void tlmi_pycode_reset(void)
{
    pthread_once(&fork_handler_once, install_fork_handler);
    atomic_fetch_add_explicit(&recording_number, 1, memory_order_release);
    atomic_store_explicit(&to_refuse, 0, memory_order_relaxed);
    forget_numbers();
    if (getcwd(start_directory, sizeof start_directory) == NULL)
        start_directory[0] = 0;
}

size_t tlmi_pycode_text(PyObject *text, char *out, size_t room)
{
    if (!PyUnicode_Check(text))
        return 0;
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(text))
        return 0;
#endif
    size_t used = 0;
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    for (Py_ssize_t at = 0; at < length && used + 4 <= room; at++) {
        uint32_t c = PyUnicode_READ(kind, data, at);
        if (c < 0x80) {
            out[used++] = (char)c;
        } else if (c < 0x800) {
            out[used++] = (char)(0xC0 | c >> 6);
            out[used++] = (char)(0x80 | (c & 0x3F));
        } else if (c < 0x10000) {
            out[used++] = (char)(0xE0 | c >> 12);
            out[used++] = (char)(0x80 | (c >> 6 & 0x3F));
            out[used++] = (char)(0x80 | (c & 0x3F));
        } else {
            out[used++] = (char)(0xF0 | c >> 18);
            out[used++] = (char)(0x80 | (c >> 12 & 0x3F));
            out[used++] = (char)(0x80 | (c >> 6 & 0x3F));
            out[used++] = (char)(0x80 | (c & 0x3F));
        }
    }
    return used;
}

/* The file name, absolute unless it is a made-up one such as <string>. */
static size_t encode_path(PyObject *file, char *out, size_t room)
{
    size_t directory = strlen(start_directory);
    size_t used = tlmi_pycode_text(file, out, room);
    if (used == 0 || out[0] == '/' || out[0] == '<' || directory == 0 || directory + 1 >= room)
        return used;
    memcpy(out, start_directory, directory);
    if (out[directory - 1] != '/')
        out[directory++] = '/';
    used = tlmi_pycode_text(file, out + directory, room - directory);
    while (used > 2 && out[directory] == '.' && out[directory + 1] == '/') {
        used -= 2;
        memmove(out + directory, out + directory + 2, used);
    }
    return directory + used;
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001B3u;
    return (hash ^ count) * 0x9E3779B97F4A7C15u;
}

static bool ends_with(const char *text, size_t bytes, const char *end)
{
    size_t end_bytes = strlen(end);
    return bytes >= end_bytes && memcmp(text + bytes - end_bytes, end, end_bytes) == 0;
}

/* Python 3.11.0 shows frames while they are being cleared; and an argument that an inner function uses is in a cell. */
static void note_module_call(PyCodeObject *code, const char *file, size_t file_bytes, const char *name,
                             size_t name_bytes)
{
    static const char wanted[] = "Module._wrapped_call_impl";
    bool is_it = name_bytes == sizeof wanted - 1 && memcmp(name, wanted, name_bytes) == 0 &&
                 ends_with(file, file_bytes, "/torch/nn/modules/module.py");
    bool is_plain = code->co_argcount > 0 && PyBytes_GET_SIZE(code->co_localspluskinds) > 0 &&
                    !(PyBytes_AS_STRING(code->co_localspluskinds)[0] & KIND_CELL);
    if (is_it && is_plain && Py_Version >= 0x030B0100)
        atomic_store(&tlmi_pycode_module_call, (uintptr_t)code);
}

/* Writes the names of the code into the file, unless they are there. 0: no room. */
static uint32_t name_code(PyCodeObject *code)
{
    char file[PATH_ROOM], name[NAME_ROOM];
    size_t file_bytes = encode_path(code->co_filename, file, sizeof file);
    size_t name_bytes = tlmi_pycode_text(code->co_qualname, name, sizeof name);
    note_module_call(code, file, file_bytes, name, name_bytes);
    uint32_t first_line = code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 0;
    uint64_t hash = hash_bytes(0xCBF29CE484222325u ^ first_line, file, file_bytes);
    hash = hash_bytes(hash, name, name_bytes);
    /* The line table says which line each instruction is of. */
    hash = hash_bytes(hash, PyBytes_AS_STRING(code->co_linetable), (size_t)PyBytes_GET_SIZE(code->co_linetable));
    hash += hash == 0;
    uint32_t number = (uint32_t)tlmi_map_find(&twins, hash);
    if (number != 0)
        return number;
    number = tlmi_site_new_code();
    bool room = number <= MAX_CODES &&
                tlmi_meta_code(number, first_line, file, (uint32_t)file_bytes, name, (uint32_t)name_bytes);
    return room && tlmi_map_put(&twins, hash, number) ? number : 0;
}

__attribute__((noinline)) static uint32_t give_number(PyCodeObject *code)
{
    uint32_t recording = atomic_load_explicit(&recording_number, memory_order_acquire);
    uint32_t number = name_code(code);
    if (number == 0 || !tlmi_map_put(&codes, (uintptr_t)code, number)) {
        atomic_store_explicit(&to_refuse, REFUSED_AT_ONCE, memory_order_relaxed);
        return 0;
    }
    if (atomic_load_explicit(&recording_number, memory_order_acquire) != recording) {
        /* The names went into a recording that has ended meanwhile. */
        forget_numbers();
        return 0;
    }
    return number;
}

/* Under the lock of naming. */
static uint32_t number_unless_refused(PyCodeObject *code, PyThreadState *tstate)
{
    uint32_t number = (uint32_t)tlmi_map_find(&codes, (uintptr_t)code);
    if (number != 0)
        return number; /* another thread was first */
    if (atomic_load(&numbered_interpreter) == NULL)
        watch_deaths(tstate);
    if (PyThreadState_GetInterpreter(tstate) != atomic_load(&numbered_interpreter))
        return 0;
    uint32_t left = atomic_load_explicit(&to_refuse, memory_order_relaxed);
    if (tlmi_unlikely(left > 0)) {
        atomic_store_explicit(&to_refuse, left - 1, memory_order_relaxed);
        return 0;
    }
    return give_number(code);
}

uint32_t tlmi_pycode_number(PyObject *code, PyThreadState *tstate)
{
    uint32_t number = (uint32_t)tlmi_map_find(&codes, (uintptr_t)code);
    if (tlmi_likely(number != 0))
        return number;
    if (tlmi_python_is_ending() || !PyCode_Check(code))
        return 0;
    pthread_mutex_lock(&naming);
    number = number_unless_refused((PyCodeObject *)code, tstate);
    pthread_mutex_unlock(&naming);
    return number;
}
