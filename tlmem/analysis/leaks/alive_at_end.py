"""What is alive when the program is judged, by line.

Covers: live objects at the moment of judging, grouped by blamed line, and how many of these are
still alive at exit: functions return and free what they held. Being alive is not a fault, so
these findings are ``info``. Does not cover: whether it grows; see ``growth``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_sites import LAST_FEW
from tlmem.analysis.lifetimes import NEVER, Lifetimes, lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places, allocated_at
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_LINES = 20
RECENT = 50_000
"""The latest so many objects tell where those of a line are usually freed."""
LineSums = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Of each line how many objects, and how many bytes."""
_analysed: WeakKeyDictionary[Recording, LineSums] = WeakKeyDictionary()
"""What is alive by line in recordings that are still there; the lines of one never change."""


def live_at_end(lives: Lifetimes, places: Places) -> list[Finding]:
    """The lines that hold most bytes when judged, most bytes first, at most ``MOST_LINES``.

    Behind them those that only hold temporaries of the last moment.
    """
    alive = np.flatnonzero((lives.born <= lives.judged_ns) & (lives.died > lives.judged_ns))
    group = lives.group[alive]
    counts, held = _analysed[places.recording] = alive_by_line(lives, places)
    made = np.bincount(lives.group, minlength=places.count)
    if lives.sums is not None:
        made = lives.sums.made
    order = np.lexsort((-counts, -held))
    order = order[counts[order] > 0]
    passing = in_passing(lives, alive[np.isin(group, order[: 2 * MOST_LINES])], counts)
    order = order[np.argsort(np.isin(order, list(passing)), kind="stable")]
    return [
        line_finding(
            lives,
            places,
            number,
            rows=alive[group == number],
            count=int(counts[number]),
            held=int(held[number]),
            made=int(made[number]),
            passing=number in passing,
        )
        for number in order[:MOST_LINES].tolist()
    ]


def in_passing(lives: Lifetimes, alive: NDArray[np.int64], counts: NDArray[np.int64]) -> set[int]:
    """Lines whose few live objects were freed later where others of the line had been before.

    They were temporaries of the last moment, alive only because the program was judged just then.

    Args:
        alive: the rows of live objects that are looked at.
        counts: live objects of each line.
    """
    alive = alive[counts[lives.group[alive]] <= LAST_FEW]
    recent = np.arange(max(0, len(lives) - RECENT), len(lives))
    recent = recent[lives.died[recent] <= lives.judged_ns]
    usual = set(zip(lives.group[recent].tolist(), lives.died_site[recent].tolist(), strict=True))
    found: set[int] = set()
    kept: set[int] = set()
    for row in alive.tolist():
        line = int(lives.group[row])
        freed = lives.died[row] != NEVER and (line, int(lives.died_site[row])) in usual
        (found if freed else kept).add(line)
    return found - kept


def alive_by_line(lives: Lifetimes, places: Places) -> LineSums:
    """Objects of each line that were alive when the program was judged, and their bytes."""
    if lives.sums is not None and lives.judged_ns >= lives.cut_ns:
        return lives.sums.live_count, lives.sums.live_bytes
    alive = np.flatnonzero((lives.born <= lives.judged_ns) & (lives.died > lives.judged_ns))
    group, weight = lives.group[alive], lives.weight[alive]
    counts = np.bincount(group, weights=weight, minlength=places.count)
    held = np.bincount(group, weights=lives.size[alive] * weight, minlength=places.count)
    return counts.astype(np.int64), held.astype(np.int64)


def alive_in(recording: Recording, places: Places) -> LineSums:
    """The same of a recording; one that was analysed before is not gone through again."""

    def alive() -> LineSums:
        found = _analysed.get(recording)
        return alive_by_line(lifetimes(recording, places), places) if found is None else found

    return recording.kept(("alive at the end, by line",), alive)


def line_finding(
    lives: Lifetimes,
    places: Places,
    number: int,
    rows: NDArray[np.int64],
    count: int,
    held: int,
    made: int,
    passing: bool = False,
) -> Finding:
    """What one line holds; ``rows`` are those of its live objects that are known one by one."""
    frame = places.frames[number]
    if len(rows):
        sites, times = np.unique(lives.site[rows], return_counts=True)
        site = int(sites[np.argmax(times)])
        example = int(lives.ordinal[rows[np.argmax(lives.size[rows])]])
        oldest = format_seconds(max(0.0, (lives.born[rows[0]] - lives.begin_ns) / 1e9))
        since = f", {'the oldest ' if count != 1 else ''}allocated after {oldest}"
    else:
        site = int(np.flatnonzero(places.group_of_site == number)[-1])
        example, since = None, ""
    freed = rows[lives.died[rows] != NEVER]
    left_count = max(0, count - int(lives.weight[freed].sum()))
    left_bytes = max(0, held - int((lives.size[freed] * lives.weight[freed]).sum()))
    return Finding(
        kind="live-at-end",
        severity="info",
        count=count,
        bytes=held,
        evidence=(
            f"{format_count(count)} of {format_count(made)} {lives.noun(number)}"
            f"{'s' if made != 1 else ''} allocated "
            f"{allocated_at(frame)} {'were' if count != 1 else 'was'} alive when judged"
            f"{', temporary: freed later where others of this line were' if passing else ''}; "
            f"{format_bytes(held)}{since}.{freed_by_exit(count, held, left_count, left_bytes)}"
        ),
        object=example,
        site=frame,
        stack=places.stack(site),
        passing=passing,
        exit_count=left_count,
        exit_bytes=left_bytes,
    )


def freed_by_exit(count: int, held: int, left_count: int, left_bytes: int) -> str:
    """What of a line was freed between the moment of judging and exit, in a sentence."""
    freed = count - left_count
    if freed == 0:
        return ""
    if freed == count:
        return f" {'It was' if count == 1 else 'All were'} freed before exit."
    were = "was" if freed == 1 else "were"
    return (
        f" {format_count(freed)} of them, {format_bytes(held - left_bytes)}, {were} freed before "
        "exit."
    )
