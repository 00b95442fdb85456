"""Parts of a tensor by index: views, copies of chosen elements, and writing into parts.

Integers, slices, None and ``...`` give a view: a tensor that looks into the same memory and holds
its owner. Lists, arrays and tensors of integers or bools choose elements and give a copy.
Does not cover: views of another shape of the same elements (``shaping``).
"""

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime import core
from tlmem.runtime.core import lib
from tlmem.runtime.dtypes import dtype_name
from tlmem.runtime.errors import WrongDtype, WrongShape
from tlmem.runtime.tensors.computing import compute, compute_apart
from tlmem.runtime.tensors.core_ops import (
    apply,
    apply_apart,
    apply_strictly,
    before_writing,
    engine,
    needs,
    require_no_gradient,
    require_out_without_gradient,
    row,
)
from tlmem.runtime.tensors.factories import require_all_fit
from tlmem.runtime.tensors.making import destination, device_of, temporary, view
from tlmem.runtime.tensors.rows import by_row
from tlmem.runtime.tensors.storage import Storage, shape_text

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

TAKE, GATHER, RESHAPE = row("take"), row("gather"), row("reshape")

PLAIN = (int, slice, type(None), EllipsisType, np.integer)


def is_plain(key: Any) -> bool:
    """Whether an index gives a view."""
    if isinstance(key, tuple):
        return all(is_plain(each) and not isinstance(each, tuple) for each in key)
    return isinstance(key, PLAIN) and not isinstance(key, bool)


def get(tensor: Any, key: Any) -> Tensor:
    """``tensor[key]``.

    Raises:
        IndexError: an index is out of range, or there are too many.
        TypeError: something in it is no index.
    """
    made = engine.part(tensor, key)
    if made is not NotImplemented:
        return made
    data = tensor._data("index")
    if not is_plain(key):
        return chosen(tensor, key)
    part = data[key]
    require_no_gradient("take a part of", tensor)
    if not isinstance(part, np.ndarray):  # one element
        part = data[(*key, ...) if isinstance(key, tuple) else (key, ...)]
    return view(tensor, part)


def chosen(tensor: Any, key: Any) -> Tensor:
    """A copy of the elements that lists or arrays choose."""
    if isinstance(key, tuple):
        raise TypeError(
            "one list, array or tensor of indices at a time: index an axis with a slice first, or "
            "use take(tensor, index, axis)"
        )
    index = index_array(key)
    if index.dtype == np.bool_:
        return compress(tensor, index)
    return take(tensor, index, 0)


def index_array(key: Any) -> Any:
    """The array of int64 or bool that an index is; of other integers a copy.

    Raises:
        TypeError: it is of another dtype.
    """
    array = key._data("index with") if isinstance(key, Storage) else np.asarray(key)
    if array.dtype == np.bool_ or (array.dtype == np.int64):
        return array
    if np.issubdtype(array.dtype, np.integer) or array.size == 0:
        return array.astype(np.int64)
    shown = type(key).__name__ if array.dtype == np.object_ else array.dtype.name
    means = "; tensor(data, 'int64') makes integers" if isinstance(key, Storage) else ""
    raise TypeError(
        f"an index is an integer, a slice, or a list of integers or bools, not {shown}{means}"
    )


def compress(tensor: Any, mask: Any) -> Tensor:
    """The elements, or rows, for which a mask is true."""
    if mask.shape not in (tensor.shape, tensor.shape[:1]):
        raise WrongShape(
            f"a mask of shape {shape_text(mask.shape)} does not fit shape "
            f"{shape_text(tensor.shape)}; it must have the same, or the length of the first axis"
        )
    found = int(np.count_nonzero(mask))
    whole = mask.ndim == tensor.ndim
    if needs(tensor):
        rows = apply_apart(RESHAPE, 1, tensor, 1, tensor.size) if whole else tensor
        return take(rows, np.flatnonzero(mask), 0)
    shape = (found,) if whole else (found, *tensor.shape[1:])
    data = contiguous_data(tensor).reshape(-1) if whole else tensor._data()
    result = destination(None, shape, tensor.dtype, tensor._device)
    return compute(compress_into, result, None, mask.reshape(-1), data)


