/* SPDX-License-Identifier: MIT
 * holders_torch.c: PyTorch's tensors in the search for holders: which storage a tensor shows, and its gradient.
 *
 * A tensor is an owner by the address where its storage begins, so views, parameters and NumPy arrays over one storage are
 * one. PyTorch's traversal for the collector leaves out what C++ holds; of that the gradient is followed here. It may have no
 * Python object: such a node is the address of C++'s tensor with TLMI_NATIVE set, is looked into no further, and ends a way.
 *
 * No getter of a tensor is called: getters run code of the program (torch functions, hooks), make Python objects and give
 * warnings. Fields are read where source_torch.c found them in a tensor of its own; a tensor of another C++ class (sparse,
 * functional) does not begin with the same table of functions, and is left out.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

#include "python/sources/sources.h"

static const char *field(const void *of, uint32_t offset)
{
    return (const char *)of + offset;
}

static const void *pointer_at(const void *of, uint32_t offset)
{
    const void *found;
    memcpy(&found, field(of, offset), sizeof found);
    return found;
}

/* C++'s tensor, when it is one whose fields are known; NULL otherwise. */
static const void *known_tensor(const void *tensor)
{
    const tlmi_torch_layout *layout = tlmi_torch_known();
    bool is_address = (uintptr_t)tensor > UINT16_MAX && (uintptr_t)tensor % sizeof(void *) == 0;
    return layout != NULL && is_address && pointer_at(tensor, 0) == layout->functions ? tensor : NULL;
}

static const void *tensor_of(PyObject *object)
{
    return known_tensor(pointer_at(object, sizeof(PyObject)));
}

static uint64_t number_at(const void *of, uint32_t offset)
{
    int64_t found;
    memcpy(&found, field(of, offset), sizeof found);
    return found > 0 ? (uint64_t)found : 0;
}

/* Bytes of the elements that the tensor shows; those of the whole storage when its type is a rare one. */
static uint64_t shown_bytes(const tlmi_torch_layout *layout, const void *tensor, uint64_t storage_bytes)
{
    /* c10::ScalarType: bytes, shorts, ints, longs, half, float, double, complex ones, bool. */
    static const uint8_t item_bytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1};
    enum { BFLOAT16 = 15 };
    uint16_t type;
    memcpy(&type, field(tensor, layout->type), sizeof type);
    uint64_t each = type < sizeof item_bytes ? item_bytes[type] : type == BFLOAT16 ? 2 : 0;
    uint64_t shown = number_at(tensor, layout->count) * each;
    return each == 0 || shown > storage_bytes ? storage_bytes : shown;
}

/* `node`: 0 when it was met before. */
static void note_storage(tlmi_search *search, const void *tensor, uint32_t node)
{
    const tlmi_torch_layout *layout = tlmi_torch_known();
    const void *storage = pointer_at(tensor, layout->storage);
    if ((uintptr_t)storage <= UINT16_MAX)
        return;
    uint64_t address = (uintptr_t)pointer_at(storage, layout->data), bytes = number_at(storage, layout->bytes);
    int8_t device[2]; /* type and index */
    memcpy(device, field(storage, layout->device), sizeof device);
    if (address == 0 || bytes == 0)
        return;
    bool is_host = device[0] == 0;
    if (!is_host)
        address |= (uint64_t)(device[1] < 0 ? 0 : device[1]) << TLMI_ACCELERATOR_SHIFT;
    uint8_t of = is_host ? TLM_DEVICE_TORCH : TLM_DEVICE_TORCH_ACCELERATOR;
    tlmi_owner *owner = tlmi_graph_owner(&search->graph, of, address);
    if (owner == NULL)
        return;
    if (owner->held_bytes == 0)
        owner->held_bytes = bytes;
    uint64_t shown = shown_bytes(layout, tensor, bytes);
    if (node != 0)
        owner->seen_bytes += shown;
    owner->is_direct = owner->is_direct || shown == bytes;
    if (node != 0 && owner->node == 0) {
        owner->node = node;
        search->found_bytes += is_host ? bytes : 0;
    }
}

void tlmi_search_find_torch(tlmi_search *search)
{
    PyObject *module = tlmi_torch_known() == NULL ? NULL : tlmi_find_text_key(PyImport_GetModuleDict(), "torch._C");
    PyObject *dict = module != NULL && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
    PyObject *type = dict == NULL ? NULL : tlmi_find_text_key(dict, "TensorBase");
    search->torch_type = type != NULL && PyType_Check(type) ? (PyTypeObject *)type : NULL;
}

void tlmi_search_note_torch(tlmi_search *search, PyObject *object, uint32_t node)
{
    const void *tensor = tensor_of(object);
    if (tensor != NULL)
        note_storage(search, tensor, node);
}

void tlmi_search_meet_gradient(tlmi_search *search, PyObject *object, uint32_t node)
{
    const tlmi_torch_layout *layout = tlmi_torch_known();
    const void *tensor = tensor_of(object);
    const void *const *gradient = tensor != NULL && layout->gradient != NULL ? layout->gradient(tensor) : NULL;
    const void *found = gradient != NULL ? known_tensor(*gradient) : NULL;
    if (found == NULL || !tlmi_graph_mark(&search->graph, (uintptr_t)found))
        return;
    uint32_t own = tlmi_graph_append(&search->graph, (uintptr_t)found | TLMI_NATIVE, node, TLMI_EDGE_GRADIENT);
    note_storage(search, found, own);
}

const char *tlmi_torch_graph_of(uintptr_t object)
{
    const tlmi_torch_layout *layout = tlmi_torch_known();
    /* C++'s handle of a tensor is a pointer to it; a Python object has one. */
    const void *tensor = object & TLMI_NATIVE ? (const void *)(object & ~TLMI_NATIVE) : tensor_of((PyObject *)object);
    const void *const *handle = tensor != NULL && layout->graph != NULL ? layout->graph(&tensor) : NULL;
    const void *graph_node = handle != NULL ? *handle : NULL;
    if (graph_node == NULL)
        return NULL;
    /* The table of functions of a C++ object has its type's description before it, and that its name, "...16NllLossBackward0E". */
    const void *functions = pointer_at(graph_node, 0);
    const void *description = pointer_at((const char *)functions - sizeof(void *), 0);
    return pointer_at(description, sizeof(void *));
}
#endif
