"""Sites: which lines and callers made the memory, as a tree or as flames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Input
from tlmem.dashboards.messages import RowChosen, RowSeen
from tlmem.dashboards.model.boxes import Box
from tlmem.dashboards.model.call_tree import (
    METRIC_WORDS,
    METRICS,
    CallNode,
    Options,
    Tree,
    build,
    flame,
    main_path,
    visible_rows,
)
from tlmem.dashboards.model.tables import sampled_heap
from tlmem.dashboards.model.time_axis import moment
from tlmem.dashboards.widgets.box_chart import BoxChart
from tlmem.dashboards.widgets.prompt import Prompt
from tlmem.dashboards.widgets.text_table import TextTable
from tlmem.dashboards.widgets.tree_list import TreeList
from tlmem.dashboards.widgets.words import Words

from tlmem.analysis.model import HeldHeap, StackFrame
from tlmem.analysis.places import in_full
from tlmem.units import format_bytes, format_count, format_seconds

from .page import Page


class SitesPage(Page):
    """A tree; ``v`` shows the same as flames."""

    NAME = "sites"
    ABOUT = "call sites as tree or flames, of this stretch of time"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "flames", "tree/flames"),
        Binding("b", "metric", "what"),
        Binding("t", "sort('total')", "by total"),
        Binding("o", "sort('own')", "own"),
        Binding("a", "sort('objects')", "objects"),
        Binding("r", "invert", "invert"),
        Binding("i", "imports", "imports"),
        Binding("u", "library", "library"),
        Binding("slash", "search", "search", key_display="/"),
        Binding("e", "expand", "open the largest path", show=False),
        Binding("right,l", "open", "open a frame", show=False),
        Binding("left,h", "close", "close a frame", show=False),
        Binding("less_than_sign", "thread(-1)", "thread before", show=False),
        Binding("greater_than_sign", "thread(1)", "next thread", show=False),
        Binding("m", "merge", "all threads", show=False),
        Binding("escape", "back", "end search or zoom", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.options = Options()
        self.metric = METRICS[0]
        self.order = "total"
        self.stacks: Tree | None = None
        self.opened: set[tuple[StackFrame, ...]] = set()
        self.zoomed: tuple[StackFrame, ...] = ()
        self._asked: object = None
        self._heap: tuple[HeldHeap, ...] = ()

    def body(self) -> Iterable[Widget]:
        """What is shown, the search, tree or flames, sampled heap, about the frame."""
        yield Words(id="shown")
        yield Prompt(placeholder="regular expression: FILE:LINE FUNCTION of any frame")
        with ContentSwitcher(initial="tree"):
            yield TreeList(id="tree")
            yield BoxChart(id="flames")
        yield TextTable("", id="sampled-heap")
        yield VerticalScroll(Words(id="about", keeps_room=True), id="about-box")

    def on_mount(self) -> None:
        """The tree has the keys; sampled heap is shown where there is any."""
        self.query_one("#sampled-heap").display = False
        self.query_one(TreeList).focus()

    def on_resize(self, event: events.Resize) -> None:
        """Flames are as wide as the screen."""
        if self.stacks is not None:
            self.call_after_refresh(self._show)

    # ---- computing ----

    def follow(self) -> None:
        """Builds the tree of this view in the background."""
        loaded, view, options = self.loaded, self.view, self.options
        self._show_heap()
        asked = (id(loaded), view.start_ns, view.stop_ns, view.thread, options)
        if asked == self._asked:
            return
        self._asked = asked
        self.query_one("#shown", Words).show_meanwhile("adding up …")
        self.in_background(lambda: build(loaded, view, options), self._built)

    def _built(self, tree: Tree) -> None:
        first = self.stacks is None
        self.stacks = tree
        self._show_heap()
        if tree.problem:
            self.notify(tree.problem, severity="warning", markup=False)
        if first:
            self._open_main_path()
        self._show()

    def _show(self) -> None:
        tree = self.stacks
        if tree is None:
            return
        nothing = "nothing was allocated here" + (" that matches" if self.options.pattern else "")
        if self.query_one(ContentSwitcher).current == "tree":
            self._show_rows(tree, nothing)
        else:
            self._show_flames(nothing)
        self.query_one("#shown", Words).show(self._heading())
        self._tell_about()

    def _show_heap(self) -> None:
        """Lines with sampled heap, of the whole recording: tree and flames have arrays alone."""
        found = self.loaded.analysis.heap if self.loaded.is_analysed else ()
        if found == self._heap:
            return
        self._heap = found
        table = self.query_one("#sampled-heap", TextTable)
        table.display = bool(found)
        table.show(sampled_heap(found))

    def _show_rows(self, tree: Tree, nothing: str) -> None:
        nodes = visible_rows(tree.root, self.opened, self.metric, self.order)
        rows = self.query_one(TreeList)
        rows.nothing = nothing
        whole = float(tree.root.total[METRICS.index(self.metric)])
        rows.show(nodes, self.opened, self.metric, whole, self._row_of(nodes, rows))

    def _show_flames(self, nothing: str) -> None:
        """Finds the boxes in the background: there may be thousands."""
        chart = self.query_one(BoxChart)
        chart.nothing = nothing
        node, metric, width = self._zoomed_node(), self.metric, chart.columns or self.size.width

        def show(boxes: list[Box]) -> None:
            chart.show(boxes)
            self._tell_about()

        self.in_background(lambda: flame(node, metric, width), show, "flames")

    def _row_of(self, nodes: list[CallNode], rows: TreeList) -> int:
        """Where the cursor's node is now."""
        before = rows.nodes[rows.row].path if rows.row < len(rows.nodes) else ()
        return next((n for n, node in enumerate(nodes) if node.path == before), 0)

    def _zoomed_node(self) -> CallNode:
        assert self.stacks is not None
        node = self.stacks.root
        for frame in self.zoomed:
            if frame not in node.children:
                break
            node = node.children[frame]
        return node

    def _open_main_path(self) -> None:
        if self.stacks is not None:
            self.opened |= {node.path for node in main_path(self.stacks.root, self.metric)}

    # ---- words ----

    def _heading(self) -> Text:
        assert self.stacks is not None
        words = [METRIC_WORDS[self.metric], f"by {self.order}"]
        if self.metric == METRICS[0]:
            words[0] += f" {self._alive_when()}"
        words += ["made: objects allocated"]
        words += ["callers below"] if self.options.inverted else []
        words += ["without imports"] if not self.options.imports else []
        words += ["user's frames only"] if not self.options.library else []
        words += [f"thread {self.view.thread}"] if self.view.thread is not None else []
        words += [f"/{self.options.pattern}/"] if self.options.pattern else []
        detail_ns = self.loaded.detail_from_ns
        by_objects = not self.view.is_whole or self.view.thread is not None
        if by_objects and self.view.start_ns < detail_ns:
            words.append(f"before {moment(detail_ns, 1e7)} only what stayed alive is known")
        if self.stacks.left_out:
            words.append(f"{format_count(self.stacks.left_out)} smallest stacks left out")
        return Text(" │ ".join(words))

    def _alive_when(self) -> str:
        """At which moment what is alive was: the overview has totals at exit, too."""
        if not self.view.is_whole:
            return f"at {moment(self.view.stop_ns, self.view.length_ns / 100)}"
        judged_ns = self.loaded.analysis.judged_ns
        return f"when judged, after {format_seconds(judged_ns / 1e9)}"

    @property
    def node(self) -> CallNode | None:
        """The frame under the cursor."""
        if self.query_one(ContentSwitcher).current == "tree":
            rows = self.query_one(TreeList)
            return rows.nodes[rows.row] if rows.row < len(rows.nodes) else None
        chart = self.query_one(BoxChart)
        return chart.boxes[chart.chosen].key if chart.boxes else None

    def _tell_about(self) -> None:
        node, text = self.node, Text()
        if node is not None:
            frame = node.frame
            if frame.file:
                text.append(f"{in_full(frame)}\n", style="bold")
                text.append(f"    {frame.text}\n" if frame.text else "")
            for name, total, own in zip(METRICS, node.total, node.own, strict=True):
                write = format_count if name == "objects" else format_bytes
                text.append(f"{METRIC_WORDS[name]}: {write(total)}")
                text.append(f" ({write(own)} own)  " if own else "  ")
        self.query_one("#about", Words).show(text, str(self.query_one(ContentSwitcher).current))

    # ---- keys ----

    def on_row_seen(self, message: RowSeen) -> None:
        """The words below follow the cursor."""
        self._tell_about()

    def on_row_chosen(self, message: RowChosen) -> None:
        """Opens or closes a frame of the tree; zooms into a flame."""
        node = self.node
        if node is None or message.of == "sampled-heap":
            return
        if self.query_one(ContentSwitcher).current == "flames":
            self.zoomed = node.path
        else:
            self.opened ^= {node.path}
        self._show()

    def action_open(self) -> None:
        """Opens the frame under the cursor; of one that is open, goes to its first callee."""
        node = self.node
        if node is not None and not node.leaf:
            if node.path in self.opened:
                self.query_one(TreeList).action_step(1)
            else:
                self.opened.add(node.path)
                self._show()

    def action_close(self) -> None:
        """Closes the frame under the cursor; of one that is closed, goes to its caller."""
        node, rows = self.node, self.query_one(TreeList)
        if node is None:
            return
        if node.path in self.opened and not node.leaf:
            self.opened.discard(node.path)
            self._show()
        elif node.parent is not None:
            rows.move(next((n for n, row in enumerate(rows.nodes) if row is node.parent), 0))

    def action_expand(self) -> None:
        """Opens, below the cursor, the callee with most, and so on."""
        node = self.node
        if node is not None:
            self.opened |= {node.path} | {below.path for below in main_path(node, self.metric)}
            self._show()

    def action_flames(self) -> None:
        """Tree, or flames."""
        switcher = self.query_one(ContentSwitcher)
        switcher.current = "flames" if switcher.current == "tree" else "tree"
        self.query_one(f"#{switcher.current}").focus()
        self._show()

    def action_metric(self) -> None:
        """Bytes alive, bytes made, objects, churn."""
        self.metric = METRICS[(METRICS.index(self.metric) + 1) % len(METRICS)]
        self._show()

    def action_sort(self, order: str) -> None:
        """By total, own or objects."""
        self.order = order
        self._show()

    def _rebuild(self, options: Options) -> None:
        self.options = options
        self.zoomed = ()
        self.follow()

    def action_invert(self) -> None:
        """Callers below what they call, and back."""
        self.stacks, self.opened = None, set()
        self._rebuild(replace(self.options, inverted=not self.options.inverted))

    def action_imports(self) -> None:
        """What import statements made, shown or hidden."""
        self._rebuild(replace(self.options, imports=not self.options.imports))

    def action_library(self) -> None:
        """Frames outside the user's code, shown or hidden."""
        self.stacks, self.opened = None, set()
        self._rebuild(replace(self.options, library=not self.options.library))

    def action_thread(self, step: int) -> None:
        """One thread alone."""
        threads = self.loaded.recording.threads.index.tolist()
        if not threads:
            return
        now = self.view.thread
        at = threads.index(now) + step if now in threads else 0 if step > 0 else -1
        self.change(replace(self.view, thread=threads[at % len(threads)]))

    def action_merge(self) -> None:
        """All threads together."""
        self.change(replace(self.view, thread=None))

    def action_search(self) -> None:
        """Shows the line to type in."""
        self.query_one(Prompt).ask()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Only stacks with a frame that matches."""
        self._rebuild(replace(self.options, pattern=event.value.strip()))
        self.query_one(f"#{self.query_one(ContentSwitcher).current}").focus()

    def action_back(self) -> None:
        """All stacks again; out of a zoomed flame."""
        prompt = self.query_one(Prompt)
        if prompt.display or self.options.pattern:
            prompt.leave()
            self._rebuild(replace(self.options, pattern=""))
            self.query_one(f"#{self.query_one(ContentSwitcher).current}").focus()
        elif self.zoomed:
            self.zoomed = self.zoomed[:-1]
            self._show()
