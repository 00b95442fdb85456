"""Processes by time: a row for each, with columns as high and as warm as its memory."""

from __future__ import annotations

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from tlmem.dashboards.model.fleet import HeatMap, HeatRow

from tlmem.units import format_bytes, format_seconds

from .masthead import SIGNS
from .rows import Rows

BARS = "▁▂▃▄▅▆▇█"
"""As high as the value, so that the map is read without colours too."""
RAMP = ("#3f5f8f", "#4f8fbf", "#5fb0a0", "#9fc060", "#e0c050", "#f09040", "#f06050", "#ff8787")
EMPTY = HeatMap((), 0.0, 0.0, "s", "resident")
GAP = "  "
LEAST_WIDTH = 12
"""Columns of the map; where there is room for fewer, columns of text are left out."""
MOST_LINES = 3
"""So many lines of the screen a row takes at most, where there is room for that."""


class HeatMapRows(Rows):
    """The rows of a ``HeatMap`` under heads with the scale of time."""

    DEFAULT_CSS = "HeatMapRows { height: 1fr; min-height: 4; }"
    heads_height = 1

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shown = EMPTY
        self.nothing = "reading …"
        self._columns: list[tuple[str, int, bool]] = []

    def show(self, shown: HeatMap) -> None:
        """Shows other rows; the cursor stays on its process."""
        path = self.path
        self.shown = shown
        paths = [row.path for row in shown.rows]
        self.set_rows(len(paths), paths.index(path) if path in paths else self.row)

    @property
    def path(self) -> str | None:
        """The recording of the row of the cursor."""
        return self.shown.rows[self.row].path if self.row < len(self.shown.rows) else None

    @property
    def lines_each(self) -> int:
        """Lines of the screen for each row: more than one where all rows fit all the same."""
        return min(max(self.rows_height // max(self.count, 1), 1), MOST_LINES)

    def row_at(self, y: int) -> tuple[int | None, int]:
        """The row at a line of the screen, and which of its lines."""
        if self.lines_each == 1 or y < self.heads_height:
            return super().row_at(y)
        at, line = divmod(y - self.heads_height, self.lines_each)
        return (at if at < self.count else None), line

    def line_of(self, row: int) -> int:
        """The line of the screen with the text of a row, its lowest."""
        return self.heads_height - self.top + (row + 1) * self.lines_each - 1

    def _layout(self) -> tuple[list[tuple[str, int, bool]], int]:
        """Heads, widths and sides of the columns of text, and how many columns the map has."""
        rows = self.shown.rows

        def wide(name: str, head: str) -> int:
            return max([len(head), *(cell_len(getattr(row, name)) for row in rows)])

        columns = [("name", wide("name", "process"), False)]
        if any(row.node for row in rows):
            columns.append(("node", wide("node", "node"), False))
        columns.append(("outcome", wide("outcome", "verdict") + 2, False))
        columns.append(("growth", wide("growth", self._growth_head), True))
        columns.append(("peak", wide("peak", "peak"), True))
        for optional in ("node", "peak", "growth"):
            left = self._room(columns)
            if left >= LEAST_WIDTH:
                break
            columns = [column for column in columns if column[0] != optional]
        return columns, max(self._room(columns), 0)

    @property
    def _growth_head(self) -> str:
        return f"per {self.shown.unit}"[:12]

    def _room(self, columns: list[tuple[str, int, bool]]) -> int:
        return self.size.width - 2 - sum(width + len(GAP) for _, width, _ in columns)

    def render_line(self, y: int) -> Strip:
        """The heads, or one row."""
        base, width = self.base, self.size.width
        columns, room = self._layout()
        if y == 0:
            style = base + Style(bold=True, underline=bool(self.count))
            return Strip([Segment(self._heads(columns, room), style)]).adjust_cell_length(
                width, style
            )
        at, line = self.row_at(y)
        if at is None:
            return Strip([Segment("", base)]).adjust_cell_length(width, base)
        if line < self.lines_each - 1:
            blank = Segment(" " * (2 + sum(wide + len(GAP) for _, wide, _ in columns)), base)
            cells = self._cells(self.shown.rows[at], line, room, base)
            return Strip([blank, *cells]).adjust_cell_length(width, base)
        return self._row(self.shown.rows[at], at == self.row, columns, room, base)

    def _heads(self, columns: list[tuple[str, int, bool]], room: int) -> str:
        if not self.count:
            return f"  {self.nothing}"
        heads = {
            "name": "process",
            "node": "node",
            "outcome": "verdict",
            "growth": self._growth_head,
            "peak": "peak",
        }
        texts = [
            heads[name].rjust(width) if right else heads[name].ljust(width)
            for name, width, right in columns
        ]
        begin = f"{self.shown.memory}, █ {format_bytes(self.shown.highest)}"
        end = format_seconds(self.shown.longest_s)
        axis = begin + end.rjust(max(room - len(begin), len(end) + 1))
        return "  " + GAP.join(texts) + GAP + (axis if len(axis) <= room else end.rjust(room))

    def _row(
        self,
        row: HeatRow,
        chosen: bool,
        columns: list[tuple[str, int, bool]],
        room: int,
        base: Style,
    ) -> Strip:
        style = base + Style(bold=chosen, reverse=chosen and self.has_focus)
        segments = [Segment("▸ " if chosen else "  ", style)]
        for name, width, right in columns:
            text = getattr(row, name)
            cell = style
            if name == "outcome":
                sign, colour = SIGNS.get(text, ("?", ""))
                text = f"{sign} {text}"
                cell = style if chosen or not colour else style + Style(color=colour)
            text = " " * (width - cell_len(text)) + text if right else set_cell_size(text, width)
            segments += [Segment(text, cell), Segment(GAP, style)]
        segments += self._cells(row, self.lines_each - 1, room, base)
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def _cells(self, row: HeatRow, line: int, room: int, base: Style) -> list[Segment]:
        """One line of the map of a process, from above; cells of the same height together."""
        shares = row.cells(room, self.shown.longest_s) / max(self.shown.highest, 1.0)
        steps, below = len(BARS), self.lines_each - 1 - line
        heights = np.floor(shares * (steps * self.lines_each - 1) + 1.5) - steps * below
        heights = np.nan_to_num(heights.clip(0, steps)).astype(np.int64)
        warmth = np.nan_to_num(np.floor(shares * (len(RAMP) - 1) + 0.5)).astype(np.int64)
        found: list[Segment] = []
        begin = 0
        for end in range(1, len(heights) + 1):
            alike = (heights[end : end + 1], warmth[end : end + 1])
            if end < len(heights) and alike == (heights[begin], warmth[begin]):
                continue
            height = int(heights[begin])
            style = base + Style(color=RAMP[warmth[begin]]) if height else base
            text = BARS[height - 1] if height else " "
            found.append(Segment(text * (end - begin), style))
            begin = end
        return found
