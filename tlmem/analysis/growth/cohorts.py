"""The objects of a growing line by when they were made, and how many of each part live on.

The life of a line is cut into equal parts by the clock on the wall, which is the one that users
know: pauses are in it. A leak is a part whose objects never fall to zero, from ever new parts.

Covers: lines and call paths that ``growing_sites`` and ``hidden_growth`` found. Does not cover:
lines whose objects are each replaced by a larger one, of which only the last part lives.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.lifetimes import Lifetimes, alive_by_group
from tlmem.analysis.model import Cohort, Cohorts, Finding
from tlmem.analysis.places import Places

MOST_PARTS = 8

Ints = NDArray[np.int64]


def with_cohorts(
    findings: list[Finding], lives: Lifetimes, places: Places, growths: list[GrowingSite]
) -> list[Finding]:
    """The findings, those about growing lines with the cohorts of their objects."""
    growing = {(places.frames[growth.group], growth.example): growth for growth in growths}
    known_from_ns = places.recording.horizon_ns if lives.folded else 0
    found = []
    for finding in findings:
        growth = None
        if finding.kind == "growing-site" and finding.site and finding.object is not None:
            growth = growing.get((finding.site, finding.object))
        if growth is not None and growth.manner not in ("larger", "renewed"):
            rows = rows_of_growth(lives, growth)
            end_ns = max(growth.judged_ns, lives.unwinding_ns)
            cohorts = cohorts_of(lives, rows, end_ns, known_from_ns, noun=lives.noun(growth.group))
            finding = replace(finding, cohorts=cohorts)
        found.append(finding)
    return found


def rows_of_growth(lives: Lifetimes, growth: GrowingSite) -> Ints:
    """All that a growing line made, or, where only a call path grows, that the path made."""
    rows = np.flatnonzero(lives.group == growth.group)
    return rows[growth.is_of(lives, rows)]


def cohorts_of(
    lives: Lifetimes,
    rows: Ints,
    end_ns: int,
    known_from_ns: int = 0,
    noun: str = "array",
    parts: int = MOST_PARTS,
) -> Cohorts | None:
    """When objects were made and how long they lived; None without objects to speak of.

    Args:
        rows: of ``lives``, rising.
        end_ns: the last moment that is looked at; what is made later does not count.
        known_from_ns: of what was made before this time only those are known that were alive then.
        parts: how many there are at most; no more than objects.
    """
    rows = rows[: int(np.searchsorted(lives.born[rows], end_ns, side="right"))]
    if len(rows) == 0 or known_from_ns > end_ns:
        return None
    born, died = lives.born[rows], lives.died[rows]
    first_ns = int(born[0])
    parts = max(1, min(parts, len(rows), end_ns - first_ns))
    edges = first_ns + (end_ns - first_ns) * np.arange(parts + 1, dtype=np.int64) // parts
    times = edges[1:]
    # Each part ends with its own end, and the first one begins with the first birth.
    part = np.searchsorted(times, born, side="left")
    made, alive = counted(part, times, born, died, lives.weight[rows])
    made_bytes, alive_bytes = counted(
        part, times, born, died, lives.weight[rows] * lives.size[rows]
    )

    def since_begin(time_ns: int) -> float:
        return max(0.0, (time_ns - lives.begin_ns) / 1e9)

    def known(values: Ints, row: int) -> tuple[int | None, ...]:
        return tuple(
            int(value) if times[column] >= known_from_ns or column < row else None
            for column, value in enumerate(values)
        )

    cohorts = []
    for row in range(parts):
        whole = edges[row] >= known_from_ns
        cohorts.append(
            Cohort(
                begin_s=since_begin(int(edges[row])),
                end_s=since_begin(int(edges[row + 1])),
                made=int(made[row]) if whole else None,
                made_bytes=int(made_bytes[row]) if whole else None,
                alive=known(alive[row], row),
                alive_bytes=known(alive_bytes[row], row),
            )
        )
    return Cohorts(
        times_s=tuple(since_begin(int(time)) for time in times),
        rows=tuple(cohorts),
        noun=noun,
        known_from_s=since_begin(known_from_ns),
        thinned=int(lives.weight[rows].max()),
    )


def counted(part: Ints, times: Ints, born: Ints, died: Ints, amount: Ints) -> tuple[Ints, Ints]:
    """What was made in each part, and what of it is alive at each time."""
    made = np.bincount(part, weights=amount, minlength=len(times))
    alive = alive_by_group(times, born, died, amount, part.astype(np.int32), len(times))
    return made.astype(np.int64), alive.astype(np.int64)
