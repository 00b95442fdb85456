"""New tensors: filled, random, counted, from data.

Covers: what has memory of its own. Does not cover: memory shared with others (``interop``).

All take ``device`` (a name or a ``Device``; by default that of the scope that is named, else the
CPU), ``scope`` (the scope that owns the tensor, instead of the current one) and ``pool`` (asked
first for a tensor of the same shape, dtype and device). Contents are those asked for, also of a
tensor from a pool; only ``empty`` leaves them undefined. With ``requires_grad`` (of float32 and
float64) operations on the tensor are recorded, and ``backward`` gives it a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime import core
from tlmem.runtime.core import engine, lib
from tlmem.runtime.dtypes import DEFAULT, WHOLE, dtype_name
from tlmem.runtime.errors import SizeOverflow, WrongDtype, WrongShape
from tlmem.runtime.tensors import randomness
from tlmem.runtime.tensors.making import make
from tlmem.runtime.tensors.storage import Shape, Storage

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

COUNTED_AT_ONCE = 8192


def shape_of(given: Any) -> Shape:
    """A shape that is given as an integer or a sequence of integers.

    Raises:
        WrongShape: a length is negative.
        TypeError: a length is no integer.
    """
    if type(given) is tuple:
        for length in given:
            if type(length) is not int or length < 0:
                break
        else:
            return given
    lengths = (
        tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    )
    for length in lengths:
        if isinstance(length, bool | np.ndarray) or not hasattr(length, "__index__"):
            raise TypeError(f"a shape consists of integers, not {length!r}")
        if length < 0:
            raise WrongShape(f"a shape has no negative lengths: {lengths}; use 0 for nothing")
    return tuple(length.__index__() for length in lengths)


def empty(
    shape: int | Sequence[int],
    dtype: Any = DEFAULT,
    *,
    device: Any = None,
    scope: Any = None,
    pool: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor whose contents are undefined until they are written.

    Raises:
        WrongShape: a length is negative.
        WrongDtype: it is not one of the five.
        SizeOverflow, DeviceOutOfMemory: there is no such memory; nothing was allocated.
        NoSuchDevice, NotInScope: the device or scope that was named does not exist.
    """
    lengths = shape_of(shape)
    name = dtype_name(dtype)
    number = core.device_number(getattr(scope, "device", None) if device is None else device)
    if requires_grad and name not in ("float32", "float64"):
        raise WrongDtype(f"{name} cannot have a gradient; only float32 and float64 can")
    found = from_pool(pool, lengths, name, number, scope) if pool is not None else None
    if found is None:
        found = make(lengths, name, number, core.scope_id(scope))
    if requires_grad:
        engine.require(found, True)
    return found


def from_pool(pool: Any, shape: Shape, dtype: str, device: int, scope: Any) -> Tensor | None:
    """A tensor that a pool has, in the scope that is meant; None when it has none."""
    where = () if device == core.CPU else (core.device_name(device),)
    found = pool.acquire(shape, dtype, *where)
    if found is None:
        return None
    if found._device != device:
        pool.release(found)
        return None
    if scope is not None:
        number = core.scope_id(scope)
        if found._holder:
            status = lib.tlm_register_from(number, found.handle, found._holder)
        else:
            lib.tlm_unregister(found.handle)
            status = lib.tlm_register_in(number, found.handle)
        core.check(status, "register", found)
        found._holder, found._scope = 0, number
    return found


