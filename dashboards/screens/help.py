"""Help: every key, those of the screen in front first, written from the bindings themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static
from tlmem.dashboards.widgets.keys import written

from .page import Page, keep_styles

MOUSE = (
    ("click", "move the cursor of time"),
    ("drag", "select a stretch of time"),
    ("Ctrl+wheel", "zoom"),
    ("shift+drag", "select text, to copy it with the terminal"),
)


class HelpPage(ModalScreen[None]):
    """A scrolling list of keys, in the place of the screen before it.

    Not over it: that would have to be drawn again, in other colours, below the list.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter", "dismiss", "close"),
        Binding("q", "dismiss", "close", show=False),
    ]

    def __init__(self, pages: Iterable[type[Page]], shown: str) -> None:
        super().__init__()
        keep_styles(self)
        self.pages = sorted(pages, key=lambda page: page.NAME != shown)

    def compose(self) -> ComposeResult:
        """The list."""
        with VerticalScroll(id="help"):
            yield Static(self._text())

    def _text(self) -> Text:
        text = Text()
        text.append("Keys", style="bold")
        text.append("   (Esc closes)\n")
        for number, page in enumerate(self.pages):
            own = page.__dict__.get("BINDINGS", [])
            _list(text, f"{page.NAME.capitalize()}: {page.ABOUT}", key_rows(own))
            if number == 0:
                _list(text, "Everywhere", key_rows([*type(self.app).BINDINGS, *Page.BINDINGS]))
                _list(text, "", [("Ctrl+P", "all commands by name")])
        _list(text, "Mouse", MOUSE)
        return text


def key_rows(bindings: Iterable[BindingType]) -> list[tuple[str, str]]:
    """(Keys, what they do) of bindings that have a description."""
    rows = []
    for binding in bindings:
        if isinstance(binding, Binding) and binding.description:
            rows.append((" ".join(written(binding)), binding.description))
    return rows


def _list(text: Text, heading: str, rows: Iterable[tuple[str, str]]) -> None:
    if heading:
        text.append(f"\n{heading}\n", style="bold")
    for keys, meaning in rows:
        text.append(f"  {keys:<14}", style="cyan")
        text.append(f"{meaning}\n")
