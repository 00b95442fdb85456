"""A few lines of text; the screen is laid out anew only when there are more or fewer of them."""

from __future__ import annotations

from rich.text import Text
from textual.visual import VisualType
from textual.widgets import Static


class Words(Static):
    """Text as wide as there is room for it."""

    def show(self, content: VisualType) -> None:
        """Shows another text; the same one again costs nothing."""
        before = self.content
        if isinstance(before, Text) and isinstance(content, Text) and before == content:
            return
        self.update(content, layout=False)
        self.clear_cached_dimensions()
        size = self.content_size
        if not size or self.get_content_height(size, size, size.width) != size.height:
            self.refresh(layout=True)
