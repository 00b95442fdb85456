"""What was alive between moments, for the slider of a flame graph.

Moments are evenly spaced. Objects of one frame that were alive at the same of them are one row,
from the first to the last; objects alive at none are left out. Where the oldest events are folded,
moments begin behind them: of objects freed before only sums are known.

Covers: the rows. Does not cover: the slider and the sums of a choice (``page.js``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.recording.reader import Recording
from tlmem.report.site_sums import StackTree

STEPS = 128
"""From one moment to the next, at first; halved until the rows are few enough."""
MOST_ROWS = 40_000
MOST_MARKS = 400

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Moments:
    """Rows of objects with their frame, and the moments that they are counted at.

    Attributes:
        times_ns: the moments, the last of which is the end.
        rows: ``(n, 5)``: node of the tree, first and last moment at which these objects were
            alive, bytes, objects.
        marks: moments at which the program set a mark, with its words.
    """

    times_ns: Ints
    rows: Ints
    marks: list[tuple[int, str]]


def moments_of(recording: Recording, tree: StackTree) -> Moments | None:
    """The moments of a recording; None when nothing was recorded."""
    objects = recording.objects
    start_ns, end_ns = recording.horizon_ns, int(recording.seconds * 1e9)
    if objects.empty or end_ns <= start_ns:
        return None
    times = np.linspace(start_ns, end_ns, STEPS + 1).astype(np.int64)
    site = objects["born_site"].to_numpy(np.int64)
    site = np.where(site < len(tree.node_of_site), site, 0)
    died = objects["died_ns"].to_numpy(np.int64)
    stride = int((recording.fold or {}).get("live_stride", 1) or 1)
    count = np.where(objects["folded"].to_numpy(bool), stride, 1)
    rows = grouped(
        tree.node_of_site[site],
        np.searchsorted(times, objects["born_ns"].to_numpy(np.int64), "left"),
        np.where(died < 0, STEPS, np.searchsorted(times, died, "left") - 1),
        objects["size_bytes"].to_numpy(np.int64) * count,
        count,
    )
    step = 1
    while len(rows) > MOST_ROWS and step < STEPS:
        node, first, last, size, count = rows.T
        rows = grouped(node, (first + 1) // 2, last // 2, size, count)
        step *= 2
    return Moments(times[::step], rows, marks_of(recording))


def grouped(node: Ints, first: Ints, last: Ints, size: Ints, count: Ints) -> Ints:
    """Rows of one frame and the same moments as one, with their bytes and objects together."""
    seen = (first <= last) & (node >= 0)
    each = STEPS + 2
    keys = (node[seen] * each + first[seen]) * each + last[seen]
    keys, number = np.unique(keys, return_inverse=True)
    rows = np.zeros((len(keys), 5), np.int64)
    rows[:, 0], rows[:, 1], rows[:, 2] = keys // each // each, keys // each % each, keys % each
    np.add.at(rows[:, 3], number, size[seen])
    np.add.at(rows[:, 4], number, count[seen])
    return rows


def marks_of(recording: Recording) -> list[tuple[int, str]]:
    """Marks of the program, evenly chosen where there are many."""
    marks = recording.marks
    chosen = np.linspace(0, len(marks) - 1, min(len(marks), MOST_MARKS)).astype(int)
    table = marks.iloc[chosen]
    return [
        (int(time), f"{label} {index}")
        for time, label, index in zip(table["time_ns"], table["label"], table["index"], strict=True)
    ]


def moments_data(moments: Moments) -> dict[str, list]:
    """What ``page.js`` reads: ``times_ns``, ``rows`` and ``marks`` as lists."""
    return {
        "times_ns": moments.times_ns.tolist(),
        "rows": moments.rows.tolist(),
        "marks": [list(mark) for mark in moments.marks],
    }
