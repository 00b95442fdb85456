"""What is alive at the end, by line.

Covers: live objects at the moment of judging, grouped by blamed line. Being alive is no fault, so
these findings are ``info``. Does not cover: whether it grows; see ``growth``.
"""

from __future__ import annotations

import numpy as np

from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places, place
from tlmem.units import format_bytes, format_count, format_seconds

MOST_LINES = 20


def live_at_end(lives: Lifetimes, places: Places) -> list[Finding]:
    """The lines that hold most bytes at the end, most bytes first, at most ``MOST_LINES``."""
    alive = np.flatnonzero((lives.born <= lives.judged_ns) & (lives.died > lives.judged_ns))
    group, weight = lives.group[alive], lives.weight[alive]
    counts = np.bincount(group, weights=weight, minlength=places.count)
    held = np.bincount(group, weights=lives.size[alive] * weight, minlength=places.count)
    made = np.bincount(lives.group, weights=lives.weight, minlength=places.count)
    order = np.lexsort((-counts, -held))
    found = []
    for number in order[counts[order] > 0][:MOST_LINES].tolist():
        rows = alive[group == number]
        sites, times = np.unique(lives.site[rows], return_counts=True)
        largest = rows[np.argmax(lives.size[rows])]
        count, size = int(counts[number]), int(held[number])
        oldest = (lives.born[rows[0]] - lives.begin_ns) / 1e9
        frame = places.frames[number]
        many = count != 1
        found.append(
            Finding(
                kind="live-at-end",
                severity="info",
                count=count,
                bytes=size,
                evidence=(
                    f"{format_count(count)} of {format_count(made[number])} "
                    f"array{'s' if made[number] != 1 else ''} made at {place(frame)} "
                    f"{'are' if many else 'is'} alive at the end; {format_bytes(size)}, "
                    f"{'the oldest ' if many else ''}made after {format_seconds(max(0.0, oldest))}."
                ),
                object=int(lives.ordinal[largest]),
                site=frame,
                stack=places.stack(int(sites[np.argmax(times)])),
            )
        )
    return found
