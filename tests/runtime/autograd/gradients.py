"""Gradients of one op at random inputs, and what they should be by finite differences.

Covers: random shapes that broadcast, values away from kinks, inputs that are views of their leaf,
gradients of the output that are expanded. Which ops, and at which inputs: ``gradient_table.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tlmem

Array = np.ndarray
Shape = tuple[int, ...]
STEP = 1e-5
"""Of the differences: what is cut off is about its square, what is rounded about 1e-16 over it."""
APART = 0.05
"""How far values are from each other, and from 0, where an op has a kink: much more than STEP."""


MOST_ELEMENTS = 20_000


@dataclass(frozen=True)
class Trial:
    """Inputs of one call: arrays that want a gradient, then whatever else the call takes."""

    arrays: tuple[Array, ...]
    others: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        """NumPy gives numbers where an array has no axes."""
        object.__setattr__(self, "arrays", tuple(np.asarray(each) for each in self.arrays))


@dataclass(frozen=True)
class Op:
    """One op: how tlmem and PyTorch call it, and how inputs for it are made.

    ``ours`` and ``theirs`` take the tensors of a trial and its others; ``theirs`` is None when
    PyTorch has nothing like it. ``records`` are the names its records have on the tape.
    """

    name: str
    make: Callable[[Random], Trial]
    ours: Callable[..., tlmem.Tensor]
    theirs: Callable[..., Any] | None
    records: frozenset[str] = field(default_factory=frozenset)


class Random:
    """Shapes and values; the same for the same seed. No axis has more elements than ``longest``."""

    def __init__(self, *seed: int, longest: int = 4) -> None:
        self.numbers = np.random.default_rng(seed)
        self.longest = longest

    def length(self, least: int = 1) -> int:
        """Of an axis that has elements."""
        return least + self.below(self.longest)

    def below(self, most: int) -> int:
        """From 0 up to but not including ``most``."""
        return int(self.numbers.integers(most))

    def chance(self, share: float) -> bool:
        """True as often as the share says."""
        return bool(self.numbers.random() < share)

    def choice(self, among: Sequence[Any]) -> Any:
        """One of them."""
        return among[self.below(len(among))]

    def lengths(self, axes: int, least: int = 1) -> list[int]:
        """Of all axes, with MOST_ELEMENTS or fewer in all."""
        found = [self.length(least) for _ in range(axes)]
        while np.prod(found) > MOST_ELEMENTS:
            found[int(np.argmax(found))] //= 2
        return found

    def shape(self, least: int = 0, most: int = 4, *, empty: bool = True) -> Shape:
        """Axes of some elements each; one time in twelve one has none."""
        lengths = self.lengths(least + self.below(most - least + 1))
        if empty and lengths and self.chance(1 / 12):
            lengths[self.below(len(lengths))] = 0
        return tuple(lengths)

    def narrowed(self, shape: Shape) -> Shape:
        """A shape that broadcasts to it: fewer axes in front, some of length 1."""
        kept = shape[self.below(len(shape) + 1) if self.chance(0.3) else 0 :]
        return tuple(1 if length and self.chance(0.25) else length for length in kept)

    def pair(self, most: int = 4) -> tuple[Shape, Shape]:
        """Two shapes that broadcast with each other; equal ones half of the time."""
        shape = self.shape(most=most)
        if self.chance(0.5):
            return shape, shape
        narrow = self.narrowed(shape)
        return (shape, narrow) if self.chance(0.5) else (narrow, shape)

    def axes(self, axes: int) -> int | tuple[int, ...] | None:
        """Some axes, as an ``axis`` argument, some of them counted from the end."""
        if not axes or self.chance(0.25):
            return None
        if self.chance(0.5):
            return self.below(2 * axes) - axes
        chosen = self.numbers.permutation(axes)[: 1 + self.below(axes)]
        return tuple(int(axis) - axes * self.below(2) for axis in chosen)

    def normal(self, shape: Shape) -> Array:
        """Mean 0, variance 1."""
        return self.numbers.standard_normal(shape)

    def positive(self, shape: Shape, least: float = 0.3) -> Array:
        """Between ``least`` and 2 more than that."""
        return least + 2 * self.numbers.random(shape)

    def away_from_zero(self, shape: Shape) -> Array:
        """Of either sign."""
        return self.positive(shape) * self.numbers.choice([-1.0, 1.0], shape)

    def apart(self, shape: Shape, shift: float = 0.0) -> Array:
        """All different, and different from those with another shift (of a third of APART)."""
        count = int(np.prod(shape))
        places = self.numbers.permutation(count) - count // 2
        return (places.reshape(shape) + 1 / 6 + shift) * 3 * APART

    def indices(self, most: int, shape: Shape) -> Array:
        """From 0 up to but not including ``most``."""
        return self.numbers.integers(0, most, shape) if most else np.zeros(shape, np.int64)


Layout = Callable[[Array], tuple[Array, Callable[[Any], Any], Callable[[Array], Array]]]


def dense(array: Array) -> Any:
    """The input is the leaf itself."""
    return array, lambda leaf: leaf, lambda gradient: gradient


def transposed(array: Array) -> Any:
    """The input is the leaf with its axes the other way round."""
    return array.T.copy(), lambda leaf: leaf.transpose(), lambda gradient: gradient.T


def sliced(array: Array) -> Any:
    """The input is every other element along each axis, from the second on."""
    whole = np.full([2 * length + 1 for length in array.shape], 7.0)
    part = (slice(1, None, 2),) * array.ndim
    whole[part] = array

    def scattered(gradient: Array) -> Array:
        zeros = np.zeros(whole.shape)
        zeros[part] = gradient
        return zeros

    return whole, lambda leaf: leaf[part] if part else leaf, scattered


def backwards(array: Array) -> Any:
    """The input is the leaf from the end to the beginning along each axis: negative steps."""
    part = (slice(None, None, -1),) * array.ndim
    return array[part].copy(), lambda leaf: leaf[part] if part else leaf, lambda g: g[part]


LAYOUTS: dict[str, Layout] = {
    "dense": dense,
    "transposed": transposed,
    "sliced": sliced,
    "backwards": backwards,
}


def value(op: Op, trial: Trial, arrays: Sequence[Array]) -> Array:
    """What the op gives, without a record."""
    with tlmem.no_grad():
        tensors = [tlmem.tensor(each, None) for each in arrays]
        return np.array(op.ours(*tensors, *trial.others).numpy())


def differences(op: Op, trial: Trial, seed: Array) -> list[Array]:
    """The gradient of ``sum(output * seed)`` for each array, by central differences."""
    found = []
    for at, array in enumerate(trial.arrays):
        gradient = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            sums = []
            for step in (STEP, -STEP):
                moved = [each.copy() for each in trial.arrays]
                moved[at][place] += step
                sums.append(float(np.sum(value(op, trial, moved) * seed)))
            gradient[place] = (sums[0] - sums[1]) / (2 * STEP)
        found.append(gradient)
    return found


def difference_along(op: Op, trial: Trial, seed: Array, ways: Sequence[Array]) -> float:
    """How fast ``sum(output * seed)`` grows when every array goes its way at once."""
    sums = []
    for step in (STEP, -STEP):
        moved = [array + step * way for array, way in zip(trial.arrays, ways, strict=True)]
        sums.append(float(np.sum(value(op, trial, moved) * seed)))
    return (sums[0] - sums[1]) / (2 * STEP)


def gradients(
    op: Op,
    trial: Trial,
    seed: Array | None,
    layout: Layout = dense,
    dtype: str = "float64",
) -> tuple[Array, list[Array]]:
    """The output, and the gradients of the trial's leaves, zeros where there is none.

    Without a seed the gradient of the output is an expanded one: that of its sum.
    """
    leaves, inputs = [], []
    for array in trial.arrays:
        whole, part, _ = layout(array)
        leaves.append(tlmem.tensor(whole, dtype, requires_grad=True))
        inputs.append(part(leaves[-1]))
    output = op.ours(*inputs, *trial.others)
    if seed is None:
        tlmem.sum(output).backward()
    else:
        output.backward(tlmem.tensor(seed, dtype))
    found = []
    for leaf in leaves:
        given = leaf.grad
        assert given is None or (given.shape, given.dtype) == (leaf.shape, dtype)
        found.append(np.zeros(leaf.shape) if given is None else np.array(given.numpy()))
    return np.array(output.detach().numpy()), found


def close(actual: Array, expected: Array, tolerance: float) -> bool:
    """Within ``tolerance`` of the larger of 1 and the largest expected number."""
    largest = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    return bool(np.all(np.abs(actual - expected) <= tolerance * largest))


def shown(op: Op, trial: Trial) -> str:
    """For the message of an assertion."""
    shapes = ", ".join(str(each.shape) for each in trial.arrays)
    others = ", ".join(repr(each) for each in trial.others if not isinstance(each, Array))
    return f"{op.name} of {shapes}" + (f" with {others}" if others else "")
