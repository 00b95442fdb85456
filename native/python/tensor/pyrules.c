/* SPDX-License-Identifier: MIT
 * pyrules.c: ops whose rule is a Python object, and which outputs the program wants to have computed again.
 *
 * A record of such an op owns its Python object (`call`), whose address is its params, until the record goes. The core runs
 * the rule in the thread that goes back; it takes the GIL, turns recording off, and enters a scope of its own when the
 * program is in one, so that what the rule leaves behind ends with it. An exception of the rule waits, per thread, until
 * the pass has ended and `raise_stashed` brings it back.
 */
#include "python/tensor/pyrules.h"

#include "python/stack/pycode.h"

/* ---- the exception of a rule ---- */

typedef struct {
    PyObject *type, *value, *trace;
} exception;

static __thread exception stashed;

static void stash_exception(void)
{
    exception former = stashed;
    PyErr_Fetch(&stashed.type, &stashed.value, &stashed.trace);
    Py_XDECREF(former.type);
    Py_XDECREF(former.value);
    Py_XDECREF(former.trace);
}

static PyObject *raise_stashed(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    exception found = stashed;
    if (found.type == NULL)
        Py_RETURN_NONE;
    stashed = (exception){NULL, NULL, NULL};
    PyErr_Restore(found.type, found.value, found.trace);
    return NULL;
}

/* ---- running a rule ---- */

/* What a record has as its params. */
typedef struct {
    PyObject *call; /* owned; called with the gradient and what was saved, it returns the gradients of the inputs */
    uint64_t saves;
} call_params;

/* A tensor in no scope over what a pass has, which it must not write to; NULL with an exception. */
static PyObject *borrowed_tensor(const tlm_tensor *tensor)
{
    PyObject *made = tlmi_tape_named(tensor);
    if (made != NULL)
        ((tlmi_reference *)made)->readonly = 1;
    return made;
}

static PyObject *saved_tensors(const tlm_pass *pass)
{
    const call_params *params = tlm_pass_params(pass);
    PyObject *all = PyTuple_New((Py_ssize_t)params->saves);
    for (uint32_t i = 0; all != NULL && i < params->saves; i++) {
        PyObject *tensor = borrowed_tensor(tlm_pass_saved(pass, i));
        if (tensor == NULL)
            Py_CLEAR(all);
        else
            PyTuple_SET_ITEM(all, i, tensor);
    }
    return all;
}

/* The gradients that the rule returned, in the order of the inputs; each is a tensor or None. */
static tlm_status give_gradients(tlm_pass *pass, PyObject *given)
{
    for (uint32_t i = 0; i < tlm_pass_inputs(pass); i++) {
        PyObject *gradient = PyList_GET_ITEM(given, i);
        if (gradient == Py_None || !tlm_pass_wants(pass, i))
            continue;
        const tlm_tensor *tensor = tlmi_tensor_described((tlmi_reference *)gradient);
        tlm_status status = tensor != NULL ? tlm_pass_share(pass, i, tensor) : TLM_UNSUPPORTED;
        if (status != TLM_OK)
            return status;
    }
    return TLM_OK;
}

static tlm_status call_rule(tlm_pass *pass)
{
    PyObject *call = ((const call_params *)tlm_pass_params(pass))->call;
    PyObject *gradient = borrowed_tensor(tlm_pass_grad(pass));
    PyObject *saved = gradient != NULL ? saved_tensors(pass) : NULL;
    PyObject *given = saved != NULL ? PyObject_CallFunctionObjArgs(call, gradient, saved, NULL) : NULL;
    Py_XDECREF(saved);
    Py_XDECREF(gradient);
    tlm_status status = TLM_RULE_FAILED;
    if (given != NULL && PyList_CheckExact(given) && PyList_GET_SIZE(given) == (Py_ssize_t)tlm_pass_inputs(pass))
        status = give_gradients(pass, given);
    if (PyErr_Occurred())
        stash_exception();
    Py_XDECREF(given);
    return status;
}

static tlm_status run_in_scope(tlm_pass *pass)
{
    if (tlm_scope_current() == 0)
        return call_rule(pass);
    uint64_t scope;
    tlm_status status = tlm_scope_enter((tlm_label)(uintptr_t)tlm_pass_context(pass), &scope);
    if (status != TLM_OK)
        return status;
    status = call_rule(pass);
    tlm_status left = tlm_scope_exit(scope, NULL);
    return status != TLM_OK ? status : left;
}

static tlm_status run_rule(tlm_pass *pass)
{
    PyGILState_STATE state = PyGILState_Ensure();
    int mode = tlm_grad_mode(0);
    tlm_status status = run_in_scope(pass);
    tlm_grad_mode(mode);
    PyGILState_Release(state);
    return status;
}

