"""How much each call stack and each line allocated, in exact sums.

Covers: the tree of frames with what was allocated under each, in all and alive at one moment; one
row for each blamed line. Does not cover: how it is shown; flame graphs, tables and exports do that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import lifetimes
from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import Places

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MEASURES = ("alive_bytes", "alive_count", "total_bytes", "total_count")
"""Alive when the program was judged, and allocated in all: bytes and numbers of objects."""
NO_STACK = StackFrame("", 0, "no Python stack")
CUT_STACK = StackFrame("", 0, "outer frames, not recorded")


@dataclass(frozen=True)
class StackTree:
    """Frames with their callers: node ``i`` was called by ``parent[i]``, which stands before it.

    ``parent`` is -1 of the outermost frames. ``own`` says that a frame is the user's code, not a
    library's. ``values`` has a row for each of ``MEASURES`` and a column for each node: what was
    allocated by this very frame, not by those that it called. ``node_of_site`` is the node of each
    site number, -1 of one that is not in the tree.
    """

    parent: NDArray[np.int64]
    frames: tuple[StackFrame, ...]
    own: NDArray[np.bool_]
    values: NDArray[np.int64]
    node_of_site: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.frames)

    def with_callees(self) -> NDArray[np.int64]:
        """``values`` with those of all frames that a frame called."""
        sums = self.values.copy()
        for node in range(len(self) - 1, -1, -1):
            if self.parent[node] >= 0:
                sums[:, self.parent[node]] += sums[:, node]
        return sums

    def path(self, node: int) -> list[int]:
        """The nodes from the outermost frame to a node."""
        path = []
        while node >= 0:
            path.append(node)
            node = int(self.parent[node])
        return path[::-1]

    def without_small(self, share: float) -> StackTree:
        """The tree without frames that have less than ``share`` of the whole of every measure.

        What they allocated is counted for their callers; outermost frames stay, so that sums do.
        """
        sums = self.with_callees()
        whole = np.maximum(self.values.sum(axis=1), 1)
        keep = (sums >= share * whole[:, None]).any(axis=0) | (self.parent < 0)
        keep &= (sums > 0).any(axis=0)
        values = self.values.copy()
        number = np.cumsum(keep) - 1
        for node in np.flatnonzero(~keep)[::-1].tolist():
            if self.parent[node] >= 0:
                values[:, self.parent[node]] += values[:, node]
        kept = np.flatnonzero(keep)
        # Callers stand before the frames that they called, so theirs is known.
        now = np.where(keep, number, -1)
        for node in np.flatnonzero(~keep).tolist():
            if self.parent[node] >= 0:
                now[node] = now[self.parent[node]]
        parents = self.parent[kept]
        return StackTree(
            parent=np.where(parents >= 0, number[parents], -1),
            frames=tuple(self.frames[node] for node in kept.tolist()),
            own=self.own[kept],
            values=values[:, kept],
            node_of_site=np.append(now, -1)[self.node_of_site],
        )


def stack_tree(recording: Recording, moment_ns: int | None = None) -> StackTree:
    """The tree of a recording; equal frames with one caller are one node.

    Args:
        recording: with events that may be folded; sums are exact all the same.
        moment_ns: what counts as alive; None: the moment at which the report judges the program.
    """
    count = int(recording.sites.index.to_numpy(np.int64).max(initial=0)) + 1
    return tree_of(recording, values_of_sites(recording, count, moment_ns))


def tree_of(recording: Recording, values: NDArray[np.int64]) -> StackTree:
    """The tree of other measures than ``MEASURES``: a row for each, a column for each site."""
    sites = recording.sites
    numbers = sites.index.to_numpy(np.int64)
    node_of: dict[int, int] = {}
    known: dict[tuple[int, str, int, str], int] = {}
    parents: list[int] = []
    frames: list[StackFrame] = []
    own: list[bool] = []
    order = np.argsort(sites["depth"].to_numpy(), kind="stable")
    columns = [sites[name].tolist() for name in ("parent", "file", "line", "function", "blamed")]
    for row in order.tolist():
        site = int(numbers[row])
        parent, file, line, function, blamed = (column[row] for column in columns)
        above = node_of.get(int(parent), -1) if site > 1 and 0 < parent != site else -1
        frame = NO_STACK if site == 0 else CUT_STACK if site == 1 else None
        frame = frame or StackFrame(str(file), int(line), str(function))
        key = (above, frame.file, frame.line, frame.function)
        node = known.setdefault(key, len(frames))
        if node == len(frames):
            parents.append(above)
            frames.append(frame)
            own.append(False)
        own[node] = own[node] or bool(site == blamed and site > 1)
        node_of[site] = node
    sums = np.zeros((len(values), len(frames)), np.int64)
    rows = np.array([node_of[int(site)] for site in numbers.tolist()], np.int64)
    for measure in range(len(values)):
        np.add.at(sums[measure], rows, values[measure, numbers])
    nodes = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
    nodes[numbers] = rows
    return StackTree(np.array(parents, np.int64), tuple(frames), np.array(own, bool), sums, nodes)


def values_of_sites(recording: Recording, count: int, moment_ns: int | None) -> NDArray[np.int64]:
    """What was allocated at each site: a row for each of ``MEASURES``, a column for each site."""
    if moment_ns is None:
        moment_ns = lifetimes(recording, Places.of(recording)).judged_ns
    objects, totals = recording.objects, recording.site_totals
    born, died = objects["born_ns"].to_numpy(np.int64), objects["died_ns"].to_numpy(np.int64)
    alive = (born <= moment_ns) & ((died < 0) | (died > moment_ns))
    stride = int((recording.fold or {}).get("live_stride", 1) or 1)
    weight = np.where(objects["folded"].to_numpy(bool)[alive], stride, 1)
    site = objects["born_site"].to_numpy(np.int64)[alive]
    site = np.where(site < count, site, 0)
    size = objects["size_bytes"].to_numpy(np.int64)[alive] * weight
    values = np.zeros((len(MEASURES), count), np.int64)
    values[0] = np.bincount(site, size, count).astype(np.int64)
    values[1] = np.bincount(site, weight, count).astype(np.int64)
    place = totals.index.to_numpy(np.int64)
    place = np.where(place < count, place, 0)
    np.add.at(values[2], place, totals["alloc_bytes"].to_numpy(np.int64))
    np.add.at(values[3], place, totals["alloc_count"].to_numpy(np.int64))
    return values


@dataclass(frozen=True)
class LineTotals:
    """One blamed line: what it holds when the program is judged, and what it made in all."""

    frame: StackFrame
    alive_bytes: int
    alive_count: int
    total_bytes: int
    total_count: int


def line_totals(
    recording: Recording, most: int | None = None, moment_ns: int | None = None
) -> list[LineTotals]:
    """The lines of a recording, most bytes alive first, then most bytes in all.

    Args:
        recording: whose events may be folded; sums are exact all the same.
        most: so many rows; None: all.
        moment_ns: what counts as alive; None: the moment at which the report judges the program.
    """
    places = Places.of(recording)
    values = values_of_sites(recording, len(places.group_of_site), moment_ns)
    sums = np.zeros((len(values), places.count), np.int64)
    for measure in range(len(values)):
        np.add.at(sums[measure], places.group_of_site, values[measure])
    order = np.lexsort((-sums[3], -sums[2], -sums[0]))
    order = order[sums[3][order] > 0][:most]
    return [LineTotals(places.frames[group], *sums[:, group].tolist()) for group in order.tolist()]
