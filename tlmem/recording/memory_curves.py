"""Memory over time in few numbers: the highest sample in each of some equal parts of a recording.

Covers: tracked and resident memory of one process. Does not cover: pictures of it (``report``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording


@dataclass(frozen=True)
class MemoryCurves:
    """Thousands of bytes, the highest in each of as many equal parts of the recording.

    A part without a sample has the value of the one before; a curve without any sample is empty.
    """

    tracked: tuple[int, ...]
    resident: tuple[int, ...]


def memory_curves(recording: Recording, points: int) -> MemoryCurves:
    """Both curves, with so many parts each."""
    samples = recording.samples
    resident = (samples["anon"] + samples["file"].ffill().fillna(0.0)).to_numpy(np.float64)
    times = samples["time_ns"].to_numpy(np.int64)
    edges = np.linspace(0.0, max(float(recording.seconds), 1e-9) * 1e9, points + 1)[1:-1]
    part = np.searchsorted(edges, times, side="right")
    return MemoryCurves(
        _highest(part, samples["tracked"].to_numpy(np.float64), points),
        _highest(part, resident, points),
    )


def _highest(part: np.ndarray, values: np.ndarray, points: int) -> tuple[int, ...]:
    known = ~np.isnan(values)
    if not known.any():
        return ()
    highest = np.full(points, -1.0)
    np.maximum.at(highest, part[known], values[known] / 1e3)
    filled, last = [], 0
    for value in highest.tolist():
        last = round(value) if value >= 0 else last
        filled.append(last)
    return tuple(filled)
