"""Memory of several processes over time as one picture, a row for each.

Covers: the cells, and the picture as SVG for a page. Does not cover: where the curves come from
(``recording.memory_curves``), the terminal's heat map (``dashboards``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.report.plots import as_file, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 120
MOST_ROWS = 400
"""Of more processes a row stands for several, and shows the highest of them."""
MOST_TICKS = 12
WIDTH_IN, ROW_IN, LEAST_IN, MOST_IN = 9.0, 0.12, 1.4, 3.2
MARGIN_IN = 0.6
MAP = "cividis_r"
"""Readable with any colour vision and in grey."""
CELLS = "cells"
"""Name of the image in the picture, without the prefix that a page gives to names."""
RESIDENT, TRACKED = "resident memory", "arrays"


@dataclass(frozen=True)
class ProcessRow:
    """One process: how it is called, when it began, how long it ran, and its memory meanwhile.

    ``curve`` is thousands of bytes, the highest in each of as many equal parts of ``seconds``;
    empty where memory was never sampled. ``begin_s`` counts from the begin of the picture.
    """

    name: str
    begin_s: float
    seconds: float
    curve: tuple[int, ...]

    @property
    def end_s(self) -> float:
        """When it ended."""
        return self.begin_s + self.seconds


def heat_map(rows: Sequence[ProcessRow], what: str, since: str) -> bytes | None:
    """The picture as SVG; None where no process has samples.

    Args:
        rows: in the order of the picture, from above.
        what: the memory that is shown.
        since: what times count from.
    """
    if not any(row.curve for row in rows):
        return None
    return as_file(lambda: _draw(rows, what, since), "svg", transparent=True)


def end_of(rows: Sequence[ProcessRow]) -> float:
    """Where the picture ends, in seconds."""
    return max((row.end_s for row in rows), default=0.0) or 1.0


def cells(rows: Sequence[ProcessRow]) -> np.ndarray:
    """Bytes, of shape (processes, ``COLUMNS``); NaN before and after a process."""
    times = (np.arange(COLUMNS) + 0.5) * end_of(rows) / COLUMNS
    values = np.full((len(rows), COLUMNS), np.nan)
    for number, row in enumerate(rows):
        curve = np.array(row.curve, np.float64) * 1e3
        inside = (row.begin_s <= times) & (times <= row.end_s)
        if len(curve) and row.seconds > 0:
            at = ((times[inside] - row.begin_s) / row.seconds * len(curve)).astype(np.intp)
            values[number, inside] = curve[np.minimum(at, len(curve) - 1)]
    return values


def rows_of(values: np.ndarray) -> np.ndarray:
    """At most ``MOST_ROWS`` rows, each the highest of some that follow each other."""
    if len(values) <= MOST_ROWS:
        return values
    size = -(-len(values) // MOST_ROWS)
    padded = np.full((-(-len(values) // size) * size, values.shape[1]), np.nan)
    padded[: len(values)] = values
    groups = padded.reshape(-1, size, values.shape[1])
    return np.where(np.isnan(groups).all(axis=1), np.nan, np.fmax.reduce(groups, axis=1))


def _draw(rows: Sequence[ProcessRow], what: str, since: str) -> Figure:
    from matplotlib.figure import Figure

    shown = rows_of(cells(rows))
    count, end_s = len(rows), end_of(rows)
    unit_s, unit = next((u for u in style.SECONDS if end_s >= u[0]), style.SECONDS[-1])
    highest = float(np.nanmax(shown, initial=0.0))
    unit_b, unit_name = next((u for u in style.BYTES if highest >= u[0]), style.BYTES[-1])
    height = min(max(LEAST_IN, len(shown) * ROW_IN), MOST_IN)
    figure = Figure(figsize=(WIDTH_IN, height + MARGIN_IN), layout="constrained")
    axes: Any = figure.add_subplot()
    image = axes.imshow(
        shown / unit_b,
        aspect="auto",
        interpolation="nearest",
        cmap=MAP,
        vmin=0.0,
        extent=(0.0, end_s / unit_s, count - 0.5, -0.5),
        gid=CELLS,
    )
    ticks = np.unique(np.linspace(0, count - 1, min(count, MOST_TICKS)).round().astype(int))
    axes.set_yticks(ticks, [rows[row].name for row in ticks.tolist()])
    axes.set_xlabel(f"time since {since} [{unit}]")
    figure.colorbar(image, ax=axes, label=f"{what} [{unit_name}]", pad=0.02)
    return figure
