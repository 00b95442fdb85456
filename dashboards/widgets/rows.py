"""A list of any number of rows of which only those on screen are drawn: cursor and scrolling.

Covers: keys and mouse of a list. Does not cover: what a row looks like; each list draws its own.
"""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from tlmem.dashboards.messages import RowChosen, RowSeen

from .lines import Lines


class Rows(Lines, can_focus=True):
    """``count`` rows with a cursor on ``row``; ``top`` is the first on screen.

    ``inserted`` lines of the screen below the cursor belong to its row; the first ``heads_height``
    lines of the screen are none of its rows.
    """

    heads_height = 0

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "row above", show=False),
        Binding("down,j", "step(1)", "row below", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("home", "jump(0)", "first row", show=False),
        Binding("end", "jump(-1)", "last row", show=False),
        Binding("enter", "choose", "open", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.count = 0
        self.row = 0
        self.top = 0
        self.inserted = 0

    def set_rows(self, count: int, row: int, inserted: int = 0) -> None:
        """Other rows, with the cursor on one of them."""
        self.count, self.inserted = count, inserted
        self.row = min(max(row, 0), max(count - 1, 0))
        self._keep_in_sight()
        self.refresh()

    @property
    def rows_height(self) -> int:
        """Lines of the screen for rows."""
        return max(self.size.height - self.heads_height, 1)

    def row_at(self, y: int) -> tuple[int | None, int]:
        """The row at a line of the screen, and which of its inserted lines (0: itself)."""
        if y < self.heads_height:
            return None, 0
        at = self.top + y - self.heads_height
        if self.row < at <= self.row + self.inserted:
            return self.row, at - self.row
        if at > self.row:
            at -= self.inserted
        return (at if 0 <= at < self.count else None), 0

    def line_of(self, row: int) -> int:
        """The line of the screen that has a row, where nothing is inserted above it."""
        return self.heads_height - self.top + row

    def move(self, row: int) -> None:
        """The cursor on another row."""
        row = min(max(row, 0), max(self.count - 1, 0))
        if row != self.row:
            before = (self.row, self.top, self.inserted)
            self.row, self.inserted = row, 0
            self._keep_in_sight()
            if before[1:] == (self.top, 0):
                self.redraw(self.line_of(before[0]), self.line_of(row))
            else:
                self.refresh()
            self.post_message(RowSeen(row, self.id))

    def _keep_in_sight(self) -> None:
        """Scrolls so that the cursor and what is inserted below it are on screen."""
        height = self.rows_height
        last = self.row + self.inserted
        self.top = max(min(self.top, self.row), last - height + 1, 0)
        self.top = min(self.top, self.row, max(self.count + self.inserted - height, 0))

    def action_step(self, rows: int) -> None:
        """Some rows up or down."""
        self.move(self.row + rows)

    def action_page(self, pages: int) -> None:
        """A screen full of rows up or down."""
        self.move(self.row + pages * max(self.rows_height - 1, 1))

    def action_jump(self, row: int) -> None:
        """The first row, or the last one."""
        self.move(row if row >= 0 else self.count - 1)

    def action_choose(self) -> None:
        """Opens the row of the cursor."""
        if self.count:
            self.post_message(RowChosen(self.row, self.id))

    def on_resize(self, event: events.Resize) -> None:
        """The cursor stays in sight."""
        before = self.top
        self._keep_in_sight()
        if self.top != before:
            self.refresh()  # what was drawn for this size began with another row

    def on_click(self, event: events.Click) -> None:
        """The first click moves the cursor, one more opens."""
        row, _ = self.row_at(event.y)
        if row is None:
            return
        if row == self.row:
            self.action_choose()
        else:
            self.move(row)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel moves the cursor."""
        if not event.ctrl:
            self.move(self.row - 3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel moves the cursor."""
        if not event.ctrl:
            self.move(self.row + 3)
