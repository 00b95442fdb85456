"""What compiled code calls to write a result into the ``out=`` of its caller."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlmem.runtime import core
from tlmem.runtime.tensors.core_ops import apply_apart, require_out_without_gradient
from tlmem.runtime.tensors.making import destination
from tlmem.runtime.tensors.storage import Shape, Storage


def into_out(value: Any, out: Any) -> Any:
    """Writes a result into the destination of the caller, which is returned.

    Raises:
        TypeError: the result is not a tensor.
        NotDifferentiable: the result needs a gradient.
        WrongShape, WrongDtype, WrongDevice: ``out`` does not fit; nothing was written.
    """
    if not isinstance(value, Storage):
        raise TypeError(
            f"out= is for a function that returns one tensor, and this one returned "
            f"{type(value).__name__}; leave out= away"
        )
    if value is out:
        return out
    require_out_without_gradient("the result", out, value)
    found = destination(out, value.shape, value.dtype, value._device)
    np.copyto(found._data(), value._data())
    return found


def array_of_out(out: Any, shape: Shape, dtype: str, device: int) -> Any:
    """The array of a destination that NumPy is to write to. Errors as ``into_out``."""
    return destination(out, shape, dtype, device)._data()


def computed_apart(row: int, count: int, out: Any, *operands_and_parameters: Any) -> Any:
    """Computes an op of the core beside a destination that was found to fit, and copies."""
    made = apply_apart(row, count, *operands_and_parameters)
    np.copyto(out._data(), made._data())
    return out


def copied_out(value: Any, out: Any) -> Any:
    """Writes an array of a frame into the destination, which is returned. Errors as above."""
    found = destination(out, value.shape, value.dtype.name, core.CPU)
    np.copyto(found._data(), value)
    return found
