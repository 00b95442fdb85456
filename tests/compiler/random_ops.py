"""Random calls of every operation: operands that often fit, and often do not.

Covers: shapes up to four axes with lengths of 0 and 1 among them, the five dtypes, numbers of each
kind, axes out of range. Does not cover: what elements do (an index out of range, say).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import tlmem

DTYPES = ("bool", "int32", "int64", "float32", "float64")
Call = tuple[tuple[Any, ...], dict[str, Any]]
Maker = Callable[[Random], Call]


def shape(r: Random, least: int = 0, most: int = 4) -> tuple[int, ...]:
    return tuple(r.choice((0, 1, 1, 2, 3, 3)) for _ in range(r.randint(least, most)))


def dtype(r: Random) -> str:
    return r.choice((*DTYPES, "float32", "float32"))


def tensor(r: Random, wanted: tuple[int, ...] | None = None, kind: str | None = None) -> Any:
    """Ones, sometimes as a view that does not lie row by row."""
    lengths = shape(r) if wanted is None else wanted
    kind = kind or dtype(r)
    if r.random() < 0.2:
        return tlmem.ones(lengths[::-1], kind).T
    grad = kind in ("float32", "float64") and r.random() < 0.15
    return tlmem.ones(lengths, kind, requires_grad=grad)


def number(r: Random) -> Any:
    return r.choice((True, False, 1, 2, 3, 0.5, 1.0, 2.5))


def fitting(r: Random, to: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that can mostly be broadcast with another one."""
    if r.random() < 0.15:
        return shape(r)
    kept = to[r.randint(0, len(to)) :] if to else ()
    return tuple(1 if r.random() < 0.25 else length for length in kept)


def axis(r: Random, rank: int, several: bool = True) -> Any:
    if r.random() < 0.08:
        return r.choice((rank, -rank - 1, 7))
    if several and r.random() < 0.3:
        return tuple(r.randint(-rank, rank) for _ in range(r.randint(0, 2)))
    return r.randint(-rank, rank - 1) if rank else 0


def two(r: Random) -> Call:
    left = tensor(r)
    right = number(r) if r.random() < 0.3 else tensor(r, fitting(r, left.shape))
    return ((right, left) if r.random() < 0.5 else (left, right)), {}


def one(r: Random) -> Call:
    return (tensor(r),), {}


def reduction(r: Random) -> Call:
    value = tensor(r)
    options: dict[str, Any] = {}
    if r.random() < 0.7:
        options["axis"] = axis(r, len(value.shape))
    if r.random() < 0.4:
        options["keepdims"] = r.random() < 0.7
    return (value,), options


def position(r: Random) -> Call:
    value = tensor(r)
    return ((value,) if r.random() < 0.3 else (value, axis(r, len(value.shape), False))), {}


def softened(r: Random) -> Call:
    value = tensor(r)
    return (value, axis(r, len(value.shape), False)), {}


def limits(r: Random) -> Call:
    value = tensor(r)
    bounds = [r.choice((None, number(r), tensor(r, fitting(r, value.shape)))) for _ in range(2)]
    return (value, *bounds), {}


def choice(r: Random) -> Call:
    truth = tensor(r, kind="bool" if r.random() < 0.9 else None)
    sides = [
        number(r) if r.random() < 0.3 else tensor(r, fitting(r, truth.shape)) for _ in range(2)
    ]
    return (truth, *sides), {}


def product(r: Random) -> Call:
    left = tensor(r, shape(r, 1))
    last = left.shape[-1] if r.random() < 0.85 else 5
    more = shape(r, 0, 1)
    right = (last,) if r.random() < 0.3 else (*fitting(r, left.shape[:-2]), last, *(more or (2,)))
    return (left, tensor(r, right)), {}


def vectors(r: Random) -> Call:
    length = r.choice((0, 1, 3))
    other = length if r.random() < 0.8 else 2
    return (tensor(r, (length,)), tensor(r, (other,) if r.random() < 0.9 else (1, other))), {}


