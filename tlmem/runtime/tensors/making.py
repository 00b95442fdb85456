"""Making tensors, and finding that one fits as the destination of an operation.

Covers: memory of a tensor's own, temporaries, views, the arena, another handle of the same object,
``out=``. Does not cover: what is put into the memory (``factories`` and the operations).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tlmem.runtime import contexts, core
from tlmem.runtime.core import INNERMOST, NO_SCOPE, lib
from tlmem.runtime.dtypes import ITEM_BYTES, NUMPY
from tlmem.runtime.errors import SizeOverflow, WrongDtype, WrongShape
from tlmem.runtime.tensors.core_ops import before_writing
from tlmem.runtime.tensors.core_ops import different_devices as different_devices
from tlmem.runtime.tensors.storage import Shape, Storage, shape_text

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

MOST_BYTES = 2**63 - 1
MOST_AXES = 64  # as in NumPy

made_class: type[Storage] = Storage
"""The class of what is made; ``tensor`` puts ``Tensor`` here."""


new = object.__new__

# ---- making ----


def blank(shape: Shape, dtype: str) -> Any:
    """A tensor without an object yet."""
    tensor = new(made_class)
    tensor.shape = shape
    tensor.dtype = dtype
    return tensor


def make(shape: Shape, dtype: str, device: int = core.CPU, scope: int = INNERMOST) -> Tensor:
    """A tensor with memory of its own, contents undefined, taken by a scope or by its handle.

    Args:
        shape: lengths, each 0 or more; checked by the caller.
        scope: id of the scope that takes it, ``INNERMOST`` or ``NO_SCOPE``.
    Raises:
        DeviceOutOfMemory, SizeOverflow, NoSuchDevice, NotInScope: nothing was allocated then.
    """
    contexts.settle()
    tensor: Any = new(made_class)
    tensor.shape = shape
    tensor.dtype = dtype
    nbytes = prod(shape) * ITEM_BYTES[dtype]
    if len(shape) > MOST_AXES:
        raise too_many_axes(tensor, len(shape))
    if nbytes > MOST_BYTES or (nbytes == 0 and is_absurd(shape, dtype)):
        raise too_large(tensor)
    status = tensor._make(device, nbytes, scope)
    if status:
        fail_to_make(status, tensor)
    return tensor


def temporary(shape: Shape, dtype: str, device: int) -> Tensor:
    """A tensor for the inside of an operation: freed with its last name, in no scope."""
    return make(shape, dtype, device, NO_SCOPE)


def is_absurd(shape: Shape, dtype: str) -> bool:
    """Whether only a length of 0 keeps a shape within 63 bits; NumPy has no such arrays."""
    return prod(length or 1 for length in shape) * ITEM_BYTES[dtype] > MOST_BYTES


def too_large(tensor: Storage) -> SizeOverflow:
    """The error of a size that no device could have."""
    return SizeOverflow(
        f"cannot allocate {tensor._name()}: its lengths multiply to more bytes than any "
        "device has; use smaller ones"
    )


def too_many_axes(tensor: Storage, axes: int) -> WrongShape:
    """The error of more axes than NumPy can compute with."""
    return WrongShape(
        f"{core.subject_text(tensor)} cannot have {axes} axes; {MOST_AXES} axes are the most"
    )


def fail_to_make(status: int, tensor: Storage) -> NoReturn:
    """Raises what a status says of a tensor that could not be made."""
    if status == lib.TLM_OVERFLOW:
        raise too_large(tensor)
    core.raise_for(status, "allocate", tensor._name())


def view(base: Any, array: Any) -> Tensor:
    """A tensor that looks into another's memory, where an array over that memory looks.

    It holds the tensor that owns the memory: a view of a view holds the same one.
    """
    contexts.settle()
    owner = base if base._base is None else base._base
    tensor = blank(array.shape, base.dtype)
    tensor._array, tensor._base = array, owner
    tensor._device, tensor._span = base._device, owner._span
    tensor._readonly = not array.flags.writeable
    status = tensor._make_view(base._base_handle or base.handle, INNERMOST)
    if status:
        core.raise_for(status, "view", base)
    return tensor


def view_of_object(
    handle: int, span: int, shape: Shape, dtype: str, device: int, offset: int = 0
) -> Tensor:
    """A tensor that looks into an object that is not a tensor, such as the buffer of a slot.

    Args:
        span: bytes of the object's payload.
        offset: where in it the tensor begins, in bytes.
    Raises:
        WrongShape: the payload has less room.
        UseAfterFree: the object is freed.
    """
    contexts.settle()
    tensor = blank(shape, dtype)
    if offset < 0 or offset + tensor.nbytes > span:
        raise WrongShape(
            f"{tensor._name()} needs {tensor.nbytes} bytes from byte {offset} on; object {handle} "
            f"has {span}"
        )
    tensor._device, tensor._span = device, span
    status = tensor._make_view(handle, INNERMOST)
    if status:
        core.raise_for(status, "view", handle)
    tensor._array = np.ndarray(shape, NUMPY[dtype], tensor._memory(span, 0), offset)
    return tensor


def arena(shape: Shape, dtype: str) -> Tensor:
    """A tensor in the arena of the context: it ends with the innermost scope.

    Raises:
        NotInScope: no scope is entered.
    """
    contexts.settle()
    tensor = blank(shape, dtype)
    status = tensor._make_arena(tensor.nbytes)
    if status:
        fail_to_make(status, tensor)
    return tensor


# ---- destinations ----


def destination(out: Any, shape: Shape, dtype: str, device: int) -> Tensor:
    """``out`` after it was found to fit, or a new tensor when there is none.

    Raises:
        WrongShape, WrongDtype, WrongDevice, UseAfterFree: nothing was touched.
        TypeError: it is not a tensor. ValueError: its memory may not be written.
    """
    if out is None:
        return make(shape, dtype, device)
    if not isinstance(out, Storage):
        raise TypeError(f"out must be a tlmem.Tensor, not {type(out).__name__}")
    array = out._data("write to")
    if out.shape != shape:
        raise WrongShape(
            f"out is {core.subject_text(out)}, and the result has shape {shape_text(shape)}"
        )
    if out.dtype != dtype:
        raise WrongDtype(f"out is {core.subject_text(out)}, and the result has dtype {dtype}")
    if out._device != device:
        raise different_devices([out._device, device], out)
    if not array.flags.writeable:
        raise ValueError(f"{core.subject_text(out)} is read-only: copy it to write to it")
    before_writing(out)
    return out  # type: ignore[return-value]


def device_of(tensors: list[Any]) -> int:
    """The device that all tensors are on.

    Raises:
        WrongDevice: they are on several.
    """
    device: int = tensors[0]._device
    for tensor in tensors:
        if tensor._device != device:
            raise different_devices([device, tensor._device], tensor)
    return device
