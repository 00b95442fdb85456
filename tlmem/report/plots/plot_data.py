"""What a picture is drawn of: a recording, what was found in it, and a range of its time.

Covers: what several pictures need, computed once. Does not cover: any picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis import Analysis, analyse
from tlmem.analysis.lifetimes import alive_at
from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import Places, is_line, place
from tlmem.errors import TlmemError

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NEVER = np.iinfo(np.int64).max


class NothingToDraw(TlmemError):
    """A recording has nothing of what a picture shows, or nothing in the range of time."""

    exit_code = 2


@dataclass(frozen=True)
class Objects:
    """Every object of a recording, in order of birth; ``died`` is ``NEVER`` of what is alive.

    ``group`` is the number of the blamed line in ``Places.frames``; ``weight`` is how many objects
    a row stands for, more than 1 only where a size limit thinned the list of live objects.
    """

    born: Ints
    died: Ints
    size: Ints
    group: NDArray[np.int32]
    weight: Ints

    def __len__(self) -> int:
        return len(self.born)


@dataclass(frozen=True)
class PlotView:
    """A recording from ``begin_ns`` to ``end_ns``; ``found`` spares a second analysis."""

    recording: Recording
    begin_ns: int
    end_ns: int
    found: Analysis | None = None

    @classmethod
    def of(
        cls,
        recording: Recording,
        found: Analysis | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> PlotView:
        """A range in seconds since the start of the recording; the whole of it without one.

        Raises:
            NothingToDraw: the range is empty or lies outside of the recording.
        """
        whole_ns = max(1, round(recording.seconds * 1e9))
        begin_ns = 0 if since is None else round(since * 1e9)
        end_ns = whole_ns if until is None else min(whole_ns, round(until * 1e9))
        if begin_ns < 0 or begin_ns >= end_ns:
            raise NothingToDraw(
                f"{recording.path} lasts {recording.seconds:.6g} s, and there is nothing from "
                f"{begin_ns / 1e9:.6g} s to {end_ns / 1e9:.6g} s; change --since or --until."
            )
        return cls(recording, begin_ns, end_ns, found)

    @property
    def name(self) -> str:
        """What was recorded: the base name of the script, or of the file; and if parts are lost."""
        script = self.recording.info.get("script", "").rpartition("/")[2]
        name = script or str(self.recording.path).rpartition("/")[2]
        lossy = self.recording.problems or self.recording.lost_events
        return f"{name}, parts are missing" if lossy else name

    @cached_property
    def analysis(self) -> Analysis:
        """What was found in the whole recording."""
        return self.found if self.found is not None else analyse(self.recording)

    @cached_property
    def places(self) -> Places:
        """The blamed lines."""
        return Places.of(self.recording)

    @cached_property
    def objects(self) -> Objects:
        """Every object of the whole recording."""
        table = self.recording.objects
        site = table["born_site"].to_numpy(np.int64)
        died = table["died_ns"].to_numpy(np.int64)
        stride = int((self.recording.fold or {}).get("live_stride", 1) or 1)
        known = site < len(self.places.group_of_site)
        return Objects(
            born=table["born_ns"].to_numpy(np.int64),
            died=np.where(died < 0, NEVER, died),
            size=table["size_bytes"].to_numpy(np.int64),
            group=self.places.group_of_site[np.where(known, site, 0)],
            weight=np.where(table["folded"].to_numpy(bool), stride, 1),
        )

    def moments(self, count: int) -> Ints:
        """Evenly spread moments of the range, its begin and end among them."""
        return np.linspace(self.begin_ns, self.end_ns, count).astype(np.int64)


def mean_alive(
    edges_ns: Ints, born: Ints, died: Ints, size: Ints, group: NDArray[np.int32], groups: int
) -> Floats:
    """Bytes of each group alive on average between one edge and the next.

    Where objects live for less than that time, a curve of moments shows which it happens to meet;
    this one counts each for as long as it lived.

    Args:
        edges_ns: ascending, no two alike.
        born, died, size, group, groups: as for ``alive_by_group``.
    Returns:
        Bytes, one row for each group, one column for each pair of edges.
    """
    width = len(edges_ns)
    begin, end = int(edges_ns[0]), int(edges_ns[-1])
    integral = np.zeros((groups, width))
    for moments, sign in ((born, 1.0), (died, -1.0)):
        # From each moment on, size is added to what is alive: its integral up to an edge is size
        # times the edge, less size times the moment.
        inside = np.flatnonzero(moments < end)
        moment = np.maximum(moments[inside], begin) - begin
        column = np.searchsorted(edges_ns - begin, moment, side="left")
        key = group[inside].astype(np.int64) * width + column
        total = np.bincount(key, size[inside], groups * width).reshape(groups, width)
        lost = np.bincount(key, size[inside] * moment.astype(float), groups * width)
        lost = lost.reshape(groups, width)
        integral += sign * (np.cumsum(total, 1) * (edges_ns - begin) - np.cumsum(lost, 1))
    return np.maximum(np.diff(integral, axis=1) / np.diff(edges_ns), 0.0)


def peak_alive(edges_ns: Ints, born: Ints, died: Ints, size: Ints) -> Floats:
    """Most bytes alive at once between one edge and the next; what ``mean_alive`` smooths out.

    Args:
        edges_ns: ascending.
        born: ascending.
        died, size: as for ``alive_by_group``.
    """
    order = np.argsort(died, kind="stable")
    dead_bytes = np.concatenate(([0], np.cumsum(size[order])))
    dead = np.searchsorted(died[order], born, side="right")
    # Of several born in one moment the last one sees all of them.
    held = (np.cumsum(size) - dead_bytes[dead]).astype(float)
    level = alive_at(edges_ns, born, died, size)
    peaks = np.maximum(level[:-1], level[1:])
    inside = (born >= edges_ns[0]) & (born <= edges_ns[-1])
    column = np.searchsorted(edges_ns, born[inside], side="left") - 1
    np.maximum.at(peaks, np.maximum(column, 0), held[inside])
    return peaks


def label_of(frame: StackFrame) -> str:
    """A blamed line as a label: base name, line and function."""
    if not frame.file and not frame.function:
        return "no Python stack"
    if frame.file and not is_line(frame):
        return place(frame)
    name = frame.file.rpartition("/")[2] or "?"
    return f"{name}:{frame.line} {frame.function.rpartition('.')[2]}".strip()
