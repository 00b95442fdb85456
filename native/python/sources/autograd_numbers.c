/* SPDX-License-Identifier: MIT
 * autograd_numbers.c: by which operation of a forward pass a large block of PyTorch is due, in a backward pass too.
 *
 * Each operation whose gradient will be wanted makes a node of the graph, with the thread's next number, before it computes. So
 * the first large block that is allocated under a new number is that operation's, and has the number that comes next. In a
 * backward pass the engine evaluates nodes one after another, through a slot (platform/linkage.h) that is pointed here: what is
 * allocated meanwhile has the number of that node. What is computed again for checkpoints, in modules, counts as forward.
 *
 * A node is alive while it is evaluated. Its number is read from its memory, if that begins as one of the two layouts that are
 * known: a count of references, or a weak reference to itself. get_current_node would count a reference, for which PyTorch may
 * wait for the GIL; the id of the graph's task, which it gives without, says whether the evaluation is still going on when
 * an exception has left it.
 * Behind its number a node has the length of the longest way from it to the end of its graph, which PyTorch keeps up to date for
 * the order of a backward pass: how deep the graph of a tensor is costs two reads, however large it is.
 */
#include "python/sources/sources.h"

#include <string.h>

#include "platform/linkage.h"

enum { MOST_REFERENCES = 1 << 24 };
/* The largest number of a node. Nodes that add up gradients have all bits set instead. */
#define MOST_NUMBERS (UINT64_C(1) << 48)

typedef struct {
    uint64_t next; /* the node's number + 1; 0: none */
    int32_t task;
} evaluation;

static void (*original)(void *engine, void *task, void *node, void *inputs, const void *queue);
static uint64_t (*peek)(void);
static int32_t (*current_task)(void);
static __thread evaluation current;
static __thread uint64_t last_peek;

enum { NODE_WORDS = 5 };

/* Which word of a node has its number; 0: its layout is none of those that are known. Its depth is the word behind. */
static uint32_t number_at(const void *node, uint64_t words[NODE_WORDS])
{
    memcpy(words, node, NODE_WORDS * sizeof *words);
    uint64_t strong = words[1] & UINT32_MAX, weak = words[1] << 1 >> 33;
    bool is_shared = words[1] == (uintptr_t)node;
    bool is_counted = strong > 0 && strong < MOST_REFERENCES && weak > 0 && weak < MOST_REFERENCES;
    return is_shared ? 3 : is_counted ? 2 : 0;
}

static uint64_t number_of(const void *node)
{
    uint64_t words[NODE_WORDS];
    uint32_t at = number_at(node, words);
    return at != 0 && words[at] < MOST_NUMBERS ? words[at] + 1 : 0;
}

uint32_t tlmi_autograd_depth(const void *node)
{
    uint64_t words[NODE_WORDS];
    uint32_t at = number_at(node, words);
    bool is_known = at != 0 && words[at] < MOST_NUMBERS && words[at + 1] <= UINT32_MAX;
    return is_known ? (uint32_t)words[at + 1] : 0;
}

void tlmi_autograd_evaluate(void *engine, void *task, void *node, void *inputs, const void *queue)
{
    evaluation former = current;
    if (tlmi_probe_on())
        current = (evaluation){number_of(node), current_task()};
    original(engine, task, node, inputs, queue);
    current = former;
}

bool tlmi_autograd_open(void *evaluate)
{
    static const char library[] = "libtorch_cpu.so";
    *(void **)&original = evaluate;
    *(void **)&peek = tlmi_slots_find(library, "_ZN2at15sequence_number4peekEv");
    *(void **)&current_task = tlmi_slots_find(library, "_ZN5torch8autograd25get_current_graph_task_idEv");
    bool is_known = evaluate != NULL && peek != NULL && current_task != NULL;
    peek = is_known ? peek : NULL;
    return is_known;
}

void tlmi_autograd_note(uint8_t device, uint64_t object, bool is_in_module)
{
    if (peek == NULL)
        return;
    uint64_t number = peek(), arg = 0;
    int32_t task = current_task();
    bool is_evaluated = current.next != 0 && current.task == task;
    if (is_evaluated && !is_in_module)
        arg = (current.next - 1) << 1 | 1;
    else if ((task < 0 || is_in_module) && number != last_peek && number != 0)
        arg = number << 1;
    last_peek = number;
    if (arg != 0)
        tlmi_event_append(TLM_KIND_AUTOGRAD, device, object, arg, 0, 0);
}
