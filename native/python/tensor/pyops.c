/* SPDX-License-Identifier: MIT
 * pyops.c: from Python operands to an op and back: the fast path of every differentiable function.
 *
 * An operand is a tensor or a number; numbers become tensors without memory, of the dtype that the tensors have. The result
 * is a tensor of Python in the scope in force, and a record on the tape when an operand needs a gradient. What is not for
 * the ops gives NotImplemented, and Python computes it with NumPy. A result can also go into a tensor that there is.
 * All under the GIL, which is let go of around the arithmetic when other threads exist and the work is long; the operands are
 * pinned then.
 */
#include "python/tensor/pyops.h"

#include "python/tensor/pyrules.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

tlmi_python_side tlmi_side;

enum { LONG_WORK_BYTES = 64 << 10 }; /* from here on the GIL is worth letting go of */

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

/* ---- operands: tensors, and numbers, which become tensors without memory, of the dtype that the tensors have ---- */

enum { FEW_INPUTS = 6 };

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
} operand_list;

enum { TLMI_NOT_FOR_OPS = -1, TLMI_RAISED = -2 };

static inline void operands_end(operand_list *all)
{
    if (all->block != NULL)
        PyMem_Free(all->block);
}

/* Room for so many; false: an exception. Given back with operands_end. */
static bool operands_begin(operand_list *all, uint32_t count)
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

/* The operands that are tensors: alive, on one device. The dtype of the first with fractions, 0: none; or one of above. */
static int read_tensors(operand_list *all, int row, PyObject *const *given, uint32_t *device)
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
            return TLMI_RAISED;
        }
        const tlm_tensor *tensor = tlmi_tensor_described(reference);
        if (tensor == NULL)
            return TLMI_NOT_FOR_OPS;
        if (first == NULL) {
            first = tensor;
            *device = tensor->device;
        } else if (first->device != tensor->device)
            return TLMI_NOT_FOR_OPS;
        if (dtype == 0 && (tensor->dtype == TLM_FLOAT32 || tensor->dtype == TLM_FLOAT64))
            dtype = tensor->dtype;
        all->tensors[i] = *tensor;
    }
    return first != NULL ? dtype : TLMI_NOT_FOR_OPS;
}

static bool read_numbers(operand_list *all, PyObject *const *given, int dtype, uint32_t device)
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

/* Fills in the tensors, alive and on one device, and the numbers in their dtype. 0, or one of above. */
static int operands_read(operand_list *all, int row, PyObject *const *given)
{
    uint32_t device = 0;
    int dtype = read_tensors(all, row, given, &device);
    if (dtype < 0)
        return dtype;
    return read_numbers(all, given, dtype, device) ? 0 : TLMI_NOT_FOR_OPS;
}

/* Which want a gradient; whether any does. */
static bool operands_need(operand_list *all)
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

static bool is_long_work(const operand_list *all)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->references[i] != NULL)
            bytes += ops_elements(&all->tensors[i]) * ops_item_bytes(all->tensors[i].dtype);
    return bytes >= LONG_WORK_BYTES;
}

static inline tlm_status run(int row, ops_call *call, const tlm_tensor *into, unsigned *flags)
{
    clear_flags();
    tlm_status status = into == NULL ? ops_forward(row, call) : ops_forward_into(row, call, into);
    *flags = raised_flags();
    return status;
}

static tlm_status forward_beside_threads(int row, ops_call *call, operand_list *all, const tlm_tensor *into,
                                         unsigned *flags)
{
    tlm_object pinned = 0;
    if (into != NULL)
        (void)tlm_pin(into->object, &pinned);
    for (uint32_t i = 0; i < all->count; i++) {
        all->pins[i] = 0;
        if (all->references[i] != NULL)
            (void)tlm_pin(all->tensors[i].object, &all->pins[i]);
    }
    PyThreadState *state = is_long_work(all) ? PyEval_SaveThread() : NULL;
    tlm_status status = run(row, call, into, flags);
    if (state != NULL)
        PyEval_RestoreThread(state);
    for (uint32_t i = 0; i < all->count; i++)
        tlm_unpin(all->pins[i]);
    tlm_unpin(pinned);
    return status;
}

/* `into`: where the result is to be; NULL: in memory of its own. */
static tlm_status forward(int row, ops_call *call, operand_list *all, const tlm_tensor *into, unsigned *flags)
{
    call->inputs = all->count;
    call->in = all->tensors;
    call->needs = call->records ? all->needs : NULL;
    call->out.object = 0;
    return tlmi_unlikely(tlmi_other_threads()) ? forward_beside_threads(row, call, all, into, flags)
                                               : run(row, call, into, flags);
}

