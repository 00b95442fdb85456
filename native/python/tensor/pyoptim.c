/* SPDX-License-Identifier: MIT
 * pyoptim.c: the walk of an optimiser over its parameters: every one that has a gradient is updated in place.
 *
 * All parameters are looked at before the first is written, so that one that was freed leaves the others as they were. Under
 * the GIL, which is let go of for long updates when other threads exist; what is read and written is pinned then.
 */
#include "ops/optimisers.h"
#include "python/tensor/pyrules.h"

enum { MOST_STATES = 2, LONG_UPDATE_BYTES = 64 << 10 };

/* One parameter, its gradient and what is kept for it. */
typedef struct {
    const tlm_tensor *parameter;
    tlm_tensor gradient; /* object 0 and !has_gradient: there is none */
    const tlm_tensor *state[MOST_STATES];
    bool has_gradient;
} update;

/* What an optimiser does with one update; `place` is that of the parameter. */
typedef struct walk walk;
struct walk {
    tlm_status (*one)(const walk *walk, const update *update, Py_ssize_t place);
    ops_sgd sgd;
    ops_adam adam;
    int64_t *counts; /* of Adam: steps so far, by place */
    uint32_t states; /* tensors kept for each */
};

static bool find_gradient(const tlmi_reference *parameter, tlm_tensor *out)
{
    return parameter->slot != 0 && tlm_slot_grad(parameter->slot, out) == TLM_OK && out->object != 0;
}

static tlm_status read_state(PyObject *state, uint32_t wanted, update *out)
{
    if (!PyTuple_Check(state) || PyTuple_GET_SIZE(state) != (Py_ssize_t)wanted)
        return TLM_BAD_ARGUMENT;
    for (uint32_t i = 0; i < wanted; i++) {
        tlmi_reference *kept = (tlmi_reference *)PyTuple_GET_ITEM(state, i);
        tlm_status status = tlmi_reference_check(kept);
        if (status != TLM_OK)
            return status;
        if ((out->state[i] = tlmi_tensor_described(kept)) == NULL)
            return TLM_BAD_ARGUMENT;
    }
    return TLM_OK;
}

static tlm_status read_update(const walk *walk, PyObject *parameters, PyObject *states, Py_ssize_t place, update *out)
{
    tlmi_reference *parameter = (tlmi_reference *)PyTuple_GET_ITEM(parameters, place);
    tlm_status status = tlmi_reference_check(parameter);
    if (status != TLM_OK)
        return status;
    out->state[0] = out->state[1] = NULL;
    out->parameter = tlmi_tensor_described(parameter);
    out->has_gradient = find_gradient(parameter, &out->gradient);
    if (!out->has_gradient)
        return TLM_OK;
    if (out->parameter == NULL || parameter->readonly || out->gradient.dtype != out->parameter->dtype ||
        !ops_same_shape(out->parameter, &out->gradient))
        return TLM_BAD_ARGUMENT;
    return walk->states != 0 ? read_state(PyList_GET_ITEM(states, place), walk->states, out) : TLM_OK;
}

/* ---- one update ---- */

/* Says that the parameter is written, for tapes that saved it. */
static void tell_written(tlm_object object)
{
    tlm_holder holder;
    int kept = 0, instruction = 0;
    if (!tlm_object_saved(object, &holder))
        return;
    PyCodeObject *code = tlmi_place_here(&instruction);
    tlm_object_written(object, (tlm_place){code, instruction}, &kept);
    if (!kept)
        Py_XDECREF(code);
}

static tlm_status apply_sgd(const walk *walk, const update *update, Py_ssize_t place)
{
    (void)place;
    return ops_sgd_step(&walk->sgd, update->parameter, &update->gradient, update->state[0], false);
}

static tlm_status apply_adam(const walk *walk, const update *update, Py_ssize_t place)
{
    tlm_status status = ops_adam_step(&walk->adam, walk->counts[place] + 1, update->parameter, &update->gradient,
                                      update->state[0], update->state[1]);
    walk->counts[place] += status == TLM_OK;
    return status;
}

static tlm_status apply_beside_threads(const walk *walk, const update *update, Py_ssize_t place)
{
    tlm_object pins[2 + MOST_STATES] = {0};
    (void)tlm_pin(update->parameter->object, &pins[0]);
    (void)tlm_pin(update->gradient.object, &pins[1]);
    for (uint32_t i = 0; i < walk->states; i++)
        (void)tlm_pin(update->state[i]->object, &pins[2 + i]);
    PyThreadState *state = PyEval_SaveThread();
    tlm_status status = walk->one(walk, update, place);
    PyEval_RestoreThread(state);
    for (int i = 0; i < 2 + MOST_STATES; i++)
        tlm_unpin(pins[i]);
    return status;
}

