"""The operators and methods of a tensor, as they follow from the rows of the operations.

``operators.pyi`` says the same to type checkers; ``stubs`` writes it.
Does not cover: what they compute (``elementwise``, ``reductions``), methods that are no functions
(``tensor``, ``shaping``, ``views``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tlmem.runtime import core
from tlmem.runtime.tensors import elementwise, linalg, reductions, views
from tlmem.runtime.tensors.computing import OPERANDS
from tlmem.runtime.tensors.rows import FUNCTION, FUNCTIONS, METHODS, ROWS

DECLARING = (elementwise, linalg, reductions, views)
"""Their functions are declared when they are imported."""
IN_PLACE = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
COMPARING = ("eq", "ne", "lt", "le", "gt", "ge")


class Operators:
    """The operators of a tensor that the core does not have, and its operations as methods."""

    __slots__ = ()
    __array_priority__ = 1000  # of array + tensor, the tensor decides

    def __pos__(self: Any) -> Any:
        return self.copy()

    __hash__ = object.__hash__  # equality is of elements, and tensors are things


def operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """What an operator does with operands that are not for the ops of the core."""

    def operate(*operands: Any) -> Any:
        for each in operands:
            if not isinstance(each, OPERANDS):
                return NotImplemented
        return function(*operands)

    return operate


def forwards(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: (
        function(self, other) if isinstance(other, OPERANDS) else NotImplemented
    )


def reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: (
        function(other, self) if isinstance(other, OPERANDS) else NotImplemented
    )


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: (
        function(self, other, self) if isinstance(other, OPERANDS) else NotImplemented
    )


def of_itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: function(self)


def add_operators() -> dict[str, Callable[..., Any]]:
    """Gives the class its operators; what the operators of the core call, by name of the op."""
    by_core = {"matmul": linalg.matmul_operator}
    for name, row in ROWS.items():
        word, function = row.operator, FUNCTIONS[name]
        if not word:
            continue
        made = {}
        if f"__{word}__" in vars(core.Operand):
            by_core[name] = operator(function)
        elif row.kind == FUNCTION:
            made[f"__{word}__"] = of_itself(function)
        else:
            made[f"__{word}__"] = forwards(function)
            if word not in COMPARING:
                made[f"__r{word}__"] = reflected(function)
        if word in IN_PLACE:
            made[f"__i{word}__"] = in_place(function)
        for method, implementation in made.items():
            implementation.__name__ = method
            setattr(Operators, method, implementation)
    return by_core


def add_methods() -> None:
    """Makes operations methods: the very functions."""
    for name, function in METHODS.items():
        setattr(Operators, name, function)


BY_NAME = add_operators()
"""Of the operators that the core computes first (``native/python/tensor/pyops.c``)."""
add_methods()
