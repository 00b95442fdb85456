"""The time axis below every picture: round ticks, the program's marks, its outermost scopes.

Covers: which text stands in which column. Does not cover: colours and widgets.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from tlmem.units import format_seconds

from .view import View

APART = 4
"""Columns that at least lie between two labels of ticks."""
_ROUND = (1, 2, 5)


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


def ticks(view: View, width: int) -> list[tuple[int, str]]:
    """Columns and labels of round moments, apart from each other."""
    if width <= 0:
        return []
    longest = len(moment(view.stop_ns, view.length_ns / 10)) + APART
    least = view.length_ns / max(width / longest, 1)
    power = 10 ** math.floor(math.log10(max(least, 1)))
    step = next((power * base for base in _ROUND if power * base >= least), power * 10)
    first = math.ceil(view.start_ns / step) * step
    found = []
    for time_ns in np.arange(first, view.stop_ns + 1, step):
        column = column_of(view, time_ns, width)
        if 0 <= column < width:
            found.append((column, moment(time_ns, step)))
    return found


def tick_line(view: View, width: int) -> str:
    """The labels of the ticks, each behind its tick, as a line of ``width`` characters."""
    cells = [" "] * width
    for column, label in ticks(view, width):
        text = f"╵{label}"
        if column + len(text) <= width:
            cells[column : column + len(text)] = text
    return "".join(cells)


def mark_line(view: View, width: int, marks: pd.DataFrame) -> str:
    """The program's marks: a sign at each, its label behind it where there is room."""
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
        text = f"{label} {index}"
        if after - column > len(text) + 1:
            cells[column + 1 : column + 1 + len(text)] = text
    return "".join(cells)


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
