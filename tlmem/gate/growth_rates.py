"""How fast memory grows after warm-up, with an interval: per second, per mark, or in all.

A rate is only above its budget when the whole interval is, and when the rise is even: a step (a
lazy import, a buffer made once) has a slope too, and is not growth. In a run that is too short to
tell, or in which results were gathered and joined, a rate is even only where the verdict found
growth too.

Covers: curves of one process by name, rates of them. Does not cover: budgets (``measure``).
See also: docs/how-to/gate.md, "What noise can do".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth import process_growth
from tlmem.analysis.growth.curves import Window, memory_curve
from tlmem.analysis.growth.rates import MOST_POINTS, rate_of
from tlmem.analysis.growth.robust import low_in_bins, spread, theil_sen
from tlmem.analysis.heap_samples import blocks_of, unseen
from tlmem.analysis.lifetimes import Lifetimes, alive_at
from tlmem.analysis.rules import RULES, Rule
from tlmem.gate.amounts import OBJECTS, SECOND
from tlmem.gate.budget_kinds import suggestion
from tlmem.gate.inputs import Judged
from tlmem.gate.suppressions import matches_frame

Floats = NDArray[np.float64]

FEWEST_POINTS = 6
FEWEST_MARKS = 8
MOST_BINS = 24
MOST_PARTS = 1000
"""Samples that are nearer to each other than this part of the run say no more than one."""
TRACKED_POINTS = 2000
"""So many moments of the curve of live objects are looked at."""


class NotMeasured(Exception):
    """The recording does not show it; the message says why."""


class TooShort(NotMeasured):
    """A longer recording would show it."""


@dataclass(frozen=True)
class Level:
    """A kind of memory over time; ``least`` is what it may drift by without growing."""

    time_ns: NDArray[np.int64]
    values: Floats
    least: Rule


@dataclass(frozen=True)
class GrowthRate:
    """A rate, or an increase in all, with the interval that it lies in with 95% confidence.

    ``even`` says that it is a rise that goes on to the end, not a step or noise.
    """

    value: float
    low: float
    high: float
    even: bool


def growth(judged: Judged, metric: str, kind: str, per: str) -> GrowthRate:
    """How one kind of memory grew in one process after its warm-up.

    Args:
        metric: ``resident``, ``tracked``, ``native``, ``python``, ``device`` or ``recorder``.
        kind: of amounts: bytes, or objects of tracked memory.
        per: ``s``, the label of marks or scopes, or empty for the increase in all.

    Raises:
        NotMeasured: there are too few samples, or no such marks.
    """
    curve = curve_of(judged, metric, kind, imports=False)
    if per in ("", SECOND):
        x = curve.time_ns / 1e9
        if len(x):
            x = x - x[0]
        steady = curve.time_ns >= _steady_begin(judged)
    else:
        curve, x = _by_mark(judged, curve, per, exact=metric == "tracked", kind=kind)
        steady = process_growth.after_warm_up(x) if len(x) else np.zeros(0, bool)
    if steady.sum() < FEWEST_POINTS:
        raise TooShort(
            f"after warm-up there are {int(steady.sum())} points of {metric} memory, and "
            f"{FEWEST_POINTS} are needed; record for longer"
        )
    x, values = x[steady], curve.values[steady]
    if metric == "tracked":  # counted, so a rise is no less sure beside a large model
        values = values - values.min()
    even = process_growth.steady_rise(x, values, curve.least) is not None
    # In so short a run garbage that is collected later rises as evenly as a leak.
    doubtful = (per in ("", SECOND) and judged.lives.is_short) or judged.has_gathered
    if doubtful and not judged.is_growing(metric):
        even = False
    if per == "":
        return _in_all(x, values, even, curve.least if metric != "tracked" else 0.0)
    found = process_growth.rate_of_samples(x, values) if metric != "tracked" else None
    found = found or rate_of(*_lows(x, values))
    if found is None:
        raise TooShort("all samples were taken at nearly the same moment; record for longer")
    return GrowthRate(found.value, found.low, found.high, even)


def sampled_growth(judged: Judged, memory: str, pattern: str, per: str) -> GrowthRate:
    """How the lines that match a pattern grew after warm-up, estimated from sampled blocks.

    Args:
        memory: ``native`` or ``python``.
        pattern: as in suppressions.
        per: as for ``growth``.

    Raises:
        NotMeasured: the heap was not sampled, freed blocks were folded, or the marks are missing.
    """
    recording, places = judged.recording, judged.places
    if not recording.heap_sampled:
        raise NotMeasured("the heap was not sampled; record with --heap")
    begin, end = round(_steady_begin(judged)), judged.lives.judged_ns
    if recording.heap_from_ns > begin:
        raise NotMeasured(
            "samples of the heap were folded, so that freed blocks are not known; record without "
            "a size limit, or with --heap and a larger SIZE"
        )
    blocks = blocks_of(recording, places, memory, end, begin)
    lines = [n for n, frame in enumerate(places.frames) if matches_frame(pattern, frame)]
    mine = np.flatnonzero(np.isin(blocks.line, lines))
    about = blocks.about(mine) if len(mine) else unseen(np.ones(1), recording.heap_rate)
    even = any(each.line.group in lines for each in judged.sampled if each.memory == memory)
    times = 1.0
    if per == SECOND:
        times = (end - begin) / 1e9
    elif per:
        marks = mark_times(judged, per)
        times = float(np.count_nonzero((marks > begin) & (marks <= end)))
    if times <= 0:
        raise TooShort("the program ended before its warm-up did; record for longer")
    return GrowthRate(about.bytes / times, about.low / times, about.high / times, even)


def _steady_begin(judged: Judged) -> float:
    """When the warm-up is over, in ns, without the time in which the machine was suspended."""
    begin, end = judged.lives.work_begin_ns, judged.lives.judged_ns
    sampled = Window(judged.samples, begin, end).time_ns
    if len(sampled) == 0:  # of a recording that was imported: nothing tells of a pause
        return float(begin + RULES.warm_up * (end - begin))
    return process_growth.steady_begin(sampled, begin, end, judged.lives.delays)


def curve_of(judged: Judged, metric: str, kind: str, imports: bool = True) -> Level:
    """A kind of memory, from the begin of the program's work to the moment of judging.

    Args:
        imports: with what rose, or fell, while modules were imported.
    """
    lives = judged.lives
    if metric == "tracked":
        return _tracked(lives, kind)
    window = Window(judged.samples, lives.work_begin_ns, lives.judged_ns)
    curve = memory_curve(window, metric)
    rows = curve.taken if curve.taken.any() else window.taken("anon")
    values = curve.values if imports else window.without_imports(curve.values)
    return Level(window.time_ns[rows], values[rows], curve.least)


def _tracked(lives: Lifetimes, kind: str) -> Level:
    """Live objects or their bytes at moments that are spread evenly over the run."""
    begin, end = lives.work_begin_ns, lives.judged_ns
    moments = np.linspace(begin, end, TRACKED_POINTS).astype(np.int64)
    least = RULES.few_survivors if kind == OBJECTS else RULES.least_bytes
    return Level(moments, tracked_at(lives, moments, kind), least)


def tracked_at(lives: Lifetimes, moments: NDArray[np.int64], kind: str) -> Floats:
    """Objects alive at some moments, or their bytes."""
    amount = lives.weight if kind == OBJECTS else lives.weight * lives.size
    return alive_at(moments, lives.born, lives.died, amount)


def _by_mark(
    judged: Judged, curve: Level, label: str, exact: bool, kind: str
) -> tuple[Level, Floats]:
    """The curve between the first and the last mark, over the number of marks passed."""
    times = mark_times(judged, label)
    if len(times) < FEWEST_MARKS:
        raise TooShort(
            f"'{label}' was passed {len(times)} times, and {FEWEST_MARKS} are needed; record more "
            "of them"
        )
    if exact:
        times = times[times <= judged.lives.judged_ns]
        values = tracked_at(judged.lives, times, kind)
        return Level(times, values, curve.least), np.arange(len(times), dtype=np.float64)
    inside = (curve.time_ns >= times[0]) & (curve.time_ns <= times[-1])
    at = curve.time_ns[inside]
    x = np.interp(at, times, np.arange(len(times), dtype=np.float64))
    return Level(at, curve.values[inside], curve.least), x


def mark_times(judged: Judged, label: str) -> NDArray[np.int64]:
    """When marks of a label were passed, else when scopes of that name were entered, in ns."""
    marks = judged.recording.marks
    times = marks.loc[marks["label"] == label, "time_ns"].to_numpy(np.int64)
    if len(times):
        return times
    scopes = judged.recording.scopes
    entered = scopes.loc[scopes["label"] == label, "enter_ns"].to_numpy(np.int64)
    if len(entered):
        return np.sort(entered)
    known = [*dict.fromkeys([*map(str, marks["label"]), *map(str, scopes["label"])])]
    known = [text for text in known if text and not text.startswith("tlmem:")]
    if not known:
        raise NotMeasured(f"there are no marks; call tlmem.mark({label!r}, i) in the program")
    raise NotMeasured(f"there is no mark or scope '{label}'; {suggestion(label, known)}")


def _lows(x: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Low points of a curve, as arrays are freed; of parts that are narrow enough for a slope.

    A machine that stalls, or does something else, leaves samples in few places of a run.
    """
    bins = max(FEWEST_POINTS, min(MOST_POINTS, len(values) // 4))
    if x[-1] <= x[0]:
        return x[:1], values[:1]
    middles, lows = low_in_bins(x, values, bins, process_growth.LOW_QUANTILE)
    while len(middles) < FEWEST_POINTS and bins < MOST_PARTS:
        bins *= 2
        middles, lows = low_in_bins(x, values, bins, process_growth.LOW_QUANTILE)
    return middles, lows


def _in_all(x: Floats, values: Floats, even: bool, drift: float) -> GrowthRate:
    """What the low points rose by from begin to end, give or take their spread and what a healthy
    process drifts by."""
    bins = min(MOST_BINS, max(FEWEST_POINTS, len(values) // 4))
    middles, lows = low_in_bins(x, values, bins, process_growth.LOW_QUANTILE)
    rise = float(lows[-1] - lows[0])
    noise = drift + 2.0 * spread(lows - theil_sen(middles, lows) * middles)
    return GrowthRate(rise, rise - noise, rise + noise, even)
