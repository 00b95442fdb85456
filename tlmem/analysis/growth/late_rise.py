"""What still rose when the program ended, too late or too briefly to be judged.

A rise at the very end of a run may be a leak that has just begun to show, or a result that the
program makes at last. Which of them cannot be known, so the verdict must not be ``stable``.

Covers: Python's heap and native memory, by samples; tracked objects of a short run. Does not
cover: what was found to grow, see ``process_growth``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tlmem.analysis.growth.curves import Floats, Window, memory_curve
from tlmem.analysis.growth.process_growth import FEWEST_TO_JUDGE
from tlmem.analysis.growth.robust import floor_curve
from tlmem.analysis.lifetimes import Lifetimes, tracked_over_time
from tlmem.analysis.rules import RULES

AT_END = 0.1
"""In this share at the very end it must rise on, at ``RULES.late_rate`` of that pace or faster."""
NAMES = {"python": "Python's heap", "native": "native memory", "tracked": "tracked memory"}


@dataclass(frozen=True)
class Unsettled:
    """One kind of memory rose by ``bytes`` in the last ``seconds`` of the run, and to its end."""

    kind: str
    bytes: int
    seconds: float

    @property
    def name(self) -> str:
        """What rose, in words."""
        return NAMES[self.kind]


def still_rising(lives: Lifetimes, samples: pd.DataFrame) -> Unsettled | None:
    """What rose most at the end of the work; None where all had settled.

    In a short run a smaller rise is enough, but for Python's heap, and tracked objects count too.
    """
    window = Window(samples, lives.work_begin_ns, lives.judged_ns)
    rises = {}
    for kind in ("python", "native") if len(window.time_ns) else ():
        curve = memory_curve(window, kind)
        rows, values = curve.taken, curve.values
        rises[kind] = risen(window.time_ns[rows], window.without_imports(values)[rows])
        if kind == "python" and rises[kind] < curve.least:
            rises[kind] = 0.0
    seconds = (lives.judged_ns - lives.work_begin_ns) / 1e9
    if seconds < RULES.shortest_run_s:
        rises["tracked"] = tracked_rise(lives)
    least = worth_a_doubt(lives, samples)
    kind = max(rises, key=rises.__getitem__, default="")
    if not kind or rises[kind] < least:
        return None
    return Unsettled(kind, round(rises[kind]), RULES.span * seconds)


def worth_a_doubt(lives: Lifetimes, samples: pd.DataFrame) -> float:
    """Bytes that must rise at the end to leave a doubt: little in a short run, or much of all."""
    if (lives.judged_ns - lives.work_begin_ns) / 1e9 < RULES.shortest_run_s:
        return float(RULES.least_bytes_of_few)
    window = Window(samples, lives.work_begin_ns, lives.judged_ns)
    resident = float(np.max(window.bytes("anon") + window.bytes("file"), initial=0.0))
    return max(float(RULES.unsettled_bytes), RULES.backlog * resident)


def tracked_rise(lives: Lifetimes) -> float:
    """Bytes by which tracked objects rose in the last part of the run, above all before it.

    0 if that is little of what there was before, as garbage that is collected now and then peaks
    anywhere; and where a size limit folded the events before.
    """
    if lives.folded or not len(lives):
        return 0.0
    late_ns = lives.judged_ns - RULES.span * (lives.judged_ns - lives.work_begin_ns)
    before = left = 0.0
    for times, held in tracked_over_time(lives):
        before = float(held[times <= late_ns].max(initial=before))
        left = float(held[-1])
    rose = left - before
    return rose if rose >= RULES.backlog * before else 0.0


def risen(time_ns: np.ndarray, values: Floats) -> float:
    """Bytes by which a curve rose in its last part, above all before it, and to its end.

    0 when it had settled, or rose in one step, as by a buffer that is made once.
    """
    if len(values) < FEWEST_TO_JUDGE:
        return 0.0
    last_ns, whole = float(time_ns[-1]), float(time_ns[-1] - time_ns[0])
    late_ns, at_end_ns = last_ns - RULES.span * whole, last_ns - AT_END * whole
    floor = floor_curve(values)
    late, at_end = np.interp([late_ns, at_end_ns], time_ns, floor)
    before = float(np.max(values[time_ns <= late_ns], initial=late))
    rose, lately = float(floor[-1]) - before, float(floor[-1] - at_end)
    largest = float(np.max(np.diff(floor)))
    if (
        rose <= 0
        or largest > RULES.largest_step * rose
        or lately < RULES.late_rate * AT_END / RULES.span * rose
    ):
        return 0.0
    return rose
