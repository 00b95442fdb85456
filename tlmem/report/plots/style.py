"""How pictures look: colours, hatches and axes that can be read in print and by everybody.

Covers: what all pictures share. Does not cover: what they show; each has a module of its own.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

INK = "#1b1b1b"
"""Of axes and texts; a page with a dark mode puts its own colour in its place."""
DARK = "#1c1c1c"
"""Of what stands on a light colour of ours, also on a dark page."""
PALE = "#8a8a8a"
REST = "#d5d5d5"
"""Of what is too small to have a colour of its own."""

COLOURS = (
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # green
    "#cc79a7",  # purple
    "#56b4e9",  # sky
    "#d55e00",  # vermillion
    "#f0e442",  # yellow
)
"""The palette of Okabe and Ito: distinguishable with any colour vision. Source: Okabe and Ito,
"Color Universal Design", 2008."""
PALE_FACES = (COLOURS[6], REST)
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo")
"""Beside the colours, so that areas are distinguishable without any."""
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))

LETTER_IN, TITLE_LETTER_IN = 0.073, 0.09
"""Width of a letter of a label and of a title, on average and a little more."""
LINE_IN = 0.15
"""Height of a line of a legend."""
NARROW_IN = 3.4
"""Axes that are narrower have a shorter name below them."""
LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN = 0.72, 2.55, 0.52, 0.5
"""Margins: of the axis and its labels; of the legend; of title and marks; of the time axis."""
LARGEST_SHARE = 0.33
"""The most of a small picture's width that the legend takes."""
LABEL_WIDTH = 34
MOST_LABELLED_MARKS = 6
MOST_TICKED_MARKS = 120

BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
COUNTS = ((1e7, 1e6, "millions"), (1e4, 1e3, "thousands"))
SECONDS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))

SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica", "sans-serif"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "svg.fonttype": "none",
    "svg.hashsalt": "tlmem",
    "pdf.fonttype": 42,
    "axes.titlepad": 20.0,
}


def settings() -> AbstractContextManager[None]:
    """Matplotlib as it comes, with ``SETTINGS``; whatever a user has set is back at the end."""
    import matplotlib

    plain: dict[Any, Any] = dict(matplotlib.rcParamsDefault.items())
    for name in [name for name in plain if name.startswith("backend")]:
        del plain[name]
    plain.update(SETTINGS)
    return matplotlib.rc_context(plain)


def panels(
    figure: SubFigure, about: str, title: str, heights: Sequence[float] = (1,)
) -> list[Axes]:
    """One or more axes below each other, with room for labels on the left and a legend beside them.

    Args:
        figure: that has nothing in it yet.
        about: what is shown (the script's name), in grey on the right if there is room.
        title: of the topmost.
        heights: how they share the height.
    """
    width, height = size_in(figure)
    grid = figure.add_gridspec(
        len(heights),
        1,
        height_ratios=heights,
        left=LEFT_IN / width,
        right=1 - legend_in(figure) / width,
        top=1 - min(TOP_IN / height, 0.25),
        bottom=min(BOTTOM_IN / height, 0.25),
        hspace=0.16,
    )
    made = [figure.add_subplot(grid[0, 0])]
    made += [figure.add_subplot(grid[row, 0], sharex=made[0]) for row in range(1, len(heights))]
    made[0].set_title(title)
    room = width - LEFT_IN - TITLE_LETTER_IN * len(title) - 0.1
    if room >= LETTER_IN * len(about):
        place = (1 - 0.1 / width, made[0].get_position().y1 + 0.33 / height)
        figure.text(*place, shortened(about), ha="right", va="center", fontsize=8, color=PALE)
    for above in made[:-1]:
        above.tick_params(axis="x", labelbottom=False)
    return made


def size_in(part: Axes | SubFigure) -> tuple[float, float]:
    """Width and height of a part of a figure, in inches."""
    figure: Any = part if hasattr(part, "dpi") else part.figure
    return part.bbox.width / figure.dpi, part.bbox.height / figure.dpi


def legend_in(figure: SubFigure) -> float:
    """Width that there is for the legend, in inches."""
    return min(RIGHT_IN, LARGEST_SHARE * size_in(figure)[0])


def label_width(inches: float) -> int:
    """How many letters of a label fit."""
    return max(8, min(LABEL_WIDTH, int(inches / LETTER_IN)))


def legend_room(axes: Axes) -> int:
    """How many letters a line of the legend beside a picture has."""
    return label_width(legend_in(axes.figure) - 0.45)  # type: ignore[arg-type]


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def line_colour(number: int) -> str:
    """A colour that thin lines can be seen in: not the yellow."""
    return COLOURS[number % (len(COLOURS) - 1)]


def hatch(number: int) -> str:
    return HATCHES[number % len(HATCHES)]


def hatch_colour(face: str) -> str:
    """A colour in which a hatch is seen on another one, in grey too."""
    return DARK if face in PALE_FACES else "white"


def line(number: int) -> Any:
    return LINES[number % len(LINES)]


