"""Memory shared with NumPy, DLPack and buffers, in both directions and without a copy.

What is lent out holds its object as EXPORT until the last borrower is gone, so an array stays valid
when the scope of its tensor ends. What is taken in keeps its owner alive until it is freed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime import contexts, core
from tlmem.runtime.dtypes import NUMPY, dtype_name
from tlmem.runtime.tensors.making import blank

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor


def numpy_of(tensor: Any) -> Any:
    """An array over the memory of a tensor, which it holds.

    Raises:
        UseAfterFree: the tensor is freed.
        InArena: its memory ends with its frame or scope.
    """
    data = tensor._data("lend")
    lent = core.Lent()
    readonly = not data.flags.writeable
    core.check(lent._lend(tensor.handle, tensor._span, readonly), "lend", tensor)
    offset = address_of(data) - tensor._address() if data.size else 0
    buffer: Any = lent
    return np.ndarray(tensor.shape, NUMPY[tensor.dtype], buffer, offset, data.strides)


def address_of(array: Any) -> int:
    """Where the first element of an array is."""
    return int(array.__array_interface__["data"][0])


def from_numpy(array: Any, *, scope: Any = None) -> Tensor:
    """A tensor over the memory of an array, which is kept until the tensor is freed.

    Writing to one is seen in the other. A read-only array gives a tensor that cannot be written to.
    The memory does not count as tlmem's.

    Raises:
        TypeError: it is no NumPy array.
        WrongDtype: its dtype is not one of the five, or not in the byte order of this machine.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"from_numpy needs a NumPy array, not {type(array).__name__}; tensor(data) copies"
        )
    return over_array(array, core.scope_id(scope))


def over_array(array: Any, scope: int) -> Tensor:
    """The same for an array, in a scope by number, ``INNERMOST`` or ``NO_SCOPE``."""
    dtype = dtype_name(array.dtype)
    contexts.settle()
    tensor = blank(array.shape, dtype)
    low, span = extent(array)
    tensor._device, tensor._span = core.CPU, span
    tensor._readonly = not array.flags.writeable
    status = tensor._adopt_memory(array, low, scope)
    if status:
        core.raise_for(status, "take over the memory of", tensor._name())
    memory = tensor._memory(span, not array.flags.writeable)
    offset = address_of(array) - low if span else 0
    # Another array than the given one: that one may go when the tensor is freed.
    tensor._array = np.ndarray(array.shape, NUMPY[dtype], memory, offset, array.strides)
    return tensor


def extent(array: Any) -> tuple[int, int]:
    """The lowest address of an array's elements, and the bytes from there to their end."""
    low = address_of(array)
    if not array.size:
        return low, 0
    high = low + array.itemsize
    for length, stride in zip(array.shape, array.strides, strict=True):
        reach = (length - 1) * stride
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high - low


def from_dlpack(source: Any, *, scope: Any = None) -> Tensor:
    """A tensor over the memory of anything that speaks DLPack, on the CPU, without a copy.

    Raises:
        WrongDtype: its dtype is not one of the five.
        BufferError, TypeError: it does not lend its memory; from NumPy.
    """
    return from_numpy(np.from_dlpack(source), scope=scope)


class Interop:
    """How a tensor lends its memory."""

    __slots__ = ()

    def numpy(self: Any) -> Any:
        """An array over the same memory, which holds the tensor: no copy.

        Raises:
            UseAfterFree: the tensor is freed.
            InArena: its memory ends with its frame or scope.
        """
        return numpy_of(self)

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        array = numpy_of(self)
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"{self._name()} cannot be {np.dtype(dtype).name} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __buffer__(self: Any, flags: int, /) -> memoryview:
        return memoryview(numpy_of(self))

    def __dlpack__(self: Any, **options: Any) -> Any:
        return numpy_of(self).__dlpack__(**options)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        return (1, 0)  # kDLCPU: the host can read the memory of all our devices

    def item(self: Any) -> bool | int | float:
        """The value of a tensor with one element.

        Raises:
            ValueError: it has none or several.
        """
        data = self._data("read")
        if data.size != 1:
            raise ValueError(f"{self._name()} has {data.size} elements, not one; use tolist()")
        return data.item()

    def tolist(self: Any) -> Any:
        """The values as nested lists, or one number."""
        return self._data("read").tolist()

    def __bool__(self: Any) -> bool:
        if self.size != 1:
            raise ValueError(
                f"{self._name()} has {self.size} elements, and only one has a truth value; use "
                "any() or all()"
            )
        return bool(self.item())

    def __float__(self: Any) -> float:
        return float(self.item())

    def __int__(self: Any) -> int:
        return int(self.item())

    def __index__(self: Any) -> int:
        if self.dtype not in ("int32", "int64"):
            raise TypeError(f"{self._name()} cannot be an index; only int32 and int64 can")
        return int(self.item())