def compress_into(mask: Any, data: Any, out: Any) -> None:
    np.compress(mask, data, axis=0, out=out)


def contiguous_data(tensor: Any) -> Any:
    """Its elements row by row: its own memory, or a temporary that lives as long as the array."""
    data = tensor._data()
    if data.flags.c_contiguous:
        return data
    copy = temporary(tensor.shape, tensor.dtype, tensor._device)
    np.copyto(copy._data(), data)
    return copy.numpy()


@by_row
def take(tensor: Tensor, index: Any, axis: int = 0, out: Tensor | None = None) -> Tensor:
    """Slices along an axis, chosen by integers: a copy.

    Args:
        index: a tensor, array or list of integers, of any shape; negative ones count from the end.
    Raises:
        IndexError: one is out of range.
        WrongShape: there is no such axis.
    """
    if not isinstance(tensor, Storage):
        raise TypeError(f"take needs a tlmem.Tensor, not {type(tensor).__name__}")
    if not -len(tensor.shape) <= axis < len(tensor.shape):
        raise WrongShape(f"there is no axis {axis} in shape {shape_text(tensor.shape)}")
    axis %= len(tensor.shape)
    places = index_array(index)
    if places.dtype == np.bool_:
        raise WrongDtype("take needs integers; a mask goes between brackets: t[mask]")
    require_in_range(places, tensor.shape[axis])
    require_out_without_gradient("take", out, tensor)
    if needs(tensor):
        return apply_strictly(TAKE, 2, tensor, index_tensor(index, places, tensor), axis)
    if out is None and (made := chosen_by_op(TAKE, tensor, index, axis)) is not NotImplemented:
        return made
    shape = (*tensor.shape[:axis], *places.shape, *tensor.shape[axis + 1 :])
    device = device_of([tensor, index]) if isinstance(index, Storage) else tensor._device
    result = destination(out, shape, tensor.dtype, device)
    # In range already, so "wrap" changes nothing but lets NumPy write without a buffer of its own.
    data = tensor._data()
    return compute_apart(np.take, result, out, [places], data, places, axis=axis, mode="wrap")


def require_in_range(places: Any, length: int) -> None:
    """Raises IndexError when an index is not within -length to length - 1."""
    if places.size and not -length <= places.min() <= places.max() < length:
        wrong = places.min() if places.min() < -length else places.max()
        raise IndexError(f"index {wrong} is out of range for an axis of length {length}")


@by_row
def gather(tensor: Tensor, axis: int, index: Any, out: Tensor | None = None) -> Tensor:
    """One element for each index: its place along ``axis`` is the index, elsewhere its own place.

    For two axes and axis 0 that is ``result[i, j] = tensor[index[i, j], j]``.

    Raises:
        WrongShape: the index has another number of axes, or is longer along another axis.
        IndexError: an index is out of range.
    """
    places = index_array(index)
    if places.dtype == np.bool_ or not isinstance(tensor, Storage):
        raise TypeError("gather needs a tlmem.Tensor and integers")
    rank = len(tensor.shape)
    if places.ndim != rank or not -rank <= axis < rank:
        raise WrongShape(
            f"gather along axis {axis} needs an index with the {rank} axes of shape "
            f"{shape_text(tensor.shape)}, not {shape_text(places.shape)}"
        )
    axis %= rank
    if any(
        p > t for i, (p, t) in enumerate(zip(places.shape, tensor.shape, strict=True)) if i != axis
    ):
        raise WrongShape(
            f"an index of shape {shape_text(places.shape)} is longer than "
            f"{shape_text(tensor.shape)} along an axis that is not gathered"
        )
    require_in_range(places, tensor.shape[axis])
    require_out_without_gradient("gather", out, tensor)
    if needs(tensor):
        return apply_strictly(GATHER, 2, tensor, index_tensor(index, places, tensor), axis)
    if out is None and (made := chosen_by_op(GATHER, tensor, index, axis)) is not NotImplemented:
        return made
    device = device_of([tensor, index]) if isinstance(index, Storage) else tensor._device
    flat = temporary(places.shape, "int64", device)
    number_elements(flat._data(), places, tensor.shape, axis)
    source = contiguous_data(tensor).reshape(-1)
    result = destination(out, places.shape, tensor.dtype, device)
    return compute(np.take, result, out, source, flat._data(), mode="wrap")


