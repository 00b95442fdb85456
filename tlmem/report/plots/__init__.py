"""Pictures of a recording; ``run(path, out, ...)`` is ``tlmem plot``.

In: a recording and what was found in it. Out: PNG, SVG or PDF.
May import: errors, events, units, output, recording, analysis, report.
Third-party: numpy, pandas. Inside functions: matplotlib.

Each kind of picture has a module of its own, which first computes what is shown, as arrays, and
then draws it. See also: docs/how-to/plot.md.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from tlmem.errors import TlmemError
from tlmem.output.atomic_write import STDOUT, write_file
from tlmem.recording.reader import read_for_command
from tlmem.report.plots import growth, memory, objects, pools, roles, sites, style
from tlmem.report.plots.plot_data import NothingToDraw, PlotView
from tlmem.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

KINDS: dict[str, Callable[[SubFigure, PlotView], None]] = {
    "memory": memory.draw,
    "sites": sites.draw,
    "objects": objects.draw,
    "pool": pools.draw,
    "growth": growth.draw,
}
"""Every kind of picture; ``all`` is those of them, and ``roles``, for which a recording has
something."""
BY = {"role": "roles", "line": "sites"}
"""Pictures of tracked memory over time, by what it is divided by."""
DIVIDED = ("memory", "sites")
"""Kinds of pictures that can be divided otherwise."""
FORMATS = ("png", "svg", "pdf")
DOTS_PER_INCH = 160
WIDTH_IN, HEIGHT_IN, EACH_IN = 9.0, 4.2, 3.7
SMALLEST_IN, LARGEST_IN = 2.0, 100.0
UNITS_IN = {
    "": 1 / DOTS_PER_INCH,
    "px": 1 / DOTS_PER_INCH,
    "in": 1.0,
    "cm": 1 / 2.54,
    "mm": 1 / 25.4,
}

Size = tuple[float, float]

__all__ = [
    "BY",
    "FORMATS",
    "KINDS",
    "NothingToDraw",
    "PlotView",
    "draw",
    "parse_size",
    "picture",
    "run",
]


class CannotDivide(TlmemError):
    """A picture was asked for by something that it cannot be divided by."""

    exit_code = 2


class UnknownFormat(TlmemError):
    """A picture was asked for in a format or size that cannot be drawn."""

    exit_code = 2


def run(
    path: str,
    out: str,
    kind: str = "memory",
    size: str | None = None,
    since: float | None = None,
    until: float | None = None,
    force: bool = False,
    by: str | None = None,
    memory: str | None = None,
) -> int:
    """Draws a recording into a file, whose ending says the format; returns 0.

    Args:
        by: of ``BY``, what tracked memory is divided by, for kinds in ``DIVIDED``.
        memory: by name, where it is divided by role.
    Raises:
        TlmemError: the recording cannot be read, there is nothing to draw, or the file cannot be
            written.
    """
    format = format_of(out)
    wanted = parse_size(size) if size else None
    if by is not None and kind not in DIVIDED:
        raise CannotDivide(
            f"--by {by} goes with --kind {' or '.join(DIVIDED)}; leave --kind {kind} out."
        )
    if memory is not None and by != "role":
        raise CannotDivide(f"--memory {memory} goes with --by role; add that.")
    kind = BY[by] if by else kind
    view = PlotView.of(read_for_command(path), None, since, until)
    write_picture(picture(view, kind, format, wanted, memory=memory), out, force)
    return 0


def write_picture(drawn: bytes, out: str, force: bool) -> None:
    """Writes a picture to a file, and says so."""
    write_file(out, lambda place: place.write_bytes(drawn), force)
    sys.stderr.write(f"tlmem: wrote {format_bytes(len(drawn))} to {out}\n")


def format_of(out: str) -> str:
    """The format that the ending of a file name says.

    Raises:
        UnknownFormat: it says none that can be drawn.
    """
    ending = Path(out).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        if out == STDOUT:
            raise UnknownFormat(
                "a drawing cannot go to standard output; name a file with -o that ends in .png, "
                ".svg or .pdf, which says the format."
            )
        raise UnknownFormat(f"{out} must end in .png, .svg or .pdf, which says the format.")
    return ending


def parse_size(text: str) -> Size:
    """Width and height in inches of a size such as ``1600x900``, ``16x9cm`` or ``8x4.5in``.

    Raises:
        UnknownFormat: it is not a size, or too small or large to draw.
    """
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"{number}\s*[x×]\s*{number}\s*(px|in|cm|mm|)", text.strip().lower())
    if match is None:
        raise UnknownFormat(f"'{text}' is not a size; write for example 1600x900, 16x9cm or 8x5in.")
    unit = UNITS_IN[match[3]]
    width, height = float(match[1]) * unit, float(match[2]) * unit
    if min(width, height) < SMALLEST_IN or max(width, height) > LARGEST_IN:
        raise UnknownFormat(
            f"'{text}' is {width:.1f} by {height:.1f} inches; give from {SMALLEST_IN:.0f} to "
            f"{LARGEST_IN:.0f} inches, {SMALLEST_IN * DOTS_PER_INCH:.0f} to "
            f"{LARGEST_IN * DOTS_PER_INCH:.0f} pixels."
        )
    return width, height


def picture(
    view: PlotView,
    kind: str,
    format: str,
    size: Size | None = None,
    transparent: bool = False,
    memory: str | None = None,
) -> bytes:
    """One picture as the bytes of a file; the same recording always gives the same bytes.

    Args:
        kind: of ``KINDS``, ``roles`` or ``all``.
        memory: by name, for ``roles``.
    Raises:
        NothingToDraw: the recording has nothing of that kind.
    """
    kinds = [*KINDS, "roles"] if kind == "all" else [kind]
    return as_file(lambda: draw(view, kinds, size, kind != "all", memory), format, transparent)


def as_file(make: Callable[[], Figure], format: str, transparent: bool = False) -> bytes:
    """A figure, made under our settings, as the bytes of a file that says nothing of when."""
    made = BytesIO()
    with style.settings(), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; that is no news to whoever reads stderr.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = make()
        about = {"svg": {"Date": None, "Creator": "tlmem"}, "pdf": {"CreationDate": None}}
        figure.savefig(
            made,
            format=format,
            dpi=DOTS_PER_INCH,
            transparent=transparent,
            metadata=about.get(format, {"Software": "tlmem"}),
        )
    return made.getvalue()


def draw(
    view: PlotView,
    kinds: Sequence[str],
    size: Size | None = None,
    strict: bool = True,
    memory: str | None = None,
) -> Figure:
    """A figure with one picture for each kind, from above.

    Args:
        view: what is drawn.
        kinds: of ``KINDS``, or ``roles``.
        size: width and height of the whole in inches.
        strict: a kind of which there is nothing is an error, and not left out.
        memory: by name, for ``roles``.
    Raises:
        NothingToDraw: there is nothing of a kind, or nothing at all.
    """
    shown, drawn = list(kinds), None
    while drawn is None:
        width, height = size or (WIDTH_IN, HEIGHT_IN if len(shown) == 1 else EACH_IN * len(shown))
        drawn = _drawn(view, shown, (width, height), strict, memory)
    return drawn


def _drawn(
    view: PlotView, shown: list[str], size: Size, strict: bool, memory: str | None
) -> Figure | None:
    """The figure; None, and less to be shown, when there is nothing of one of the kinds."""
    figure = blank(size)
    parts = figure.subfigures(len(shown), 1, squeeze=False)
    for part, kind in zip(parts[:, 0], list(shown), strict=True):
        try:
            if kind == "roles":
                roles.draw(part, view, memory)
            else:
                KINDS[kind](part, view)
        except NothingToDraw:
            if strict or len(shown) == 1:
                raise
            shown.remove(kind)
            return None
    return figure


def blank(size: Size) -> Figure:
    """A figure with nothing in it, of a size in inches."""
    # Without pyplot: no window, no global list of figures, no backend of the user's is touched.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, facecolor="white")
    FigureCanvasAgg(figure)
    return figure
