"""How one lane looks: bars of objects, heights of what lines hold, counts of one object.

Covers: one character for each column, the same without colour. Does not cover: which lanes there
are (``lanes``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .lanes import NEVER, LineLane
from .time_axis import column_of
from .view import View

HEIGHTS = " ▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉█"
BORN_AND_DIED = "•"
"""An object whose whole life is in one column, or objects of which none is alive at its end."""
MOST_SHOWN = 9
MORE = "+"


def object_bar(view: View, width: int, born_ns: int, died_ns: int) -> str:
    """``├──┤`` from birth to death; ``▶`` at the end: alive then; ``◀`` or ``▶``: goes on beyond.

    Args:
        died_ns: ``lanes.NEVER`` for one that is alive at the end of the recording.
    """
    cells = [" "] * width
    if width <= 0 or born_ns > view.stop_ns or died_ns < view.start_ns:
        return "".join(cells)
    left = column_of(view, born_ns, width)
    right = width if died_ns == NEVER else column_of(view, died_ns, width)
    first, last = max(left, 0), min(right, width - 1)
    first = min(first, width - 1)
    cells[first : last + 1] = "─" * (last - first + 1)
    if left >= 0:
        cells[first] = "├"
    else:
        cells[first] = "◀"
    if right >= width:
        cells[width - 1] = "▶"
    elif left == right:
        cells[last] = BORN_AND_DIED
    else:
        cells[last] = "┤"
    return "".join(cells)


def heights(values: NDArray[np.float64], highest: float, made: Sequence[float] = ()) -> str:
    """Columns as high as their values; ``•`` where something was made and nothing is left."""
    scale = (len(HEIGHTS) - 1) / highest if highest > 0 else 0.0
    steps = np.ceil(np.nan_to_num(values) * scale).clip(0, len(HEIGHTS) - 1).astype(int)
    text = [HEIGHTS[step] for step in steps.tolist()]
    for column, count in enumerate(made):
        if count > 0 and steps[column] == 0:
            text[column] = BORN_AND_DIED
    return "".join(text)


def line_bar(lane: LineLane) -> str:
    """What a line holds over time, against the most it holds on screen; without bytes, objects."""
    values = lane.live_bytes if lane.highest_bytes > 0 else lane.live_count
    return heights(values, float(values.max(initial=0.0)), lane.made.tolist())


def stacked_heights(values: NDArray[np.float64], rows: int) -> list[str]:
    """Columns several rows high, the uppermost row first."""
    highest = float(values.max(initial=0.0))
    if highest <= 0:
        return [" " * len(values)] * rows
    level = np.nan_to_num(values) / highest * rows
    return [heights((level - row).clip(0, 1), 1.0) for row in range(rows - 1, -1, -1)]


def stacked_cells(
    tops: NDArray[np.float64], edges: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows of stacked areas: of each cell the two layers that have most of it.

    Args:
        tops: ``[layer, column]``, where each layer ends; NaN where nothing is known.
        edges: the values at the lower edge of the lowest row and at the upper edge of each.
    Returns:
        ``[row, column]``, the lowest row first: the eighths of each cell that the lower one of the
        two has, the lower and the upper one; the number of layers stands for what is above all.
    """
    floor, ceiling = np.zeros((1, tops.shape[1])), np.full((1, tops.shape[1]), edges[-1])
    ends = np.maximum.accumulate(np.concatenate([floor, np.nan_to_num(tops), ceiling]), axis=0)
    low, high = edges[:-1, None, None], edges[1:, None, None]
    share = np.diff(ends[None].clip(low, high), axis=1)
    most = share.argmax(axis=1, keepdims=True)
    having = np.take_along_axis(share, most, axis=1)
    np.put_along_axis(share, most, -1.0, axis=1)
    next_most = share.argmax(axis=1, keepdims=True)
    rest = np.take_along_axis(share, next_most, axis=1)
    is_lower = most < next_most
    lower = np.where(is_lower, having, rest)
    eighths = np.rint(8 * lower / np.maximum(having + rest, 1e-12)).astype(np.int64)
    return (
        eighths[:, 0],
        np.minimum(most, next_most)[:, 0],
        np.maximum(most, next_most)[:, 0],
    )


def count_bar(view: View, width: int, steps: Sequence[tuple[int, int | None]], died_ns: int) -> str:
    """The reference count of one object at the end of each column; ``+`` for more than 9.

    Args:
        steps: (time, count after it) of its events in order; None where an event has no count.
    """
    cells = [" "] * max(width, 0)
    counted = [(time_ns, count) for time_ns, count in steps if count is not None]
    for at, (time_ns, count) in enumerate(counted):
        until = counted[at + 1][0] if at + 1 < len(counted) else died_ns
        if until < view.start_ns or time_ns > view.stop_ns:
            continue
        first = max(column_of(view, time_ns, width), 0)
        last = width - 1 if until == NEVER else min(column_of(view, until, width), width - 1)
        sign = str(count) if count <= MOST_SHOWN else MORE
        for column in range(first, last + 1):
            cells[column] = sign
    return "".join(cells)


def share_bar(share: float, width: int) -> str:
    """A bar of ``width`` columns, full for a share of 1."""
    whole, rest = divmod(round(min(max(share, 0.0), 1.0) * width * 8), 8)
    return ("█" * whole + (EIGHTHS[rest] if rest else "")).ljust(width)