def full(
    shape: int | Sequence[int],
    value: bool | int | float,
    dtype: Any = None,
    *,
    device: Any = None,
    scope: Any = None,
    pool: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor in which every element is the value; its dtype is that of the value without one.

    Raises:
        WrongDtype: the value does not fit the dtype. Others as ``empty``.
    """
    name = number_dtype(value) if dtype is None else dtype_name(dtype)
    if name in WHOLE and isinstance(value, float):
        raise WrongDtype(f"{value!r} does not fit {name}; ask for float32, or give an integer")
    require_fit(value, name)
    tensor = empty(shape, name, device=device, scope=scope, pool=pool, requires_grad=requires_grad)
    tensor._data().fill(value)
    return tensor


WIDTHS = {"int32": 32, "int64": 64}


def require_fit(value: bool | int | float, dtype: str) -> None:
    """Raises SizeOverflow for an integer that the dtype does not have."""
    bits = WIDTHS.get(dtype)
    if bits and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        wider = "int64 or float64" if dtype == "int32" else "float64"
        raise SizeOverflow(f"{value!r} does not fit {dtype}; ask for {wider}")
    try:
        float(value)
    except OverflowError:
        raise SizeOverflow(
            f"an integer of {int(value).bit_length()} bits does not fit {dtype}; use a smaller one"
        ) from None


def require_all_fit(source: Any, dtype: str) -> None:
    """Raises SizeOverflow for integers of a program that an int32 does not have."""
    if dtype == "int32" and source.dtype.kind in "iu" and source.size:
        require_fit(int(source.min()), dtype)
        require_fit(int(source.max()), dtype)


def number_dtype(value: Any) -> str:
    """The dtype of a Python number: bool, int64 or float32."""
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, int | np.integer):
        return "int64"
    if isinstance(value, float | np.floating):
        return DEFAULT
    raise WrongDtype(f"{value!r} is not a bool, an int or a float")


def zeros(
    shape: int | Sequence[int],
    dtype: Any = DEFAULT,
    *,
    device: Any = None,
    scope: Any = None,
    pool: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros, or of False. Errors as ``empty``."""
    return full(shape, 0, dtype, device=device, scope=scope, pool=pool, requires_grad=requires_grad)


def ones(
    shape: int | Sequence[int],
    dtype: Any = DEFAULT,
    *,
    device: Any = None,
    scope: Any = None,
    pool: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones, or of True. Errors as ``empty``."""
    return full(shape, 1, dtype, device=device, scope=scope, pool=pool, requires_grad=requires_grad)


def randn(
    shape: int | Sequence[int],
    dtype: Any = DEFAULT,
    *,
    seed: int | None = None,
    device: Any = None,
    scope: Any = None,
    pool: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normally distributed numbers with mean 0 and variance 1; the same for the same seed.

    Raises:
        WrongDtype: the dtype is not float32 or float64. Others as ``empty``.
    """
    name = dtype_name(dtype)
    if name not in ("float32", "float64"):
        raise WrongDtype(f"randn gives float32 or float64, not {name}")
    random = np.random.default_rng(randomness.draw() if seed is None else seed)
    tensor = empty(shape, name, device=device, scope=scope, pool=pool, requires_grad=requires_grad)
    data = tensor._data()
    random.standard_normal(data.shape, dtype=data.dtype, out=data)
    return tensor


def arange(
    start: int | float,
    stop: int | float | None = None,
    step: int | float = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    scope: Any = None,
    pool: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from ``start``, or 0, up to but not including ``stop``; int64 when all are integers.

    Raises:
        ValueError: the step is 0. SizeOverflow: there are too many. Others as ``empty``.
    """
    begin, end = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ValueError("the step of arange must not be 0")
    kinds = {number_dtype(each) for each in (begin, end, step)}
    name = dtype_name(dtype) if dtype is not None else DEFAULT if DEFAULT in kinds else "int64"
    if name == "bool":
        raise WrongDtype("arange gives numbers, not bool")
    for each in (begin, step):
        require_fit(each, name)
    if name == "int32" and begin != end:
        require_fit(end - 1 if step > 0 else end + 1, name)
    try:
        count = max(0, ceil((end - begin) / step))
    except (OverflowError, ValueError):  # of nan
        raise SizeOverflow(f"arange from {begin} to {end} has no end") from None
    tensor = empty(
        (count,), name, device=device, scope=scope, pool=pool, requires_grad=requires_grad
    )
    data = tensor._data()
    for at in range(0, count, COUNTED_AT_ONCE):  # so that NumPy's own memory for it stays small
        part = data[at : at + COUNTED_AT_ONCE]
        np.copyto(part, np.arange(at, at + len(part)) * step + begin, casting="unsafe")
    return tensor


def tensor(
    data: Any,
    dtype: Any = DEFAULT,
    *,
    device: Any = None,
    scope: Any = None,
    pool: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor with a copy of data: nested lists, numbers, an array or another tensor.

    Args:
        dtype: float32 by default; None takes that of the data.
    Raises:
        WrongShape: rows have different lengths.
        WrongDtype: the data are no numbers, or not of one of the five dtypes.
        SizeOverflow: a number does not fit int32; an array or tensor is cut as NumPy cuts it.
            Others as ``empty``.
    """
    source, origin = source_of(data)
    name = dtype_name(source.dtype if dtype is None else dtype)
    if not isinstance(data, Storage | np.ndarray):
        require_all_fit(source, name)
    made = empty(
        source.shape, name, device=device, scope=scope, pool=pool, requires_grad=requires_grad
    )
    np.copyto(made._data(), source, casting="unsafe")
    lib.tlm_copy_record(origin, made.handle, made.nbytes)
    return made


def source_of(data: Any) -> tuple[Any, int]:
    """Data as an array, and the object it is the memory of, 0 for none."""
    if isinstance(data, Storage):
        return data._data("copy"), data.handle
    try:
        source = np.asarray(data)
    except ValueError as error:
        raise WrongShape(f"cannot make a tensor of these data: {error}") from None
    if source.dtype.kind not in "biuf":
        raise WrongDtype(
            f"cannot make a tensor of {source.dtype.name} data; give numbers or bools, in rows of "
            "the same length"
        )
    if not isinstance(data, np.ndarray) and source.dtype == np.uint64:
        raise WrongDtype("an integer of these data does not fit int64; give floats")
    return source, 0


def zeros_like(other: Tensor, dtype: Any = None, **where: Any) -> Tensor:
    """Zeros with the shape of another tensor, and its dtype and device unless others are given."""
    return zeros(other.shape, dtype or other.dtype, **{"device": other._device, **where})


def ones_like(other: Tensor, dtype: Any = None, **where: Any) -> Tensor:
    """Ones with the shape of another tensor, and its dtype and device unless others are given."""
    return ones(other.shape, dtype or other.dtype, **{"device": other._device, **where})


def empty_like(other: Tensor, dtype: Any = None, **where: Any) -> Tensor:
    """Undefined contents with the shape, dtype and device of another tensor."""
    return empty(other.shape, dtype or other.dtype, **{"device": other._device, **where})


def restored(
    shape: Shape, dtype: str, device: str, content: bytes, requires_grad: bool = False
) -> Tensor:
    """A tensor that was pickled, on the same device when there is one of its name, else the CPU."""
    number = core.CPU
    if device != "cpu":
        try:
            number = core.device_number(device)
        except ValueError:
            number = core.CPU
    made = make(tuple(shape), dtype, number)
    made._data().reshape(-1)[...] = np.frombuffer(content, made._data().dtype)
    engine.require(made, requires_grad)
    return made