/* ---- the result ---- */

/* The input whose memory a view shows. */
static tlmi_reference *base_of(const ops_call *call, const operand_list *all)
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

static PyObject *finish(int row, ops_call *call, const operand_list *all, PyObject *const *given, uint64_t scope)
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

/* Reads the operands, and finds whether the result is to be recorded. Py_None: it may be computed; else what is to be
 * returned. */
static PyObject *begin(int row, operand_list *all, PyObject *const *given, ops_call *call, unsigned how)
{
    int found = operands_read(all, row, given);
    if (found == TLMI_RAISED)
        return NULL;
    if (found == TLMI_NOT_FOR_OPS)
        return not_here(how, OPS_NOT_HERE, row, all->count, given, "");
    if (tlmi_ops_settle() < 0)
        return NULL;
    int mode = how & TLMI_UNRECORDED ? tlm_grad_mode(0) : 0;
    call->records = operands_need(all);
    if (how & TLMI_UNRECORDED)
        tlm_grad_mode(mode);
    return Py_None;
}

static PyObject *refuse(int row, int status, const operand_list *all, PyObject *const *given, const ops_call *call,
                        unsigned how)
{
    if (status >= OPS_NOT_HERE)
        return not_here(how, status, row, all->count, given, call->message);
    return tlmi_ops_raise(status, ops_row_at(row)->name, all->count, given, call->message);
}

/* Warns of what was divided by zero and the like; false: an exception, since numpy.errstate asks for it. */
static inline bool allows(int row, unsigned flags)
{
    if (tlmi_likely(flags == 0))
        return true;
    PyObject *said = PyObject_CallFunction(tlmi_side.float_error, "sI", ops_row_at(row)->name, flags);
    Py_XDECREF(said);
    return said != NULL;
}

static PyObject *compute(int row, operand_list *all, PyObject *const *given, ops_call *call, unsigned how)
{
    unsigned flags = 0;
    PyObject *other = begin(row, all, given, call, how);
    if (tlmi_unlikely(other != Py_None))
        return other;
    tlm_status status = forward(row, call, all, NULL, &flags);
    if (tlmi_unlikely(status != TLM_OK))
        return refuse(row, (int)status, all, given, call, how);
    if (!allows(row, flags)) {
        drop_result(call);
        return NULL;
    }
    if (how & TLMI_SEEN && call->out_is_view)
        return (PyObject *)tlmi_ops_name_seen(&call->out, base_of(call, all));
    return finish(row, call, all, given, how & TLMI_IN_NO_SCOPE ? TLMI_NO_SCOPE : TLMI_INNERMOST_SCOPE);
}

PyObject *tlmi_ops_apply(int row, uint32_t count, PyObject *const *given, ops_call *call, unsigned how)
{
    operand_list all;
    if (row < 0)
        return not_here(how, OPS_NOT_HERE, row, count, given, "");
    if (!operands_begin(&all, count))
        return NULL;
    PyObject *result = compute(row, &all, given, call, how);
    operands_end(&all);
    return result;
}

/* ---- into a destination ---- */

/* Where a result may be written; NULL: not there. With an exception: it is freed. */
static const tlm_tensor *destination(PyObject *out)
{
    tlmi_reference *tensor = (tlmi_reference *)out;
    if (!tlmi_ops_is_tensor(out) || tensor->readonly)
        return NULL;
    tlm_status status = tlmi_reference_check(tensor);
    if (tlmi_likely(status == TLM_OK))
        return tlmi_tensor_described(tensor);
    tlmi_ops_raise((int)status, "write to", 1, &out, "");
    return NULL;
}

/* What a tape saved hears of the write only when it happens: the result is computed beside it first. */
static tlm_status forward_with_care(int row, ops_call *call, operand_list *all, const tlmi_reference *out,
                                    const tlm_tensor *into, unsigned *flags)
{
    tlm_holder holder;
    tlm_status status = forward(row, call, all, NULL, flags);
    if (status != TLM_OK)
        return status;
    bool fits = ops_same_shape(&call->out, into) && call->out.dtype == into->dtype && call->out.device == into->device;
    if (fits && tlmi_tape_about_to_write(out, &holder) == TLMI_WRITABLE)
        return ops_move_out(call, into);
    drop_result(call);
    return (tlm_status)OPS_WRONG_OUT;
}

