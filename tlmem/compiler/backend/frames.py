"""The memory of a specialisation: one buffer, and arrays and tensors over it that are made once.

A frame serves one call at a time. A call that finds none free (recursion, other threads) makes
another one; a few are kept.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tlmem.runtime import core
from tlmem.runtime.dtypes import NUMPY
from tlmem.runtime.tensors import making

KEPT_FRAMES = 4


@dataclass(frozen=True)
class Part:
    """One planned result.

    Attributes:
        offset: bytes from the begin of the buffer.
        is_array: whether an array over it is needed.
        is_tensor: whether a tensor over it is.
    """

    offset: int
    shape: tuple[int, ...]
    dtype: str
    is_array: bool = True
    is_tensor: bool = False


@dataclass
class Frames:
    """The frames of a specialisation.

    Attributes:
        parts: what is in a frame; first come the arrays, then the tensors, then the buffer.
        nbytes: of the buffer.
        free: frames that no call uses.
    """

    parts: tuple[Part, ...]
    nbytes: int
    free: deque[tuple[Any, ...]] = field(default_factory=lambda: deque(maxlen=KEPT_FRAMES))

    def make(self) -> tuple[Any, ...]:
        """A frame of its own.

        Raises:
            DeviceOutOfMemory: there is no memory for the buffer.
        """
        buffer = making.temporary((self.nbytes,), "bool", core.CPU)
        memory = buffer._memory(self.nbytes, 0)
        arrays = [
            np.ndarray(part.shape, NUMPY[part.dtype], memory, part.offset) for part in self.parts
        ]
        tensors = [
            tensor_over(buffer, array, part.dtype)
            for part, array in zip(self.parts, arrays, strict=True)
            if part.is_tensor
        ]
        kept = (array for part, array in zip(self.parts, arrays, strict=True) if part.is_array)
        return (*kept, *tensors, buffer)


def tensor_over(buffer: Any, array: Any, dtype: str) -> Any:
    """A tensor that looks into a buffer, in no scope, and holds it."""
    made = making.blank(array.shape, dtype)
    made._array, made._base = array, buffer
    made._device, made._span = buffer._device, buffer._span
    core.check(made._make_view(buffer.handle, core.NO_SCOPE), "view", buffer)
    return made
