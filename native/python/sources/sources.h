/* SPDX-License-Identifier: MIT
 * sources.h: memory of others in the interpreter: NumPy's arrays, PyTorch's tensors, Python's own heap.
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

/* ---- source_pyheap.c ---- */
uint64_t tlmi_pyheap_arena_bytes(bool *known);
uint64_t tlmi_pyheap_large_bytes(bool *known);
uint64_t tlmi_pyheap_module_count(bool *known);

/* True while NumPy allocates, resizes or frees array data in this thread. From NumPy 2.5 on that goes through Python's raw
 * allocator; it is tracked as arrays and must not count as Python's heap as well. */
extern __thread bool tlmi_pyheap_is_array;
#endif