static tlm_status apply(const walk *walk, const update *update, Py_ssize_t place)
{
    int64_t bytes = ops_elements(update->parameter) * ops_item_bytes(update->parameter->dtype);
    tell_written(update->parameter->object);
    if (bytes >= LONG_UPDATE_BYTES && tlmi_other_threads())
        return apply_beside_threads(walk, update, place);
    return walk->one(walk, update, place);
}

/* None, or (status, place) of the parameter that could not be updated. */
static PyObject *walk_over(const walk *walk, PyObject *parameters, PyObject *states)
{
    update found;
    tlm_status status = TLM_OK;
    Py_ssize_t count = PyTuple_GET_SIZE(parameters), place;
    for (place = 0; place < count; place++)
        if ((status = read_update(walk, parameters, states, place, &found)) != TLM_OK)
            return Py_BuildValue("(in)", (int)status, place);
    for (place = 0; place < count; place++) {
        status = read_update(walk, parameters, states, place, &found);
        if (status == TLM_OK && found.has_gradient)
            status = apply(walk, &found, place);
        if (status != TLM_OK)
            return Py_BuildValue("(in)", (int)status, place);
    }
    Py_RETURN_NONE;
}

/* ---- what Python calls ---- */

/* Parameters and states of one length, and so many numbers behind them. */
static bool read_arguments(PyObject *const *given, Py_ssize_t count, Py_ssize_t first, Py_ssize_t numbers, double *out)
{
    if (count != first + numbers || !PyTuple_Check(given[0]) || !PyList_Check(given[1]) ||
        PyTuple_GET_SIZE(given[0]) != PyList_GET_SIZE(given[1])) {
        PyErr_SetString(PyExc_TypeError, "expected a tuple of parameters, a list of their states, and numbers");
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given[0]); i++)
        if (!tlmi_ops_is_tensor(PyTuple_GET_ITEM(given[0], i))) {
            PyErr_SetString(PyExc_TypeError, "a parameter is a tensor");
            return false;
        }
    for (Py_ssize_t i = 0; i < numbers; i++)
        out[i] = PyFloat_AsDouble(given[first + i]);
    return !PyErr_Occurred();
}

static PyObject *sgd_step(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    double number[4];
    if (!read_arguments(given, count, 2, 4, number))
        return NULL;
    walk walk = {.one = apply_sgd, .states = number[1] != 0};
    walk.sgd = (ops_sgd){number[0], number[1], number[2], number[3] != 0};
    return walk_over(&walk, given[0], given[1]);
}

static PyObject *adam_step(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    double number[5];
    Py_buffer counts;
    if (!read_arguments(given, count, 3, 5, number) || PyObject_GetBuffer(given[2], &counts, PyBUF_WRITABLE) < 0)
        return NULL;
    PyObject *result = NULL;
    walk walk = {.one = apply_adam, .states = 2, .counts = counts.buf};
    walk.adam = (ops_adam){number[0], number[1], number[2], number[3], number[4]};
    if (counts.len != (Py_ssize_t)sizeof(int64_t) * PyTuple_GET_SIZE(given[0]))
        PyErr_SetString(PyExc_TypeError, "expected a count of steps for each parameter");
    else
        result = walk_over(&walk, given[0], given[1]);
    PyBuffer_Release(&counts);
    return result;
}

static PyObject *has_grad(PyObject *self, PyObject *given)
{
    (void)self;
    tlm_tensor found;
    return PyBool_FromLong(tlmi_ops_is_tensor(given) && find_gradient((tlmi_reference *)given, &found));
}

/* A gradient is filled with zeros when the tape alone holds it. */
static tlm_status zero_if_alone(const tlm_tensor *gradient)
{
    tlm_holder holders[2];
    bool alone = tlm_object_holders(gradient->object, holders, 2) == 1;
    return alone && ops_is_dense(gradient) ? ops_fill(gradient, 0) : TLM_STILL_HELD;
}

static PyObject *zero_grads(PyObject *self, PyObject *address)
{
    (void)self;
    tlm_tape *tape = PyLong_AsVoidPtr(address);
    if (tape == NULL)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "expected the address of a tape");
    return PyLong_FromUnsignedLongLong(tlm_tape_zero_grads(tape, zero_if_alone));
}

#define FAST(function) (PyCFunction)(void (*)(void))(function)
PyMethodDef tlmi_optim_methods[] = {
    {"sgd_step", FAST(sgd_step), METH_FASTCALL,
     "sgd_step(parameters, states, lr, momentum, weight_decay, nesterov): None, or (status, place) of what failed."},
    {"adam_step", FAST(adam_step), METH_FASTCALL,
     "adam_step(parameters, states, counts, lr, beta1, beta2, eps, weight_decay): likewise."},
    {"has_grad", has_grad, METH_O, "has_grad(tensor): whether it has a gradient now."},
    {"zero_grads", zero_grads, METH_O, "zero_grads(tape): fills its gradients with zeros; how many there were."},
    {NULL, NULL, 0, NULL},
};
