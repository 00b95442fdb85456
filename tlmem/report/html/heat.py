"""The heat map of several processes: what a cell stands for is said, and a click opens its process.

Covers: the figure and what ``page.js`` reads of it. Does not cover: the picture (``plots``).
"""

from __future__ import annotations

from collections.abc import Sequence

from tlmem.report.html.figures import embedded
from tlmem.report.html.markup import Markup, data, element
from tlmem.report.plots.processes import CELLS, ProcessRow, end_of, heat_map

CAPTION = "Memory of every process over time, by colour"
MOST_DIGITS = 3
"""Behind the point, of seconds."""


def heat_figure(
    rows: Sequence[ProcessRow], targets: Sequence[str], what: str, since: str
) -> Markup | None:
    """The figure; None where no process has samples.

    Args:
        rows: the processes, from above.
        targets: the element of the page that is about each.
        what: the memory that is shown.
        since: what times count from.
    """
    drawn = heat_map(rows, what, since)
    if drawn is None:
        return None
    values = {
        "cells": f"heat-{CELLS}",
        "end_s": round(end_of(rows), MOST_DIGITS),
        "rows": [
            [row.name, target, round(row.begin_s, MOST_DIGITS), round(row.seconds, MOST_DIGITS)]
            for row, target in zip(rows, targets, strict=True)
        ],
        "curves": [row.curve for row in rows],
    }
    return element(
        "figure",
        Markup(embedded(drawn.decode(), "heat-", CAPTION)),
        element("p", CAPTION + ".", class_="reading quiet", aria_live="polite"),
        element("script", data(values), type="application/json"),
        class_="picture heat",
    )
