"""Flames: which box of the tree of call sites is in which column, at any width."""

from __future__ import annotations

from tlmem.analysis.places import place

from .boxes import Box
from .frames_tree import METRICS, Node


def flame(root: Node, metric: str, width: int) -> list[Box]:
    """A node over its callees, each as wide as its share; what is narrower than a column is left
    out."""
    at = METRICS.index(metric)
    whole = float(root.total[at])
    if whole <= 0 or width <= 0:
        return []
    boxes: list[Box] = []
    waiting = [(root, 0, 0.0)]
    while waiting:
        node, row, begin = waiting.pop()
        size = float(node.total[at]) / whole * width
        left, right = round(begin), round(begin + size)
        if right <= left:
            continue
        boxes.append(Box(row, left, right, box_text(node), node))
        for child in sorted(node.children.values(), key=lambda child: -child.total[at]):
            waiting.append((child, row + 1, begin))
            begin += float(child.total[at]) / whole * width
    return boxes


def box_text(node: Node) -> str:
    """Function and line, or everything at the root."""
    if node.parent is None:
        return "all"
    if not node.frame.file:
        return node.frame.function
    return f"{node.frame.function} {place(node.frame)}"
