"""The module of PyTorch that a block belongs to: the path of the innermost one that ran.

Covers: paths of blocks of forward passes, of blocks of backward passes by the number of the node of
the graph, of weights and states by the gradients of their size. Does not cover: blocks too small
for the recorder to write their path, and what runs outside of modules.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.peak.blocks import Blocks, Curve, Ints, labels_after, numbers_in
from tlmem.analysis.peak.passes import Passes
from tlmem.analysis.peak.roles import Named, Role, Roles
from tlmem.events import Kind

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

NO_MODULE = -1
MOST_NAMES, MOST_PATHS = 24, 20_000
"""Names of a path, and different paths; what goes beyond is cut."""
OTHERS = "modules"
NEAR = 3
"""Nodes between one and the next that allocated a large block: those of views allocate none."""
_INDEX = re.compile(r"\d+")


@dataclass(frozen=True)
class Modules:
    """``path`` is the place of each block's path in ``paths``, ``NO_MODULE`` without one.

    Paths are names from the root on, as ``("GPT", "h", "3", "fc")``; of a program with one root
    the root is left out when a path is written.
    """

    path: Ints
    paths: tuple[tuple[str, ...], ...]
    roots: int

    def text(self, path: Sequence[str]) -> str:
        """A path as it is written: ``h.3.fc``; the root's own name where nothing else is there."""
        names = path[1:] if self.roots == 1 and len(path) > 1 else path
        return ".".join(names)

    def of(self, block: int) -> str:
        """The path of a block; empty without one."""
        number = int(self.path[block])
        return self.text(self.paths[number]) if number >= 0 else ""


def modules_of(recording: Recording, blocks: Blocks) -> Modules:
    """The path of every block for which one was recorded, or follows from the graph."""
    objects, labels, _ = labels_after(recording, blocks, Kind.MODULE_PATH)
    place = numbers_in(blocks, objects)
    known, inverse = np.unique(labels[place >= 0], return_inverse=True)
    split = bounded([path_of(label_text(recording, int(label))) for label in known.tolist()])
    paths = {path: n for n, path in enumerate(sorted(set(split)))}
    of_label = np.array([paths[path] for path in split], np.int64)
    path = np.full(len(blocks), NO_MODULE, np.int64)
    path[place[place >= 0]] = of_label[inverse] if len(known) else NO_MODULE
    _of_backward(recording, blocks, path, paths)
    return Modules(path, tuple(paths), len({each[0] for each in paths}))


def with_parameters(
    modules: Modules,
    blocks: Blocks,
    passes: Passes,
    role: Roles,
    names: Mapping[int, Named],
) -> Modules:
    """The same with the modules of weights and of the states of optimizers.

    A parameter is made before its module runs, so that no path of it is recorded. But a gradient
    has the size of its weight: a module with two gradients of a size has two weights of that size.
    Which two of several is not known, and changes no sum. Of what has no gradient, a chain of
    holders may tell the module.
    """
    path = modules.path.copy()
    paths = {each: n for n, each in enumerate(modules.paths)}
    gradients = np.flatnonzero(role == Role.GRADIENTS)
    gradients = gradients[np.argsort(blocks.born[gradients], kind="stable")]
    trained = {modules.paths[n] for n in np.unique(path[gradients]).tolist() if n >= 0}
    _of_chains(blocks, role, names, trained, path, paths)
    order = np.argsort(blocks.born, kind="stable")
    made = {kind: order[role[order] == kind] for kind in (Role.WEIGHTS, Role.OPTIMIZER_STATE)}
    for size in np.unique(blocks.asked[gradients[path[gradients] >= 0]]).tolist():
        mine = gradients[blocks.asked[gradients] == size]
        slots = _slots(path[mine], passes.pass_of(blocks.born[mine]))
        for kind, rows in made.items():
            rows = rows[blocks.asked[rows] == size]
            _give(blocks, path, rows, slots, blocks.born[mine], kind == Role.OPTIMIZER_STATE)
    return Modules(path, tuple(paths), modules.roots)


