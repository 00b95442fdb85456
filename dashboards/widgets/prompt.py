"""A line to type in, on screen only while something is asked."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input
from tlmem.dashboards.messages import PlaceTyped


class Asking(Input):
    """Hidden until it is asked."""

    DEFAULT_CSS = "Asking { display: none; }"

    def ask(self) -> None:
        """Shows the line, and gives it the keys."""
        self.display = True
        self.focus()

    def leave(self) -> None:
        """Hides the line, and forgets what was typed."""
        self.value = ""
        self.display = False


class Prompt(Asking):
    """What one screen asks: a word to search, a file."""


class GoTo(Asking):
    """Asks for a place in time, on every screen; Escape gives the keys back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "end typing", show=False)]

    def __init__(self, placeholder: str) -> None:
        super().__init__(placeholder=placeholder)
        self._before: Widget | None = None

    def ask(self) -> None:
        """Shows the line, and gives it the keys."""
        self._before = self.screen.focused
        super().ask()

    def action_leave(self) -> None:
        """Hides the line; what had the keys before has them again."""
        self.leave()
        if self._before is not None:
            self._before.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Of no interest to the screen, which may have a line of its own to type in."""
        event.stop()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter asks the screen to go there."""
        event.stop()
        self.post_message(PlaceTyped(event.value))
