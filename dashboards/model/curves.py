"""Quantities over a stretch of time, one number for each column of a picture.

Covers: sums of changes at any moment, and quantities that are expensive to ask for. Does not cover:
what the quantities mean (``pools``, ``tapes``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .ordering import rising
from .view import View

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOMENTS = 1 << 16
FINE = 8
"""A column is so many moments of a ``Grid`` wide, or the quantity is asked for anew."""


def edges(view: View, width: int) -> Ints:
    """The ends of the columns."""
    return np.linspace(view.start_ns, view.stop_ns, max(width, 1) + 1).astype(np.int64)[1:]


class RunningSum:
    """A sum of changes, at any time."""

    def __init__(self, times: Ints, changes: Ints) -> None:
        order = rising(times)
        self._times = times[order]
        self._sums = np.concatenate([[0], np.cumsum(changes[order])])

    def at(self, times: Ints) -> Floats:
        """The sum of all changes up to each time, that time included."""
        found = self._sums[np.searchsorted(self._times, times, side="right")]
        return found.astype(np.float64)


class Grid:
    """A quantity of a recording whose value costs as much for many moments as for one.

    It is asked for once, at many moments. Columns that are much wider are answered from there, by
    the last moment before their end; narrower ones are asked for.

    Args:
        ask: the quantity at some times, in order.
        end_ns: when the recording ends.
    """

    def __init__(self, ask: Callable[[Ints], Floats], end_ns: int) -> None:
        self._ask = ask
        self._apart = max(end_ns, MOMENTS) / (MOMENTS - 1)
        self._values = ask((np.arange(MOMENTS) * self._apart).astype(np.int64))

    def at(self, times: Ints) -> Floats:
        """The quantity at the ends of columns of equal width."""
        if len(times) > 1 and times[1] - times[0] >= FINE * self._apart:
            return self._values[(times / self._apart).astype(np.int64).clip(0, MOMENTS - 1)]
        return self._ask(times)
