"""What every line of the program made and holds, in exact sums.

Covers: one row for each blamed line, for tables and exports. Does not cover: whether lines grow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlmem.analysis.model import Frame
from tlmem.analysis.places import Places
from tlmem.recording.reader import Recording
from tlmem.report.site_sums import values_of_sites


@dataclass(frozen=True)
class LineTotals:
    """One blamed line: what it holds when the program is judged, and what it made in all."""

    frame: Frame
    alive_bytes: int
    alive_count: int
    total_bytes: int
    total_count: int


def line_totals(
    recording: Recording, most: int | None = None, moment_ns: int | None = None
) -> list[LineTotals]:
    """The lines of a recording, most bytes alive first, then most bytes in all.

    Args:
        recording: whose events may be folded; sums are exact all the same.
        most: so many rows; None: all.
        moment_ns: what counts as alive; None: the moment at which the report judges the program.
    """
    places = Places.of(recording)
    values = values_of_sites(recording, len(places.group_of_site), moment_ns)
    sums = np.zeros((len(values), places.count), np.int64)
    for measure in range(len(values)):
        np.add.at(sums[measure], places.group_of_site, values[measure])
    order = np.lexsort((-sums[3], -sums[2], -sums[0]))
    order = order[sums[3][order] > 0][:most]
    return [LineTotals(places.frames[group], *sums[:, group].tolist()) for group in order.tolist()]
