"""A picture over time: what all of them have in common.

Covers: the stretch of time on screen, the margin with the scale, the cursor, the mouse.
Does not cover: what a row of the picture shows; that is ``cells`` of each picture.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
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
"""Characters, one or more, and their colour; an empty colour is the text's own."""

MARGIN = 10
"""Columns at the left, for scales and names."""


class Picture(Lines):
    """Columns of time with a margin at the left; a subclass gives the cells of each row."""

    margin = MARGIN

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view = View.whole(1)
        self.cursor_shown = False
        self._pressed: int | None = None

    @property
    def columns(self) -> int:
        """Columns beside the margin."""
        return max(self.size.width - self.margin, 0)

    def label(self, row: int) -> str:
        """What stands in the margin of a row."""
        return ""

    def cells(self, row: int) -> Iterable[Cell]:
        """The columns of a row, from the left."""
        return ()

    def render_line(self, y: int) -> Strip:
        """One row, with the margin."""
        base = self.base
        segments = [Segment(self.label(y)[: self.margin].rjust(self.margin - 1) + " ", base)]
        cursor = min(column_of(self.view, self.view.cursor_ns, self.columns), self.columns - 1)
        x = 0
        for colour, run in groupby(self.cells(y), key=itemgetter(1)):
            text = "".join(map(itemgetter(0), run))
            style = base + Style(color=colour) if colour else base
            if self.cursor_shown and x <= cursor < x + len(text):
                at = cursor - x
                segments.append(Segment(text[:at], style))
                segments.append(Segment(text[at], style + Style(reverse=True)))
                segments.append(Segment(text[at + 1 :], style))
            else:
                segments.append(Segment(text, style))
            x += len(text)
        return Strip(segments).adjust_cell_length(self.size.width, base)

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
