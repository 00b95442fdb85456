"""Memory of every process over time as one picture: a row for each, the darker the more.

Covers: resident memory, or that of arrays where resident memory was not sampled of all. Does not
cover: the terminal's heat map (``dashboards``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.fleets.comparing import FleetAnalysis
from tlmem.fleets.digest import Digest
from tlmem.report.plots import as_file, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 120
MOST_ROWS = 400
"""Of more processes a row stands for several, and shows the highest of them."""
MOST_TICKS = 12
WIDTH_IN, ROW_IN, LEAST_IN, MOST_IN = 9.0, 0.12, 1.0, 3.2
MARGIN_IN = 0.6
MAP = "cividis_r"
"""Readable with any colour vision and in grey."""


def heat_map(found: FleetAnalysis) -> bytes | None:
    """The picture as SVG; None where no process has samples."""
    if not any(curve_of(found, process) for process in found.processes):
        return None
    return as_file(lambda: _draw(found), "svg", transparent=True)


def curve_of(found: FleetAnalysis, process: Digest) -> tuple[int, ...]:
    """Memory of a process over time, in thousands of bytes."""
    return process.resident_curve if found.has_resident else process.tracked_curve


def cells(found: FleetAnalysis) -> np.ndarray:
    """Bytes, of shape (processes, ``COLUMNS``); NaN behind the end of a process."""
    longest = max(process.seconds for process in found.processes) or 1.0
    times = (np.arange(COLUMNS) + 0.5) * longest / COLUMNS
    values = np.full((len(found.processes), COLUMNS), np.nan)
    for row, process in enumerate(found.processes):
        curve = np.array(curve_of(found, process), np.float64) * 1e3
        inside = times <= process.seconds
        if len(curve) and process.seconds > 0:
            at = (times[inside] / process.seconds * len(curve)).astype(np.intp)
            values[row, inside] = curve[np.minimum(at, len(curve) - 1)]
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


def _draw(found: FleetAnalysis) -> Figure:
    from matplotlib.figure import Figure

    shown = rows_of(cells(found))
    count = len(found.processes)
    longest = max(process.seconds for process in found.processes) or 1.0
    unit_s, unit = next((u for u in style.SECONDS if longest >= u[0]), style.SECONDS[-1])
    highest = float(np.nanmax(shown))
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
        extent=(0.0, longest / unit_s, count - 0.5, -0.5),
    )
    ticks = np.unique(np.linspace(0, count - 1, min(count, MOST_TICKS)).round().astype(int))
    axes.set_yticks(ticks, [found.processes[row].identity.short for row in ticks.tolist()])
    axes.set_xlabel(f"time since the start of each process [{unit}]")
    figure.colorbar(image, ax=axes, label=f"{_what(found)} [{unit_name}]", pad=0.02)
    return figure


def _what(found: FleetAnalysis) -> str:
    return "resident memory" if found.has_resident else "arrays"
