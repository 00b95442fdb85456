"""Who held, at one moment, what was alive then, line by line.

Covers: holders of a runtime, as the ledger has them at that moment, and chains of Python objects,
of the snapshot that is nearest to it. Does not cover: what was alive (``explained``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.holders.runtime_holders import holders_in, together
from tlmem.analysis.holders.snapshots import Snapshots, holders_of
from tlmem.analysis.model import Holder
from tlmem.analysis.places import Places
from tlmem.events import FIRST_RUNTIME_DEVICE

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Ints = NDArray[np.int64]


def holders_by_line(
    recording: Recording,
    places: Places,
    snapshots: Snapshots,
    objects: tuple[Ints, NDArray[np.uint8], Ints],
    lines: list[int],
    time_ns: int,
) -> dict[int, tuple[Holder, ...]]:
    """The holders of each of some lines, most objects first; lines without a known one are left
    out.

    Args:
        objects: what was alive: numbers (rising), devices, and the line of each.
        lines: those that are asked about.
        time_ns: the moment.
    """
    number, device, line = objects
    asked = np.isin(line, lines)
    number, device, line = number[asked], device[asked], line[asked]
    runtime = device >= FIRST_RUNTIME_DEVICE
    held = recording.held_at(number[runtime], time_ns) if runtime.any() else None
    of_row = line[:0]
    if held is not None:
        of_row = line[np.searchsorted(number, held["object"].to_numpy(np.int64))]
    found = {}
    for group in lines:
        mine = line == group
        named: tuple[Holder, ...] = ()
        if held is not None and (mine & runtime).any():
            there = int((mine & runtime).sum())
            named = holders_in(held[of_row == group], there, places)
        python = holders_of(snapshots.chains_of(number[mine], time_ns)) if snapshots else ()
        if named or python:
            found[group] = together(named, python)
    return found
