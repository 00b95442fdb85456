/* SPDX-License-Identifier: MIT
 * holders.h: what the files of the search for holders share: which Python objects hold live arrays, by which names.
 *
 * A search walks forward from roots: modules, frames of threads, exceptions. It holds the GIL from its begin to its end, runs
 * no Python code, asks Python for no memory and changes no object, count or list of the collector.
 * Order: graph < groups < edges < roots, names, kinds < snapshot < when.
 */
#ifndef TLMI_HOLDERS_H
#define TLMI_HOLDERS_H

#include "python/stack/pyinside.h"

#include "log/log.h"
#include "python/holders/holders_groups.h"
#include "tlmem_python.h"

#ifdef PYINSIDE_KNOWN

/* How an object is looked into; found by its type. */
typedef enum {
    TLMI_LEAF = 1, /* refers to nothing that matters */
    TLMI_ANY,      /* by its tp_traverse */
    TLMI_DICT,
    TLMI_LIST,
    TLMI_TUPLE,
    TLMI_SET,
    TLMI_DEQUE,
    TLMI_MODULE,
    TLMI_TYPE,
    TLMI_FUNCTION,
    TLMI_CELL,
    TLMI_FRAME,
    TLMI_GENERATOR,
    TLMI_TRACEBACK,
    TLMI_EXCEPTION,
    TLMI_LRU_CACHE,
    TLMI_THREAD_LOCAL,
    TLMI_BOUND, /* methods, partial functions */
    TLMI_DESCRIPTOR,
    TLMI_MEMORYVIEW,
    TLMI_ARRAY,
    TLMI_TENSOR, /* a Reference of the runtime */
    TLMI_TORCH,  /* a tensor of PyTorch */
    TLMI_OPTIMIZER,
} tlmi_kind;

/* Where a chain begins. */
typedef enum {
    TLMI_ROOT_MODULE = 1, /* the object is the module's dict */
    TLMI_ROOT_FRAME,      /* the object is a frame, see TLMI_RUNNING */
    TLMI_ROOT_THREAD,     /* a dict or an object that belongs to a thread's state */
    TLMI_ROOT_ERROR,      /* an exception that is on its way, or being handled */
    TLMI_ROOT_GLOBALS,    /* globals of a running function that belong to no module */
    TLMI_ROOT_CYCLE,      /* an object that only a reference cycle keeps */
    TLMI_ROOT_UNSEEN,     /* an object that nothing which was met refers to */
    TLMI_ROOT_GENERATOR,  /* such a one that tells by itself what it is */
    TLMI_ROOT_EXIT,       /* a function that atexit will call, or arguments of one */
} tlmi_root_kind;

typedef struct {
    tlmi_root_kind kind;
    PyObject *name;                   /* of the module; borrowed */
    uint32_t ring;                    /* of a cycle: where its objects begin in the search's `ring`, */
    uint32_t ring_count, ring_length; /* how many are there, and how many it has */
} tlmi_root;

/* An interpreter's frame is not an object; its address is even. */
#define TLMI_RUNNING ((uintptr_t)1)
/* A tensor of C++ that need not have a Python object. Neither it nor a frame may be looked at as an object. */
#define TLMI_NATIVE ((uintptr_t)2)
#define TLMI_NO_OBJECT (TLMI_RUNNING | TLMI_NATIVE)

/* Edges. Of a dict: position of the entry; of a list, a tuple, a frame: index; of others: how many were visited before. */
#define TLMI_EDGE_KEY 0x80000000u      /* the entry's key, not its value */
#define TLMI_EDGE_GRADIENT 0x50000000u /* of a tensor of PyTorch: its gradient */
#define TLMI_EDGE_PART 0x60000000u  /* of a tensor of PyTorch: one that it consists of, such as a sparse one's values */
#define TLMI_EDGE_VISIT 0x40000000u /* of a list, dict or tuple: not an item, visited by its tp_traverse */

