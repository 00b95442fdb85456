"""A second opinion on gradients: reverse mode over NumPy arrays in float64, as plainly as it goes.

Functions have the names that they have in ``tlmem``, so that one program runs on both. Nothing is
ever dropped, nothing is reused, every node keeps every value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

Array = np.ndarray
Rule = Callable[[Array], Sequence[Array | None]]
Axis = int | tuple[int, ...] | None
_numbers = count()


class Node:
    """A value, what it was computed from, and how a gradient goes back to that."""

    def __init__(self, value: Any, parents: Sequence[Node] = (), rule: Rule | None = None) -> None:
        self.value = np.asarray(value, np.float64)
        self.parents = tuple(parents)
        self.rule = rule
        self.number = next(_numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def __add__(self, other: Any) -> Node:
        right = node(other)
        return make(self.value + right.value, self, right, lambda g: (g, g))

    def __sub__(self, other: Any) -> Node:
        right = node(other)
        return make(self.value - right.value, self, right, lambda g: (g, -g))

    def __rsub__(self, other: Any) -> Node:
        return node(other) - self

    def __mul__(self, other: Any) -> Node:
        left, right = self.value, node(other).value
        return make(left * right, self, node(other), lambda g: (g * right, g * left))

    def __truediv__(self, other: Any) -> Node:
        left, right = self.value, node(other).value

        def rule(g: Array) -> Sequence[Array]:
            return g / right, -g * left / right**2

        return make(left / right, self, node(other), rule)

    def __pow__(self, power: float) -> Node:
        x = self.value
        return make(x**power, self, lambda g: (g * power * x ** (power - 1),))

    def __neg__(self) -> Node:
        return make(-self.value, self, lambda g: (-g,))

    def __matmul__(self, other: Node) -> Node:
        left, right = self.value, other.value

        def rule(g: Array) -> Sequence[Array]:
            return g @ right.swapaxes(-1, -2), left.swapaxes(-1, -2) @ g

        return make(left @ right, self, other, rule)

    def __getitem__(self, key: Any) -> Node:
        def rule(g: Array) -> Sequence[Array]:
            whole = np.zeros(self.shape)
            whole[key] = g
            return (whole,)

        return make(self.value[key], self, rule)

    def detach(self) -> Node:
        """The value alone."""
        return Node(self.value)


def node(value: Any) -> Node:
    """A constant, unless it is a node already."""
    return value if isinstance(value, Node) else Node(value)


def make(value: Any, *given: Any) -> Node:
    """A node of parents and, last, a rule; gradients are summed to the shapes of the parents."""
    *parents, rule = given

    def reduced(g: Array) -> list[Array]:
        return [fitting(each, parent.shape) for each, parent in zip(rule(g), parents, strict=True)]

    return Node(value, parents, reduced)


def fitting(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sums over axes along which a value of this shape was repeated."""
    front = tuple(range(gradient.ndim - len(shape)))
    gradient = gradient.sum(front)
    ones = tuple(at for at, length in enumerate(shape) if length == 1)
    return gradient.sum(ones, keepdims=True).reshape(shape)


def gradients(root: Node, seed: Any) -> dict[Node, Array]:
    """Of the root for every node that it was computed from."""
    found = {root: np.broadcast_to(np.asarray(seed, np.float64), root.shape)}
    waiting, known = [root], {root}
    while waiting:
        for parent in waiting.pop().parents:
            if parent not in known:
                known.add(parent)
                waiting.append(parent)
    for each in sorted(known, key=lambda one: -one.number):
        if each.rule is not None and each in found:
            for parent, gradient in zip(each.parents, each.rule(found[each]), strict=True):
                found[parent] = found.get(parent, np.zeros(parent.shape)) + gradient
    return found


# ---- element by element ----


def elementwise(value: Callable[[Array], Array], slope: Callable[[Array, Array], Array]) -> Any:
    """A function of one number; ``slope`` gets what went in and what came out."""

    def function(x: Node) -> Node:
        y = value(x.value)
        return make(y, x, lambda g: (g * slope(x.value, y),))

    return function


def bell(x: Array) -> Array:
    """The share of a normal distribution below x."""
    return np.vectorize(lambda each: 0.5 * (1 + math.erf(each / math.sqrt(2))), [float])(x)


