"""The line at the bottom of every screen: its most useful keys.

One widget, where the footer of Textual has one for each key: another screen is shown in half the
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget

NAMES = {
    "question_mark": "?",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "comma": ",",
    "full_stop": ".",
    "slash": "/",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "ctrl+z": "Ctrl+Z",
    "enter": "⏎",
    "tab": "⇥",
    "escape": "Esc",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
}
"""Keys as they are written."""


def written(binding: Binding) -> list[str]:
    """The keys of a binding as they are written."""
    return [NAMES.get(key, key) for key in binding.key.split(",")]


class Keys(Widget):
    """Keys with what they do; a click does it. What does not fit is in the help."""

    DEFAULT_CSS = "Keys { height: 1; dock: bottom; background: $panel; }"

    def __init__(self, bindings: Iterable[BindingType]) -> None:
        super().__init__()
        self.shown: Sequence[Binding] = [
            binding for binding in bindings if isinstance(binding, Binding) and binding.show
        ]
        self._places: list[tuple[int, int, str]] = []

    def render(self) -> Text:
        """The line."""
        text = Text(no_wrap=True, overflow="ellipsis")
        self._places = []
        for binding in self.shown:
            begin = len(text)
            width = len(written(binding)[0]) + len(binding.description) + 3
            if begin + width > self.size.width + 1:
                break
            text.append(f" {written(binding)[0]}", style="bold yellow")
            text.append(f" {binding.description} ")
            self._places.append((begin, len(text), binding.action))
        return text

    async def on_click(self, event: events.Click) -> None:
        """Does what the key would do."""
        for begin, end, action in self._places:
            if begin <= event.x < end:
                await self.screen.run_action(action)
