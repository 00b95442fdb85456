/* SPDX-License-Identifier: MIT
 * pystack.c: the site of the calling thread's Python stack, by a walk of its interpreter frames.
 *
 * Covers: the walk, the memory of each thread's last stack, finding the site. The numbers and names of code objects are
 * pycode.c's, the tree is site.c's, what a frame is pyframe.h says.
 *
 * Invariant: each thread keeps (position, site) for every frame of its last stack, root last, and the number of the epoch in
 * which it did. Two stacks with the same positions have the same site, as long as none of the code objects died in between:
 * a death of a known code object begins a new epoch. A thread that does not hold the GIL may walk its own frames: only it
 * changes them, and they own their code objects.
 */
#include <Python.h>
#include <string.h>

#include "python/stack/pyframe.h"

#include "python/stack/pycode.h"
#include "python/stack/pystack.h"
#include "tlmem_python.h"

#define CUT_ROOT 1
#define MAX_DEPTH 1024
/* No frame is at this position: they are even. It ends the last stack. */
#define NOWHERE 1

typedef struct {
    uintptr_t position;
    pyframe *frame; /* where it was; only compared, unless it is there again */
    uint32_t site;  /* of this frame called from the frames outside it */
} known_frame;

typedef struct {
    uintptr_t position;
    pyframe *frame;
} met_frame;

enum { KNOWN_LEAVES = 16 };

/* A place in a function called from `parent`, and its site. position 0: none. */
typedef struct {
    uintptr_t position;
    uint32_t parent;
    uint32_t site;
} known_leaf;

/* A thread's last stack: known[room - length] is the innermost frame, known[room - 1] the root, known[room] is NOWHERE. */
typedef struct {
    uint64_t epoch;
    uint32_t room;
    uint32_t length;
    bool cut; /* the stack went on beyond the root kept here */
    size_t bytes;
    met_frame *met;
    known_leaf leaves[KNOWN_LEAVES]; /* of this epoch */
    known_frame known[];
} last_stack;

static __thread last_stack *own_last;
static pthread_key_t last_key;
static pthread_once_t last_key_once = PTHREAD_ONCE_INIT;
static bool last_key_made;
static _Atomic uint32_t depth_limit; /* 0: no stacks */

const char *tlm_site_method(void)
{
    return PYSTACK_METHOD;
}

static void free_last_stack(void *last)
{
    own_last = NULL;
    tlmi_own_free(last, ((last_stack *)last)->bytes);
}

static void make_last_key(void)
{
    last_key_made = pthread_key_create(&last_key, free_last_stack) == 0;
}

static void forget_frames(last_stack *last)
{
    last->length = 0;
    last->cut = false;
}

/* The calling thread's last stack, empty if it is of another epoch; NULL without memory. */
static last_stack *renew_last_stack(uint64_t epoch, uint32_t depth)
{
    /* A frame that stands for no code comes with at least one that does. */
    uint32_t room = 2 * depth;
    last_stack *last = own_last;
    if (last != NULL && last->room != room) {
        free_last_stack(last);
        pthread_setspecific(last_key, NULL);
        last = NULL;
    }
    if (last == NULL) {
        pthread_once(&last_key_once, make_last_key);
        size_t known_bytes = sizeof(last_stack) + (room + 1) * sizeof(known_frame);
        size_t bytes = known_bytes + room * sizeof(met_frame);
        last = last_key_made ? tlmi_own_alloc(bytes) : NULL;
        if (last == NULL)
            return NULL;
        if (pthread_setspecific(last_key, last) != 0) {
            tlmi_own_free(last, bytes);
            return NULL;
        }
        last->bytes = bytes;
        last->room = room;
        last->met = (met_frame *)((char *)last + known_bytes);
        last->known[room].position = NOWHERE;
        own_last = last;
    }
    forget_frames(last);
    memset(last->leaves, 0, sizeof last->leaves);
    last->epoch = epoch;
    return last;
}

/* The frame, taken from where it was kept instead of from the chain it was found in: the processor then looks at the next
 * frames without waiting for this one, which makes the walk twice as fast. The compiler must not see that both are equal. */
