"""Operations leave NumPy no array to make: results are ours, numbers are kept as arrays.

Covers: what NumPy allocates inside an operation, numbers as operands. Does not cover: gather, masks
and mixed dtypes, where NumPy needs room of its own.
"""

import math

import numpy as np
import pytest

import tlmem
from tlmem.events import Device
from tlmem.recorder import Recorder
from tlmem.runtime.tensors import computing

NUMBERS = [0, 0.0, -0.0, 1, 1.0, True, False, -1, -7, 2, 0.1, 3.5, 2**31, 2**53 + 1, 2**63 - 1]
NUMBERS += [2**64, 1e39, 1e300, math.inf, -math.inf, math.nan]
BINARY = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "less")
OPERATIONS = {
    "sum of tensors": lambda a, row, out: a + row,
    "sum into a tensor": lambda a, row, out: tlmem.add(a, row, out=out),
    "product with a number": lambda a, row, out: a * 1.5,
    "number less tensor": lambda a, row, out: 2 - a,
    "comparison": lambda a, row, out: a > 0.5,
    "relu": lambda a, row, out: tlmem.relu(a),
    "sigmoid": lambda a, row, out: tlmem.sigmoid(a),
    "clip": lambda a, row, out: tlmem.clip(a, 0.0, 1.0),
    "where": lambda a, row, out: tlmem.where(a > 0.5, a, 0.0),
    "sum": lambda a, row, out: a.sum(axis=0),
    "mean": lambda a, row, out: a.mean(axis=1, keepdims=True),
    "variance": lambda a, row, out: a.var(axis=0),
    "matrix product": lambda a, row, out: a @ row,
    "softmax": lambda a, row, out: tlmem.softmax(a, axis=1),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_numpy_allocates_nothing_in_a_repeated_operation(name, tmp_path):
    operation = OPERATIONS[name]
    a, row, out = tlmem.ones((8, 6)), tlmem.ones((6,)), tlmem.empty((8, 6))
    operation(a, row, out)  # numbers are kept from here on
    with Recorder(tmp_path / "x.tlm", holders="off"):
        np.empty(1000)
        for _ in range(10):
            operation(a, row, out)
    objects = tlmem.read(tmp_path / "x.tlm").objects
    of_numpy = objects[objects["device"] == Device.NUMPY]
    assert of_numpy["size_bytes"].tolist() == [8000]
    assert (objects["device"] == Device.CPU).sum() >= (0 if "into" in name else 10)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_number_that_is_kept_gives_what_it_gives_numpy_each_time(name, dtype, monkeypatch):
    tensor = tlmem.tensor(np.array([0, 1, -3, 5, 100]).astype(dtype), dtype=dtype)

    def outcomes():
        function = getattr(tlmem, name)
        return [
            outcome(function, *pair)
            for number in NUMBERS
            for pair in ((tensor, number), (number, tensor))
        ]

    first, second = outcomes(), outcomes()
    monkeypatch.setattr(computing, "constant", lambda value, dtype: value)
    assert first == outcomes()
    assert second == first


def outcome(function, *operands):
    """Its values as text, so that nan and -0.0 count, or the error's name."""
    try:
        return repr(function(*operands).tolist())
    except (ArithmeticError, TypeError, ValueError) as error:
        return type(error).__name__


def test_numbers_that_never_come_twice_are_not_kept_for_ever():
    tensor = tlmem.ones((3,))
    for i in range(3 * computing.KEPT_CONSTANTS):
        tensor + (i + 0.5)
    assert len(computing._constants) <= computing.KEPT_CONSTANTS
    assert (tensor + 0.5).tolist() == [1.5] * 3
