"""Where would each object lie in one block, and when? A rectangle for each, from offset to top.

Covers: the rectangles of a plan, by line, and their picture. Does not cover: how it is planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlmem.report.planned import Planned
from tlmem.report.plots import HEIGHT_IN, WIDTH_IN, Size, as_file, blank, style
from tlmem.report.plots.plot_data import NothingToDraw, label_of
from tlmem.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MOST_LINES = 7
"""As many as there are colours; objects of all others are grey."""
EDGE_FROM_IN, EDGE_PT = 0.025, 0.25
"""Rectangles of at least this width and height in inches have an edge, so thick, in points; around
smaller ones it would be all that is seen."""
MARGIN = 0.02
"""Beside the time that is shown, as a share of it, where an end is none of the program's."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """The rectangles of one line, or of all the others."""

    name: str
    rows: Ints


@dataclass(frozen=True)
class Rectangles:
    """Placed objects from ``begin_ns`` to ``end_ns`` and from ``low`` to ``high``, in bytes.

    ``blocks`` put them together by line, those that have most at the peak first; ``span_ns`` is the
    time that is shown.
    """

    begin_ns: Ints
    end_ns: Ints
    low: Ints
    high: Ints
    blocks: tuple[Block, ...]
    span_ns: tuple[int, int]


def rectangles(found: Planned) -> Rectangles:
    """What the picture shows.

    Raises:
        NothingToDraw: no object was placed.
    """
    part, recording = found.part, found.recording
    if len(part) == 0:
        raise NothingToDraw(f"{recording.path} holds no object that could be planned.")
    begin_ns, last_ns = int(part.time_ns[0]), int(part.time_ns[-1])
    end_ns = round(recording.seconds * 1e9)
    if part.is_whole:
        begin_ns = int(part.born.min())
    else:
        end_ns = min(end_ns, round(last_ns + MARGIN * (last_ns - begin_ns)) + 1)
    low = found.placed.offsets.astype(np.int64)
    return Rectangles(
        begin_ns=np.maximum(part.born, begin_ns),
        end_ns=np.minimum(part.died, end_ns),
        low=low,
        high=low + part.size,
        blocks=blocks_of(found),
        span_ns=(begin_ns, max(end_ns, begin_ns + 1)),
    )


def blocks_of(found: Planned) -> tuple[Block, ...]:
    """Rows by line: those with most bytes at the peak, and the rest together."""
    blocks, rest = [], np.ones(len(found.part), bool)
    for line in found.lines[:MOST_LINES]:
        mine = (found.group == found.frames.index(line.site)) & (found.part.row >= 0)
        blocks.append(Block(label_of(line.site), np.flatnonzero(mine)))
        rest &= ~mine
    if rest.any():
        blocks.append(Block("other lines", np.flatnonzero(rest)))
    return tuple(blocks)


def picture(found: Planned, format: str, size: Size | None = None) -> bytes:
    """The picture as the bytes of a file; the same plan always gives the same bytes.

    Raises:
        NothingToDraw: no object was placed.
    """
    data = rectangles(found)

    def make() -> Figure:
        figure = blank(size or (WIDTH_IN, HEIGHT_IN))
        draw(figure.subfigures(1, 1, squeeze=False)[0, 0], found, data)
        return figure

    return as_file(make, format)


def draw(figure: SubFigure, found: Planned, data: Rectangles) -> None:
    """Draws the rectangles, the lower bound, and the moment of the peak."""
    recording, placed = found.recording, found.placed
    script = recording.info.get("script", "").rpartition("/")[2]
    name = script or str(recording.path).rpartition("/")[2]
    title = f"A plan of {format_bytes(placed.peak_bytes)}: offsets against time"
    (axes,) = style.panels(figure, name, title)
    unit_ns = style.time_axis(axes, *data.span_ns)
    unit = style.bytes_axis(axes, placed.peak_bytes, "offset")
    handles, labels = draw_blocks(axes, data, unit_ns, unit)
    handles += [
        axes.axhline(
            placed.lower_bound_bytes / unit, color=style.INK, linewidth=1.0, linestyle="--"
        )
    ]
    labels.append(f"lower bound, {format_bytes(placed.lower_bound_bytes)}")
    style.moment(axes, found.lives.peak_ns, unit_ns, "peak")
    style.legend(axes, handles, labels)
    style.marks(axes, recording.marks, *data.span_ns, unit_ns)


def draw_blocks(
    axes: Axes, data: Rectangles, unit_ns: float, unit: float
) -> tuple[list[Any], list[str]]:
    """The rectangles; handles and labels for the legend."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    width_in, height_in = style.size_in(axes)
    (left_end, right_end), top = axes.get_xlim(), axes.get_ylim()[1]
    handles: list[Any] = []
    for number, block in enumerate(data.blocks):
        is_rest = number == MOST_LINES or block.name == "other lines"
        face = style.REST if is_rest else style.colour(number)
        look: dict[str, Any] = {
            "facecolor": face,
            "edgecolor": style.hatch_colour(face),
            "hatch": "" if is_rest else style.hatch(number),
        }
        left, right = data.begin_ns[block.rows] / unit_ns, data.end_ns[block.rows] / unit_ns
        low, high = data.low[block.rows] / unit, data.high[block.rows] / unit
        corners = np.stack(
            [
                np.column_stack(side)
                for side in ((left, low), (right, low), (right, high), (left, high))
            ],
            axis=1,
        )
        wide = (right - left) / (right_end - left_end) * width_in >= EDGE_FROM_IN
        high_enough = (high - low) / top * height_in >= EDGE_FROM_IN
        edges = np.where(wide & high_enough, EDGE_PT, 0.0)
        axes.add_collection(PolyCollection(list(corners), linewidths=edges, **look), autolim=False)
        handles.append(Patch(linewidth=EDGE_PT, **look))
    return handles, [block.name for block in data.blocks]
