"""NumPy's functions that compute an operation straight into planned memory, with the same bits.

Covers: which operations on which dtypes, and how NumPy is called. Does not cover: where the memory
is (``arrays``). Sums of fractions are not here: the core adds them in another order than NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import PlainType, TensorType, is_known, kind_of
from tlmem.compiler.passes.rules_elements import ALIASES, ONE, TWO
from tlmem.runtime.dtypes import NUMPY, kind_of_number, promoted
from tlmem.runtime.tensors.computing import COUNTING
from tlmem.runtime.tensors.operators import ROWS
from tlmem.runtime.tensors.rows import REDUCING, Row

FRACTIONS = ("float32", "float64")
MOST_EXACT = 2**53
OTHER_ORDER = "the core adds in another order than NumPy"
NOT_ALIKE = "its operands are of several dtypes"


class NoKernel(Exception):
    """An operation that is computed by the core; says why."""


@dataclass(frozen=True)
class Kernel:
    """One call of NumPy.

    Attributes:
        function: what is called, with the destination as ``out=``.
        operands: what it is given: numbers of operands of the operation, and constants as arrays.
        options: constants by name.
        joined: whether the operands are given as one list.
    """

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...] = ()
    joined: bool = False


def kernel_of(
    op: ir.Op, given: tuple[Any, ...], options: dict[str, Any], made: TensorType
) -> Kernel:
    """The kernel of an operation.

    Args:
        given, options: abstract values of its operands.
        made: its result, of known shape and dtype.

    Raises:
        NoKernel: there is none that gives the same bits, or too little is known.
    """
    if op.op in TWO and len(given) == 2 and not options:
        return of_two(op.op, given, made)
    name = ALIASES.get(op.op, op.op)
    if name in ONE and len(given) == 1 and not options:
        return of_one(name, given[0], made)
    special = SPECIAL.get(name)
    if special is None:
        raise NoKernel(f"{op.op} is computed by the core")
    try:
        return special(*given, **options)
    except TypeError:
        raise NoKernel(f"{op.op} is computed by the core") from None


def dtype_of(value: Any) -> str:
    """The dtype of a tensor that is known."""
    if not isinstance(value, TensorType) or value.dtype is None or value.shape is None:
        raise NoKernel("an operand is not known")
    return value.dtype


def common_dtype(given: tuple[Any, ...]) -> str:
    """The one dtype of all tensors among operands, which no number among them widens."""
    dtypes = {dtype_of(each) for each in given if isinstance(each, TensorType)}
    if len(dtypes) != 1:
        raise NoKernel(NOT_ALIKE)
    (dtype,) = dtypes
    for each in given:
        if isinstance(each, TensorType):
            continue
        kind = kind_of(each)
        if kind not in (bool, int, float):
            raise NoKernel("an operand is not known")
        if promoted(dtype, kind_of_number(kind())) != dtype:
            raise NoKernel(NOT_ALIKE)
        if kind is int and is_known(each) and abs(each) > MOST_EXACT:
            raise NoKernel("a number has too many digits")
    return dtype


def operand_at(place: int, value: Any, dtype: str) -> Any:
    """An operand of a kernel: its number, or the array of a constant."""
    if isinstance(value, TensorType | PlainType):
        return place
    made = np.array(value, NUMPY[dtype])
    made.flags.writeable = False
    return made


def of_two(name: str, given: tuple[Any, ...], made: TensorType) -> Kernel:
    """A function of each pair."""
    dtype = common_dtype(given)
    if made.dtype not in (dtype, "bool"):
        raise NoKernel(NOT_ALIKE)
    if name == "power" and dtype not in FRACTIONS:
        raise NoKernel("a power of integers is computed by the core")
    places = (operand_at(place, value, dtype) for place, value in enumerate(given))
    return Kernel(TWO[name].ufunc, tuple(places))


def of_one(name: str, value: Any, made: TensorType) -> Kernel:
    """A function of each element."""
    dtype = dtype_of(value)
    if made.dtype not in (dtype, "bool"):
        raise NoKernel(NOT_ALIKE)
    ufunc = ONE[name].ufunc
    if ufunc is None:
        raise NoKernel(f"{name} is computed by the core")
    return Kernel(ufunc, (0,) if ufunc.nin == 1 else (0, operand_at(1, 0, dtype)))


def known_axis(axis: Any, keepdims: Any = False) -> tuple[tuple[str, Any], ...]:
    """Options of a reduction."""
    if not is_known(axis) or not isinstance(keepdims, bool) or isinstance(axis, bool):
        raise NoKernel("its axes are not known")
    return (("axis", axis), ("keepdims", keepdims))


def of_all(row: Row) -> Any:
    """A reduction by a ufunc of two; sums of fractions hang on the order, the greatest does not."""
    counts = {"dtype": np.int64} if row.dtype is COUNTING else {}

    def kernel(value: Any, axis: Any = None, keepdims: Any = False) -> Kernel:
        if counts and dtype_of(value) in FRACTIONS:
            raise NoKernel(OTHER_ORDER)
        dtype_of(value)
        return Kernel(row.ufunc.reduce, (0,), (*known_axis(axis, keepdims), *counts.items()))

    return kernel


def position(function: Any) -> Any:
    """Where the greatest or least is."""

    def kernel(value: Any, axis: Any = None) -> Kernel:
        dtype_of(value)
        return Kernel(function, (0,), known_axis(axis)[:1])

    return kernel


def matmul(left: Any, right: Any) -> Kernel:
    """A product."""
    if {dtype_of(left), dtype_of(right)} not in ({"float32"}, {"float64"}):
        raise NoKernel(NOT_ALIKE)
    return Kernel(np.matmul, (0, 1))


def dot(left: Any, right: Any) -> Kernel:
    """A product of two vectors."""
    if isinstance(left, TensorType) and left.shape is not None and len(left.shape) == 1:
        return matmul(left, right)
    raise NoKernel("dot is computed by the core")


def join(function: Any) -> Any:
    """Several put together."""

    def kernel(tensors: Any, axis: Any = 0) -> Kernel:
        if not isinstance(tensors, tuple) or not all(isinstance(t, TensorType) for t in tensors):
            raise NoKernel("an operand is not known")
        common_dtype(tensors)
        return Kernel(function, (0,), known_axis(axis)[:1], joined=True)

    return kernel


SPECIAL: dict[str, Callable[..., Kernel]] = {
    **{name: of_all(row) for name, row in ROWS.items() if row.kind == REDUCING and row.ufunc},
    "argmax": position(np.argmax),
    "argmin": position(np.argmin),
    "matmul": matmul,
    "dot": dot,
    "concat": join(np.concatenate),
    "stack": join(np.stack),
}
