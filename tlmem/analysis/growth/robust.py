"""Small robust statistics on curves: does it keep rising, how evenly, how fast.

Covers: floors, evenness, steps and slopes of one-dimensional NumPy arrays.
Does not cover: what the curves mean; see the other modules here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SLOPE_POINTS = 300
"""A Theil-Sen slope compares every pair of points; this many keep it to a few milliseconds."""


def floor_curve(values: NDArray) -> NDArray:
    """The lowest value from each position on: what is never freed again."""
    return np.minimum.accumulate(values[::-1])[::-1]


def floor_rise(values: NDArray) -> float:
    """By how much the floor of a curve rises."""
    floor = floor_curve(values)
    return float(floor[-1] - floor[0])


def unevenness(x: Floats, share: Floats) -> float:
    """Largest distance between a rising curve and the straight line, both from 0 to 1.

    Args:
        x: positions from 0 to 1, ascending.
        share: share of the whole rise that is reached after each position.
    """
    if len(x) == 0:
        return 1.0
    before = np.concatenate(([0.0], share[:-1]))
    return float(max(np.max(np.abs(share - x)), np.max(np.abs(before - x))))


def share_at(x: Floats, share: Floats, position: float) -> float:
    """The share reached at a position from 0 to 1; 0 before the first point."""
    index = int(np.searchsorted(x, position, side="right")) - 1
    return float(share[index]) if index >= 0 else 0.0


def theil_sen(x: Floats, y: Floats) -> float:
    """Median slope over all pairs of ``SLOPE_POINTS`` evenly chosen points; 0 for a single one."""
    if len(x) > SLOPE_POINTS:
        chosen = np.linspace(0, len(x) - 1, SLOPE_POINTS).astype(np.int64)
        x, y = x[chosen], y[chosen]
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    apart = run > 0
    if not apart.any():
        return 0.0
    return float(np.median((y[second] - y[first])[apart] / run[apart]))


def low_in_bins(x: Floats, y: Floats, bins: int, quantile: float) -> tuple[Floats, Floats]:
    """A low quantile of the points in each of many equally wide parts of x that has any.

    Sheds noise that only adds, and leaves no crowd of points that would outvote the others.
    """
    width = (x[-1] - x[0]) / bins or 1.0  # where all points are at one position, in one part
    number = np.minimum(((x - x[0]) / width).astype(np.int64), bins - 1)
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    groups = np.split(np.arange(len(x)), starts[1:])
    middles = np.array([np.median(x[group]) for group in groups])
    lows = np.array([np.quantile(y[group], quantile, method="lower") for group in groups])
    return middles, lows


def spread(values: Floats) -> float:
    """Typical distance from the median; of normal noise it is the standard deviation."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values)))) if len(values) else 0.0
