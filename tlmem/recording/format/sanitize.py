"""Texts from a recorded program, escaped: nothing in them can act on a terminal or a page.

Names in a recording may have any character: an escape sequence would move the cursor or set the
title of a terminal, a mark for writing from right to left would show a path backwards. Such
characters are written as Python would: ``\\x1b``, ``\\u202e``.

Covers: every text that comes from a recording, once, where it is read. Does not cover: what a form
of output needs beyond that, such as ``&lt;`` in HTML.
"""

from __future__ import annotations

import re

_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""Control characters, line ends and marks that change how what follows is shown."""


def plain(text: str, but: str = "") -> str:
    """The text with every acting character as an escape, those in ``but`` as they are."""
    if text.isprintable():
        return text
    return _ACTING.sub(lambda found: found[0] if found[0] in but else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
