"""The cohorts of a finding as texts: one table for the reports and the terminal interface.

Covers: words, units and which columns have room. Does not cover: how the numbers are found; see
``tlmem.analysis.growth.cohorts``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from tlmem.analysis.model import Cohorts
from tlmem.units import format_count, format_seconds

UNKNOWN = "?"
GAP = 2
"""Columns between two cells."""
UNITS = ((1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7_200.0, 60.0, "min"), (math.inf, 3_600.0, "h"))
"""Up to how many seconds a unit is used, how many it has, and its name."""

LEAST_STEP = 5
"""From one time to the next the last digit rises by so much at least."""


@dataclass(frozen=True)
class CohortTable:
    """What stands in the table; cells of a moment at which nothing was made yet are empty.

    Times at which nothing is known, because it was folded, are no columns.

    ``shares`` are those of the objects of a row that live at each time, None where there is no
    number in the cell.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shares: tuple[tuple[float | None, ...], ...]
    notes: tuple[str, ...]


def cohort_table(cohorts: Cohorts, every: int = 1, with_units: bool = True) -> CohortTable:
    """The table in words.

    Args:
        every: only each such time is a column, the last one among them.
        with_units: heads have the unit of times; else only the first one has it.
    """
    begins = [row.begin_s for row in cohorts.rows]
    edges, unit = in_one_unit([*begins, cohorts.times_s[-1]])
    seen = [column for column in range(len(edges) - 1) if is_known(cohorts, column)]
    chosen = seen[(len(seen) - 1) % every :: every]
    first, *others = [edges[column + 1] for column in chosen]
    rows, shares = [], []
    for number, row in enumerate(cohorts.rows):
        span = f"{edges[number]} to {edges[number + 1]} {unit}"
        cells = [counted(row.alive[column]) if column >= number else "" for column in chosen]
        rows.append((span, counted(row.made), *cells))
        shares.append(
            tuple(share(row.alive[column], row.made, column >= number) for column in chosen)
        )
    return CohortTable(
        title=f"still alive, of the {cohorts.noun}s allocated in each part of the run",
        heads=(
            *("allocated", "made", f"at {first} {unit}"),
            *(f"{time} {unit}" if with_units else time for time in others),
        ),
        rows=tuple(rows),
        shares=tuple(shares),
        notes=tuple(notes(cohorts)),
    )


def cohort_lines(cohorts: Cohorts | None, width: int) -> list[str]:
    """The table as lines of at most so many letters, if possible; none without cohorts.

    What does not fit is left out: units in heads, then each second time, then more.
    """
    if cohorts is None:
        return []
    for every, with_units in product(range(1, len(cohorts.times_s) + 1), (True, False)):
        table = cohort_table(cohorts, every, with_units)
        lines = aligned((table.heads, *table.rows))
        if max(map(len, lines)) <= width:
            break
    return [table.title, *lines, *table.notes]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows below each other; the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    gap = " " * GAP
    return [
        gap.join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def notes(cohorts: Cohorts) -> Iterable[str]:
    """What cannot be known, a sentence each."""
    since = format_seconds(cohorts.known_from_s)
    if any(row.made is None for row in cohorts.rows):
        yield f"{UNKNOWN}: of what was freed before {since} only sums are known"
    if cohorts.thinned > 1:
        yield (
            f"of those alive at {since} one of {format_count(cohorts.thinned)} is known; "
            "their counts are estimates"
        )


def is_known(cohorts: Cohorts, column: int) -> bool:
    """Whether anything is known of a time."""
    return any(row.alive[column] is not None for row in cohorts.rows[: column + 1])


def share(alive: int | None, made: int | None, is_seen: bool) -> float | None:
    """Which share of what was made lives; None where that is unknown or before it was made."""
    return alive / made if is_seen and alive is not None and made else None


def counted(value: int | None) -> str:
    """A count, or that it is unknown."""
    return UNKNOWN if value is None else format_count(value)


def in_one_unit(seconds: Sequence[float]) -> tuple[list[str], str]:
    """Rising times as numbers of one unit, exact enough to tell them apart, and that unit."""
    size, unit = next((size, name) for most, size, name in UNITS if seconds[-1] <= most)
    step = (seconds[-1] - seconds[0]) / size / max(1, len(seconds) - 1)
    digits = min(6, max(0, math.ceil(-math.log10(step / LEAST_STEP)))) if step > 0 else 1
    return [f"{value / size:.{digits}f}" for value in seconds], unit
