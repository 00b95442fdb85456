"""Arrays that are replaced by ever larger ones: ``history = np.append(history, value)``.

Only one of them is alive at a time, so the count of no line grows, but memory does. Each is alive
until the next one is made, as what is in it is copied; a loop over problem sizes frees each before.
It may be meant all the same; so this is a warning and never the verdict.

Covers: tracked objects by blamed line. See also: ``growing_sites``, for lines that
keep ever more objects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_sites import reaches_the_end
from tlmem.analysis.growth.robust import unevenness
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.rules import RULES


@dataclass(frozen=True)
class Enlargement:
    """A line whose ``steps`` arrays replaced each other, from ``first_bytes`` to ``last_bytes``."""

    group: int
    steps: int
    first_bytes: int
    last_bytes: int
    site: int
    example: int
    seconds: float


def enlarging_lines(lives: Lifetimes, groups: int) -> list[Enlargement]:
    """All lines whose arrays are replaced by ever larger ones, largest first."""
    large = np.unique(lives.group[lives.size >= RULES.least_bytes_of_values])
    found = []
    for group in large.tolist():
        enlargement = judge_line(lives, group, np.flatnonzero(lives.group == group))
        if enlargement is not None:
            found.append(enlargement)
    return sorted(found, key=lambda enlargement: -enlargement.last_bytes)


def judge_line(lives: Lifetimes, group: int, rows: NDArray[np.int64]) -> Enlargement | None:
    """Whether the arrays of one line replace each other and become larger evenly, to the end."""
    size = lives.size[rows]
    main = rows[size >= 0.5 * np.maximum.accumulate(size)]
    size = lives.size[main].astype(np.float64)
    if len(main) < RULES.few_survivors or size[-1] < RULES.least_factor * size[0]:
        return None
    rising = np.count_nonzero(np.diff(size) >= 0) / (len(size) - 1)
    replaced = np.count_nonzero(lives.died[main[:-2]] <= lives.born[main[2:]]) / (len(main) - 2)
    copied = np.count_nonzero(lives.died[main[:-1]] > lives.born[main[1:]]) / (len(main) - 1)
    if min(rising, replaced, copied) < RULES.nearly_all:
        return None
    if not reaches_the_end(lives, main, int(lives.born[main[-1]])):
        return None
    x = np.arange(len(size)) / (len(size) - 1)
    if unevenness(x, (size - size[0]) / (size[-1] - size[0])) > RULES.unevenness:
        return None
    return Enlargement(
        group=group,
        steps=len(main),
        first_bytes=int(size[0]),
        last_bytes=int(size[-1]),
        site=int(lives.site[main[-1]]),
        example=int(lives.ordinal[main[-1]]),
        seconds=float(lives.born[main[-1]] - lives.born[main[0]]) / 1e9,
    )
