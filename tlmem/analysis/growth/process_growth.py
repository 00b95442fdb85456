"""Growth outside arrays: native and shared memory, Python's heap, what was freed but is resident.

Covers: robust judgement of the resident-memory samples after warm-up; what the program freed and
that stays resident through the whole steady state, kept by the allocator or a pool. Does not cover:
tracked objects; see ``growing_sites``. Where memory is at one moment; see ``memory.attribution``.
See also: docs/findings.md, for every threshold and its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.growth.change_points import last_regime
from tlmem.analysis.growth.curves import (
    Floats,
    Window,
    handed_out_bytes,
    in_whole_arenas,
    memory_curve,
    resident_bytes,
)
from tlmem.analysis.growth.growing_sites import LATE, even
from tlmem.analysis.growth.rates import doubt_about, rate_of
from tlmem.analysis.growth.robust import floor_curve, floor_rise, low_in_bins, spread, theil_sen
from tlmem.analysis.model import Asked, Rate
from tlmem.analysis.own_time import Delays, without_pauses
from tlmem.analysis.rules import RULES, Checks, Rule

JUDGED = ("tapes", "native", "python", "small", "large", "outside", "shared", "device")
"""Curves of memory that are judged, in the order in which they are named."""
FEWEST_SAMPLES = 6
FEWEST_TO_JUDGE = 4
SHORTEST_WINDOW_S = 0.05
UNWINDING_FROM = 0.8
MOST_BINS = 24
FEWEST_BINS = 5
LOW_QUANTILE = 0.3
LATE_BEGIN = 0.6
"""From here on a curve must rise for its last regime to be looked for."""
SEEN_FACTOR, SEEN_NOISE, SEEN_DOUBT = 1.5, 10.0, 4.0
"""A rise that is so many times what must be exceeded, the noise and half of the interval, is seen
in 19 of 20 runs."""
NOISE_SLACK = 0.1
"""The most that noise, as a share of the rise, adds to what unevenness and steps may be."""
CROWDED = 2
"""Points that are so many times nearer to each other than evenly spread ones are one."""
FEWEST_ASKED = 3
"""The C allocator is asked seldom when its memory is in many pieces; resident memory often."""

ALLOCATOR = "the C allocator keeps it"
POOL = "buffers of devices are kept, by a pool or by the driver, and no live object uses them"


@dataclass(frozen=True)
class Rise:
    """A steady rise of one kind of memory: ``bytes`` in ``seconds`` of steady state.

    ``since_ns`` is when that began, ``rate`` in bytes per second. ``sampled`` says that both are
    estimates from sampled blocks of the lines that grow.
    """

    kind: str
    bytes: int
    seconds: float
    since_ns: int
    rate: Rate
    sampled: bool = False

    @property
    def slope_bytes_per_s(self) -> float:
        """The slope alone."""
        return self.rate.value


@dataclass(frozen=True)
class Retained:
    """``bytes`` were freed and resident for ``seconds``; ``by`` says who keeps them.

    ``rise`` says how they became more, with the resident memory of the process, to the end; then
    ``bytes`` are those of the end.
    """

    bytes: int = 0
    seconds: float = 0.0
    by: str = ALLOCATOR
    rise: Rise | None = None


@dataclass(frozen=True)
class Resident:
    """What the samples say. ``judged`` is False when there were too few to say anything.

    ``resolution_bytes_per_s`` is how fast native memory must rise to be distinguished from none,
    ``python_resolution_bytes_per_s`` the same of Python's heap, ``mapped_resolution_bytes_per_s``
    of what libraries map for themselves, where that rose.
    """

    judged: bool
    rises: tuple[Rise, ...] = ()
    retained: Retained = Retained()
    resolution_bytes_per_s: float | None = None
    python_resolution_bytes_per_s: float | None = None
    mapped_resolution_bytes_per_s: float | None = None


Progress = Callable[[NDArray[np.int64]], list[Floats]]


def judge_samples(
    samples: pd.DataFrame,
    begin_ns: int,
    end_ns: int,
    progress: Progress | None = None,
    asked: list[Asked] | None = None,
) -> Resident:
    """Judges the samples between two moments, the program's warm-up left out.

    Args:
        samples: the table of a recording.
        begin_ns, end_ns: from the begin of the program's work to the moment of judging.
        progress: how far the program had come at any time, on other clocks than that of the wall;
            a rise may be even on any of them.
        asked: takes the conditions that each curve was asked.
    """
    window = Window(samples, begin_ns, end_ns)
    delays = Delays.of(samples)
    steady_ns = steady_begin(window.time_ns, begin_ns, end_ns, delays)
    rises: list[Rise] = []
    judged, resolution, of_python, of_mapped = False, None, None, None
    for name in JUDGED:
        curve = memory_curve(window, name)
        rows, values, kind = curve.taken, curve.values, curve.kind
        steady = rows & (window.time_ns >= steady_ns)
        if end_ns - steady_ns < SHORTEST_WINDOW_S * 1e9 or steady.sum() < FEWEST_TO_JUDGE:
            continue
        judged = judged or kind == "native"
        seconds = window.time_ns[steady] / 1e9
        own = window.without_imports(values)
        imported = float(np.ptp((values - own)[steady][[0, -1]]))
        if name == "native":
            resolution = resolution_of(seconds, values[steady], max(curve.least, imported))
        if name == "python":
            # A few arenas that come at once are steps.
            share = RULES.largest_step if in_whole_arenas(window) else 1.0
            least = max(curve.least / share, imported)
            of_python = resolution_of(seconds, values[steady], least)
        if name == "outside" and floor_rise(values[steady]) >= RULES.native_bytes:
            of_mapped = resolution_of(seconds, values[steady], max(curve.least, imported))
        times = window.time_ns[rows]
        clocks = progress(times) if progress is not None else []
        # While modules are imported, Python's heap and libraries grow evenly and no array is made.
        if not clocks or name == "native":
            clocks = [delays.left_out_of(times) / 1e9, *clocks]
        tries: list[Checks] = []
        rise = first_rise(kind, times / 1e9, clocks, own[rows], curve.least, tries)
        if asked is not None and tries:
            furthest = max(tries, key=lambda checks: (not checks.failed(), len(checks)))
            asked.append(Asked(curve.subject, tuple(furthest)))
        if rise is None or is_loading(window, rise) or is_touching(window, rise):
            continue
        if all(rise.kind != other.kind for other in rises):
            rises.append(rise)
    return Resident(
        judged,
        tuple(rises),
        retained_memory(window, handed_out_bytes(window), steady_ns),
        resolution,
        of_python,
        of_mapped,
    )


def is_loading(window: Window, rise: Rise) -> bool:
    """Whether native memory rose in a short run while pages of files came in, as of libraries.

    A library's constructors allocate, and no module of Python tells that it is loaded.
    """
    if rise.kind != "native" or np.ptp(window.time_ns) >= RULES.shortest_run_s * 1e9:
        return False
    pages = window.bytes("file")[window.time_ns >= rise.since_ns]
    return bool(len(pages) and pages[-1] - pages[0] >= RULES.majority * rise.bytes)


def is_touching(window: Window, rise: Rise) -> bool:
    """Whether shared memory that was mapped before came in, page by page, as it was touched."""
    if rise.kind != "shared":
        return False
    size = window.bytes("shared_size")[window.time_ns >= rise.since_ns]
    return bool(size.max() - size[0] < RULES.majority * rise.bytes)


def steady_begin(times: NDArray[np.int64], begin_ns: int, end_ns: int, delays: Delays) -> float:
    """When the warm-up is over, by the program's own time at the samples between two moments.

    A machine that stops a program in its warm-up makes that no longer.
    """
    ticks = np.concatenate(([begin_ns], times, [end_ns]))
    clock = without_pauses(delays.left_out_of(ticks))
    return float(np.interp(RULES.warm_up * clock[-1], clock, ticks))


def resolution_of(times: Floats, values: Floats, floor: float) -> float | None:
    """How many bytes per second a steady rise must have to stand out; None with few samples."""
    if len(values) < FEWEST_SAMPLES:
        return None
    seconds = float(times[-1] - times[0])
    middles, lows = low_points(times, values)
    if len(lows) < FEWEST_BINS or seconds <= 0:
        return None
    slope = theil_sen(middles, lows)
    noise = spread(lows - slope * middles)
    doubt = doubt_about(times, values, slope) * seconds
    return SEEN_FACTOR * max(floor, SEEN_NOISE * noise, SEEN_DOUBT * doubt) / seconds


def first_rise(
    kind: str,
    times: Floats,
    clocks: list[Floats],
    values: Floats,
    floor: Rule,
    tries: list[Checks],
) -> Rise | None:
    """The rise on the first clock that shows one; at the end, memory may have been freed.

    A ``main()`` that returns frees what it held, which takes a while: then the highest point among
    the last samples is the end. The steady state is what follows the warm-up, or else the last
    regime of the curve.

    Args:
        tries: takes the conditions of each try.
    """
    unwinding = times[0] + UNWINDING_FROM * (times[-1] - times[0])
    start = min(int(np.searchsorted(times, unwinding)), len(times) - 1)
    highest = start + int(np.argmax(values[start:]))
    freed = values[highest] - values[-1] > RULES.given_back * (values[highest] - values[0])
    for end in (len(values), highest + 1) if freed else (len(values),):
        for clock in clocks:
            steady = after_warm_up(clock[:end])
            if steady.sum() < FEWEST_SAMPLES:
                steady = after_warm_up(times[:end])
            tries.append(Checks())
            rise = rise_within(
                kind, times[:end], clock[:end], values[:end], steady, floor, tries[-1]
            )
            if rise is not None:
                return rise
        rise = late_rise(kind, times[:end], clocks[0][:end], values[:end], floor, tries)
        if rise is not None:
            return rise
    return None


def late_rise(
    kind: str, times: Floats, clock: Floats, values: Floats, floor: Rule, tries: list[Checks]
) -> Rise | None:
    """The rise in the last regime, when that begins after the warm-up."""
    if not rises_late(values, floor):
        return None
    begin = last_regime(clock, values, floor)
    if begin is None or begin <= after_warm_up_begin(clock):
        return None
    tries.append(Checks())
    return rise_within(kind, times, clock, values, clock >= begin, floor, tries[-1])


def rises_late(values: Floats, floor: float) -> bool:
    """A quick look that spares most curves the search for regimes."""
    late = values[int(LATE_BEGIN * len(values)) :]
    if len(late) < FEWEST_BINS or floor_curve(late)[-1] - floor_curve(values)[0] < 0.5 * floor:
        return False
    x = np.arange(len(late)) / (len(late) - 1)
    grown = theil_sen(x, late)
    return grown >= max(0.25 * floor, spread(late - grown * x))


def rise_within(
    kind: str,
    times: Floats,
    clock: Floats,
    values: Floats,
    steady: NDArray[np.bool_],
    floor: Rule,
    checks: Checks,
) -> Rise | None:
    """The rise of the samples of a steady state on one clock."""
    grown = steady_rise(clock[steady], values[steady], floor, checks)
    if grown is None:
        return None
    seconds = max(1e-3, float(np.ptp(times[steady])))
    rate = Rate(grown.value / seconds, grown.low / seconds, grown.high / seconds)
    return Rise(kind, round(grown.value), seconds, round(times[steady][0] * 1e9), rate)


def after_warm_up(clock: Floats) -> NDArray[np.bool_]:
    """Which points lie behind the warm-up."""
    return clock >= after_warm_up_begin(clock)


def after_warm_up_begin(clock: Floats) -> float:
    """Where the warm-up is over at the latest."""
    return float(clock[0] + RULES.warm_up * (clock[-1] - clock[0]))


def steady_rise(
    clock: Floats, values: Floats, least: Rule, checks: Checks | None = None
) -> Rate | None:
    """By how many bytes a curve over any clock rises evenly to its end; None when it does not.

    A few large steps (a lazy import, a buffer made once), a plateau at the end and noise are no
    rise; nor is one whose interval reaches down to little or nothing.

    Args:
        least: the rule that says which rise counts.
        checks: takes the conditions.
    """
    checks = Checks() if checks is None else checks
    if len(values) < FEWEST_SAMPLES or clock[-1] <= clock[0]:
        return None
    every, all_values = (clock - clock[0]) / (clock[-1] - clock[0]), values
    clock, values = low_points(clock, values)
    if len(values) < FEWEST_BINS:
        return None
    x = (clock - clock[0]) / (clock[-1] - clock[0])
    grown = theil_sen(x, values)
    noise = spread(values - grown * x)
    floor = np.maximum(floor_curve(values) - values[0], 0)
    if not checks.at_least(least, min(grown, 2 * floor[-1])):
        return None
    share = floor / floor[-1]
    slack = min(NOISE_SLACK, noise / grown) + coarseness(len(values))
    if not checks.at_most(
        RULES.largest_step,
        float(np.max(np.diff(share, prepend=0.0))),
        RULES.largest_step + slack,
    ):
        return None
    if not even(checks, x, share, RULES.unevenness + slack, LATE[:1]):
        return None
    rate = rate_of_samples(every, all_values)
    if rate is None or not checks.at_least(
        RULES.sure, rate.low / rate.value if rate.value else 0.0
    ):
        return None
    return rate


def low_points(x: Floats, values: Floats) -> tuple[Floats, Floats]:
    """A curve of few points without noise that only adds; where parts would stay empty, its points.

    Args:
        x: ascending, more than one value.
    """
    bins = min(MOST_BINS, max(FEWEST_SAMPLES, len(values) // 4))
    middles, lows = low_in_bins(x, values, bins, LOW_QUANTILE)
    if len(lows) >= FEWEST_BINS or x[-1] <= x[0]:
        return middles, lows
    spaced = without_crowds((x - x[0]) / (x[-1] - x[0]))
    return x[spaced], values[spaced]


def coarseness(points: int) -> float:
    """What few points add to the steps of an even rise, beyond those of as many as can be."""
    return 0.5 * (1 / (points - 1) - 1 / (MOST_BINS - 1))


def rate_of_samples(x: Floats, values: Floats) -> Rate | None:
    """How fast a curve of samples rises, with its interval; None with too few of them.

    Args:
        x: ascending, in any unit; the rate is per unit.
    """
    if len(x) == 0 or x[-1] <= x[0]:
        return None
    spaced = without_crowds((x - x[0]) / (x[-1] - x[0]))
    return rate_of(x[spaced], values[spaced])


def without_crowds(x: Floats) -> NDArray[np.int64]:
    """Which points (positions from 0 to 1, rising) are left when none stand in a crowd.

    While a program waits, its samples go on, all at one place of a clock of its progress; they say
    nothing of a slope, but would make its interval as wide as the sky.
    """
    part = np.floor(x * CROWDED * len(x))
    return np.flatnonzero(np.diff(part, prepend=-1.0))


def retained_memory(window: Window, handed_out: Floats, steady_ns: float) -> Retained:
    """What was freed and yet stayed resident through the whole steady state.

    Args:
        window: the samples up to the moment of judging.
        handed_out: bytes that the C allocator gave to arrays, devices and Python, at each sample.
        steady_ns: when the steady state began.
    """
    growing = growing_retained(window, handed_out)
    if growing.rise is not None:
        return growing
    asked = window.taken("malloc_free") & (window.time_ns >= steady_ns)
    if asked.sum() < FEWEST_ASKED:
        return Retained()
    rows = window.taken("anon") & (window.time_ns >= window.time_ns[np.argmax(asked)])
    if rows.sum() < FEWEST_SAMPLES:
        return Retained()
    resident = resident_bytes(window)
    found = []
    for free, by, fewest in (
        (free_in_allocator(window, resident, handed_out), ALLOCATOR, RULES.retained_bytes),
        (idle_on_devices(window, resident, handed_out), POOL, RULES.retained_bytes),
    ):
        least = float(free[rows].min())
        if least >= max(fewest, RULES.majority * float(resident[rows][-1])):
            times = window.time_ns[rows]
            found.append(Retained(round(least), float(times[-1] - times[0]) / 1e9, by))
    return max(found, key=lambda retained: retained.bytes, default=Retained())


def growing_retained(window: Window, handed_out: Floats) -> Retained:
    """What the C allocator keeps of freed memory, if that becomes more and more.

    It cannot give back a page on which one small block is in use. Where as much was in use before,
    nothing came to the process.
    """
    rows = window.taken("malloc_free")
    if rows.sum() < FEWEST_SAMPLES:
        return Retained()
    resident = resident_bytes(window)
    times = window.time_ns[rows] / 1e9
    free = free_in_allocator(window, resident, handed_out)[rows]
    rise = first_rise("retained", times, [times], free, RULES.retained_bytes, [])
    if rise is None:
        return Retained()
    since = resident[window.time_ns >= rise.since_ns]
    if since[-1] - since[0] < RULES.majority * rise.bytes:
        return Retained()
    return Retained(round(free[-1]), rise.seconds, ALLOCATOR, rise)


def free_in_allocator(window: Window, resident: Floats, handed_out: Floats) -> Floats:
    """Free bytes in the C allocator that are resident, at most, at each sample.

    Native code has what it had when the allocator was last asked; arrays and Python's blocks are
    known at each sample.
    """
    in_use = native_when_asked(window, handed_out) + handed_out - window.bytes("untouched")
    in_use = in_use + window.bytes("python_arena") + mapped_bytes(window) + held_mapped(window)
    return np.clip(np.minimum(window.bytes("malloc_free"), resident - in_use), 0.0, None)


def idle_on_devices(window: Window, resident: Floats, handed_out: Floats) -> Floats:
    """Bytes that devices hold, no live object uses, and that are resident, at most."""
    idle = window.bytes("device_unused")
    in_use = handed_out + held_mapped(window) - idle + window.bytes("python_arena")
    in_use = in_use - window.bytes("untouched") + mapped_bytes(window)
    return np.clip(np.minimum(idle, resident - in_use), 0.0, None)


def native_when_asked(window: Window, handed_out: Floats) -> Floats:
    """What native code had from the C allocator when that was last asked."""
    asked = window.taken("malloc_used")
    native = np.where(asked, window.bytes("malloc_used") - handed_out, np.nan)
    return np.maximum(pd.Series(native).ffill().bfill().to_numpy(np.float64), 0.0)


def held_mapped(window: Window) -> Floats:
    """What devices hold that the C allocator did not give them, used or not."""
    held = window.bytes("device_objects") + window.bytes("device_unused")
    return np.maximum(held - window.bytes("device_host"), 0.0)


def mapped_bytes(window: Window) -> Floats:
    """Data of libraries, stacks, and what others mapped."""
    names = ("library_data", "stacks", "mapped_by_others")
    return np.sum([window.bytes(name) for name in names], axis=0)
