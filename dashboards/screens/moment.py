"""Moment: what was alive at the peak or another moment, who held it, what would lower the peak."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Input
from tlmem.dashboards.messages import RowChosen, RowSeen, TimePicked
from tlmem.dashboards.model.line_areas import LineAreas, line_areas
from tlmem.dashboards.model.moments import LINE, MODULE, NO_MODULES, NO_ROLES, ROLE, MomentShown
from tlmem.dashboards.widgets.area_chart import LineChart
from tlmem.dashboards.widgets.prompt import Prompt
from tlmem.dashboards.widgets.text_table import TextTable
from tlmem.dashboards.widgets.time_axis import TimeAxis
from tlmem.dashboards.widgets.words import Words

from .page import Page

MARGIN = 14
LEAST_ROWS, LINES_EACH = 3, 6
"""Rows of the picture: at least so many, and one for so many lines of the screen."""
NOTHING = {ROLE: NO_ROLES, MODULE: NO_MODULES, LINE: "nothing was alive"}


class MomentPage(Page):
    """All that was alive over time, one of three tables for the moment, what is known of a row."""

    NAME = "moment"
    ABOUT = "what was alive at the peak or another moment, who held it, what would lower the peak"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "go_to", "go to a moment"),
        Binding("less_than_sign", "step(-1)", "earlier"),
        Binding("greater_than_sign", "step(1)", "later"),
        Binding("w", "peak", "the peak"),
        Binding("b", "born", "born in this stretch"),
        Binding("l", "by('line')", "lines"),
        Binding("r", "by('role')", "roles"),
        Binding("m", "by('module')", "modules"),
        Binding("t", "thread", "thread"),
        Binding("d", "memory", "other memory", show=False),
        Binding("slash", "search", "filter by line, holder, role, size", show=False),
        Binding("escape", "close_search", "end the filter", show=False),
        Binding("enter", "timeline", "timeline"),
        Binding("tab", "app.focus_next", "table or what is known of the row", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.by = ""
        self.memory: str | None = None
        self.found: MomentShown | None = None
        self.search = ""
        self.rows: list[int] = []
        self._asked: tuple[object, ...] = ()

    def body(self) -> Iterable[Widget]:
        """The moment in words and in time, the table, about its row."""
        yield Words(id="shown")
        yield LineChart(id="alive")
        yield TimeAxis()
        yield Prompt(placeholder="line, holder, role, >1MB, <64kB; Enter keeps it, Esc ends it")
        yield TextTable("")
        yield VerticalScroll(Words(id="about", keeps_room=True), id="about-box")

    def on_mount(self) -> None:
        """The table has the keys."""
        self.query_one(LineChart).cursor_shown = True
        self.query_one(TextTable).focus()

    def on_resize(self, event: events.Resize) -> None:
        """The picture is as wide as the screen, and higher on a high one."""
        chart = self.query_one(LineChart)
        chart.styles.height = max(LEAST_ROWS, event.size.height // LINES_EACH)
        chart.margin = self.query_one(TimeAxis).margin = MARGIN
        if self.loaded.is_read:
            self.call_after_refresh(self.follow)

    # ---- computing ----

    def follow(self) -> None:
        """Computes the moment in the background, once for each recording, memory and moment."""
        loaded, view = self.loaded, self.view
        if self._asked[:1] != (id(loaded),):
            self.found, self.memory = None, None
        width = self.query_one(LineChart).columns
        stretch = (view.start_ns, view.stop_ns, width)
        chosen = (self.memory, view.moment_ns, view.born_ns, view.thread)
        now = (id(loaded), *chosen, loaded.is_analysed, stretch)
        if now == self._asked:
            return
        self._asked = now
        if not loaded.is_analysed and view.moment_ns is None:
            self.query_one("#shown", Words).show("analysing …")
            return
        if self.found is None:
            self.query_one("#shown", Words).show_meanwhile("adding up …")

        def work() -> tuple[MomentShown, LineAreas, float]:
            found = loaded.moments.shown(*chosen)
            areas = line_areas(loaded.lanes, view, width)
            return found, areas, loaded.lanes.all_at(found.time_ns)[0]

        def show(answer: tuple[MomentShown, LineAreas, float]) -> None:
            if loaded is self.loaded:
                self.found, areas, alive = answer
                inside = replace(view, cursor_ns=self.found.time_ns)
                self.query_one(LineChart).show_at(areas, inside, alive)
                self.query_one(TimeAxis).show(inside, loaded.recording.marks)
                self.shade(self.query_one(LineChart))
                self._show()

        self.in_background(work, show)

    def _show(self) -> None:
        found = self.found
        if found is None:
            return
        text = Text(found.sentence)
        if len(found.memories) > 1:
            at = found.memories.index(found.memory) + 1
            text.append(f" │ memory {at} of {len(found.memories)} (d)", style="italic")
        if self.view.thread is not None:
            text.append(f" │ {self._thread_name()} (t)", style="bold")
        table, whole = self.query_one(TextTable), found.tables[self._by]
        self.rows = found.matching(self._by, self.search)
        if self.search:
            text.append(f" │ {len(self.rows)} of {len(whole.rows)} rows with '{self.search}'")
        self.query_one("#shown", Words).show(text)
        empty = NOTHING[self._by if found.sizes[LINE] else LINE]
        table.nothing = "nothing matches" if whole.rows else empty
        table.show(replace(whole, rows=[whole.rows[at] for at in self.rows]))
        self._tell_about()

    @property
    def _by(self) -> str:
        """The table on screen."""
        return self.by or (self.found.by if self.found is not None else LINE)

    @property
    def _row(self) -> int:
        """The row of the cursor among all of the table, however it is filtered."""
        at = self.query_one(TextTable).row
        return self.rows[at] if at < len(self.rows) else -1

    def _tell_about(self) -> None:
        """What is known of the line of the cursor; of the peak, what would lower it."""
        found = self.found
        if found is None:
            return
        about, row = Text(), self._row
        if self._by == LINE and 0 <= row < len(found.about):
            first, _, rest = found.about[row].partition("\n")
            about.append(f"{first}\n", style="bold")
            about.append(f"{rest}\n")
        if found.lower:
            about.append("What would lower it\n", style="bold")
        about.append("\n".join((*(f"· {each}" for each in found.lower), *found.notes)))
        self.query_one("#about", Words).show(about)

    # ---- the filter ----

    def action_search(self) -> None:
        """Shows the line to type in."""
        self.query_one(Prompt).ask()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filters while one types."""
        self.search = event.value.strip()
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Back to the table."""
        self.query_one(TextTable).focus()

    def action_close_search(self) -> None:
        """All rows again."""
        self.query_one(Prompt).leave()
        self.query_one(TextTable).focus()

    # ---- keys ----

    def on_row_seen(self, message: RowSeen) -> None:
        """The words below follow the cursor."""
        self._tell_about()

    def on_time_picked(self, message: TimePicked) -> None:
        """A click shows what was alive then; a dragged stretch becomes the one on screen."""
        if message.until_ns is None:
            self._go(message.time_ns)
        else:
            super().on_time_picked(message)

    def _go(self, time_ns: float) -> None:
        time_ns = int(min(max(time_ns, 0), self.view.end_ns))
        self.change(replace(self.view.move_cursor(time_ns), moment_ns=time_ns))

    def action_step(self, columns: int) -> None:
        """What was alive a column earlier or later."""
        if self.found is not None:
            width = max(self.query_one(LineChart).columns, 1)
            self._go(self.found.time_ns + columns * self.view.length_ns / width)

    def action_peak(self) -> None:
        """The moment at which most was alive."""
        self.change(replace(self.view, moment_ns=None, born_ns=None))

    def action_born(self) -> None:
        """Only what was allocated in the stretch of time on screen, or everything again."""
        view = self.view
        if view.born_ns is None and view.is_whole:
            self.notify("Zoom into a stretch first (+), or type A..B after g.")
            return
        born_ns = None if view.born_ns is not None else (view.start_ns, view.stop_ns)
        self.change(replace(view, born_ns=born_ns))

    def action_by(self, by: str) -> None:
        """Another table."""
        if self._by != by:
            self.by = by
            self.query_one(TextTable).move(0)
            self._show()

    def _thread_name(self) -> str:
        """The thread whose blocks are shown."""
        threads = self.loaded.recording.threads
        name = threads["name"].get(self.view.thread, "") or "without a name"
        return f"allocated by thread {self.view.thread}, {name}"

    def action_thread(self) -> None:
        """What the next thread allocated; after the last one what all did."""
        threads = [None, *self.loaded.recording.threads.index.tolist()]
        if len(threads) < 3:
            self.notify("Everything was allocated by one thread.")
            return
        at = threads.index(self.view.thread) if self.view.thread in threads else 0
        self.change(replace(self.view, thread=threads[(at + 1) % len(threads)]))

    def action_memory(self) -> None:
        """Another memory, where there are several."""
        found = self.found
        if found is None:
            return
        if len(found.memories) < 2:
            self.notify("Everything is in one memory.")
            return
        at = found.memories.index(found.memory) + 1
        self.memory = found.memories[at % len(found.memories)]
        self.follow()

    async def on_row_chosen(self, message: RowChosen) -> None:
        """Enter goes to the timeline: of a line, to its objects."""
        await self.action_timeline()

    async def action_timeline(self) -> None:
        """The moment on the timeline, with the objects of the line of the cursor."""
        found = self.found
        if found is None:
            return
        row, line = self._row, None
        if self._by == LINE and 0 <= row < len(found.lines) and found.lines[row].file:
            line = self.loaded.places.frames.index(found.lines[row])
        view = self.view if self.view.is_whole else self.view.show(found.time_ns)
        self.tlmem.view = replace(view.move_cursor(found.time_ns), line=line, object=None)
        await self.tlmem.action_go("timeline")
