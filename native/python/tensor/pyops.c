/* SPDX-License-Identifier: MIT
 * pyops.c: from Python operands to an op and back: the fast path of every differentiable function.
 *
 * An operand is a tensor or a number; numbers become tensors without memory, of the dtype that the tensors have. The result
 * is a tensor of Python in the scope in force, and a record on the tape when an operand needs a gradient. What is not for
 * the ops gives NotImplemented, and Python computes it with NumPy. A result can also go into a tensor that there is.
 * All under the GIL, which is let go of around the arithmetic when other threads exist and the work is long; the operands are
 * pinned then.
 */
#include "python/tensor/pyoperands.h"

#include "python/tensor/pyrules.h"

#include <fenv.h>
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

static bool is_long_work(const tlmi_operands *all)
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

static tlm_status forward_beside_threads(int row, ops_call *call, tlmi_operands *all, const tlm_tensor *into,
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
static tlm_status forward(int row, ops_call *call, tlmi_operands *all, const tlm_tensor *into, unsigned *flags)
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
static tlmi_reference *base_of(const ops_call *call, const tlmi_operands *all)
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

static PyObject *finish(int row, ops_call *call, const tlmi_operands *all, PyObject *const *given, uint64_t scope)
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
static PyObject *begin(int row, tlmi_operands *all, PyObject *const *given, ops_call *call, unsigned how)
{
    int found = tlmi_operands_read(all, row, given);
    if (found == TLMI_RAISED)
        return NULL;
    if (found == TLMI_NOT_FOR_OPS)
        return not_here(how, OPS_NOT_HERE, row, all->count, given, "");
    if (tlmi_ops_settle() < 0)
        return NULL;
    int mode = how & TLMI_UNRECORDED ? tlm_grad_mode(0) : 0;
    call->records = tlmi_operands_need(all);
    if (how & TLMI_UNRECORDED)
        tlm_grad_mode(mode);
    return Py_None;
}

static PyObject *refuse(int row, int status, const tlmi_operands *all, PyObject *const *given, const ops_call *call,
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

static PyObject *compute(int row, tlmi_operands *all, PyObject *const *given, ops_call *call, unsigned how)
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
    tlmi_operands all;
    if (row < 0)
        return not_here(how, OPS_NOT_HERE, row, count, given, "");
    if (!tlmi_operands_begin(&all, count))
        return NULL;
    PyObject *result = compute(row, &all, given, call, how);
    tlmi_operands_end(&all);
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
static tlm_status forward_with_care(int row, ops_call *call, tlmi_operands *all, const tlmi_reference *out,
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

static PyObject *compute_into(int row, tlmi_operands *all, PyObject *const *given, ops_call *call, unsigned how,
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
    tlmi_operands all;
    if (row < 0)
        return not_here(how, OPS_NOT_HERE, row, count, given, "");
    if (!tlmi_operands_begin(&all, count))
        return NULL;
    PyObject *result = compute_into(row, &all, given, call, how, (tlmi_reference *)out);
    tlmi_operands_end(&all);
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
