/* SPDX-License-Identifier: MIT
 * sources.h: memory of others in the process: NumPy's arrays, PyTorch's tensors, Python's own heap, the C allocator.
 */
#ifndef TLMI_SOURCES_H
#define TLMI_SOURCES_H

#include "log/log.h"
#include "tlmem_python.h"

/* ---- source_numpy.c ---- */
/* NumPy's module with its allocator was just imported. */
bool tlmi_numpy_is_module(const char *name);

/* ---- source_torch.c ---- */
bool tlmi_torch_is_module(const char *name);
/* Libraries may have been loaded since. Cheap when none were. */
void tlmi_torch_look_again(void);

enum { TLMI_ACCELERATOR_SHIFT = 56 }; /* of an address, where the number of its accelerator is */

/* Where a tensor has what, found out from one when the source is installed; a handle is C++'s at::Tensor. */
typedef struct {
    const void *functions;                              /* that a dense tensor begins with */
    uint32_t storage, count, type;                      /* offsets in it: storage, elements, their type */
    uint32_t data, bytes, device;                       /* in the storage */
    const void *const *(*gradient)(const void *tensor); /* the handle of its gradient; NULL: not known */
    const void *const *(*graph)(const void *handle);    /* the node of the graph; NULL: not known */
} tlmi_torch_layout;
/* NULL: no PyTorch, or another one. Under the GIL. */
const tlmi_torch_layout *tlmi_torch_known(void);

/* ---- torch_modes.c ---- */
/* Under the GIL; tlm_torch_look_at_modes does nothing before the one and after the other. */
void tlmi_torch_modes_open(void);
void tlmi_torch_modes_close(void);

/* ---- module_paths.c ---- */
/* Records in which module the calling thread allocates, directly after the block's own event; false: in none. Never waits for
 * the GIL. */
bool tlmi_modules_note(uint8_t device, uint64_t object);
/* At other events: a thread that has met modules without the GIL finds their names when it has it. */
extern __thread uint32_t tlmi_modules_owed;
void tlmi_modules_pay(void);
static inline void tlmi_modules_settle(void)
{
    if (tlmi_unlikely(tlmi_modules_owed != 0))
        tlmi_modules_pay();
}
/* Finds the names that are still missing. Under the GIL, before a recording ends. */
void tlmi_modules_close(void);

/* ---- autograd_numbers.c ---- */
/* Stands in the slots of the engine's function that evaluates one node, TLMI_AUTOGRAD_EVALUATE. */
#define TLMI_AUTOGRAD_EVALUATE                                                                                         \
    "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_" \
    "INS0_10ReadyQueueEE"
void tlmi_autograd_evaluate(void *engine, void *task, void *node, void *inputs, const void *queue);
/* Before that, with the function; false: numbers cannot be had. */
bool tlmi_autograd_open(void *evaluate);
/* Records the number of the graph's node that the block is due to, after the block's other events. */
void tlmi_autograd_note(uint8_t device, uint64_t object, bool is_in_module);
/* How many nodes the longest way from a node to the end of its graph passes; 0: none, or not known. */
uint32_t tlmi_autograd_depth(const void *node);

/* ---- live_blocks.c: what arrays and tensors have in common ---- */
/* Between both, blocks are kept. Each source calls them once; all is forgotten before the first and after the last. */
void tlmi_live_open(void);
void tlmi_live_close(void);
/* Adds to the sum of live bytes; negative for a free. */
static inline void tlmi_live_tally(int64_t bytes);
/* Allocated less freed, to about 16 kB a thread: for deciding when to look again, not for a report. */
int64_t tlmi_live_bytes(void);
/* Keeps the size of a block, or forgets it and returns it; 0: it was not kept. */
void tlmi_live_keep(uintptr_t block, uint64_t bytes);
uint64_t tlmi_live_forget(uintptr_t block);
uint64_t tlmi_live_size(uintptr_t block);
/* Pages of large kept blocks that were never touched, in bytes. known: whether a source is there and the time was enough. */
uint64_t tlmi_live_untouched_bytes(uint64_t budget_ns, bool *known);

/* Blocks from here on are worth asking the kernel which of their pages were ever touched. */
enum { TLMI_LARGE_BYTES = 1 << 20 };

enum { TLMI_TALLY_STEP = 16 * 1024 };
extern __thread int64_t tlmi_live_own; /* of this thread, not added up yet */
void tlmi_live_add_up(void);
static inline void tlmi_live_tally(int64_t bytes)
{
    tlmi_live_own += bytes;
    if (tlmi_unlikely(tlmi_live_own > TLMI_TALLY_STEP || tlmi_live_own < -TLMI_TALLY_STEP))
        tlmi_live_add_up();
}

