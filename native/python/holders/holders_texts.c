/* SPDX-License-Identifier: MIT
 * holders_texts.c: names of types, functions, frames and keys, from the characters of Python's strings.
 *
 * Nothing is made and nothing is cached on a string; keys are compared as texts, so that no hash and no __eq__ is called.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <stdio.h>
#include <string.h>
#include <structmember.h>

/* Bytes that fit, cut between two characters. */
static void add_bytes(tlmi_text *text, const char *bytes, size_t count)
{
    size_t room = text->room - text->used;
    if (count > room) {
        count = room;
        while (count > 0 && ((unsigned char)bytes[count] & 0xC0) == 0x80)
            count--;
        text->room = text->used + count; /* nothing more after a cut */
    }
    memcpy(text->start + text->used, bytes, count);
    text->used += count;
}

void tlmi_text_add(tlmi_text *text, const char *more)
{
    add_bytes(text, more, strlen(more));
}

static size_t encode(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(first[more] | c >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3F));
    return more + 1;
}

void tlmi_text_str(tlmi_text *text, PyObject *str)
{
    if (str == NULL || !PyUnicode_Check(str))
        return;
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(str))
        return;
#endif
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(str) && text->used < text->room; i++) {
        char bytes[4];
        add_bytes(text, bytes, encode(PyUnicode_READ_CHAR(str, i), bytes));
    }
}

void tlmi_text_number(tlmi_text *text, long long number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", number);
    tlmi_text_add(text, digits);
}

PyObject *tlmi_find_text_key(PyObject *dict, const char *wanted)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (dict != NULL && PyDict_Next(dict, &at, &key, &value))
        if (PyUnicode_CheckExact(key) && PyUnicode_CompareWithASCIIString(key, wanted) == 0)
            return value;
    return NULL;
}

void tlmi_text_short_type(tlmi_text *text, PyTypeObject *type)
{
    const char *dot = strrchr(type->tp_name, '.');
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        tlmi_text_str(text, ((PyHeapTypeObject *)type)->ht_qualname);
    else
        tlmi_text_add(text, dot == NULL ? type->tp_name : dot + 1);
}

void tlmi_text_type(tlmi_text *text, PyTypeObject *type)
{
    PyObject *module = NULL;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        tlmi_text_add(text, type->tp_name);
        return;
    }
    module = tlmi_find_text_key(type->tp_dict, "__module__");
    if (module != NULL && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "builtins") != 0) {
        tlmi_text_str(text, module);
        tlmi_text_add(text, ".");
    }
    tlmi_text_short_type(text, type);
}

void tlmi_text_named(tlmi_text *text, PyObject *object)
{
    PyObject *module, *name;
    if (PyFunction_Check(object)) {
        module = ((PyFunctionObject *)object)->func_module;
        name = ((PyFunctionObject *)object)->func_qualname;
    } else {
        PyObject *dict = pyinside_dict(object);
        module = tlmi_find_text_key(dict, "__module__");
        name = tlmi_find_text_key(dict, "__qualname__");
    }
    if (name == NULL || !PyUnicode_Check(name)) {
        tlmi_text_type(text, Py_TYPE(object));
        return;
    }
    if (module != NULL && PyUnicode_Check(module)) {
        tlmi_text_str(text, module);
        tlmi_text_add(text, ".");
    }
    tlmi_text_str(text, name);
}

void tlmi_text_frame(tlmi_text *text, pyframe *frame)
{
    PyCodeObject *code = (PyCodeObject *)pyframe_code(frame);
    if (code == NULL)
        return;
    int line = PyCode_Addr2Line(code, pyframe_offset(code, pyframe_position(frame)));
    tlmi_text_str(text, code->co_qualname);
    tlmi_text_add(text, "\n");
    tlmi_text_str(text, code->co_filename);
    tlmi_text_add(text, "\n");
    tlmi_text_number(text, line > 0 ? line : code->co_firstlineno);
}

void tlmi_text_key(tlmi_text *text, PyObject *key)
{
    int overflow = 0;
    tlmi_text_add(text, "[");
    if (key != NULL && PyUnicode_CheckExact(key)) {
        tlmi_text_add(text, "'");
        tlmi_text_str(text, key);
        tlmi_text_add(text, "'");
    } else if (key != NULL && PyLong_CheckExact(key)) {
        long long number = PyLong_AsLongLongAndOverflow(key, &overflow);
        if (overflow == 0)
            tlmi_text_number(text, number);
    }
    tlmi_text_add(text, "]");
}

const char *tlmi_member_name(PyObject *object, PyObject *value)
{
    for (PyTypeObject *type = Py_TYPE(object); type != NULL; type = type->tp_base)
        for (PyMemberDef *member = type->tp_members; member != NULL && member->name != NULL; member++)
            if ((member->type == T_OBJECT || member->type == T_OBJECT_EX) && member->offset > 0 &&
                *(PyObject **)((char *)object + member->offset) == value)
                return member->name;
    return NULL;
}
#endif