enum {
    TLMI_TYPE_SLOTS = 4096,
    TLMI_CONTAINERS = 32,
    TLMI_TYPES = 64,
    TLMI_TOGETHER = 64,
    TLMI_AHEAD = 2 * TLMI_TOGETHER,
    TLMI_REFERENCES_PER_PIECE = 64 * TLMI_TOGETHER
};

/* A reference that was found and is not followed yet. The object's address has TLMI_OF_VIEW set where an array that shows
 * another's memory refers to it, TLMI_NATIVE where the gradient of this tensor is meant, and TLMI_ITEMS where all that this
 * object, which is the parent, refers to is meant: a large container would fill the queue. */
typedef struct {
    uintptr_t object;
    uint32_t parent, edge;
} tlmi_found;
#define TLMI_OF_VIEW ((uintptr_t)1)
#define TLMI_ITEMS ((uintptr_t)4)
#define TLMI_MARKS (TLMI_OF_VIEW | TLMI_NATIVE | TLMI_ITEMS)

/* Part of a queue of references. */
typedef struct tlmi_piece {
    struct tlmi_piece *next;
    tlmi_found found[TLMI_REFERENCES_PER_PIECE];
} tlmi_piece;

/* References in the order in which they were found, which is that of a breadth-first search. */
typedef struct {
    tlmi_piece *first, *last, *spare; /* spare ones were read to their ends */
    uint32_t begin, end;              /* of what waits: in the first piece, in the last one */
    uint32_t fetched;                 /* in the first piece: the processor was asked for the objects */
} tlmi_queue;

typedef struct {
    PyObject *name, *dict;
    PyObject *file; /* NULL: none */
    bool is_own;    /* the program's, not a library's */
} tlmi_module;

/* An array or a tensor that was met, now (node) or before (0). */
typedef struct {
    PyObject *object;
    uint32_t node;
    tlmi_kind kind;
    bool is_of_view; /* met from an array that shows another's memory */
} tlmi_noted;

/* A container that was met, and how many items it has. */
typedef struct {
    uint32_t node;
    uint64_t items;
} tlmi_container;

typedef struct {
    PyTypeObject *type; /* borrowed */
    uint64_t objects;
    bool is_lru_cache;
} tlmi_type_count;

typedef struct {
    tlmi_graph graph;
    tlmi_root *roots;
    uint32_t roots_count, roots_room;
    tlmi_queue queue;
    uint32_t passed; /* objects that led to nothing which was not known: they have no node */
    uint32_t *later; /* nodes of code: looked into when all data of the program has been */
    uint32_t later_count, later_room, later_next;
    bool is_code_next;
    uint64_t deadline_ns;  /* CPU time of this thread */
    uint32_t until_clock;  /* references until the clock is looked at again */
    bool is_late;          /* the time was up: what there is is right, but not all */
    uint32_t parent;       /* the node that is being looked into */
    uintptr_t parent_mark; /* TLMI_OF_VIEW or 0 */
    tlmi_module *modules;
    uint32_t modules_count, modules_room;
    PyTypeObject *array_type, *tensor_type, *torch_type; /* NULL: there are none */
    uint64_t array_version;
    uint64_t found_bytes;                       /* of owners that were met */
    uint64_t enough_bytes;                      /* of them: no further module is looked into */
    bool is_elsewhere;                          /* what is met is no longer the program's own */
    tlmi_container containers[TLMI_CONTAINERS]; /* the largest of the program's own, in no order */
    uint32_t containers_count;
    uint32_t smallest;                 /* of them, when there is no room for more */
    tlmi_type_count types[TLMI_TYPES]; /* with most objects, most first */
    uint32_t types_count;
    uint64_t cached_items, cached_most; /* of the lru_caches that are bounded */
    uintptr_t *ring;                    /* objects of cycles */
    uint32_t ring_count, ring_room;
    struct {
        PyTypeObject *type;
        tlmi_kind kind;
    } kinds[TLMI_TYPE_SLOTS];
    uint32_t kinds_count;
} tlmi_search;

