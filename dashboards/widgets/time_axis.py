"""The lines below a picture: ticks, the program's marks, its outermost scopes."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from rich.text import Text
from tlmem.dashboards.model.time_axis import mark_line, scope_line, tick_line
from tlmem.dashboards.model.view import View

from .picture import Cell, Picture


class TimeAxis(Picture):
    """Ticks always; marks and scopes where the recording has any."""

    DEFAULT_CSS = "TimeAxis { height: auto; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.marks = pd.DataFrame()
        self.scopes = pd.DataFrame()
        self._drawn: dict[tuple[View, int, str], str] = {}

    def show(
        self, view: View, marks: pd.DataFrame | None = None, scopes: pd.DataFrame | None = None
    ) -> None:
        """Shows another stretch of time, and other marks and scopes when they are given."""
        self.view = view
        self._drawn = {}
        self.marks = self.marks if marks is None else marks
        self.scopes = self.scopes if scopes is None else scopes
        self.refresh(layout=self.size.height != self.get_content_height())

    def get_content_height(self, *_: object) -> int:
        """A line for each kind of thing that there is."""
        return 1 + bool(len(self.marks)) + bool(len(self.scopes))

    def render(self) -> Text:
        """Not used: ``render_line`` does it; Textual asks for it to measure."""
        return Text()

    def label(self, row: int) -> str:
        """What a line shows."""
        return ("time", *self._others())[row] if row <= len(self._others()) else ""

    def cells(self, row: int) -> Iterable[Cell]:
        """The characters of a line."""
        key = (self.view, self.columns, self.label(row))
        if key not in self._drawn:
            self._drawn[key] = self._line(*key)
        return ((self._drawn[key], ""),)

    def _line(self, view: View, width: int, kind: str) -> str:
        if kind == "time":
            return tick_line(view, width)
        if kind == "marks":
            return mark_line(view, width, self.marks)
        return scope_line(view, width, self.scopes) if kind else ""

    def _others(self) -> list[str]:
        some = (("marks", self.marks), ("scopes", self.scopes))
        return [name for name, table in some if len(table)]
