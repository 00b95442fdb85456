"""The tree of call sites as rows: numbers, a bar of the share, the frame below its callers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from tlmem.dashboards.model.bars import share_bar
from tlmem.dashboards.model.call_tree import METRICS, CallNode
from tlmem.dashboards.model.overview import tail

from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import place
from tlmem.units import format_bytes, format_count

from .rows import Rows

BAR = 8
NUMBERS = 2 + 3 * 10 + BAR + 2
"""Columns before the frame."""
LEAST_LETTERS = 3
"""Fewer letters of a function say nothing."""


class TreeList(Rows):
    """Rows of nodes; open ones have ``▾``, closed ones ``▸``, those without callees ``·``."""

    DEFAULT_CSS = "TreeList { height: 1fr; min-height: 4; }"
    heads_height = 1

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.nodes: Sequence[CallNode] = ()
        self.opened: set[tuple[StackFrame, ...]] = set()
        self.metric = METRICS[0]
        self.whole = 0.0
        self.nothing = ""

    def show(
        self,
        nodes: Sequence[CallNode],
        opened: set[tuple[StackFrame, ...]],
        metric: str,
        whole: float,
        row: int,
    ) -> None:
        """Shows other rows; ``whole`` is what a full bar stands for."""
        self.nodes, self.opened, self.metric, self.whole = nodes, opened, metric, whole
        self.set_rows(len(nodes), row)

    def render_line(self, y: int) -> Strip:
        """The heads, or one row."""
        base = self.base
        width = self.size.width
        if y == 0:
            heads = f"  {'total':>9} {'own':>9} {'made':>9} {'share':<{BAR}}  frame"
            segment = Segment(heads, base + Style(bold=True, underline=True))
            return Strip([segment]).adjust_cell_length(width, base)
        at, _ = self.row_at(y)
        if at is None:
            text = f"  {self.nothing}" if y == 1 and not self.count else ""
            return Strip([Segment(text, base)]).adjust_cell_length(width, base)
        node = self.nodes[at]
        style = base + Style(bold=node.users, dim=not node.users)
        if at == self.row:
            style += Style(reverse=True)
        sign = "▸" if at == self.row else " "
        segments = [
            Segment(f"{sign} {self._numbers(node)} ", style),
            Segment(self._bar(node), style),
            Segment(f"  {self._described(node, width - NUMBERS)}", style),
        ]
        return Strip(segments).adjust_cell_length(width, style)

    def _numbers(self, node: CallNode) -> str:
        at = METRICS.index(self.metric)
        write = format_count if self.metric == "objects" else format_bytes
        objects = node.total[METRICS.index("objects")]
        own = write(node.own[at]) if node.own[at] else "–"
        return f"{write(node.total[at]):>9} {own:>9} {format_count(objects):>9}"

    def _bar(self, node: CallNode) -> str:
        share = float(node.total[METRICS.index(self.metric)]) / self.whole if self.whole else 0.0
        return share_bar(share, BAR)

    def _described(self, node: CallNode, room: int) -> str:
        """Function and place; where both do not fit, the number of the line stays."""
        sign = "·" if node.leaf else "▾" if node.path in self.opened else "▸"
        where = place(node.frame) if node.frame.file else ""
        indent = "  " * min(node.depth, 20)
        text = f"{indent}{sign} {node.frame.function} {where}".rstrip()
        if len(text) <= room or not where:
            return text
        indent = indent[: max(room - 2 - len(where), 0) // 2]
        left = room - len(indent) - 4 - len(where)
        name = f"{node.frame.function[:left]}… " if left >= LEAST_LETTERS else ""
        return f"{indent}{sign} {name}{tail(where, max(room - len(indent) - 2, 1))}"
