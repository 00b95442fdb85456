"""Results that a program gathers one by one, joins into one array, and frees before it ends.

A prediction appends each batch's output to a list and ends with ``torch.cat(outputs)``. Up to there
its line grows like a leak; that all of it was joined, and freed after that by the program's own
code, says what it was kept for.

Covers: growing lines whose survivors are joined after the last of them was made. Does not cover:
results that are reduced to numbers or written away one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places, allocated_at, place
from tlmem.analysis.rules import RULES
from tlmem.units import format_bytes, format_count


@dataclass(frozen=True)
class Gathered:
    """A line that grew, and the row of the ``Lifetimes`` into which its survivors were joined."""

    growth: GrowingSite
    joined: int


def gathered_results(lives: Lifetimes, growths: list[GrowingSite]) -> list[Gathered]:
    """Those of the growing lines that were joined and freed; none of a recording that was folded.

    What a size limit summed up has no births and deaths of its own.
    """
    if lives.folded:
        return []
    found = ((growth, joined_row(lives, growth)) for growth in growths)
    return [Gathered(growth, row) for growth, row in found if row is not None]


def joined_row(lives: Lifetimes, growth: GrowingSite) -> int | None:
    """What has the size of all survivors, and was made before most of them were freed.

    One array, or those of one line, as of a table with a column for each type; by a line that made
    nothing while they were gathered.
    """
    rows = growth.rows
    if rows is None or not len(rows):
        return None
    died = np.sort(lives.died[rows])
    freed_ns = int(died[int(RULES.nearly_all * (len(rows) - 1))])
    if freed_ns > lives.cut_ns:
        return None
    first = int(np.searchsorted(lives.born, lives.born[rows[-1]], "right"))
    after = np.arange(first, int(np.searchsorted(lives.born, int(died[len(died) // 2]), "right")))
    meanwhile = np.unique(lives.group[rows[0] : first])
    after = after[~np.isin(lives.group[after], meanwhile)]
    if not len(after):
        return None
    least, most = RULES.nearly_all * growth.bytes, growth.bytes / RULES.nearly_all
    _, of_line = np.unique(lives.group[after], return_inverse=True)
    by_line = np.bincount(of_line, weights=lives.size[after])[of_line]
    for size in (lives.size[after], by_line):
        fits = np.flatnonzero((size >= least) & (size <= most))
        if len(fits):
            return int(after[fits[np.argmax(lives.size[after[fits]])]])
    return None


def gathered_finding(lives: Lifetimes, places: Places, found: Gathered) -> Finding:
    """What is said of one: nothing to mend, but that is where so much memory was for a while."""
    growth, frame = found.growth, places.frames[found.growth.group]
    where = place(places.frames[int(lives.group[found.joined])])
    return Finding(
        kind="gathered",
        severity="info",
        count=growth.survivors,
        bytes=growth.bytes,
        evidence=(
            f"{format_count(growth.survivors)} {lives.noun(growth.group)}s allocated "
            f"{allocated_at(frame)} were gathered, joined at {where}, and then freed: "
            f"{format_bytes(growth.bytes)}, twice for a moment."
        ),
        object=growth.example,
        site=frame,
        stack=places.stack(growth.site),
        grew_from_ns=growth.first_ns,
        grew_until_ns=growth.judged_ns,
    )
