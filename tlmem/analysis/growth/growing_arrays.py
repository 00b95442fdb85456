"""Arrays that are replaced by ever larger ones: ``history = np.append(history, value)``.

Only one of them is alive at a time, or one of each column of a data frame, so the count of no line
grows, but memory does. Each is alive until the next one is made, as what is in it is copied; a loop
over problem sizes frees each before.
It may be meant all the same; so this is a warning, unless what came was joined to what was there:
each array is larger than the one before by just what was allocated in between. A loop over problem
sizes has other lines that grow with the size.

A *buffer* that is replaced by one twice as large when it is full does so a few times only, each
after twice as long: the work goes on, and fills it as fast as ever. Until its next replacement is
overdue, a buffer may still be filling.

Covers: tracked objects by blamed line. See also: ``growing_sites``, for lines that
keep more and more objects; ``hidden_growth``, which makes a verdict of what was joined.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_sites import reaches_the_end
from tlmem.analysis.growth.robust import unevenness
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.rules import RULES


@dataclass(frozen=True)
class Enlargement:
    """A line whose arrays replaced each other in ``steps``, from ``first_bytes`` to ``last_bytes``.

    ``values`` of them are made in each step, and bytes are theirs together; ``rows`` are those of
    all steps in the ``Lifetimes``.
    """

    group: int
    steps: int
    first_bytes: int
    last_bytes: int
    site: int
    example: int
    seconds: float
    rows: NDArray[np.int64] = field(repr=False, compare=False)
    values: int = 1


MOST_JOINS = 2_000
"""Steps that are looked at, evenly spread."""


FEWEST_FILLED = 3
"""Times that a buffer must have been filled, each in between two others."""
FACTORS = (1.2, 4.5)
"""By which a buffer becomes larger, at least and at most."""
EVEN_FACTOR = 0.2
"""By how much these differ from each other, at most."""
PACE = 1.6
"""Times by which it may be filled faster or more slowly than the time before."""
OVERDUE = 1.25
"""Times as long as it should take to fill it, from which on it is filled no more."""
FUSED = (1, 2, 3)
"""What comes is a part of an array so many times as large: keys and values, or queries, too."""


def enlarging_lines(lives: Lifetimes) -> list[Enlargement]:
    """All lines whose arrays are replaced by ever larger ones, largest first.

    Those below ``least_bytes_of_values`` matter only where what came was joined to them.
    """
    large = np.unique(lives.group[lives.size >= RULES.least_bytes_of_few])
    found = []
    for group in large.tolist():
        enlargement = judge_line(lives, group, np.flatnonzero(lives.group == group))
        if enlargement is not None:
            found.append(enlargement)
    return sorted(found, key=lambda enlargement: -enlargement.last_bytes)


def judge_line(lives: Lifetimes, group: int, rows: NDArray[np.int64]) -> Enlargement | None:
    """Whether the arrays of one line replace each other and become larger evenly, to the end.

    Where a step makes ``fewest_values`` or more of them, ``hidden_growth`` knows the line.
    """
    size = lives.size[rows]
    main = rows[size >= 0.5 * np.maximum.accumulate(size)]
    if not reaches_the_end(lives, main, int(lives.born[main[-1]])):
        return None
    for values in range(1, int(RULES.fewest_values)):
        if all(replace_each_other(lives, main[at::values]) for at in range(values)):
            return Enlargement(
                group=group,
                steps=len(main) // values,
                first_bytes=int(lives.size[main[:values]].sum()),
                last_bytes=int(lives.size[main[-values:]].sum()),
                site=int(lives.site[main[-1]]),
                example=int(lives.ordinal[main[-1]]),
                seconds=float(lives.born[main[-1]] - lives.born[main[0]]) / 1e9,
                rows=main,
                values=values,
            )
    return None


def replace_each_other(lives: Lifetimes, rows: NDArray[np.int64]) -> bool:
    """Whether nearly each array is copied to the next one, and they become larger evenly."""
    size = lives.size[rows].astype(np.float64)
    if len(rows) < RULES.few_survivors or size[-1] < RULES.least_factor * size[0]:
        return False
    rising = np.count_nonzero(np.diff(size) >= 0) / (len(size) - 1)
    replaced = np.count_nonzero(lives.died[rows[:-2]] <= lives.born[rows[2:]]) / (len(rows) - 2)
    copied = np.count_nonzero(lives.died[rows[:-1]] > lives.born[rows[1:]]) / (len(rows) - 1)
    if min(rising, replaced, copied) < RULES.nearly_all:
        return False
    x = np.arange(len(size)) / (len(size) - 1)
    return unevenness(x, (size - size[0]) / (size[-1] - size[0])) <= RULES.unevenness


def filled_buffers(lives: Lifetimes, least: float) -> list[Enlargement]:
    """Lines whose array is a buffer that is filled to the end, largest first.

    Args:
        least: bytes from which on one matters.
    """
    large = np.unique(lives.group[(lives.size >= least) & (lives.died > lives.judged_ns)])
    found = []
    for group in large.tolist():
        rows = np.flatnonzero(lives.group == group)
        rows = rows[is_largest_yet(lives.size[rows])][-(FEWEST_FILLED + 2) :]
        if is_filled(lives, rows):
            found.append(
                Enlargement(
                    group=group,
                    steps=len(rows) - 1,
                    first_bytes=int(lives.size[rows[0]]),
                    last_bytes=int(lives.size[rows[-1]]),
                    site=int(lives.site[rows[-1]]),
                    example=int(lives.ordinal[rows[-1]]),
                    seconds=float(lives.born[rows[-1]] - lives.born[rows[0]]) / 1e9,
                    rows=rows,
                )
            )
    return sorted(found, key=lambda each: -each.last_bytes)


def is_largest_yet(size: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of a line's objects are larger than all before."""
    before = np.concatenate(([0], np.maximum.accumulate(size)[:-1]))
    return size > before


