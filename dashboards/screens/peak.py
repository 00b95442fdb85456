"""Peak: what memory consisted of when most was alive, and what would have made it lower."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from tlmem.dashboards.messages import RowChosen
from tlmem.dashboards.model.peak import LINE, MODULE, NO_MODULES, NO_ROLES, ROLE, PeakShown
from tlmem.dashboards.widgets.text_table import TextTable
from tlmem.dashboards.widgets.words import Words

from .page import Page

NOTHING = {ROLE: NO_ROLES, MODULE: NO_MODULES, LINE: "nothing was allocated"}


class PeakPage(Page):
    """One of three tables for the moment of the peak, above what would lower it."""

    NAME = "peak"
    ABOUT = "what memory consisted of at its peak, and what would lower it"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "by('role')", "roles"),
        Binding("m", "by('module')", "modules"),
        Binding("l", "by('line')", "lines"),
        Binding("d", "memory", "other memory"),
        Binding("enter", "timeline", "timeline"),
        Binding("tab", "app.focus_next", "table or what would lower it", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.by = ""
        self.memory: str | None = None
        self.found: PeakShown | None = None

    def body(self) -> Iterable[Widget]:
        """The moment, the table, what would lower the peak."""
        yield Words(id="shown")
        yield TextTable("")
        yield VerticalScroll(Words(id="about"), id="about-box")

    def on_mount(self) -> None:
        """The table has the keys."""
        self.query_one(TextTable).focus()

    def follow(self) -> None:
        """Computes the peak in the background, once for each recording and memory."""
        loaded = self.loaded
        if self.found is not None and self._shown_of[:1] != (id(loaded),):
            self.found, self.memory = None, None
        now = (id(loaded), loaded.is_analysed, self.memory)
        if now == self._shown_of:
            return
        self._shown_of = now
        words = self.query_one("#shown", Words)
        if not loaded.is_analysed:
            words.show("analysing …")
            return
        if self.found is None:
            words.show("adding up …")
        memory = self.memory

        def show(found: PeakShown) -> None:
            if loaded is self.loaded:
                self.found = found
                self._show()

        self.in_background(lambda: loaded.peaks.shown(memory), show)

    def _show(self) -> None:
        found = self.found
        if found is None:
            return
        by = self.by or found.by
        text = Text(found.sentence)
        if len(found.memories) > 1:
            at = found.memories.index(found.memory) + 1
            text.append(f" │ memory {at} of {len(found.memories)} (d)", style="italic")
        self.query_one("#shown", Words).show(text)
        table = self.query_one(TextTable)
        table.nothing = NOTHING[by]
        table.show(found.tables[by])
        about = Text()
        if found.lower:
            about.append("What would lower it\n", style="bold")
        about.append("\n".join((*(f"· {each}" for each in found.lower), *found.notes)))
        self.query_one("#about", Words).show(about)

    # ---- keys ----

    def action_by(self, by: str) -> None:
        """Another table."""
        if self.by != by:
            self.by = by
            self.query_one(TextTable).move(0)
            self._show()

    def action_memory(self) -> None:
        """The peak of another memory, where there are several."""
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
        """Enter goes to the timeline."""
        await self.action_timeline()

    async def action_timeline(self) -> None:
        """The moment of the peak on the timeline."""
        if self.found is not None:
            self.tlmem.view = self.view.show(self.found.time_ns)
            await self.tlmem.action_go("timeline")
