"""The line at the top of every screen: program, verdict, worst line, stretch of time, state."""

from __future__ import annotations

from rich.text import Text
from textual.widget import Widget

from .colours import GREEN, RED, YELLOW, readable

SIGNS = {
    "stable": ("✓", GREEN),
    "leak": ("‼", RED),
    "native": ("‼", RED),
    "python": ("‼", RED),
    "driver": ("‼", RED),
    "retained": ("!", YELLOW),
    "cannot-judge": ("?", YELLOW),
}
"""Outcomes with a sign and a colour that says the same."""


class Masthead(Widget):
    """One line; what does not fit is cut at its end."""

    DEFAULT_CSS = "Masthead { height: 1; background: $panel; }"

    def __init__(self) -> None:
        super().__init__()
        self.script = ""
        self.outcome = ""
        self.place = ""
        self.notes: tuple[str, ...] = ()

    def show(self, script: str, outcome: str, place: str, notes: tuple[str, ...]) -> None:
        """Shows what is known now; an empty outcome is not known yet, ``live`` has none."""
        self.script, self.outcome, self.place, self.notes = script, outcome, place, notes
        self.refresh()

    def render(self) -> Text:
        """The line."""
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(" tlmem ", style="reverse")
        text.append(f" {self.script}", style="bold")
        if self.outcome == "live":
            pass
        elif self.outcome:
            sign, colour = SIGNS.get(self.outcome, ("?", YELLOW))
            colour = readable(colour, self.app.current_theme.dark)
            text.append(f"  {sign} {self.outcome}", style=f"bold {colour}")
        else:
            text.append("  … analysing", style="italic")
        if self.place:
            text.append(f" {self.place}", style="bold")
        for note in self.notes:
            text.append(f" │ {note}")
        return text
