"""Live: programs that run now, followed, paused, scrubbed back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget
from tlmem.dashboards.messages import TimePicked, Zoomed
from tlmem.dashboards.model.live import (
    SORTS,
    Follower,
    LiveLine,
    Member,
    line_table,
    lines_at,
    process_table,
    together,
)
from tlmem.dashboards.model.time_axis import moment
from tlmem.dashboards.model.view import View
from tlmem.dashboards.widgets.area_chart import AreaChart
from tlmem.dashboards.widgets.masthead import Masthead
from tlmem.dashboards.widgets.text_table import TextTable
from tlmem.dashboards.widgets.time_axis import TimeAxis
from tlmem.dashboards.widgets.words import Words

from tlmem.errors import TlmemError

from .page import Page

EVERY_S = 0.5
SCRUB = 0.02
LATE_NS = 1_000_000_000
"""Lines that are this much older than the moment on screen are said to be."""


class LivePage(Page):
    """Memory over time above the lines that hold it; the newest moment, unless paused."""

    NAME = "live"
    ABOUT = "a running program: followed, paused, scrubbed back"
    NEEDS_EVENTS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "pause", priority=True),
        Binding("left", "scrub(-1)", "back", key_display="←", priority=True),
        Binding("right", "scrub(1)", "forth", key_display="→", priority=True),
        Binding("o", "sort('alive')", "by alive"),
        Binding("t", "sort('made')", "made"),
        Binding("a", "sort('objects')", "objects"),
        Binding("g", "sort('growth')", "growth"),
        Binding("p", "member(1)", "process"),
        Binding("P", "member(-1)", "process before", show=False),
        Binding("enter", "browse", "browse", priority=True),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self.order = SORTS[0]
        self.stretch = View.whole(1)
        self.chosen: Member | None = None
        self._reading = False
        self._run = 0

    @property
    def follower(self) -> Follower:
        """The family that is followed."""
        assert self.tlmem.follower is not None
        return self.tlmem.follower

    def body(self) -> Iterable[Widget]:
        """State, picture, processes, lines."""
        yield Words(id="state")
        yield AreaChart()
        yield TimeAxis()
        yield Words(id="legend")
        yield TextTable("no process", id="processes")
        yield TextTable("reading lines …", id="lines")

    def on_mount(self) -> None:
        """Looks again and again."""
        self.query_one(AreaChart).cursor_shown = True
        self.query_one("#lines").focus()
        self.stretch = View.whole(self.follower.end_ns)
        self.set_interval(EVERY_S, self.tick)

    # ---- looking ----

    def tick(self) -> None:
        """Looks for what is new, unless paused or not on screen.

        A full reading may take long; looks go on meanwhile, and after the end: another run may
        take the place of the file.
        """
        follower = self.follower
        if self.paused or not self.is_current:
            return
        self.in_background(self._look, self._has_looked, "look", 0.0)
        due = not follower.ended or any(m.wants_reading(float("inf")) for m in follower.members)
        if due and not self._reading:
            self._reading = True
            self.in_background(follower.read, self._has_read, "read", 0.0)

    def _look(self) -> TlmemError | None:
        try:
            self.follower.look()
        except TlmemError as error:
            return error
        return None

    def _has_looked(self, error: TlmemError | None) -> None:
        """A look has ended; of a file that cannot be read any more it is said once."""
        if error is not None and not self.paused:
            self.paused = True
            self.notify(f"{error}; space tries again", severity="error", timeout=20, markup=False)
        self.update()

    def _has_read(self, something: bool) -> None:
        """A full reading has ended, or none was due."""
        self._reading = False
        if something:
            self.update()

    def update(self) -> None:
        """Shows the newest moment, or the one that was scrubbed to."""
        if not self.is_mounted:
            return
        follower = self.follower
        if self._run != follower.runs:
            self._begin_again()
        if not self.paused:
            grown = self.stretch.grown(follower.end_ns)
            self.stretch = replace(grown, cursor_ns=follower.end_ns)
            if not grown.is_whole:
                self.stretch = self.stretch.move_cursor(follower.end_ns)
        self._show_state()
        chart = self.query_one(AreaChart)
        chart.show(follower.layers(self.chosen), self.stretch)
        self.query_one("#legend", Words).show(chart.legend())
        full = follower.members[0].full
        self.query_one(TimeAxis).show(self.stretch, full.recording.marks if full else None)
        table = self.query_one("#processes", TextTable)
        table.display = len(follower.members) > 1
        table.show(process_table(follower))
        chosen, cursor, order = self.chosen, self.stretch.cursor_ns, self.order

        def work() -> list[LiveLine]:
            return lines_at(follower, chosen, cursor, order)

        def show(lines: list[LiveLine]) -> None:
            if any(member.full is not None for member in follower.members):
                nothing = "no object was alive at this moment"
                self.query_one("#lines", TextTable).nothing = nothing
            self.query_one("#lines", TextTable).show(line_table(lines))

        self.in_background(work, show, "lines")

    def _begin_again(self) -> None:
        """Another run has taken the place of the file: nothing that was chosen is of it."""
        if self._run:
            self.notify("The file was replaced: another run is followed now.", markup=False)
            self.paused = False
        self._run, self.chosen = self.follower.runs, None
        self.stretch = View.whole(self.follower.end_ns)

    def _show_state(self) -> None:
        follower = self.follower
        first = follower.members[0]
        at = moment(self.stretch.cursor_ns, max(self.stretch.length_ns / 100, 1))
        state = "❚❚ paused" if self.paused else "■ ended" if follower.ended else "▶ live"
        notes = [f"{state} at {at}", f"process {first.look.pid} {first.way}"]
        if len(follower.members) > 1:
            notes.append(f"{len(follower.members)} processes")
        self.query_one(Masthead).show(first.look.script, "live", "", tuple(notes))
        text = Text(no_wrap=True, overflow="ellipsis")
        if self.chosen is not None:
            text.append(f"Process {self.chosen.look.pid} alone. ", style="bold")
        text.append(together(follower, self.chosen, self.stretch.cursor_ns))
        text.append(f" │ lines by {self.order}")
        known_ns = follower.read_until_ns(self.chosen)
        if 0 < known_ns < self.stretch.cursor_ns - LATE_NS:
            text.append(f", as of {moment(known_ns, 1e8)}")
        self.query_one("#state", Words).show(text)

    # ---- keys ----

    def action_pause(self) -> None:
        """Stops following, or follows again."""
        self.paused = not self.paused
        self.update()

    def action_scrub(self, step: int) -> None:
        """Back and forth in time; back pauses, forth to the end follows again."""
        self.paused = True
        moved = self.stretch.cursor_ns + step * SCRUB * self.stretch.length_ns
        self.stretch = self.stretch.move_cursor(moved)
        if step > 0 and moved >= self.follower.end_ns:
            self.paused = False
        self.update()

    def action_sort(self, order: str) -> None:
        """Lines by what is alive, made in all, objects, growth."""
        self.order = order
        self.update()

    def action_member(self, step: int) -> None:
        """All processes, then each alone."""
        choices: list[Member | None] = [None, *self.follower.members]
        self.chosen = choices[(choices.index(self.chosen) + step) % len(choices)]
        self.update()

    async def action_browse(self) -> None:
        """What was recorded so far, on the other screens."""
        await self.tlmem.action_go("overview")

    def action_zoom(self, factor: float) -> None:
        """A shorter or longer stretch of time."""
        self.stretch = self.stretch.zoom(factor)
        self.update()

    def action_whole(self) -> None:
        """Everything so far."""
        self.stretch = self.stretch.select(0, self.stretch.end_ns)
        self.update()

    def action_pan(self, share: float) -> None:
        """Earlier or later."""
        self.paused = True
        self.stretch = self.stretch.pan(share)
        self.update()

    def on_time_picked(self, message: TimePicked) -> None:
        """A click scrubs there; a dragged stretch is zoomed into."""
        self.paused = True
        view = self.stretch.move_cursor(message.time_ns)
        if message.until_ns is not None:
            view = view.select(message.time_ns, message.until_ns)
        self.stretch = view
        self.update()

    def on_zoomed(self, message: Zoomed) -> None:
        """The wheel zooms around the mouse."""
        self.stretch = self.stretch.move_cursor(message.time_ns).zoom(message.factor)
        self.update()