static inline pyframe *same_frame(pyframe *kept)
{
    __asm__ volatile("" : "+r"(kept));
    return kept;
}

/* Where in the last stack the frame was; its innermost frame if it is not among the first ones. */
static known_frame *find_frame(last_stack *last, pyframe *frame)
{
    known_frame *innermost = &last->known[last->room - last->length];
    for (known_frame *at = innermost; at < innermost + 4 && at < &last->known[last->room]; at++)
        if (at->frame == frame)
            return at;
    return innermost;
}

/* Writes the frames down from the innermost on, until there are no more or no room. Consumes the frame. */
static uint32_t collect_frames(last_stack *last, pyframe *frame, bool *more)
{
    known_frame *at = find_frame(last, frame);
    known_frame *end = &last->known[last->room];
    uint32_t count = 0;
    for (; frame != NULL && count < last->room; count++) {
        last->met[count].position = pyframe_position(frame);
        last->met[count].frame = frame;
        pyframe *outer = pyframe_outer(frame);
        if (at + 1 < end && at[1].frame == outer)
            frame = same_frame((++at)->frame);
        else if (at->frame == outer)
            frame = same_frame(at->frame);
        else
            frame = outer;
    }
    *more = frame != NULL;
    pyframe_release(frame);
    return count;
}

/* How many of the frames, from the innermost on, hold `depth` frames with code and none that belongs to the next one. */
static uint32_t cut_frames(const last_stack *last, uint32_t count, uint32_t depth, bool *cut)
{
    uint32_t with_code = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (pyframe_code(last->met[i].frame) != NULL && with_code++ == depth) {
            *cut = true;
            return i;
        }
    }
    return count;
}

struct instruction {
    PyCodeObject *code;
    int offset;
};

static uint32_t line_of(void *context)
{
    struct instruction *at = context;
    int line = PyCode_Addr2Line(at->code, at->offset);
    return line > 0 ? (uint32_t)line : 0;
}

/* The stack is not the last one: keeps what both have in common at the root and finds the sites of the rest. */
static uint32_t find_changed(last_stack *last, pyframe *frame, uint32_t depth, PyThreadState *tstate)
{
    bool cut;
    uint32_t count = collect_frames(last, frame, &cut);
    if (count > depth)
        count = cut_frames(last, count, depth, &cut);
    known_frame *root = &last->known[last->room - 1];
    met_frame *met = &last->met[count] - 1;
    if (cut != last->cut)
        forget_frames(last);
    last->cut = cut;
    uint32_t same = 0;
    uint32_t most = count < last->length ? count : last->length;
    for (; same < most && met->position == root->position; same++)
        (root--)->frame = (met--)->frame;
    uint32_t site = same > 0 ? root[1].site : cut ? CUT_ROOT : 0;
    for (; same < count; same++) {
        PyCodeObject *object = (PyCodeObject *)pyframe_code(met->frame);
        if (object != NULL) {
            struct instruction at = {object, pyframe_offset(object, met->position)};
            uint32_t code = tlmi_pycode_number((PyObject *)object, tstate);
            uint32_t child = code == 0 ? 0 : tlmi_site_child(site, code, (uint32_t)at.offset, line_of, &at);
            if (child == 0)
                break;
            site = child;
        }
        *root-- = (known_frame){met->position, met->frame, site};
        met--;
    }
    /* Where a site could not be had the stack ends at the deepest one known; what is kept is true as far as it goes. */
    last->length = same;
    return site;
}

/* Only the innermost frame moved on; often to a place where it has been before. */
static uint32_t find_moved(last_stack *last, uintptr_t position, uint32_t depth, PyThreadState *tstate)
{
    known_frame *innermost = &last->known[last->room - last->length];
    uint32_t length = last->length;
    uint32_t parent = length > 1 ? innermost[1].site : 0;
    known_leaf *leaf = &last->leaves[(position ^ position >> 4) / 2 % KNOWN_LEAVES];
    if (tlmi_likely(leaf->position == position && leaf->parent == parent)) {
        innermost->position = position;
        return innermost->site = leaf->site;
    }
    uint32_t site = find_changed(last, pyframe_current(tstate), depth, tstate);
    if (last->length == length && innermost->position == position)
        *leaf = (known_leaf){position, parent, site};
    return site;
}

