"""Many processes as rows of a heat map: what is known of each by now, sorted and scaled.

Covers: reading digests while the screen is used, rows, one scale for all of them. Does not cover:
how a cell is drawn (``widgets.heat_map``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tlmem.fleets.comparing import FleetAnalysis, Unreadable
from tlmem.fleets.digest import Digest
from tlmem.fleets.engine import digests
from tlmem.units import format_bytes, format_count

ORDERS = ("rank", "growth", "peak")
MEMORIES = ("resident", "arrays")
LONGEST_NAME, LONGEST_NODE = 18, 10


@dataclass(frozen=True)
class HeatRow:
    """One process: texts for its columns, and its memory over time in bytes."""

    path: str
    name: str
    node: str
    outcome: str
    growth: str
    peak: str
    curve: NDArray[np.float64]
    seconds: float

    def cells(self, width: int, longest_s: float) -> NDArray[np.float64]:
        """The highest memory in each of ``width`` columns of ``longest_s``; NaN after the end."""
        found = np.full(max(width, 0), np.nan)
        if not len(self.curve) or self.seconds <= 0 or longest_s <= 0:
            return found
        points = len(self.curve)
        for column in range(len(found)):
            begin = column * longest_s / width
            if begin >= self.seconds:
                break
            end = min((column + 1) * longest_s / width, self.seconds)
            first = min(int(begin / self.seconds * points), points - 1)
            last = min(int(np.ceil(end / self.seconds * points)), points)
            found[column] = self.curve[first : max(last, first + 1)].max()
        return found


@dataclass(frozen=True)
class HeatMap:
    """Rows in an order; ``highest`` bytes and ``longest_s`` are the ends of both scales."""

    rows: tuple[HeatRow, ...]
    highest: float
    longest_s: float
    unit: str
    """What growth is counted by: the label of steps, or ``s``."""
    memory: str


class FleetIndex:
    """Digests of many recordings, more of them from look to look.

    Args:
        jobs: processes that make them; None: one for each core.
    """

    def __init__(self, files: Sequence[Path], jobs: int | None = None) -> None:
        self.files = tuple(files)
        self.jobs = jobs
        self._lock = threading.Lock()
        self._processes: list[Digest] = []
        self._unreadable: list[Unreadable] = []
        self._stopped = False

    def read(self, more: Callable[[], None]) -> None:
        """Makes every digest; ``more`` is called after each, in this thread."""
        for found in digests(self.files, jobs=self.jobs, stopped=lambda: self._stopped):
            with self._lock:
                if isinstance(found, Digest):
                    self._processes.append(found)
                else:
                    self._unreadable.append(found)
            if self._stopped:
                return
            more()

    def stop(self) -> None:
        """Makes no more of them."""
        self._stopped = True

    @property
    def known(self) -> int:
        """Recordings that were looked at."""
        with self._lock:
            return len(self._processes) + len(self._unreadable)

    @property
    def is_complete(self) -> bool:
        """Whether all of them were."""
        return self.known == len(self.files)

    @property
    def analysis(self) -> FleetAnalysis | None:
        """What is known by now; None before the first digest."""
        with self._lock:
            processes, unreadable = list(self._processes), list(self._unreadable)
        if not processes:
            return None
        processes.sort(key=lambda process: (process.identity.order, process.path))
        return FleetAnalysis(tuple(processes), tuple(unreadable))


def heat_map(found: FleetAnalysis, order: str = "rank", memory: str = "resident") -> HeatMap:
    """The map of all processes.

    Args:
        order: of ``ORDERS``; by growth and peak the highest come first.
        memory: of ``MEMORIES``.
    """
    processes = list(found.processes)
    if order == "growth":
        processes.sort(key=lambda one: -(found.growth_of(one) or 0.0))
    elif order == "peak":
        processes.sort(key=lambda one: -_peak(one, memory))
    rows = tuple(_row(found, process, memory) for process in processes)
    highest = max((float(row.curve.max(initial=0.0)) for row in rows), default=0.0)
    longest = max((row.seconds for row in rows), default=0.0)
    return HeatMap(rows, highest, longest, found.step or "s", memory)


def _row(found: FleetAnalysis, process: Digest, memory: str) -> HeatRow:
    growth = found.growth_of(process)
    curve = process.resident_curve if memory == "resident" else process.tracked_curve
    return HeatRow(
        path=process.path,
        name=process.identity.short[:LONGEST_NAME],
        node=process.host[:LONGEST_NODE],
        outcome=process.outcome,
        growth=format_bytes(growth) if growth else "",
        peak=format_bytes(_peak(process, memory)),
        curve=np.array(curve, np.float64) * 1e3,
        seconds=process.seconds,
    )


def _peak(process: Digest, memory: str) -> float:
    return float((process.resident_peak_bytes or 0) if memory == "resident" else process.peak_bytes)


def count_sentence(index: FleetIndex, found: FleetAnalysis | None) -> str:
    """How many processes are known, by verdict, and what is missing."""
    parts = []
    if found is not None:
        parts += [f"{format_count(count)} {outcome}" for outcome, count in found.verdicts.items()]
        if found.unreadable:
            parts.append(f"{format_count(len(found.unreadable))} cannot be read")
    return ", ".join(parts)
