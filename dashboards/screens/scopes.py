"""Scopes: nested over time, and what those of each label did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget
from tlmem.dashboards.messages import RowChosen, RowSeen
from tlmem.dashboards.model.boxes import Box
from tlmem.dashboards.model.tables import TableData, duration
from tlmem.dashboards.widgets.box_chart import BoxChart
from tlmem.dashboards.widgets.picture import MARGIN
from tlmem.dashboards.widgets.text_table import TextTable
from tlmem.dashboards.widgets.time_axis import TimeAxis
from tlmem.dashboards.widgets.words import Words

from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import place
from tlmem.units import format_count

from .page import Page


class ScopesPage(Page):
    """Boxes over time above the table of labels."""

    NAME = "scopes"
    ABOUT = "scopes and frames over time, and statistics for each label"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus", "zoom(0.5)", "zoom in", key_display="+"),
        Binding("minus", "zoom(2.0)", "out", key_display="-"),
        Binding("comma", "pan(-0.25)", "earlier", key_display=","),
        Binding("full_stop", "pan(0.25)", "later", key_display="."),
        Binding("tab", "app.focus_next", "boxes/table"),
    ]

    def body(self) -> Iterable[Widget]:
        """Boxes, axis, about the chosen scope, labels."""
        yield BoxChart(margin=MARGIN, id="icicle")
        yield TimeAxis()
        yield Words(id="about-scope")
        yield TextTable("no scope or frame in this stretch", id="labels")

    def on_mount(self) -> None:
        """The boxes have the keys."""
        chart = self.query_one(BoxChart)
        chart.nothing = "no scope was entered; tlmem's runtime has scopes, NumPy has not"
        chart.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Boxes are as wide as the screen."""
        if self.loaded.is_read:
            self.call_after_refresh(self.follow)

    def follow(self) -> None:
        """Computes boxes and labels in the background."""
        loaded, view = self.loaded, self.view
        width = self.query_one(BoxChart).columns
        if not self.is_new(width):
            return

        def work() -> tuple[list[Box], TableData]:
            return loaded.scopes.boxes(view, width), loaded.scopes.labels(view)

        def show(found: tuple[list[Box], TableData]) -> None:
            boxes, labels = found
            self.query_one(BoxChart).show(boxes)
            self.query_one(TimeAxis).show(view, loaded.recording.marks)
            self.query_one(TextTable).show(labels)
            self._tell_about()

        self.in_background(work, show)

    def on_row_seen(self, message: RowSeen) -> None:
        """The words follow the chosen box."""
        if message.of == "icicle":
            self._tell_about()

    def on_row_chosen(self, message: RowChosen) -> None:
        """The stretch becomes that of the chosen scope."""
        if message.of != "icicle":
            return
        scope = self.loaded.scopes.row(self.query_one(BoxChart).boxes[message.row].key)
        leave = int(scope["exit_ns"]) if scope["exit_ns"] >= 0 else self.view.end_ns
        middle = (int(scope["enter_ns"]) + leave) // 2
        view = replace(self.view, cursor_ns=middle)
        self.change(view.select(int(scope["enter_ns"]), leave))

    def _tell_about(self) -> None:
        chart, text = self.query_one(BoxChart), Text(no_wrap=True, overflow="ellipsis")
        if chart.boxes:
            box = chart.boxes[chart.chosen]
            recording = self.loaded.recording
            scope = self.loaded.scopes.row(box.key)
            leave = int(scope["exit_ns"]) if scope["exit_ns"] >= 0 else self.view.end_ns
            frame = recording.blame(int(scope["enter_site"]))
            where = (
                place(StackFrame(frame["file"], frame["line"], frame["function"])) if frame else "–"
            )
            text.append(f"{scope['label'] or 'scope'} #{box.key}", style="bold")
            if box.many > 1:
                text.append(f" and {format_count(box.many - 1)} more in this column")
            still = ", still open" if scope["exit_ns"] < 0 else ""
            text.append(
                f": {duration((leave - int(scope['enter_ns'])) / 1e9)}{still}, entered at "
                f"{where}, {format_count(scope['registered'])} registered, "
                f"{format_count(scope['released'])} released"
            )
        self.query_one("#about-scope", Words).show(text)
