"""Values and gradients are PyTorch's, also where a gradient is a convention.

Needs PyTorch (the test extra ``torch``); on the CPU, as that is what tlmem computes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runtime.autograd.gradient_table import OPS
from runtime.autograd.gradients import Op, Random, Trial, close, gradients, shown

import tlmem

torch = pytest.importorskip("torch", reason="compares with PyTorch: pip install tlmem[torch]")

TRIALS = 24
LONG = 45
ROUNDED = {"float32": 3e-5, "float64": 1e-11}
NAN, INFINITY = float("nan"), float("inf")


def of_torch(op: Op, trial: Trial, seed: np.ndarray | None, dtype: str) -> Any:
    """As ``gradients``, computed by PyTorch."""
    leaves = [
        torch.from_numpy(array.astype(dtype, order="C")).requires_grad_() for array in trial.arrays
    ]
    assert op.theirs is not None
    output = op.theirs(*leaves, *trial.others)
    if seed is None:
        seed = np.ones(tuple(output.shape))
    output.backward(torch.from_numpy(seed.astype(dtype)))
    found = [
        np.zeros(tuple(leaf.shape)) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves
    ]
    return output.detach().numpy(), found


@pytest.mark.parametrize("dtype", ROUNDED)
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.theirs])
def test_values_and_gradients_are_those_of_pytorch(name: str, dtype: str) -> None:
    op = OPS[name]
    for number in range(TRIALS):
        random = Random(number, 6, longest=LONG if number % 3 == 2 else 4)
        trial = op.make(random)
        output, _ = of_torch(op, trial, None, dtype)
        seed = random.normal(output.shape)
        output, expected = of_torch(op, trial, seed, dtype)
        value, found = gradients(op, trial, seed, dtype=dtype)
        assert value.shape == output.shape, (number, shown(op, trial))
        assert close(value, output, ROUNDED[dtype]), (number, shown(op, trial))
        for actual, wanted in zip(found, expected, strict=True):
            assert close(actual, wanted, ROUNDED[dtype]), (number, shown(op, trial))


Call = Callable[..., Any]
EDGES: dict[str, tuple[Call, Call, list[list[float]]]] = {
    "absolute at 0": (tlmem.absolute, lambda a: a.abs(), [[-1.0, -0.0, 0.0, 2.0]]),
    "relu at 0": (tlmem.relu, lambda a: a.relu(), [[-1.0, -0.0, 0.0, 2.0]]),
    "sqrt at 0": (tlmem.sqrt, lambda a: a.sqrt(), [[0.0, 4.0]]),
    "log at 0": (tlmem.log, lambda a: a.log(), [[0.0, 1.0]]),
    "divide by 0": (tlmem.divide, lambda a, b: a / b, [[1.0, -2.0], [0.0, 0.0]]),
    "maximum of equals": (
        tlmem.maximum,
        lambda a, b: a.maximum(b),
        [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]],
    ),
    "minimum of equals": (
        tlmem.minimum,
        lambda a, b: a.minimum(b),
        [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]],
    ),
    "max with ties": (tlmem.max, lambda a: a.amax(), [[2.0, 1.0, 2.0, 2.0]]),
    "min with ties": (tlmem.min, lambda a: a.amin(), [[2.0, 1.0, 1.0, 2.0]]),
    "max of all equal": (
        lambda a: tlmem.max(a.reshape(2, 3), axis=1),
        lambda a: a.reshape(2, 3).amax(1),
        [[5.0] * 6],
    ),
    "clip at its bounds": (
        lambda a: tlmem.clip(a, -1.0, 1.0),
        lambda a: a.clip(-1.0, 1.0),
        [[-2.0, -1.0, 0.0, 1.0, 2.0]],
    ),
    "power 0 of 0": (lambda a: a**0, lambda a: a**0, [[0.0, 2.0]]),
    "power 1 of 0": (lambda a: a**1, lambda a: a**1, [[0.0, 2.0]]),
    "power 2 of 0 and less": (lambda a: a**2, lambda a: a**2, [[0.0, -2.0]]),
    "power 3 of 0 and less": (lambda a: a**3.0, lambda a: a**3.0, [[0.0, -2.0]]),
    "power -1 of 0": (lambda a: a**-1.0, lambda a: a**-1.0, [[0.0, 2.0]]),
    "power 1/2 of 0": (lambda a: a**0.5, lambda a: a**0.5, [[0.0, 2.0]]),
    "0 to a power": (lambda a: 0.0**a, lambda a: 0.0**a, [[0.5, 2.0, 1.0]]),
    "power of tensors at 0": (
        tlmem.power,
        lambda a, b: a**b,
        [[0.0, 0.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0]],
    ),
    "softmax of far values": (
        lambda a: tlmem.softmax(a, 0),
        lambda a: a.softmax(0),
        [[1000.0, 0.0, -1000.0]],
    ),
    "log_softmax of far values": (
        lambda a: tlmem.log_softmax(a, 0),
        lambda a: a.log_softmax(0),
        [[1000.0, 0.0, -1000.0]],
    ),
    "softmax of minus infinity": (
        lambda a: tlmem.softmax(a, 0),
        lambda a: a.softmax(0),
        [[-INFINITY, 0.0, 1.0]],
    ),
    "sigmoid of far values": (tlmem.sigmoid, lambda a: a.sigmoid(), [[-800.0, 0.0, 800.0]]),
    "tanh of far values": (tlmem.tanh, lambda a: a.tanh(), [[-800.0, 0.0, 800.0]]),
    "gelu of far values": (
        tlmem.gelu,
        torch.nn.functional.gelu,
        [[-40.0, -5.0, 0.0, 5.0, 40.0]],
    ),
    "gelu with tanh": (
        lambda a: tlmem.gelu(a, approximate="tanh"),
        lambda a: torch.nn.functional.gelu(a, approximate="tanh"),
        [[-4.0, -0.5, 0.0, 0.7, 4.0]],
    ),
    "exp of far values": (tlmem.exp, lambda a: a.exp(), [[-800.0, 0.0]]),
    "where on equal sides": (
        lambda a: tlmem.where(tlmem.tensor([True, False], "bool"), a, a * 2.0),
        lambda a: torch.where(torch.tensor([True, False]), a, a * 2.0),
        [[1.0, 1.0]],
    ),
    "variance of equals": (
        lambda a: tlmem.var(a, correction=0),
        lambda a: a.var(correction=0),
        [[3.0, 3.0, 3.0]],
    ),
    "deviation of equals": (tlmem.std, lambda a: a.std(), [[3.0, 3.0, 3.0]]),
    "layer_norm of equals": (
        lambda a: tlmem.layer_norm(a),
        lambda a: torch.nn.functional.layer_norm(a, a.shape),
        [[3.0, 3.0, 3.0]],
    ),
    "cross_entropy of far logits": (
        lambda a: tlmem.cross_entropy(a.reshape(2, 2), tlmem.tensor([0, 0], "int64")),
        lambda a: torch.nn.functional.cross_entropy(a.reshape(2, 2), torch.tensor([0, 0])),
        [[900.0, -900.0, -900.0, 900.0]],
    ),
    "absolute of not a number": (tlmem.absolute, lambda a: a.abs(), [[NAN, 1.0]]),
    "relu of not a number": (tlmem.relu, lambda a: a.relu(), [[NAN, 1.0]]),
    "maximum with not a number": (
        tlmem.maximum,
        lambda a, b: a.maximum(b),
        [[NAN, 1.0, 2.0], [1.0, NAN, 1.0]],
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of dividing by 0
@pytest.mark.parametrize("dtype", ROUNDED)
@pytest.mark.parametrize("edge", EDGES)
def test_edge_has_the_value_and_gradient_of_pytorch(edge: str, dtype: str) -> None:
    ours, theirs, values = EDGES[edge]
    leaves = [tlmem.tensor(row, dtype, requires_grad=True) for row in values]
    others = [torch.tensor(row, dtype=getattr(torch, dtype), requires_grad=True) for row in values]

    output, wanted = ours(*leaves), theirs(*others)
    output.sum().backward()
    wanted.sum().backward()

    about = {"rtol": ROUNDED[dtype], "atol": ROUNDED[dtype] / 50, "equal_nan": True}
    assert np.allclose(output.detach().numpy(), wanted.detach().numpy(), **about)
    for leaf, other in zip(leaves, others, strict=True):
        found, expected = leaf.grad.tolist(), other.grad.tolist()
        assert np.allclose(found, expected, **about), (found, expected)
