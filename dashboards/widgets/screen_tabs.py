"""The names of all screens with their keys; the one on show stands in brackets."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.widget import Widget


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
        """The line; short names where the screen is narrow."""
        text = Text(no_wrap=True)
        self._places = []
        room = self._room()
        for key, name in self.names.items():
            begin = len(text)
            word = name if name.lower() == self.shown else name[:room]
            if name.lower() == self.shown:
                text.append(f"[{key} {word}]", style="bold reverse")
            else:
                text.append(f" {key} {word} ", style="dim" if name.lower() in self.empty else "")
            text.append(" ")
            self._places.append((begin, len(text), name.lower()))
        return text

    def _room(self) -> int:
        """How many letters of a name there is room for, but for the one on show."""
        names = list(self.names.values())
        longest = max(map(len, names), default=0)
        blanks = 1 if names and names[-1].lower() == self.shown else 2  # at the end of the line
        for room in (longest, 5, 4, 3, 2):
            words = (
                len(name) if name.lower() == self.shown else min(len(name), room)
                for name in self.names.values()
            )
            if sum(word + 5 for word in words) - blanks <= self.size.width:
                return room
        return 1

    async def on_click(self, event: events.Click) -> None:
        """Goes to the screen whose name was clicked."""
        for begin, end, name in self._places:
            if begin <= event.x < end:
                await self.app.run_action(f"go('{name}')")
