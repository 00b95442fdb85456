"""What the timeline shows of one view: lanes of lines, or rows of objects, and one object's life.

Covers: everything that may take long. Does not cover: the index it is answered from (``lanes``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.ledger.history import History

from .lanes import LineLane
from .line_areas import LineAreas, line_areas
from .loading import FoundLine, Loaded
from .view import View


@dataclass(frozen=True)
class TimelineData:
    """What was computed for one view; either ``lines`` or ``rows`` of objects are on screen.

    ``rows`` are those of ``Loaded.lanes``; ``row`` is where the cursor of the list belongs.
    ``found`` are the lines of which something was found, by number.
    """

    view: View
    width: int
    areas: LineAreas
    lines: Sequence[LineLane] = ()
    rows: NDArray[np.int32] | None = None
    row: int = 0
    found: Mapping[int, FoundLine] = field(default_factory=dict)


def compute(
    loaded: Loaded,
    view: View,
    order: str,
    objects: bool,
    every: bool,
    width: int,
    known: History | None = None,
) -> tuple[TimelineData, History | None]:
    """What is on screen for a view, and the history of the selected object.

    Args:
        order: of objects, one of ``lanes.SORTS``.
        objects: rows are objects and not lines.
        every: objects of all lines, whichever is selected.
        width: columns on screen.
        known: a history that was read before; of another object it is read anew.
    """
    lanes, line = loaded.lanes, view.line
    life = _life(loaded, view, known)
    areas = line_areas(lanes, view, width)
    found = loaded.found_lines if loaded.is_analysed else {}
    if not objects:
        lines = lanes.lines(view, width)
        chosen = next((n for n, lane in enumerate(lines) if lane.line == line), 0)
        return TimelineData(view, width, areas, lines, None, chosen, found), life
    at = lanes.row_of(view.object) if view.object is not None else None
    if at is not None and line is None and not every:
        line = int(lanes.line[at])
    rows = lanes.objects(view, None if every else line, order)
    row = 0 if at is None else int(np.argmax(rows == at)) if len(rows) else 0
    return TimelineData(view, width, areas, (), rows, row, found), life


def _life(loaded: Loaded, view: View, known: History | None) -> History | None:
    if view.object is None or (known is not None and known.object == view.object):
        return known
    return loaded.history(view.object)
