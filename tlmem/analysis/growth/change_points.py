"""From when on did a curve go on as it did in the end? Its last regime, by change points.

A curve of memory is straight for a while, jumps (a buffer made once, a lazy import), or bends
(warm-up is over, a phase begins): between change points it is a straight line. Growth is that of
the last regime, when that is long enough to speak for the program and when nothing before it shows
that such a rise is freed again, or is slowing down.

Covers: change points of a curve and the regime that counts. Does not cover: whether that regime
rises; see ``growing_sites`` and ``process_growth``. See also: docs/decisions/statistics.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.robust import low_in_bins, theil_sen
from tlmem.analysis.rules import RULES

Floats = NDArray[np.float64]
MOST_POINTS = 60
"""Change points are looked for among so many moments: it takes less than 0.05 s."""
FEWEST_POINTS = 16
SHORTEST = 4
"""Points in a regime."""
PENALTY = 9.0
"""What a change point must save, in units of the noise and of the logarithm of the points: three
numbers for each regime, and three times what a criterion of information would ask."""
LEAST_NOISE = 0.015
"""Share of a curve's whole range that is never worth a change point."""
LOW_QUANTILE = 0.3


def change_points(x: Floats, y: Floats, least: float) -> list[int]:
    """Positions at which regimes begin, the first one included.

    Args:
        x: ascending.
        y: the curve; between change points it is a straight line and noise.
        least: differences in y that do not matter.
    """
    if len(x) < FEWEST_POINTS or x[-1] <= x[0]:
        return [0]
    bends = np.diff(y, 2)
    noise = max(1.4826 * float(np.median(np.abs(bends))) / np.sqrt(6), least / 10, 1e-9)
    noise = max(noise, LEAST_NOISE * float(np.ptp(y)))
    line = np.column_stack(((x - x[0]) / (x[-1] - x[0]), np.ones(len(x))))
    return cheapest_cuts(line, y / noise, PENALTY * float(np.log(len(x))))


def cheapest_cuts(line: Floats, y: Floats, penalty: float) -> list[int]:
    """Where pieces of a curve begin whose straight lines leave least over, the first one included.

    Of each end it keeps only the begins that may still be best, so that it takes about linear time.

    Args:
        line: of each point its position and 1.
        y: the curve.
        penalty: what each piece costs besides the sum of squares that its line leaves over.

    Source: Killick, Fearnhead and Eckley, "Optimal detection of changepoints with a linear
    computational cost", 2012.
    """
    costs, before = {0: 0.0}, {0: 0}
    begins: list[int] = []
    for end in range(SHORTEST, len(y) + 1):
        if end - SHORTEST in costs:
            begins.append(end - SHORTEST)
        whole = {
            begin: costs[begin] + (left_over(line[begin:end], y[begin:end]) + penalty)
            for begin in begins
        }
        before[end] = min(whole, key=whole.__getitem__)
        costs[end] = whole[before[end]]
        begins = [begin for begin in begins if whole[begin] <= costs[end] + penalty]
    cuts = [before[len(y)]]
    while cuts[-1]:
        cuts.append(before[cuts[-1]])
    return cuts[::-1]


def left_over(line: Floats, y: Floats) -> float:
    """The sum of squares that the best straight line leaves over."""
    return float(np.linalg.lstsq(line, y[:, None], rcond=None)[1].sum())


def last_regime(
    x: Floats,
    y: Floats,
    least: float,
    given_back: float | None = None,
    share: float | None = None,
) -> float | None:
    """Where, in x, the last regime begins that growth may be judged on; None: nowhere.

    It is at least ``share`` of the curve, no regime before it of any length rises faster, and
    nothing comparable to its own rise was freed before.

    Args:
        x: ascending.
        y: the curve.
        least: a rise in y that does not matter.
        given_back: share of the last regime's rise that may have risen and fallen before.
        share: ``RULES.span`` where left out.
    """
    if len(x) < FEWEST_POINTS or x[-1] <= x[0]:
        return None
    given_back = float(RULES.given_back if given_back is None else given_back)
    x, y = low_in_bins(x, y, min(MOST_POINTS, len(x) // 2), LOW_QUANTILE)
    starts = change_points(x, y, least)
    while len(starts) > 1 and is_one(x, y, starts[-2], starts[-1]):
        starts.pop()
    start = starts[-1]
    if x[-1] - x[start] < (RULES.span if share is None else share) * (x[-1] - x[0]):
        return None
    slope = theil_sen(x[start:], y[start:])
    rise = slope * float(x[-1] - x[start])
    if rise < least:
        return None
    earlier = [
        theil_sen(x[begin:end], y[begin:end])
        for begin, end in zip(starts, starts[1:], strict=False)
        if x[end] - x[begin] >= 0.5 * RULES.span * (x[-1] - x[start])
    ]
    if any(other > RULES.slowing * slope for other in earlier):
        return None
    return float(x[start]) if risen_and_fallen(y[: start + 1]) <= given_back * rise else None


def risen_and_fallen(y: Floats) -> float:
    """The most by which a curve rose and then fell again."""
    if len(y) < 3:
        return 0.0
    risen = y - np.minimum.accumulate(y)
    fallen = y - np.minimum.accumulate(y[::-1])[::-1]
    return float(np.max(np.minimum(risen, fallen)))


def is_one(x: Floats, y: Floats, begin: int, middle: int) -> bool:
    """Whether a regime only is a part of the last one: nearly as fast, without a step between."""
    first, second = slice(begin, middle), slice(middle, None)
    before, after = theil_sen(x[first], y[first]), theil_sen(x[second], y[second])
    offsets = np.median(y[first] - after * x[first]), np.median(y[second] - after * x[second])
    step, rise = abs(float(offsets[1] - offsets[0])), float(after * np.ptp(x[second]))
    return (
        after <= RULES.slowing**2 * before <= RULES.slowing**4 * after
        and step <= RULES.largest_step * rise
    )
