/* SPDX-License-Identifier: MIT
 * pyreference.c: a Python object that names an object of ours and may hold one count of it; the base of Tensor.
 *
 * In C, because a count must be given back from any thread, also while the interpreter ends, and must never raise; and
 * because making a tensor must be fast. The fields are owned under the GIL. No lock of the core is ever held while waiting
 * for the GIL, so the core may be called with it.
 */
#include "python/tensor/pyreference.h"

#include <stddef.h>

#include "python/tensor/pyops.h"

/* ---- taking a new object ---- */

tlm_status tlmi_reference_take(tlmi_reference *self, tlm_object object, uint64_t scope)
{
    uint64_t innermost = scope == TLMI_INNERMOST_SCOPE ? tlm_scope_current() : scope == TLMI_NO_SCOPE ? 0 : scope;
    tlm_holder handle = 0;
    tlm_status status;
    if (innermost == 0) {
        handle = TLM_HOLDER(TLM_HOLDER_HANDLE, tlm_holder_number(1));
        status = tlm_move(object, TLM_HOLDER(TLM_HOLDER_FLOATING, 0), handle);
    } else {
        status = scope != TLMI_INNERMOST_SCOPE ? tlm_register_in(scope, object) : tlm_register(object);
    }
    if (status == TLM_OK) {
        self->object = object;
        self->holder = handle;
        self->scope = innermost;
        self->described = self->described && self->base != 0; /* a view's elements are its base's */
    }
    return status;
}

/* The same for an object that nobody else knows: it ends when it cannot be taken. tlm_failure_last still tells why, since a
 * call that succeeds leaves it alone. */
static PyObject *take_fresh(tlmi_reference *self, tlm_status status, tlm_object object, uint64_t scope)
{
    if (status == TLM_OK) {
        status = tlmi_reference_take(self, object, scope);
        if (status != TLM_OK)
            tlm_free(object);
    }
    return PyLong_FromLong((long)status);
}

static void note_place(tlmi_reference *self)
{
    PyCodeObject *code = tlmi_place_here(&self->instruction);
    Py_XSETREF(self->code, code);
}

