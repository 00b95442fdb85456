"""Growth outside arrays: native memory, Python's heap, memory that was freed but is still resident.

Covers: robust judgement of the resident-memory samples after warm-up. Does not cover: tracked
objects; see ``growth``. A single picture of where memory is; see ``attribution``. See also:
docs/findings.md, for every threshold and its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.robust import (
    floor_curve,
    low_in_bins,
    share_at,
    spread,
    theil_sen,
)

Floats = NDArray[np.float64]

WARM_UP = 0.35
"""Share of the run, from the program's first array or the begin of its code, that is not judged."""
FEWEST_SAMPLES = 6
FEWEST_TO_JUDGE = 4
SHORTEST_WINDOW_S = 0.05
UNEVENNESS = 0.3
LATE_RATE = 0.3
LATE_FROM = 0.75
UNWINDING_FROM = 0.8
UNWOUND_SHARE = 0.3
MOST_BINS = 24
FEWEST_BINS = 5
LOW_QUANTILE = 0.3
LARGEST_STEP = 0.4
NOISE_FACTOR = 4.0
NATIVE_FLOOR_BYTES = 150_000
RESIDENT_FLOOR_BYTES = 4_000_000
PYTHON_FLOOR_BYTES = 1_000_000
DRIVER_FLOOR_BYTES = 1_000_000
TAPE_FLOOR_BYTES = 1_000_000
RELATIVE_FLOOR = 0.01
ALLOCATOR_BYTES = 16
"""What the C allocator adds to each block for itself, on average."""
RETAINED_BYTES = 30_000_000
RETAINED_SHARE = 0.5


@dataclass(frozen=True)
class Rise:
    """A steady rise of one kind of memory: ``bytes`` in ``seconds`` of steady state."""

    kind: str
    bytes: int
    seconds: float
    slope_bytes_per_s: float


@dataclass(frozen=True)
class Resident:
    """What the samples say. ``judged`` is False when there were too few to say anything."""

    judged: bool
    rises: tuple[Rise, ...] = ()
    kept_bytes: int = 0
    kept_seconds: float = 0.0


Progress = Callable[[NDArray[np.int64]], list[Floats]]


class Window:
    """The samples between two moments, each metric carried on to where it was not taken."""

    def __init__(self, samples: pd.DataFrame, begin_ns: int, end_ns: int) -> None:
        inside = (samples["time_ns"] >= begin_ns) & (samples["time_ns"] <= end_ns)
        self.samples = samples[inside]
        self.time_ns = self.samples["time_ns"].to_numpy(np.int64)

    def taken(self, name: str) -> NDArray[np.bool_]:
        """Which samples have a metric."""
        if name not in self.samples:
            return np.zeros(len(self.samples), bool)
        return self.samples[name].notna().to_numpy()

    def bytes(self, name: str) -> Floats:
        """A metric in every sample: its last known value, 0 when it was never taken."""
        if not self.taken(name).any():
            return np.zeros(len(self.samples))
        return self.samples[name].ffill().bfill().to_numpy(np.float64)

    def importing(self) -> NDArray[np.bool_]:
        """Which samples ended a time in which Python imported modules.

        Their number is looked at in each full sample; what was sampled since the one before counts.
        """
        looked = np.flatnonzero(self.taken("python_arena"))
        if len(looked) == 0:
            return np.zeros(len(self.samples), bool)
        rose = np.diff(self.bytes("modules")[looked], prepend=np.inf) > 0
        following = np.searchsorted(looked, np.arange(len(self.samples)))
        return rose[np.minimum(following, len(rose) - 1)]

    def without_imports(self, values: Floats) -> Floats:
        """A curve without its changes while modules were imported."""
        steps = np.diff(values, prepend=values[:1])
        return values[:1] + np.cumsum(np.where(self.importing(), 0.0, steps))


def judge_samples(
    samples: pd.DataFrame, begin_ns: int, end_ns: int, progress: Progress | None = None
) -> Resident:
    """Judges the samples between two moments, the program's warm-up left out.

    Args:
        samples: the table of a recording.
        begin_ns, end_ns: from the begin of the program's work to the moment of judging.
        progress: how far the program had come at any time, on other clocks than that of the wall;
            a rise may be even on any of them.
    """
    window = Window(samples, begin_ns, end_ns)
    steady_ns = begin_ns + WARM_UP * (end_ns - begin_ns)
    rises: list[Rise] = []
    judged = False
    native = native_bytes(window)
    for kind, rows, values, floor in (
        ("tape", window.taken("tapes"), window.bytes("tapes"), TAPE_FLOOR_BYTES),
        ("native", window.taken("malloc_used"), native, NATIVE_FLOOR_BYTES),
        ("python", window.taken("python_arena"), python_bytes(window), PYTHON_FLOOR_BYTES),
        ("python", window.taken("python_arena"), small_objects(window), PYTHON_FLOOR_BYTES),
        ("native", window.taken("anon"), outside_bytes(window), RESIDENT_FLOOR_BYTES),
        ("driver", window.taken("device_unused"), excess_bytes(window), DRIVER_FLOOR_BYTES),
    ):
        steady = rows & (window.time_ns >= steady_ns)
        if end_ns - steady_ns < SHORTEST_WINDOW_S * 1e9 or steady.sum() < FEWEST_TO_JUDGE:
            continue
        judged = judged or kind == "native"
        times = window.time_ns[rows]
        clocks = progress(times) if progress is not None else []
        # While modules are imported, Python's heap and libraries grow evenly and no array is made.
        if not clocks or values is native:
            clocks = [times / 1e9, *clocks]
        rise = first_rise(kind, times / 1e9, clocks, window.without_imports(values)[rows], floor)
        if rise is not None and all(rise.kind != other.kind for other in rises):
            rises.append(rise)
    return Resident(judged, tuple(rises), *kept_free(window, steady_ns))


