"""Diff: the recording that is open against another one, which was made before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input
from tlmem.dashboards.model.diff import difference, finding_changes, heap_changes, line_changes
from tlmem.dashboards.model.tables import TableData
from tlmem.dashboards.widgets.prompt import Prompt
from tlmem.dashboards.widgets.text_table import TextTable
from tlmem.dashboards.widgets.words import Words

from tlmem.analysis.compare import Difference
from tlmem.errors import TlmemError

from .page import Page


class DiffPage(Page):
    """Both verdicts, findings that came and went, lines that changed."""

    NAME = "diff"
    ABOUT = "this recording compared with an earlier one"
    NEEDS_EVENTS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "file", "other file"),
        Binding("tab", "app.focus_next", "next table"),
        Binding("escape", "close_file", "end typing", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.found: Difference | None = None
        self._asked: tuple[object, ...] = ()

    def body(self) -> Iterable[Widget]:
        """The other file's name, verdicts, tables."""
        yield Prompt(placeholder="an earlier recording")
        yield Words(id="verdicts")
        yield TextTable("no finding is new or gone", id="changed-findings")
        yield TextTable("no line allocates or keeps more or less", id="changed-lines")
        yield TextTable("no line's sampled heap differs by more than chance", id="changed-heap")

    def on_mount(self) -> None:
        """The table of lines has the keys; digits would not lead away from a line to type in."""
        self.query_one("#changed-lines").focus()
        self.query_one("#changed-heap").display = False

    def follow(self) -> None:
        """Compares in the background, once for each file."""
        other, loaded = self.tlmem.other, self.loaded
        words = self.query_one("#verdicts", Words)
        if other is None:
            words.show("f asks for an earlier recording to compare this one with.")
            return
        asked = (other, loaded.path, loaded.is_analysed)
        if asked == self._asked or not loaded.is_analysed:
            if not loaded.is_analysed:
                words.show("analysing …")
            return
        self._asked = asked
        words.show(Text(f"comparing with {other} …"))
        members = self.tlmem.members

        def work() -> tuple[Difference, TableData, TableData, TableData] | TlmemError:
            try:
                found = difference(members, other)
            except TlmemError as error:
                return error
            return found, finding_changes(found), line_changes(found), heap_changes(found)

        self.in_background(work, self._show)

    def _show(self, found: tuple[Difference, TableData, TableData, TableData] | TlmemError) -> None:
        words = self.query_one("#verdicts", Words)
        if isinstance(found, TlmemError):
            words.show(Text(f"{found}. f asks for another file."))
            return
        self.found, findings, lines, heap = found
        text = Text()
        for name, side in (("before", self.found.before), ("now", self.found.after)):
            text.append(f"{name:<7}", style="bold")
            text.append(f"{side.verdict.outcome}", style="bold underline")
            text.append(f" {side.recordings[0].path.name}: {side.verdict.sentence}\n")
        words.show(text)
        self.query_one("#changed-findings", TextTable).show(findings)
        self.query_one("#changed-lines", TextTable).show(lines)
        table = self.query_one("#changed-heap", TextTable)
        table.display = self.found.heap is not None
        table.show(heap)

    def action_file(self) -> None:
        """Asks for another file."""
        self.query_one(Prompt).ask()

    def action_close_file(self) -> None:
        """Back to the tables."""
        self.query_one(Prompt).leave()
        self.query_one("#changed-lines").focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Compares with that file."""
        if event.value.strip():
            self.tlmem.other = Path(event.value.strip()).expanduser()
            self.action_close_file()
            self.follow()
