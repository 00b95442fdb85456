"""What the timeline shows of one view: lanes of lines, or rows of objects, and one object's life.

Covers: everything that may take long. Does not cover: the index it is answered from (``lanes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.ledger.history import History

from .lanes import LineLane
from .loading import Loaded
from .view import View


@dataclass(frozen=True)
class TimelineData:
    """What was computed for one view; either ``lines`` or ``rows`` of objects are on screen.

    ``rows`` are those of ``Loaded.lanes``; ``row`` is where the cursor of the list belongs.
    """

    view: View
    width: int
    total: NDArray[np.float64]
    lines: Sequence[LineLane] = ()
    rows: NDArray[np.int32] | None = None
    row: int = 0


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
    total = lanes.total(view, width)
    if not objects:
        lines = lanes.lines(view, width)
        chosen = next((n for n, lane in enumerate(lines) if lane.line == line), 0)
        return TimelineData(view, width, total, lines, None, chosen), life
    at = lanes.row_of(view.object) if view.object is not None else None
    if at is not None and line is None and not every:
        line = int(lanes.line[at])
    rows = lanes.objects(view, None if every else line, order)
    row = 0 if at is None else int(np.argmax(rows == at)) if len(rows) else 0
    return TimelineData(view, width, total, (), rows, row), life


def _life(loaded: Loaded, view: View, known: History | None) -> History | None:
    if view.object is None or (known is not None and known.object == view.object):
        return known
    return loaded.history(view.object)
