"""A few lines of text; the screen is laid out anew only when there are more or fewer of them."""

from __future__ import annotations

from rich.text import Text
from textual.geometry import Size
from textual.visual import VisualType
from textual.widgets import Static


class Words(Static):
    """Text as wide as there is room for it.

    Args:
        keeps_room: whether the lines that a longer text took stay the text's while texts are of one
            kind and width, so that what is around it does not move, nor is laid out anew.
    """

    def __init__(self, *, id: str | None = None, keeps_room: bool = False) -> None:
        super().__init__(id=id)
        self._keeps_room = keeps_room
        self._kind = ""
        self._room = self._room_width = 0

    def show(self, content: VisualType, kind: str = "") -> None:
        """Shows another text; the same one again costs nothing."""
        if self._replace(content):
            self._fit(kind)

    def show_meanwhile(self, content: VisualType) -> None:
        """Shows a text in the room of the one before it, while the next one is computed."""
        self._replace(content)

    def _replace(self, content: VisualType) -> bool:
        """Shows another text; returns False for the same one."""
        before = self.content
        if isinstance(before, Text) and isinstance(content, Text) and before == content:
            return False
        self.update(content, layout=False)
        return True

    def _fit(self, kind: str) -> None:
        """Lays the screen out anew when the text needs more lines than it has, or fewer."""
        self.clear_cached_dimensions()
        room = self._room
        if kind != self._kind:
            self._kind, self._room = kind, 0
        size = self.content_size
        if not size or self.get_content_height(size, size, size.width) != room:
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Lines of the text, or of a longer one before it."""
        height = super().get_content_height(container, viewport, width)
        keeps = self._keeps_room and width == self._room_width
        self._room = max(height, self._room) if keeps else height
        self._room_width = width
        return self._room