def _of_chains(
    blocks: Blocks,
    role: Roles,
    names: Mapping[int, Named],
    trained: Collection[tuple[str, ...]],
    path: Ints,
    paths: dict[tuple[str, ...], int],
) -> None:
    """Gives frozen weights the module that a chain of holders names.

    Only if one model of that class is known: a copy has the same names, but did not run.
    """
    roots = {each[0] for each in paths}
    inner = {each[:length] for each in paths for length in range(2, len(each) + 1)}
    models: dict[str, set[str]] = {}
    for named in names.values():
        if named.path:
            models.setdefault(named.path[0], set()).add(named.root)
    for place, named in zip(numbers_in(blocks, list(names)), names.values(), strict=True):
        if place < 0 or named.path not in inner or role[place] != Role.WEIGHTS:
            continue
        is_only = len(models[named.path[0]]) == 1 and f"{named.path[0]}(2)" not in roots
        if is_only and not any(each[: len(named.path)] == named.path for each in trained):
            path[place] = paths.setdefault(named.path, len(paths))


def _slots(path: Ints, passed: Ints) -> list[int]:
    """The modules of all weights of one size: each as often as one pass had gradients of it.

    Args:
        path, passed: of each gradient its module and the number of the backward pass.
    """
    most: dict[int, int] = {}
    pairs, counts = np.unique(np.stack((path, passed), axis=1), axis=0, return_counts=True)
    for (module, _), count in zip(pairs.tolist(), counts.tolist(), strict=True):
        most[module] = max(most.get(module, 0), count)
    return [module for module, count in sorted(most.items()) for _ in range(count)]


def _give(
    blocks: Blocks, path: Ints, rows: Ints, slots: list[int], at: Ints, several: bool
) -> None:
    """Gives weights of one size, or states, the modules that have gradients of this size.

    Blocks may have one place after the other, as when a model is loaded again: what counts is which
    gradients were allocated while they were there. What finds no place is of no known module.

    Args:
        rows: of the weights or states, in the order of their births.
        slots: modules, as many times as they have gradients of this size.
        at: births of these gradients, in their order.
        several: whether there may be several blocks for each gradient.
    """
    begin = np.minimum(np.searchsorted(at, blocks.born[rows]), len(at) - 1)
    end = np.searchsorted(at, blocks.died[rows])
    used = begin < end
    rows, begin, end = rows[used], begin[used], end[used]
    most = Curve.of(np.ones(len(rows), np.int64), begin, end).highest[0]
    each, rest = divmod(most, len(slots))
    # Fewer weights than modules have gradients, or states that some weights do not have.
    if each == 0 or (several and rest):
        return
    slots = slots * (each if several else 1)
    for module in path[rows[path[rows] >= 0]].tolist():
        if module in slots:
            slots.remove(module)
    free = [(0, n, module) for n, module in enumerate(slots)]
    for row, first, last in zip(rows.tolist(), begin.tolist(), end.tolist(), strict=True):
        if path[row] < 0 and free and free[0][0] <= first:
            _, n, module = heapq.heappop(free)
            path[row] = module
            heapq.heappush(free, (last, n, module))


def path_of(text: str) -> tuple[str, ...]:
    """The names of a label such as ``GPT/blocks.3.fc``; of a long one the first ``MOST_NAMES``."""
    root, _, below = text.partition("/")
    names = below.split(".", MOST_NAMES)[: MOST_NAMES - 1]
    return (root, *(name for name in names if name))


