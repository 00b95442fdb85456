"""A terminal that has ASCII alone: every other character becomes one that looks alike.

Covers: which terminals these are, and the filter that Textual puts behind everything that is drawn.
Pictures then fill their layers with signs, as without colours.
"""

from __future__ import annotations

import locale
import os

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

VARIABLE = "TLMEM_ASCII"
NO_BREAK = "\N{NO-BREAK SPACE}"
PAIRS = (
    "▁. ▂. ▃: ▄: ▅+ ▆+ ▇# █# ▉# ▊# ▋+ ▌| ▍| ▎| ▏| ▓% ▒= ░- ▪* ■* ❚| ▔- ▕| "
    "│| ┃| ─- ━- ├[ ┤] ┌+ ┐+ └+ ┘+ ╭+ ╮+ ╰+ ╯+ ┼+ ┬+ ┴+ ╵' ═= ≡= "
    "▶> ◀< ▸> ▾v ◆* ◇o •o ·. …. –- —- ‼! ✓+ ⏎< ⇥> ←< →> ↑^ ↓v ‹< ›> «< »> ×x ≈~ ±~ µu"
)
"""A character, and behind it the one that looks alike."""
LOOKS_LIKE = str.maketrans({pair[0]: pair[1] for pair in PAIRS.split()} | {NO_BREAK: " "})
OTHER = "?"


def wants_ascii() -> bool:
    """Whether the terminal shows ASCII alone: the variable says so, or the encoding of the locale.

    ``TLMEM_ASCII=0`` says that it does not.
    """
    said = os.environ.get(VARIABLE, "")
    if said:
        return said != "0"
    encoding = locale.getpreferredencoding(False).lower().replace("-", "")
    return encoding not in ("utf8", "utf16", "cp65001")


def as_ascii(text: str) -> str:
    """The same number of characters, all of them ASCII."""
    if text.isascii():
        return text
    alike = text.translate(LOOKS_LIKE)
    return alike if alike.isascii() else "".join(c if c.isascii() else OTHER for c in alike)


class AsciiFilter(LineFilter):
    """Draws lines with ASCII alone."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The line with other characters; wide ones become two."""
        made = []
        for text, style, control in segments:
            if control is None and text and not text.isascii():
                width = Segment(text).cell_length
                text = as_ascii(text)
                text += OTHER * (width - len(text))
            made.append(Segment(text, style, control))
        return made
