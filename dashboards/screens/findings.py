"""Findings: a table to sort and search, and all about the one under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from rich.syntax import Syntax
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widget import Widget
from textual.widgets import Input
from tlmem.dashboards.messages import RowChosen, RowSeen
from tlmem.dashboards.model.findings import (
    HEADS,
    SORTS,
    SOURCE,
    Block,
    FindingRow,
    finding_blocks,
    finding_rows,
    markdown,
)
from tlmem.dashboards.model.tables import TableData
from tlmem.dashboards.widgets.prompt import Prompt
from tlmem.dashboards.widgets.text_table import EMPTY, TextTable
from tlmem.dashboards.widgets.words import Words

from tlmem.analysis.ledger.history import History
from tlmem.analysis.model import SEVERITIES, Finding
from tlmem.recording.tables.blame import is_users

from .page import Page

HIGHLIGHTER = Syntax("", "python", theme="ansi_dark", background_color="default")
MOST_COLOURED = 500
"""Lines of source whose colours are kept: a detail is shown once more when its history is known."""
NUMBERS = ("bytes", "objects", "growth")
WIDE = 130
"""Columns from which on the detail is beside the table, with 6 of 11 parts: see ``app.tcss``."""
DETAIL_FRAME = 5
"""Columns for border, padding and scroll bar of the detail."""
SHOWN = (SEVERITIES, ("error", "warning"), ("error",))
"""What ``f`` goes through."""


class FindingsPage(Page):
    """Table above or beside the detail, by the width of the screen."""

    NAME = "findings"
    ABOUT = "what was found, with evidence, holders and stacks"
    NEEDS_EVENTS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "sort"),
        Binding("f", "severities", "severity"),
        Binding("slash", "search", "search", key_display="/"),
        Binding("c", "copy", "copy"),
        Binding("enter", "timeline", "timeline"),
        Binding("tab", "app.focus_next", "table or detail", show=False),
        Binding("escape", "close_search", "end the search", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.sort = "severity"
        self.search = ""
        self.severities: tuple[str, ...] = SEVERITIES
        self.rows: list[FindingRow] = []
        self.life: History | None = None
        self._shown: tuple[object, ...] = ()
        self._told: Finding | None = None

    def body(self) -> Iterable[Widget]:
        """What is shown, the search, table and detail."""
        yield Words(id="shown")
        yield Prompt(placeholder="kind, file, function or holder; Enter keeps it, Esc ends it")
        table = TextTable("analysing …")
        detail = VerticalScroll(Words(id="detail"), id="detail-box")
        yield Container(table, detail, id="split")

    def on_mount(self) -> None:
        """The table has the keys at first."""
        self.query_one(TextTable).focus()

    def on_resize(self) -> None:
        """Beside each other where there is room."""
        self.set_class(self.size.width >= WIDE, "wide")
        if self._told is not None:
            self._show_blocks(self._told, self.life)

    # ---- the table ----

    def follow(self) -> None:
        """Shows the findings as they are known, sorted and searched."""
        table = self.query_one(TextTable)
        if not self.loaded.is_analysed:
            self.query_one("#shown", Words).show("analysing …")
            table.nothing = "analysing …"
            table.show(EMPTY)
            self.query_one("#detail", Words).show("")
            self.rows, self._shown, self._told = [], (), None
            return
        now = (id(self.loaded), self.sort, self.search, self.severities)
        if now == self._shown:
            return
        self._shown = now
        findings = self.loaded.analysis.findings
        self.rows = finding_rows(findings, self.sort, self.search, self.severities)
        every = len(finding_rows(findings))
        of = f"{len(self.rows)} of {every}" if len(self.rows) != every else f"{every}"
        places = "place" if every == 1 else "places"
        words = [f"{len(findings)} findings at {of} {places}", f"sorted by {self.sort}"]
        if self.severities != SEVERITIES:
            words.append(f"{' and '.join(self.severities)}s only")
        if self.search:
            words.append(f"with '{self.search}'")
        self.query_one("#shown", Words).show(Text(", ".join(words)))
        rows = [row.cells for row in self.rows]
        table.nothing = "nothing matches" if findings else "nothing was found"
        table.show(TableData(HEADS, rows, NUMBERS))
        self._show_detail()

    def on_row_seen(self, message: RowSeen) -> None:
        """The detail follows the cursor."""
        self._show_detail()

    async def on_row_chosen(self, message: RowChosen) -> None:
        """Enter goes to the timeline."""
        await self.action_timeline()

    @property
    def finding(self) -> Finding | None:
        """The finding under the cursor."""
        at = self.query_one(TextTable).row
        if not 0 <= at < len(self.rows):
            return None
        return self.loaded.analysis.findings[self.rows[at].index]

    @property
    def others(self) -> list[Finding]:
        """What else was found of the same line."""
        at = self.query_one(TextTable).row
        if not 0 <= at < len(self.rows):
            return []
        return [self.loaded.analysis.findings[index] for index in self.rows[at].others]

    def action_sort(self) -> None:
        """The next order."""
        self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        self.follow()

    def action_severities(self) -> None:
        """All, then warnings and errors, then errors."""
        self.severities = SHOWN[(SHOWN.index(self.severities) + 1) % len(SHOWN)]
        self.follow()

    # ---- the search ----

    def action_search(self) -> None:
        """Shows the line to type in."""
        self.query_one(Prompt).ask()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Searches while one types."""
        self.search = event.value.strip()
        self.follow()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Back to the table."""
        self.query_one(TextTable).focus()

    def action_close_search(self) -> None:
        """All findings again."""
        self.query_one(Prompt).leave()
        self.query_one(TextTable).focus()

    # ---- the detail ----

    def _show_detail(self) -> None:
        finding = self.finding
        if finding is not None and self._told is finding:
            return
        self._told, self.life = finding, None
        if finding is None:
            self.query_one("#detail", Words).show("")
            return
        self._show_blocks(finding, None)
        if finding.object is not None:
            loaded, number = self.loaded, finding.object

            def show(life: History | None) -> None:
                if finding is self.finding:
                    self.life = life
                    self._show_blocks(finding, life)

            self.in_background(lambda: loaded.history(number), show, "history")

    def _show_blocks(self, finding: Finding, life: History | None) -> None:
        blocks = finding_blocks(finding, life, self._detail_width, self.others)
        info = self.loaded.recording.info
        self.query_one("#detail", Words).show(as_text(blocks, lambda file: is_users(file, info)))

    @property
    def _detail_width(self) -> int:
        """Letters for which a line of the detail has room, before it is laid out."""
        width = self.app.size.width
        return (width * 6 // 11 if width >= WIDE else width) - DETAIL_FRAME

    def action_copy(self) -> None:
        """The finding as Markdown, to the clipboard of the terminal."""
        finding = self.finding
        if finding is not None:
            origin = self.loaded.path.name
            self.app.copy_to_clipboard(markdown(finding, self.life, origin, self.others))
            self.notify("The finding is in the clipboard as Markdown.")

    async def action_timeline(self) -> None:
        """The object of the finding on the timeline."""
        finding = self.finding
        if finding is not None and "timeline" in self.app.MODES:
            self.tlmem.view = replace(self.view, object=finding.object)
            await self.tlmem.action_go("timeline")


def as_text(blocks: Iterable[Block], users: Callable[[str], bool] = lambda file: True) -> Text:
    """Blocks with bold headings; marked lines stand out, source is coloured, libraries are dim.

    Args:
        users: whether a file is the user's own.
    """
    text = Text()
    for number, block in enumerate(blocks):
        text.append(("" if number == 0 else "\n") + block.heading + "\n", style="bold")
        for at, line in enumerate(block.lines):
            frame = block.frames[at] if at < len(block.frames) else None
            if frame is not None and not users(frame.file):
                text.append(f"{line}\n", style="dim")
            elif frame is not None and line.startswith(SOURCE):
                text.append(coloured(line))
            else:
                style = "bold" if block.code and line[:1] in (">", "!") else ""
                text.append(f"{line}\n", style=style)
    return text


@lru_cache(MOST_COLOURED)
def coloured(line: str) -> Text:
    """A line of Python with the colours of an editor and a line feed at its end; not changed."""
    code = line.removeprefix(SOURCE)
    return Text.assemble(SOURCE, HIGHLIGHTER.highlight(code))
