"""The time axis below every picture: round ticks, the program's marks, its outermost scopes.

Covers: which text stands in which column. Does not cover: colours and widgets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.units import format_seconds

from .view import View

APART = 4
"""Columns that at least lie between two labels of ticks."""
_ROUND = (1, 2, 5)
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
LEAST_CLOCK_NS = 120e9
"""From two minutes on an axis has minutes and seconds."""
CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200)
"""Steps of such an axis, in seconds."""
MOST_TICKS = 1000
LEAST_LETTERS = 3
"""Fewer letters of a label say nothing."""
LEAST_BAND = 4
"""Columns that an epoch has at least where epochs are shaded."""


def column_of(view: View, time_ns: float, width: int) -> int:
    """The column that shows a moment; outside of 0 to ``width - 1`` when it is not on screen."""
    return math.floor((time_ns - view.start_ns) / max(view.length_ns, 1) * width)


def time_of(view: View, column: float, width: int) -> int:
    """The moment at the middle of a column."""
    return view.start_ns + round((column + 0.5) / max(width, 1) * view.length_ns)


def moment(time_ns: float, step_ns: float = 1.0) -> str:
    """A moment in seconds, with as many digits as a step of the axis needs."""
    digits = 0 if step_ns >= 1e9 else min(9, math.ceil(9 - math.log10(max(step_ns, 1.0))))
    return f"{time_ns / 1e9:.{digits}f} s"


def clock(time_ns: float, step_ns: float, stop_ns: float) -> str:
    """A moment on the axis, as people say it: ``250 ms``, ``1.5 s``, ``1:30``, ``1:02:00``.

    Args:
        step_ns: that of the axis, which says how many digits are needed.
        stop_ns: where the axis ends, which says in which unit.
    """
    minutes = stop_ns >= LEAST_CLOCK_NS
    unit, name = next(pair for pair in UNITS if stop_ns >= pair[0] or pair[0] == 1.0)
    digits = max(0, math.ceil(math.log10(unit) - math.log10(max(step_ns, 1e-3)) - 1e-9))
    if not minutes or time_ns < 60e9:
        return f"{time_ns / unit:.{digits}f} {name}"
    whole, rest = divmod(round(time_ns / 1e9, digits), 60)
    seconds = f"{rest:0{digits + 3 if digits else 2}.{digits}f}"
    if whole < 60:
        return f"{whole:.0f}:{seconds}"
    return f"{whole // 60:.0f}:{whole % 60:02.0f}:{seconds}"


def ticks(view: View, width: int) -> list[tuple[int, str]]:
    """Columns and labels of round moments, apart from each other."""
    if width <= 0:
        return []
    for step in _steps(view.length_ns):
        longest = (
            max(len(clock(at, step, view.stop_ns)) for at in (view.start_ns, view.stop_ns)) + APART
        )
        if view.length_ns / step * longest <= width:
            break
    first = math.ceil(view.start_ns / step) * step
    found = []
    for time_ns in np.arange(first, view.stop_ns + 1, step):
        column = column_of(view, time_ns, width)
        if 0 <= column < width:
            found.append((column, clock(time_ns, step, view.stop_ns)))
    return found


def _steps(length_ns: int) -> Iterator[float]:
    """Round steps of a stretch of time, small ones first; the last one is longer than all of it."""
    power = 10.0 ** math.floor(math.log10(max(length_ns, 1) / MOST_TICKS))
    while True:
        for base in _ROUND:
            step = power * base
            if step < 1e9 or length_ns < LEAST_CLOCK_NS:
                yield step
            if step > length_ns and (step < 1e9 or length_ns < LEAST_CLOCK_NS):
                return
        power *= 10
        if power >= 1e9 and length_ns >= LEAST_CLOCK_NS:
            break
    for seconds in CLOCK_STEPS:
        yield seconds * 1e9
    day = 86_400e9
    while day <= length_ns:
        yield day
        day *= 2
    yield day


def tick_line(view: View, width: int) -> str:
    """The labels of the ticks, each behind its tick, as a line of ``width`` characters."""
    cells = [" "] * width
    for column, label in ticks(view, width):
        text = f"╵{label}"
        if column + len(text) <= width:
            cells[column : column + len(text)] = text
    return "".join(cells)


def mark_line(view: View, width: int, marks: pd.DataFrame) -> str:
    """The program's marks: a sign at each, behind it as much of its label as there is room for.

    Where the label does not fit its index does, where that is not there either the first letters.
    """
    cells = [" "] * max(width, 0)
    times = marks["time_ns"].to_numpy(np.int64)
    inside = np.flatnonzero((times >= view.start_ns) & (times <= view.stop_ns))
    if not len(inside) or width <= 0:
        return "".join(cells)
    scale = width / max(view.length_ns, 1)
    columns = ((times[inside] - view.start_ns) * scale).astype(np.int64).clip(0, width - 1)
    columns, first = np.unique(columns, return_index=True)
    following = [*columns[1:].tolist(), width]
    rows = inside[first]
    texts = zip(marks["label"].iloc[rows], marks["index"].iloc[rows], strict=True)
    for column, after, (label, index) in zip(columns.tolist(), following, texts, strict=True):
        cells[column] = "◆"
        room = after - column - 1 - (after < width)
        text = _shortened(str(label), str(index), room)
        cells[column + 1 : column + 1 + len(text)] = text
    return "".join(cells)


def _shortened(label: str, index: str, room: int) -> str:
    """A mark in so many columns: ``epoch 12``, ``epo 12``, ``12``, or nothing."""
    if len(label) + 1 + len(index) <= room:
        return f"{label} {index}"
    letters = room - 1 - len(index)
    if letters >= LEAST_LETTERS:
        return f"{label[:letters]} {index}"
    return index if len(index) <= room else ""


def epochs_of(marks: pd.DataFrame) -> list[NDArray[np.int64]]:
    """The times of the marks of each label that may divide the run: those set more than once."""
    times, (label, names) = marks["time_ns"].to_numpy(np.int64), pd.factorize(marks["label"])
    found = (times[label == number] for number in range(len(names)))
    return [each for each in found if len(each) > 1]


def shaded(
    view: View, width: int, epochs: Sequence[NDArray[np.int64]]
) -> tuple[tuple[int, int], ...]:
    """Columns from and to which every second epoch lasts: what lies between marks of one label.

    The label is the one with most marks that still leave ``LEAST_BAND`` columns for each.

    Args:
        epochs: those of ``epochs_of``.
    """
    most, chosen = 0, None
    for times in epochs:
        first, last = np.searchsorted(times, (view.start_ns, view.stop_ns + 1))
        if most < last - first and (last - first) * LEAST_BAND <= width:
            most, chosen = int(last - first), times
    if chosen is None:
        return ()
    # Epochs before and after the stretch on screen are none of its columns.
    first, last = np.searchsorted(chosen, (view.start_ns, view.stop_ns + 1))
    begin = max(int(first) - 1, 0)
    begin -= begin % 2
    every = chosen[begin : int(last) + 1].tolist()
    edges = [min(max(column_of(view, time, width), 0), width) for time in (*every, view.stop_ns)]
    bands = zip(edges[::2], edges[1::2], strict=False)
    return tuple((begin, end) for begin, end in bands if end > begin)


def scope_line(view: View, width: int, scopes: pd.DataFrame) -> str:
    """The outermost scopes: ``[label]`` where there is room, ``≡`` where many are in a column."""
    cells = [" "] * max(width, 0)
    if width <= 0 or not len(scopes):
        return "".join(cells)
    outer = np.flatnonzero(scopes["depth"].to_numpy() <= 1)
    enter = scopes["enter_ns"].to_numpy(np.int64)[outer]
    leave = scopes["exit_ns"].to_numpy(np.int64)[outer]
    leave = np.where(leave < 0, view.end_ns, leave)
    seen = np.flatnonzero((enter <= view.stop_ns) & (leave >= view.start_ns))
    scale = width / max(view.length_ns, 1)
    left = ((enter[seen] - view.start_ns) * scale).clip(0, width - 1).astype(np.int64)
    right = ((leave[seen] - view.start_ns) * scale).clip(0, width - 1).astype(np.int64)
    begins = np.bincount(left, minlength=width)
    covered = np.bincount(left, minlength=width + 1)
    covered = np.cumsum(covered - np.bincount(right + 1, minlength=width + 1)[: width + 1])
    for column in np.flatnonzero(covered[:width] > 0).tolist():
        cells[column] = "═" if begins[column] <= 1 else "≡"
    for at in np.flatnonzero((right - left > 2) & (begins[left] == 1)).tolist():
        label = str(scopes["label"].iloc[outer[seen[at]]]) or "scope"
        text = f"[{label}"[: right[at] - left[at]]
        cells[left[at] : left[at] + len(text)] = text
        cells[right[at]] = "]"
    return "".join(cells)


def span(view: View) -> str:
    """The stretch on screen in words."""
    if view.is_whole:
        return f"all {format_seconds(view.end_ns / 1e9)}"
    step = view.length_ns / 100
    return f"{moment(view.start_ns, step)} to {moment(view.stop_ns, step)}"
