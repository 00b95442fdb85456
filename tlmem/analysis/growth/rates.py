"""How fast does it grow, and how sure is that?

Covers: the slope of a curve with an interval that holds for autocorrelated noise.
Does not cover: whether a rise is growth; see ``growing_sites`` and ``process_growth``. From when
on; see ``change_points``. See also: docs/decisions/statistics.md, for how often the interval is
right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.model import CONFIDENCE, Rate

Floats = NDArray[np.float64]
MOST_POINTS = 120
"""Points that a slope is found from; further ones are taken together."""
FEWEST_POINTS = 5
"""With fewer points there is no interval."""
PARTS = 12
"""Parts that a curve with a long memory is cut into, to see how differently they rise."""
T_OF_PARTS = 2.2
"""Student's t for so many parts."""
LONG_MEMORY = 0.7
"""From this autocorrelation of the noise on, a curve is judged by its parts as well."""


def rate_of(x: NDArray, y: NDArray) -> Rate | None:
    """The Theil-Sen slope of a curve with its 95 % interval; None when it has too few points.

    Sen's interval is that of independent errors, which the noise of memory never has. It is made
    wider by the autocorrelation of what the line leaves over, with Student's t for the number of
    independent points that remain. Where the noise hardly forgets (a random walk has a direction
    for a long while), the parts of the curve must agree too: the wider interval of both is given.

    Args:
        x: positions in ascending order, about evenly spaced.
        y: the curve.
    """
    points = grouped(np.asarray(x, np.float64), np.asarray(y, np.float64), MOST_POINTS)
    x, y = points
    if len(x) < FEWEST_POINTS or x[-1] <= x[0]:
        return None
    if y.min() == y.max():
        return Rate(0.0, 0.0, 0.0)
    # Where positions and values repeat, scipy's interval or that of the parts has no width.
    with np.errstate(invalid="ignore", divide="ignore"):
        slope, low, high = slope_and_ends(x, y)
    if not np.isfinite((low, high)).all():
        half = float(y.max() - y.min()) / float(x[-1] - x[0])
        low, high = slope - half, slope + half
    return Rate(slope, low, high)


def slope_and_ends(x: Floats, y: Floats) -> tuple[float, float, float]:
    """The Theil-Sen slope and the ends of its interval, made wider by the memory of the noise."""
    from scipy.special import stdtrit

    slope, low, high = theil_sen_interval(x, y)
    memory = autocorrelation(y - slope * x)
    repeats = (1 + memory) / (1 - memory)
    independent = max(4.0, len(x) / repeats)
    wider = float(np.sqrt(repeats) * stdtrit(independent - 2, 0.5 + CONFIDENCE / 2)) / 1.96
    low, high = slope - (slope - low) * wider, slope + (high - slope) * wider
    if memory > LONG_MEMORY:
        middle, half = of_parts(x, y)
        low, high = min(low, middle - half), max(high, middle + half)
    return slope, low, high


def theil_sen_interval(x: Floats, y: Floats) -> tuple[float, float, float]:
    """The median slope of all pairs of points, and the ends of Sen's interval for it.

    They are those of ``scipy.stats.theilslopes``, to the last bit. Importing that takes longer,
    and more memory, than the whole analysis of most recordings.

    Source: Sen, "Estimates of the regression coefficient based on Kendall's tau", 1968, (2.6).
    """
    from scipy.special import ndtri

    run, rise = x[:, None] - x, y[:, None] - y
    slopes = np.sort(rise[run > 0] / run[run > 0])
    count = len(y)
    ties = sum(_pairs(repeats) for values in (x, y) for repeats in _repeats(values))
    variance = (_pairs(count) - ties) / 18
    reach = -float(ndtri((1 - CONFIDENCE) / 2)) * np.sqrt(variance)
    if not np.isfinite(reach):
        return float(np.median(slopes)), np.nan, np.nan
    low = max(int(np.round((len(slopes) - reach) / 2)) - 1, 0)
    high = min(int(np.round((len(slopes) + reach) / 2)), len(slopes) - 1)
    return float(np.median(slopes)), float(slopes[low]), float(slopes[high])


def _repeats(values: Floats) -> list[int]:
    """How often each value is there that is there more than once."""
    ordered = np.sort(values)
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    counts: list[int] = np.diff(starts, append=len(values)).tolist()
    return [count for count in counts if count > 1]


def _pairs(count: int) -> int:
    """What so many points add to 18 times the variance of Kendall's score."""
    return count * (count - 1) * (2 * count + 5)


def grouped(x: Floats, y: Floats, most: int) -> tuple[Floats, Floats]:
    """At most so many points of a curve: means of x and medians of y of equally large groups."""
    if len(x) <= most:
        return x, y
    groups = np.array_split(np.arange(len(x)), most)
    return (
        np.array([x[group].mean() for group in groups]),
        np.array([np.median(y[group]) for group in groups]),
    )


def autocorrelation(rest: Floats) -> float:
    """How much of what is left over returns in the next point, from 0 to almost 1.

    Corrected for the line that was taken away, which makes noise look more forgetful than it is.
    """
    rest = rest - rest.mean()
    power, count = float(rest @ rest), len(rest)
    if power <= 0:
        return 0.0
    found = float(rest[1:] @ rest[:-1]) / power
    return float(np.clip(found + (1 + 4 * found) / count, 0.0, 1 - 1 / count))


def doubt_about(x: NDArray, y: NDArray, slope: float) -> float:
    """About half of the interval of a slope, without the library that says it exactly."""
    x, y = grouped(np.asarray(x, np.float64), np.asarray(y, np.float64), MOST_POINTS)
    rest = y - slope * x
    memory = autocorrelation(rest)
    independent = max(4.0, len(x) * (1 - memory) / (1 + memory))
    doubt = 1.96 * float(rest.std()) * np.sqrt(12 / independent) / float(x[-1] - x[0])
    if memory > LONG_MEMORY:
        with np.errstate(invalid="ignore", divide="ignore"):
            rises = rises_of_parts(x, y)
            of_rises = T_OF_PARTS * float(rises.std(ddof=1)) / np.sqrt(len(rises))
        if not np.isfinite(of_rises):
            of_rises = float(y.max() - y.min()) / float(x[-1] - x[0])
        doubt = max(doubt, of_rises)
    return float(doubt)


def rises_of_parts(x: Floats, y: Floats) -> Floats:
    """The slope of each part of a curve; not finite where positions repeat."""
    knots = grouped(x, y, min(len(x), PARTS + 1))
    rises: Floats = np.diff(knots[1]) / np.diff(knots[0])
    return rises


def of_parts(x: Floats, y: Floats) -> tuple[float, float]:
    """Mean rise of a curve's parts, and half of its interval when the parts are independent."""
    from scipy.special import stdtrit

    rises = rises_of_parts(x, y)
    error = float(rises.std(ddof=1)) / np.sqrt(len(rises))
    return float(rises.mean()), float(stdtrit(len(rises) - 1, 0.5 + CONFIDENCE / 2)) * error
