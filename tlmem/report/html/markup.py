"""HTML that cannot be broken by what stands in it: every text is escaped unless it is ``Markup``.

Covers: making elements. Does not cover: the elements of a report; see ``sections``.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

EMPTY = frozenset(("br", "input", "meta"))
"""Elements without content and end tag."""


class Markup(str):
    """A text that is HTML already."""


def element(name: str, /, *children: str | None, **attributes: str | float | bool | None) -> Markup:
    """An element; texts in it are escaped, and None and False among its parts are left out.

    Attributes are named with a ``_`` for each ``-`` and may end in one, as ``class_`` must.
    """
    words = [name]
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(label)
        elif value is not None and value is not False:
            words.append(f'{label}="{escape(str(value))}"')
    if name in EMPTY:
        return Markup(f"<{' '.join(words)}>")
    return Markup(f"<{' '.join(words)}>{joined(*children)}</{name}>")


def joined(*children: str | None) -> Markup:
    """Parts one after the other; those that are not ``Markup`` are escaped."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else escape(child)
            for child in children
            if child is not None
        )
    )


def data(values: Any) -> Markup:
    """Values for a script of the page, as JSON that cannot end the element around it."""
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