/* ---- holders_edges.c: types ---- */
void tlmi_search_find_types(tlmi_search *search);
tlmi_kind tlmi_search_find_kind(tlmi_search *search, PyTypeObject *type, uint32_t place);
static inline tlmi_kind tlmi_search_kind(tlmi_search *search, PyTypeObject *type)
{
    uint32_t place = tlmi_graph_home((uintptr_t)type, TLMI_TYPE_SLOTS - 1);
    return search->kinds[place].type == type ? search->kinds[place].kind : tlmi_search_find_kind(search, type, place);
}

PyObject *tlmi_array_base(PyObject *array); /* borrowed; NULL: none */
/* Elements, when they are references in one piece of memory; NULL otherwise. */
PyObject **tlmi_array_objects(PyObject *array, uint64_t *count);

/* ---- holders_edges.c: references ---- */
bool tlmi_search_is_late(tlmi_search *search);
/* Looks into a node that was just made, whose object has its kind already. */
void tlmi_search_look_into(tlmi_search *search, uint32_t node);
/* Follows every reference that waits, and looks into what is met, but for code. */
void tlmi_search_drain(tlmi_search *search);
void tlmi_search_close_queue(tlmi_search *search);
/* Looks into classes of the program's own modules, and what functions there keep for themselves. */
void tlmi_search_drain_own_code(tlmi_search *search);
/* Looks into all nodes of code, too, from now on. */
void tlmi_search_drain_code(tlmi_search *search);
/* Calls visit for every object that the object refers to, with the edge; stops when it returns anything but 0. */
typedef int (*tlmi_meet)(void *context, PyObject *child, uint32_t edge);
int tlmi_search_each_child(tlmi_search *search, uintptr_t object, tlmi_meet meet, void *context);
/* Looks into a node as late as into optimizers of PyTorch. */
void tlmi_search_put_off(tlmi_search *search, uint32_t node);
/* Counts a root that is an array or a tensor itself. */
void tlmi_search_note(tlmi_search *search, PyObject *object, uint32_t node);

/* ---- holders_torch.c ---- */
void tlmi_search_find_torch(tlmi_search *search);
/* Counts the storage that a tensor shows, and those of the tensors that it consists of; node 0: the tensor was met before. */
void tlmi_search_note_torch(tlmi_search *search, PyObject *object, uint32_t node);
/* Meets the gradient of the tensor at the node. */
void tlmi_search_meet_gradient(tlmi_search *search, PyObject *object, uint32_t node);
/* The C++ name of the node of the autograd graph that a tensor, of Python or TLMI_NATIVE, came from and keeps; NULL: none. */
const char *tlmi_torch_graph_of(uintptr_t object);
/* How many nodes the longest way through that graph passes. */
uint32_t tlmi_torch_depth_of(uintptr_t object);
/* The C++ name of the class of a tensor, of Python or TLMI_NATIVE, that consists of others. */
const char *tlmi_torch_class_of(uintptr_t object);

/* ---- holders_roots.c ---- */
/* The program's modules, its threads and the exception. `elsewhere`: beginnings of paths, one after another, of modules that
 * are not the program's own; an empty one ends them. */
void tlmi_search_own_roots(tlmi_search *search, const char *elsewhere, PyObject *error);
void tlmi_search_other_roots(tlmi_search *search);

/* ---- holders_roots.c: what no root reaches ---- */
/* Generators that no root reaches. A loop has its generator among its frame's temporary values, which cannot always be read. */
void tlmi_search_generators(tlmi_search *search);
/* What the collector follows and no root reaches. */
void tlmi_search_unreached(tlmi_search *search);

