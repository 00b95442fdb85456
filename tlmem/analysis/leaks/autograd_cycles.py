"""Python objects that only autograd nodes hold, and that keep tensors with a graph of their own.

A node of PyTorch's graph may hold Python objects: what a hook of saved tensors packed, the context
of a custom Function, hooks of a tensor. If such an object keeps a tensor that was computed from the
node, the two hold each other. The way back leads through C++, which Python's collector does not
see, so it frees neither. The same holds of a parameter whose gradient has a graph.

Covers: who such objects are, as the latest snapshot that saw many of them did. Does not cover:
which lines they explain; see ``torch_graphs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.holders.snapshots import GRAPH, NATIVE, Step, split_words, steps_of
from tlmem.analysis.rules import RULES

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

SPEAKS_FROM = 0.5
"""The latest snapshot that saw at least this share of the most such tensors any of them saw counts.
"""
CONTEXT = "torch.autograd.function."
"""Module of the contexts of custom Functions."""
HOOKS = "collections.OrderedDict"
"""Type of the dict in which a tensor has its hooks."""
OF_CONTEXTS = (
    "pass tensors to ctx.save_for_backward() instead of setting them as attributes of ctx, and let "
    "nothing in ctx refer to what is computed from the output"
)
OF_CREATED_GRAPHS = (
    "take such gradients with torch.autograd.grad(loss, parameters, create_graph=True), which "
    "leaves .grad alone; or set each .grad to None after its last use"
)
OF_TENSOR_HOOKS = (
    "let a tensor's hook refer to no tensor that is computed from it, or only to its detach()"
)
OF_PACK_HOOKS = "let the pack hook of saved_tensors_hooks keep tensor.detach(), not the tensor"


@dataclass(frozen=True)
class Cycle:
    """Tensors that such objects keep: ``count`` of them, in the words of their chain.

    ``node`` is their graph's node, empty of gradients, whose graph a snapshot does not tell.
    ``fix`` is what to do about it. ``proven`` says that the snapshot, at ``seen_ns``, saw no tensor
    with a graph that the program reaches: then no other graph holds these either.
    """

    name: str
    node: str
    count: int
    fix: str
    seen_ns: int
    proven: bool


def autograd_cycles(recording: Recording) -> tuple[Cycle, ...]:
    """The objects that hold many tensors so, most tensors first; none where it is not known.

    A snapshot that did not come to its end may have left out who reaches them.
    """
    table = recording.holdings
    if not len(table):
        return ()
    of_key = steps_of(recording.holding_steps)
    keys = zip(table["snapshot"].tolist(), table["group"].tolist(), strict=True)
    steps = [of_key.get(key, ()) for key in keys]
    native = (table["root"] == NATIVE).to_numpy(bool)
    with_graph = np.array([bool(chain) and chain[-1].kind == GRAPH for chain in steps], bool)
    fits = native & np.array([keeps_graph(chain) or keeps_gradient(chain) for chain in steps], bool)
    counts = np.where(fits, table["arrays"].to_numpy(np.int64), 0)
    _, which = np.unique(table["snapshot"].to_numpy(np.int64), return_inverse=True)
    which = which.reshape(-1)
    seen = np.bincount(which, weights=counts)
    now = which == np.flatnonzero(seen >= SPEAKS_FROM * seen.max())[-1]
    if not table["complete"].to_numpy(bool)[now].all():
        return ()
    proven = not (now & with_graph & ~native).any()
    rows = np.flatnonzero(now & (counts >= RULES.fewest_survivors))
    words, times = table["words"].tolist(), table["time_ns"].tolist()
    return tuple(
        Cycle(
            *split_words(words[row]),
            count=int(counts[row]),
            fix=fix_of_cycle(steps[row]),
            seen_ns=int(times[row]),
            proven=proven,
        )
        for row in rows[np.argsort(-counts[rows], kind="stable")].tolist()
        if proven or with_graph[row]
    )


def keeps_graph(steps: Sequence[Step]) -> bool:
    """Whether a Python object keeps a tensor with its graph.

    A tensor that a graph saved may be such an object by itself, which shows no cycle.
    """
    return len(steps) > len(("tensor", "graph")) and steps[-1].kind == GRAPH


def keeps_gradient(steps: Sequence[Step]) -> bool:
    """Whether it is a parameter, and what it keeps its gradient."""
    return len(steps) > 1 and steps[1].edge == "grad"


def fix_of_cycle(steps: Sequence[Step]) -> str:
    """What to do about a cycle, from the object that native code holds."""
    root = steps[0].type
    if root.startswith(CONTEXT):
        return OF_CONTEXTS
    if keeps_gradient(steps):
        return OF_CREATED_GRAPHS
    return OF_TENSOR_HOOKS if root == HOOKS else OF_PACK_HOOKS