/* Reads `wanted` numbers; -1 with an exception otherwise. */
static int read_numbers(PyObject *const *given, Py_ssize_t count, Py_ssize_t wanted, uint64_t *out)
{
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "expected %zd numbers, got %zd", wanted, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < wanted; i++) {
        out[i] = PyLong_AsUnsignedLongLong(given[i]);
        if (out[i] == (uint64_t)-1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *make_tensor(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    uint64_t number[3];
    if (read_numbers(given, count, 3, number) < 0)
        return NULL;
    tlm_object object = 0;
    tlmi_reference *reference = (tlmi_reference *)self;
    reference->device = (int)number[0];
    reference->span = number[1];
    note_place(reference);
    tlm_status status = tlm_object_alloc((uint32_t)number[0], number[1], &object);
    return take_fresh(reference, status, object, number[2]);
}

static PyObject *make_view(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    uint64_t number[2];
    if (read_numbers(given, count, 2, number) < 0)
        return NULL;
    tlm_object object = 0;
    tlm_status status = tlm_object_view(number[0], &object);
    ((tlmi_reference *)self)->base = number[0];
    note_place((tlmi_reference *)self);
    return take_fresh((tlmi_reference *)self, status, object, number[1]);
}

static PyObject *make_arena_tensor(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    uint64_t bytes;
    if (read_numbers(given, count, 1, &bytes) < 0)
        return NULL;
    tlmi_reference *reference = (tlmi_reference *)self;
    reference->device = TLM_DEVICE_CPU;
    reference->span = bytes;
    note_place(reference);
    tlm_status status = tlm_arena_object(bytes, &reference->object);
    reference->scope = status == TLM_OK ? tlm_scope_current() : 0;
    return PyLong_FromLong((long)status);
}

static PyObject *adopt_memory(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    uint64_t number[2];
    if (count != 3 || read_numbers(given + 1, 2, 2, number) < 0)
        return count != 3 ? PyErr_Format(PyExc_TypeError, "expected an owner and 2 numbers") : NULL;
    tlm_object object = 0;
    Py_INCREF(given[0]);
    /* 0 bytes: whoever allocated them counts them. */
    tlm_status status =
        tlm_object_adopt(TLM_DEVICE_CPU, (void *)(uintptr_t)number[0], 0, tlm_python_drop_reference, given[0], &object);
    if (status != TLM_OK)
        Py_DECREF(given[0]);
    note_place((tlmi_reference *)self);
    return take_fresh((tlmi_reference *)self, status, object, number[1]);
}

static PyObject *adopt_object(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    uint64_t number[2];
    if (read_numbers(given, count, 2, number) < 0)
        return NULL;
    return PyLong_FromLong((long)tlmi_reference_take((tlmi_reference *)self, number[0], number[1]));
}

static PyObject *name_object(PyObject *self, PyObject *given)
{
    uint64_t object = PyLong_AsUnsignedLongLong(given);
    if (object == (uint64_t)-1 && PyErr_Occurred())
        return NULL;
    ((tlmi_reference *)self)->object = object;
    ((tlmi_reference *)self)->described = 0;
    Py_RETURN_NONE;
}

static PyObject *take_over(PyObject *self, PyObject *given)
{
    PyTypeObject *known = Py_TYPE(self);
    if (!PyObject_TypeCheck(given, known))
        return PyErr_Format(PyExc_TypeError, "expected another %s", known->tp_name);
    tlmi_reference *to = (tlmi_reference *)self, *from = (tlmi_reference *)given;
    to->object = from->object;
    to->holder = from->holder;
    to->scope = from->scope;
    to->base = from->base;
    to->span = from->span;
    to->device = from->device;
    to->escaped = from->escaped;
    to->instruction = from->instruction;
    to->readonly = from->readonly;
    to->requires_grad = from->requires_grad;
    to->slot = from->slot;
    to->described = from->described;
    to->tensor = from->tensor;
    Py_XINCREF(from->code);
    Py_XSETREF(to->code, from->code);
    Py_XINCREF(from->shape);
    Py_XSETREF(to->shape, from->shape);
    Py_XINCREF(from->dtype);
    Py_XSETREF(to->dtype, from->dtype);
    from->holder = 0;
    from->slot = 0;
    from->requires_grad = 0;
    from->moved = 1;
    Py_RETURN_NONE;
}

/* ---- using it ---- */

tlm_status tlmi_reference_check(const tlmi_reference *self)
{
    tlm_status status = self->moved ? TLM_FREED : tlm_check(self->object);
    if (status == TLM_OK && self->base != 0)
        status = tlm_check(self->base);
    return status;
}

static PyObject *check_alive(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong((long)tlmi_reference_check((tlmi_reference *)self));
}

static PyObject *payload_memory(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    static char nothing[64];
    uint64_t number[2];
    if (read_numbers(given, count, 2, number) < 0)
        return NULL;
    char *payload = tlm_payload(((tlmi_reference *)self)->object);
    Py_ssize_t bytes = payload != NULL ? (Py_ssize_t)number[0] : 0;
    return PyMemoryView_FromMemory(payload != NULL ? payload : nothing, bytes, number[1] ? PyBUF_READ : PyBUF_WRITE);
}

static PyObject *pinned_payload(PyObject *self, PyObject *unused)
{
    (void)unused;
    const tlmi_reference *reference = (tlmi_reference *)self;
    return tlmi_pinned_memory(reference->object, (Py_ssize_t)reference->span);
}

static PyObject *payload_address(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(tlm_payload(((tlmi_reference *)self)->object));
}

/* ---- its life ---- */

static void let_slot_go(tlm_slot slot)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    tlm_slot_release(slot);
    PyErr_Restore(type, value, trace);
}

void tlmi_reference_let_go(tlmi_reference *self)
{
    tlm_object_info info;
    tlm_holder holder = self->holder;
    tlm_slot slot = self->slot;
    self->holder = 0;
    self->slot = 0;
    if (slot != 0)
        let_slot_go(slot);
    if (holder == 0 || tlm_object_describe(self->object, &info) != TLM_OK || !info.alive)
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    tlm_release(self->object, holder);
    PyErr_Restore(type, value, trace);
}

static PyObject *place_made(PyObject *self, void *unused)
{
    (void)unused;
    tlmi_reference *reference = (tlmi_reference *)self;
    if (reference->code == NULL)
        Py_RETURN_NONE;
    return Py_BuildValue("(Oi)", reference->code, reference->instruction);
}

static int visit_reference(PyObject *self, visitproc visit, void *arg)
{
    tlmi_reference *reference = (tlmi_reference *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reference->array);
    Py_VISIT(reference->owner);
    Py_VISIT(reference->ended);
    return 0;
}

static int clear_reference(PyObject *self)
{
    tlmi_reference *reference = (tlmi_reference *)self;
    Py_CLEAR(reference->array);
    Py_CLEAR(reference->owner);
    Py_CLEAR(reference->ended);
    return 0;
}

static void end_reference(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    tlmi_reference *reference = (tlmi_reference *)self;
    PyObject_GC_UnTrack(self);
    if (reference->weak != NULL)
        PyObject_ClearWeakRefs(self);
    tlmi_reference_let_go(reference);
    clear_reference(self);
    Py_CLEAR(reference->code);
    Py_CLEAR(reference->shape);
    Py_CLEAR(reference->dtype);
    type->tp_free(self);
    Py_DECREF(type);
}

#define NUMBERS(function) (PyCFunction)(void (*)(void))(function)
static PyMethodDef methods[] = {
    {"_make", NUMBERS(make_tensor), METH_FASTCALL,
     "_make(device, bytes, scope): a new object, taken by the scope; 0: the innermost or this handle; the status."},
    {"_make_view", NUMBERS(make_view), METH_FASTCALL, "_make_view(base, scope): likewise, a view."},
    {"_make_arena", NUMBERS(make_arena_tensor), METH_FASTCALL, "_make_arena(bytes): in the arena of the context."},
    {"_adopt_memory", NUMBERS(adopt_memory), METH_FASTCALL,
     "_adopt_memory(owner, address, scope): likewise, over memory of a Python object that is kept."},
    {"_adopt", NUMBERS(adopt_object), METH_FASTCALL, "_adopt(object, scope): likewise, a floating object."},
    {"_name_object", name_object, METH_O, "_name_object(object): names an object and takes no count of it."},
    {"_take_over", take_over, METH_O, "_take_over(other): names the other's object and has its count from now on."},
    {"_check", check_alive, METH_NOARGS, "The status of using it now: 0 while it is alive, and its base."},
    {"_memory", NUMBERS(payload_memory), METH_FASTCALL,
     "_memory(bytes, readonly): its payload now; whoever uses it checks each time that the object is alive."},
    {"_pinned", pinned_payload, METH_NOARGS, "Its payload, which stays while what is returned lives."},
    {"_address", payload_address, METH_NOARGS, "Where its payload is; 0 when it has none or is freed."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"handle", T_ULONGLONG, offsetof(tlmi_reference, object), READONLY, "The object, as a number."},
    {"_holder", T_ULONGLONG, offsetof(tlmi_reference, holder), 0, "The count that this handle is; 0: only a name."},
    {"_scope", T_ULONGLONG, offsetof(tlmi_reference, scope), 0, "The scope that took it at first; 0: none."},
    {"_span", T_ULONGLONG, offsetof(tlmi_reference, span), 0, "Bytes of the payload that it looks into."},
    {"_device", T_INT, offsetof(tlmi_reference, device), 0, "Number of the device."},
    {"_array", T_OBJECT, offsetof(tlmi_reference, array), 0, "NumPy's view of the payload; None until it is needed."},
    {"_base", T_OBJECT, offsetof(tlmi_reference, owner), 0, "The tensor that a view looks into; None."},
    {"_ended", T_OBJECT, offsetof(tlmi_reference, ended), 0, "Where it was freed or moved by hand; None."},
    {"escaped", T_BOOL, offsetof(tlmi_reference, escaped), 0, "Whether it was taken out of its scope."},
    {"_base_handle", T_ULONGLONG, offsetof(tlmi_reference, base), READONLY, "The base of a view; 0: none."},
    {"_moved", T_BOOL, offsetof(tlmi_reference, moved), 0, "Whether its ownership was given to another handle."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tlmi_reference, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"_made", place_made, NULL, "Where it was made: a code object and an instruction; None: not known.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A name of an object, and a count of it while it holds one."},
    {Py_tp_dealloc, end_reference},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getters},
    {Py_tp_traverse, visit_reference},
    {Py_tp_clear, clear_reference},
#if PY_VERSION_HEX < 0x030C0000
    {Py_bf_getbuffer, tlmi_reference_buffer},
#endif
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tlmem._native.Reference",
    .basicsize = sizeof(tlmi_reference),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

static PyTypeObject *made_type; /* borrowed: the runtime's modules keep it */

PyTypeObject *tlmi_reference_type(void)
{
    return made_type;
}

tlm_status tlm_python_types(uint64_t folder, uint64_t list)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *found = (PyObject *)(uintptr_t)list;
    tlmi_place_init((PyObject *)(uintptr_t)folder);
    PyObject *reference = PyType_FromSpec(&spec);
    PyObject *made[] = {reference, reference ? tlmi_lent_type(reference) : NULL,
                        reference ? tlmi_operand_type(reference) : NULL, tlmi_ops_module()};
    bool fine = true;
    made_type = (PyTypeObject *)reference;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        fine = fine && made[i] != NULL && PyList_Append(found, made[i]) == 0;
        Py_XDECREF(made[i]);
    }
    PyErr_Clear();
    PyGILState_Release(state);
    return fine ? TLM_OK : TLM_NO_MEMORY;
}