def reshaped(r: Random) -> Call:
    value = tensor(r)
    wanted = list(value.shape)
    r.shuffle(wanted)
    if wanted and r.random() < 0.4:
        wanted[r.randrange(len(wanted))] = -1
    if r.random() < 0.3:
        wanted.insert(0, 1)
    if r.random() < 0.1:
        wanted.append(2)
    return ((value, tuple(wanted)) if r.random() < 0.5 or not wanted else (value, *wanted)), {}


def ordered(r: Random) -> Call:
    value = tensor(r)
    order = list(range(len(value.shape)))
    r.shuffle(order)
    if r.random() < 0.1:
        order = order[1:]
    return ((value,) if r.random() < 0.3 else (value, *order)), {}


def swapped(r: Random) -> Call:
    value = tensor(r)
    return (value, *(axis(r, len(value.shape), False) for _ in range(2))), {}


def squeezed(r: Random) -> Call:
    value = tensor(r)
    return ((value,) if r.random() < 0.4 else (value, axis(r, len(value.shape)))), {}


def placed(r: Random) -> Call:
    value = tensor(r)
    return (value, r.randint(-len(value.shape) - 2, len(value.shape) + 1)), {}


def repeated(r: Random) -> Call:
    wanted = shape(r)
    return (tensor(r, fitting(r, wanted)), wanted), {}


def sequence(r: Random) -> Call:
    first = shape(r, 1 if r.random() < 0.9 else 0, 3)
    at = axis(r, len(first), False)
    parts = []
    for _ in range(r.randint(0 if r.random() < 0.05 else 1, 3)):
        lengths = list(first)
        if r.random() < 0.2 and lengths:
            lengths[at if -len(first) <= at < len(first) else 0] += 1
        parts.append(tensor(r, tuple(lengths)))
    return (parts, at), {}


def part(r: Random) -> Call:
    value = tensor(r)
    if r.random() < 0.2:
        rows = value.shape[0] if value.shape else 1
        return (value, tensor(r, shape(r, 0, 2), "int64") if rows > 1 else tlmem.ones(2)), {}
    picks: list[Any] = [0, -1, None, ..., slice(1, None), slice(None, None, 2), slice(0, 0)]
    key = tuple(r.choice(picks) for _ in range(r.randint(0, 3)))
    return (value, key[0] if len(key) == 1 else key), {}


def fractions(r: Random) -> str:
    return r.choice(("float32", "float32", "float64")) if r.random() < 0.93 else "int64"


def linear(r: Random) -> Call:
    x = tensor(r, shape(r, 0, 3), fractions(r))
    last = x.shape[-1] if x.shape and r.random() < 0.9 else 2
    to = r.choice((0, 1, 4))
    given = [x, tensor(r, (last, to) if r.random() < 0.95 else (last,), fractions(r))]
    if r.random() < 0.6:
        given.append(tensor(r, (to,) if r.random() < 0.9 else (1,), fractions(r)))
    return tuple(given), {}


def normed(r: Random) -> Call:
    x = tensor(r, shape(r, 0, 3), fractions(r))
    axes = r.choice((1, 1, 2, 0, 4))
    row = x.shape[-axes:] if axes and r.random() < 0.9 else (2,)
    extra = [r.choice((None, tensor(r, row, fractions(r)))) for _ in range(2)]
    return (x, *extra, axes), {}


def classes(r: Random) -> Call:
    lengths = tuple(length or 1 for length in shape(r, 0, 3))  # a class that is none is refused
    logits = tensor(r, lengths, fractions(r))
    without = () if len(lengths) <= 1 else (*lengths[:1], *lengths[2:])
    target = tlmem.zeros(without if r.random() < 0.9 else (7,), "int64")
    return (logits, target, r.choice(("mean", "sum", "none", "none"))), {}


def rows(r: Random) -> Call:
    lengths = (r.choice((1, 3)), r.choice((0, 1, 3))) if r.random() < 0.9 else (2,)
    table = tensor(r, lengths, fractions(r))
    places = [[0, 0], [0, 0]] if r.random() < 0.3 else tlmem.zeros(shape(r, 0, 2), "int64")
    return (table, places), {}


