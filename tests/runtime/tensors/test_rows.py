"""What follows from the rows of the operations: functions, operators, methods, stubs, tests."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from runtime.autograd.gradient_table import OPS

import tlmem
from tlmem.runtime.core import engine
from tlmem.runtime.tensors import rows, stubs
from tlmem.runtime.tensors.computing import FRACTION
from tlmem.runtime.tensors.rows import (
    ALONG,
    CORE,
    FUNCTION,
    FUNCTIONS,
    METHODS,
    OTHER,
    PARAMETERS,
    REDUCING,
    ROWS,
)

INTERNAL = {"slice", "cast"}
"""Ops of brackets and of conversions, which have no function of their own."""


@pytest.mark.parametrize("name", sorted(CORE))
def test_every_op_has_a_line_in_the_gradient_table(name: str) -> None:
    recorded = {each for op in OPS.values() for each in (op.records or {op.name})}

    assert name in recorded


def test_every_op_is_a_public_function_with_a_docstring() -> None:
    for name in set(CORE) - INTERNAL:
        function = getattr(tlmem, name)
        assert FUNCTIONS[name] is function
        assert function.__doc__, name


def test_a_function_has_the_parameters_of_its_kind() -> None:
    for name, row in ROWS.items():
        assert row.kind != OTHER
        given = tuple(inspect.signature(getattr(tlmem, name)).parameters)
        assert given == PARAMETERS[row.kind], name


def test_a_method_is_the_function_itself() -> None:
    for name, function in METHODS.items():
        assert getattr(tlmem.Tensor, name) is function


def test_an_operator_computes_what_its_function_does() -> None:
    for row in ROWS.values():
        if row.operator and row.kind == "of_two" and "bitwise" not in row.name:
            one, other = tlmem.tensor([1.5, 2.0]), tlmem.tensor([2.0, 0.5])
            made = getattr(one, f"__{row.operator}__")(other)
            assert made.tolist() == getattr(tlmem, row.name)(one, other).tolist(), row.name


def test_a_row_that_declares_other_parameters_is_refused() -> None:
    def tanh(x: tlmem.Tensor) -> tlmem.Tensor:
        return x

    with pytest.raises(TypeError, match="tanh must have the parameters"):
        rows.by_row(tanh)


def test_stubs_and_public_names_are_up_to_date() -> None:
    old = [path.name for path, text in stubs.files() if path.read_text("utf-8") != text]

    assert old == [], "run python -m tlmem.runtime.tensors.stubs"


def test_the_core_knows_every_row_by_its_number() -> None:
    for number, (name, *_) in enumerate(engine.rows()):
        assert engine.row(name) == number == CORE[name].number


def same_bits(one: tlmem.Tensor, other: tlmem.Tensor) -> bool:
    return one.dtype == other.dtype and one.numpy().tobytes() == other.numpy().tobytes()


def of_core(kind: str) -> list[str]:
    return sorted(name for name, row in ROWS.items() if row.kind == kind and row.number >= 0)


@pytest.mark.parametrize("name", of_core(FUNCTION))
def test_a_function_of_integers_and_of_nine_axes_is_that_of_what_the_core_takes(name: str) -> None:
    function, row = FUNCTIONS[name], ROWS[name]
    x = tlmem.tensor(np.linspace(0.1, 3, 512).reshape((2,) * 9), "float64")
    n = tlmem.arange(1, 9)

    assert same_bits(function(x).reshape(512), function(x.reshape(512)))
    if row.dtype is FRACTION:
        assert same_bits(function(n), function(n.astype("float32")))
    else:
        assert function(n).dtype == "int64"


@pytest.mark.parametrize("name", of_core(ALONG))
def test_an_axis_among_nine_is_that_of_three(name: str) -> None:
    function = FUNCTIONS[name]
    x = tlmem.tensor(np.linspace(-1, 3, 512).reshape((2,) * 9), "float64")
    found, expected = function(x, 4).reshape(512), function(x.reshape((16, 2, 16)), 1).reshape(512)

    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-14)


@pytest.mark.parametrize("name", [*of_core(REDUCING), "var"])
def test_axes_among_nine_are_reduced_as_those_of_fewer(name: str) -> None:
    function = FUNCTIONS[name]
    x = tlmem.tensor(np.linspace(-1, 3, 512).reshape((2,) * 9), "float64")
    found, expected = function(x, (3, 4)), function(x.reshape((8, 4, 16)), 1)

    assert found.shape == (2,) * 7
    np.testing.assert_allclose(found.numpy().ravel(), expected.numpy().ravel(), rtol=1e-13)


def test_softplus_is_exact_far_from_zero() -> None:
    x = tlmem.tensor([-1e4, -40.0, 0.0, 40.0, 1e4], "float64")

    np.testing.assert_allclose(x.softplus().numpy(), np.logaddexp(0, x.numpy()), rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_cumsum_has_the_bits_of_numpy(axis: int, dtype: str) -> None:
    values = (np.random.default_rng(1).standard_normal((5, 33, 7)) * 4).astype(dtype)

    for each in (values, values[::-1, ::2]):
        found = tlmem.tensor(each, dtype).cumsum(axis)
        assert found.numpy().tobytes() == np.cumsum(each, axis).tobytes()
