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

    def show(self, values: NDArray[np.float64], view: View) -> None:
        """Shows other values, one for each column."""
        self.values, self.view = values, view
        self.refresh()

    def label(self, row: int) -> str:
        """The highest value, and what it is of."""
        last = self.size.height - 1
        highest = self.write(float(self.values.max(initial=0.0)))
        if last == 0:
            return f"{self.title} {highest}"
        return highest if row == 0 else self.title if row == last else ""

    def cells(self, row: int) -> Iterable[Cell]:
        """One row of the columns."""
        rows = stacked_heights(self.values, max(self.size.height, 1))
        return ((rows[row], self.colour),)