def is_filled(lives: Lifetimes, rows: NDArray[np.int64]) -> bool:
    """Whether the last arrays of a line, each the largest yet, are a buffer that is being filled.

    Each is copied to the next, which is larger by the same factor, after the same factor of time
    and of work: objects that were made. A loop over problem sizes makes as many for each size.
    """
    if len(rows) < FEWEST_FILLED + 2 or lives.died[rows[-1]] <= lives.judged_ns:
        return False
    born, died, size = lives.born[rows], lives.died[rows], lives.size[rows].astype(np.float64)
    factors = size[1:] / size[:-1]
    factor = float(np.median(factors))
    if not FACTORS[0] <= factor <= FACTORS[1] or np.ptp(factors) > EVEN_FACTOR * factor:
        return False
    if not np.all((died[:-2] > born[1:-1]) & (died[:-2] <= born[2:])):
        return False
    latest = int(np.searchsorted(lives.born, lives.judged_ns, "right")) - 1
    for clock in lives.clocks[:2]:  # time and allocations
        between = np.diff(clock[rows])
        if between.min() <= 0 or between[-1] < RULES.few_survivors:
            return False
        paces = between[1:] / between[:-1] / factor
        if paces.min() < 1 / PACE or paces.max() > PACE:
            return False
        if clock[latest] - clock[rows[-1]] > OVERDUE * factor * between[-1]:
            return False
    return True


def joined_lines(lives: Lifetimes, found: list[Enlargement]) -> list[Enlargement]:
    """Those of the lines that join what comes to what is there, where all of them do.

    Where others become larger, too, the problem does. Smaller ones count where no larger ones do.
    """
    for least in (RULES.least_bytes_of_values, RULES.least_bytes_of_few):
        large = [each for each in found if each.last_bytes >= least]
        if large and all(is_joined(lives, each.rows, each.values) for each in large):
            return large
    return []


def is_joined(lives: Lifetimes, main: NDArray[np.int64], values: int = 1) -> bool:
    """Whether nearly each array is larger by what was allocated since the one before, and lives.

    Args:
        main: arrays of a line in order of birth.
        values: so many of them take turns: each follows the one that is so many places before it.
    """
    last = len(main) - 1 - values
    if last < 0:
        return False
    steps = np.unique(np.linspace(0, last, MOST_JOINS).astype(np.int64))
    joins = 0
    for step in steps.tolist():
        before, after = int(main[step]), int(main[step + values])
        more = int(lives.size[after] - lives.size[before])
        between = slice(before + 1, after)
        fits = np.isin(lives.size[between], [more * times for times in FUSED])
        joins += more > 0 and bool(np.any(fits & (lives.died[between] > lives.born[after])))
    return joins >= RULES.nearly_all * len(steps)