exp = elementwise(np.exp, lambda x, y: y)
log = elementwise(np.log, lambda x, y: 1 / x)
sqrt = elementwise(np.sqrt, lambda x, y: 0.5 / y)
square = elementwise(np.square, lambda x, y: 2 * x)
sin = elementwise(np.sin, lambda x, y: np.cos(x))
cos = elementwise(np.cos, lambda x, y: -np.sin(x))
tanh = elementwise(np.tanh, lambda x, y: 1 - y * y)
sigmoid = elementwise(lambda x: 1 / (1 + np.exp(-x)), lambda x, y: y * (1 - y))
relu = elementwise(lambda x: np.maximum(x, 0), lambda x, y: x > 0)
absolute = elementwise(np.abs, lambda x, y: np.sign(x))
gelu = elementwise(
    lambda x: x * bell(x), lambda x, y: bell(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
)


def maximum(left: Node, right: Node) -> Node:
    """Values that are equal are not among what this is asked for."""
    more = left.value > right.value
    return make(np.maximum(left.value, right.value), left, right, lambda g: (g * more, g * ~more))


def minimum(left: Node, right: Node) -> Node:
    """Likewise."""
    less = left.value < right.value
    return make(np.minimum(left.value, right.value), left, right, lambda g: (g * less, g * ~less))


def where(chosen: Array, left: Node, right: Node) -> Node:
    """By a condition that is no node."""
    value = np.where(chosen, left.value, right.value)
    return make(value, left, right, lambda g: (g * chosen, g * ~chosen))


def clip(x: Node, low: float, high: float) -> Node:
    """Between two numbers; what equals one of them counts as inside."""
    inside = (x.value >= low) & (x.value <= high)
    return make(np.clip(x.value, low, high), x, lambda g: (g * inside,))


# ---- over axes ----


def widened(g: Array, like: Array, axis: Axis, keepdims: bool) -> Array:
    """A gradient of what was reduced, repeated along the axes that went."""
    if axis is not None and not keepdims:
        g = np.expand_dims(g, axis)
    return np.broadcast_to(g, like.shape)


def sum(x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
    value = x.value.sum(axis, keepdims=keepdims)
    return make(value, x, lambda g: (widened(g, x.value, axis, keepdims),))


def mean(x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
    total = sum(x, axis, keepdims)
    return total * (total.value.size / x.value.size)


def var(x: Node, axis: Axis = None, keepdims: bool = False, correction: int = 0) -> Node:
    assert correction == 0
    return mean(square(x - mean(x, axis, True)), axis, keepdims)


def max(x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
    """No value is there twice."""
    value = x.value.max(axis, keepdims=True)
    here = x.value == value
    whole = make(value, x, lambda g: (np.broadcast_to(g, x.shape) * here,))
    return sum(whole, axis, keepdims) if axis is not None else reshape(whole, ())


def min(x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
    return -max(-x, axis, keepdims)


def softmax(x: Node, axis: int) -> Node:
    return exp(log_softmax(x, axis))


def log_softmax(x: Node, axis: int) -> Node:
    shifted = x - x.value.max(axis, keepdims=True)
    return shifted - log(sum(exp(shifted), axis, True))


def cross_entropy(x: Node, target: Array) -> Node:
    """The mean over rows."""
    likely = log_softmax(x, 1)
    return -mean(likely[np.arange(len(target)), target])


def layer_norm(x: Node, axes: int) -> Node:
    last = tuple(range(x.value.ndim - axes, x.value.ndim))
    return (x - mean(x, last, True)) / sqrt(var(x, last, True) + 1e-5)


# ---- shapes and parts ----


def reshape(x: Node, shape: tuple[int, ...]) -> Node:
    return make(x.value.reshape(shape), x, lambda g: (g.reshape(x.shape),))


def permute(x: Node, order: tuple[int, ...]) -> Node:
    return make(x.value.transpose(order), x, lambda g: (g.transpose(np.argsort(order)),))


def broadcast_to(x: Node, shape: tuple[int, ...]) -> Node:
    return make(np.broadcast_to(x.value, shape), x, lambda g: (g,))


def concat(parts: Sequence[Node], axis: int) -> Node:
    ends = np.cumsum([part.shape[axis] for part in parts])[:-1]
    value = np.concatenate([part.value for part in parts], axis)
    return make(value, *parts, lambda g: np.split(g, ends, axis))


def stack(parts: Sequence[Node], axis: int) -> Node:
    value = np.stack([part.value for part in parts], axis)
    return make(value, *parts, lambda g: list(np.moveaxis(g, axis, 0)))


def take(x: Node, index: Array, axis: int) -> Node:
    """Places may come more than once."""
    places = (slice(None),) * axis + (index,)

    def rule(g: Array) -> Sequence[Array]:
        whole = np.zeros(x.shape)
        np.add.at(whole, places, g)
        return (whole,)

    return make(x.value[places], x, rule)


def gather(x: Node, axis: int, index: Array) -> Node:
    places = along(axis, index)

    def rule(g: Array) -> Sequence[Array]:
        whole = np.zeros(x.shape)
        np.add.at(whole, places, g)
        return (whole,)

    return make(x.value[places], x, rule)


def scatter_add(x: Node, axis: int, index: Array, source: Node) -> Node:
    places = along(axis, index)
    value = x.value.copy()
    np.add.at(value, places, source.value)
    return make(value, x, source, lambda g: (g, g[places]))


def along(axis: int, index: Array) -> tuple[Array, ...]:
    """Where each element of an index along an axis points."""
    places = list(np.indices(index.shape))
    places[axis] = index
    return tuple(places)
