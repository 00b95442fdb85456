"""How much does one step of the program keep? Growth per mark: ``tlmem.mark("epoch", i)``.

Seconds bend with the machine; steps do not. Tracked memory is looked at exactly when each mark was
made; samples of the process's memory are placed between the marks around them.

Covers: growth per step of each label with enough marks, and how much of a growing line one step of
the label that it follows best keeps. Does not cover: scopes; see ``per_scope``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.growth.change_points import MOST_POINTS, change_points
from tlmem.analysis.growth.curves import Window, memory_curve
from tlmem.analysis.growth.rates import rate_of
from tlmem.analysis.lifetimes import Lifetimes, alive_at
from tlmem.analysis.model import MarkGrowth, Rate

FEWEST_MARKS = 8
"""With fewer marks of a label nothing is said about its steps."""
MOST_LABELS = 8
"""Labels in the report, those with most marks."""
FEWEST_SAMPLES = 6
WARM_UP = 0.1
"""Share of the marks that is never judged."""
STEADY_SHARE = 0.5
"""The last regime of tracked bytes is judged alone when it has this much of the marks."""
FOLLOWED = 0.5
"""A line that keeps less than this per step of a label does not go by its steps."""
IRREGULAR = 1.0
"""So much variation between steps, as a share of their mean, is not a regular step."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StepGain:
    """What a growing line keeps in one step of a label, on average."""

    label: str
    objects: float
    bytes: float


@dataclass(frozen=True)
class Marks:
    """The times of each label's marks until the program was judged, in order, and their numbers."""

    times: dict[str, Ints]
    indices: dict[str, Ints]

    @classmethod
    def of(cls, marks: pd.DataFrame, judged_ns: int) -> Marks:
        """Labels with at least ``FEWEST_MARKS`` marks, those with most of them first."""
        marks = marks[marks["time_ns"].to_numpy(np.int64) <= judged_ns]
        if len(marks) < FEWEST_MARKS:
            return cls({}, {})
        counts = marks["label"].value_counts()
        labels = counts[counts >= FEWEST_MARKS].index.tolist()[:MOST_LABELS]
        rows = {label: marks[marks["label"] == label] for label in labels}
        return cls(
            {label: table["time_ns"].to_numpy(np.int64) for label, table in rows.items()},
            {label: table["index"].to_numpy(np.int64) for label, table in rows.items()},
        )


def growth_per_mark(
    marks: Marks, lives: Lifetimes, samples: pd.DataFrame
) -> tuple[MarkGrowth, ...]:
    """Growth per step of each label, that with most marks first."""
    if not marks.times:
        return ()
    found = []
    for label, times in marks.times.items():
        held = alive_at(times, lives.born, lives.died, lives.size * lives.weight)
        objects = alive_at(times, lives.born, lives.died, lives.weight)
        start = steady_from(held)
        steps = np.arange(start, len(times), dtype=np.float64)
        outside = rates_of_samples(samples, times[start:])
        found.append(
            MarkGrowth(
                label=label,
                marks=len(times),
                count=len(times) - start,
                first_index=int(marks.indices[label][start]),
                last_index=int(marks.indices[label][-1]),
                tracked_bytes=rate_of(steps, held[start:]),
                tracked_objects=rate_of(steps, objects[start:]),
                resident_bytes=outside.get("resident"),
                native_bytes=outside.get("native"),
                python_bytes=outside.get("python"),
            )
        )
    return tuple(found)


def steady_from(held: NDArray[np.float64]) -> int:
    """The first mark that is judged: where the last regime begins, or behind the first tenth."""
    least = int(np.ceil(WARM_UP * len(held)))
    if np.ptp(held[least:]) == 0:
        return least
    groups = np.array_split(np.arange(len(held)), min(MOST_POINTS, len(held)))
    values = np.array([np.median(held[group]) for group in groups])
    places = np.array([float(group[0]) for group in groups])
    start = int(places[change_points(places, values, 1.0)[-1]])
    return max(least, start) if len(held) - start >= STEADY_SHARE * len(held) else least


def rates_of_samples(samples: pd.DataFrame, times: Ints) -> dict[str, Rate | None]:
    """Growth per step of what the samples show, each placed between the marks around it."""
    window = Window(samples, int(times[0]), int(times[-1]))
    found = {}
    for name in ("resident", "native", "python"):
        curve = memory_curve(window, name)
        if curve.taken.sum() >= FEWEST_SAMPLES:
            steps = np.interp(window.time_ns[curve.taken], times, np.arange(len(times)))
            found[name] = rate_of(steps, curve.values[curve.taken])
    return found


def step_of_line(marks: Marks, born: Ints, size: Ints) -> StepGain | None:
    """What one step keeps, of the label that the survivors of a line follow best.

    Args:
        marks: of the program.
        born, size: of the survivors of a line, in order of birth; ns and bytes.
    """
    best: tuple[float, StepGain] | None = None
    for label, times in marks.times.items():
        first, last = np.searchsorted(times, (born[0], born[-1]))
        edges = times[max(0, int(first) - 1) : int(last) + 1]
        if len(edges) < FEWEST_MARKS:
            continue
        per_step = np.diff(np.searchsorted(born, edges, "right"))[1:]
        mean = float(per_step.mean())
        if mean < FOLLOWED:
            continue
        irregular = float(per_step.std()) / mean + 1e-6 * mean
        if irregular <= IRREGULAR and (best is None or irregular < best[0]):
            best = irregular, StepGain(label, mean, mean * float(size.mean()))
    return best[1] if best else None
