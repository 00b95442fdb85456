"""Timeline: what lines hold over time, the lives of single objects, one object's counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget
from tlmem.dashboards.messages import RowChosen, RowSeen
from tlmem.dashboards.model.bars import count_bar, line_bar, object_bar
from tlmem.dashboards.model.findings import step_line
from tlmem.dashboards.model.goto import Destination
from tlmem.dashboards.model.lanes import NEVER, SORTS
from tlmem.dashboards.model.line_areas import colour_of
from tlmem.dashboards.model.overview import tail
from tlmem.dashboards.model.time_axis import moment
from tlmem.dashboards.model.timeline import TimelineData, compute
from tlmem.dashboards.widgets.area_chart import LineChart
from tlmem.dashboards.widgets.colours import SEVERITIES, readable
from tlmem.dashboards.widgets.lane_list import Lane, LaneList
from tlmem.dashboards.widgets.time_axis import TimeAxis
from tlmem.dashboards.widgets.words import Words

from tlmem.analysis.ledger.history import History
from tlmem.analysis.places import place
from tlmem.units import format_bytes, format_count, format_seconds

from .page import Page

GREY = "#8a93a6"
NARROW, WIDE = 30, 44
NUMBERS = 13
"""Columns of the margin for the cursor, the sign of a finding and a size."""
ORDERS = {"born": "first made first", "size": "largest first", "age": "longest lived first"}


class TimelinePage(Page):
    """Lines first; Enter opens one, then an object; Escape goes back."""

    NAME = "timeline"
    ABOUT = "lifetimes of lines and objects"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus", "zoom(0.5)", "zoom in", key_display="+"),
        Binding("minus", "zoom(2.0)", "out", key_display="-"),
        Binding("left_square_bracket", "begin", "from here", key_display="["),
        Binding("right_square_bracket", "end", "to here", key_display="]"),
        Binding("g", "go_to", "go to"),
        Binding("a", "moment", "alive here"),
        Binding("s", "sort", "sort"),
        Binding("o", "objects", "objects"),
        Binding("escape,backspace", "back", "back", key_display="Esc"),
        Binding("left", "cursor(-1)", "a column to the left", show=False),
        Binding("right", "cursor(1)", "a column to the right", show=False),
        Binding("shift+left", "cursor(-10)", "ten columns to the left", show=False),
        Binding("shift+right", "cursor(10)", "ten columns to the right", show=False),
        Binding("n", "event(1)", "next event of the object", show=False),
        Binding("N", "event(-1)", "event of the object before", show=False),
        Binding("c", "app.go('sites')", "lines of this stretch", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.every_object = False
        self.order = "born"
        self.shown: TimelineData | None = None
        self.life: History | None = None
        self.mark_ns: int | None = None
        self._asked: tuple[object, ...] = ()
        self._bars: dict[int, str] = {}
        self._computing = False

    def body(self) -> Iterable[Widget]:
        """What is shown, the sum, lanes, axis, and about the row of the cursor."""
        yield Words(id="shown")
        yield Vertical(LineChart(id="total"), LaneList(), id="lanes")
        yield TimeAxis()
        yield VerticalScroll(Words(id="about", keeps_room=True), id="about-box")

    def on_mount(self) -> None:
        """The lanes have the keys."""
        self.query_one(LineChart).cursor_shown = True
        self.query_one(LaneList).focus()

    def on_resize(self, event: events.Resize) -> None:
        """Names get more room on a wide screen."""
        margin = WIDE if event.size.width >= 120 else NARROW
        for picture in (*self.query(LaneList), *self.query(LineChart), *self.query(TimeAxis)):
            picture.margin = margin
        if self.is_mounted and self.loaded.is_read:
            self.call_after_refresh(self.follow)

    # ---- computing ----

    @property
    def listing_objects(self) -> bool:
        """Whether rows are objects, and not lines."""
        return self.every_object or self.view.line is not None or self.view.object is not None

    def follow(self) -> None:
        """Computes the lanes of this view in the background."""
        loaded, view, order = self.loaded, self.view, self.order
        width = self.query_one(LaneList).columns
        moved = replace(view, cursor_ns=0)
        asked = (id(loaded), moved, order, width, self.every_object, loaded.is_analysed)
        if asked == self._asked and self.shown is not None and self.shown.width == width:
            self._move_cursor()
            return
        self._asked = asked
        self._computing = True
        objects, every, known = self.listing_objects, self.every_object, self.life
        self.query_one("#shown", Words).show_meanwhile(self._heading())

        def work() -> tuple[TimelineData, History | None]:
            return compute(loaded, view, order, objects, every, width, known)

        self.in_background(work, self._show)

    def _show(self, found: tuple[TimelineData, History | None]) -> None:
        before, (shown, life) = self.shown, found
        cursor_ns = min(max(self.view.cursor_ns, shown.view.start_ns), shown.view.stop_ns)
        shown = replace(shown, view=replace(shown.view, cursor_ns=cursor_ns))
        self._computing, self._bars = False, {}
        self.shown, self.life = shown, life if self.view.object is not None else None
        view = shown.view
        self._show_total(shown)
        loaded = self.loaded
        scopes = loaded.recording.scopes if loaded.is_analysed else None
        self.query_one(TimeAxis).show(view, loaded.recording.marks, scopes)
        lanes = self.query_one(LaneList)
        lanes.view = view
        self.shade(lanes, self.query_one("#total", LineChart))
        kept = (
            before is not None
            and self.view.object is None
            and (before.rows is None) == (shown.rows is None)
        )
        row = lanes.row if kept else shown.row
        if shown.rows is None:
            lanes.nothing = "nothing lived here"
            lanes.show(len(shown.lines), self._line_lane, row, room=loaded.lanes.line_count)
        else:
            below = self._count_lane() if self.life is not None else ()
            lanes.show(len(shown.rows), self._object_lane, row, below)
        self.query_one("#shown", Words).show(self._heading())
        self._tell_about()

    def _move_cursor(self) -> None:
        """Only the moment of the cursor is another one: nothing needs to be computed."""
        assert self.shown is not None
        then, now = self.shown.view, self.view
        if then != now and (then.start_ns, then.stop_ns) == (now.start_ns, now.stop_ns):
            self.shown = replace(self.shown, view=self.view)
            self._show_total(self.shown)
            for picture in (*self.query(LaneList), *self.query(TimeAxis)):
                picture.view = self.view
                picture.refresh()
            if self.shown.rows is None:
                self.query_one(LaneList).forget()
            self.query_one("#shown", Words).show(self._heading())
            self._tell_about()

    def _show_total(self, shown: TimelineData) -> None:
        """The sum of everything, with its value at the cursor."""
        alive = self.loaded.lanes.all_at(shown.view.cursor_ns)[0]
        self.query_one("#total", LineChart).show_at(shown.areas, shown.view, alive)

    # ---- lanes ----

    def _line_lane(self, row: int) -> Lane:
        assert self.shown is not None
        lane = self.shown.lines[row]
        bytes_, count = self.loaded.lanes.at(lane.line, self.shown.view.cursor_ns)
        now = format_bytes(bytes_) if lane.highest_bytes else f"{format_count(count)} ×"
        room = (WIDE if self.size.width >= 120 else NARROW) - NUMBERS
        name = place(lane.frame) if lane.frame.file else "no Python stack"
        sign, name_colour = self._sign_of(lane.line)
        name = f"{sign:<2}{tail(name, room):<{room}}{now:>9}"
        if row not in self._bars:
            self._bars[row] = line_bar(lane)
        return Lane(name, self._bars[row], colour_of(self.loaded.lanes, lane.line), name_colour)

    def _sign_of(self, line: int) -> tuple[str, str]:
        """The sign and colour of the finding about a line; empty where there is none."""
        found = self.shown.found.get(line) if self.shown is not None else None
        if found is None:
            return "", ""
        return found.sign, readable(SEVERITIES[found.sign], self.app.current_theme.dark)

    def _object_lane(self, row: int) -> Lane:
        assert self.shown is not None and self.shown.rows is not None
        lanes, at = self.loaded.lanes, int(self.shown.rows[row])
        size = format_bytes(int(lanes.size[at])) if lanes.size[at] else "–"
        name = f"#{lanes.number[at]}"
        if self.size.width >= 120:
            name = f"{name:<11}{place(lanes.places.frames[lanes.line[at]])[-20:]:<20}"
        died = int(lanes.died[at])
        bar = object_bar(self.shown.view, self.shown.width, int(lanes.born[at]), died)
        colour = GREY if died != NEVER else colour_of(lanes, int(lanes.line[at]))
        return Lane(f"{name:<13}{size:>9}", bar, colour)

    def _count_lane(self) -> tuple[Lane, ...]:
        assert self.life is not None and self.shown is not None
        steps = [(step.time_ns, step.count) for step in self.life.steps]
        died = self.life.died_ns if self.life.died_ns >= 0 else NEVER
        bar = count_bar(self.shown.view, self.shown.width, steps, died)
        return (Lane("  reference count", bar, "yellow"),) if bar.strip() else ()

    # ---- words ----

    def _heading(self) -> Text:
        words, shown, step = [], self.shown, self.view.length_ns / 100
        if self.mark_ns is not None:
            words.append(f"[ at {moment(self.mark_ns, step)}, ] ends the selection")
        if shown is None:
            words.append("reading lifetimes …")
        elif shown.rows is None:
            many = "s" if len(shown.lines) != 1 else ""
            words.append(f"{format_count(len(shown.lines))} line{many}, most bytes first")
        else:
            line = self._line_of_rows()
            where = "all lines" if line is None else place(self.loaded.places.frames[line])
            many = "s" if len(shown.rows) != 1 else ""
            count = f"{format_count(len(shown.rows))} object{many}"
            words.append(f"{where} › {count}, {ORDERS[self.order]}")
        words.append(f"at {moment(self.view.cursor_ns, step)}{self._alive_then()}")
        detail_ns = self.loaded.detail_from_ns
        if self.view.start_ns < detail_ns:
            words.append(f"before {moment(detail_ns, 1e7)} only what stayed alive is known")
        if self._computing and shown is not None:
            words.insert(0, "computing …")
        return Text(" │ ".join(words))

    def _alive_then(self) -> str:
        """How much of everything was alive at the cursor."""
        if self.shown is None:
            return ""
        bytes_, count = self.loaded.lanes.all_at(self.view.cursor_ns)
        many = "s" if count != 1 else ""
        return f": {format_bytes(bytes_)} in {format_count(count)} object{many}"

    def _tell_about(self) -> None:
        """A few lines about the row of the cursor, or the steps of the selected object."""
        lanes, shown = self.query_one(LaneList), self.shown
        text = Text()
        if self.life is not None:
            life = self.life
            age = (life.died_ns if life.died_ns >= 0 else self.view.end_ns) - life.born_ns
            end = "freed" if life.died_ns >= 0 else "alive at the end"
            text.append(
                f"Object {life.object}: {format_bytes(life.bytes)}, {life.device}, {end}, "
                f"lived {format_seconds(age / 1e9)}, allocated at {place(life.made)}\n",
                style="bold",
            )
            for step in life.steps:
                now = step.time_ns <= self.view.cursor_ns
                text.append(f"{step_line(step)}\n", style="" if now else "dim")
        elif shown is not None and shown.rows is None and lanes.row < len(shown.lines):
            lane = shown.lines[lanes.row]
            text.append(f"{lane.frame} in {lane.frame.function}\n", style="bold")
            bytes_, count = self.loaded.lanes.at(lane.line, self.view.cursor_ns)
            text.append(
                f"At the cursor {format_count(count)} alive, {format_bytes(bytes_)}. "
                f"{format_count(lane.made.sum())} allocated here in this stretch, "
                f"{format_count(lane.live_count[-1])} alive at its end, "
                f"{format_bytes(lane.live_bytes[-1])}; at most {format_bytes(lane.highest_bytes)}"
            )
            if lane.line in shown.found:
                sign, colour = self._sign_of(lane.line)
                text.append(f"\n{sign} {shown.found[lane.line].name}: ", style=colour)
                text.append(shown.found[lane.line].evidence)
        kind = "object" if self.life is not None else "row"
        self.query_one("#about", Words).show(text, kind)

    # ---- keys ----

    def on_row_seen(self, message: RowSeen) -> None:
        """The words below follow the cursor; an object opened before is closed."""
        if self.view.object is not None:
            self.life = None
            self.tlmem.view = replace(self.view, object=None, line=self._line_of_rows())
        self._tell_about()

    def on_row_chosen(self, message: RowChosen) -> None:
        """Opens a line, or an object."""
        shown = self.shown
        if shown is None:
            return
        if shown.rows is None:
            self.change(replace(self.view, line=shown.lines[message.row].line, object=None))
        else:
            at = int(shown.rows[message.row])
            lanes = self.loaded.lanes
            number, born = int(lanes.number[at]), int(lanes.born[at])
            view = replace(self.view, object=number, line=self._line_of_rows())
            inside = view.start_ns <= born <= view.stop_ns
            self.change(view.move_cursor(born) if inside else view)

    def _line_of_rows(self) -> int | None:
        """The line whose objects are listed."""
        if self.every_object:
            return None
        if self.view.line is None and self.shown is not None and self.shown.rows is not None:
            rows = self.shown.rows
            return int(self.loaded.lanes.line[rows[0]]) if len(rows) else None
        return self.view.line

    def action_back(self) -> None:
        """From an object to its line, from there to all lines."""
        if self.view.object is not None:
            self.life = None
            self.change(replace(self.view, object=None, line=self._line_of_rows()))
        else:
            self.every_object = False
            self.change(replace(self.view, line=None, object=None))
            self.follow()

    def action_objects(self) -> None:
        """All objects, of whatever line."""
        self.every_object = not self.every_object
        self.tlmem.view = replace(self.view, line=None, object=None)
        self.follow()

    def action_sort(self) -> None:
        """Objects by birth, size or age."""
        self.order = SORTS[(SORTS.index(self.order) + 1) % len(SORTS)]
        self.follow()

    def action_cursor(self, columns: int) -> None:
        """The cursor some columns further; at the edge the picture moves along."""
        width = max(self.query_one(LaneList).columns, 1)
        step = self.view.length_ns / width
        self.change(self.view.move_cursor(self.view.cursor_ns + columns * step))

    def action_begin(self) -> None:
        """A selection begins at the cursor."""
        self.mark_ns = self.view.cursor_ns
        self.query_one("#shown", Words).show(self._heading())

    def action_end(self) -> None:
        """It ends at the cursor; every screen follows it."""
        begin = self.mark_ns if self.mark_ns is not None else self.view.start_ns
        self.mark_ns = None
        self.change(self.view.select(begin, self.view.cursor_ns))

    def action_event(self, step: int) -> None:
        """The next event of the selected object, or the one before."""
        if self.life is None:
            self.notify("Select an object with Enter first.")
            return
        times = [s.time_ns for s in self.life.steps]
        after = [
            t for t in times if (t > self.view.cursor_ns if step > 0 else t < self.view.cursor_ns)
        ]
        if after:
            self.change(self.view.move_cursor(min(after) if step > 0 else max(after)))

    async def arrive(self, target: Destination) -> None:
        """The cursor goes to a moment, and the numbers beside the lanes are those of it."""
        if target.time_ns is None or target.born_ns is not None:
            await super().arrive(target)
            return
        view = self.view if self.view.is_whole else self.view.show(target.time_ns)
        view = replace(view.move_cursor(target.time_ns), object=target.object)
        view = replace(view, moment_ns=target.time_ns, born_ns=None)
        self.change(replace(view, line=None) if target.object is not None else view)

    async def action_moment(self) -> None:
        """What was alive at the cursor, with who held it."""
        self.tlmem.view = replace(self.view, moment_ns=self.view.cursor_ns, born_ns=None)
        await self.tlmem.action_go("moment")