def bounded(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The same paths, shorter where there are more than ``MOST_PATHS`` different ones."""
    length = MOST_NAMES
    while length > 1 and len(set(paths)) > MOST_PATHS:
        length //= 2
        paths = [path[:length] for path in paths]
    return paths if len(set(paths)) <= MOST_PATHS else [(OTHERS,)] * len(paths)


def label_text(recording: Recording, label: int) -> str:
    """The text of a label; ``label 7`` where the recording does not have it."""
    return recording.labels.get(label, f"label {label}")


def _of_backward(
    recording: Recording, blocks: Blocks, path: Ints, paths: dict[tuple[str, ...], int]
) -> None:
    """Gives blocks of backward passes the module of the forward operation that they are due to.

    A node takes its number before it computes: the first block of a forward pass that was allocated
    when the next number was k + 1 belongs to the node k. Each thread counts for itself, and a
    backward pass runs in the thread that called it; one in a thread of the engine, which has no
    forward passes, is taken as due to whichever thread was first.
    """
    objects, args, threads = labels_after(recording, blocks, Kind.AUTOGRAD)
    place = numbers_in(blocks, objects)
    there = place >= 0
    place, args, threads = place[there], args[there], threads[there]
    backward = (args & np.uint64(1)) == 1
    number = (args >> np.uint64(1)).astype(np.int64)
    forward = np.flatnonzero(~backward & (path[place] >= 0))
    mine = np.flatnonzero(backward & (path[place] < 0))
    callers = np.unique(threads[forward])
    own = np.isin(threads[mine], callers)
    for thread in callers.tolist():
        own_forward = forward[threads[forward] == thread]
        of_thread = mine[threads[mine] == thread]
        _follow(blocks, path, paths, place, number, own_forward, of_thread)
    _follow(blocks, path, paths, place, number, forward, mine[~own])


def _follow(
    blocks: Blocks,
    path: Ints,
    paths: dict[tuple[str, ...], int],
    place: Ints,
    number: Ints,
    forward: Ints,
    backward: Ints,
) -> None:
    """Gives each of the backward blocks the path of the first forward block of its node.

    A node without such a block is in the module that has both the one before and the one after it.
    It may be that of a transposed weight, directly before the operation with it: then that one has
    allocated a gradient of this size.
    """
    order = forward[np.lexsort((blocks.born[place[forward]], number[forward]))]
    numbers, first = np.unique(number[order], return_index=True)
    if len(numbers) == 0 or len(backward) == 0:
        return
    made = place[order[first]]
    wanted = number[backward] + 1
    at = np.searchsorted(numbers, wanted).clip(max=len(numbers) - 1)
    # What was computed later is of the next step, or was computed again for a checkpoint.
    near = (numbers[at] >= wanted) & (numbers[at] - wanted <= NEAR)
    near &= blocks.born[made[at]] < blocks.born[place[backward]]
    exact = near & (numbers[at] == wanted)
    path[place[backward[exact]]] = path[made[at[exact]]]
    sizes = blocks.asked[place[backward]]
    paths_of_sizes = np.stack((path[made[at]], sizes), axis=1)
    of_exact = {tuple(pair) for pair in np.unique(paths_of_sizes[exact], axis=0).tolist()}
    next_to = np.flatnonzero(near & (numbers[at] == wanted + 1))
    seen = [tuple(pair) in of_exact for pair in paths_of_sizes[next_to].tolist()]
    transposed = next_to[np.array(seen, bool)]
    path[place[backward[transposed]]] = path[made[at[transposed]]]
    inner = np.flatnonzero(near & (path[place[backward]] < 0) & (at > 0))
    both = np.stack((path[made[at[inner] - 1]], path[made[at[inner]]]), axis=1)
    pairs, of_pair = np.unique(both, axis=0, return_inverse=True)
    known = list(paths)
    found = []
    for before, after in pairs.tolist():
        common = tuple(os.path.commonprefix([known[before], known[after]]))
        found.append(paths.setdefault(common, len(paths)) if common else NO_MODULE)
    path[place[backward[inner]]] = np.array(found, np.int64)[of_pair.reshape(-1)]


def is_index(name: str) -> bool:
    """Whether a name is one of many alike, as the ``3`` of ``h.3``."""
    return _INDEX.fullmatch(name) is not None
