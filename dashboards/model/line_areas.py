"""What is alive over time, as areas: the largest lines in colours of their own, and all others.

Covers: what each column of the picture shows, up to the most that was alive at once in it. Does not
cover: how it is drawn (``widgets.area_chart``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.places import place

from .lanes import Lanes
from .layers import Layer
from .view import View

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Those of ``tlmem plot``, so that a line has the same colour in both."""
SIGNS = "#=%*+o"
OTHER_LINES = Layer("other lines", "-", "#7d8699")
BETWEEN = Layer("for a moment", ".", "#555d6e")
"""What is alive at some moment of a column, and no longer at its end."""


@dataclass(frozen=True)
class LineAreas:
    """Bytes of each layer in each column of one view; ``values[layer, column]``, the first is
    lowest."""

    layers: tuple[Layer, ...]
    values: NDArray[np.float64]

    @property
    def known(self) -> bool:
        """Whether anything was alive."""
        return bool(self.values.size) and bool(self.values.any())

    def columns(self, start_ns: int, stop_ns: int, width: int) -> NDArray[np.float64]:
        """The columns; for another width than they were made for, the nearest ones."""
        there = self.values.shape[1]
        if width == there or not there:
            return self.values[:, :width]
        return self.values[:, (np.arange(width) * there) // max(width, 1)]


def line_areas(lanes: Lanes, view: View, width: int) -> LineAreas:
    """The areas of a stretch of time."""
    total = lanes.total(view, width)
    of_lines = [lanes.of_line(line, view, width) for line in lanes.coloured]
    others = total - sum(of_lines) if of_lines else total
    between = lanes.highest(view, width) - total
    names = [
        place(lanes.places.frames[line]) if lanes.places.frames[line].file else "no Python stack"
        for line in lanes.coloured
    ]
    layers = tuple(map(Layer, names, SIGNS, COLOURS))
    values = np.stack([*of_lines, others, between])
    return LineAreas((*layers, OTHER_LINES, BETWEEN), np.maximum(values, 0.0))


def colour_of(lanes: Lanes, line: int) -> str:
    """The colour of a line in every picture of one recording."""
    ranked = lanes.coloured
    return COLOURS[ranked.index(line)] if line in ranked else OTHER_LINES.colour
