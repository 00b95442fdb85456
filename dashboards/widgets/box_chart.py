"""Boxes in rows: flames of sites, or scopes over time; one of them is chosen."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip
from tlmem.dashboards.messages import RowChosen, RowSeen
from tlmem.dashboards.model.boxes import Box

from .lines import Lines

COLOURS = ("#2f5d8a", "#3f6f5f", "#6b5b95", "#7a5c3e", "#8a4f5d", "#4f6d7a")


class BoxChart(Lines, can_focus=True):
    """Boxes with arrow keys from one to its neighbours; brackets show where each begins and ends.

    Messages carry the place of a box in ``boxes``.
    """

    DEFAULT_CSS = "BoxChart { height: 1fr; min-height: 3; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "to_row(-1)", "caller", show=False),
        Binding("down,j", "to_row(1)", "callee", show=False),
        Binding("left,h", "beside(-1)", "box to the left", show=False),
        Binding("right,l", "beside(1)", "box to the right", show=False),
        Binding("enter", "choose", "zoom into the box", show=False),
    ]

    def __init__(self, *, margin: int = 0, id: str | None = None) -> None:
        super().__init__(id=id)
        self.margin = margin
        self.boxes: Sequence[Box] = ()
        self.chosen = 0
        self.top = 0
        self.nothing = "nothing here"
        self._rows: dict[int, list[int]] = {}

    @property
    def columns(self) -> int:
        """Columns beside the margin."""
        return max(self.size.width - self.margin, 0)

    def show(self, boxes: Sequence[Box], chosen: int = 0) -> None:
        """Shows other boxes."""
        self.boxes = boxes
        self._rows = {}
        for number, box in enumerate(boxes):
            self._rows.setdefault(box.row, []).append(number)
        for row in self._rows.values():
            row.sort(key=lambda number: boxes[number].left)
        self.chosen = min(max(chosen, 0), max(len(boxes) - 1, 0))
        self._keep_in_sight()
        self.refresh(layout=self.size.height != self.get_content_height())

    def get_content_height(self, *_: object) -> int:
        """As many rows as there are, where the height is left to the chart."""
        return max(self._rows, default=0) + 1

    def render_line(self, y: int) -> Strip:
        """One row of boxes."""
        base = self.base
        row = self.top + y
        if not self.boxes:
            text = f"  {self.nothing}" if y == 0 else ""
            return Strip([Segment(text, base)]).adjust_cell_length(self.size.width, base)
        name = f"{row + 1:>{max(self.margin - 1, 1)}} " if row in self._rows else ""
        segments = [Segment(name.ljust(self.margin) if self.margin else "", base)]
        at = 0
        for number in self._rows.get(row, ()):
            box = self.boxes[number]
            segments.append(Segment(" " * (box.left - at), base))
            colour = COLOURS[zlib.crc32(box.text.encode()) % len(COLOURS)]
            style = base + Style(bgcolor=colour, color="#ffffff")
            if number == self.chosen:
                style = base + Style(reverse=True, bold=True)
            segments.append(Segment(_written(box, number == self.chosen), style))
            at = box.right
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def select(self, number: int) -> None:
        """Chooses another box."""
        if 0 <= number < len(self.boxes) and number != self.chosen:
            before = (self.boxes[self.chosen].row, self.top)
            self.chosen = number
            self._keep_in_sight()
            if before[1] == self.top:
                self.redraw(before[0] - self.top, self.boxes[number].row - self.top)
            else:
                self.refresh()
            self.post_message(RowSeen(number, self.id))

    def _keep_in_sight(self) -> None:
        if not self.boxes:
            self.top = 0
            return
        row, height = self.boxes[self.chosen].row, max(self.size.height, 1)
        self.top = max(min(self.top, row), row - height + 1, 0)

    def action_to_row(self, step: int) -> None:
        """The box above or below that overlaps most."""
        if not self.boxes:
            return
        here = self.boxes[self.chosen]

        def overlap(number: int) -> int:
            box = self.boxes[number]
            return min(box.right, here.right) - max(box.left, here.left)

        there = self._rows.get(here.row + step)
        if there:
            self.select(max(there, key=overlap))

    def action_beside(self, step: int) -> None:
        """The next box of the row."""
        if self.boxes:
            row = self._rows[self.boxes[self.chosen].row]
            at = row.index(self.chosen) + step
            if 0 <= at < len(row):
                self.select(row[at])

    def action_choose(self) -> None:
        """Opens the chosen box."""
        if self.boxes:
            self.post_message(RowChosen(self.chosen, self.id))

    def on_click(self, event: events.Click) -> None:
        """The first click chooses a box, one more opens it."""
        for number in self._rows.get(self.top + event.y, ()):
            box = self.boxes[number]
            if box.left <= event.x - self.margin < box.right:
                if number == self.chosen:
                    self.action_choose()
                else:
                    self.select(number)


def _written(box: Box, chosen: bool) -> str:
    """What stands in a box: brackets where there is room for them, and as much text as fits."""
    width = box.right - box.left
    if box.many > 1 and not box.text:
        text = f"{box.many}×"
        return text.center(width, "≡")[:width] if len(text) <= width else "≡" * width
    if width < 3:
        return ("◆" if chosen else "▪") * width
    inner = box.text[: width - 2].ljust(width - 2)
    return f"[{inner}]" if not chosen else f"«{inner}»"
