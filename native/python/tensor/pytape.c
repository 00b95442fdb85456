/* SPDX-License-Identifier: MIT
 * pytape.c: tensors of Python on a tape: which tape is in force, leaves, records, gradients, going back.
 *
 * One tape serves the whole process unless a context says otherwise (a context variable, so that tasks and threads each have
 * theirs). A tensor holds one reference to its slot; a leaf gets its slot when an operation first reads it. All under the
 * GIL, which is let go of for a whole backward pass when other threads exist.
 */
#include "python/stack/pycode.h"
#include "python/tensor/pyops.h"
#include "python/tensor/pyrules.h"

static tlm_tape *process_tape;
static PyObject *in_force; /* context variable: [address, the Tape of Python]; address 0: it has ended */
static bool ever_chosen;   /* whether it was ever set */

/* ---- places ---- */

static void drop_place(tlm_place place)
{
    PyThreadState *own = place.code != NULL && Py_IsInitialized() ? tlmi_pycode_own_thread() : NULL;
    if (own != NULL && tlmi_pycode_holds_gil(own))
        Py_DECREF((PyObject *)place.code);
    else if (place.code != NULL)
        tlm_python_drop_reference(place.code);
}

static PyObject *place_object(tlm_place place)
{
    if (place.code == NULL)
        Py_RETURN_NONE;
    return Py_BuildValue("(OL)", (PyObject *)place.code, (long long)place.instruction);
}

static tlm_place place_now(void)
{
    int instruction = 0;
    PyCodeObject *code = tlmi_place_here(&instruction);
    return (tlm_place){code, instruction};
}

/* ---- the tape in force ---- */

static tlm_tape *make_process_tape(void)
{
    tlm_status status = tlm_tape_create(0, &ops_tape_arithmetic, &process_tape);
    if (status != TLM_OK) {
        process_tape = NULL;
        tlmi_ops_raise((int)status, "make a tape", 0, NULL, "");
    }
    return process_tape;
}

tlm_tape *tlmi_tape_in_force(void)
{
    if (tlmi_unlikely(ever_chosen)) {
        PyObject *chosen = NULL;
        if (PyContextVar_Get(in_force, NULL, &chosen) < 0)
            return NULL;
        bool is_chosen = chosen != NULL && PyList_Check(chosen) && PyList_GET_SIZE(chosen) == 2;
        tlm_tape *tape = is_chosen ? PyLong_AsVoidPtr(PyList_GET_ITEM(chosen, 0)) : NULL;
        Py_XDECREF(chosen);
        if (tape != NULL || PyErr_Occurred())
            return tape;
    }
    return tlmi_likely(process_tape != NULL) ? process_tape : make_process_tape();
}

static PyObject *current_tape(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    tlm_tape *tape = tlmi_tape_in_force();
    return tape != NULL ? PyLong_FromVoidPtr(tape) : NULL;
}

static PyObject *create_tape(PyObject *self, PyObject *label)
{
    (void)self;
    tlm_tape *tape = NULL;
    unsigned long number = PyLong_AsUnsignedLong(label);
    if (PyErr_Occurred())
        return NULL;
    tlm_status status = tlm_tape_create((tlm_label)number, &ops_tape_arithmetic, &tape);
    return status == TLM_OK ? PyLong_FromVoidPtr(tape) : tlmi_ops_raise((int)status, "make a tape", 0, NULL, "");
}

static PyObject *choose_tape(PyObject *self, PyObject *chosen)
{
    (void)self;
    ever_chosen = true;
    return PyContextVar_Set(in_force, chosen);
}

static PyObject *chosen_tape(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    PyObject *chosen = NULL;
    if (PyContextVar_Get(in_force, Py_None, &chosen) < 0)
        return NULL;
    return chosen;
}

