"""Every differentiable op: how it is called here and in PyTorch, and at which inputs.

Inputs keep away from kinks, where a gradient is a convention (``test_gradients_torch`` has those).
PyTorch is looked up in ``torch()`` only when a test compares with it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from runtime.autograd.gradients import Array, Op, Random, Trial

import tlmem

Make = Callable[[Random], Trial]


def torch() -> Any:
    """PyTorch, which may not be installed."""
    return importlib.import_module("torch")


def functional() -> Any:
    """Its functions of neural networks."""
    return importlib.import_module("torch.nn.functional")


def tensor(array: Array) -> Any:
    """An index or a condition, for PyTorch."""
    return torch().from_numpy(np.array(array, order="C"))


# ---- element by element ----


def one(values: Callable[[Random, tuple[int, ...]], Array]) -> Make:
    """One input of any shape."""
    return lambda random: Trial((values(random, random.shape()),))


def two(
    left: Callable[[Random, tuple[int, ...]], Array],
    right: Callable[[Random, tuple[int, ...]], Array],
) -> Make:
    """Two inputs that broadcast."""

    def make(random: Random) -> Trial:
        shapes = random.pair()
        return Trial((left(random, shapes[0]), right(random, shapes[1])))

    return make


def scaled(values: Callable[..., Array], factor: float) -> Callable[..., Array]:
    """The same, larger or smaller."""
    return lambda random, shape: values(random, shape) * factor


def apart_by(shift: float) -> Callable[[Random, tuple[int, ...]], Array]:
    """All different, also from those with another shift."""
    return lambda random, shape: random.apart(shape, shift)


def with_number(make: Make, numbers: tuple[float, ...]) -> Make:
    """One input and a number."""
    return lambda random: Trial(make(random).arrays, (random.choice(numbers),))


def condition(random: Random) -> Trial:
    """Two inputs and a condition, all of which broadcast."""
    shapes = random.pair()
    whole = np.broadcast_shapes(*shapes)
    chosen = random.numbers.random(random.narrowed(whole)) < 0.5
    return Trial((random.normal(shapes[0]), random.normal(shapes[1])), (chosen,))


def bounds(random: Random) -> Trial:
    """Values on both sides of two bounds."""
    array = random.apart(random.shape())
    return Trial((array,), (-0.4, 0.2))


def alike(name: str, make: Make, call: Callable[..., Any], records: set[str]) -> Op:
    """An op that is called the same way here and there."""
    return Op(name, make, call, call, frozenset(records))


ELEMENTWISE = [
    Op("add", two(Random.normal, Random.normal), tlmem.add, lambda a, b: a + b),
    Op("subtract", two(Random.normal, Random.normal), tlmem.subtract, lambda a, b: a - b),
    Op("multiply", two(Random.normal, Random.normal), tlmem.multiply, lambda a, b: a * b),
    Op("divide", two(Random.normal, Random.away_from_zero), tlmem.divide, lambda a, b: a / b),
    Op("power", two(Random.positive, Random.normal), tlmem.power, lambda a, b: a**b),
    alike(
        "power of a number",
        with_number(one(Random.positive), (2, 3.0, 0.5, -1.0, 1, 0, 2.5)),
        lambda a, n: a**n,
        {"power"},
    ),
    alike(
        "number to the power",
        with_number(one(Random.normal), (2.0, 0.5)),
        lambda a, n: n**a,
        {"power"},
    ),
    alike(
        "number minus",
        with_number(one(Random.normal), (2, -1.5)),
        lambda a, n: n - a * n,
        {"subtract", "multiply"},
    ),
    alike(
        "number over",
        with_number(one(Random.away_from_zero), (2, -1.5)),
        lambda a, n: n / a + a / n,
        {"divide", "add"},
    ),
    Op("maximum", two(apart_by(0), apart_by(1 / 3)), tlmem.maximum, lambda a, b: a.maximum(b)),
    Op("minimum", two(apart_by(0), apart_by(1 / 3)), tlmem.minimum, lambda a, b: a.minimum(b)),
    Op("negative", one(Random.normal), tlmem.negative, lambda a: -a),
    Op("absolute", one(apart_by(0)), tlmem.absolute, lambda a: a.abs()),
    Op("square", one(Random.normal), tlmem.square, lambda a: a.square()),
    Op("sqrt", one(Random.positive), tlmem.sqrt, lambda a: a.sqrt()),
    Op("exp", one(Random.normal), tlmem.exp, lambda a: a.exp()),
    Op("log", one(Random.positive), tlmem.log, lambda a: a.log()),
    Op("sin", one(scaled(Random.normal, 3)), tlmem.sin, lambda a: a.sin()),
    Op("cos", one(scaled(Random.normal, 3)), tlmem.cos, lambda a: a.cos()),
    Op("tanh", one(Random.normal), tlmem.tanh, lambda a: a.tanh()),
    Op("sigmoid", one(scaled(Random.normal, 3)), tlmem.sigmoid, lambda a: a.sigmoid()),
    Op("relu", one(apart_by(0)), tlmem.relu, lambda a: a.relu()),
    Op("gelu", one(scaled(Random.normal, 2)), tlmem.gelu, lambda a: functional().gelu(a)),
    Op(
        "where",
        condition,
        lambda a, b, chosen: tlmem.where(tlmem.tensor(chosen, None), a, b),
        lambda a, b, chosen: torch().where(tensor(chosen), a, b),
    ),
    Op(
        "softplus",
        one(scaled(Random.normal, 3)),
        tlmem.softplus,
        lambda a: functional().softplus(a),
    ),
    Op("dropout", one(Random.normal), lambda a: tlmem.dropout(a, 0.4, seed=7), None),
    Op("clip", bounds, tlmem.clip, lambda a, low, high: a.clip(low, high)),
]


# ---- over axes ----


def over_axes(values: Callable[[Random, tuple[int, ...]], Array], *, empty: bool = True) -> Make:
    """One input, the axes, and whether they stay as axes of length 1."""

    def make(random: Random) -> Trial:
        array = values(random, random.shape(empty=empty))
        return Trial((array,), (random.axes(array.ndim), random.chance(0.5)))

    return make


def one_axis(random: Random) -> Trial:
    """One input of at least one axis, and an axis."""
    array = random.normal(random.shape(1))
    return Trial((array,), (random.below(2 * array.ndim) - array.ndim,))


def spread(random: Random) -> Trial:
    """As ``over_axes``, with two elements or more, so that there is a spread."""
    array = random.apart(tuple(random.lengths(1 + random.below(3), 2)))
    return Trial((array,), (random.axes(array.ndim), random.chance(0.5), random.below(2)))


def axes(array: Any, axis: Any) -> tuple[int, ...]:
    """For PyTorch, which has no name for all of them everywhere."""
    given = range(array.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(given)


def classes(random: Random) -> Trial:
    """Logits of some rows, and the right class of each."""
    rows, count = random.length(), random.length(2)
    return Trial((random.normal((rows, count)) * 2,), (random.indices(count, (rows,)),))


def targets(values: Array) -> tlmem.Tensor:
    """Indices, as a tensor."""
    return tlmem.tensor(values, "int64")


def normalised(random: Random) -> Trial:
    """An input, weight and bias of its last axes, and how many those are."""
    shape = tuple(random.lengths(1 + random.below(3), 3))
    count = 1 + random.below(len(shape))
    tail = shape[-count:]
    arrays = (random.normal(shape) * 2 + 1, random.normal(tail), random.normal(tail))
    return Trial(arrays, (count,))


def normalised_alone(random: Random) -> Trial:
    """The same without weight and bias."""
    trial = normalised(random)
    return Trial(trial.arrays[:1], trial.others)


def variance(name: str) -> Callable[..., tlmem.Tensor]:
    """``var`` or ``std``, called with what the count of elements is less by."""
    function = getattr(tlmem, name)
    return lambda a, axis, keep, less: function(a, axis=axis, keepdims=keep, correction=less)


def reduction(name: str) -> Callable[..., tlmem.Tensor]:
    """``sum`` and its like, called with axes and keepdims."""
    function = getattr(tlmem, name)
    return lambda a, axis, keepdims: function(a, axis=axis, keepdims=keepdims)


OVER_AXES = [
    Op(
        "sum",
        over_axes(Random.normal),
        reduction("sum"),
        lambda a, axis, keep: a.sum(axes(a, axis), keepdim=keep) if a.ndim else a + 0,
    ),
    Op(
        "mean",
        over_axes(Random.normal, empty=False),
        reduction("mean"),
        lambda a, axis, keep: a.mean(axes(a, axis), keepdim=keep) if a.ndim else a + 0,
    ),
    Op(
        "var",
        spread,
        variance("var"),
        lambda a, axis, keep, less: a.var(axes(a, axis), correction=less, keepdim=keep),
    ),
    Op(
        "std",
        spread,
        variance("std"),
        lambda a, axis, keep, less: a.std(axes(a, axis), correction=less, keepdim=keep),
        frozenset({"var", "sqrt"}),
    ),
    Op(
        "max",
        over_axes(apart_by(0), empty=False),
        reduction("max"),
        lambda a, axis, keep: a.amax(axes(a, axis), keepdim=keep) if a.ndim else a + 0,
    ),
    Op(
        "min",
        over_axes(apart_by(0), empty=False),
        reduction("min"),
        lambda a, axis, keep: a.amin(axes(a, axis), keepdim=keep) if a.ndim else a + 0,
    ),
    Op("softmax", one_axis, tlmem.softmax, lambda a, axis: a.softmax(axis)),
    Op("cumsum", one_axis, tlmem.cumsum, lambda a, axis: a.cumsum(axis)),
    Op("log_softmax", one_axis, tlmem.log_softmax, lambda a, axis: a.log_softmax(axis)),
    *(
        Op(
            f"cross_entropy, {how}",
            classes,
            lambda a, target, how=how: tlmem.cross_entropy(a, targets(target), reduction=how),
            lambda a, target, how=how: functional().cross_entropy(a, tensor(target), reduction=how),
            frozenset({"cross_entropy"}),
        )
        for how in ("mean", "sum", "none")
    ),
    Op(
        "layer_norm",
        normalised,
        lambda a, w, b, count: tlmem.layer_norm(a, w, b, axes=count),
        lambda a, w, b, count: functional().layer_norm(a, w.shape, w, b),
    ),
    Op(
        "layer_norm without weight",
        normalised_alone,
        lambda a, count: tlmem.layer_norm(a, axes=count),
        lambda a, count: functional().layer_norm(a, a.shape[a.ndim - count :]),
        frozenset({"layer_norm"}),
    ),
]


# ---- products ----


def factors(random: Random) -> Trial:
    """Matrices or vectors, with axes in front of them that broadcast."""
    n, k, m = (random.length() for _ in range(3))
    if random.chance(0.1):
        k = 0
    left, right = random.pair(2)
    if random.chance(0.6):
        left, right = random.choice([((), ()), (left, ()), ((), right)])
    left, right = (*left, n, k), (*right, k, m)
    if random.chance(0.15):
        left = left[-1:]
    if random.chance(0.15):
        right = right[-2:-1]
    return Trial((random.normal(left), random.normal(right)))


def vectors(random: Random) -> Trial:
    """Two of one length."""
    length = random.length() - 1
    return Trial((random.normal((length,)), random.normal((length,))))


def layer(random: Random) -> Trial:
    """Rows, a weight and a bias."""
    n, k, m = (random.length() for _ in range(3))
    return Trial((random.normal((n, k)), random.normal((k, m)), random.normal((m,))))


PRODUCTS = [
    Op("linear", layer, tlmem.linear, lambda a, w, b: functional().linear(a, w.T, b)),
    Op("matmul", factors, tlmem.matmul, lambda a, b: a @ b),
    Op("dot", vectors, tlmem.dot, lambda a, b: a @ b, frozenset({"matmul"})),
]


# ---- shapes, parts, joins ----


def reshaped(random: Random) -> Trial:
    """A shape and another one of as many elements."""
    lengths = random.lengths(random.below(5))
    there = [int(each) for each in random.numbers.permutation(lengths)]
    if len(there) > 1 and random.chance(0.5):
        there[:2] = [there[0] * there[1]]
    if there and random.chance(0.3):
        there[random.below(len(there))] = -1
    return Trial((random.normal(tuple(lengths)),), (tuple(there),))


def permuted(random: Random) -> Trial:
    """Axes in another order."""
    array = random.normal(random.shape())
    return Trial((array,), (tuple(int(each) for each in random.numbers.permutation(array.ndim)),))


def exchanged(random: Random) -> Trial:
    """Two axes."""
    array = random.normal(random.shape(1))
    return Trial((array,), (random.below(array.ndim), random.below(array.ndim)))


def widened(random: Random) -> Trial:
    """A shape that it broadcasts to."""
    shape = random.shape()
    return Trial((random.normal(random.narrowed(shape)),), (shape,))


def with_one(random: Random) -> Trial:
    """An axis of length 1 somewhere."""
    shape = list(random.shape(most=3))
    at = random.below(len(shape) + 1)
    shape.insert(at, 1)
    return Trial((random.normal(tuple(shape)),), (at,))


def part_of(random: Random, length: int) -> Any:
    """A slice or an index."""
    if length and random.chance(0.25):
        return random.below(2 * length) - length
    first, last = sorted(random.below(length + 1) for _ in range(2))
    step = random.choice([1, 1, 2, 3])
    if random.chance(0.25):
        return slice(last - length - 1 if last else None, None if not first else first - 1, -step)
    return slice(first, last, step)


def cut(random: Random) -> Trial:
    """Slices and indices of the first axes, perhaps an ellipsis or a new axis."""
    array = random.normal(random.shape())
    key = [part_of(random, length) for length in array.shape[: random.below(array.ndim + 1)]]
    if random.chance(0.2):
        key.insert(random.below(len(key) + 1), None)
    if random.chance(0.2):
        key.append(...)
    return Trial((array,), (tuple(key),))


def taken(random: Random) -> Trial:
    """Indices along an axis, some more than once."""
    array = random.normal(random.shape(1))
    axis = random.below(array.ndim)
    length = array.shape[axis]
    return Trial((array,), (random.indices(length, (random.length() - 1 if length else 0,)), axis))


def gathered(random: Random) -> Trial:
    """An index for each element of a result that is as long as the tensor elsewhere."""
    array = random.normal(random.shape(1, empty=False))
    axis = random.below(array.ndim)
    shape = list(array.shape)
    shape[axis] = random.length()
    return Trial((array,), (axis, random.indices(array.shape[axis], tuple(shape))))


def scattered(random: Random) -> Trial:
    """A source, and where along an axis each of its elements is added."""
    trial = gathered(random)
    source = random.normal(trial.others[1].shape)
    return Trial((*trial.arrays, source), trial.others)


def looked_up(random: Random) -> Trial:
    """Rows of a table, by number."""
    rows = random.length()
    table = random.normal((rows, random.length()))
    return Trial((table,), (random.indices(rows, random.shape(0, 2, empty=False)),))


def joined(random: Random) -> Trial:
    """Tensors that differ in one axis."""
    shape = list(random.shape(1, empty=False))
    axis = random.below(len(shape))
    arrays = []
    for _ in range(1 + random.below(4)):
        shape[axis] = random.length() - 1
        arrays.append(random.normal(tuple(shape)))
    return Trial(tuple(arrays), (axis - len(shape) * random.below(2),))


def piled(random: Random) -> Trial:
    """Tensors of one shape."""
    shape = random.shape(most=3)
    arrays = tuple(random.normal(shape) for _ in range(1 + random.below(4)))
    return Trial(arrays, (random.below(len(shape) + 1),))


def many(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of tensors and an axis, called with tensors and an axis."""
    return lambda *given: function(list(given[:-1]), given[-1])


