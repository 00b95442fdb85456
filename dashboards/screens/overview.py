"""Overview: the verdict, where memory is over time, the worst findings, totals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Static
from tlmem.dashboards.model.layers import Layers, layers_of
from tlmem.dashboards.model.line_areas import LineAreas, line_areas
from tlmem.dashboards.model.loading import Loaded, family_layers
from tlmem.dashboards.model.overview import (
    completeness,
    severity_counts,
    tail,
    top_findings,
    totals_rows,
    verdict_sentence,
)
from tlmem.dashboards.widgets.area_chart import AreaChart
from tlmem.dashboards.widgets.colours import SEVERITIES, readable
from tlmem.dashboards.widgets.time_axis import TimeAxis
from tlmem.dashboards.widgets.words import Words

from .page import Page

MOST_FINDINGS = 4
WIDE = 100
"""A narrower screen has what holds a line's objects below it, where there is room."""
MOST_PLACE = 22
"""Letters of a place; what is cut off is at its begin, so that the number of the line stays."""


class OverviewPage(Page):
    """The first screen. It shows something before the events have been read."""

    NAME = "overview"
    ABOUT = "the verdict, and where memory is over time"
    NEEDS_EVENTS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "pan(-0.25)", "earlier", show=False),
        Binding("right", "pan(0.25)", "later", show=False),
        Binding("enter", "app.go('findings')", "findings"),
        Binding("a", "together", "all processes/one", show=False),
        Binding("plus", "zoom(0.5)", "zoom in", key_display="+"),
        Binding("minus", "zoom(2.0)", "zoom out", key_display="-"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._together: Loaded | None = None
        self._family: Layers | None = None
        self._tables_of: tuple[object, ...] = ()

    def body(self) -> Iterable[Widget]:
        """Sentence, picture with legend and axis, findings beside totals."""
        yield Words(id="verdict")
        yield AreaChart()
        yield TimeAxis()
        yield Words(id="legend")
        yield Horizontal(Words(id="worst"), Static(id="totals"), id="bottom")
        yield Words(id="complete")

    def follow(self) -> None:
        """Shows what is known by now."""
        loaded, view = self.loaded, self.view
        if not self.is_new(loaded.is_read, loaded.is_analysed, view.end_ns, self.together):
            return
        self.query_one("#verdict", Words).show(Text(verdict_sentence(loaded)))
        self._show_memory()
        self._show_tables()
        recording = loaded.recording
        marks = recording.marks if loaded.is_read else None
        scopes = recording.scopes if loaded.is_analysed else None
        self.query_one(TimeAxis).show(view, marks, scopes)
        if loaded.is_read:
            self.shade(self.query_one(AreaChart))
        self.query_one("#complete", Words).show(Text(completeness(loaded)))

    def _show_tables(self) -> None:
        """Findings and totals, which are the same in every stretch of time."""
        now = (self.loaded, self.loaded.is_read, self.loaded.is_analysed)
        if now != self._tables_of:
            self._tables_of = now
            self.query_one("#worst", Words).show(self._worst())
            self.query_one("#totals", Static).update(self._totals())

    @property
    def together(self) -> bool:
        """Whether all processes are shown together; choosing another one shows that alone."""
        return self._together is self.loaded

    def _show_memory(self) -> None:
        """The picture and its legend, of one process or of all together."""
        loaded, members = self.loaded, self.tlmem.members
        layers = loaded.layers if loaded.is_read else layers_of(loaded.first_look.samples)
        note = "a: all processes together" if len(members) > 1 else ""
        if self.together and self._family is not None:
            layers, note = self._family, f"all {len(members)} processes, a: one alone"
        chart = self.query_one(AreaChart)
        if loaded.is_read and not layers.known:
            self._show_lines()
            return
        chart.show(layers, self.view)
        legend = Text(f"{note}  " if note else "", style="italic")
        self.query_one("#legend", Words).show(Text.assemble(legend, chart.legend()))

    def _show_lines(self) -> None:
        """What lines hold, where resident memory was not sampled, as in a snapshot of CUDA."""
        loaded, view, chart = self.loaded, self.view, self.query_one(AreaChart)
        width = chart.columns

        def show(areas: LineAreas) -> None:
            if loaded is self.loaded:
                chart.show(areas, view)
                legend = Text("what lines hold  ", style="italic")
                self.query_one("#legend", Words).show(Text.assemble(legend, chart.legend()))

        self.in_background(lambda: line_areas(loaded.lanes, view, width), show)

    def action_together(self) -> None:
        """Memory of all processes of the family together, or of one alone."""
        loaded, members = self.loaded, self.tlmem.members
        if len(members) < 2:
            self.notify("This recording has one process.")
            return
        self._together = None if self.together else loaded
        self._family = None
        self.update()
        if self.together:

            def show(layers: Layers) -> None:
                self._family = layers
                self._show_memory()

            self.in_background(lambda: family_layers(members, loaded), show)

    def _worst(self) -> Text:
        if not self.loaded.is_analysed:
            return Text("Findings: analysing …", style="italic")
        dark = self.app.current_theme.dark
        lines = [Text(f"Findings: {severity_counts(self.loaded.analysis.findings)}", style="bold")]
        rows = top_findings(self.loaded, MOST_FINDINGS)
        places = [tail(row.place, MOST_PLACE) for row in rows]
        widest = max(map(len, places), default=0)
        apart = self.size.width < WIDE and 2 * len(rows) <= MOST_FINDINGS
        for row, where in zip(rows, places, strict=True):
            sign = row.severity[0]
            line = Text()
            line.append(sign, readable(SEVERITIES.get(sign, ""), dark))
            line.append(f" {row.bytes:>7} ")
            line.append(f"{where:<{widest}}", "bold")
            line.append(f" {row.name}")
            held = f"held by {row.holder}" if row.holder else ""
            if held and not apart:
                line.append(f" · {held}")
            lines.append(line)
            lines += [Text(f"{'':10}{held}")] if held and apart else []
        text = Text("\n", no_wrap=True, overflow="ellipsis").join(lines)
        text.no_wrap, text.overflow = True, "ellipsis"
        return text

    def _totals(self) -> Table | Text:
        rows = totals_rows(self.loaded)
        if not rows:
            return Text("Totals: reading …", style="italic")
        grid = Table.grid(padding=(0, 1))
        grid.title = Text("Arrays and objects", style="bold")
        grid.title_justify = "left"
        for name, size, count in rows:
            grid.add_row(name, Text(size, justify="right"), Text(count, justify="right"))
        return grid
