"""Which lines' objects stand at the peak, and whose shorter lives would lower it?

Covers: objects alive at the peak by line, how long they had been there and stay, and what the peak
of the whole recording would be if those of one line ended as early as can be. Does not cover: what
is planned (``buffers``).

What a line makes is there at least for the section in which it is made. Of an object of the runtime
the latest acquire or release but the last release shows that
it was in use; arithmetic leaves no event. Of an array nothing is known of its uses. In both cases
the peak can be lowered so far *at most*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER
from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import Places
from tlmem.events import FIRST_RUNTIME_DEVICE
from tlmem.planning.buffers import PlannedLives, load_of

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_LINES = 20
"""Lines that are looked at one by one."""
BY_BIRTH, BY_OWNERSHIP = "birth", "ownership"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PeakLine:
    """What one line made that is alive at the peak.

    ``count`` objects of together ``bytes``, one of them ``object``; half of them had been alive for
    at least ``age_ns``, and half lived on for at least ``stays_ns`` (None: more than half are never
    freed). With shorter lives the peak would be ``lowered_bytes``: if each ended with the section
    of its birth, or, by ``ownership`` events, with its last use, after which half lived on for at
    least ``idle_ns``.
    """

    site: StackFrame
    count: int
    bytes: int
    object: int
    age_ns: int
    stays_ns: int | None
    lowered_bytes: int
    known_by: str
    idle_ns: int | None = None


def peak_lines(
    recording: Recording, places: Places, lives: PlannedLives, most: int = MOST_LINES
) -> list[PeakLine]:
    """The lines whose objects are alive at the peak, most bytes first, at most so many.

    Args:
        lives: every object of one memory, not only those around the peak.
    """
    if len(lives) == 0:
        return []
    born_site = recording.objects["born_site"].to_numpy()[lives.row]
    site = np.where(born_site < len(places.group_of_site), born_site, 0)
    group = places.group_of_site[site]
    there = (lives.first <= lives.peak_section) & (lives.last >= lives.peak_section)
    held = np.bincount(group[there], weights=lives.size[there], minlength=places.count)
    largest = [n for n in np.argsort(-held, kind="stable").tolist() if held[n]][:most]
    uses = last_uses(recording, lives, np.isin(group, largest))
    return [
        line_at_peak(recording, lives, group == number, there, uses, places.frames[number])
        for number in largest
    ]


def line_at_peak(
    recording: Recording,
    lives: PlannedLives,
    mine: NDArray[np.bool_],
    there: NDArray[np.bool_],
    uses: Ints,
    site: StackFrame,
) -> PeakLine:
    """One line: ``mine`` are its objects, ``there`` all that are alive at the peak."""
    rows, at_peak = np.flatnonzero(mine), np.flatnonzero(mine & there)
    known = uses[at_peak] >= 0
    died = lives.died[at_peak]
    # The middle one of an even number is the earlier one, so that it is a time of the recording.
    middle = (len(at_peak) - 1) // 2
    stays = int(np.partition(died, middle)[middle])
    age = np.partition(lives.peak_ns - lives.born[at_peak], middle)[middle]
    ended = known & (died < NEVER)
    idle = np.sort((died - uses[at_peak])[ended])
    numbers = recording.objects.index.to_numpy(np.int64)
    return PeakLine(
        site=site,
        count=len(at_peak),
        bytes=int(lives.size[at_peak].sum()),
        object=int(numbers[lives.row[at_peak[lives.size[at_peak].argmax()]]]),
        age_ns=max(0, int(age)),
        stays_ns=None if stays == NEVER else max(0, stays - lives.peak_ns),
        lowered_bytes=lowered_peak(lives, rows, uses[rows]),
        known_by=BY_OWNERSHIP if known.any() else BY_BIRTH,
        idle_ns=int(idle[(len(idle) - 1) // 2]) if len(idle) else None,
    )


def lowered_peak(lives: PlannedLives, rows: Ints, uses: Ints) -> int:
    """The peak if some objects ended with the section of their last use, or of their birth.

    Args:
        rows: of ``lives``.
        uses: when each of these was last used, in ns; -1 where that is not known.
    """
    first, last, size = lives.first[rows], lives.last[rows], lives.size[rows]
    # A use within a section keeps the object for the whole of it.
    used = np.searchsorted(lives.time_ns, uses, side="left").clip(max=len(lives.load) - 1)
    needed = np.clip(np.where(uses >= 0, used, first), first, last)
    spared = load_of(needed + 1, last, size, len(lives.load))
    np.subtract(lives.load, spared, out=spared)
    return int(spared.max())


def last_uses(recording: Recording, lives: PlannedLives, wanted: NDArray[np.bool_]) -> Ints:
    """When each object was last seen in use, in ns; -1 where nothing tells.

    Only those of the runtime, and of programs that name holders, have ownership events.
    """
    device = recording.objects["device"].to_numpy(np.uint8)[lives.row]
    if not (wanted & (device >= FIRST_RUNTIME_DEVICE)).any():
        return np.broadcast_to(np.int64(-1), len(lives))
    uses = np.full(len(lives), -1, np.int64)
    ledger = recording.holders
    numbers = recording.objects.index.to_numpy(np.int64)
    position = np.full(int(numbers.max()) + 1, -1, np.int64)
    position[numbers[lives.row[wanted]]] = np.flatnonzero(wanted)
    objects = ledger["object"].to_numpy(np.int64)
    mine = np.where((objects >= 0) & (objects < len(position)), position[objects], -1)
    chosen = mine >= 0
    mine = mine[chosen]
    begin = ledger["begin_ns"].to_numpy(np.int64)[chosen]
    end = ledger["end_ns"].to_numpy(np.int64)[chosen]
    np.maximum.at(uses, mine, begin)
    latest = np.full(len(lives), -1, np.int64)
    np.maximum.at(latest, mine, end)
    # The last giving back is what ends the object, unless it never ended.
    within = (end >= 0) & ((end < latest[mine]) | (lives.died[mine] == NEVER))
    np.maximum.at(uses, mine[within], end[within])
    return uses
