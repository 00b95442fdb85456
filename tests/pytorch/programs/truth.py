"""The truth about the tensors of a process, taken inside it: which storage is what at a moment.

A program calls ``take`` where a test wants to compare. Where the environment variable
``TLMEM_TEST_TRUTH`` names a folder, each call appends one line of JSON to ``PID.jsonl`` in it and
records ``tlmem.mark(moment, index)``, so that a reader finds the same moment in a recording.
Without the variable ``take`` does nothing.

Nothing here makes, keeps or materializes a storage: addresses come from ``_data_address`` (which
leaves copy-on-write storages alone), saved tensors from ``SavedTensor.data`` (which does not run
unpack hooks, so checkpointed parts are not computed again).
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import torch

VARIABLE = "TLMEM_TEST_TRUTH"
ROLES = (
    "weights",
    "buffers",
    "gradients",
    "optimizer state",
    "inputs",
    "activations",
    "variable",
    "other",
)
"""In the order in which they name a storage that has several."""
OWN_REFERENCES = 3
"""That ``python_tensors`` has: in its list, its variable and the call that counts them."""


def take(
    moment: str,
    index: int,
    *,
    modules: Iterable[torch.nn.Module] = (),
    optimizers: Iterable[torch.optim.Optimizer] = (),
    roots: Iterable[torch.Tensor] = (),
    inputs: Iterable[torch.Tensor] = (),
) -> None:
    """Writes down every storage that a tensor of this process lies in, and its roles.

    Weights are the parameters of ``modules`` and every other ``nn.Parameter``, gradients the
    ``.grad`` of any tensor, activations what the nodes of an autograd graph saved, inputs the
    batches and every leaf that asks for a gradient without being a parameter. A *variable* is a
    tensor that Python refers to; a storage with several names has several roles.

    Args:
        moment, index: the mark, such as ``("forward", 3)``.
        modules: whose parameters are weights and whose buffers are buffers.
        optimizers: whose state is optimizer state.
        roots: tensors from which the graph is walked, beside all others that Python knows of.
        inputs: batches that the program gave to the model.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    mark(moment, index)
    found: dict[int, tuple[int, set[str]]] = {}
    nodes = [tensor.grad_fn for tensor in roots]
    for tensor, is_variable in python_tensors():
        add(found, "variable" if is_variable else "other", tensor)
        nodes.append(tensor.grad_fn)
        if tensor.is_leaf and tensor.grad is not None:
            add(found, "gradients", tensor.grad)
        if issubclass(type(tensor), torch.nn.Parameter):
            add(found, "weights", tensor)
        elif tensor.is_leaf and tensor.requires_grad:
            add(found, "inputs", tensor)
    del tensor
    for module in modules:
        for parameter in module.parameters():
            add(found, "weights", parameter)
        for buffer in module.buffers():
            add(found, "buffers", buffer)
    for optimizer in optimizers:
        for state in optimizer.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor):
                    add(found, "optimizer state", value)
    for batch in inputs:
        add(found, "inputs", batch)
    for saved in saved_by_graph(nodes):
        add(found, "activations", saved)
    storages = {
        str(address): [size, [role for role in ROLES if role in roles]]
        for address, (size, roles) in found.items()
    }
    line = {"moment": moment, "index": index, "pid": os.getpid(), "storages": storages}
    with open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def mark(moment: str, index: int) -> None:
    """Marks the moment in the recording, if there is one."""
    try:
        import tlmem
    except ImportError:
        return
    tlmem.mark(moment, index)


def add(found: dict[int, tuple[int, set[str]]], role: str, tensor: torch.Tensor) -> None:
    """Adds the storages of a tensor: those of indices and values where it is sparse."""
    for part in parts_of(tensor):
        try:
            address = torch._C._data_address(part)
            size = part.untyped_storage().nbytes()
        except (RuntimeError, NotImplementedError):
            continue  # it has no storage: meta tensors and wrappers
        if address and size:
            found.setdefault(address, (size, set()))[1].add(role)


def parts_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors with a storage that a tensor consists of."""
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.is_quantized and tensor.qscheme() is torch.per_channel_affine:
        return [tensor, tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()]
    return [tensor]


def saved_by_graph(roots: Iterable[Any]) -> Iterator[torch.Tensor]:
    """What the nodes saved that can be reached from some; freed ones have nothing."""
    seen, pending = set(), [root for root in roots if root is not None]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        pending += [after for after, _ in node.next_functions if after is not None]
        for name in dir(type(node)):
            if name.startswith("_raw_saved_"):
                yield from saved_tensors(node, name)
        for value in getattr(node, "__dict__", {}).values():
            if isinstance(value, torch.Tensor):
                yield value


def saved_tensors(node: Any, name: str) -> Iterator[torch.Tensor]:
    """What one ``_raw_saved_`` attribute of a node holds."""
    try:
        saved = getattr(node, name)
    except RuntimeError:
        return  # freed by the backward pass
    for one in saved if isinstance(saved, (tuple, list)) else [saved]:
        data = getattr(one, "data", None)
        if isinstance(data, torch.Tensor):
            yield data


def python_tensors() -> Iterator[tuple[torch.Tensor, bool]]:
    """Every tensor that has a Python object, and whether Python refers to it.

    The object of a tensor may outlive the last reference in Python: a tensor of C++, such as one
    that the graph saved, keeps it for its return. It counts as one reference to the object.
    """
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor):
            known = sys.getrefcount(thing) - OWN_REFERENCES - (thing._use_count() > 1)
            yield thing, known > 0
