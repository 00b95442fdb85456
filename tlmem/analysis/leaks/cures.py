"""What to do about a leak: one cure for each class, and others where who holds shows a better one.

Covers: the words behind ``Fix:``. Does not cover: which class a line has; see ``classes``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from tlmem.analysis.holders.snapshots import Chain
from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.leaks.python_objects import total, what_views_use
from tlmem.analysis.model import Finding
from tlmem.analysis.rules import RULES
from tlmem.recording.tables.chain_text import function_name

FIXES = {
    "over-retained": "release what you acquire in the same function, in a finally block",
    "floating": "register what a function promotes in the scope of its caller",
    "field-forgotten": "release the struct, or register it in a scope that ends",
    "view-pins-base": "keep a copy of the part that is needed (copy(), of a tensor clone()) "
    "instead of a view",
    "reference-cycle": "break the cycle (weakref.ref for the back reference), or let gc run",
    "scope-not-left": "enter a scope for each step, in a with statement that every path leaves",
    "cache-only-grows": "limit the container's size, or remove entries that are no longer needed",
    "tape-not-released": "keep loss.item() or loss.detach() instead of loss",
    "saved-outlives-backward": "leave retain_graph off, or drop the loss after its last pass",
    "grads-outlive-step": "clear gradients in each step; keep numbers, not their tensors",
    "pool-never-hits": "request the shape and dtype that was put there, or limit the pool",
    "kept-graph": "keep loss.item(), or loss.detach() where the tensor itself is needed",
    "graph-chain-grows": "detach what goes from step to step (state.detach()); sum up loss.item()",
    "retained-graph": "leave retain_graph off: add up losses; set gradients with a graph to None",
    "hook-cycle": "let what a hook or a custom Function keeps hold tensor.detach(), not the tensor",
    "hook-keeps": "remove the hook (handle.remove()), or keep a detached output of the last step",
    "modules-grow": "reuse modules, or remove those that are not needed from their container",
    "optimizer-outlives-params": "give an optimizer's new modules an optimizer that goes with them",
    "shared-memory-kept": "let go of tensors that have been used, or limit what keeps them; a "
    "clone() frees the shared memory, but in the same container the copies grow instead",
    "worker-grows": "keep nothing for each item in the Dataset, or limit it; hold many small items "
    "in arrays, or in memory that workers share (share_memory_())",
    "profiler-left-on": "use the profiler in a with statement around a few steps, or stop() it",
    "anomaly-left-on": "turn anomaly mode off (set_detect_anomaly(False)), or enter it in a with "
    "statement around the steps in question",
}
"""Every class, and what to do about it."""


TASKS = {"_asyncio.Task", "asyncio.tasks.Task"}
"""Types of asyncio's tasks, in C and in Python."""


QUEUES = {
    f"{module}.{kind}"
    for module in ("queue", "asyncio.queues")
    for kind in ("Queue", "LifoQueue", "PriorityQueue")
}
"""Types of queues that have a bound of their own."""


class Cure(NamedTuple):
    """What to do about leaks of some classes, where it fits who holds the survivors."""

    classes: tuple[str, ...]
    fits: Callable[[Survivors], bool]
    fix: str


def fix_of(finding: Finding) -> str:
    """What to do about a finding; empty of one that is of no class."""
    return finding.fix or FIXES.get(finding.kind, "")


def with_fix(finding: Finding, line: Survivors) -> Finding:
    """A class finding of a line with the cure that fits who holds its survivors.

    One that has a cure already keeps it.
    """
    if finding.fix:
        return finding
    fitting = (cure.fix for cure in CURES if finding.kind in cure.classes and cure.fits(line))
    return replace(finding, fix=next(fitting, FIXES[finding.kind]))


def mostly(fits: Callable[[Chain], bool]) -> Callable[[Survivors], bool]:
    """Whether most survivors that a snapshot saw are held by chains that fit.

    What only native code holds does not count: it is mostly a graph of what the others keep.
    """

    def are(line: Survivors) -> bool:
        held = [chain for chain in line.chains if chain.root != "other"]
        fitting = [chain for chain in held if fits(chain)]
        return bool(fitting) and total(fitting) >= RULES.majority * total(held)

    return are


def passes(kind: str, type_: str = "") -> Callable[[Survivors], bool]:
    """Whether most survivors are held through an object of this kind and type, where given."""
    return mostly(
        lambda chain: any(
            kind in ("", step.kind) and type_ in ("", step.type) for step in chain.steps
        )
    )


def is_cached_for_a_class(chain: Chain) -> bool:
    """Whether the ``lru_cache`` of a function in a class holds them."""
    return any(step.kind == "lru_cache" and "." in function_name(step.type) for step in chain.steps)


def keeps_frames(chain: Chain) -> bool:
    """Whether an exception holds them by local variables of the functions that it passed."""
    kinds = [step.kind for step in chain.steps]
    return ("exception", "local") in pairwise(kinds)


def waits_in_a_task(chain: Chain) -> bool:
    """Whether a task of asyncio that has not ended holds them by a variable of its coroutine."""
    return any(
        task.type in TASKS and coroutine.kind == "generator"
        for task, coroutine in pairwise(chain.steps)
    )