static void forget_call(void *context, void *params)
{
    (void)context;
    tlm_python_drop_reference(((call_params *)params)->call);
}

/* define_op(name): the number of an op whose calls are Python objects. */
static PyObject *define_op(PyObject *self, PyObject *given)
{
    (void)self;
    uint32_t number = 0;
    tlm_op op = {.name = PyUnicode_AsUTF8(given), .rule = run_rule, .forget = forget_call};
    if (op.name == NULL)
        return NULL;
    op.context = (void *)(uintptr_t)tlm_label_of(op.name);
    tlm_status status = tlm_op_define(&op, &number);
    if (status != TLM_OK)
        return tlmi_ops_raise((int)status, "define an op", 0, NULL, "");
    return PyLong_FromUnsignedLong(number);
}

/* ---- recording a call ---- */

enum { MOST_INPUTS = 32, MOST_SAVES = 64 };

typedef struct {
    uint32_t inputs, save_count;
    tlmi_reference *references[MOST_INPUTS];
    uint8_t needs[MOST_INPUTS];
    tlm_slot slots[MOST_INPUTS];
    tlm_save saves[MOST_SAVES];
} call_parts;

static bool is_tuple_of_tensors(PyObject *given, Py_ssize_t most)
{
    bool fits = PyTuple_Check(given) && PyTuple_GET_SIZE(given) <= most;
    for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(given); i++)
        fits = tlmi_ops_is_tensor(PyTuple_GET_ITEM(given, i));
    if (!fits && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "an op of the program takes up to %d tensors and saves up to %d; stack them",
                     MOST_INPUTS, MOST_SAVES);
    return fits;
}

static void read_inputs(PyObject *inputs, call_parts *parts)
{
    parts->inputs = (uint32_t)PyTuple_GET_SIZE(inputs);
    for (uint32_t i = 0; i < parts->inputs; i++) {
        parts->references[i] = (tlmi_reference *)PyTuple_GET_ITEM(inputs, i);
        parts->needs[i] = parts->references[i]->slot != 0 || parts->references[i]->requires_grad;
    }
}

/* false: one has more axes than a record can describe. */
static bool read_saves(PyObject *whats, PyObject *saved, call_parts *parts)
{
    parts->save_count = (uint32_t)PyTuple_GET_SIZE(saved);
    for (uint32_t i = 0; i < parts->save_count; i++) {
        const tlm_tensor *tensor = tlmi_tensor_described((tlmi_reference *)PyTuple_GET_ITEM(saved, i));
        if (tensor == NULL)
            return false;
        int32_t what = (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(whats, i));
        parts->saves[i] = (tlm_save){.what = what, .tensor = *tensor};
    }
    return true;
}

static tlm_status put_on_tape(tlm_tape *tape, uint32_t op, PyObject *call, call_parts *parts, tlmi_reference *result)
{
    tlm_slot slot = 0;
    int instruction = 0;
    call_params params = {call, parts->save_count};
    PyCodeObject *code = tlmi_place_here(&instruction);
    tlm_record record = {
        .op = op,
        .inputs = parts->inputs,
        .slots = parts->slots,
        .saves = parts->saves,
        .save_count = parts->save_count,
        .params = &params,
        .params_bytes = sizeof params,
        .output = tlmi_tensor_described(result),
        .place = {code, instruction},
    };
    tlm_status status = TLM_UNSUPPORTED;
    Py_INCREF(call);
    if (record.output != NULL)
        status = tlmi_tape_record_for(tape, &record, parts->references, parts->needs, parts->slots, &slot);
    if (status != TLM_OK || slot == 0) {
        Py_XDECREF(code);
        Py_DECREF(call);
    }
    result->slot = status == TLM_OK ? slot : result->slot;
    return status;
}

/* rule_record(op, call, inputs, whats, saved, result): the status of putting it on the tape in force. The result is a tensor
 * without a slot. */
static PyObject *rule_record(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    call_parts parts;
    unsigned long op = count == 6 ? PyLong_AsUnsignedLong(given[0]) : 0;
    if (op == 0 || !is_tuple_of_tensors(given[2], MOST_INPUTS) || !is_tuple_of_tensors(given[4], MOST_SAVES))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected an op, a call, 3 tuples, a result");
    if (!PyTuple_Check(given[3]) || PyTuple_GET_SIZE(given[3]) != PyTuple_GET_SIZE(given[4]) ||
        !tlmi_ops_is_tensor(given[5]) || ((tlmi_reference *)given[5])->slot != 0)
        return PyErr_Format(PyExc_TypeError, "expected a number for each that is saved, and a fresh result");
    tlm_tape *tape = tlmi_tape_in_force();
    if (tape == NULL)
        return NULL;
    read_inputs(given[2], &parts);
    tlm_status status = TLM_UNSUPPORTED;
    if (read_saves(given[3], given[4], &parts))
        status = put_on_tape(tape, (uint32_t)op, given[1], &parts, (tlmi_reference *)given[5]);
    return PyErr_Occurred() ? NULL : PyLong_FromLong((long)status);
}

