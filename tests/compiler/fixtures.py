"""Functions that the golden files and the tests of passes are about: one thing each.

``CASES`` has each of them with the shapes of its arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tlmem
from tlmem.compiler.passes.abstract import PlainType, StructType, TensorType
from tlmem.runtime.core import CPU


@dataclass
class Layer:
    weight: Any
    bias: Any


def straight(x, w1, b1, w2):
    h = tlmem.relu(x @ w1 + b1)
    y = h @ w2
    return y - tlmem.mean(y, axis=1, keepdims=True)


def branches(x, flag):
    y = x * 2
    if flag:
        z = y + 1
        w = z.sum(0)
    else:
        w = y.max(0)
    return w + x[0]


def counted(x, w):
    total = tlmem.zeros(4)
    for i in range(3):
        h = x @ w
        total = total + h.sum(0) * i
    return total + w[0]


def repeated(x, limit):
    error = x.sum()
    scale = x * 0.5
    while error > limit:
        x = x - scale
        error = x.sum()
    return x


def leaving(x, n):
    best = x
    for i in range(n):
        y = x * i
        if i == 2:
            continue
        if y.sum() > 9:
            best = y
            break
        x = y + 1
    return best.mean(0)


def early(x, w):
    h = x @ w
    if h.sum() < 0:
        return h
    g = h * h
    return g - h


def shadowed(x):
    x = x + 1
    y = x * 2
    x = y - 3
    x = x
    return x * y


def unpacked(x, y):
    a, b = x + 1, y * 2
    a, b = b, a
    c = (a, b)
    d, _ = c
    return d - a


def structs(x, layer):
    h = x @ layer.weight + layer.bias
    other = Layer(h, layer.bias)
    other.bias = h * 2
    return other.weight - other.bias


def recursive(x, n):
    if n == 0:
        return x
    y = x * 0.5
    return recursive(y + 1, n - 1)


def aliased(x):
    y = x * 3
    rows = y.reshape(2, 8)
    first = rows[0]
    z = first + 1
    y = z
    y += first
    return tlmem.exp(y)


def carried(x, w):
    h = x * 1
    for _ in range(4):
        previous = h
        h = previous @ w
        x = h - previous
    return x + h


def tensor(*shape: int, dtype: str = "float32", grad: bool = False) -> TensorType:
    return TensorType(shape, dtype, CPU, grad, True)


LAYER = StructType("Layer", (("weight", tensor(8, 8)), ("bias", tensor(8))))
CASES: dict[Any, tuple[Any, ...]] = {
    straight: (tensor(4, 8), tensor(8, 16), tensor(16), tensor(16, 2)),
    branches: (tensor(4, 4), PlainType(bool)),
    counted: (tensor(8, 4), tensor(4, 4)),
    repeated: (tensor(3, 3), 0.25),
    leaving: (tensor(5, 2), PlainType(int)),
    early: (tensor(4, 4), tensor(4, 4)),
    shadowed: (tensor(10, dtype="int64"),),
    unpacked: (tensor(4, 1), tensor(1, 6, dtype="float64")),
    structs: (tensor(4, 8), LAYER),
    recursive: (tensor(7), 3),
    aliased: (tensor(4, 4),),
    carried: (tensor(6, 6), tensor(6, 6, grad=True)),
}
"""Function -> abstract values of its arguments."""
