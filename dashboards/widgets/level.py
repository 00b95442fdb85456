"""One quantity over time, a few rows high."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from tlmem.dashboards.model.bars import stacked_heights
from tlmem.dashboards.model.view import View

from .picture import Cell, Picture


class Level(Picture):
    """Columns as high as their values, with the highest value at the left."""

    DEFAULT_CSS = "Level { height: 2; }"

    def __init__(self, name: str, colour: str, write: Callable[[float], str], *, id: str) -> None:
        super().__init__(id=id)
        self.title = name
        self.colour = colour
        self.write = write
        self.values: NDArray[np.float64] = np.empty(0)
        self.now: float | None = None

    def show(self, values: NDArray[np.float64], view: View, now: float | None = None) -> None:
        """Shows other values, one for each column; ``now`` is the one at the cursor."""
        self.values, self.view, self.now = values, view, now
        self.refresh()

    def label(self, row: int) -> str:
        """The highest value; below it what it is of, with the value at the cursor."""
        last = self.size.height - 1
        highest = self.write(float(self.values.max(initial=0.0)))
        now = None if self.now is None else self.write(self.now)
        if last == 0:
            return f"{self.title} {highest if now is None else now}"
        if row == last:
            room = self.margin - 1
            words = [f"{self.title} {now}", str(now)] if now is not None else [self.title]
            return next((each for each in words if len(each) <= room), words[-1])
        if row != 0:
            return ""
        word = "" if now is None or len(highest) + 4 >= self.margin else "max "
        return f"{word}{highest}"

    def cells(self, row: int) -> Iterable[Cell]:
        """One row of the columns."""
        rows = stacked_heights(self.values, max(self.size.height, 1))
        return ((rows[row], self.colour),)