def scattered(r: Random) -> Call:
    kind = fractions(r)
    x = tensor(r, shape(r, 0, 3), kind)
    lengths = tuple(min(n, r.choice((1, 2, 3))) for n in x.shape)
    index = tlmem.zeros(lengths if r.random() < 0.9 else (2, 2), "int64")
    source = tensor(r, lengths, kind if r.random() < 0.9 else fractions(r))
    return (x, axis(r, len(x.shape), False), index, source), {}


def taken(r: Random) -> Call:
    value = tensor(r, tuple(length or 1 for length in shape(r)))
    places = [0, r.choice((0, 3))] if r.random() < 0.3 else tlmem.zeros(shape(r, 0, 2), "int64")
    return (value, places, axis(r, len(value.shape), False)), {}


def gathered(r: Random) -> Call:
    value = tensor(r)
    lengths = tuple(min(n, r.choice((1, 2, 3))) for n in value.shape)
    index = tlmem.zeros(lengths if r.random() < 0.9 else (2, 2), "int64")
    return (value, axis(r, len(value.shape), False), index), {}


def dropped(r: Random) -> Call:
    return (tensor(r, kind=fractions(r)), 0.5, r.random() < 0.7), {}


def smooth(r: Random) -> Call:
    x = tensor(r, kind=fractions(r))
    return ((x, r.choice(("none", "tanh", "cosine"))) if r.random() < 0.5 else (x,)), {}


def filled(r: Random) -> Call:
    lengths = shape(r) if r.random() < 0.9 else r.choice((3, (2, -1)))
    return ((lengths, dtype(r)) if r.random() < 0.7 else (lengths,)), {}


def full(r: Random) -> Call:
    lengths, value = shape(r), number(r)
    return ((lengths, value, dtype(r)) if r.random() < 0.7 else (lengths, value)), {}


def counted(r: Random) -> Call:
    numbers = [r.choice((0, 1, 5, -3, 2.5)) for _ in range(r.randint(1, 3))]
    return (*numbers,), ({"dtype": dtype(r)} if r.random() < 0.3 else {})


def data(r: Random) -> Call:
    given = r.choice(([[1.0, 2.0], [3.0, 4.0]], 2.5, 3, True, [1, 2, 3], (1, 2), tensor(r)))
    return (given,), ({"dtype": dtype(r)} if r.random() < 0.5 else {})


def like(r: Random) -> Call:
    return (tensor(r),), ({"dtype": dtype(r)} if r.random() < 0.4 else {})


def converted(r: Random) -> Call:
    return (tensor(r), dtype(r)), {}


def moved(r: Random) -> Call:
    return (tensor(r), r.choice(("cpu", "sim-metal"))), {}


def valued(r: Random) -> Call:
    return (tlmem.ones(shape(r), dtype(r)), number(r)), {}


def leaf(r: Random) -> Call:
    return (tlmem.ones(shape(r), dtype(r)),), {}


def number_of(r: Random) -> Call:
    return (tlmem.ones(r.choice(((), (1,), (1, 1))), dtype(r)),), {}


MAKERS: dict[str, Maker] = {
    **dict.fromkeys(("sum", "prod", "mean", "max", "min", "any", "all", "var", "std"), reduction),
    **dict.fromkeys(("argmax", "argmin"), position),
    **dict.fromkeys(("softmax", "log_softmax"), softened),
    **dict.fromkeys(("transpose", "permute"), ordered),
    **dict.fromkeys(("concat", "stack"), sequence),
    **dict.fromkeys(("empty", "zeros", "ones", "randn"), filled),
    **dict.fromkeys(("empty_like", "zeros_like", "ones_like"), like),
    **{"clip": limits, "where": choice, "matmul": product, "dot": vectors, "reshape": reshaped},
    **{"swapaxes": swapped, "squeeze": squeezed, "unsqueeze": placed, "broadcast_to": repeated},
    **{"getitem": part, "linear": linear, "layer_norm": normed, "cross_entropy": classes},
    **{"embedding": rows, "scatter_add": scattered, "take": taken, "gather": gathered},
    **{"dropout": dropped, "gelu": smooth, "full": full, "arange": counted, "tensor": data},
    **{"astype": converted, "to": moved, "fill": valued, "requires_grad_": leaf},
    **{"item": number_of},
}
"""How operands of an operation are made, where they are not one or two tensors."""