static PyObject *leave_tape(PyObject *self, PyObject *token)
{
    (void)self;
    if (PyContextVar_Reset(in_force, token) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- records ---- */

static bool needs_gradient(const tlmi_reference *reference)
{
    return reference->slot != 0 || reference->requires_grad;
}

/* A leaf without a slot that is alive gets one on this tape. */
static tlm_status make_leaf(tlm_tape *tape, tlmi_reference *leaf)
{
    const tlm_tensor *tensor = tlmi_tensor_described(leaf);
    if (tensor == NULL)
        return TLM_BAD_ARGUMENT;
    tlm_slot former = leaf->slot;
    tlm_status status = tlm_tape_leaf(tape, tensor, &leaf->slot);
    if (status == TLM_OK)
        tlm_slot_release(former);
    else
        leaf->slot = former;
    return status;
}

/* A leaf that a tape forgot by its reset, or that nothing on its former tape refers to, becomes a leaf of this one. */
static bool renew_leaf(tlm_tape *tape, tlmi_reference *leaf)
{
    tlm_slot_info info;
    if (!leaf->requires_grad || tlm_slot_tape(leaf->slot) == tape)
        return false;
    bool alive = tlm_slot_describe(leaf->slot, &info) == TLM_OK;
    if (alive && (info.references > 1 || info.has_grad))
        return false;
    return make_leaf(tape, leaf) == TLM_OK;
}

static tlm_status read_slots(tlm_tape *tape, uint32_t count, tlmi_reference *const *references, const uint8_t *needs,
                             tlm_slot *slots)
{
    for (uint32_t i = 0; i < count; i++) {
        slots[i] = 0;
        if (!needs[i])
            continue;
        if (references[i]->slot == 0) {
            tlm_status status = make_leaf(tape, references[i]);
            if (status != TLM_OK)
                return status;
        }
        slots[i] = references[i]->slot;
    }
    return TLM_OK;
}

enum { FEW_SLOTS = 8 };

tlm_status tlmi_tape_record_for(tlm_tape *tape, tlm_record *entry, tlmi_reference *const *references,
                                const uint8_t *needs, tlm_slot *slots, tlm_slot *out)
{
    tlm_status status = read_slots(tape, entry->inputs, references, needs, slots);
    if (status != TLM_OK)
        return status;
    status = tlm_tape_record(tape, entry, out);
    if (tlmi_likely(status != TLM_STALE_SLOT && status != TLM_WRONG_TAPE))
        return status;
    bool renewed = false;
    for (uint32_t i = 0; i < entry->inputs; i++)
        renewed |= needs[i] && renew_leaf(tape, references[i]);
    if (!renewed)
        return status;
    status = read_slots(tape, entry->inputs, references, needs, slots);
    return status == TLM_OK ? tlm_tape_record(tape, entry, out) : status;
}

tlm_status tlmi_tape_keep(int row, ops_call *call, tlmi_reference *const *references, tlmi_reference *made)
{
    tlm_slot few[FEW_SLOTS], *slots = few, slot = 0;
    tlm_tape *tape = tlmi_tape_in_force();
    if (tape == NULL)
        return TLM_NO_MEMORY;
    if (call->inputs > FEW_SLOTS && (slots = PyMem_Malloc(call->inputs * sizeof *slots)) == NULL)
        return TLM_NO_MEMORY;
    tlm_record entry = {
        .op = ops_number(row),
        .inputs = call->inputs,
        .slots = slots,
        .tensors = call->in,
        .saves = call->saves,
        .save_count = call->save_count,
        .params = &call->params,
        .params_bytes = (uint32_t)ops_params_bytes(&call->params),
        .output = &call->out,
        .recompute = ops_row_at(row)->replays && tlmi_recompute_wanted(row),
        .place = {made->code, made->instruction},
    };
    Py_XINCREF(made->code);
    tlm_status status = tlmi_tape_record_for(tape, &entry, references, call->needs, slots, &slot);
    if (status == TLM_OK)
        made->slot = slot;
    if (status != TLM_OK || slot == 0)
        Py_XDECREF(made->code);
    if (slots != few)
        PyMem_Free(slots);
    return status;
}

/* ---- what Python asks of tensors ---- */

static tlmi_reference *tensor_of(PyObject *given)
{
    if (tlmi_ops_is_tensor(given))
        return (tlmi_reference *)given;
    PyErr_Format(PyExc_TypeError, "a tlmem.Tensor is needed, not %s", Py_TYPE(given)->tp_name);
    return NULL;
}

static PyObject *needs(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    if (tlmi_ops_settle() < 0)
        return NULL;
    bool on = tlm_grad_mode_current();
    for (Py_ssize_t i = 0; (on || tlmi_unlikely(tlmi_watching)) && i < count; i++) {
        if (!tlmi_ops_is_tensor(given[i]) || !needs_gradient((tlmi_reference *)given[i]))
            continue;
        if (on)
            Py_RETURN_TRUE;
        tlmi_watch_need((tlmi_reference *)given[i]);
    }
    Py_RETURN_FALSE;
}

int tlmi_tape_about_to_write(const tlmi_reference *tensor, tlm_holder *holder)
{
    tlm_object object = tensor->base != 0 ? tensor->base : tensor->object;
    bool recording = tlm_grad_mode_current();
    *holder = 0;
    if (recording && needs_gradient(tensor))
        return TLMI_DIFFERENTIABLE;
    if (!tlm_object_saved(object, holder))
        return TLMI_WRITABLE;
    if (recording)
        return TLMI_SAVED;
    int kept = 0;
    tlm_place place = place_now();
    tlm_object_written(object, place, &kept);
    if (!kept)
        drop_place(place);
    return TLMI_WRITABLE;
}

static PyObject *about_to_write(PyObject *self, PyObject *given)
{
    (void)self;
    tlm_holder holder;
    tlmi_reference *tensor = tensor_of(given);
    if (tensor == NULL || tlmi_ops_settle() < 0)
        return NULL;
    int found = tlmi_tape_about_to_write(tensor, &holder);
    if (found == TLMI_WRITABLE)
        Py_RETURN_NONE;
    return Py_BuildValue("(iK)", found, (unsigned long long)holder);
}

static PyObject *require(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    tlmi_reference *tensor = count == 2 ? tensor_of(given[0]) : NULL;
    int on = tensor != NULL ? PyObject_IsTrue(given[1]) : -1;
    if (on < 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected a tensor and a truth value");
    tensor->requires_grad = (char)on;
    if (!on) {
        tlm_slot former = tensor->slot;
        tensor->slot = 0;
        tlm_slot_release(former);
    }
    Py_RETURN_NONE;
}

/* Its slot; a leaf that has none gets one. 0: it needs no gradient. */
static PyObject *slot_of(PyObject *self, PyObject *given)
{
    (void)self;
    tlmi_reference *tensor = tensor_of(given);
    tlm_tape *tape = tensor != NULL ? tlmi_tape_in_force() : NULL;
    if (tape == NULL)
        return NULL;
    if (tensor->requires_grad && !tlm_slot_alive(tensor->slot)) {
        tlm_status status = make_leaf(tape, tensor);
        if (status != TLM_OK)
            return tlmi_ops_raise((int)status, "make a leaf of", 1, &given, "");
    }
    return PyLong_FromUnsignedLongLong(tensor->slot);
}

static PyObject *backward(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    const tlm_tensor *seed = NULL;
    uint64_t slot = count == 3 ? PyLong_AsUnsignedLongLong(given[0]) : 0;
    int retain = count == 3 ? PyObject_IsTrue(given[2]) : -1;
    if (retain < 0 || PyErr_Occurred())
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected a slot, a gradient and a truth value");
    if (given[1] != Py_None) {
        tlmi_reference *gradient = tensor_of(given[1]);
        if (gradient == NULL || (seed = tlmi_tensor_described(gradient)) == NULL)
            return NULL;
    }
    PyThreadState *state = tlmi_other_threads() ? PyEval_SaveThread() : NULL;
    tlm_status status = tlm_backward(slot, seed, retain);
    if (state != NULL)
        PyEval_RestoreThread(state);
    return PyErr_Occurred() ? NULL : PyLong_FromLong((long)status);
}

/* ---- gradients ---- */

/* Whether another slot, too, has this object as its gradient, or as one on its way. */
static bool is_shared(tlm_object object, tlm_slot slot)
{
    const uint64_t sequence_bits = UINT64_C(0xFFFFFFFFFF);
    tlm_slot_info info;
    tlm_holder holders[16];
    uint32_t count = tlm_object_holders(object, holders, 16), others = count > 16;
    if (tlm_slot_describe(slot, &info) != TLM_OK)
        return true;
    for (uint32_t i = 0; i < count && i < 16; i++) /* a pass may hold the slot's own for a moment */
        others += holders[i] >> 56 == TLM_HOLDER_TAPE && ((holders[i] ^ info.sequence) & sequence_bits) != 0;
    return others > 0;
}

/* A gradient that a program gets may be written to: its elements are its own, each in a place of its own. */
static tlm_status make_own(tlm_slot slot, tlm_tensor *gradient)
{
    if (gradient->object != 0 && ops_is_dense(gradient) && !is_shared(gradient->object, slot))
        return TLM_OK;
    tlm_tensor copy;
    tlm_status status = ops_tape_arithmetic.copy(gradient, &copy);
    if (status != TLM_OK)
        return status;
    status = tlm_slot_set_grad(slot, &copy);
    tlm_release(copy.object, TLM_HOLDER(TLM_HOLDER_FLOATING, 0));
    *gradient = copy;
    return status;
}

PyObject *tlmi_tape_named(const tlm_tensor *tensor)
{
    tlm_tensor named;
    if (tensor->object != 0)
        return tlmi_ops_name_held(tensor);
    tlm_status status = ops_tape_arithmetic.copy(tensor, &named);
    if (status != TLM_OK)
        return tlmi_ops_raise((int)status, "use what a tape holds", 0, NULL, "");
    return (PyObject *)tlmi_ops_tensor(&named, NULL, TLMI_NO_SCOPE);
}

static PyObject *gradient(PyObject *self, PyObject *given)
{
    (void)self;
    tlm_tensor found;
    tlm_slot slot = PyLong_AsUnsignedLongLong(given);
    if (PyErr_Occurred())
        return NULL;
    tlm_status status = slot != 0 ? tlm_slot_grad(slot, &found) : TLM_STALE_SLOT;
    if (status != TLM_OK || found.object == 0)
        Py_RETURN_NONE; /* a slot that is on no tape any more has no gradient */
    tlm_tensor again = found;
    PyObject *named;
    do { /* until no pass of another thread puts another one there between looking and holding it */
        PyErr_Clear();
        found = again;
        status = make_own(slot, &found);
        named =
            status == TLM_OK ? tlmi_tape_named(&found) : tlmi_ops_raise((int)status, "copy a gradient", 0, NULL, "");
    } while (named == NULL && tlm_slot_grad(slot, &again) == TLM_OK && again.object != 0 &&
             again.object != found.object);
    return named;
}

static PyObject *set_gradient(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    (void)self;
    tlm_tensor none = {0};
    const tlm_tensor *tensor = &none;
    tlm_slot slot = count == 2 ? PyLong_AsUnsignedLongLong(given[0]) : 0;
    if (PyErr_Occurred())
        return NULL;
    if (count == 2 && given[1] != Py_None) {
        tlmi_reference *reference = tensor_of(given[1]);
        if (reference == NULL || (tensor = tlmi_tensor_described(reference)) == NULL)
            return NULL;
    }
    return PyLong_FromLong((long)tlm_slot_set_grad(slot, tensor));
}

static PyObject *zero_gradient(PyObject *self, PyObject *given)
{
    (void)self;
    tlm_tensor found, none = {0};
    tlm_slot slot = PyLong_AsUnsignedLongLong(given);
    if (PyErr_Occurred())
        return NULL;
    if (slot == 0 || tlm_slot_grad(slot, &found) != TLM_OK || found.object == 0)
        return PyLong_FromLong(TLM_OK);
    tlm_holder holder;
    bool alone = tlm_object_holders(found.object, &holder, 1) == 1 && ops_is_dense(&found);
    return PyLong_FromLong((long)(alone ? ops_fill(&found, 0) : tlm_slot_set_grad(slot, &none)));
}

/* The same memory under another name that no tape knows. It holds the object and not the tensor, whose slot would keep what
 * it was computed from for as long. */
static PyObject *detach(PyObject *self, PyObject *given)
{
    (void)self;
    tlmi_reference *tensor = tensor_of(given);
    const tlm_tensor *described = tensor != NULL ? tlmi_tensor_described(tensor) : NULL;
    if (described == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
    tlmi_reference *made = tlmi_ops_tensor(described, tensor, TLMI_INNERMOST_SCOPE);
    if (made != NULL) {
        Py_CLEAR(made->owner);
        tlm_detach_record(tensor->object, tensor->slot);
    }
    return (PyObject *)made;
}

static PyObject *conflict(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    tlm_conflict found;
    tlm_tape_conflict(&found);
    return Py_BuildValue("(KKNN)", (unsigned long long)found.object, (unsigned long long)found.saved_by,
                         place_object(found.saved), place_object(found.written));
}

static PyObject *holder_place(PyObject *self, PyObject *given)
{
    (void)self;
    tlm_holder holder = PyLong_AsUnsignedLongLong(given);
    return PyErr_Occurred() ? NULL : place_object(tlm_tape_holder_place(holder));
}

int tlmi_tape_init(void)
{
    tlm_tape_places(drop_place);
    in_force = PyContextVar_New("tlmem.tape", NULL);
    if (in_force == NULL || tlmi_numpy_loops_init() < 0)
        return -1;
    tlm_status status = ops_define();
    if (status != TLM_OK)
        PyErr_Format(PyExc_RuntimeError, "the operations cannot be defined: status %d", (int)status);
    return status == TLM_OK ? 0 : -1;
}

#define FAST(function) (PyCFunction)(void (*)(void))(function)
PyMethodDef tlmi_tape_methods[] = {
    {"tape", current_tape, METH_NOARGS, "tape(): address of the tape in force."},
    {"create_tape", create_tape, METH_O, "create_tape(label): address of a new one."},
    {"choose_tape", choose_tape, METH_O,
     "choose_tape([address, Tape]): puts it in force in this context; a token. None: that of the process."},
    {"chosen_tape", chosen_tape, METH_NOARGS, "chosen_tape(): what was chosen in this context, or None."},
    {"leave_tape", leave_tape, METH_O, "leave_tape(token): the one before is in force again."},
    {"needs", FAST(needs), METH_FASTCALL, "needs(*operands): whether records are made and one needs a gradient."},
    {"write", about_to_write, METH_O,
     "write(tensor): None when it may be written in place now; else (1, 0): differentiable, (2, holder): saved."},
    {"require", FAST(require), METH_FASTCALL, "require(tensor, on): makes a leaf of it, or none."},
    {"slot", slot_of, METH_O, "slot(tensor): its slot on a tape, 0 when it needs no gradient."},
    {"backward", FAST(backward), METH_FASTCALL, "backward(slot, gradient, retain): the status."},
    {"gradient", gradient, METH_O, "gradient(slot): a tensor that names the gradient, or None."},
    {"set_gradient", FAST(set_gradient), METH_FASTCALL, "set_gradient(slot, tensor or None): the status."},
    {"zero_gradient", zero_gradient, METH_O, "zero_gradient(slot): zeros, or none when others hold it; the status."},
    {"detach", detach, METH_O, "detach(tensor): a view of all of it without a slot."},
    {"conflict", conflict, METH_NOARGS, "conflict(): object, holder, where saved, where written; of TLM_CHANGED."},
    {"holder_place", holder_place, METH_O, "holder_place(holder): where what a tape holds was recorded."},
    {NULL, NULL, 0, NULL},
};
