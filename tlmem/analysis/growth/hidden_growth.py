"""Growth that the live count of a line does not show.

A line whose count does not rise evenly may still hold ever more, in four ways:

* *larger*: a constant number of objects, each replaced by a larger one;
* *backlog*: what is freed in bulk is less than what arrived: the troughs between rise;
* *beside*: a few of many are kept, beside a larger population that comes and goes (a ring buffer);
* *together*: large objects of several lines, none with enough of its own.

Covers: lines, and large objects of all lines together, that ``growing_sites`` does not call
growing. See also: docs/findings.md, for every threshold and its reason.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_sites import (
    FEW_SURVIVORS,
    FEWEST_SURVIVORS,
    GENERATIONS,
    LATE_RATE,
    LEAST_BYTES_OF_FEW,
    OWN_CLOCK,
    UNEVENNESS,
    GrowingSite,
    are_enough,
    counts_at,
    held_by_most,
    judge_line,
    own_shares,
    rate_of_line,
    reaches_the_end,
    voting_clocks,
)
from tlmem.analysis.growth.robust import floor_curve, share_at, unevenness
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.places import Places

FEWEST_VALUES = 4
"""Objects alive at a time; a single one that becomes larger may be a larger problem."""
LEAST_BYTES_OF_VALUES = 1_000_000
LEAST_FACTOR = 4.0
"""What values hold at the end, as a multiple of what they held after a tenth of their births."""
MOST_MORE_VALUES = 1.5
"""Up to this many times as many may be alive at the end as after a quarter of the births."""
FEWEST_TROUGHS = 6
"""Six values rise by chance in 1 of 720 cases; each one more may add a pair that does not."""
TOOTH = 0.1
"""A fall of so much of the highest count is a flush; smaller ones are noise."""
MOMENTS = 600
LATE_TROUGH = 0.7
"""The last trough must lie behind this share of the line's life."""
LEAST_RISE_OF_TROUGHS = 0.5
"""What the troughs rise by, as a multiple of the median tooth."""
USUAL_AGES = 0.99
"""Share of the ages at which objects of a line die that are usual."""
LONGEST_AGE = 0.5
"""The usual age, in births, must be shorter than this share of all births of the line."""
STAYED = 0.8
"""Share of the objects that outlived the usual age that must be alive at the end."""
FEWEST_LINES = 3
LARGEST_PART = 0.5
"""One line has no more than this share of what lines keep together."""

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


def hidden_growth(
    lives: Lifetimes, places: Places, growths: list[GrowingSite]
) -> list[GrowingSite]:
    """Lines that grow although their live count does not rise evenly, most bytes first.

    Args:
        growths: lines that are known to grow; they are not judged again, and where there is one,
            lines are not judged together.
    """
    if len(lives) == 0 or lives.folded or lives.sums is not None:
        return []
    known = {growth.group for growth in growths}
    end_ns = max(int(lives.born[-1]), lives.unwinding_ns)
    survivors = np.bincount(lives.group[lives.died > end_ns], minlength=places.count)
    candidates = np.flatnonzero(survivors >= FEWEST_VALUES)
    order = np.argsort(lives.group, kind="stable")
    starts = np.searchsorted(lives.group[order], np.arange(places.count + 1))
    found = []
    for group in candidates.tolist():
        rows = order[starts[group] : starts[group + 1]]
        if group in known or len(rows) < FEW_SURVIVORS:
            continue
        growth = (
            beside_others(lives, group, rows)
            or rising_backlog(lives, group, rows)
            or larger_values(lives, group, rows)
        )
        found += [growth] if growth is not None else []
    if not found and not growths:
        found = growing_together(lives)
    return sorted(found, key=lambda growth: (-growth.bytes, growth.group))