def shortened(text: str, width: int = LABEL_WIDTH) -> str:
    """A label of at most ``width`` characters: the middle of a longer one is left out.

    What cannot be drawn (control characters, halves of characters) is written as an escape.
    """
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    text = re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)
    if len(text) <= width:
        return text
    head = (width - 1) // 3
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def wrapped(text: str, width: int) -> str:
    """A label on two lines where one is too short; what has no room even then loses its middle."""
    lines = textwrap.wrap(shortened(text, 2 * width), width, break_long_words=False)
    return "\n".join(shortened(line, width) for line in lines[:2])


def scale_of(
    largest: float, steps: Sequence[tuple[float, str]], smallest: str
) -> tuple[float, str]:
    """A unit in which ``largest`` is 1 or more, and its size; of bytes or seconds."""
    for size, unit in steps:
        if largest >= size:
            return size, unit
    return (1.0, smallest) if smallest == "B" else (steps[-1][0], smallest)


def bytes_scale(largest: float) -> tuple[float, str]:
    """The size and name of a unit for values of up to ``largest`` bytes."""
    return scale_of(largest, BYTES, "B")


def count_scale(largest: float) -> tuple[float, str]:
    """The size and name of a unit for counts of up to ``largest``; no name for single ones."""
    return next(((size, name) for least, size, name in COUNTS if largest >= least), (1.0, ""))


def time_scale(span_s: float) -> tuple[float, str]:
    """The size, in seconds, and name of a unit for times of up to ``span_s`` seconds."""
    return scale_of(2 * span_s / 3, SECONDS, "ms")


def time_axis(axes: Axes, begin_ns: int, end_ns: int) -> float:
    """Sets the horizontal axis to a range of time; returns how many ns one unit of it has."""
    size, unit = time_scale(end_ns / 1e9)
    axes.set_xlim(begin_ns / 1e9 / size, max(end_ns, begin_ns + 1) / 1e9 / size)
    narrow = size_in(axes)[0] < NARROW_IN
    axes.set_xlabel(
        f"time ({unit})" if narrow else f"time since the start of the recording ({unit})"
    )
    return size * 1e9


def bytes_axis(axes: Axes, largest: float, what: str) -> float:
    """Sets the vertical axis to bytes from 0; returns how many bytes one unit of it has."""
    size, unit = bytes_scale(largest)
    axes.set_ylabel(f"{what} ({unit})")
    axes.set_ylim(0, 1.08 * max(largest, 1.0) / size)
    grid(axes)
    return size


def grid(axes: Axes) -> None:
    axes.grid(axis="y", color=PALE, alpha=0.35, linewidth=0.6)
    axes.set_axisbelow(True)


def legend(axes: Axes, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """A legend beside the picture, where it covers nothing."""
    room = legend_room(axes)
    words = [wrapped(label, room) for label in labels]
    if sum(1.3 + word.count("\n") for word in words) * LINE_IN > size_in(axes)[1] + BOTTOM_IN:
        words = [shortened(label, room) for label in labels]
    axes.legend(
        handles,
        words,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        handlelength=2.2,
        handleheight=1.2,
    )


def marks(axes: Axes, table: pd.DataFrame, begin_ns: int, end_ns: int, unit_ns: float) -> None:
    """The program's own marks as ticks above the picture; a few of them with their names."""
    inside = table[(table["time_ns"] >= begin_ns) & (table["time_ns"] <= end_ns)]
    if len(inside) == 0:
        return
    chosen = evenly(len(inside), MOST_TICKED_MARKS)
    times = inside["time_ns"].to_numpy(np.int64)
    across = axes.get_xaxis_transform()
    axes.plot(
        times[chosen] / unit_ns, np.full(len(chosen), 1.0), "|", color=INK, transform=across,
        markersize=7, markeredgewidth=0.8, clip_on=False,
    )  # fmt: skip
    for row in labelled(times, begin_ns, end_ns):
        label, index = str(inside["label"].iloc[row]), int(inside["index"].iloc[row])
        axes.axvline(times[row] / unit_ns, color=PALE, linewidth=0.6, linestyle=":", zorder=1)
        axes.text(
            times[row] / unit_ns, 1.03, shortened(f"{label} {index}", 14), transform=across,
            fontsize=7, ha="left", va="bottom", clip_on=False,
        )  # fmt: skip


def labelled(times_ns: NDArray[np.int64], begin_ns: int, end_ns: int) -> list[int]:
    """Rows of marks whose names have room: from left to right, none too near the one before."""
    rows: list[int] = []
    least = (end_ns - begin_ns) / MOST_LABELLED_MARKS
    for row, time_ns in enumerate(times_ns.tolist()):
        if not rows or time_ns - times_ns[rows[-1]] >= least:
            rows.append(row)
    return rows


def moment(axes: Axes, time_ns: int, unit_ns: float, text: str) -> None:
    """A line at one moment, with a word beside it."""
    left, right = axes.get_xlim()
    if not left <= time_ns / unit_ns <= right:
        return
    axes.axvline(time_ns / unit_ns, color=INK, linewidth=0.8, linestyle="--", zorder=4)
    late = time_ns / unit_ns > (left + right) / 2
    axes.text(
        time_ns / unit_ns, 0.985, f"{text} " if late else f" {text}",
        transform=axes.get_xaxis_transform(), fontsize=7, va="top", ha="right" if late else "left",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
        color=DARK,
    )  # fmt: skip


def evenly(count: int, most: int) -> NDArray[np.int64]:
    """Up to ``most`` of ``count`` positions, evenly spread, the first and the last among them."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))
