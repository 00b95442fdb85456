"""What follows from the rows of the operations: functions, operators, methods, stubs, tests."""

from __future__ import annotations

import inspect

import pytest
from runtime.gradient_table import OPS

import tlmem
from tlmem.runtime.core import engine
from tlmem.runtime.tensors import rows, stubs
from tlmem.runtime.tensors.rows import CORE, FUNCTIONS, METHODS, OTHER, PARAMETERS, ROWS

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
