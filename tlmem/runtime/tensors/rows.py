"""One row for each operation: what the core says of its ops, and what only NumPy computes.

A public function that is declared with ``by_row`` or ``by_numpy`` has a signature and a docstring;
what it does follows from its row. Operators and methods of a tensor, the compiler's rules and its
choice of a kernel are read from ``ROWS`` and ``METHODS``.

Does not cover: how it is computed where the core does not take the operands (``computing``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tlmem.runtime.core import engine
from tlmem.runtime.tensors import computing
from tlmem.runtime.tensors.computing import ARITHMETIC, COUNTING, FRACTION, OWN_DTYPE, SAME
from tlmem.runtime.tensors.core_ops import LOST, NO_ROW, apply, apply_along, apply_reducing

Declared = TypeVar("Declared", bound=Callable[..., Any])

OTHER, FUNCTION, OF_TWO, REDUCING, ALONG = "other", "function", "of_two", "reducing", "along"
KINDS = (OTHER, FUNCTION, OF_TWO, REDUCING, ALONG)
"""``ops_kind`` of ops.h, in its order."""
DTYPES = (OWN_DTYPE, SAME, ARITHMETIC, COUNTING, FRACTION)
"""``ops_dtype`` of ops.h, in its order."""
PARAMETERS = {
    FUNCTION: ("value", "out"),
    OF_TWO: ("left", "right", "out"),
    REDUCING: ("value", "axis", "keepdims", "out"),
    ALONG: ("value", "axis", "out"),
}
"""Kind -> the parameters of its public function."""


@dataclass(frozen=True, slots=True)
class Row:
    """One operation.

    Attributes:
        name: of its public function.
        number: of the op in the core; ``NO_ROW`` or ``LOST`` when there is none.
        kind: how it is called, and the shape of its result.
        dtype: the rule for the dtype of its result.
        ufunc: computes it for dtypes that the core does not take; None: the operands are converted.
        operator: the word of its operator, ``add`` for ``__add__``, or empty.
        method: its name as a method, or empty.
    """

    name: str
    number: int
    kind: str
    dtype: str
    ufunc: Any = None
    operator: str = ""
    method: str = ""


def rows_of_core() -> dict[str, Row]:
    """The ops of the core by name."""
    found = {}
    for number, (name, _, kind, dtype, ufunc, operator, method) in enumerate(engine.rows()):
        found[name] = Row(
            name=name,
            number=number,
            kind=KINDS[kind] if DTYPES[dtype] != OWN_DTYPE else OTHER,
            dtype=DTYPES[dtype],
            ufunc=getattr(np, ufunc) if ufunc else None,
            operator=operator or "",
            method=method or "",
        )
    return found


CORE = rows_of_core()
ROWS: dict[str, Row] = {}
"""The operations whose functions follow from their rows."""
FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Public name -> function, of every operation that was declared here."""
METHODS: dict[str, Callable[..., Any]] = {}
"""Name of a method of a tensor -> the public function that it is."""


def by_row(declared: Declared) -> Declared:
    """The function of an op of the core: what its row says, or, of kind ``other``, as written."""
    return of_row(CORE[declared.__name__], declared)


def by_row_or(otherwise: Any) -> Callable[[Declared], Declared]:
    """The same; what the core does not take is computed by ``otherwise``, which gets the row."""
    return lambda declared: of_row(CORE[declared.__name__], declared, otherwise)


def by_numpy(
    ufunc: Any, dtype: str, operator: str = "", kind: str = "", has_gradient: bool = True
) -> Callable[[Declared], Declared]:
    """The function of an operation that only NumPy computes.

    Args:
        has_gradient: False: it has one in mathematics, and no rule; refused where one is needed.
    """

    def made(declared: Declared) -> Declared:
        kinds = {1: FUNCTION, 2: OF_TWO}
        name, number = declared.__name__, NO_ROW if has_gradient else LOST
        row = Row(name, number, kind or kinds[ufunc.nin], dtype, ufunc, operator)
        return of_row(replace(row, method=name if kind else ""), declared)

    return made


def composed(declared: Declared) -> Declared:
    """A public function that is made of others, or that its row says too little of."""
    FUNCTIONS[declared.__name__] = declared
    return declared


def method(declared: Declared) -> Declared:
    """The same, and a method as well."""
    METHODS[declared.__name__] = declared
    return composed(declared)


def of_row(row: Row, declared: Declared, otherwise: Any = None) -> Declared:
    """The function of a row, under the name and with the signature that were declared."""
    made: Any = declared
    if row.kind != OTHER:
        given = tuple(inspect.signature(declared).parameters)
        if given != PARAMETERS[row.kind]:
            raise TypeError(f"{row.name} must have the parameters {PARAMETERS[row.kind]}")
        maker, slow = MAKERS[row.kind]
        made = named(maker(row, otherwise or slow), declared)
        ROWS[row.name] = row
    FUNCTIONS[row.name] = made
    if row.method:
        METHODS[row.method] = made
    return made


def named(made: Any, declared: Any) -> Any:
    """A function that shows itself, in tracebacks too, as the one that was declared."""
    name = declared.__name__
    made.__code__ = made.__code__.replace(co_name=name, co_qualname=name)
    made.__defaults__ = declared.__defaults__
    return wraps(declared)(made)


# ---- functions of each kind: the core first, with nothing looked up ----


def function(row: Row, compute: Any) -> Any:
    number = row.number
    if number < 0:
        return lambda value, out=None: compute(row, value, out)

    def made(value: Any, out: Any = None) -> Any:
        if out is None and (found := apply(number, 1, value)) is not NotImplemented:
            return found
        return compute(row, value, out)

    return made


def of_two(row: Row, compute: Any) -> Any:
    number, ufunc, dtype = row.number, row.ufunc, row.dtype
    if number < 0:
        return lambda left, right, out=None: compute(ufunc, dtype, left, right, out, number)

    def made(left: Any, right: Any, out: Any = None) -> Any:
        if out is None and (found := apply(number, 2, left, right)) is not NotImplemented:
            return found
        return compute(ufunc, dtype, left, right, out, number)

    return made


def reducing(row: Row, compute: Any) -> Any:
    number = row.number
    if number < 0:
        return lambda value, axis=None, keepdims=False, out=None: compute(
            row, value, axis, keepdims, out
        )

    def made(value: Any, axis: Any = None, keepdims: Any = False, out: Any = None) -> Any:
        if out is None:
            found = apply_reducing(number, value, axis, keepdims)
            if found is not NotImplemented:
                return found
        return compute(row, value, axis, keepdims, out)

    return made


def along(row: Row, compute: Any) -> Any:
    number = row.number

    def made(value: Any, axis: Any = -1, out: Any = None) -> Any:
        if out is None and (found := apply_along(number, value, axis)) is not NotImplemented:
            return found
        return compute(row, value, axis, out)

    return made


MAKERS: dict[str, tuple[Callable[[Row, Any], Any], Any]] = {
    FUNCTION: (function, computing.function),
    OF_TWO: (of_two, computing.binary),
    REDUCING: (reducing, computing.reduction),
    ALONG: (along, computing.along),
}
"""Kind -> what makes its functions, and what computes where the core does not."""
