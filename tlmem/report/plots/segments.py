"""Where did segments and blocks lie, and when? Address against time, holes left white.

Covers: the picture of a replay. Does not cover: the rectangles, which are handed in (``Layout``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.places import Places
from tlmem.report.plots import HEIGHT_IN, WIDTH_IN, Size, as_file, blank, style
from tlmem.report.plots.plot_data import NothingToDraw, label_of
from tlmem.report.replay import Replayed
from tlmem.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MOST_LINES = 7
"""As many as there are colours; blocks of all others are grey."""
MOST_RECTANGLES = 60_000
"""Of more blocks the largest, by bytes times events, are drawn."""
HOLE = "#ffd9d2"
"""What is reserved and free."""
EDGE_PT, EDGE_FROM_IN = 0.25, 0.02

Ints = NDArray[np.int64]


def picture(found: Replayed, format: str, size: Size | None = None) -> bytes:
    """The picture as the bytes of a file; the same replay always gives the same bytes.

    Raises:
        NothingToDraw: nothing was reserved.
    """
    layout = found.layout
    if layout is None or not len(layout.segments):
        raise NothingToDraw(f"{found.recording.path}: there is no segment to draw.")

    def make() -> Figure:
        figure = blank(size or (WIDTH_IN, HEIGHT_IN))
        draw(figure.subfigures(1, 1, squeeze=False)[0, 0], found)
        return figure

    return as_file(make, format)


def draw(figure: SubFigure, found: Replayed) -> None:
    """Draws the segments, the blocks in them by line, and the moment of the peak."""
    from matplotlib.patches import Patch

    layout = found.layout
    assert layout is not None
    name = str(found.recording.path).rpartition("/")[2]
    peak = found.answers[0].roomy.peak_reserved_bytes
    title = f"{found.shown}: {format_bytes(peak)} reserved, addresses against time"
    (axes,) = style.panels(figure, name, title)
    times = layout.time_ns[layout.first : layout.last]
    begin_ns, end_ns = int(times[0]), max(int(times[-1]), int(times[0]) + 1)
    unit_ns = style.time_axis(axes, begin_ns, end_ns)
    unit = style.bytes_axis(axes, layout.top, "address")

    def at(events: Ints) -> NDArray[np.float64]:
        return np.append(times, end_ns)[np.clip(events - layout.first, 0, len(times))] / unit_ns

    shown = layout.segments
    look: dict[str, Any] = {"facecolor": HOLE, "edgecolor": style.INK}
    _fill(axes, at(shown.begin), at(shown.end), shown.low / unit, shown.high / unit, look)
    handles, labels = [Patch(linewidth=EDGE_PT, **look)], ["reserved and free"]
    blocks = layout.blocks
    weight = (blocks.high - blocks.low).astype(float) * (blocks.end - blocks.begin)
    kept = np.sort(np.argsort(-weight, kind="stable")[:MOST_RECTANGLES])
    for number, (text, rows) in enumerate(_by_line(found, weight, kept)):
        face = style.REST if text == "other lines" else style.colour(number)
        look = {"facecolor": face, "edgecolor": style.hatch_colour(face)}
        _fill(
            axes,
            at(blocks.begin[rows]),
            at(blocks.end[rows]),
            blocks.low[rows] / unit,
            blocks.high[rows] / unit,
            look,
        )
        handles.append(Patch(linewidth=EDGE_PT, **look))
        labels.append(text)
    peak_ns = int(layout.time_ns[min(layout.peak, len(layout.time_ns) - 1)])
    style.moment(axes, peak_ns, unit_ns, "peak")
    style.legend(axes, handles, labels)


def _by_line(found: Replayed, weight: NDArray[np.float64], kept: Ints) -> list[tuple[str, Ints]]:
    """The blocks of the lines that have most, and of all others together."""
    layout = found.layout
    assert layout is not None
    places = Places.of(found.recording)
    site = found.trace.site[layout.block]
    group = places.group_of_site[np.where(site < len(places.group_of_site), site, 0)]
    sums = np.bincount(group, weights=weight, minlength=len(places.frames))
    lines = [n for n in np.argsort(-sums, kind="stable").tolist() if sums[n]][:MOST_LINES]
    made = [(label_of(places.frames[n]), kept[group[kept] == n]) for n in lines]
    rest = kept[~np.isin(group[kept], lines)]
    return [*made, ("other lines", rest)] if len(rest) else made


def _fill(
    axes: Axes,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    look: dict[str, Any],
) -> None:
    from matplotlib.collections import PolyCollection

    width_in, height_in = style.size_in(axes)
    (first, last), top = axes.get_xlim(), axes.get_ylim()[1]
    sides = ((left, low), (right, low), (right, high), (left, high))
    corners = np.stack([np.column_stack(side) for side in sides], axis=1)
    wide = (right - left) / (last - first) * width_in >= EDGE_FROM_IN
    tall = (high - low) / top * height_in >= EDGE_FROM_IN
    edges = np.where(wide & tall, EDGE_PT, 0.0)
    axes.add_collection(PolyCollection(list(corners), linewidths=edges, **look), autolim=False)
