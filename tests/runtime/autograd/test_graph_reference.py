"""The reference that random programs are held against gives the gradients of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from runtime.autograd.gradients import Random, close
from runtime.autograd.graph_reference import gradients
from runtime.autograd.graphs import Reference, evaluate, program, text

torch = pytest.importorskip("torch", reason="compares with PyTorch: pip install tlmem[torch]")

PROGRAMS = 60
Axis = int | tuple[int, ...] | None


def every(x: Any, axis: Axis) -> Any:
    """The axes of a reduction, in PyTorch's words."""
    return tuple(range(x.ndim)) if axis is None else axis


class Words:
    """The words of PyTorch, where they are not those of tlmem."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def leaf(self, array: np.ndarray, wanted: bool) -> Any:
        self.leaves.append(torch.from_numpy(array.copy()).requires_grad_(wanted))
        return self.leaves[-1]

    def index(self, array: np.ndarray) -> Any:
        return torch.from_numpy(np.array(array, order="C"))

    def sum(self, x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
        return x.sum(every(x, axis), keepdim=keepdims) if x.ndim else x * 1.0

    def mean(self, x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
        return x.mean(every(x, axis), keepdim=keepdims) if x.ndim else x * 1.0

    def var(self, x: Any, axis: Axis, keepdims: bool, correction: int) -> Any:
        if not x.ndim:
            return x * 0.0
        return x.var(every(x, axis), correction=correction, keepdim=keepdims)

    def max(self, x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
        return x.amax(every(x, axis), keepdim=keepdims) if x.ndim else x * 1.0

    def min(self, x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
        return x.amin(every(x, axis), keepdim=keepdims) if x.ndim else x * 1.0

    def gelu(self, x: Any) -> Any:
        return torch.nn.functional.gelu(x)

    def cross_entropy(self, x: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(x, target)

    def layer_norm(self, x: Any, axes: int) -> Any:
        return torch.nn.functional.layer_norm(x, x.shape[x.ndim - axes :])

    def take(self, x: Any, index: Any, axis: int) -> Any:
        return x.index_select(axis, index)

    def scatter_add(self, x: Any, axis: int, index: Any, source: Any) -> Any:
        return x.scatter_add(axis, index, source)

    def concat(self, parts: Sequence[Any], axis: int) -> Any:
        return torch.cat(list(parts), axis)

    def cube(self, x: Any) -> Any:
        return x * x * x

    def swing(self, x: Any, y: Any) -> Any:
        return x * torch.sin(y)

    def fuse(self, x: Any) -> Any:
        return x * 1.0

    def checkpoint(self, function: Callable[..., Any], *inputs: Any) -> Any:
        return function(*inputs)

    def without_gradient(self, function: Callable[..., Any], *inputs: Any) -> Any:
        with torch.no_grad():
            return function(*inputs)


class Kept(Reference):
    """The reference, with its leaves in the order in which they are made."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []

    def leaf(self, array: np.ndarray, wanted: bool) -> Any:
        self.leaves.append(super().leaf(array, wanted))
        return self.leaves[-1]


def has_backward_slices(steps: Sequence[Any]) -> bool:
    """PyTorch has no negative steps."""
    return any(
        (isinstance(each, tuple) and any(getattr(part, "step", 0) == -1 for part in each))
        or has_backward_slices(step.inside)
        for step in steps
        for each in (*step.others, None)
    )


def test_reference_gives_the_gradients_of_pytorch() -> None:
    compared = 0
    for seed in range(PROGRAMS):
        steps = program(Random(seed, 8), 30)
        if has_backward_slices(steps):
            continue
        ours, theirs = Kept(), Words()
        root, other = evaluate(ours, steps), evaluate(theirs, steps)
        assert close(other.detach().numpy(), root.value, 1e-10), text(steps)
        if not other.requires_grad:
            continue
        other.backward()
        found = gradients(root, 1.0)
        for leaf, tensor in zip(ours.leaves, theirs.leaves, strict=True):
            if tensor.requires_grad:
                expected = np.zeros(leaf.shape) if tensor.grad is None else tensor.grad.numpy()
                actual = found.get(leaf, np.zeros(leaf.shape))
                assert close(actual, expected, 1e-9), text(steps)
                compared += 1
    assert compared > PROGRAMS