uint32_t tlmi_pystack_site(void)
{
    uint32_t depth = atomic_load_explicit(&depth_limit, memory_order_relaxed);
    if (depth == 0)
        return 0;
    PyThreadState *tstate = tlmi_pycode_own_thread();
    if (tstate == NULL)
        return 0;
#ifdef PYSTACK_NEEDS_GIL
    if (!tlmi_pycode_holds_gil(tstate))
        return 0;
#endif
    pyframe *frame = pyframe_current(tstate);
    if (frame == NULL)
        return 0;
    uint64_t epoch = tlmi_pycode_epoch();
    last_stack *last = own_last;
    if (tlmi_unlikely(last == NULL || last->epoch != epoch)) {
        last = renew_last_stack(epoch, depth);
        if (last == NULL) {
            pyframe_release(frame);
            return 0;
        }
    }
    known_frame *innermost = &last->known[last->room - last->length];
    known_frame *known = innermost;
    uintptr_t moved_to = 0;
    if (frame == innermost->frame && last->length > 0 && last->length < depth && !last->cut &&
        innermost->position != pyframe_position(frame)) {
        moved_to = pyframe_position(frame);
        frame = pyframe_outer(frame);
        known++;
        if (tlmi_likely(frame == known->frame))
            frame = same_frame(known->frame);
        else
            known->frame = frame;
    }
    while (frame != NULL && known->position == pyframe_position(frame)) {
        pyframe *outer = pyframe_outer(frame);
        known++;
        if (tlmi_likely(outer == known->frame))
            frame = same_frame(known->frame);
        else
            frame = known->frame = outer;
    }
    bool all = known == &last->known[last->room] && last->length > 0;
    bool more = frame != NULL;
    pyframe_release(frame);
    if (tlmi_likely(all && more == last->cut)) {
        if (moved_to == 0)
            return innermost->site;
        return find_moved(last, moved_to, depth, tstate);
    }
    return find_changed(last, pyframe_current(tstate), depth, tstate);
}

uint32_t tlmi_pystack_selves_of(void *thread_state, uintptr_t code, uintptr_t *selves, uint32_t room)
{
    uint32_t count = 0;
#ifndef PYSTACK_NEEDS_GIL
    uint32_t depth = atomic_load_explicit(&depth_limit, memory_order_relaxed);
    pyframe *frame = pyframe_current(thread_state);
    for (; frame != NULL && depth > 0; frame = pyframe_outer(frame)) {
        PyObject *runs = pyframe_code(frame);
        depth -= runs != NULL;
        if ((uintptr_t)runs != code)
            continue;
        count += count < room;
        selves[count - 1] = (uintptr_t)pyframe_first_local(frame);
    }
#else
    (void)thread_state, (void)code, (void)selves, (void)room;
#endif
    return count;
}

uint32_t tlmi_pystack_selves(uintptr_t code, uintptr_t *selves, uint32_t room)
{
    PyThreadState *own = tlmi_pycode_own_thread();
    return own != NULL ? tlmi_pystack_selves_of(own, code, selves, room) : 0;
}

void tlmi_pystack_init(uint32_t stack_depth)
{
    tlmi_pycode_reset();
    atomic_store_explicit(&depth_limit, stack_depth > MAX_DEPTH ? MAX_DEPTH : stack_depth, memory_order_relaxed);
}

void tlmi_pystack_reset(void)
{
    atomic_store_explicit(&depth_limit, 0, memory_order_relaxed);
    tlmi_pycode_reset();
}

uint32_t tlmi_pystack_patient_site(void)
{
    uint32_t site = 0;
#ifdef PYSTACK_NEEDS_GIL
    PyThreadState *own = tlmi_pycode_own_thread();
    bool wanted = atomic_load_explicit(&depth_limit, memory_order_relaxed) != 0;
    if (wanted && own != NULL && !tlmi_python_is_ending() && !tlmi_pycode_holds_gil(own)) {
        PyGILState_STATE state = PyGILState_Ensure();
        site = tlmi_pystack_site();
        PyGILState_Release(state);
    }
#endif
    return site;
}