/* ---- holders_names.c ---- */
/* The value of a key in a dict, found without hashing; borrowed, NULL: it has none. */
PyObject *tlmi_find_text_key(PyObject *dict, const char *key);
#define TLMI_EDGE_UNKNOWN 0x7FFFFFFFu
/* Whether the keys of a dict are names of attributes or variables, so that each of them is told. */
bool tlmi_search_is_namespace(tlmi_search *search, const tlmi_node *dict);
/* What makes an edge the same as another one: tlmi_liken for tlmi_groups_open. */
tlmi_likeness tlmi_search_liken(void *search, uint32_t node);
enum { TLMI_MOST_STEPS = 32, TLMI_EDGE_ROOM = 255, TLMI_TYPE_ROOM = 700, TLMI_WAY_ROOM = 128 };
typedef struct {
    uint8_t kind, edge_bytes;
    uint16_t type_bytes;
    uint32_t items;
    char edge[TLMI_EDGE_ROOM];
    char type[TLMI_TYPE_ROOM];
} tlmi_step;
typedef struct {
    uintptr_t object;
    uint32_t edge;  /* to it, from the one before */
    bool is_varied; /* others of the group have another edge here */
} tlmi_stop;
/* What a step is; docs/format.md has the numbers. */
enum {
    TLMI_STEP_MODULE = 1,
    TLMI_STEP_FRAME = 2,
    TLMI_STEP_CLOSURE = 3,
    TLMI_STEP_CLASS = 4,
    TLMI_STEP_DICT = 5,
    TLMI_STEP_LIST = 6,
    TLMI_STEP_TUPLE = 7,
    TLMI_STEP_SET = 8,
    TLMI_STEP_DEQUE = 9,
    TLMI_STEP_INSTANCE = 10,
    TLMI_STEP_LRU_CACHE = 11,
    TLMI_STEP_GENERATOR = 12,
    TLMI_STEP_EXCEPTION = 13,
    TLMI_STEP_VIEW = 14,
    TLMI_STEP_OBJECT_ARRAY = 15,
    TLMI_STEP_BOUND = 16,
    TLMI_STEP_CYCLE = 17,
    TLMI_STEP_OTHER = 18,
    TLMI_STEP_THREAD = 19,
    TLMI_STEP_GRAPH = 20, /* the last one: the tensor keeps the autograd graph that it came from */
    TLMI_STEP_EXIT = 21,
};
/* Steps along the objects, the last of which is the array and none itself, unless it keeps a graph; how many. `out` has room for TLMI_MOST_STEPS. */
uint32_t tlmi_name_way(tlmi_search *search, const tlmi_root *root, const tlmi_stop *way, uint32_t count,
                       tlmi_step *out);

/* The name of a type, as a step of an instance without an edge. */
void tlmi_name_type(PyTypeObject *type, tlmi_step *out);

/* ---- holders_tracked.c ---- */
/* Every object that the collector follows, in no order that means anything. false: none was visited, as it is at work just now. */
bool tlmi_search_each_tracked(const tlmi_search *search, pyinside_visit visit, void *context);

/* ---- holders_kinds.c ---- */
/* Finds the types of which the collector follows most objects. None are found where that takes longer than until a moment of this
 * thread's CPU time. */
void tlmi_search_count_types(tlmi_search *search, uint64_t until_ns);

/* ---- holders_snapshot.c: the record ---- */
typedef struct {
    uint32_t number;
    uint8_t trigger;
    uint64_t found_bytes;                         /* known afterwards */
    uint64_t begin_ns, tracked_bytes, room_bytes; /* begin: CPU time of this thread */
} tlmi_snapshot;

/* ---- holders_snapshot.c: the search ---- */
typedef struct {
    uint64_t limit_ns;
    bool may_stop; /* as soon as nearly everything that is tracked was found */
    bool counts_types;
    const char *elsewhere;
    PyObject *error;          /* borrowed; NULL: none */
    uint32_t objects, owners; /* of the search before this one */
} tlmi_search_request;
/* One search from begin to end. false: no memory, nothing was written. */
bool tlmi_search_run(const tlmi_search_request *request, tlmi_snapshot *snapshot, uint32_t *objects, uint32_t *owners,
                     uint64_t *bytes);
#endif
#endif