/* ---- what a function reads that will run again ---- */

__thread int tlmi_watching;

/* A leaf that is read gets its slot now: made in the middle of a pass it would count as that pass's own. Without memory the
 * record that reads it makes it later. */
void tlmi_watch_need(tlmi_reference *tensor)
{
    tlmi_watching = TLMI_READ_WHAT_NEEDS;
    const tlm_tensor *described = tlmi_tensor_described(tensor);
    if (!tensor->requires_grad || tlm_slot_alive(tensor->slot) || described == NULL)
        return;
    tlm_slot former = tensor->slot;
    tlm_tape *tape = tlmi_tape_in_force();
    if (tape == NULL)
        PyErr_Clear();
    else if (tlm_tape_leaf(tape, described, &tensor->slot) == TLM_OK)
        tlm_slot_release(former);
    else
        tensor->slot = former;
}

/* watch_begin(): what this thread reads is watched; what to give watch_end. */
static PyObject *watch_begin(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    PyObject *former = PyLong_FromLong(tlmi_watching);
    if (former != NULL)
        tlmi_watching = TLMI_WATCHING;
    return former;
}

/* watch_end(former): whether something was read since that needs a gradient; whoever watched before learns of it too. */
static PyObject *watch_end(PyObject *self, PyObject *former)
{
    (void)self;
    bool read = tlmi_watching == TLMI_READ_WHAT_NEEDS;
    long before = PyLong_AsLong(former);
    if (before == -1 && PyErr_Occurred())
        return NULL;
    tlmi_watching = before != TLMI_NOT_WATCHING && read ? TLMI_READ_WHAT_NEEDS : (int)before;
    return PyBool_FromLong(read);
}

/* ---- computing again ---- */

int tlmi_recompute_blocks;
static PyObject *recompute_rows; /* a context variable: bytes, one for each row of ops; 1: computed again */

bool tlmi_recompute_asked(int row)
{
    PyObject *rows = NULL;
    if (PyContextVar_Get(recompute_rows, NULL, &rows) < 0)
        PyErr_Clear();
    bool asked = rows != NULL && PyBytes_Check(rows) && row < PyBytes_GET_SIZE(rows) && PyBytes_AS_STRING(rows)[row];
    Py_XDECREF(rows);
    return asked;
}

/* recompute_count(variable, change): blocks are entered (1) or left (-1); the variable says which ops are meant. */
static PyObject *recompute_count(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    long change = count == 2 ? PyLong_AsLong(given[1]) : 0;
    if (count != 2 || !PyContextVar_CheckExact(given[0]))
        return PyErr_Format(PyExc_TypeError, "expected a context variable and a number");
    Py_INCREF(given[0]);
    Py_XSETREF(recompute_rows, given[0]);
    tlmi_recompute_blocks += (int)change;
    Py_RETURN_NONE;
}

/* rows(): what Python knows of each op: its name, whether its output can be computed again, its kind, its rule of dtypes, and
 * names in NumPy, in the module operator and as a method. */
static PyObject *list_rows(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    PyObject *list = PyList_New(0);
    const ops_row *row;
    for (int i = 0; list != NULL && (row = ops_row_at(i)) != NULL; i++) {
        PyObject *facts = Py_BuildValue("(sOiizzz)", row->name, row->replays ? Py_True : Py_False, (int)row->kind,
                                        (int)row->dtype, row->numpy, row->python_operator, row->method);
        if (facts == NULL || PyList_Append(list, facts) < 0)
            Py_CLEAR(list);
        Py_XDECREF(facts);
    }
    return list;
}

#define FAST(function) (PyCFunction)(void (*)(void))(function)
PyMethodDef tlmi_rules_methods[] = {
    {"raise_stashed", raise_stashed, METH_NOARGS, "Raises what the last rule of this thread ended with, if it did."},
    {"define_op", define_op, METH_O, "define_op(name): the number of an op whose calls are Python objects."},
    {"rule_record", FAST(rule_record), METH_FASTCALL,
     "rule_record(op, call, inputs, whats, saved, result): the status of recording a call of the program's op."},
    {"watch_begin", watch_begin, METH_NOARGS, "watch_begin(): watches what this thread reads; for watch_end."},
    {"watch_end", watch_end, METH_O, "watch_end(former): whether something was read that needs a gradient."},
    {"recompute_count", FAST(recompute_count), METH_FASTCALL, "recompute_count(variable, change): see recomputing.py."},
    {"rows", list_rows, METH_NOARGS, "(name, can be computed again, kind, dtype, numpy, operator, method) of each op."},
    {NULL, NULL, 0, NULL},
};