def beside_others(lives: Lifetimes, group: int, line: Rows) -> GrowingSite | None:
    """The growth of a line of which some objects stay while all others die at a usual age.

    Ages are counted in births of the line. What is younger than the usual age at the end may still
    die; of the older ones nearly all must have stayed, evenly among all that the line made: here
    its own births are a clock, as most of them do not stay.
    """
    born, died = lives.born[line], lives.died[line]
    end_ns = max(int(born[-1]), lives.unwinding_ns)
    stays = died > end_ns
    ages = np.searchsorted(born, died, side="right") - np.arange(len(line))
    if stays.all() or not stays.any():
        return None
    usual = int(np.quantile(ages[~stays], USUAL_AGES, method="higher")) + 1
    if usual > LONGEST_AGE * len(line):
        return None
    old = np.arange(len(line)) < len(line) - usual
    outlived = np.count_nonzero(old & (stays | (ages > usual)))
    kept = np.flatnonzero(old & stays)
    if len(kept) < FEW_SURVIVORS or len(kept) < STAYED * outlived:
        return None
    rows = line[kept]
    if not are_enough(len(rows), held_by_most(lives.size[rows], lives.weight[rows])):
        return None
    if not lasts(lives, line):
        return None
    window = np.count_nonzero(old)
    share = np.arange(1, len(kept) + 1) / len(kept)
    if unevenness(kept / window, share) > UNEVENNESS:
        return None
    made_in = np.bincount(kept * GENERATIONS // window, minlength=GENERATIONS)
    if np.count_nonzero(made_in >= 0.25 * made_in.mean()) < 0.7 * GENERATIONS:
        return None
    return site_of(lives, group, line, rows, "beside")


def rising_backlog(lives: Lifetimes, group: int, line: Rows) -> GrowingSite | None:
    """The growth of a line that is freed in bulk again and again, each time to a higher level."""
    born, died = lives.born[line], lives.died[line]
    moments = born[np.linspace(0, len(born) - 1, MOMENTS).astype(np.int64)].astype(np.float64)
    levels = counts_at(born, died, moments)
    tops, troughs = teeth(levels, TOOTH * float(levels.max()))
    if len(troughs) < FEWEST_TROUGHS:
        return None
    low = levels[troughs]
    falling = np.count_nonzero(np.triu(low[:, None] >= low, 1))
    if falling > len(low) - FEWEST_TROUGHS or troughs[-1] < LATE_TROUGH * len(levels):
        return None
    rise, tooth = float(low[-1] - low[0]), float(np.median(levels[tops] - low))
    if rise < max(FEW_SURVIVORS, LEAST_RISE_OF_TROUGHS * tooth):
        return None
    x = (troughs - troughs[0]) / (troughs[-1] - troughs[0])
    if float(np.max(np.abs((low - low[0]) / rise - x))) > UNEVENNESS:
        return None
    end_ns = max(int(born[-1]), lives.unwinding_ns)
    rows = line[died > end_ns]
    if len(rows) < rise or not lasts(lives, line):
        return None
    if not are_enough(len(rows), held_by_most(lives.size[rows], lives.weight[rows])):
        return None
    return site_of(lives, group, line, rows, "backlog")


def teeth(levels: Floats, least: float) -> tuple[Rows, Rows]:
    """Positions of the tops and of the troughs that follow them, where a curve falls and rises
    again by ``least`` or more."""
    tops, troughs = [], []
    top = low = 0
    falling = False
    for position in range(1, len(levels)):
        if falling:
            if levels[position] < levels[low]:
                low = position
            elif levels[position] - levels[low] >= least:
                tops.append(top)
                troughs.append(low)
                falling, top = False, position
        elif levels[position] > levels[top]:
            top = position
        elif levels[top] - levels[position] >= least:
            falling, low = True, position
    return np.array(tops, np.int64), np.array(troughs, np.int64)


def larger_values(lives: Lifetimes, group: int, line: Rows) -> GrowingSite | None:
    """The growth of a line whose objects are replaced by larger ones, several at a time."""
    born, died, size = lives.born[line], lives.died[line], lives.size[line]
    end_ns = max(int(born[-1]), lives.unwinding_ns)
    rows = line[died > end_ns]
    held = int(lives.size[rows].sum())
    if len(rows) < FEWEST_VALUES or held < LEAST_BYTES_OF_VALUES:
        return None
    order = np.argsort(died, kind="stable")
    dead = np.searchsorted(died[order], born, side="right")
    freed = np.concatenate(([0], np.cumsum(size[order])))[dead]
    after, count = np.cumsum(size) - freed, np.arange(len(line)) - dead
    floor = floor_curve(np.append(after[1:] - size[1:], held)).astype(np.float64)
    if floor[len(line) // 10] * LEAST_FACTOR > held:
        return None
    if len(rows) > MOST_MORE_VALUES * int(count[len(line) // 4 :].min()):
        return None
    if held_by_most(lives.size[rows], lives.weight[rows]) < LEAST_BYTES_OF_VALUES:
        return None
    if not lasts(lives, line):
        return None
    share = (floor - floor[0]) / (held - floor[0])
    if not rises_on_clocks(lives, line, share, own_of=line):
        return None
    return site_of(lives, group, line, rows, "larger")


def growing_together(lives: Lifetimes) -> list[GrowingSite]:
    """Lines that only together keep ever more large objects, and none of them most of these."""
    large = np.flatnonzero(lives.size >= LEAST_BYTES_OF_FEW)
    if len(large) < FEWEST_SURVIVORS:
        return []
    whole = judge_line(lives, -1, large, chance=0.0)
    if whole is None or whole.rows is None:
        return []
    groups, counts = np.unique(lives.group[whole.rows], return_counts=True)
    if len(groups) < FEWEST_LINES or counts.max() > LARGEST_PART * counts.sum():
        return []
    return [
        site_of(
            lives,
            group,
            large[lives.group[large] == group],
            whole.rows[lives.group[whole.rows] == group],
            "together",
        )
        for group in groups[counts > 1].tolist()
    ]


def lasts(lives: Lifetimes, line: Rows) -> bool:
    """Whether a line works until the end of the program's run."""
    lone = sum(share <= OWN_CLOCK for share in own_shares(lives, line)) == 1
    return reaches_the_end(lives, line, int(lives.born[line[-1]]), lone)


def rises_on_clocks(lives: Lifetimes, rows: Rows, share: Floats, own_of: Rows) -> bool:
    """Whether a share of a rise that is reached at each row rises evenly, and to the end.

    Args:
        own_of: the line whose own clocks do not count.
    """
    votes = []
    voting, uneven, late = voting_clocks(own_shares(lives, own_of), UNEVENNESS, LATE_RATE)
    for clock in voting:
        ticks = lives.clocks[clock, rows]
        whole = ticks[-1] - ticks[0]
        x = np.clip((ticks - ticks[0]) / max(whole, 1e-9), 0, 1)
        votes.append(
            whole > 0
            and unevenness(x, share) <= uneven
            and all(1 - share_at(x, share, at) >= late * (1 - at) for at in (0.8, 0.92))
        )
    return sum(votes) >= min(2, max(1, len(votes) - 1))


def site_of(lives: Lifetimes, group: int, line: Rows, rows: Rows, manner: str) -> GrowingSite:
    """The growth of a line that keeps ``rows``."""
    sites, counts = np.unique(lives.site[rows], return_counts=True)
    held = int(lives.size[rows].sum())
    return GrowingSite(
        group=group,
        survivors=len(rows),
        made=len(line),
        bytes=held,
        first_ns=int(lives.born[line[0]]),
        judged_ns=int(lives.born[line[-1]]),
        site=int(sites[np.argmax(counts)]),
        example=int(lives.ordinal[rows[0]]),
        rate=rate_of_line(lives, line, len(rows), held),
        manner=manner,
        rows=rows,
    )
