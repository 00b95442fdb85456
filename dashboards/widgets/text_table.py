"""A table of texts under heads, numbers to the right; only what is on screen is drawn."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.strip import Strip
from tlmem.dashboards.model.tables import TableData

from .colours import SEVERITIES, readable
from .rows import Rows

GAP = "  "
MARK_WIDTH = 2
"""Columns at the left for the mark of the cursor, which stay where they are."""
SIDEWAYS = 8
"""So many characters ``left`` and ``right`` go."""
EMPTY = TableData((), (), ())


class TextTable(Rows):
    """A table that is filled at once; empty it says why.

    ``▸`` marks the row of the cursor. At the right of the heads stands which rows are on screen
    when there are more, and ``‹ ›`` where there is more at a side.
    """

    DEFAULT_CSS = "TextTable { height: 1fr; min-height: 3; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", f"sideways(-{SIDEWAYS})", "to the left", show=False),
        Binding("right", f"sideways({SIDEWAYS})", "to the right", show=False),
    ]
    heads_height = 1

    def __init__(self, nothing: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.nothing = nothing
        self.shown = EMPTY
        self.shift = 0
        self._widths: list[int] = []

    def show(self, shown: TableData) -> None:
        """Shows other rows; the cursor stays where it is, as far as there are rows."""
        self.shown = shown
        columns = zip(shown.heads, zip(*shown.rows, strict=True), strict=True) if shown.rows else ()
        self._widths = [max(map(_width, (head, *texts))) for head, texts in columns]
        self.shift = min(self.shift, self._most_shift)
        more = len(shown.rows) != self.count
        self.set_rows(len(shown.rows), self.row)
        if more:
            self.refresh(layout=True)

    def get_content_height(self, *_: object) -> int:
        """Heads and rows, where the height is left to the table."""
        return self.heads_height + max(self.count, 0)

    def render_line(self, y: int) -> Strip:
        """The heads, or one row."""
        base, width = self.base, self.size.width
        if y == 0:
            style = base + Style(bold=True, underline=bool(self.count))
            return Strip([Segment(self._heads(width), style)]).adjust_cell_length(width, style)
        at, _ = self.row_at(y)
        if at is None:
            return Strip([Segment("", base)]).adjust_cell_length(width, base)
        chosen = at == self.row and self.has_focus
        return self._row(at, base).adjust_cell_length(
            width, base + Style(reverse=True) if chosen else base
        )

    def _row(self, at: int, base: Style) -> Strip:
        chosen = at == self.row
        style = base + Style(bold=chosen, reverse=chosen and self.has_focus)
        segments: list[Segment] = []
        cells = zip(self.shown.heads, self.shown.rows[at], self._widths, strict=True)
        for head, text, width in cells:
            colour = SEVERITIES.get(text[:1])
            colour = readable(colour, self.app.current_theme.dark) if colour else None
            cell = style + Style(color=colour) if colour and not chosen else style
            segments += [Segment(self._cell(head, text, width), cell), Segment(GAP, style)]
        mark = Strip([Segment("▸ " if chosen else "  ", style)])
        room = self.size.width - MARK_WIDTH
        return Strip.join([mark, Strip(segments).crop(self.shift, self.shift + room)])

    def _cell(self, head: str, text: str, width: int) -> str:
        if head in self.shown.numbers:
            return " " * (width - _width(text)) + text
        return set_cell_size(text, width)

    def _heads(self, width: int) -> str:
        """The heads, over them at the right what does not fit on the screen."""
        if not self.count:
            return f"  {self.nothing}"
        named = zip(self.shown.heads, self._widths, strict=True)
        line = GAP.join(self._cell(head, head, size) for head, size in named)
        shown = set_cell_size("  " + line[self.shift :], width)
        notes = []
        if self.count > self.rows_height:
            last = min(self.top + self.rows_height, self.count)
            notes.append(f"{self.top + 1}–{last} of {self.count}")
        sides = ("‹" if self.shift else "") + ("›" if self.shift < self._most_shift else "")
        notes += [sides] if sides else []
        free = width - MARK_WIDTH - cell_len(line) - cell_len(" ".join(notes)) - len(GAP)
        if self.shown.note and cell_len(self.shown.note) < free:
            notes.insert(0, self.shown.note)
        text = f" {' '.join(notes)}" if notes else ""
        return set_cell_size(shown, max(width - cell_len(text), 0)) + text

    @property
    def _most_shift(self) -> int:
        whole = sum(self._widths) + len(GAP) * max(len(self._widths) - 1, 0)
        return max(whole - (self.size.width - MARK_WIDTH), 0)

    def action_sideways(self, columns: int) -> None:
        """What does not fit beside the rest."""
        self.shift = min(max(self.shift + columns, 0), self._most_shift)
        self.refresh()


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)
