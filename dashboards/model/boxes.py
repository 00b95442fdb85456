"""Boxes beside and below each other: which box is in which column of which row.

Does not cover: which boxes there are (``call_tree``, ``scopes``), colours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Box:
    """One box: its row, its first column and the one after its last, what is written into it.

    ``key`` is what is meant: a node of a tree, or the row of a table; ``many`` boxes too narrow for
    a column of their own are drawn as one.
    """

    row: int
    left: int
    right: int
    text: str
    key: Any
    many: int = 1
