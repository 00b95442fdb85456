"""What is alive at the end, by line.

Covers: live objects at the moment of judging, grouped by blamed line. Being alive is no fault, so
these findings are ``info``. Does not cover: whether it grows; see ``growth``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places, place
from tlmem.units import format_bytes, format_count, format_seconds

MOST_LINES = 20


def live_at_end(lives: Lifetimes, places: Places) -> list[Finding]:
    """The lines that hold most bytes at the end, most bytes first, at most ``MOST_LINES``."""
    alive = np.flatnonzero((lives.born <= lives.judged_ns) & (lives.died > lives.judged_ns))
    group = lives.group[alive]
    counts, held = alive_by_line(lives, places)
    made = np.bincount(lives.group, minlength=places.count)
    if lives.sums is not None:
        made = lives.sums.made
    order = np.lexsort((-counts, -held))
    return [
        line_finding(
            lives,
            places,
            number,
            rows=alive[group == number],
            count=int(counts[number]),
            held=int(held[number]),
            made=int(made[number]),
        )
        for number in order[counts[order] > 0][:MOST_LINES].tolist()
    ]


def alive_by_line(lives: Lifetimes, places: Places) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Objects of each line that were alive when the program was judged, and their bytes."""
    if lives.sums is not None and lives.judged_ns >= lives.cut_ns:
        return lives.sums.live_count, lives.sums.live_bytes
    alive = np.flatnonzero((lives.born <= lives.judged_ns) & (lives.died > lives.judged_ns))
    group, weight = lives.group[alive], lives.weight[alive]
    counts = np.bincount(group, weights=weight, minlength=places.count)
    held = np.bincount(group, weights=lives.size[alive] * weight, minlength=places.count)
    return counts.astype(np.int64), held.astype(np.int64)


def line_finding(
    lives: Lifetimes,
    places: Places,
    number: int,
    rows: NDArray[np.int64],
    count: int,
    held: int,
    made: int,
) -> Finding:
    """What one line holds; ``rows`` are those of its live objects that are known one by one."""
    frame = places.frames[number]
    if len(rows):
        sites, times = np.unique(lives.site[rows], return_counts=True)
        site = int(sites[np.argmax(times)])
        example = int(lives.ordinal[rows[np.argmax(lives.size[rows])]])
        oldest = format_seconds(max(0.0, (lives.born[rows[0]] - lives.begin_ns) / 1e9))
        since = f", {'the oldest ' if count != 1 else ''}made after {oldest}"
    else:
        site = int(np.flatnonzero(places.group_of_site == number)[-1])
        example, since = None, ""
    return Finding(
        kind="live-at-end",
        severity="info",
        count=count,
        bytes=held,
        evidence=(
            f"{format_count(count)} of {format_count(made)} {lives.noun(number)}"
            f"{'s' if made != 1 else ''} made "
            f"at {place(frame)} {'are' if count != 1 else 'is'} alive at the end; "
            f"{format_bytes(held)}{since}."
        ),
        object=example,
        site=frame,
        stack=places.stack(site),
    )
