"""The names of all screens with their keys; the one on show stands in brackets."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.widget import Widget

NARROWER = tuple((0, room, True) for room in (99, 7, 6, 5, 4, 3, 2, 1))
"""Ways to write the tabs in less room: blanks between them, letters of a name, whether those of
screens with nothing to show are left out."""


class ScreenTabs(Widget):
    """One line of ``key name`` pairs; a click goes there."""

    DEFAULT_CSS = "ScreenTabs { height: 1; }"

    def __init__(self, names: dict[str, str], shown: str) -> None:
        super().__init__()
        self.names = names
        self.shown = shown
        self.empty: set[str] = set()
        self._places: list[tuple[int, int, str]] = []

    def dim(self, names: set[str]) -> None:
        """These screens have nothing to show: their names are dim."""
        if names != self.empty:
            self.empty = names
            self.refresh()

    def render(self) -> Text:
        """The line; where the screen is narrow, names of screens with nothing to show go first."""
        text, self._places = Text(no_wrap=True), []
        words, gap = self._fitting()
        shown = [name.lower() == self.shown for name in self.names.values()]
        for at, (name, word) in enumerate(zip(self.names.values(), words, strict=True)):
            begin = len(text)
            before = "]" if at and shown[at - 1] and not gap else " " if gap or at else ""
            before = "[" if shown[at] else before
            text.append(before, "bold reverse" if before.strip() else "")
            style = "bold reverse" if shown[at] else "dim" if name.lower() in self.empty else ""
            text.append(word, style)
            if gap or (shown[at] and at == len(words) - 1):
                text.append("]" if shown[at] else " ", "bold reverse" if shown[at] else "")
            text.append(" " * gap)
            self._places.append((begin, len(text), name.lower()))
        return text

    def _fitting(self) -> tuple[list[str], int]:
        """The words of the tabs, and the blanks between two of them beside their brackets."""
        longest = max(map(len, self.names.values()), default=0)
        for gap, room, short in ((1, longest, False), (1, longest, True), *NARROWER):
            words = []
            for key, name in self.names.items():
                is_shown = name.lower() == self.shown
                left_out = short and name.lower() in self.empty and not is_shown
                words.append(key if left_out else f"{key} {name if is_shown else name[:room]}")
            ends = [name.lower() == self.shown for name in self.names.values()]
            if gap:  # what is blank at the end may be cut off
                width = sum(len(word) + 2 + gap for word in words) - gap - (not ends[-1])
            else:
                width = sum(len(word) + 1 for word in words) - 1 + ends[0] + ends[-1]
            if width <= self.size.width:
                break
        return words, gap

    async def on_click(self, event: events.Click) -> None:
        """Goes to the screen whose name was clicked."""
        for begin, end, name in self._places:
            if begin <= event.x < end:
                await self.app.run_action(f"go('{name}')")