def sliced_as_numpy(a: Any, key: tuple[Any, ...]) -> Any:
    """PyTorch has no negative steps: the axes that need one are turned round afterwards."""
    places = tensor(np.arange(math.prod(a.shape)).reshape(tuple(a.shape))[key].copy())
    return a.reshape(-1)[places]


PARTS = [
    Op("reshape", reshaped, lambda a, to: a.reshape(to), lambda a, to: a.reshape(to)),
    Op(
        "transpose",
        permuted,
        lambda a, order: a.transpose(order) if order else a.transpose(),
        lambda a, order: a.permute(order),
    ),
    Op(
        "permute",
        permuted,
        lambda a, order: tlmem.permute(a, order),
        lambda a, order: a.permute(order),
        frozenset({"transpose"}),
    ),
    Op("swapaxes", exchanged, lambda a, i, j: a.swapaxes(i, j), lambda a, i, j: a.swapaxes(i, j)),
    Op("broadcast_to", widened, tlmem.broadcast_to, lambda a, to: a.broadcast_to(to)),
    Op("squeeze", with_one, lambda a, at: a.squeeze(at), lambda a, at: a.squeeze(at)),
    Op("unsqueeze", with_one, lambda a, at: a.unsqueeze(at), lambda a, at: a.unsqueeze(at)),
    Op("slice", cut, lambda a, key: a[key] if key else a[...], sliced_as_numpy),
    Op(
        "take",
        taken,
        lambda a, index, axis: tlmem.take(a, targets(index), axis),
        lambda a, index, axis: a.index_select(axis, tensor(index)),
    ),
    Op(
        "gather",
        gathered,
        lambda a, axis, index: tlmem.gather(a, axis, targets(index)),
        lambda a, axis, index: a.gather(axis, tensor(index)),
    ),
    Op(
        "scatter_add",
        scattered,
        lambda a, source, axis, index: tlmem.scatter_add(a, axis, targets(index), source),
        lambda a, source, axis, index: a.scatter_add(axis, tensor(index), source),
    ),
    Op(
        "embedding",
        looked_up,
        lambda table, index: tlmem.embedding(table, targets(index)),
        lambda table, index: functional().embedding(tensor(index), table),
    ),
    Op("concat", joined, many(tlmem.concat), many(lambda parts, at: torch().cat(parts, at))),
    Op("stack", piled, many(tlmem.stack), many(lambda parts, at: torch().stack(parts, at))),
    Op(
        "copy",
        one(Random.normal),
        lambda a: a.copy() * 2.0,
        lambda a: a.clone() * 2.0,
        frozenset({"cast", "multiply"}),
    ),
]

OPS = {op.name: op for op in (*ELEMENTWISE, *OVER_AXES, *PRODUCTS, *PARTS)}
