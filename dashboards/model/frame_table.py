"""The stacks of sites as rows of numbers of frames, many at a time.

Covers: callers of sites, frames left out, one number for each frame. Does not cover: what was made
at the sites (``call_tree``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.model import StackFrame

NONE = -1
"""Ends a row."""
NO_STACK = 0
"""The number of the frame that stands for a stack without frames."""

Ints = NDArray[np.int64]
Stacks = NDArray[np.int32]


class FrameTable:
    """Numbers for the frames of a recording's sites, given when they are first asked for.

    ``known[number]`` is a frame, and ``users[number]`` says that it is in the user's code. A frame
    has one number, at however many sites it stands.

    Args:
        sites: the table of that name.
        source: finds the text of a line.
    """

    def __init__(
        self, sites: pd.DataFrame, source: Callable[[str, int, str], str] | None = None
    ) -> None:
        self._source = source
        numbers = sites.index.to_numpy(np.int64)
        size = int(numbers.max(initial=0)) + 2
        self._columns = [sites[name] for name in ("file", "line", "function")]
        self._row = np.full(size, NONE, np.int64)
        self._row[numbers] = np.arange(len(numbers))
        self._parent = np.zeros(size, np.int64)
        self._parent[numbers] = sites["parent"].to_numpy(np.int64).clip(0, size - 1)
        self._depth = np.zeros(size, np.int64)
        self._depth[numbers] = sites["depth"].to_numpy(np.int64)
        self._users = np.zeros(size, bool)
        self._users[numbers] = sites["blamed"].to_numpy(np.int64) == numbers
        self._number = np.full(size, NONE, np.int32)
        self.known: list[StackFrame] = [StackFrame("", 0, "no Python stack")]
        self.users: list[bool] = [False]
        self._numbers: dict[StackFrame, int] = {}
        self._lock = threading.Lock()

    def stacks(self, sites: Ints, library: bool, inverted: bool) -> Stacks:
        """A row of numbers for each site, its frames from the outermost one to the innermost one.

        Args:
            library: with frames that are not in the user's code, which are left out otherwise
                wherever there is one of the user's.
            inverted: innermost first.
        Returns:
            Rows end with at least one ``NONE``.
        """
        stacks = self._callers(sites)
        if not library:
            users = self._users[stacks] & (stacks > 0)
            some = users.any(axis=1)
            stacks[some] = _to_the_left(stacks[some], users[some])
        if not inverted:
            backwards = stacks[:, ::-1]
            stacks = _to_the_left(backwards, backwards > 0)
        rows = self._numbered(stacks)
        rows[rows[:, 0] == NONE, 0] = NO_STACK
        return rows

    def depths(self, sites: Ints) -> Ints:
        """How many frames the stacks of sites have."""
        size = len(self._row)
        return self._depth[np.where((sites > 1) & (sites < size), sites, 0)]

    def _callers(self, sites: Ints) -> Stacks:
        """Sites with their callers, innermost first, 0 where a stack has ended."""
        size = len(self._row)
        here = np.where((sites > 1) & (sites < size), sites, 0)
        columns = []
        while True:
            here = np.where((here > 1) & (self._row[here] != NONE), here, 0)
            columns.append(here.astype(np.int32))
            if not here.any() and len(columns) > 1:
                return np.stack(columns, axis=1)
            here = self._parent[here]  # always the smaller number

    def _numbered(self, stacks: Stacks) -> Stacks:
        """The numbers of frames where sites were; those that are new get one."""
        with self._lock:
            seen = np.unique(stacks)
            new = seen[(seen > 0) & (self._number[seen] == NONE)]
            rows = self._row[new]
            texts = [column.iloc[rows].tolist() for column in self._columns]
            users = self._users[new].tolist()
            for site, file, line, function, own in zip(new.tolist(), *texts, users, strict=True):
                frame = StackFrame(str(file), int(line), str(function), self._source)
                number = self._numbers.get(frame)
                if number is None:
                    number = self._numbers[frame] = len(self.known)
                    self.known.append(frame)
                    self.users.append(own)
                self._number[site] = number
            return self._number[stacks]


def _to_the_left(rows: Stacks, kept: NDArray[np.bool_]) -> Stacks:
    """Rows with what is kept at their begin, in order, and 0 behind it."""
    order = np.argsort(~kept, axis=1, kind="stable")
    moved = np.take_along_axis(rows, order, axis=1)
    moved[np.arange(rows.shape[1]) >= kept.sum(axis=1)[:, None]] = 0
    return moved
