/* SPDX-License-Identifier: MIT
 * pyops.c: from Python operands to an op and back: the fast path of every differentiable function.
 *
 * An operand is a tensor or a number; numbers become tensors without memory, of the dtype that the tensors have. The result
 * is a tensor of Python in the scope in force, and a record on the tape when an operand needs a gradient. What is not for
 * the ops gives NotImplemented, and Python computes it with NumPy. All under the GIL, which is let go of around the
 * arithmetic when other threads exist and the work is long; the operands are pinned then.
 */
#include "pyops.h"

#include "pyrules.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

tlmi_python_side tlmi_side;

enum { FEW_INPUTS = 6 };
enum { LONG_WORK_BYTES = 64 << 10 }; /* from here on the GIL is worth letting go of */

/* The operands of one call. */
typedef struct {
    uint32_t count;
    bool other_threads;
    tlmi_reference **references; /* NULL: a number */
    tlm_tensor *tensors;
    uint8_t *needs;
    tlm_object *pins;
    tlmi_reference *few_references[FEW_INPUTS];
    tlm_tensor few_tensors[FEW_INPUTS];
    uint8_t few_needs[FEW_INPUTS];
    tlm_object few_pins[FEW_INPUTS];
    void *block; /* of all four when there are many */
} operands;

bool tlmi_ops_is_tensor(PyObject *object)
{
    PyTypeObject *known = tlmi_side.tensor_class;
    return known != NULL && (Py_TYPE(object) == known || PyType_IsSubtype(Py_TYPE(object), known));
}

PyObject *tlmi_ops_raise(int status, const char *what, uint32_t count, PyObject *const *given, const char *message)
{
    PyObject *list = PyTuple_New(count);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        Py_INCREF(given[i]);
        PyTuple_SET_ITEM(list, i, given[i]);
    }
    if (list == NULL)
        return NULL;
    PyObject *result = PyObject_CallFunction(tlmi_side.failed, "isNs", status, what, list, message);
    if (result != NULL) {
        Py_DECREF(result);
        PyErr_Format(PyExc_RuntimeError, "cannot compute %s: status %d", what, status);
    }
    return NULL;
}

/* ---- operands ---- */

static bool make_room(operands *all, uint32_t count)
{
    all->count = count;
    all->block = NULL;
    all->references = all->few_references;
    all->tensors = all->few_tensors;
    all->needs = all->few_needs;
    all->pins = all->few_pins;
    if (tlmi_likely(count <= FEW_INPUTS))
        return true;
    size_t each = sizeof(tlm_tensor) + sizeof(tlmi_reference *) + sizeof(tlm_object) + 1;
    char *block = all->block = PyMem_Malloc(count * each);
    if (block == NULL) {
        PyErr_NoMemory();
        return false;
    }
    all->tensors = (tlm_tensor *)block;
    all->references = (tlmi_reference **)(all->tensors + count);
    all->pins = (tlm_object *)(all->references + count);
    all->needs = (uint8_t *)(all->pins + count);
    return true;
}

