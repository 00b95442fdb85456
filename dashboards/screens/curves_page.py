"""Curves over time above tables: what the screens of pools and of tapes have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget
from tlmem.dashboards.model.curves import Floats
from tlmem.dashboards.model.loading import Loaded
from tlmem.dashboards.model.tables import TableData
from tlmem.dashboards.model.view import View
from tlmem.dashboards.widgets.level import Level
from tlmem.dashboards.widgets.text_table import TextTable
from tlmem.dashboards.widgets.time_axis import TimeAxis

from tlmem.units import format_bytes

from .page import Page


@dataclass(frozen=True)
class ShownCurve:
    """One quantity over time: its name, its colour, and its value at the end of each column."""

    id: str
    name: str
    colour: str
    of: Callable[[Loaded, View, int], Floats]


@dataclass(frozen=True)
class ShownTable:
    """One table: what it says when it is empty, and its rows."""

    id: str
    nothing: str
    of: Callable[[Loaded, View], TableData]


class CurvesPage(Page):
    """Each curve with its highest value, one axis of time, tables; the first table has the keys."""

    CURVES: ClassVar[tuple[ShownCurve, ...]] = ()
    TABLES: ClassVar[tuple[ShownTable, ...]] = ()
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus", "zoom(0.5)", "zoom in", key_display="+"),
        Binding("minus", "zoom(2.0)", "out", key_display="-"),
        Binding("tab", "app.focus_next", "next table"),
    ]

    def body(self) -> Iterable[Widget]:
        """Curves, axis, tables."""
        for curve in self.CURVES:
            yield Level(curve.name, curve.colour, format_bytes, id=curve.id)
        yield TimeAxis()
        for table in self.TABLES:
            yield TextTable(table.nothing, id=table.id)

    def on_mount(self) -> None:
        """The first table has the keys."""
        self.query_one(f"#{self.TABLES[0].id}").focus()

    def on_resize(self, event: events.Resize) -> None:
        """Curves are as wide as the screen."""
        if self.loaded.is_read:
            self.call_after_refresh(self.follow)

    def follow(self) -> None:
        """Computes everything in the background."""
        loaded, view = self.loaded, self.view
        width = self.query_one(f"#{self.CURVES[0].id}", Level).columns
        if not self.is_new(width):
            return

        def work() -> tuple[list[Floats], list[TableData]]:
            curves = [curve.of(loaded, view, width) for curve in self.CURVES]
            return curves, [table.of(loaded, view) for table in self.TABLES]

        def show(found: tuple[list[Floats], list[TableData]]) -> None:
            for curve, values in zip(self.CURVES, found[0], strict=True):
                self.query_one(f"#{curve.id}", Level).show(values, view)
            for table, shown in zip(self.TABLES, found[1], strict=True):
                self.query_one(f"#{table.id}", TextTable).show(shown)
            self.query_one(TimeAxis).show(view, loaded.recording.marks)

        self.in_background(work, show)
