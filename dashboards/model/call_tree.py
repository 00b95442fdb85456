"""The tree of call sites with what was made under each frame, for the screen of sites.

Covers: sums of any stretch of time and thread, frames left out, inverted trees, searching; which
rows are open; the boxes of the flame view.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import place

from .boxes import Box
from .frame_table import NONE, FrameTable, Stacks
from .loading import Loaded
from .view import View

METRICS = ("alive", "bytes", "objects", "churn")
"""Bytes of survivors: made in the stretch and alive at its end; bytes made; objects made; bytes
made and freed again in it. All of a recording ends for this where the program is judged, as in
reports: what a function held until it returned at the very end is alive."""
METRIC_WORDS = {
    "alive": "bytes alive",
    "bytes": "bytes allocated",
    "objects": "objects allocated",
    "churn": "bytes allocated and freed",
}
MOST_SITES = 20_000
"""Sites with less than the largest ones are left out of the tree, and counted."""
MOST_CELLS = 1_000_000
"""Frames of all stacks together, each counted with the length of the deepest one."""
LEAST_SHARE = 0.01
"""What has less of the whole is not opened unasked."""
SORTS = ("total", "own", "objects")
Sums = NDArray[np.float64]


@dataclass(eq=False)
class CallNode:
    """One frame below its callers; ``total`` is of everything below it, ``own`` of itself.

    Both have one number for each of ``METRICS``. Children are made when they are first asked for;
    a ``leaf`` has none.
    """

    frame: StackFrame
    depth: int
    total: Sums
    own: Sums
    users: bool = True
    leaf: bool = True
    parent: CallNode | None = None
    below: Callable[[CallNode], dict[StackFrame, CallNode]] = lambda node: {}

    @cached_property
    def children(self) -> dict[StackFrame, CallNode]:
        """What it calls, or with an inverted tree what calls it."""
        return self.below(self)

    @property
    def path(self) -> tuple[StackFrame, ...]:
        """The frames from the root to this one, which identify a node."""
        frames, node = [], self
        while node.parent is not None:
            frames.append(node.frame)
            node = node.parent
        return tuple(reversed(frames))


@dataclass(frozen=True)
class Options:
    """What the tree shows.

    ``imports`` and ``library`` say whether what import statements made, and frames outside the
    user's code, are shown; ``pattern`` is a regular expression that a frame of each stack matches.
    """

    inverted: bool = False
    imports: bool = True
    library: bool = True
    pattern: str = ""


@dataclass(frozen=True)
class Tree:
    """The root, whose total is the sum of everything shown, and what was left out."""

    root: CallNode
    left_out: int = 0
    problem: str = ""


def build(loaded: Loaded, view: View, options: Options) -> Tree:
    """The tree of a stretch of time and a thread."""
    try:
        pattern = re.compile(options.pattern, re.IGNORECASE) if options.pattern else None
    except re.error as error:
        problem = f"'{options.pattern}' is not a regular expression: {error}"
        return Tree(_root(), problem=problem)
    sites, sums = site_sums(loaded, view)
    if not options.imports:
        importing = loaded.places.importing
        mine = ~importing[np.where(sites < len(importing), sites, 0)]
        sites, sums = sites[mine], sums[mine]
    order = _largest(sums[:, 1] + sums[:, 2], MOST_SITES)
    frames = loaded.frames
    # A row is as long as the deepest of the stacks, and there is a row for each.
    deepest = np.maximum.accumulate(frames.depths(sites[order]) + 1)
    order = order[deepest * np.arange(1, len(order) + 1) <= MOST_CELLS]
    left_out = len(sites) - len(order)
    sites, sums = sites[order], sums[order]
    stacks = frames.stacks(sites, options.library, options.inverted)
    if pattern is not None:
        matching = _matching(frames, stacks, pattern)
        stacks, sums = stacks[matching], sums[matching]
    grove = _Grove(frames, stacks, sums)
    return Tree(grove.root(), left_out)


def _largest(values: Sums, most: int) -> NDArray[np.int64]:
    """Where the largest values are, the largest first."""
    some = np.arange(len(values))
    if len(values) > most:
        some = np.sort(np.argpartition(-values, most)[:most])
    return some[np.argsort(-values[some], kind="stable")]


def _matching(frames: FrameTable, stacks: Stacks, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    """Which stacks have a frame that a pattern matches."""
    found = np.zeros(len(frames.known) + 1, bool)  # the last one is of NONE
    for number in np.unique(stacks[stacks != NONE]).tolist():
        found[number] = pattern.search(_searched(frames.known[number])) is not None
    return np.asarray(found[stacks].any(axis=1))


class _Grove:
    """Stacks with their sums, from which nodes are made."""

    def __init__(self, frames: FrameTable, stacks: Stacks, sums: Sums) -> None:
        self._frames, self._stacks, self._sums = frames, stacks, sums

    def root(self) -> CallNode:
        """The node above all stacks."""
        root = _root()
        root.total = self._sums.sum(axis=0)
        root.below = partial(self._children, np.arange(len(self._stacks)))
        return root

    def _children(self, rows: NDArray[np.int64], node: CallNode) -> dict[StackFrame, CallNode]:
        """The nodes below one, whose stacks are those of ``rows``, in the order of those."""
        at = node.depth + 1
        numbers = self._stacks[rows, at]
        rows, numbers = rows[numbers != NONE], numbers[numbers != NONE]
        if not len(rows):
            return {}
        order = np.argsort(numbers, kind="stable")
        rows, numbers = rows[order], numbers[order]
        starts = np.flatnonzero(np.diff(numbers, prepend=NONE))
        sums = self._sums[rows]
        ending = self._stacks[rows, at + 1] == NONE
        totals = np.add.reduceat(sums, starts, axis=0)
        own = np.add.reduceat(sums * ending[:, None], starts, axis=0)
        leaves = np.logical_and.reduceat(ending, starts).tolist()
        groups = np.split(rows, starts[1:])
        children = {}
        for which in np.argsort(order[starts]).tolist():
            number = int(numbers[starts[which]])
            frame, below = self._frames.known[number], partial(self._children, groups[which])
            users, leaf = self._frames.users[number], leaves[which]
            children[frame] = CallNode(
                frame, at, totals[which], own[which], users, leaf, node, below
            )
        return children


def site_sums(loaded: Loaded, view: View) -> tuple[NDArray[np.int64], Sums]:
    """Sites that made something in a stretch of time, and for each the sums of ``METRICS``."""
    if not view.is_whole:
        return loaded.lanes.sums(view)
    if view.thread is None:
        table = loaded.recording.site_totals
        table = table[table["alloc_count"] > 0]
        columns = ["live_bytes", "alloc_bytes", "alloc_count", "freed_bytes"]
        sites, sums = table.index.to_numpy(np.int64), table[columns].to_numpy(np.float64, copy=True)
    else:
        sites, sums = loaded.lanes.sums(view)
    unwound = loaded.lanes.freed_since(loaded.analysis.judged_ns, view.thread)
    freed = np.where(sites < len(unwound), unwound[np.minimum(sites, len(unwound) - 1)], 0.0)
    sums[:, METRICS.index("alive")] += freed
    sums[:, METRICS.index("churn")] -= freed
    return sites, sums


def visible_rows(
    root: CallNode, opened: set[tuple[StackFrame, ...]], metric: str, sort: str
) -> list[CallNode]:
    """The nodes that are on screen when those of ``opened`` are open, each below its parent."""
    at = METRICS.index(metric)
    rows: list[CallNode] = []
    waiting = _sorted(root.children.values(), at, sort)[::-1]
    while waiting:
        node = waiting.pop()
        rows.append(node)
        if not node.leaf and node.path in opened:
            waiting.extend(_sorted(node.children.values(), at, sort)[::-1])
    return rows


def main_path(node: CallNode, metric: str) -> Iterator[CallNode]:
    """From a node down its largest child, again and again, while that has a share worth a look:
    what one opens first."""
    at = METRICS.index(metric)
    least = float(node.total[at]) * LEAST_SHARE
    while node.children:
        node = max(node.children.values(), key=lambda child: child.total[at])
        if node.total[at] <= 0 or node.total[at] < least:
            return
        yield node


def _sorted(nodes: Iterable[CallNode], metric: int, sort: str) -> list[CallNode]:
    if sort == "own":
        return sorted(nodes, key=lambda node: -node.own[metric])
    if sort == "objects":
        return sorted(nodes, key=lambda node: -node.total[METRICS.index("objects")])
    return sorted(nodes, key=lambda node: -node.total[metric])


def _root() -> CallNode:
    return CallNode(StackFrame("", 0, ""), -1, np.zeros(len(METRICS)), np.zeros(len(METRICS)))


def _searched(frame: StackFrame) -> str:
    return f"{frame.file}:{frame.line} {frame.function}"


def flame(root: CallNode, metric: str, width: int) -> list[Box]:
    """A node over its callees, each as wide as its share; what is narrower than a column is left
    out."""
    at = METRICS.index(metric)
    whole = float(root.total[at])
    if whole <= 0 or width <= 0:
        return []
    boxes: list[Box] = []
    waiting = [(root, 0, 0.0)]
    while waiting:
        node, row, begin = waiting.pop()
        size = float(node.total[at]) / whole * width
        left, right = round(begin), round(begin + size)
        if right <= left:
            continue
        boxes.append(Box(row, left, right, box_text(node), node))
        for child in sorted(node.children.values(), key=lambda child: -child.total[at]):
            waiting.append((child, row + 1, begin))
            begin += float(child.total[at]) / whole * width
    return boxes


def box_text(node: CallNode) -> str:
    """Function and line, or everything at the root."""
    if node.parent is None:
        return "all"
    if not node.frame.file:
        return node.frame.function
    return f"{node.frame.function} {place(node.frame)}"
