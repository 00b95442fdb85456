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

enum { KNOWN_PLACES = 64, MOST_NEW = 3 };

/* A place in a function called from `parent`, and its site. position 0: none. */
typedef struct {
    uintptr_t position;
    uint32_t parent;
    uint32_t site;
} known_place;

/* A thread's last stack: known[room - length] is the innermost frame, known[room - 1] the root, known[room] is NOWHERE. */
typedef struct {
    uint64_t epoch;
    uint32_t room;
    uint32_t length;
    bool cut; /* the stack went on beyond the root kept here */
    size_t bytes;
    met_frame *met;
    known_place places[KNOWN_PLACES]; /* of this epoch */
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
    memset(last->places, 0, sizeof last->places);
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

/* Where in the last stack the frame was, if it is among the innermost ones; else NULL. */
static inline known_frame *find_frame(last_stack *last, const pyframe *frame)
{
    known_frame *innermost = &last->known[last->room - last->length];
    for (known_frame *at = innermost; at < innermost + 4 && at < &last->known[last->room]; at++)
        if (at->frame == frame)
            return at;
    return NULL;
}

/* Writes the frames down from the innermost on, until there are no more or no room. Consumes the frame. */
static uint32_t collect_frames(last_stack *last, pyframe *frame, bool *more)
{
    known_frame *at = find_frame(last, frame);
    known_frame *end = &last->known[last->room];
    uint32_t count = 0;
    if (at == NULL)
        at = end - last->length;
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

static known_place *place_of(last_stack *last, uintptr_t position, uint32_t parent)
{
    uint64_t mixed = (position ^ (uint64_t)parent << 32) * UINT64_C(0x9E3779B97F4A7C15);
    return &last->places[mixed >> 32 & (KNOWN_PLACES - 1)];
}

/* The site of a frame whose callers have the site `parent`; 0 when the recording has no room for it. */
static uint32_t find_site(last_stack *last, PyCodeObject *code, uintptr_t position, uint32_t parent,
                          PyThreadState *tstate)
{
    known_place *place = place_of(last, position, parent);
    if (tlmi_likely(place->position == position && place->parent == parent))
        return place->site;
    struct instruction at = {code, pyframe_offset(code, position)};
    uint32_t number = tlmi_pycode_number((PyObject *)code, tstate);
    uint32_t site = number == 0 ? 0 : tlmi_site_child(parent, number, (uint32_t)at.offset, line_of, &at);
    if (site != 0)
        *place = (known_place){position, parent, site};
    return site;
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
            uint32_t child = find_site(last, object, met->position, site, tstate);
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

/* The innermost frames up to the first that stands where it stood, which is then *frame; how many, or more than MOST_NEW.
 * *known is where the last stack has it. */
static inline uint32_t skip_new_frames(last_stack *last, pyframe **frame, met_frame *fresh, known_frame **known)
{
    uint32_t count = 0;
    for (pyframe *outer; *frame != NULL; *frame = outer) {
        uintptr_t position = pyframe_position(*frame);
        known_frame *at = find_frame(last, *frame);
        if (at != NULL && at->position == position) {
            *known = at;
            return count;
        }
        if (count == MOST_NEW)
            return MOST_NEW + 1;
        fresh[count++] = (met_frame){position, *frame};
        outer = pyframe_outer(*frame);
        if (at != NULL && at[1].frame == outer)
            outer = same_frame(at[1].frame);
    }
    *known = &last->known[last->room];
    return count;
}

/* The last stack is kept from `known` outwards; finds the sites of the frames inside it. */
static uint32_t add_new_frames(last_stack *last, known_frame *known, const met_frame *fresh, uint32_t count,
                               PyThreadState *tstate)
{
    uint32_t site = known < &last->known[last->room] ? known->site : 0;
    while (count-- > 0) {
        PyCodeObject *code = (PyCodeObject *)pyframe_code(fresh[count].frame);
        uint32_t child = code == NULL ? site : find_site(last, code, fresh[count].position, site, tstate);
        if (code != NULL && child == 0)
            break;
        site = child;
        *--known = (known_frame){fresh[count].position, fresh[count].frame, site};
    }
    last->length = (uint32_t)(&last->known[last->room] - known);
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
    known_frame *end = &last->known[last->room], *known = end - last->length;
    met_frame fresh[MOST_NEW];
    uint32_t count = 0;
    if (known->position != pyframe_position(frame) && !last->cut)
        count = skip_new_frames(last, &frame, fresh, &known);
    known_frame *kept = known;
    bool few = count <= MOST_NEW && count + (uint32_t)(end - kept) <= depth;
    while (few && frame != NULL && known->position == pyframe_position(frame)) {
        pyframe *outer = pyframe_outer(frame);
        known++;
        if (tlmi_likely(outer == known->frame))
            frame = same_frame(known->frame);
        else
            frame = known->frame = outer;
    }
    bool more = frame != NULL;
    pyframe_release(frame);
    if (tlmi_unlikely(!few || known != end || last->length == 0 || more != last->cut))
        return find_changed(last, pyframe_current(tstate), depth, tstate);
    return count == 0 && kept == end - last->length ? kept->site : add_new_frames(last, kept, fresh, count, tstate);
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
