"""Where segments and blocks lay, and when: rectangles of address against time.

Covers: the rectangles under one setting, addresses put side by side where nothing was reserved
between them, what is used of each cell of a grid. Does not cover: drawing them
(``report.plots.segments``, ``report.replay``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.replaying.cuda import BEFORE, Simulator
from tlmem.replaying.settings import Settings
from tlmem.replaying.trace import ALLOC, FREE, Trace

MOST_EVENTS = 400_000
"""Of longer traces the part around the peak is shown."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rectangles:
    """From event ``begin`` to just before ``end``, from address ``low`` to ``high``."""

    begin: Ints
    end: Ints
    low: Ints
    high: Ints

    def __len__(self) -> int:
        return len(self.begin)


@dataclass(frozen=True)
class Layout:
    """``segments`` hold ``blocks``, whose numbers are ``block``. Events ``first`` to ``last`` are
    shown, whose times are ``time_ns``; addresses go from 0 to ``top``. ``peak`` is the event after
    which most was reserved.
    """

    segments: Rectangles
    blocks: Rectangles
    block: Ints
    first: int
    last: int
    time_ns: Ints
    top: int
    peak: int

    def used(self, rows: int, columns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Shares of each cell of a grid: reserved, and in blocks; row 0 is the lowest addresses.

        A column shows the moment at its middle.
        """
        moments = self.first + ((np.arange(columns) + 0.5) * (self.last - self.first) / columns)
        return (
            _cells(self.segments, moments.astype(np.int64), rows, self.top),
            _cells(self.blocks, moments.astype(np.int64), rows, self.top),
        )


def _cells(shown: Rectangles, moments: Ints, rows: int, top: int) -> NDArray[np.float64]:
    cells = np.zeros((rows, len(moments)))
    height = max(1.0, top / rows)
    edges = np.arange(rows + 1) * height
    for column, moment in enumerate(moments.tolist()):
        there = (shown.begin <= moment) & (moment < shown.end)
        low, high = shown.low[there], shown.high[there]
        order = np.argsort(low, kind="stable")
        low, high = low[order], high[order]
        # Bytes below each edge: of rectangles that do not overlap.
        before = np.concatenate([[0], np.cumsum(high - low)])
        place = np.searchsorted(low, edges, side="right")
        last = np.maximum(place - 1, 0)
        over = np.maximum(0, high[last] - edges) if len(high) else np.zeros(len(edges))
        below = before[place] - np.where(place > 0, over, 0)
        cells[:, column] = np.diff(below) / height
    return np.clip(cells, 0, 1)


def layout_of(trace: Trace, settings: Settings) -> Layout:
    """The rectangles of a trace under settings, on a roomy device unless they say otherwise.

    Raises:
        MemoryError, Contradiction.
    """
    simulator = Simulator(settings, trace, keeps_log=True)
    steps = simulator.run(trace.events, with_steps=True)
    figures = simulator.figures()
    count = figures.events
    peak = max(0, figures.peak_event)
    first = max(0, min(peak - MOST_EVENTS // 2, count - MOST_EVENTS))
    last = min(count, first + MOST_EVENTS)
    assert steps is not None
    blocks, number = _blocks(trace, steps, count)
    segments = _segments(simulator.changes(), count)
    shown = [_within(each, first, last) for each in (segments, blocks)]
    kept = (blocks.end > first) & (blocks.begin < last)
    squeeze = _Squeeze(shown[0])
    return Layout(
        segments=squeeze.rectangles(shown[0]),
        blocks=squeeze.rectangles(shown[1]),
        block=number[kept],
        first=first,
        last=max(last, first + 1),
        time_ns=trace.time_ns,
        top=squeeze.top,
        peak=peak,
    )


def _blocks(trace: Trace, steps: np.ndarray, count: int) -> tuple[Rectangles, Ints]:
    kind, block = trace.events["kind"][:count], trace.events["block"][:count].astype(np.int64)
    begins = np.flatnonzero(kind == ALLOC)
    ends = np.full(trace.blocks, count, np.int64)
    freed = np.flatnonzero(kind == FREE)
    ends[block[freed]] = freed
    low = steps["address"][begins].astype(np.int64)
    high = low + steps["bytes"][begins].astype(np.int64)
    return Rectangles(begins, ends[block[begins]], low, high), block[begins]


def _segments(changes: np.ndarray, count: int) -> Rectangles:
    """From what the driver gave to where it took it, or a part of it."""
    open_: dict[int, tuple[int, int]] = {}
    made: list[tuple[int, int, int, int]] = []
    for event, address, size, given in zip(
        np.where(changes["event"] == BEFORE, 0, changes["event"]).tolist(),
        changes["address"].tolist(),
        changes["bytes"].tolist(),
        changes["given"].tolist(),
        strict=True,
    ):
        if given:
            open_[address] = (event, size)
            continue
        for at in [
            each for each in open_ if each < address + size and each + open_[each][1] > address
        ]:
            begin, length = open_.pop(at)
            made.append((begin, event, at, at + length))
            if at < address:
                open_[at] = (event, address - at)
            if at + length > address + size:
                open_[address + size] = (event, at + length - address - size)
    made += [(begin, count, at, at + length) for at, (begin, length) in open_.items()]
    columns = np.array(sorted(made), np.int64).reshape(-1, 4).T
    return Rectangles(columns[0], columns[1], columns[2], columns[3])


def _within(shown: Rectangles, first: int, last: int) -> Rectangles:
    kept = (shown.end > first) & (shown.begin < last)
    return Rectangles(
        np.maximum(shown.begin[kept], first),
        np.minimum(shown.end[kept], last),
        shown.low[kept],
        shown.high[kept],
    )


class _Squeeze:
    """Addresses with what was never reserved left out."""

    def __init__(self, segments: Rectangles) -> None:
        order = np.argsort(segments.low, kind="stable")
        low, high = segments.low[order], np.maximum.accumulate(segments.high[order])
        gaps = np.maximum(0, low[1:] - high[:-1])
        self.at = low
        self.less = np.cumsum(np.concatenate([low[:1], gaps]))
        self.top = int(high[-1] - self.less[-1]) if len(low) else 1

    def rectangles(self, shown: Rectangles) -> Rectangles:
        """The same, with addresses from 0 on."""
        if not len(self.at):
            return shown
        place = np.searchsorted(self.at, shown.low, side="right") - 1
        less = self.less[np.maximum(place, 0)]
        return Rectangles(shown.begin, shown.end, shown.low - less, shown.high - less)
