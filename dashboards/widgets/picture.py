"""A picture over time: what all of them have in common.

Covers: the stretch of time on screen, the margin with the scale, the cursor, the mouse.
Does not cover: what a row of the picture shows; that is ``cells`` of each picture.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby, pairwise
from operator import itemgetter

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip
from tlmem.dashboards.messages import TimePicked, Zoomed
from tlmem.dashboards.model.time_axis import column_of, time_of
from tlmem.dashboards.model.view import View

from .lines import Lines

Cell = tuple[str, str]
"""Characters, one or more, and their colour, as ``#4e9fe5``, ``#4e9fe5 on #3f7d60`` or
``on #3f7d60``; an empty colour is the text's own."""

MOST_KEPT = 200
"""So many rows are kept as they were drawn: two screens full."""
MARGIN = 10
"""Columns at the left, for scales and names."""
SHADES = {True: "#262b36", False: "#e4e8f0"}
"""The background of every second epoch, on dark and on light screens."""


def thin_cursor(text: str, style: Style, is_filled: bool, dark: bool) -> tuple[str, Style]:
    """The cell of the cursor: a line, or the letter or digit that stands there, inverted."""
    if text.isalnum():
        return text, style + Style(reverse=True)
    ground = style.bgcolor if is_filled else style.color if text == "█" else style.bgcolor
    return "│", style + Style(color="#ffffff" if dark else "#000000", bgcolor=ground, bold=True)


class Picture(Lines):
    """Columns of time with a margin at the left; a subclass gives the cells of each row."""

    margin = MARGIN

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view = View.whole(1)
        self.cursor_shown = False
        self.bands: tuple[tuple[int, int], ...] = ()
        self._edges: list[int] = []
        self._looks: dict[tuple[str, bool], Style] = {}
        self._looks_of: tuple[Style, str] | None = None
        self._rows: dict[tuple[Cell, ...], list[Segment]] = {}
        self._rows_of: tuple[object, ...] = ()
        self._pressed: int | None = None

    @property
    def columns(self) -> int:
        """Columns beside the margin."""
        return max(self.size.width - self.margin, 0)

    def label(self, row: int) -> str:
        """What stands in the margin of a row."""
        return ""

    def label_colour(self, row: int) -> str:
        """Its colour; empty for that of other text."""
        return ""

    def cells(self, row: int) -> Iterable[Cell]:
        """The columns of a row, from the left."""
        return ()

    @property
    def is_plain(self) -> bool:
        """Whether nothing may depend on colour."""
        return self.app.no_color or getattr(self.app, "is_plain", False)

    def shade(self, bands: Sequence[tuple[int, int]]) -> None:
        """Columns from and to which the background is another one: every second epoch."""
        if tuple(bands) != self.bands:
            self.bands = tuple(bands)
            self._edges = [edge for band in self.bands for edge in band]
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """One row, with the margin; its cells are drawn anew only when they are others."""
        base = self.base
        label = self.label(y)[: self.margin].rjust(self.margin - 1) + " "
        segments = [Segment(label, self._look(self.label_colour(y), False))]
        cells = tuple(self.cells(y))
        columns = max(self.area.width - self.margin, 0)
        cursor = min(column_of(self.view, self.view.cursor_ns, columns), columns - 1)
        if self.cursor_shown and cursor >= 0:
            segments += self._with_cursor(cells, cursor)
        else:
            segments += self._drawn_cells(cells)
        return Strip(segments).adjust_cell_length(self.area.width, base)

    def _with_cursor(self, cells: tuple[Cell, ...], cursor: int) -> Iterable[Segment]:
        """The cells with the cursor in one of their columns."""
        ends = accumulate(len(text) for text, _ in cells)
        at_cursor = next(
            (cell for cell, end in zip(cells, ends, strict=True) if cursor < end), None
        )
        is_filled = at_cursor is not None and "on " in at_cursor[1]
        drawn, x = self._drawn_cells(cells), 0
        for segment in drawn:
            end = x + len(segment.text)
            if not x <= cursor < end:
                yield segment
            else:
                look = segment.style or self.base
                at = cursor - x
                dark = self.app.current_theme.dark
                cell, cursor_look = thin_cursor(segment.text[at], look, is_filled, dark)
                if at:
                    yield Segment(segment.text[:at], look)
                yield Segment(cell, cursor_look)
                if cursor + 1 < end:
                    yield Segment(segment.text[at + 1 :], look)
            x = end

    def _drawn_cells(self, cells: tuple[Cell, ...]) -> list[Segment]:
        """The cells in their colours and those of bands; what is on screen is kept."""
        about = (self.base, self.app.theme, self.bands)
        if about != self._rows_of:
            self._rows, self._rows_of = {}, about
        drawn = self._rows.get(cells)
        if drawn is None:
            if len(self._rows) >= MOST_KEPT:
                self._rows = {}
            drawn = self._rows[cells] = list(self._segments(cells))
        return drawn

    def _segments(self, cells: tuple[Cell, ...]) -> Iterable[Segment]:
        x = 0
        for colour, run in groupby(cells, key=itemgetter(1)):
            text = "".join(map(itemgetter(0), run))
            end = x + len(text)
            cuts = [edge for edge in self._edges if x < edge < end]
            for first, last in pairwise((x, *cuts, end)):
                # Bands lie between edges: an odd number of edges up to here is inside one.
                look = self._look(colour, bisect_right(self._edges, first) % 2 == 1)
                yield Segment(text[first - x : last - x], look)
            x = end

    def _look(self, colour: str, in_band: bool) -> Style:
        """The style of a cell, kept as long as the widget and the theme have theirs."""
        about = (self.base, self.app.theme)
        if about != self._looks_of:
            self._looks, self._looks_of = {}, about
        found = self._looks.get((colour, in_band))
        if found is None:
            found = self.base + Style.parse(colour) if colour else self.base
            if in_band:
                shade = Style(bgcolor=SHADES[self.app.current_theme.dark])
                found = shade + found if "on " in colour else found + shade
            self._looks[colour, in_band] = found
        return found

    # ---- the mouse ----

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A press may begin a stretch."""
        if event.x >= self.margin:
            self._pressed = event.x - self.margin
            self.capture_mouse()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """A release ends it: a click when the mouse has not moved."""
        self.release_mouse()
        if self._pressed is None:
            return
        began, ended = self._pressed, min(max(event.x - self.margin, 0), self.columns - 1)
        self._pressed = None
        first = time_of(self.view, began, self.columns)
        moved = abs(ended - began) > 1
        until = time_of(self.view, ended, self.columns) if moved else None
        self.post_message(TimePicked(first, until))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel with Ctrl zooms in where the mouse is."""
        if event.ctrl:
            event.stop()
            at = time_of(self.view, event.x - self.margin, self.columns)
            self.post_message(Zoomed(at, 0.5))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel with Ctrl zooms out where the mouse is."""
        if event.ctrl:
            event.stop()
            at = time_of(self.view, event.x - self.margin, self.columns)
            self.post_message(Zoomed(at, 2.0))
