/* SPDX-License-Identifier: MIT
 * pyresults.c: Python tensors of what an op computed or a tape holds, in the scope in force or in none.
 *
 * The scope in force is that of the running task: whoever makes a tensor, or asks for the mode of recording, settles first.
 * All under the GIL.
 */
#include "python/tensor/pyops.h"

int tlmi_ops_settle(void)
{
    static PyObject *module_name, *modules, *running_loop;
    if (running_loop == NULL) {
        if (module_name == NULL && (module_name = PyUnicode_InternFromString("asyncio")) == NULL)
            return -1;
        if (modules == NULL && (modules = PySys_GetObject("modules")) == NULL)
            return 0;
        PyObject *asyncio = PyDict_GetItem(modules, module_name);
        if (tlmi_likely(asyncio == NULL))
            return 0;
        running_loop = PyObject_GetAttrString(asyncio, "_get_running_loop");
        if (running_loop == NULL)
            PyErr_Clear(); /* half imported */
    }
    if (running_loop != NULL) {
        PyObject *loop = PyObject_CallNoArgs(running_loop);
        bool none = loop == Py_None;
        Py_XDECREF(loop);
        if (loop == NULL)
            return -1;
        tlm_context *in_force = tlm_context_switch(NULL);
        if (tlmi_likely(none && in_force == NULL))
            return 0;
        tlm_context_switch(in_force);
    }
    PyObject *result = PyObject_CallNoArgs(tlmi_side.settle);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

static bool shows_one_often(const tlm_tensor *tensor)
{
    for (int axis = 0; axis < tensor->axes; axis++)
        if (tensor->strides[axis] == 0 && tensor->shape[axis] > 1)
            return true;
    return false;
}

/* The tensor looks into the memory of another one, and holds it. */
static tlm_status look_into(tlmi_reference *made, tlmi_reference *other, tlm_object *object)
{
    PyObject *owner = other->owner != NULL && other->owner != Py_None ? other->owner : (PyObject *)other;
    tlm_status status = tlm_object_view(made->tensor.object, object);
    if (status != TLM_OK)
        return status;
    Py_INCREF(owner);
    made->owner = owner;
    made->base = made->tensor.object;
    made->span = other->span;
    made->readonly = other->readonly || shows_one_often(&made->tensor);
    return TLM_OK;
}

/* A Python tensor that names no object yet; NULL with an exception. */
static tlmi_reference *new_tensor(const tlm_tensor *tensor)
{
    tlmi_reference *made = (tlmi_reference *)tlmi_side.tensor_class->tp_alloc(tlmi_side.tensor_class, 0);
    if (made == NULL)
        return NULL;
    made->tensor = *tensor;
    made->device = (int)tensor->device;
    made->dtype = tlmi_dtype_names[tensor->dtype];
    Py_INCREF(made->dtype);
    made->span = (uint64_t)(ops_elements(tensor) * ops_item_bytes(tensor->dtype));
    made->code = tlmi_place_here(&made->instruction);
    return made;
}

PyObject *tlmi_ops_name_held(const tlm_tensor *tensor)
{
    tlm_object_info info;
    tlm_holder handle = TLM_HOLDER(TLM_HOLDER_HANDLE, tlm_holder_number(1));
    tlmi_reference *made = new_tensor(tensor);
    if (made == NULL)
        return NULL;
    tlm_status status = tlm_acquire(tensor->object, handle);
    if (status != TLM_OK) {
        Py_DECREF(made);
        return tlmi_ops_raise((int)status, "use what a tape holds", 0, NULL, "");
    }
    made->object = tensor->object;
    made->holder = handle;
    made->described = 1;
    if (tlm_object_describe(tensor->object, &info) == TLM_OK)
        made->span = info.bytes;
    made->readonly = shows_one_often(tensor);
    return (PyObject *)made;
}

tlmi_reference *tlmi_ops_name_seen(const tlm_tensor *tensor, tlmi_reference *other)
{
    tlmi_reference *made = new_tensor(tensor);
    if (made == NULL)
        return NULL;
    made->object = other->object;
    made->base = other->base;
    made->span = other->span;
    made->readonly = other->readonly || shows_one_often(tensor);
    made->owner = Py_NewRef(other);
    made->described = 1;
    return made;
}

tlmi_reference *tlmi_ops_tensor(const tlm_tensor *out, tlmi_reference *view_of, uint64_t scope)
{
    tlm_object object = view_of == NULL ? out->object : 0;
    tlmi_reference *made = new_tensor(out);
    tlm_status status = TLM_OK;
    if (made != NULL) {
        if (view_of != NULL)
            status = look_into(made, view_of, &object);
        if (status == TLM_OK)
            status = tlmi_reference_take(made, object, scope);
        if (tlmi_likely(status == TLM_OK)) {
            made->described = 1;
            return made;
        }
        Py_DECREF(made);
        tlmi_ops_raise(status, "make the result of an operation", 0, NULL, "");
    }
    if (object != 0)
        tlm_release(object, TLM_HOLDER(TLM_HOLDER_FLOATING, 0));
    return NULL;
}