/* ---- source_heap.c ---- */
enum { TLMI_HEAP_SPANS = 1 << 22, TLMI_HEAP_SPAN_SHIFT = 10 }; /* of 4 GB of addresses each 1 KB has its own */
extern __thread uint64_t tlmi_heap_left;                       /* bytes to the next chosen one */
extern _Atomic uint8_t tlmi_heap_spans[TLMI_HEAP_SPANS];       /* how many samples begin in a span */
/* The count of an allocation's event: who asked, and where the block lies. The first two came from malloc. */
typedef enum { TLMI_HEAP_NATIVE = 1, TLMI_HEAP_PYTHON, TLMI_HEAP_ARENA, TLMI_HEAP_MAPPING } tlmi_heap_owner;
enum { TLMI_HEAP_RESIZED = 8 };              /* added to it: the block that this thread freed just before, resized */
extern __thread uint64_t tlmi_objects_ended; /* of a block that is being resized: its bytes, 0: not a sample */
/* After a count went below 0: what comes next. true: the block of so many bytes is to be recorded. */
bool tlmi_heap_choose(uint64_t *left, size_t bytes);
/* A chosen block that is there; NULL for none. */
void tlmi_heap_record(void *block, size_t bytes, tlmi_heap_owner owner);
/* Both, of blocks that tlmi_heap_is_due has counted. */
void tlmi_heap_sample(void *block, size_t bytes, tlmi_heap_owner owner);
uint64_t tlmi_heap_end(void *block);
/* The block is still there: its end failed. */
void tlmi_heap_restore(void *block, uint64_t bytes, tlmi_heap_owner owner);
/* A sampled block that came before the first frame of its stack gets the site of what its thread allocates next. Others keep theirs. */
void tlmi_heap_await_frame(void *block);
void tlmi_heap_look_again(void);
static inline uintptr_t tlmi_heap_span(uintptr_t block)
{
    return (uint32_t)block >> TLMI_HEAP_SPAN_SHIFT;
}
_Static_assert(TLMI_HEAP_SPANS == UINT64_C(1) << (32 - TLMI_HEAP_SPAN_SHIFT), "a span's number has as many bits");
/* gcc subtracts in a register and loads an atomic byte before it compares it; in memory each is one instruction. */
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(__SANITIZE_THREAD__)
#define TLMI_IN_MEMORY 1
#else
#define TLMI_IN_MEMORY 0
#endif
/* Counts the bytes of a block. true: call tlmi_heap_sample when it is there. */
static inline bool tlmi_heap_is_due(size_t bytes)
{
#if TLMI_IN_MEMORY
    bool is_due;
    __asm__("subq %2, %0" : "+m"(tlmi_heap_left), "=@ccc"(is_due) : "r"(bytes));
    return tlmi_unlikely(is_due);
#else
    return tlmi_unlikely(__builtin_sub_overflow(tlmi_heap_left, bytes, &tlmi_heap_left));
#endif
}
/* After a block came; NULL for none. */
static inline void tlmi_heap_meet(void *block, size_t bytes, tlmi_heap_owner owner)
{
    if (tlmi_heap_is_due(bytes))
        tlmi_heap_sample(block, bytes, owner);
}
/* Whether a block may be a sample: one begins in its span, or in one like it. */
static inline bool tlmi_heap_may_have(const void *block)
{
    uintptr_t span = tlmi_heap_span((uintptr_t)block);
#if TLMI_IN_MEMORY
    bool may_have;
    __asm__ volatile("cmpb $0, %1" : "=@ccne"(may_have) : "m"(tlmi_heap_spans[span]));
    return tlmi_unlikely(may_have);
#else
    return tlmi_unlikely(atomic_load_explicit(&tlmi_heap_spans[span], memory_order_relaxed) != 0);
#endif
}
/* Whether a block is a sample. */
bool tlmi_heap_has(const void *block);
/* Before a block goes. Returns its size if it was a sample, else 0. */
static inline uint64_t tlmi_heap_gone(void *block)
{
    return tlmi_heap_may_have(block) ? tlmi_heap_end(block) : 0;
}

/* ---- source_objects.c ---- */
extern __thread uint64_t tlmi_objects_left; /* as tlmi_heap_left, of Python's small objects */
/* Under the GIL, while counts are not in use. Returns how they are seen, for a note; static storage. */
const char *tlmi_objects_install(uint64_t mean);
void tlmi_objects_uninstall(void);

/* ---- source_pyheap.c ---- */
uint64_t tlmi_pyheap_arena_bytes(bool *known);
uint64_t tlmi_pyheap_large_bytes(bool *known);
uint64_t tlmi_pyheap_module_count(bool *known);

/* True while NumPy allocates, resizes or frees array data in this thread. From NumPy 2.5 on that goes through Python's raw
 * allocator; it is tracked as arrays and must not count as Python's heap as well. */
extern __thread bool tlmi_pyheap_is_array;
#endif
