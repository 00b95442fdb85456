"""Memory over time as stacked areas; without colours each layer has a sign of its own."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rich.text import Text
from tlmem.dashboards.model.bars import HEIGHTS, stacked_cells
from tlmem.dashboards.model.layers import PARTS, Layers
from tlmem.dashboards.model.line_areas import LineAreas
from tlmem.dashboards.model.view import View

from tlmem.units import format_bytes

from .picture import Cell, Picture

HEADROOM = 1.03
LAYERS = 64
"""More than there are layers: each cell is one number, two of its digits are layers."""
NO_BREAK = "\N{NO-BREAK SPACE}"
"""Keeps a name on the line of its colour."""


class AreaChart(Picture):
    """Stacked areas; a cell shows the two layers that have most of it, in eighths of its height."""

    DEFAULT_CSS = "AreaChart { height: 1fr; min-height: 4; }"
    headroom = HEADROOM
    nothing = "memory was not sampled"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.memory: Layers | LineAreas = Layers(
            PARTS, np.empty(0, np.int64), np.empty((len(PARTS), 0))
        )
        self._tops = np.empty((0, 0))
        self._highest = 1.0
        self._drawn: tuple[View, int, int] | None = None
        self._cells: NDArray[np.int64] | None = None
        self._made: dict[int, tuple[Cell, ...]] = {}

    def show(self, layers: Layers | LineAreas, view: View) -> None:
        """Shows other layers, or another stretch of time."""
        self.memory, self.view = layers, view
        self._drawn = None
        self.refresh()

    def legend(self) -> Text:
        """Signs and names of the layers that are there, lowest first."""
        text = Text()
        there = self.memory.values.max(axis=1, initial=0.0) > 0
        for layer, shown in zip(self.memory.layers, there.tolist(), strict=True):
            if shown:
                text.append(layer.sign * 2 if self.is_plain else "██", style=layer.colour)
                text.append(f"{NO_BREAK}{layer.name.replace(' ', NO_BREAK)}  ")
        return text

    def label(self, row: int) -> str:
        """The scale: the highest value, its half, nothing else."""
        self._prepare()
        if not self.memory.known:
            return ""
        height = self.area.height
        if row == 0:
            return format_bytes(self._highest)
        if row == height // 2 and height >= 5:
            return format_bytes(self._highest * (height - row) / height)
        return "0 B" if row == height - 1 else ""

    def cells(self, row: int) -> Iterable[Cell]:
        """One row of the areas."""
        self._prepare()
        if not self.memory.known:
            if row == self.area.height // 2:
                text = self.nothing.center(max(self.area.width - self.margin, 0))
                yield text, ""
            return
        height = self.area.height
        if self.is_plain:
            yield from self._signs((height - row - 0.5) / height * self._highest)
            return
        if not self._tops.shape[1]:
            return
        if row not in self._made:
            self._made[row] = tuple(self._runs(height - row - 1))
        yield from self._made[row]

    def _runs(self, row: int) -> Iterable[Cell]:
        """A row from the lowest on: equal cells beside each other are one."""
        if self._cells is None:
            edges = np.linspace(0.0, self._highest, self.area.height + 1)
            parts = stacked_cells(self._tops, edges)
            self._cells = (parts[0] * LAYERS + parts[1]) * LAYERS + parts[2]
        empty = len(self.memory.layers)
        colours = [layer.colour for layer in self.memory.layers]
        codes = self._cells[row]
        starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
        for first, last in pairwise(starts):
            rest, upper = divmod(int(codes[first]), LAYERS)
            eighths, lower = divmod(rest, LAYERS)
            length = last - first
            one = lower if eighths == 8 else upper if eighths == 0 else None
            if one is not None:
                yield " " * length, f"on {colours[one]}" if one != empty else ""
            elif upper == empty:
                yield HEIGHTS[eighths] * length, colours[lower]
            else:
                yield HEIGHTS[eighths] * length, f"{colours[lower]} on {colours[upper]}"

    def _signs(self, level: float) -> Iterable[Cell]:
        """The row without colours: the sign of the layer that covers its middle."""
        layers = self.memory.layers
        covering = (np.nan_to_num(self._tops) <= level).sum(axis=0)
        for layer in covering.tolist():
            yield (layers[layer].sign if layer < len(layers) else " "), ""

    def _prepare(self) -> None:
        """Computes the columns for the size on screen, once."""
        columns = max(self.area.width - self.margin, 0)
        now = (self.view, columns, self.area.height)
        if self._drawn == now:
            return
        values = self.memory.columns(self.view.start_ns, self.view.stop_ns, columns)
        self._tops = np.cumsum(values, axis=0)
        highest = np.nanmax(self._tops[-1], initial=0.0) if self._tops.size else 0.0
        self._highest = max(float(highest) * self.headroom, 1.0)
        self._cells, self._made = None, {}
        self._drawn = now


class LineChart(AreaChart):
    """What is alive over time, a colour for each of the largest lines.

    At the left are the most that was alive at once, and what is alive at the cursor.
    """

    DEFAULT_CSS = "LineChart { height: 3; min-height: 2; }"
    headroom = 1.0
    nothing = ""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.now = 0.0

    def show_at(self, areas: LineAreas, view: View, now: float) -> None:
        """Shows areas, and the value at the cursor."""
        if areas is self.memory and self._drawn is not None:
            self._drawn = (view, *self._drawn[1:])
            self.view, self.now = view, now
            self.refresh()
            return
        self.now, self.nothing = now, "nothing was alive"
        self.show(areas, view)

    def label(self, row: int) -> str:
        """The most at the top, what is alive at the cursor at the bottom."""
        self._prepare()
        if row == self.area.height - 1:
            return f"alive {format_bytes(self.now)}"
        return f"max {format_bytes(self._highest)}" if row == 0 and self.memory.known else ""
