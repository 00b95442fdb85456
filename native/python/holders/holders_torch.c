/* SPDX-License-Identifier: MIT
 * holders_torch.c: PyTorch's tensors in the search for holders: which storage a tensor shows, and its gradient.
 *
 * A tensor is an owner by the address where its storage begins, so views, parameters and NumPy arrays over one storage are
 * one. PyTorch's traversal for the collector leaves out what C++ holds; of that the gradient is followed here. It may have no
 * Python object: such a node is the address of C++'s tensor with TLMI_NATIVE set, is looked into no further, and ends a way.
 *
 * Tensors of another C++ class may consist of dense ones: a sparse one of its indices and values, in the coordinates of PyTorch or
 * in rows. Where such a class has them is found out from the first tensor of the class that is met, as words of it that are
 * addresses of dense tensors; an address is checked with the system before it is followed. Its parts are TLMI_NATIVE nodes too.
 * A quantized tensor is a dense one that has its scale behind its other fields.
 *
 * No getter of a tensor is called: getters run code of the program (torch functions, hooks), make Python objects and give
 * warnings. Fields are read where source_torch.c found them in a tensor of its own; a tensor of another C++ class does not begin
 * with the same table of functions.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

#include "platform/heap.h"
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

static bool is_address(const void *pointer)
{
    return (uintptr_t)pointer > UINT16_MAX && (uintptr_t)pointer % sizeof(void *) == 0;
}

/* ---- classes of tensors that consist of others ---- */

enum { MOST_CLASSES = 16, MOST_PARTS = 4, MOST_TRIES = 4, CLASS_ROOM = 512 };

/* A C++ class by the table of functions that its objects begin with, and where its parts are. */
typedef struct {
    const void *functions;
    uint32_t tries, count, offsets[MOST_PARTS];
    bool is_quantized;
} tensor_class;

static tensor_class classes[MOST_CLASSES]; /* under the GIL, as all here */
static uint32_t classes_count;

/* The description of a type stands before its functions, and has its name as the second word. */
static const void *description_of(const void *functions)
{
    return pointer_at((const char *)functions - sizeof(void *), 0);
}

/* Whether these are the functions of sparse tensors. Others are left alone: not all of them are blocks of the allocator. */
static bool is_sparse(const char *name)
{
    return strstr(name, "SparseTensorImpl") != NULL || strstr(name, "SparseCsrTensorImpl") != NULL;
}

/* NULL: one too many. */
static tensor_class *class_with(const void *functions)
{
    tensor_class *of = classes;
    while (of < classes + classes_count && of->functions != functions)
        of++;
    if (of == classes + MOST_CLASSES)
        return NULL;
    if (of == classes + classes_count) {
        const char *name = pointer_at(description_of(functions), sizeof(void *));
        *of = (tensor_class){.functions = functions,
                             .tries = is_sparse(name) ? MOST_TRIES : 0,
                             .is_quantized = strstr(name, "QTensorImpl") != NULL};
        classes_count++;
    }
    return of;
}

static void find_parts(tensor_class *of, const void *tensor, const tlmi_torch_layout *layout)
{
    size_t room = tlmi_usable_bytes((void *)(uintptr_t)tensor);
    room = room < CLASS_ROOM ? room : CLASS_ROOM;
    for (uint32_t at = layout->count; at + sizeof(void *) <= room && of->count < MOST_PARTS; at += sizeof(void *)) {
        const void *word = pointer_at(tensor, at), *functions;
        if (is_address(word) && tlmi_system_copy(word, &functions, sizeof functions) && functions == layout->functions)
            of->offsets[of->count++] = at;
    }
}

/* NULL: a class without parts, or one too many. The first tensors of a class may have none yet. */
static const tensor_class *class_of(const void *tensor, const tlmi_torch_layout *layout)
{
    tensor_class *of = class_with(pointer_at(tensor, 0));
    if (of == NULL)
        return NULL;
    if (of->count == 0 && of->tries > 0) {
        of->tries--;
        find_parts(of, tensor, layout);
    }
    return of->count > 0 ? of : NULL;
}

/* ---- tensors ---- */

/* C++'s tensor, when it is a dense one, whose fields are known; NULL otherwise. */
static const void *known_tensor(const void *tensor)
{
    const tlmi_torch_layout *layout = tlmi_torch_known();
    return layout != NULL && is_address(tensor) && pointer_at(tensor, 0) == layout->functions ? tensor : NULL;
}

