/* SPDX-License-Identifier: MIT
 * pybuffer.c: payloads as Python buffers: memory that is lent out holds its object until the last borrower is gone.
 */
#include "python/tensor/pyreference.h"

/* Memory of an object as a buffer of bytes. It holds the object as EXPORT, so the payload stays while a borrower, who keeps
 * a reference to the exporter, lives. */
typedef struct {
    tlmi_reference reference;
    void *payload;
    uint64_t bytes;
    char readonly;
} lent_memory;

int tlmi_reference_buffer(PyObject *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    PyObject *memory = PyObject_CallMethod(self, "__buffer__", "i", flags);
    if (memory == NULL)
        return -1;
    int result = PyObject_GetBuffer(memory, view, flags);
    Py_DECREF(memory);
    return result;
}

/* The object whose memory a borrower of `object` gets: the base of a view. *fleeting: that memory is an arena's or a slot's;
 * it goes with its scope or frame, and a borrower would be left with none. */
static tlm_object owner_of_memory(tlm_object object, bool *fleeting)
{
    tlm_object_info info;
    *fleeting = false;
    if (tlm_object_describe(object, &info) != TLM_OK)
        return object;
    tlm_object owner = info.base != 0 ? info.base : object;
    if (tlm_object_describe(owner, &info) == TLM_OK)
        *fleeting = (info.flags & TLM_FLAG_ARENA) != 0 || info.type == TLM_OBJECT_BUFFER;
    return owner;
}

static PyObject *lend(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    lent_memory *self = (lent_memory *)object;
    if (count != 3 || self->reference.holder != 0)
        return PyErr_Format(PyExc_TypeError, "expected a handle, bytes and a truth value, once");
    tlm_object handle = PyLong_AsUnsignedLongLong(given[0]);
    uint64_t bytes = PyLong_AsUnsignedLongLong(given[1]);
    int readonly = PyObject_IsTrue(given[2]);
    if (PyErr_Occurred())
        return NULL;
    tlm_holder holder = TLM_HOLDER(TLM_HOLDER_EXPORT, tlm_holder_number(1));
    bool fleeting;
    tlm_object owner = owner_of_memory(handle, &fleeting);
    tlm_status status = fleeting ? TLM_IN_ARENA : tlm_check(handle);
    if (status == TLM_OK)
        status = tlm_acquire(owner, holder);
    if (status == TLM_OK) {
        self->reference.object = owner;
        self->reference.holder = holder;
        self->payload = tlm_payload(owner);
        self->bytes = self->payload != NULL ? bytes : 0;
        self->readonly = (char)readonly;
    }
    return PyLong_FromLong((long)status);
}

static int give_buffer(PyObject *object, Py_buffer *view, int flags)
{
    static char nothing[64];
    lent_memory *self = (lent_memory *)object;
    void *start = self->payload != NULL ? self->payload : nothing;
    return PyBuffer_FillInfo(view, object, start, (Py_ssize_t)self->bytes, self->readonly, flags);
}

static PyMethodDef methods[] = {
    {"_lend", (PyCFunction)(void (*)(void))lend, METH_FASTCALL,
     "_lend(object, bytes, readonly): holds the object and is a buffer of its payload; the status."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Memory that is lent out; it holds its object as long as it lives."},
    {Py_tp_methods, methods},
    {Py_bf_getbuffer, give_buffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tlmem._native.Lent",
    .basicsize = sizeof(lent_memory),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

PyObject *tlmi_lent_type(PyObject *reference_type)
{
    return PyType_FromSpecWithBases(&spec, reference_type);
}

/* ---- memory that is being computed on ---- */

/* Memory that stays where it is while an array over it lives, whoever frees the object meanwhile. */
typedef struct {
    PyObject_HEAD tlm_object pinned;
    void *payload;
    Py_ssize_t bytes;
} pinned_memory;

static int give_pinned(PyObject *object, Py_buffer *view, int flags)
{
    const pinned_memory *self = (pinned_memory *)object;
    return PyBuffer_FillInfo(view, object, self->payload, self->bytes, 0, flags);
}

static void end_pinned(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    tlm_unpin(((pinned_memory *)object)->pinned);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyType_Slot pinned_slots[] = {
    {Py_tp_doc, "Memory that is being computed on."},
    {Py_tp_dealloc, end_pinned},
    {Py_bf_getbuffer, give_pinned},
    {0, NULL},
};

static PyType_Spec pinned_spec = {
    .name = "tlmem._native.Pinned",
    .basicsize = sizeof(pinned_memory),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = pinned_slots,
};

PyObject *tlmi_pinned_memory(tlm_object object, Py_ssize_t bytes)
{
    static char nothing[64];
    static PyTypeObject *type; /* under the GIL */
    if (type == NULL && (type = (PyTypeObject *)PyType_FromSpec(&pinned_spec)) == NULL)
        return NULL;
    pinned_memory *memory = (pinned_memory *)type->tp_alloc(type, 0);
    if (memory == NULL)
        return NULL;
    void *payload = tlm_pin(object, &memory->pinned);
    memory->payload = payload != NULL ? payload : nothing;
    memory->bytes = payload != NULL ? bytes : 0;
    return (PyObject *)memory;
}