def handed_out_bytes(window: Window) -> Floats:
    """Bytes that the C allocator has handed out to arrays, to the device ``cpu`` and to Python."""
    arrays = window.bytes("tracked") - window.bytes("device_objects")
    return arrays + window.bytes("device_host") + window.bytes("python_large")


def native_bytes(window: Window) -> Floats:
    """Bytes that the C allocator has handed out to none of these."""
    overhead = ALLOCATOR_BYTES * window.bytes("tracked_count")
    return window.bytes("malloc_used") - handed_out_bytes(window) - overhead


def excess_bytes(window: Window) -> Floats:
    """Bytes that devices hold beyond the most that live objects ever used at once.

    A pool that has served a peak keeps its level and may be used again; what rises above that
    level was not.
    """
    used = window.bytes("device_objects")
    return window.bytes("device_unused") + used - np.maximum.accumulate(used)


def python_bytes(window: Window) -> Floats:
    """Bytes of Python's own heap: arenas of small objects and everything larger."""
    return window.bytes("python_arena") + window.bytes("python_large")


def small_objects(window: Window) -> Floats:
    """Python's heap without large blocks: a table that doubles now and then hides what it holds."""
    return window.bytes("python_arena")


def outside_bytes(window: Window) -> Floats:
    """Resident bytes that even fully touched arrays, Python and free allocator memory cannot
    explain.

    Arrays are touched little by little after they are made, so only what rises above the level
    before the first arrays counts.
    """
    rest = window.bytes("anon") - window.bytes("recorder") - python_bytes(window)
    rest = rest - window.bytes("malloc_free") - window.bytes("device_unused")
    base = rest[0] if len(rest) else 0.0
    return np.maximum(rest - window.bytes("tracked"), base)


def first_rise(
    kind: str, times: Floats, clocks: list[Floats], values: Floats, floor: float
) -> Rise | None:
    """The rise on the first clock that shows one; at the end, memory may have been given back.

    A ``main()`` that returns frees what it held, which takes a while: then the highest point among
    the last samples is the end.
    """
    start = int(UNWINDING_FROM * (len(values) - 1))
    highest = start + int(np.argmax(values[start:]))
    given_back = values[highest] - values[-1] > UNWOUND_SHARE * (values[highest] - values[0])
    for end in (len(values), highest + 1) if given_back else (len(values),):
        for clock in clocks:
            steady = after_warm_up(clock[:end])
            if steady.sum() < FEWEST_SAMPLES:
                steady = after_warm_up(times[:end])
            grown = steady_rise(clock[:end][steady], values[:end][steady], floor)
            if grown is not None:
                seconds = max(1e-3, float(np.ptp(times[:end][steady])))
                return Rise(kind, round(grown), seconds, grown / seconds)
    return None


def after_warm_up(clock: Floats) -> NDArray[np.bool_]:
    """Which points lie in the steady state."""
    return clock >= clock[0] + WARM_UP * (clock[-1] - clock[0])


def steady_rise(clock: Floats, values: Floats, floor_bytes: float) -> float | None:
    """By how many bytes a curve over any clock rises evenly to its end; None when it does not.

    A few large steps (a lazy import, a buffer made once), a plateau at the end and noise are no
    rise.
    """
    if len(values) < FEWEST_SAMPLES or clock[-1] <= clock[0]:
        return None
    bins = min(MOST_BINS, max(FEWEST_SAMPLES, len(values) // 4))
    clock, values = low_in_bins(clock, values, bins, LOW_QUANTILE)
    if len(values) < FEWEST_BINS:
        return None
    x = (clock - clock[0]) / (clock[-1] - clock[0])
    grown = theil_sen(x, values)
    noise = spread(values - grown * x)
    least = max(floor_bytes, RELATIVE_FLOOR * float(np.median(values)), NOISE_FACTOR * noise)
    floor = np.maximum(floor_curve(values) - values[0], 0)
    if grown < least or floor[-1] < 0.5 * least:
        return None
    share = floor / floor[-1]
    largest = float(np.max(np.diff(share, prepend=0.0)))
    if float(np.max(np.abs(share - x))) > UNEVENNESS or largest > LARGEST_STEP:
        return None
    if 1 - share_at(x, share, LATE_FROM) < LATE_RATE * (1 - LATE_FROM):
        return None
    return grown


def kept_free(window: Window, steady_ns: float) -> tuple[int, float]:
    """Bytes freed by the program yet resident through the whole steady state, and its seconds."""
    rows = window.taken("malloc_free") & (window.time_ns >= steady_ns)
    if rows.sum() < FEWEST_SAMPLES:
        return 0, 0.0
    resident = window.bytes("anon") - window.bytes("recorder")
    in_use = window.bytes("malloc_used") - window.bytes("untouched") + window.bytes("python_arena")
    free = np.clip(np.minimum(window.bytes("malloc_free"), resident - in_use)[rows], 0, None)
    least = float(free.min())
    if least < max(RETAINED_BYTES, RETAINED_SHARE * float(resident[rows][-1])):
        return 0, 0.0
    times = window.time_ns[rows]
    return round(least), float(times[-1] - times[0]) / 1e9
