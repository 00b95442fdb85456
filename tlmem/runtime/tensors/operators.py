"""The operators of a tensor in Python, and the functions of each element that are also methods.

Does not cover: what they compute (``elementwise``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tlmem.runtime.tensors import elementwise
from tlmem.runtime.tensors.computing import OPERANDS
from tlmem.runtime.tensors.linalg import matmul_operator

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor


def operator(function: Any) -> Any:
    """What an operator does with operands that are not for the ops of the core."""

    def operate(*operands: Any) -> Any:
        for each in operands:
            if not isinstance(each, OPERANDS):
                return NotImplemented
        return function(*operands)

    return operate


BY_NAME = {
    "add": operator(elementwise.add),
    "subtract": operator(elementwise.subtract),
    "multiply": operator(elementwise.multiply),
    "divide": operator(elementwise.divide),
    "power": operator(elementwise.power),
    "negative": operator(elementwise.negative),
    "matmul": matmul_operator,
}
"""Of the operators that the core computes first (``native/python/tensor/pyoperators.c``)."""


class Operators:
    """The operators of a tensor that the core does not have."""

    __slots__ = ()
    __array_priority__ = 1000  # of array + tensor, the tensor decides

    def __iadd__(self: Any, other: Any) -> Any:
        return elementwise.add(self, other, self) if isinstance(other, OPERANDS) else NotImplemented

    def __isub__(self: Any, other: Any) -> Any:
        return (
            elementwise.subtract(self, other, self)
            if isinstance(other, OPERANDS)
            else NotImplemented
        )

    def __imul__(self: Any, other: Any) -> Any:
        return (
            elementwise.multiply(self, other, self)
            if isinstance(other, OPERANDS)
            else NotImplemented
        )

    def __itruediv__(self: Any, other: Any) -> Any:
        return (
            elementwise.divide(self, other, self) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __floordiv__(self, other: Any) -> Any:
        return (
            elementwise.floor_divide(self, other) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __rfloordiv__(self, other: Any) -> Any:
        return (
            elementwise.floor_divide(other, self) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __ifloordiv__(self: Any, other: Any) -> Any:
        return (
            elementwise.floor_divide(self, other, self)
            if isinstance(other, OPERANDS)
            else NotImplemented
        )

    def __mod__(self, other: Any) -> Any:
        return elementwise.remainder(self, other) if isinstance(other, OPERANDS) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return elementwise.remainder(other, self) if isinstance(other, OPERANDS) else NotImplemented

    def __imod__(self: Any, other: Any) -> Any:
        return (
            elementwise.remainder(self, other, self)
            if isinstance(other, OPERANDS)
            else NotImplemented
        )

    def __ipow__(self: Any, other: Any) -> Any:
        return (
            elementwise.power(self, other, self) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __and__(self, other: Any) -> Any:
        return (
            elementwise.bitwise_and(self, other) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __rand__(self, other: Any) -> Any:
        return (
            elementwise.bitwise_and(other, self) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __or__(self, other: Any) -> Any:
        return (
            elementwise.bitwise_or(self, other) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __ror__(self, other: Any) -> Any:
        return (
            elementwise.bitwise_or(other, self) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __xor__(self, other: Any) -> Any:
        return (
            elementwise.bitwise_xor(self, other) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __rxor__(self, other: Any) -> Any:
        return (
            elementwise.bitwise_xor(other, self) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __eq__(self, other: Any) -> Any:
        return elementwise.equal(self, other) if isinstance(other, OPERANDS) else NotImplemented

    def __ne__(self, other: Any) -> Any:
        return elementwise.not_equal(self, other) if isinstance(other, OPERANDS) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return elementwise.less(self, other) if isinstance(other, OPERANDS) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return (
            elementwise.less_equal(self, other) if isinstance(other, OPERANDS) else NotImplemented
        )

    def __gt__(self, other: Any) -> Any:
        return elementwise.greater(self, other) if isinstance(other, OPERANDS) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return (
            elementwise.greater_equal(self, other)
            if isinstance(other, OPERANDS)
            else NotImplemented
        )

    def __abs__(self: Any) -> Tensor:
        return elementwise.absolute(self)

    def __invert__(self: Any) -> Tensor:
        return elementwise.invert(self)

    def __pos__(self: Any) -> Tensor:
        return self.copy()

    __hash__ = object.__hash__  # equality is of elements, and tensors are things

    def exp(self: Any, out: Tensor | None = None) -> Tensor:
        """e to the power of each element."""
        return elementwise.exp(self, out)

    def log(self: Any, out: Tensor | None = None) -> Tensor:
        """The natural logarithm."""
        return elementwise.log(self, out)

    def sqrt(self: Any, out: Tensor | None = None) -> Tensor:
        """The square root."""
        return elementwise.sqrt(self, out)

    def abs(self: Any, out: Tensor | None = None) -> Tensor:
        """The distance from 0."""
        return elementwise.absolute(self, out)

    def tanh(self: Any, out: Tensor | None = None) -> Tensor:
        """The hyperbolic tangent."""
        return elementwise.tanh(self, out)

    def relu(self: Any, out: Tensor | None = None) -> Tensor:
        """Each element, or 0 when it is negative."""
        return elementwise.relu(self, out)

    def sigmoid(self: Any, out: Tensor | None = None) -> Tensor:
        """``1 / (1 + exp(-x))``."""
        return elementwise.sigmoid(self, out)

    def clip(self: Any, low: Any, high: Any, out: Tensor | None = None) -> Tensor:
        """Each element, but not below ``low`` and not above ``high``."""
        return elementwise.clip(self, low, high, out)
