"""``Tensor``: all that a tensor is and can do, put together from the files beside it.

Covers: copies, conversion, text, pickling. Does not cover: ownership (``storage``), operators and
operations as methods (``operators``), indexing (``views``), shapes (``shaping``), sharing memory
(``interop``), making tensors (``factories``).
See also: docs/reference/tensor.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tlmem.runtime import core
from tlmem.runtime.core import lib
from tlmem.runtime.dtypes import WHOLE, dtype_name
from tlmem.runtime.errors import WrongDtype
from tlmem.runtime.tensors import core_ops, making
from tlmem.runtime.tensors.core_ops import CAST, DTYPE_NUMBER
from tlmem.runtime.tensors.differentiable import FLOATING, Differentiable
from tlmem.runtime.tensors.factories import number_dtype, restored
from tlmem.runtime.tensors.interop import Interop, over_array
from tlmem.runtime.tensors.operators import BY_NAME, Operators
from tlmem.runtime.tensors.shaping import Shaping
from tlmem.runtime.tensors.storage import Storage, shape_text
from tlmem.runtime.tensors.views import Views


class Tensor(Operators, Views, Shaping, Interop, Differentiable, Storage):
    """Numbers of one dtype in memory whose owner is known at every moment.

    Made by ``zeros``, ``ones``, ``full``, ``empty``, ``randn``, ``arange``, ``tensor``,
    ``from_numpy``, ``from_dlpack`` and by operations. Inside a scope the scope owns it; outside any
    scope this Python object does, and frees it when it dies.

    Attributes:
        handle: number of its object in the C core; never that of another object.
        shape: lengths of its axes.
        dtype: ``"float32"``, ``"float64"``, ``"int64"``, ``"int32"`` or ``"bool"``.
    """

    __slots__ = ()

    def __new__(cls, *arguments: Any, **options: Any) -> Tensor:
        raise TypeError("a Tensor is made by tlmem.tensor(data), zeros, ones, empty and others")

    # ---- copies ----

    def copy(self) -> Tensor:
        """The same values in memory of its own, on the same device; recorded as a copy."""
        return self.astype(self.dtype)

    def astype(self, dtype: Any) -> Tensor:
        """A copy of another dtype; numbers that do not fit are cut as NumPy cuts them.

        Raises:
            WrongDtype: it is not one of the five.
        """
        return self._copied(dtype_name(dtype), self._device)

    def to(self, device: Any) -> Tensor:
        """The tensor itself when it is on the device already, else a copy that is.

        Raises:
            NoSuchDevice, DeviceOutOfMemory: nothing changed.
        """
        number = core.device_number(device)
        self._require("copy")
        return self if number == self._device else self._copied(self.dtype, number)

    def contiguous(self) -> Tensor:
        """The tensor itself when its elements lie row by row without gaps, else a copy."""
        return self if self._data("copy").flags.c_contiguous else self.copy()

    def fill(self, value: bool | int | float) -> Tensor:
        """Sets every element; returns the same tensor.

        Raises:
            WrongDtype: the value does not fit the dtype.
        """
        data = self._data("write to")
        core_ops.before_writing(self)
        if number_dtype(value) == "float32" and self.dtype in WHOLE:
            raise WrongDtype(f"{value!r} does not fit {core.subject_text(self)}")
        data.fill(value)
        return self

    def _copied(self, dtype: str, device: int) -> Tensor:
        if dtype in FLOATING:
            found: Any = core_ops.apply(CAST, 1, self, DTYPE_NUMBER[dtype], device + 1)
            if found is not NotImplemented:
                return found
            core_ops.require_no_gradient("copy", self)
        data = self._data("copy")
        made = making.make(self.shape, dtype, device)
        np.copyto(made._data(), data, casting="unsafe")
        lib.tlm_copy_record(self.handle, made.handle, made.nbytes)
        return made

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memory: Any) -> Tensor:
        if not self._requires_grad:
            return self.copy()
        return self.detach().copy().requires_grad_()  # a leaf gives a leaf

    def __reduce__(self) -> Any:
        content = self._data("pickle").tobytes()
        return restored, (self.shape, self.dtype, self.device, content, self._requires_grad)

    # ---- text ----

    def __repr__(self) -> str:
        about = f"{self.dtype}{shape_text(self.shape)} {self.device}"
        if not self.alive:
            return f"<Tensor {about}, {self._end_text()}>"
        values = np.array2string(self._data(), threshold=6, edgeitems=2, separator=", ")
        return f"<Tensor {about} {' '.join(values.split())}>"

    def __format__(self, form: str) -> str:
        """The text; with a format, the value of a tensor of one element: ``f"{loss:.3f}"``.

        Raises:
            ValueError: there is a format and not one element. UseAfterFree: it was freed.
        """
        return format(self.item(), form) if form else str(self)

    def _end_text(self) -> str:
        freed = self._freed_by()
        return freed if self._moved else f"freed {freed}".rstrip()


def _of_array(array: Any) -> Tensor:
    return over_array(array, core.NO_SCOPE)


def _view_of_all(tensor: Tensor) -> Tensor:
    return making.view(tensor, tensor._data("detach")[...])


making.made_class = Tensor
core_ops.connect(Tensor, _of_array, _view_of_all)
core_ops.engine.operators(BY_NAME)
