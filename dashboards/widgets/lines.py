"""A widget of whole lines, of which those that have changed are drawn."""

from __future__ import annotations

from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget


class Lines(Widget):
    """Subclasses give each line by ``render_line``; ``base`` is the style of the widget, ``area``
    its size.

    Textual works them out from all that the widget is in: once for each drawing, not for each line.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.base = Style()
        self.area = Size(0, 0)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of a region."""
        self.base, self.area = self.rich_style, self.size
        return super().render_lines(crop)

    def redraw(self, *lines: int) -> None:
        """Draws some lines of the screen anew, and not the others."""
        self.refresh(*(Region(0, y, self.size.width, 1) for y in lines))