static PyObject *compute_into(int row, operand_list *all, PyObject *const *given, ops_call *call, unsigned how,
                              tlmi_reference *out)
{
    unsigned flags = 0;
    PyObject *other = begin(row, all, given, call, how);
    if (tlmi_unlikely(other != Py_None))
        return other;
    const tlm_tensor *into = call->records ? NULL : destination((PyObject *)out);
    tlm_holder holder;
    tlm_status status = (tlm_status)OPS_WRONG_OUT;
    if (into == NULL && PyErr_Occurred())
        return NULL;
    call->message[0] = 0;
    if (into != NULL && tlmi_unlikely(tlm_object_saved(into->object, &holder)))
        status = forward_with_care(row, call, all, out, into, &flags);
    else if (into != NULL && tlmi_tape_about_to_write(out, &holder) == TLMI_WRITABLE)
        status = forward(row, call, all, into, &flags);
    if (tlmi_unlikely(status != TLM_OK))
        return refuse(row, (int)status, all, given, call, how);
    return allows(row, flags) ? Py_NewRef(out) : NULL;
}

PyObject *tlmi_ops_apply_into(int row, uint32_t count, PyObject *const *given, ops_call *call, unsigned how,
                              PyObject *out)
{
    operand_list all;
    if (row < 0)
        return not_here(how, OPS_NOT_HERE, row, count, given, "");
    if (!operands_begin(&all, count))
        return NULL;
    PyObject *result = compute_into(row, &all, given, call, how, (tlmi_reference *)out);
    operands_end(&all);
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

/* The row, the count of operands, the operands behind `first` other arguments, and parameters. False: an exception. */
static bool read_call(PyObject *const *given, Py_ssize_t count, Py_ssize_t first, long *row, long *inputs,
                      ops_params *params)
{
    uint32_t fractions = 0;
    *row = count >= 2 ? PyLong_AsLong(given[0]) : -1;
    *inputs = count >= 2 ? PyLong_AsLong(given[1]) : -1;
    if (*inputs < 1 || *inputs > count - first) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "expected a row, a count and that many operands");
        return false;
    }
    params->count = 0;
    memset(params->x, 0, sizeof params->x);
    for (Py_ssize_t i = first + *inputs; i < count; i++)
        if (!add_param(params, &fractions, given[i]))
            return false;
    return true;
}

static PyObject *apply(PyObject *const *given, Py_ssize_t count, unsigned how)
{
    ops_call call;
    long row, inputs;
    if (!read_call(given, count, 2, &row, &inputs, &call.params))
        return NULL;
    return tlmi_ops_apply((int)row, (uint32_t)inputs, given + 2, &call, how);
}

static PyObject *into(PyObject *const *given, Py_ssize_t count, unsigned how)
{
    ops_call call;
    long row, inputs;
    if (!read_call(given, count, 3, &row, &inputs, &call.params))
        return NULL;
    return tlmi_ops_apply_into((int)row, (uint32_t)inputs, given + 3, &call, how, given[2]);
}

static PyObject *apply_into(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    return into(given, count, 0);
}

static PyObject *apply_into_strictly(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    return into(given, count, TLMI_STRICTLY);
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

static PyObject *apply_unrecorded(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    return apply(given, count, TLMI_STRICTLY | TLMI_UNRECORDED);
}

static PyObject *apply_seen(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    return apply(given, count, TLMI_STRICTLY | TLMI_UNRECORDED | TLMI_SEEN);
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
    {"apply_unrecorded", FAST(apply_unrecorded), METH_FASTCALL,
     "As apply_strictly, while gradients are not recorded: the operands may need one."},
    {"apply_seen", FAST(apply_seen), METH_FASTCALL,
     "As apply_unrecorded; a view is only a name of memory, without an object: for what ends within a function."},
    {"seen_part", FAST(tlmi_slices_seen), METH_FASTCALL,
     "seen_part(tensor, index): as part, and likewise only a name."},
    {"apply_into", FAST(apply_into), METH_FASTCALL,
     "apply_into(row, n, out, *operands, *params): out, with the result; NotImplemented: not for the ops, or not into "
     "it."},
    {"apply_into_strictly", FAST(apply_into_strictly), METH_FASTCALL, "Likewise; raises what is wrong instead."},
    {"reduce", FAST(tlmi_axes_reduce), METH_FASTCALL,
     "reduce(row, tensor, axes, keepdims[, number]): the result of an op over axes; NotImplemented: not for the ops."},
    {"along", FAST(tlmi_axes_along), METH_FASTCALL, "along(row, tensor, axis): likewise over one axis that stays."},
    {"kind", FAST(tlmi_fits_kind), METH_FASTCALL,
     "kind(tensor, gradient, in_rows): shape, dtype, device as bytes, and what to ask beside them; None: not for the "
     "ops."},
    {"fits", FAST(tlmi_fits), METH_FASTCALL, "fits(kinds, *values): whether each value is a tensor of its kind."},
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