/* A number as Python's arithmetic means it; false: none that a dtype with fractions has. */
static bool number_of(PyObject *object, uint8_t dtype, double *out)
{
    if (PyFloat_CheckExact(object))
        *out = PyFloat_AS_DOUBLE(object);
    else if (PyLong_Check(object) || PyFloat_Check(object))
        *out = PyFloat_AsDouble(object);
    else if (tlmi_side.number_class != NULL && PyObject_TypeCheck(object, tlmi_side.number_class)) {
        PyObject *plain = PyObject_CallMethod(object, "item", NULL);
        bool is_number = plain != NULL && (PyLong_Check(plain) || PyFloat_Check(plain));
        *out = is_number ? PyFloat_AsDouble(plain) : 0;
        Py_XDECREF(plain);
        if (!is_number) {
            PyErr_Clear();
            return false;
        }
    } else
        return false;
    if (*out == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return dtype == TLM_FLOAT64 || !isfinite(*out) || fabs(*out) <= FLT_MAX;
}

enum { NOT_FOR_OPS = -1, RAISED = -2 };

/* The operands that are tensors: alive, on one device. The dtype of the first with fractions, 0: none; or one of above. */
static int read_tensors(operands *all, int row, PyObject *const *given, uint32_t *device)
{
    int dtype = 0;
    const tlm_tensor *first = NULL;
    for (uint32_t i = 0; i < all->count; i++) {
        all->references[i] = NULL;
        if (!tlmi_ops_is_tensor(given[i]))
            continue;
        tlmi_reference *reference = all->references[i] = (tlmi_reference *)given[i];
        tlm_status status = tlmi_reference_check(reference);
        if (tlmi_unlikely(status != TLM_OK)) {
            tlmi_ops_raise((int)status, ops_row_at(row)->name, 1, given + i, "");
            return RAISED;
        }
        const tlm_tensor *tensor = tlmi_tensor_described(reference);
        if (tensor == NULL)
            return NOT_FOR_OPS;
        if (first == NULL) {
            first = tensor;
            *device = tensor->device;
        } else if (first->device != tensor->device)
            return NOT_FOR_OPS;
        if (dtype == 0 && (tensor->dtype == TLM_FLOAT32 || tensor->dtype == TLM_FLOAT64))
            dtype = tensor->dtype;
        all->tensors[i] = *tensor;
    }
    return first != NULL ? dtype : NOT_FOR_OPS;
}

static bool read_numbers(operands *all, PyObject *const *given, int dtype, uint32_t device)
{
    for (uint32_t i = 0; i < all->count; i++) {
        double value;
        if (all->references[i] != NULL)
            continue;
        if (dtype == 0 || !number_of(given[i], (uint8_t)dtype, &value))
            return false;
        ops_constant(value, (uint8_t)dtype, 0, NULL, &all->tensors[i]);
        all->tensors[i].device = device;
    }
    return true;
}

/* Which want a gradient; whether any does. */
static bool find_needs(operands *all)
{
    bool any = false;
    if (!tlm_grad_mode_current()) {
        for (uint32_t i = 0; tlmi_unlikely(tlmi_watching) && i < all->count; i++)
            if (all->references[i] != NULL && (all->references[i]->slot != 0 || all->references[i]->requires_grad))
                tlmi_watch_need(all->references[i]);
        return false;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        const tlmi_reference *reference = all->references[i];
        all->needs[i] = reference != NULL && (reference->slot != 0 || reference->requires_grad);
        any |= all->needs[i];
    }
    return any;
}

/* ---- the arithmetic ---- */

static inline void clear_flags(void)
{
#if defined(__SSE2__)
    unsigned now = _mm_getcsr();
    if (now & 0x3f)
        _mm_setcsr(now & ~0x3fu);
#else
    feclearexcept(FE_ALL_EXCEPT);
#endif
}

/* 1 invalid, 4 division by zero, 8 overflow, 16 underflow. */
static inline unsigned raised_flags(void)
{
#if defined(__SSE2__)
    return _mm_getcsr() & 0x1d;
#else
    int raised = fetestexcept(FE_ALL_EXCEPT);
    return (raised & FE_INVALID ? 1u : 0) | (raised & FE_DIVBYZERO ? 4u : 0) | (raised & FE_OVERFLOW ? 8u : 0) |
           (raised & FE_UNDERFLOW ? 16u : 0);
#endif
}

static bool is_long_work(const operands *all)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->references[i] != NULL)
            bytes += ops_elements(&all->tensors[i]) * ops_item_bytes(all->tensors[i].dtype);
    return bytes >= LONG_WORK_BYTES;
}

static tlm_status forward_beside_threads(int row, ops_call *call, operands *all, unsigned *flags)
{
    for (uint32_t i = 0; i < all->count; i++) {
        all->pins[i] = 0;
        if (all->references[i] != NULL)
            (void)tlm_pin(all->tensors[i].object, &all->pins[i]);
    }
    PyThreadState *state = is_long_work(all) ? PyEval_SaveThread() : NULL;
    clear_flags();
    tlm_status status = ops_forward(row, call);
    *flags = raised_flags();
    if (state != NULL)
        PyEval_RestoreThread(state);
    for (uint32_t i = 0; i < all->count; i++)
        tlm_unpin(all->pins[i]);
    return status;
}

static tlm_status forward(int row, ops_call *call, operands *all, unsigned *flags)
{
    if (tlmi_unlikely(tlmi_other_threads()))
        return forward_beside_threads(row, call, all, flags);
    clear_flags();
    tlm_status status = ops_forward(row, call);
    *flags = raised_flags();
    return status;
}

/* ---- the result ---- */

/* The input whose memory a view shows. */
static tlmi_reference *base_of(const ops_call *call, const operands *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->references[i] != NULL && all->tensors[i].object == call->out.object)
            return all->references[i];
    return NULL;
}

