"""Fleet: every process of a run as a row, its memory over time; Enter opens one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget
from tlmem.dashboards.messages import RowChosen, RowSeen
from tlmem.dashboards.model.fleet import MEMORIES, ORDERS, count_sentence, heat_map
from tlmem.dashboards.widgets.heat_map import HeatMapRows
from tlmem.dashboards.widgets.masthead import Masthead
from tlmem.dashboards.widgets.words import Words

from tlmem.units import format_count

from .page import Page

if TYPE_CHECKING:
    from tlmem.dashboards.app import FleetApp


class FleetPage(Page):
    """The odd one out in a sentence, the heat map, the verdict of the process of the cursor."""

    NAME = "fleet"
    ABOUT = "memory of every process over time"
    NEEDS_EVENTS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open"),
        Binding("s", "sort", "sort"),
        Binding("m", "memory", "resident or arrays"),
        Binding("o", "odd", "odd one out"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.order = ORDERS[0]
        self.memory = MEMORIES[0]

    @property
    def fleet_app(self) -> FleetApp:
        """The application."""
        return cast("FleetApp", self.app)

    def body(self) -> Iterable[Widget]:
        """The sentence, the map, the process of the cursor."""
        yield Words(id="shown")
        yield HeatMapRows(id="heat")
        yield Words(id="complete")

    def on_mount(self) -> None:
        """The map has the keys."""
        self.query_one(HeatMapRows).focus()
        self.fleet_app.begin_fleet()

    def follow(self) -> None:
        """Shows what is known by now."""
        index = self.fleet_app.fleet
        found = index.analysis
        rows = self.query_one(HeatMapRows)
        words = self.query_one("#shown", Words)
        if found is None:
            rows.nothing = "nothing can be read" if index.is_complete else "reading …"
            rows.refresh()
            words.show(Text(f"Reading {format_count(len(index.files))} recordings …"))
            return
        words.show(Text(found.sentence if index.is_complete else count_sentence(index, found)))
        rows.show(heat_map(found, self.order, self.memory))
        self._show_process()

    def _show_masthead(self, computing: bool = False) -> None:
        index = self.fleet_app.fleet
        found = index.analysis
        total, known = len(index.files), index.known
        notes = [f"by {self.order}"]
        if known < total:
            notes.append(f"analysed {format_count(known)} of {format_count(total)}")
        elif found is not None:
            notes.append(count_sentence(index, found))
        outcome = next(iter(found.verdicts)) if found and index.is_complete else ""
        title = f"{format_count(total)} processes"
        self.query_one(Masthead).show(title, outcome, "", tuple(notes))

    def _show_process(self) -> None:
        """The verdict of the process of the cursor."""
        path = self.query_one(HeatMapRows).path
        found = self.fleet_app.fleet.analysis
        process = (
            next((one for one in found.processes if one.path == path), None) if found else None
        )
        text = Text()
        if process is not None:
            text.append(process.name, style="bold")
            text.append(f": {process.sentence}")
        self.query_one("#complete", Words).show(text)

    # ---- keys ----

    def on_row_seen(self, message: RowSeen) -> None:
        """Another process."""
        self._show_process()

    async def on_row_chosen(self, message: RowChosen) -> None:
        """Enter or a click opens a process."""
        await self.action_open()

    async def action_open(self) -> None:
        """The process of the cursor on all other screens."""
        path = self.query_one(HeatMapRows).path
        if path is not None:
            await self.fleet_app.open_process(path)

    def action_sort(self) -> None:
        """By rank, by growth, by peak; the cursor goes to the first."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self.update()
        self.query_one(HeatMapRows).move(0)

    def action_memory(self) -> None:
        """Resident memory, or that of arrays."""
        self.memory = MEMORIES[(MEMORIES.index(self.memory) + 1) % len(MEMORIES)]
        self.update()

    def action_odd(self) -> None:
        """The cursor on the process that should be looked at first."""
        found = self.fleet_app.fleet.analysis
        rows = self.query_one(HeatMapRows)
        paths = [row.path for row in rows.shown.rows]
        if found is not None and found.worst.path in paths:
            rows.move(paths.index(found.worst.path))