def chosen_by_op(row: int, tensor: Any, index: Any, axis: int) -> Any:
    """By the core, which reads an index that is a tensor already; else NotImplemented."""
    if isinstance(index, Storage) and index.dtype == "int64":
        return apply(row, 2, tensor, index, axis)
    return NotImplemented


def index_tensor(index: Any, places: Any, tensor: Any) -> Any:
    """An index as a tensor that an op reads, on the device of what is indexed."""
    if isinstance(index, Storage) and index.dtype == "int64":
        device_of([tensor, index])
        return index
    made = temporary(places.shape, "int64", tensor._device)
    np.copyto(made._data(), places)
    return made


def number_elements(flat: Any, places: Any, shape: tuple[int, ...], axis: int) -> None:
    """Fills ``flat`` with the number, row by row in ``shape``, of each element that is gathered."""
    step, steps = 1, []
    for length in reversed(shape):
        steps.append(step)
        step *= length
    steps.reverse()
    np.remainder(places, max(shape[axis], 1), out=flat)
    np.multiply(flat, steps[axis], out=flat)
    for i, length in enumerate(flat.shape):
        if i != axis:
            line = np.arange(length) * steps[i]
            np.add(flat, line.reshape([-1 if j == i else 1 for j in range(flat.ndim)]), out=flat)


def put(tensor: Any, key: Any, value: Any) -> None:
    """``tensor[key] = value``, broadcast; in place, also through a view.

    Raises:
        WrongShape: the value does not fit. WrongDtype: its dtype is of a higher kind.
        SizeOverflow: a number does not fit int32.
    """
    data = tensor._data("write to")
    if isinstance(value, Storage):
        device_of([tensor, value])
        source = value._data("copy")
    else:
        source = np.asarray(value)
        if isinstance(value, np.ndarray):
            dtype_name(source.dtype)
        else:
            require_all_fit(source, tensor.dtype)
    if not np.can_cast(source.dtype, data.dtype, "same_kind") and not weak(value, data):
        raise WrongDtype(
            f"{source.dtype.name} does not fit into {core.subject_text(tensor)}; "
            f"convert it with .astype({tensor.dtype!r})"
        )
    place = index_of(key)
    require_out_without_gradient("a part", tensor, value)
    if data.flags.writeable:
        before_writing(tensor)
    try:
        data[place] = source
    except ValueError as error:
        if not data.flags.writeable:
            raise ValueError(f"{core.subject_text(tensor)} is read-only: copy it first") from None
        raise WrongShape(
            f"cannot write to a part of {core.subject_text(tensor)}: {error}"
        ) from None
    if isinstance(value, Storage | np.ndarray):
        origin = value.handle if isinstance(value, Storage) else 0
        lib.tlm_copy_record(origin, tensor.handle, source.nbytes)


def weak(value: Any, data: Any) -> bool:
    """Whether a plain number fits: an int into anything, a float into floats."""
    return isinstance(value, int) or (isinstance(value, float) and data.dtype.kind == "f")


def index_of(key: Any) -> Any:
    """An index in which tensors are arrays."""
    if isinstance(key, tuple):
        return tuple(index_of(each) for each in key)
    return key._data("index with") if isinstance(key, Storage) else key


class Views:
    """Indexing of a tensor."""

    __slots__ = ()

    def __getitem__(self: Any, key: Any) -> Tensor:
        return get(self, key)

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        put(self, key, value)

    def __len__(self: Any) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def __iter__(self: Any) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("a tensor without axes cannot be iterated over; use .item()")
        return (get(self, i) for i in range(self.shape[0]))
