"""What could a recorded program have needed? All that ``tlmem plan`` tells, gathered once.

Covers: which memory is planned, what each way of placing needs, who stands at the peak, what has to
be said beside it. Does not cover: the planner, which is handed in; words (``plan_report``); the
picture (``plots.plan``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.memory.attribution import Moments
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.model import Frame
from tlmem.analysis.places import Places
from tlmem.errors import TlmemError
from tlmem.planning.inputs import (
    HOST,
    MOST_OBJECTS,
    UNIT_BYTES,
    PlannedLives,
    around_the_peak,
    memories,
    on_sections,
)
from tlmem.planning.peak_lines import PeakLine, peak_lines
from tlmem.planning.placing import WAYS

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Ints = NDArray[np.int64]


class NoSuchMemory(TlmemError):
    """The recording has no object in the memory that was asked for."""

    exit_code = 2


@dataclass(frozen=True)
class Placed:
    """What a planner gives back, as ``tlmem.Plan``."""

    offsets: NDArray[np.uint64]
    peak_bytes: int
    lower_bound_bytes: int
    proven: bool


Planner = Callable[[Ints], Placed]
"""Takes rows of (first, last, size, alignment), both ends inclusive."""


@dataclass(frozen=True)
class Planned:
    """What is known of one memory of a recording.

    ``lives`` are all its objects, ``part`` those that were placed, ``group`` the line of each of
    these in ``frames``. ``ways`` are bytes by the names of ``placing.WAYS``. ``resident_bytes`` is
    what arrays, and what allocators and pools kept beside them, had of resident memory when that
    was highest; None where it was not sampled. ``others`` are the peaks of other memories.
    ``earlier`` is a higher peak, bytes and ns, in events of which only sums are known.
    """

    recording: Recording
    lives: PlannedLives
    part: PlannedLives
    placed: Placed
    ways: dict[str, int]
    lines: list[PeakLine]
    group: NDArray[np.int32]
    frames: tuple[Frame, ...]
    resident_bytes: int | None
    others: dict[str, int]
    earlier: tuple[int, int] | None

    @property
    def best(self) -> PeakLine | None:
        """The line whose shorter lives lower the peak most; None when no line does."""
        return lowest(self.lines, self.lives.peak_bytes)

    @property
    def best_freed(self) -> PeakLine | None:
        """That of the lines whose objects are freed while the program runs."""
        freed = [line for line in self.lines if line.stays_ns is not None]
        return lowest(freed, self.lives.peak_bytes)


def lowest(lines: Sequence[PeakLine], peak_bytes: int) -> PeakLine | None:
    """The line that lowers a peak most, the larger one of several."""
    best = min(lines, key=lambda line: (line.lowered_bytes, -line.bytes), default=None)
    return best if best is not None and best.lowered_bytes < peak_bytes else None


def find(
    recording: Recording, planner: Planner, memory: str | None = None, most: int = MOST_OBJECTS
) -> Planned:
    """Plans the objects of a recording.

    Args:
        memory: by name; the one with the highest peak when none is named.
        most: so many objects are placed, those nearest to the peak.
    Raises:
        NoSuchMemory: there is no object in that memory.
    """
    every = memories(recording)
    lives = chosen_memory(recording, every, memory)
    part = around_the_peak(lives, most)
    rows = np.column_stack(
        [part.first, part.last, part.units, np.full(len(part), UNIT_BYTES, np.int64)]
    )
    places = Places.of(recording)
    born_site = recording.objects["born_site"].to_numpy(np.int64)
    site = born_site[part.row] if len(part) else born_site[:0]
    site = np.where((part.row >= 0) & (site < len(places.group_of_site)), site, 0)
    return Planned(
        recording=recording,
        lives=lives,
        part=part,
        placed=planner(rows),
        ways={name: way(part.first, part.last, part.units) for name, way in WAYS.items()},
        lines=peak_lines(recording, places, lives),
        group=places.group_of_site[site],
        frames=places.frames,
        resident_bytes=resident_bytes(recording),
        others={each.memory: each.peak_bytes for each in every if each is not lives},
        earlier=earlier_peak(recording, lives, len(every)),
    )


def chosen_memory(
    recording: Recording, every: list[PlannedLives], memory: str | None
) -> PlannedLives:
    """The memory that is meant; an empty one when the recording has no objects at all."""
    found = [lives for lives in every if memory is None or lives.memory == memory]
    if found:
        return found[0]
    if memory is not None:
        there = ", ".join(each.memory for each in every) or "none"
        raise NoSuchMemory(
            f"{recording.path} has no object in memory '{memory}'; memories with objects: {there}."
        )
    nothing = np.zeros(0, np.int64)
    return on_sections(HOST, nothing, nothing, nothing, nothing)


def resident_bytes(recording: Recording) -> int | None:
    """What objects, and what is kept for them, had of resident memory when it was highest."""
    moments = Moments(with_devices(recording))
    if len(moments.rows) == 0:
        return None
    parts = moments.parts(moments.highest())
    own = parts.tracked_bytes - parts.untouched_bytes + parts.pool_bytes
    return max(0, own + parts.allocator_free_bytes)


def earlier_peak(
    recording: Recording, lives: PlannedLives, memories: int
) -> tuple[int, int] | None:
    """A higher peak, bytes and ns, of which only sums are known, in a recording of one memory."""
    totals = recording.totals
    if recording.fold is None or memories > 1 or totals.peak_bytes <= lives.peak_bytes:
        return None
    return int(totals.peak_bytes), int(totals.peak_ns)