/* A shape that an input has already as a tuple is not made again. */
static void share_shape(tlmi_reference *made, const tlmi_reference *other)
{
    if (other == NULL || other->shape == NULL || other->tensor.axes != made->tensor.axes ||
        memcmp(other->tensor.shape, made->tensor.shape, made->tensor.axes * sizeof(int64_t)) != 0)
        return;
    Py_INCREF(other->shape);
    made->shape = other->shape;
}

static void drop_saves(const ops_call *call)
{
    for (uint32_t i = 0; i < call->save_count; i++)
        if (call->saves[i].owned)
            ops_drop(&call->saves[i].tensor);
}

static void drop_result(const ops_call *call)
{
    drop_saves(call);
    if (!call->out_is_view)
        ops_drop(&call->out);
}

/* A view that is not recorded holds the memory that it looks into, but not the tensor when that is the result of a record:
 * its slot would keep what it was computed from for as long as the view lives. */
static void forget_graph(tlmi_reference *made)
{
    const tlmi_reference *owner = (const tlmi_reference *)made->owner;
    if (owner != NULL && PyObject_TypeCheck(made->owner, tlmi_side.tensor_class) && owner->slot != 0 &&
        !owner->requires_grad)
        Py_CLEAR(made->owner);
}

static PyObject *finish(int row, ops_call *call, const operands *all, PyObject *const *given, uint64_t scope)
{
    tlmi_reference *made = tlmi_ops_tensor(&call->out, call->out_is_view ? base_of(call, all) : NULL, scope);
    if (made == NULL) {
        drop_saves(call);
        return NULL;
    }
    share_shape(made, all->references[0]);
    if (!call->records) {
        forget_graph(made);
        return (PyObject *)made;
    }
    tlm_status status = tlmi_tape_keep(row, call, all->references, made);
    if (tlmi_likely(status == TLM_OK))
        return (PyObject *)made;
    drop_saves(call);
    tlm_free(made->object);
    Py_DECREF(made);
    return PyErr_Occurred() ? NULL : tlmi_ops_raise(status, ops_row_at(row)->name, all->count, given, "");
}

static PyObject *not_here(unsigned how, int status, int row, uint32_t count, PyObject *const *given,
                          const char *message)
{
    if (!(how & TLMI_STRICTLY))
        Py_RETURN_NOTIMPLEMENTED;
    return tlmi_ops_raise(status, row < 0 ? "this" : ops_row_at(row)->name, count, given, message);
}

static PyObject *compute(int row, operands *all, PyObject *const *given, ops_call *call, unsigned how)
{
    unsigned flags = 0;
    uint32_t device = 0;
    int dtype = read_tensors(all, row, given, &device);
    if (dtype == RAISED)
        return NULL;
    if (dtype < 0 || !read_numbers(all, given, dtype, device))
        return not_here(how, OPS_NOT_HERE, row, all->count, given, "");
    if (tlmi_ops_settle() < 0)
        return NULL;
    call->inputs = all->count;
    call->in = all->tensors;
    call->records = find_needs(all);
    call->needs = call->records ? all->needs : NULL;
    call->out.object = 0;
    call->out_is_view = false;
    call->save_count = 0;
    call->message[0] = 0;
    tlm_status status = forward(row, call, all, &flags);
    if (tlmi_unlikely(status != TLM_OK)) {
        if ((int)status >= OPS_NOT_HERE)
            return not_here(how, (int)status, row, all->count, given, call->message);
        return tlmi_ops_raise((int)status, ops_row_at(row)->name, all->count, given, call->message);
    }
    if (tlmi_unlikely(flags != 0)) {
        PyObject *said = PyObject_CallFunction(tlmi_side.float_error, "sI", ops_row_at(row)->name, flags);
        Py_XDECREF(said);
        if (said == NULL) {
            drop_result(call);
            return NULL;
        }
    }
    return finish(row, call, all, given, how & TLMI_IN_NO_SCOPE ? TLMI_NO_SCOPE : TLMI_INNERMOST_SCOPE);
}

PyObject *tlmi_ops_apply(int row, uint32_t count, PyObject *const *given, ops_call *call, unsigned how)
{
    operands all;
    if (row < 0)
        return not_here(how, OPS_NOT_HERE, row, count, given, "");
    if (!make_room(&all, count))
        return NULL;
    PyObject *result = compute(row, &all, given, call, how);
    if (all.block != NULL)
        PyMem_Free(all.block);
    return result;
}

