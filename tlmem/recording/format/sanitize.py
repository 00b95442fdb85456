"""Texts from a recorded program, escaped: nothing in them can act on a terminal, a page or a log.

Names in a recording may have any character: an escape sequence would move the cursor or set the
title of a terminal, a mark for writing from right to left would show a path backwards. Such
characters are written as Python would: ``\\x1b``, ``\\u202e``. Logs of GitHub Actions and of Azure
Pipelines have commands: ``::error::`` at the begin of a line, ``##[error]`` and ``##vso[...]``
anywhere. Any word may come to the begin of a line, so ``::`` stays only behind what it joins.

Covers: every text that comes from a recording, once, where it is read. Does not cover: what a form
of output needs beyond that, such as ``&lt;`` in HTML.
"""

from __future__ import annotations

import re

_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Control characters, line ends, marks that change how what follows is shown, hidden letters."""
_COMMANDING = re.compile(r"(?<![\w>)\]}'\"]):(?=:)|(?<=#)#(?=\[|vso\[)", re.IGNORECASE)


def plain(text: str, but: str = "") -> str:
    """The text with every acting character as an escape, those in ``but`` as they are."""
    if not text.isprintable():
        text = _ACTING.sub(lambda found: found[0] if found[0] in but else _escaped(found[0]), text)
    if "::" in text or "##" in text:
        text = _COMMANDING.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return text


def whole(text: str, but: str = "") -> str:
    """The same, and halves of characters as escapes: tables of pandas do not take them.

    For all but names of files and what is in them: a path on Linux is bytes, not always UTF-8.
    """
    return plain(text, but).encode("utf-8", "backslashreplace").decode()


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
