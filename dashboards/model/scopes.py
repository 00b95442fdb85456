"""Scopes over time as boxes, and what those of each label did in a stretch of time.

Covers: an index built once, from which any stretch is answered quickly, however many scopes there
are. Does not cover: how boxes are drawn (``widgets.box_chart``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.units import format_count

from .boxes import Box
from .tables import MOST_ROWS, TableData, duration
from .view import View

MOST_LEVELS = 1000
COUNTS = ("registered", "released", "promoted", "escaped", "freed")
Ints = NDArray[np.int64]


class ScopeIndex:
    """The scopes and frames of one recording.

    Args:
        scopes: the table of that name.
    """

    def __init__(self, scopes: pd.DataFrame) -> None:
        self._scopes = scopes
        self._enter = scopes["enter_ns"].to_numpy(np.int64)
        self._leave = scopes["exit_ns"].to_numpy(np.int64)
        self._depth = scopes["depth"].to_numpy(np.int64)
        labels, self._labels = pd.factorize(scopes["label"])
        frames = scopes["is_frame"].to_numpy(bool)
        self._group = labels.astype(np.int64) * 2 + frames
        self._counts = [scopes[name].to_numpy(np.int64) for name in COUNTS]

    def row(self, scope: Any) -> pd.Series:
        """The row of a scope; in a damaged recording, where several have a number, the first."""
        return self._scopes.loc[[scope]].iloc[0]

    def boxes(self, view: View, width: int) -> list[Box]:
        """Scopes over time, the outermost in row 0; several in one column become one box.

        Of more than ``MOST_LEVELS`` levels the outermost ones.

        The key of a box is the number of its scope, or of the first of several.
        """
        if width <= 0 or not len(self._enter):
            return []
        leave = np.where(self._leave < 0, view.end_ns, self._leave)
        seen = np.flatnonzero((self._enter <= view.stop_ns) & (leave >= view.start_ns))
        scale = width / max(view.length_ns, 1)
        left = np.floor((self._enter[seen] - view.start_ns) * scale).clip(0, width - 1)
        right = np.ceil((leave[seen] - view.start_ns) * scale).clip(1, width)
        left = left.astype(np.int64)
        right = np.maximum(right.astype(np.int64), left + 1)
        by_depth = np.argsort(self._depth[seen], kind="stable")
        depth = self._depth[seen][by_depth]
        starts = np.flatnonzero(np.diff(depth, prepend=-1))
        ends = np.append(starts[1:], len(depth))
        boxes: list[Box] = []
        for start, end in zip(starts[:MOST_LEVELS], ends[:MOST_LEVELS], strict=True):
            mine, level = by_depth[start:end], int(depth[start])
            first, many = _together(left[mine], right[mine])
            at = mine[first]
            spans = zip(left[at].tolist(), right[at].tolist(), seen[at].tolist(), many, strict=True)
            boxes += self._merged(level - 1, spans)
        return boxes

    def _merged(self, row: int, spans: Iterator[tuple[int, int, int, int]]) -> Iterator[Box]:
        """The boxes of one row; narrow ones in the same column stand for each other."""
        current: Box | None = None
        for left, right, at, many in spans:
            number, label = self._scopes.index[at], self._label(self._group[at])
            text = label or "scope" if many == 1 else ""
            if current is not None and right - left == 1 and left < current.right:
                many += current.many
                current = Box(row, current.left, max(current.right, right), "", current.key, many)
                continue
            if current is not None:
                yield current
                left = max(left, current.right)
                if left >= right:
                    current = Box(row, left - 1, left, "", number, many)
                    continue
            current = Box(row, left, right, text, number, many)
        if current is not None:
            yield current

    def _label(self, group: int) -> str:
        return str(self._labels[group // 2]) if group >= 0 else ""

    def labels(self, view: View) -> TableData:
        """What scopes and frames of each label did, those that were entered in the stretch."""
        inside = np.flatnonzero((self._enter >= view.start_ns) & (self._enter <= view.stop_ns))
        groups, which = np.unique(self._group[inside], return_inverse=True)
        leave = np.where(self._leave[inside] < 0, view.end_ns, self._leave[inside])
        length = leave - self._enter[inside]
        entered = np.bincount(which, minlength=len(groups))
        still = np.bincount(which[self._leave[inside] < 0], minlength=len(groups))
        total = np.bincount(which, length, len(groups))
        longest = np.zeros(len(groups), np.int64)
        np.maximum.at(longest, which, length)
        counts = [np.bincount(which, values[inside], len(groups)) for values in self._counts]
        rows = []
        for at in np.argsort(-total, kind="stable")[:MOST_ROWS].tolist():
            what = "frame" if groups[at] % 2 else "scope"
            rows.append(
                (
                    self._label(groups[at]) or f"({what} without a name)",
                    what,
                    format_count(entered[at]),
                    format_count(still[at]) if still[at] else "",
                    duration(total[at] / 1e9),
                    duration(total[at] / entered[at] / 1e9),
                    duration(longest[at] / 1e9),
                    *(format_count(values[at]) for values in counts),
                )
            )
        heads = ("label", "what", "entered", "open", "total", "mean", "longest", *COUNTS)
        note = f"{format_count(len(inside))} scopes and frames"
        if len(groups) > len(rows):
            note += f", {format_count(len(rows))} of {format_count(len(groups))} labels"
        return TableData(heads, rows, heads[2:], note)


def _together(left: Ints, right: Ints) -> tuple[Ints, list[int]]:
    """Where each run of narrow boxes in one column begins, and how many are in it."""
    narrow = right - left == 1
    same = narrow[1:] & narrow[:-1] & (left[1:] == left[:-1])
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    return first, np.diff(np.append(first, len(left))).tolist()
