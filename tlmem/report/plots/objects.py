"""How long did objects live? One bar for each of a sample of objects, by the line that made them.

Covers: which objects are shown, in which row, and their picture. Does not cover: their holders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.report.plots import style
from tlmem.report.plots.plot_data import NEVER, Ints, NothingToDraw, View, label_of
from tlmem.units import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

MOST_OBJECTS = 90
MOST_LINES = 8
LEAST_ROWS = 13
"""Height of a line with fewer objects, so that its name has room."""
TWO_LINES_IN = 0.22
"""Height of a name with the number of its objects below it, in inches."""
GAP = 2
"""Empty rows between two lines."""


@dataclass(frozen=True)
class Block:
    """The objects of one line: ``shown`` of ``count``, in rows from ``first`` on."""

    name: str
    first: int
    shown: int
    count: int


@dataclass(frozen=True)
class ObjectLives:
    """Bars from birth to death, in the order in which they are drawn from above.

    ``alive`` says which had not died at the end of the range; ``row`` is the height of each bar.
    """

    begin_ns: Ints
    end_ns: Ints
    alive: NDArray[np.bool_]
    row: Ints
    blocks: tuple[Block, ...]
    count: int


def object_lives(view: View, most: int = MOST_OBJECTS, lines: int = MOST_LINES) -> ObjectLives:
    """A sample of the objects that were alive in the range.

    Lines come in the order of bytes times time; of each as many objects as its share of that, at
    least a few, are chosen in order of birth in proportion to how long they lived: a vertical line
    through the picture meets what was alive at that moment.

    Raises:
        NothingToDraw: no object was alive in the range.
    """
    objects = view.objects
    inside = np.flatnonzero((objects.born <= view.end_ns) & (objects.died > view.begin_ns))
    if len(inside) == 0:
        raise NothingToDraw(f"{view.recording.path} holds no object in this time.")
    begin = np.maximum(objects.born[inside], view.begin_ns)
    end = np.minimum(objects.died[inside], view.end_ns)
    group, lived = objects.group[inside], np.maximum(end - begin, 1).astype(float)
    weight = np.bincount(group, lived * np.maximum(objects.size[inside], 1)).astype(np.float64)
    order = np.argsort(-weight, kind="stable")[: np.count_nonzero(weight)][:lines]
    shares = rows_for(weight[order], np.bincount(group)[order], most)
    chosen, blocks, row = [], [], 0
    for number, share in zip(order.tolist(), shares.tolist(), strict=True):
        members = np.flatnonzero(group == number)
        sample = members[in_proportion(lived[members], share)]
        name = label_of(view.places.frames[number])
        blocks.append(Block(name, row, len(sample), len(members)))
        chosen.append(sample)
        row += max(len(sample), LEAST_ROWS) + GAP
    rows = [block.first + np.arange(block.shown) for block in blocks]
    picked = np.concatenate(chosen)
    died = objects.died[inside][picked]
    return ObjectLives(
        begin_ns=begin[picked],
        end_ns=end[picked],
        alive=(died == NEVER) | (died > view.end_ns),
        row=np.concatenate(rows),
        blocks=tuple(blocks),
        count=len(inside),
    )


def rows_for(weight: NDArray[np.float64], count: Ints, most: int) -> Ints:
    """How many of ``most`` rows each line gets: its share of the weight, softened, at least a few.

    Never more than the ``count`` objects that it has.
    """
    soft = np.sqrt(weight / weight.sum())
    least = max(1, most // (4 * len(weight)))
    return np.minimum(np.maximum(least, (most * soft / soft.sum()).astype(np.int64)), count)


def in_proportion(weight: NDArray[np.float64], most: int) -> Ints:
    """Up to ``most`` positions, ascending, chosen in proportion to their weights, without chance.

    Every position whose weight is a whole step or more is chosen, as with systematic sampling.
    """
    if len(weight) <= most:
        return np.arange(len(weight))
    reached = np.cumsum(weight)
    marks = (np.arange(most) + 0.5) * reached[-1] / most
    return np.unique(np.searchsorted(reached, marks, side="left"))


def draw(figure: SubFigure, view: View) -> None:
    """Draws the bars; a triangle at the right end says that an object was not freed."""
    data = object_lives(view)
    shown = f"{format_count(len(data.row))} of {format_count(data.count)}"
    title = f"Lifetimes of objects ({shown if len(data.row) < data.count else 'all'} shown)"
    (axes,) = style.panels(figure, view.name, title)
    unit_ns = style.time_axis(axes, view.begin_ns, view.end_ns)
    begin, end = data.begin_ns / unit_ns, data.end_ns / unit_ns
    for number, block in enumerate(data.blocks):
        rows = slice(int(np.searchsorted(data.row, block.first)), None)
        rows = slice(rows.start, rows.start + block.shown)
        axes.hlines(
            data.row[rows], begin[rows], end[rows], color=style.line_colour(number), linewidth=1.1
        )
        axes.plot(begin[rows], data.row[rows], "|", color=style.line_colour(number), markersize=3.5)
        alive = data.alive[rows]
        axes.plot(
            end[rows][alive], data.row[rows][alive], ">", color=style.INK, markersize=2.2,
            clip_on=False,
        )  # fmt: skip
    axes.set_ylim(data.row[-1] + LEAST_ROWS, -2)
    name_blocks(axes, data.blocks, style.label_width(style.legend_in(figure)))
    axes.set_yticks([])
    axes.set_ylabel("objects (▸ not freed)")
    style.marks(axes, view.recording.marks, view.begin_ns, view.end_ns, unit_ns)


def name_blocks(axes: Axes, blocks: Sequence[Block], letters: int) -> None:
    """Writes the line of each block beside it, and how many objects it made if there is room."""
    bottom, top = axes.get_ylim()
    row_in = style.size_in(axes)[1] / (bottom - top)
    for block in blocks:
        words = style.shortened(block.name, letters)
        if (LEAST_ROWS + GAP) * row_in >= TWO_LINES_IN:
            words += f"\n{format_count(block.count)} object{'s' if block.count != 1 else ''}"
        axes.text(
            1.025, block.first + (max(block.shown, LEAST_ROWS) - 1) / 2, words,
            transform=axes.get_yaxis_transform(), fontsize=7, va="center",
        )  # fmt: skip