/* The class of a tensor that consists of others; NULL: it does not. */
static const tensor_class *composed(const void *tensor)
{
    const tlmi_torch_layout *layout = tlmi_torch_known();
    bool is_other = layout != NULL && is_address(tensor) && pointer_at(tensor, 0) != layout->functions;
    return is_other ? class_of(tensor, layout) : NULL;
}

/* Whether a storage is the tensor's own, as of dense and quantized ones; `tensor` is one of any class. */
static bool has_storage(const void *tensor)
{
    if (known_tensor(tensor) != NULL)
        return true;
    const tensor_class *of =
        tlmi_torch_known() != NULL && is_address(tensor) ? class_with(pointer_at(tensor, 0)) : NULL;
    return of != NULL && of->is_quantized;
}

/* C++'s tensor of a Python object, or of a node of the graph; NULL: it is not one of those that are known. */
static const void *tensor_at(uintptr_t object)
{
    const void *tensor = object & TLMI_NATIVE ? (const void *)(object & ~TLMI_NATIVE)
                                              : pointer_at((const void *)object, sizeof(PyObject));
    return has_storage(tensor) || composed(tensor) != NULL ? tensor : NULL;
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

static void note_tensor(tlmi_search *search, const void *tensor, uint32_t node);

/* A tensor without a Python object that another one has: its gradient, or a part of it. */
static void meet(tlmi_search *search, const void *tensor, uint32_t node, uint32_t edge)
{
    bool is_known = has_storage(tensor) || composed(tensor) != NULL;
    if (is_known && tlmi_graph_mark(&search->graph, (uintptr_t)tensor))
        note_tensor(search, tensor, tlmi_graph_append(&search->graph, (uintptr_t)tensor | TLMI_NATIVE, node, edge));
}

static void note_tensor(tlmi_search *search, const void *tensor, uint32_t node)
{
    if (has_storage(tensor)) {
        note_storage(search, tensor, node);
        return;
    }
    const tensor_class *of = composed(tensor);
    for (uint32_t i = 0; of != NULL && node != 0 && i < of->count; i++) {
        const void *part = known_tensor(pointer_at(tensor, of->offsets[i]));
        if (part != NULL)
            meet(search, part, node, TLMI_EDGE_PART);
    }
}

void tlmi_search_note_torch(tlmi_search *search, PyObject *object, uint32_t node)
{
    const void *tensor = tensor_at((uintptr_t)object);
    if (tensor != NULL)
        note_tensor(search, tensor, node);
}

void tlmi_search_meet_gradient(tlmi_search *search, PyObject *object, uint32_t node)
{
    const tlmi_torch_layout *layout = tlmi_torch_known();
    const void *tensor = tensor_at((uintptr_t)object);
    const void *const *gradient = tensor != NULL && layout->gradient != NULL ? layout->gradient(tensor) : NULL;
    if (gradient != NULL)
        meet(search, *gradient, node, TLMI_EDGE_GRADIENT);
}

/* The name of a C++ object's type, such as "N5torch8autograd9generated16NllLossBackward0E". */
static const char *type_name_of(const void *object)
{
    return pointer_at(description_of(pointer_at(object, 0)), sizeof(void *));
}

/* The node of the graph that a tensor came from; NULL: none. */
static const void *graph_node_of(uintptr_t object)
{
    const tlmi_torch_layout *layout = tlmi_torch_known();
    const void *tensor = tensor_at(object);
    /* C++'s handle of a tensor is a pointer to it. */
    const void *const *handle = tensor != NULL && layout->graph != NULL ? layout->graph(&tensor) : NULL;
    return handle != NULL ? *handle : NULL;
}

const char *tlmi_torch_graph_of(uintptr_t object)
{
    const void *node = graph_node_of(object);
    return node != NULL ? type_name_of(node) : NULL;
}

uint32_t tlmi_torch_depth_of(uintptr_t object)
{
    const void *node = graph_node_of(object);
    return node != NULL ? tlmi_autograd_depth(node) : 0;
}

const char *tlmi_torch_class_of(uintptr_t object)
{
    return type_name_of(tensor_at(object));
}
#endif