def waits_in_a_queue(chain: Chain) -> bool:
    """Whether a queue of the standard library holds them by what it keeps its items in."""
    return any(
        queue.type in QUEUES and items.kind in ("deque", "list")
        for queue, items in pairwise(chain.steps)
    )


def waits_for_its_time(chain: Chain) -> bool:
    """Whether an event loop of asyncio holds them by what it will call later."""
    return any(step.edge == "_scheduled" for step in chain.steps)


def of_open_calls(chain: Chain) -> bool:
    """Whether calls of one function, each with a variable of its own, hold several of them."""
    return [step.kind for step in chain.steps] == ["local"] and chain.arrays > 1


def is_linked(chain: Chain) -> bool:
    """Whether they are held through a chain of like objects, or of functions within functions."""
    return any(
        step.kind in ("instance", "closure") and (step.type, step.edge) == (after.type, after.edge)
        for step, after in pairwise(chain.steps)
    )


def uses_a_part(line: Survivors) -> bool:
    """Whether what is kept shows a small part of the memory that it keeps."""
    return bool(line.chains and what_views_use(line.chains))


def is_joined_anew(line: Survivors) -> bool:
    """Whether what comes is joined to one array, again and again."""
    return line.growth.manner == "joined"


OF_FRAMES = (
    "keep what the exception says (str(error)), or drop its frames: error.__traceback__ = None"
)

CURES = (
    Cure(
        ("cache-only-grows",),
        is_joined_anew,
        "join only the part that is still used (its last n rows), or write what comes into an "
        "array of fixed size",
    ),
    Cure(
        ("cache-only-grows", "kept-graph"),
        mostly(keeps_frames),
        OF_FRAMES,
    ),
    Cure(
        ("cache-only-grows", "modules-grow"),
        passes("class", "weakref.finalize"),
        "give weakref.finalize a function and arguments that do not refer to the object, such as "
        "a static method and only what it frees; for an object that stays, make it once",
    ),
    Cure(
        ("cache-only-grows", "modules-grow"),
        passes("instance", "weakref.WeakKeyDictionary"),
        "let no value refer to its key, or only by weakref.ref: an entry goes when its key does",
    ),
    Cure(
        ("cache-only-grows", "modules-grow"),
        passes("exit"),
        "atexit.unregister() the function when its object is closed, or register one function for "
        "all that holds them by weak references",
    ),
    Cure(
        ("cache-only-grows",),
        mostly(waits_in_a_task),
        "let the tasks end: cancel() those that wait for what never comes, or give what they wait "
        "for a timeout",
    ),
    Cure(
        ("cache-only-grows",),
        passes("thread"),
        "let the threads end, as what is theirs goes with them, or let them drop it after each use",
    ),
    Cure(
        ("cache-only-grows",),
        mostly(of_open_calls),
        "let the calls return: each thread or level of a recursion keeps its own variables",
    ),
    Cure(
        ("cache-only-grows",),
        passes("", "matplotlib._pylab_helpers.Gcf"),
        "close figures that have been shown or saved (plt.close(fig)): pyplot keeps all others",
    ),
    Cure(
        ("cache-only-grows",),
        mostly(waits_for_its_time),
        "cancel() what call_later() returned when it is no longer needed: until its time has come "
        "the event loop keeps it",
    ),
    Cure(
        ("cache-only-grows",),
        passes("", "itertools.cycle"),
        "do not give itertools.cycle what makes new items each time: it keeps all of them; loop "
        "over that anew (while True: yield from loader)",
    ),
    Cure(
        ("cache-only-grows",),
        passes("", "itertools._tee_dataobject"),
        "read all iterators of itertools.tee equally far: what one has not read is kept for it",
    ),
    Cure(
        ("cache-only-grows",),
        passes("instance", "pandas.core.internals.managers.BlockManager"),
        "drop columns or rows that are no longer needed, or collect values in a container of "
        "limited size and make a frame of it when one is needed",
    ),
    Cure(
        ("cache-only-grows",),
        mostly(is_cached_for_a_class),
        "give the cache a maxsize, or clear it (cache_clear()); of a method it also keeps each "
        "object it was called on (self); functools.cached_property keeps results in the object",
    ),
    Cure(
        ("cache-only-grows",),
        passes("lru_cache"),
        "give the cache a maxsize, call it with keys that come again, or clear it (cache_clear())",
    ),
    Cure(
        ("cache-only-grows", "kept-graph"),
        mostly(waits_in_a_queue),
        "give the queue a maxsize, so that put() waits until there is room, or take items out as "
        "fast as they come",
    ),
    Cure(
        ("cache-only-grows",),
        passes("deque"),
        "give the deque a maxlen, or take out what is no longer needed (popleft())",
    ),
    Cure(
        ("cache-only-grows",),
        mostly(is_linked),
        "cut the chain where its older part is no longer needed (node.parent = None), or let its "
        "objects refer to each other by weakref.ref",
    ),
    Cure(("cache-only-grows",), uses_a_part, FIXES["view-pins-base"]),
    Cure(
        ("shared-memory-kept",),
        uses_a_part,
        "keep a clone() of the part that is needed, and let go of the rest",
    ),
)
"""The first that fits counts."""
