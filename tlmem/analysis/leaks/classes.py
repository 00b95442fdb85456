"""What kind of leak a growing line is, from who holds what it made.

A line that grows is an error by itself (``growing-site``); its class says why, and what to do. A
class is only ever said of what was found to grow, so it never cries wolf where nothing grows.

Covers: the list of classes, most telling first; one class for each line. Does not cover: what each
class asks for; see ``ownership``, ``tapes``, ``pools`` and ``python_objects``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tlmem.analysis.growth.process_growth import Rise
from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.leaks.ownership import OWNERSHIP
from tlmem.analysis.leaks.pools import POOLS, buffers_never_hit
from tlmem.analysis.leaks.python_objects import PYTHON_LEAKS
from tlmem.analysis.leaks.tapes import TAPES
from tlmem.analysis.model import Finding

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

FIXES = {
    "over-retained": "release what you acquire in the same function, in a finally block",
    "floating": "register what a function promotes in the scope of its caller",
    "field-forgotten": "release the struct, or register it in a scope that ends",
    "view-pins-base": "keep a copy of the part that is needed instead of a view",
    "reference-cycle": "break the cycle (weakref.ref for the back reference), or let gc run",
    "scope-not-left": "enter a scope for each step, in a with statement that every path leaves",
    "cache-only-grows": "limit the container's size, or remove entries that are no longer needed",
    "tape-not-released": "keep loss.item() or loss.detach() instead of loss",
    "saved-outlives-backward": "leave retain_graph off, or drop the loss after its last pass",
    "grads-outlive-step": "clear gradients in each step; keep numbers, not their tensors",
    "pool-never-hits": "request the shape and dtype that was put there, or limit the pool",
}
"""Every class, and what to do about it."""


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
    found = [found for found in map(class_of, growing) if found is not None]
    if any(rise.kind == "driver" for rise in rises):
        found += buffers_never_hit(recording)
    return found


def class_of(line: Survivors) -> Finding | None:
    """The first class that fits."""
    return next(
        (found for say in (*TAPES, *POOLS, *PYTHON_LEAKS, *OWNERSHIP) if (found := say(line))), None
    )
