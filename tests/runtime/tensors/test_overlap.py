"""``out`` may share memory with any operand, in whole or shifted: the result is the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tlmem.runtime.tensors import elementwise, linalg, reductions, shaping, views
from tlmem.runtime.tensors.factories import arange

ROWS = 4
Operation = Callable[..., Any]

# name -> the operation on operands of one shape [4,4], and how many operands
OPERATIONS: dict[str, tuple[Operation, int]] = {
    "add": (elementwise.add, 2),
    "power": (elementwise.power, 2),
    "sigmoid": (elementwise.sigmoid, 1),
    "clip": (elementwise.clip, 3),
    "where": (lambda a, b, c, out=None: elementwise.where(a > 5, b, c, out=out), 3),
    "matmul": (linalg.matmul, 2),
    "softmax": (reductions.softmax, 1),
    "log_softmax": (reductions.log_softmax, 1),
    "take": (lambda a, out=None: views.take(a, [3, 1, 1, 0], 0, out), 1),
    "gather": (lambda a, out=None: views.gather(a, 1, np.tile([3, 1, 1, 0], (4, 1)), out), 1),
    "concat": (lambda a, b, out=None: shaping.concat([b[:2], a[1:3]], 0, out), 2),
    "stack": (lambda a, b, out=None: shaping.stack([b[0], a[1], b[2], a[0]], 0, out), 2),
}
PLACES: dict[str, Callable[[Any], Any]] = {
    "first": lambda memory: memory[: ROWS * ROWS].reshape(ROWS, ROWS),
    "shifted": lambda memory: memory[3 : 3 + ROWS * ROWS].reshape(ROWS, ROWS),
    "transposed": lambda memory: memory[: ROWS * ROWS].reshape(ROWS, ROWS).T,
    "reversed": lambda memory: memory[ROWS * ROWS - 1 :: -1].reshape(ROWS, ROWS),
}


def numbers() -> Any:
    return arange(40, dtype="float64") * 0.25 % 3.5


ROUNDED = ("softmax", "log_softmax")


@pytest.mark.parametrize("operand", PLACES)
@pytest.mark.parametrize("destination", PLACES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_result_does_not_depend_on_where_it_is_written(name, destination, operand) -> None:
    operation, count = OPERATIONS[name]
    for at in range(count):
        memory = numbers()
        others = [numbers()[i : i + ROWS * ROWS].reshape(ROWS, ROWS) for i in range(5, 8)]
        operands = [*others[:at], PLACES[operand](memory), *others[at : count - 1]]
        expected = operation(*operands).numpy().copy()
        out = PLACES[destination](memory)
        assert operation(*operands, out=out) is out
        # An op of the core may round differently from NumPy, which writes into ``out``.
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6 if name in ROUNDED else 0)


@pytest.mark.parametrize("function", [reductions.argmax, reductions.argmin])
def test_places_of_extremes_may_be_written_over_the_numbers(function) -> None:
    for row in range(3):
        numbers = arange(9).reshape(3, 3) * 5 % 7
        expected = function(numbers, 1).tolist()
        assert function(numbers, 1, out=numbers[row]).tolist() == expected


@pytest.mark.parametrize("function", [reductions.sum, reductions.mean, reductions.std])
def test_reductions_may_be_written_over_the_numbers(function) -> None:
    for axis, part in ((0, np.s_[1]), (1, np.s_[:, 1])):
        numbers = arange(9, dtype="float64").reshape(3, 3)
        expected = function(numbers, axis).tolist()
        assert function(numbers, axis, out=numbers[part]).tolist() == expected


def test_elements_may_be_taken_over_their_own_indices() -> None:
    indices = arange(8) * 3 % 5
    source = arange(5) * 10
    expected = source.take(indices[:5]).tolist()
    assert source.take(indices[:5], out=indices[2:7]).tolist() == expected
