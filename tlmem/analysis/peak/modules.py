"""The module of PyTorch that a block belongs to: the path of the innermost one that ran.

Covers: paths of blocks of forward passes, and of blocks of backward passes by the number of the
node of the graph. Does not cover: blocks too small for the recorder to write their path, and what
runs outside of modules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.peak.blocks import Blocks, Ints, labels_after, numbers_in
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
    objects, labels, _ = labels_after(recording, Kind.MODULE_PATH)
    place = numbers_in(blocks, objects)
    known, inverse = np.unique(labels[place >= 0], return_inverse=True)
    split = bounded([path_of(label_text(recording, int(label))) for label in known.tolist()])
    paths = sorted(set(split))
    number = {path: n for n, path in enumerate(paths)}
    of_label = np.array([number[path] for path in split], np.int64)
    path = np.full(len(blocks), NO_MODULE, np.int64)
    path[place[place >= 0]] = of_label[inverse] if len(known) else NO_MODULE
    _of_backward(recording, blocks, path)
    return Modules(path, tuple(paths), len({each[0] for each in paths}))


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


def _of_backward(recording: Recording, blocks: Blocks, path: Ints) -> None:
    """Gives blocks of backward passes the module of the forward operation that they are due to.

    A node takes its number before it computes: the first block of a forward pass that was allocated
    when the next number was k + 1 belongs to the node k. Each thread counts for itself, and a
    backward pass runs in the thread that called it; one in a thread of the engine, which has no
    forward passes, is taken as due to whichever thread was first.
    """
    objects, args, threads = labels_after(recording, Kind.AUTOGRAD)
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
        _follow(blocks, path, place, number, own_forward, mine[threads[mine] == thread])
    _follow(blocks, path, place, number, forward, mine[~own])


def _follow(
    blocks: Blocks, path: Ints, place: Ints, number: Ints, forward: Ints, backward: Ints
) -> None:
    """Gives each of the backward blocks the path of the first forward block of its node."""
    order = forward[np.lexsort((blocks.born[place[forward]], number[forward]))]
    numbers, first = np.unique(number[order], return_index=True)
    if len(numbers) == 0 or len(backward) == 0:
        return
    wanted = number[backward] + 1
    at = np.searchsorted(numbers, wanted).clip(max=len(numbers) - 1)
    near = (numbers[at] >= wanted) & (numbers[at] - wanted <= NEAR)
    path[place[backward[near]]] = path[place[order[first[at[near]]]]]


def is_index(name: str) -> bool:
    """Whether a name is one of many alike, as the ``3`` of ``h.3``."""
    return _INDEX.fullmatch(name) is not None
