"""What kind of leak a growing line is, from who holds what it made.

A line that grows is an error by itself (``growing-site``); its class says why, and what to do. A
class is only ever said of what was found to grow, so it never cries wolf where nothing grows.

Covers: the list of classes, most telling first; one class for each line. Does not cover: what each
class asks for; see ``ownership``, ``tapes``, ``pools``, ``python_objects`` and ``torch_graphs``;
what to do about it; see ``cures``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tlmem.analysis.growth.process_growth import Rise
from tlmem.analysis.holders.survivors import Survivors, is_torch
from tlmem.analysis.leaks.cures import with_fix
from tlmem.analysis.leaks.loader_workers import in_worker
from tlmem.analysis.leaks.ownership import OWNERSHIP
from tlmem.analysis.leaks.pools import POOLS, buffers_never_hit
from tlmem.analysis.leaks.python_objects import PYTHON_LEAKS, reference_cycle
from tlmem.analysis.leaks.tapes import TAPES
from tlmem.analysis.leaks.torch_graphs import (
    GRAPH_LEAKS,
    TORCH_LEAKS,
    Graphs,
    graphs_of,
    is_unheld,
)
from tlmem.analysis.model import Finding

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording


def class_findings(
    recording: Recording, growing: list[Survivors], rises: Sequence[Rise]
) -> list[Finding]:
    """One finding for each growing line whose class is known.

    None when events are lost or missing: then who holds what is not known for sure.

    Args:
        recording: what is judged.
        growing: its growing lines.
        rises: growth outside arrays that these lines do not bring with them.
    """
    if recording.lost_events or recording.missing_events:
        return []
    graphs = graphs_of(recording, growing)
    classes = ((class_of(line, graphs), line) for line in growing)
    found = [
        with_fix(in_worker(cause, recording), line) for cause, line in classes if cause is not None
    ]
    if any(rise.kind == "driver" for rise in rises):
        found += buffers_never_hit(recording)
    return found


def class_of(line: Survivors, graphs: Graphs | None = None) -> Finding | None:
    """The first class that fits.

    Args:
        graphs: what keeps autograd graphs, where growing lines are of tensors of PyTorch.
    """
    if graphs is not None:
        if (found := of_torch(line, graphs)) is not None:
            return found
        if is_torch(line) and is_unheld(line, graphs):
            return None  # something other than a Python container holds them
    return next(
        (found for say in (*TAPES, *POOLS, *PYTHON_LEAKS, *OWNERSHIP) if (found := say(line))), None
    )


def of_torch(line: Survivors, graphs: Graphs) -> Finding | None:
    """The first class of PyTorch's that fits: of arrays, what graphs keep that no object holds."""
    if is_torch(line):
        if (found := reference_cycle(line)) is not None:
            return found
        return next((found for say in TORCH_LEAKS if (found := say(line, graphs))), None)
    if line.lives.runtime[line.rows].any() or not is_unheld(line, graphs):
        return None
    return next((found for say in GRAPH_LEAKS if (found := say(line, graphs))), None)
