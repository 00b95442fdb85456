"""A line to type in, on screen only while something is asked."""

from __future__ import annotations

from textual.widgets import Input


class Prompt(Input):
    """Hidden until it is asked."""

    DEFAULT_CSS = "Prompt { display: none; }"

    def ask(self) -> None:
        """Shows the line, and gives it the keys."""
        self.display = True
        self.focus()

    def leave(self) -> None:
        """Hides the line, and forgets what was typed."""
        self.value = ""
        self.display = False
