"""What kind of leak a growing line is, from who holds what it made.

A line that grows is an error by itself (``growing-site``); its class says why, and what to do. A
class is only ever said of what was found to grow, so it never cries wolf where nothing grows.

Covers: the list of classes, most telling first; one class for each line. Does not cover: what each
class asks for; see ``ownership``, ``tapes``, ``pools``, ``python_objects`` and ``torch_graphs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tlmem.analysis.growth.process_growth import Rise
from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.leaks.ownership import OWNERSHIP
from tlmem.analysis.leaks.pools import POOLS, buffers_never_hit
from tlmem.analysis.leaks.python_objects import PYTHON_LEAKS, reference_cycle
from tlmem.analysis.leaks.tapes import TAPES
from tlmem.analysis.leaks.torch_graphs import (
    GRAPH_LEAKS,
    TORCH_LEAKS,
    Graphs,
    graphs_of,
    is_torch,
    is_unheld,
)
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
    "kept-graph": "keep loss.item(), or loss.detach() where the tensor itself is needed",
    "graph-chain-grows": "detach what goes from step to step (state.detach()); sum up loss.item()",
    "retained-graph": "leave retain_graph off: add up losses; set gradients with a graph to None",
    "hook-keeps": "remove the hook (handle.remove()), or keep a detached output of the last step",
    "modules-grow": "reuse modules, or remove those that are not needed from their container",
    "optimizer-outlives-params": "give an optimizer's new modules an optimizer that goes with them",
    "shared-memory-kept": "keep a clone() of what is needed of a batch",
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
    graphs = graphs_of(recording, growing)
    classes = (class_of(line, graphs) for line in growing)
    found = [found for found in classes if found is not None]
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
