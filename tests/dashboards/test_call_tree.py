"""The tree of call sites and its boxes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tlmem.dashboards.model.call_tree import (
    METRICS,
    CallNode,
    Options,
    build,
    flame,
    main_path,
    site_sums,
    visible_rows,
)
from tlmem.dashboards.model.frame_table import NO_STACK, NONE, FrameTable
from tlmem.dashboards.model.loading import Loaded
from tlmem.dashboards.model.view import View

from tlmem.analysis.model import StackFrame

ALIVE, BYTES, OBJECTS, CHURN = range(len(METRICS))


@pytest.fixture
def whole(loaded: Loaded) -> View:
    return View.whole(loaded.end_ns)


def lines(nodes: list[CallNode]) -> list[str]:
    return [f"{'.' * node.depth}{node.frame.line}" for node in nodes]


def every_node(root: CallNode) -> list[CallNode]:
    found = [root]
    for child in root.children.values():
        found += every_node(child)
    return found


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("library", [False, True])
def test_a_frame_has_its_own_and_what_is_below(
    loaded: Loaded, whole: View, inverted: bool, library: bool
) -> None:
    root = build(loaded, whole, Options(inverted=inverted, library=library)).root
    totals = loaded.recording.totals

    assert root.total[BYTES] == totals.total_bytes
    assert root.total[OBJECTS] == totals.total_count
    assert root.total[ALIVE] == totals.current_bytes
    assert root.total[CHURN] == totals.freed_bytes
    for node in every_node(root):
        below = sum((child.total for child in node.children.values()), node.own.copy())
        assert below.tolist() == node.total.tolist()
        assert node.leaf == (not node.children) or node is root


@pytest.mark.parametrize("thread", [None, 1])
def test_of_all_of_a_recording_what_was_alive_when_it_was_judged_is_alive(
    story: Path, whole: View, thread: int | None
) -> None:
    unwound = Loaded(story)
    unwound.analyse()
    judged_ns = whole.end_ns // 2
    unwound.__dict__["analysis"] = replace(unwound.analysis, judged_ns=judged_ns)
    objects = unwound.recording.objects
    there = (objects.born_ns <= judged_ns) & ((objects.died_ns < 0) | (objects.died_ns > judged_ns))

    root = build(unwound, replace(whole, thread=thread), Options()).root

    assert root.total[ALIVE] == objects[there].size_bytes.sum()
    assert root.total[ALIVE] + root.total[CHURN] == root.total[BYTES]


def test_callers_stand_above_what_they_call(loaded: Loaded, whole: View) -> None:
    tree = build(loaded, whole, Options())
    everything = {node.path for node in every_node(tree.root)}

    assert lines(visible_rows(tree.root, everything, "alive", "total")) == [
        "40",
        ".12",
        ".10",
        ".15",
        "..70",
        ".16",
    ]
    assert lines(visible_rows(tree.root, set(), "alive", "total")) == ["40"]


def test_inverted_trees_begin_where_memory_is_made(loaded: Loaded, whole: View) -> None:
    tree = build(loaded, whole, Options(inverted=True))
    first = visible_rows(tree.root, set(), "bytes", "total")

    assert lines(first)[:2] == ["12", "70"]
    assert lines(list(first[1].children.values())) == [".15"]


def test_rows_end_even_where_no_stack_has_a_frame(loaded: Loaded) -> None:
    """A recording with ``--stack-depth 0`` ended the screen of lines with an IndexError."""
    rows = FrameTable(loaded.recording.sites).stacks(np.array([0, 0]), True, False)

    assert rows.tolist() == [[NO_STACK, NONE]] * 2


def test_library_frames_can_be_hidden(loaded: Loaded, whole: View) -> None:
    shown = every_node(build(loaded, whole, Options()).root)
    hidden = every_node(build(loaded, whole, Options(library=False)).root)

    assert {node.frame.function for node in shown} - {n.frame.function for n in hidden} == {"pad"}


def test_a_pattern_keeps_stacks_with_a_frame_that_matches(loaded: Loaded, whole: View) -> None:
    tree = build(loaded, whole, Options(pattern=r"PAD\.py:7\d"))

    assert [node.frame.line for node in every_node(tree.root)][1:] == [40, 15, 70]


def test_a_pattern_that_is_none_is_told(loaded: Loaded, whole: View) -> None:
    tree = build(loaded, whole, Options(pattern="("))

    assert "not a regular expression" in tree.problem
    assert tree.root.children == {}


def test_a_stretch_of_time_has_its_own_sums(loaded: Loaded, whole: View) -> None:
    part = whole.select(0, whole.end_ns // 2)
    objects = loaded.recording.objects
    made = objects[objects["born_ns"] <= part.stop_ns]
    _, sums = site_sums(loaded, part)

    assert sums[:, BYTES].sum() == made["size_bytes"].sum()
    assert sums[:, OBJECTS].sum() == len(made)
    gone = made[(made["died_ns"] >= 0) & (made["died_ns"] <= part.stop_ns)]
    assert sums[:, CHURN].sum() == gone["size_bytes"].sum()


def test_all_of_the_time_is_the_same_by_objects_and_by_sums(loaded: Loaded, whole: View) -> None:
    one = site_sums(loaded, replace(whole, thread=1))
    all_ = site_sums(loaded, whole)

    assert one[0].tolist() == all_[0].tolist()
    assert one[1].tolist() == all_[1].tolist()
    assert len(site_sums(loaded, replace(whole, thread=2))[0]) == 0


def test_the_main_path_leads_to_the_most(loaded: Loaded, whole: View) -> None:
    root = build(loaded, whole, Options()).root

    assert [node.frame.line for node in main_path(root, "alive")] == [40, 12]


def test_the_main_path_ends_where_next_to_nothing_is_left() -> None:
    chain = [CallNode(StackFrame("a.py", 0, "f"), -1, np.full(4, 1000.0), np.zeros(4))]
    for depth, total in enumerate((1000.0, 400.0, 9.0, 9.0)):
        below = CallNode(StackFrame("a.py", depth, "f"), depth, np.full(4, total), np.zeros(4))
        chain[-1].children = {below.frame: below}
        chain.append(below)

    assert list(main_path(chain[0], "bytes")) == chain[1:3]
    assert list(main_path(chain[2], "bytes")) == chain[3:]


def test_flames_are_as_wide_as_their_share(loaded: Loaded, whole: View) -> None:
    root = build(loaded, whole, Options()).root
    boxes = flame(root, "bytes", 100)
    width = {box.key.frame.line: box.right - box.left for box in boxes}

    assert (boxes[0].left, boxes[0].right, boxes[0].text) == (0, 100, "all")
    for box in boxes:
        share = box.key.total[BYTES] / root.total[BYTES] * 100
        assert abs(width[box.key.frame.line] - share) <= 1
    for row in {box.row for box in boxes}:
        mine = sorted((box.left, box.right) for box in boxes if box.row == row)
        assert all(a[1] <= b[0] for a, b in zip(mine, mine[1:], strict=False))


def test_nothing_makes_no_flame() -> None:
    empty = CallNode(StackFrame("", 0, ""), -1, np.zeros(4), np.zeros(4))

    assert flame(empty, "bytes", 100) == []


@pytest.mark.parametrize("width", [1, 7, 100, 1000])
def test_boxes_of_scopes_never_overlap_and_none_is_lost(
    loaded: Loaded, whole: View, width: int
) -> None:
    boxes = loaded.scopes.boxes(whole, width)

    assert sum(box.many for box in boxes) == len(loaded.recording.scopes)
    mine = sorted((box.left, box.right) for box in boxes)
    assert all(a[1] <= b[0] for a, b in zip(mine, mine[1:], strict=False))
    assert all(0 <= left < right <= width for left, right in mine)
