"""Results that a program gathers one by one and joins into one array.

A prediction appends each batch's output to a list and ends with ``torch.cat(outputs)``. Up to there
its line grows like a leak; that all of it was joined, once, and then freed by the program's own
code, or that nothing but the program's end came after, says what it was kept for.

Covers: growing lines whose survivors are joined after the last of them was made. Does not cover:
results that are reduced to numbers or written away one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """Those of the growing lines that were joined; none where what was freed is lost.

    What a size limit summed up has no births and deaths of its own. What goes with the survivors of
    such a line is part of the same results, as the index of a table that is joined without it.
    """
    if lives.lost_ns:
        return []
    found = [
        Gathered(growth, row)
        for growth in growths
        if (row := joined_row(lives, growth)) is not None
    ]
    others = [growth for growth in growths if all(growth is not each.growth for each in found)]
    for growth in others:
        whole = next((each for each in found if goes_with(lives, growth, each.growth)), None)
        found += [Gathered(growth, whole.joined)] if whole is not None else []
    return found


def joined_row(lives: Lifetimes, growth: GrowingSite) -> int | None:
    """What has the size of all survivors, and was made before they were freed, or at the end.

    One array, or where they are freed those of one line, as of a table with a column for each type;
    by a line that made nothing while they were gathered. What is joined again and again, and kept
    all the same, leaks, as does one array to which each step joins more.
    """
    rows = growth.rows
    if rows is None or not len(rows) or growth.manner == "joined":
        return None
    until = min(lives.cut_ns, int(np.median(lives.died[rows])))
    first = int(np.searchsorted(lives.born, lives.born[rows[-1]], "right"))
    after = np.arange(first, int(np.searchsorted(lives.born, until, "right")))
    after = after[lives.group[after] != growth.group]
    regular = np.isin(lives.group[after], np.unique(lives.group[rows[0] : first]))
    size = lives.size[after]
    if np.any(regular & same_size(size, growth.bytes, RULES.all_but_few)):
        return None
    after, size = after[~regular], size[~regular]
    fits = np.flatnonzero(same_size(size, growth.bytes, RULES.all_but_few))
    freed = np.count_nonzero(lives.died[rows] <= lives.cut_ns) >= RULES.nearly_all * len(rows)
    if not len(fits) and freed and len(after):
        _, of_line = np.unique(lives.group[after], return_inverse=True)
        by_line = np.bincount(of_line, weights=size)[of_line]
        several = np.bincount(of_line)[of_line] > 1
        fits = np.flatnonzero(several & same_size(by_line, growth.bytes, RULES.majority))
    if not len(fits):
        return None
    row = int(after[fits[np.argmax(size[fits])]])
    return row if freed or lives.born[row] >= lives.unwinding_ns else None


def same_size(size: NDArray[Any], whole: int, least: float) -> NDArray[np.bool_]:
    """Which sizes differ from that of all survivors by no more than a few of these have.

    Args:
        least: how much of it they must reach; less of a table, which is joined without its index.
    """
    return (size >= least * whole) & (size <= (2 - RULES.all_but_few) * whole)


def goes_with(lives: Lifetimes, growth: GrowingSite, other: GrowingSite) -> bool:
    """Whether nearly all survivors of a line are freed while those of a larger one are."""
    if growth.rows is None or other.rows is None or growth.bytes > other.bytes:
        return False
    died, whole = lives.died[growth.rows], lives.died[other.rows]
    during = (died >= whole.min()) & (died <= whole.max()) & (died <= lives.cut_ns)
    return int(np.count_nonzero(during)) >= RULES.nearly_all * len(died)


def gathered_finding(lives: Lifetimes, places: Places, found: Gathered) -> Finding:
    """What is said of one: nothing to mend, but that is where so much memory was for a while."""
    growth, frame = found.growth, places.frames[found.growth.group]
    where = place(places.frames[int(lives.group[found.joined])])
    finding = growth.info(
        "gathered",
        places,
        f"{format_count(growth.survivors)} {lives.noun(growth.group)}s allocated "
        f"{allocated_at(frame)} were gathered and joined at {where}: "
        f"{format_bytes(growth.bytes)}, twice for a moment.",
    )
    return replace(finding, grew_from_ns=growth.first_ns, grew_until_ns=growth.judged_ns)