/* ---- what Python calls ---- */

/* One parameter, or a tuple of them. false: an exception. */
static bool add_param(ops_params *params, uint32_t *fractions, PyObject *given)
{
    if (PyFloat_Check(given)) {
        if (*fractions < OPS_MOST_FRACTIONS) {
            params->x[(*fractions)++] = PyFloat_AS_DOUBLE(given);
            return true;
        }
    } else if (PyTuple_Check(given)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); i++)
            if (!add_param(params, fractions, PyTuple_GET_ITEM(given, i)))
                return false;
        return true;
    } else if (params->count < OPS_MOST_NUMBERS) {
        int64_t number = PyLong_AsLongLong(given);
        params->n[params->count++] = number;
        return number != -1 || !PyErr_Occurred();
    }
    PyErr_SetString(PyExc_ValueError, "more parameters than an operation can have");
    return false;
}

static PyObject *apply(PyObject *const *given, Py_ssize_t count, unsigned how)
{
    ops_call call;
    uint32_t fractions = 0;
    long row = count >= 2 ? PyLong_AsLong(given[0]) : -1, inputs = count >= 2 ? PyLong_AsLong(given[1]) : -1;
    if (inputs < 1 || inputs > count - 2)
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_TypeError, "expected a row, a count and that many operands");
    call.params.count = 0;
    memset(call.params.x, 0, sizeof call.params.x);
    for (Py_ssize_t i = inputs + 2; i < count; i++)
        if (!add_param(&call.params, &fractions, given[i]))
            return NULL;
    return tlmi_ops_apply((int)row, (uint32_t)inputs, given + 2, &call, how);
}

static PyObject *apply_if_here(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    return apply(given, count, 0);
}

static PyObject *apply_strictly(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    return apply(given, count, TLMI_STRICTLY);
}

static PyObject *apply_apart(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    return apply(given, count, TLMI_STRICTLY | TLMI_IN_NO_SCOPE);
}

static PyObject *row_named(PyObject *self, PyObject *name)
{
    (void)self;
    const char *text = PyUnicode_AsUTF8(name);
    return text != NULL ? PyLong_FromLong(ops_row_named(text)) : NULL;
}

static PyObject *connect(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    if (count != 6 || !PyType_Check(given[0]) || !PyType_Check(given[1]) || !PyDict_Check(given[2]))
        return PyErr_Format(PyExc_TypeError, "expected two classes, a dict and three functions");
    for (Py_ssize_t i = 0; i < count; i++)
        Py_INCREF(given[i]);
    tlmi_side =
        (tlmi_python_side){(PyTypeObject *)given[0], (PyTypeObject *)given[1], given[2], given[3], given[4], given[5]};
    Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void))(function)
static PyMethodDef methods[] = {
    {"apply", FAST(apply_if_here), METH_FASTCALL,
     "apply(row, n, *operands, *params): the result of an op, recorded; NotImplemented: not for the ops."},
    {"apply_strictly", FAST(apply_strictly), METH_FASTCALL, "Likewise; raises what is wrong instead."},
    {"apply_apart", FAST(apply_apart), METH_FASTCALL,
     "Likewise; the result belongs to its handle, for the inside of a function."},
    {"part", FAST(tlmi_slices_part), METH_FASTCALL,
     "part(tensor, index): the view that an index gives; NotImplemented: not for the ops."},
    {"row", row_named, METH_O, "row(name): number of an op; -1: none."},
    {"connect", FAST(connect), METH_FASTCALL,
     "connect(Tensor, numpy.generic, threads, settle, failed, float_error): what C calls."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tlmem._native.engine", "Ops and the tape.", -1, methods, NULL, NULL, NULL, NULL};

PyObject *tlmi_ops_module(void)
{
    PyObject *module = PyModule_Create(&definition);
    bool fine = module != NULL && PyModule_AddFunctions(module, tlmi_tape_methods) == 0 &&
                PyModule_AddFunctions(module, tlmi_operators_methods) == 0 &&
                PyModule_AddFunctions(module, tlmi_rules_methods) == 0 &&
                PyModule_AddFunctions(module, tlmi_optim_methods) == 0 && tlmi_tape_init() == 0;
    if (!fine)
        Py_CLEAR(module);
    return module;
}
