"""Which lines held memory over time? Bytes alive by the line that made them, as areas.

Covers: the lines with most bytes in each of ``MOMENTS`` parts of the time, and their picture.
Does not cover: whether they grow; see ``growth``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.report.plots import style
from tlmem.report.plots.plot_data import (
    Floats,
    Ints,
    NothingToDraw,
    PlotView,
    label_of,
    mean_alive,
    peak_alive,
)

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

MOMENTS = 400
MOST_LINES = 7
LEAST_SEEN = 0.02
"""Peaks have a line of their own when on average they rise so far above the areas, as a share of
the height."""
REST = "other lines"
MOST_CELLS = 1_000_000
"""Numbers in a table of lines over time; with more, only lines that are shown have a row."""


@dataclass(frozen=True)
class SitesOverTime:
    """Bytes alive by line, on average from one edge to the next; the largest line first.

    ``bytes`` has lines in the order of their means, all that have no area of their own last;
    ``peak`` is the most that was alive at once between two edges. ``lines`` counts all of them.
    """

    edges_ns: Ints
    bytes: dict[str, Floats]
    peak: Floats
    lines: int


def sites_over_time(
    view: PlotView, most: int = MOST_LINES, moments: int = MOMENTS
) -> SitesOverTime:
    """Bytes alive by blamed line.

    Args:
        view: the recording and the range of time.
        most: lines of their own; all others are added up.
        moments: how many parts the time is divided into.
    Raises:
        NothingToDraw: no object was alive in the range.
    """
    objects, count = view.objects, view.places.count
    edges = np.unique(view.moments(moments + 1))
    size = objects.size * objects.weight
    group, frames, lines = objects.group, view.places.frames, 0
    if count * len(edges) > MOST_CELLS:
        # Of very many lines only those that may have an area of their own get a row.
        whole = mean_alive(edges[[0, -1]], objects.born, objects.died, size, group, count)[:, 0]
        largest, lines = np.argsort(-whole, kind="stable")[:most], int((whole > 0).sum())
        row_of = np.full(count, len(largest), np.int32)
        row_of[largest] = np.arange(len(largest))
        frames = tuple(frames[number] for number in largest.tolist())
        group, count = row_of[group], len(largest) + 1
    held = mean_alive(edges, objects.born, objects.died, size, group, count)
    means = held @ np.diff(edges).astype(float)
    order = np.argsort(-means, kind="stable")
    order = order[means[order] > 0]
    if len(order) == 0:
        raise NothingToDraw(f"{view.recording.path} holds no object with bytes in this time.")
    if lines:
        own, rest = order[order < len(frames)], order[order == len(frames)]
    else:
        lines = len(order)
        own, rest = np.split(order, [most if lines > most + 1 else most + 1])
    names: dict[str, Floats] = {}
    for number in own.tolist():
        name = label_of(frames[number])
        names[name] = names[name] + held[number] if name in names else held[number]
    if len(rest):
        names[REST] = held[rest].sum(axis=0)
    peak = peak_alive(edges, objects.born, objects.died, size)
    return SitesOverTime(edges, names, peak, lines)


def draw(figure: SubFigure, view: PlotView) -> None:
    """Draws the areas, and what a size limit folded as a grey ground."""
    data = sites_over_time(view)
    (axes,) = style.panels(figure, view.name, "Tracked memory by allocating line")
    unit_ns = style.time_axis(axes, view.begin_ns, view.end_ns)
    unit = style.bytes_axis(axes, float(data.peak.max()), "bytes alive, on average")
    edges = data.edges_ns / unit_ns
    handles: list[Any] = []
    floor = np.zeros(len(edges) - 1)
    for number, (name, values) in enumerate(data.bytes.items()):
        rest = name == REST
        face = style.REST if rest else style.colour(number)
        handles.append(
            axes.stairs(
                (floor + values) / unit, edges, baseline=floor / unit, fill=True, linewidth=0.0,
                facecolor=face, edgecolor=style.hatch_colour(face),
                hatch="" if rest else style.hatch(number),
            )
        )  # fmt: skip
        floor = floor + values
    names = list(data.bytes)
    if REST in data.bytes:
        names[-1] = f"{data.lines - len(names) + 1} other lines"
    if np.mean(data.peak - floor) > LEAST_SEEN * data.peak.max():
        handles.append(axes.stairs(data.peak / unit, edges, color=style.INK, linewidth=0.7))
        names.append("most at once")
    style.legend(axes, handles[::-1], names[::-1])
    horizon = view.recording.horizon_ns
    if horizon > view.begin_ns:
        style.moment(axes, horizon, unit_ns, "before: only what stayed alive")
    style.marks(axes, view.recording.marks, view.begin_ns, view.end_ns, unit_ns)
