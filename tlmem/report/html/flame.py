"""The flame graph of a page: which stacks memory came from, to be zoomed, searched, turned round.

Covers: the data and the controls; ``page.js`` draws it. Does not cover: the tree (``stacks``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlmem.recording.reader import Recording
from tlmem.report.html.markup import Markup, data, element
from tlmem.report.moments import Moments, moments_data, moments_of
from tlmem.report.site_sums import StackTree, stack_tree
from tlmem.units import format_seconds

SMALLEST_SHARE = 0.0002
"""Frames with less than this of everything would be narrower than a dot."""
MEASURES = (
    "bytes alive when judged",
    "objects alive when judged",
    "bytes allocated in total",
    "objects allocated in total",
)
"""Names of ``stacks.MEASURES``."""


BETWEEN = ("bytes alive at the moment chosen", "objects alive at the moment chosen")
"""Measures of the slider, after ``MEASURES``."""


def flame_graph(recording: Recording, moment_ns: int | None = None) -> Markup:
    """The section of one recording; hidden until the script of the page draws it."""
    tree = stack_tree(recording, moment_ns).without_small(SMALLEST_SHARE)
    return _flame(tree, MEASURES, moments_of(recording, tree))


def flame_of(tree: StackTree, measures: Sequence[str]) -> Markup:
    """The same of a tree of other measures, without a slider: bytes and a count take turns.

    The first that is not empty is shown at first; bytes alive come before bytes in all.
    """
    return _flame(tree.without_small(SMALLEST_SHARE), measures, None)


def _flame(tree: StackTree, measures: Sequence[str], moments: Moments | None) -> Markup:
    order = [*range(0, len(measures), 4), *range(2, len(measures), 4)]
    first = next((number for number in order if tree.values[number].any()), 2)
    options = [
        element("option", name, value=number, selected=number == first)
        for number, name in enumerate((*measures, *(BETWEEN if moments else ())))
    ]
    values = flame_data(tree)
    if moments:
        values["moments"] = moments_data(moments)
    tools = element(
        "div",
        element("label", "Width: ", element("select", *options)),
        element("label", element("input", type="checkbox"), " turned round: allocating line below"),
        element("label", "Find: ", element("input", type="search", placeholder="name or pattern")),
        element("button", "Show all", type="button", class_="reset"),
        element("span", class_="shown quiet", role="status"),
        class_="tools",
    )
    return Markup(
        element(
            "div",
            tools,
            slider(moments) if moments else None,
            element("div", class_="about quiet", aria_live="polite"),
            element("div", class_="boxes", role="group", aria_label="flame graph"),
            element("script", data(values), type="application/json"),
            class_="flame",
            hidden=True,
        )
        + element(
            "noscript",
            element("p", "The flame graph needs JavaScript; the table of lines does not."),
        )
    )


def slider(moments: Moments) -> Markup:
    """Two moments: what was allocated after the first and was alive at the second."""
    last, start = len(moments.times_ns) - 1, float(moments.times_ns[0]) / 1e9
    return element(
        "div",
        element(
            "label",
            "Alive at ",
            element("input", type="range", class_="at", min=0, max=last, value=last),
        ),
        element(
            "label",
            "allocated after ",
            element("input", type="range", class_="since", min=0, max=last, value=0),
        ),
        element("output", class_="when"),
        element("span", f"Before {format_seconds(start)} only sums are known.", class_="quiet")
        if start
        else None,
        class_="tools moments",
    )


def flame_data(tree: StackTree) -> dict[str, Any]:
    """What ``page.js`` reads.

    Returns:
        ``frames``: function and place of each different frame; ``nodes``: for each node of the
        tree the number of its caller or -1, its frame, 1 for the user's code, and its own values.
    """
    known: dict[tuple[str, str], int] = {}
    nodes = []
    columns = tree.values.T.tolist()
    for parent, frame, own, values in zip(
        tree.parent.tolist(), tree.frames, tree.own.tolist(), columns, strict=True
    ):
        place = f"{frame.file}:{frame.line}" if frame.file else ""
        number = known.setdefault((frame.function or "?", place), len(known))
        nodes.append([parent, number, int(own), *values])
    return {"frames": [list(frame) for frame in known], "nodes": nodes}
