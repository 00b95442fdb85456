"""Rules of what puts the same elements into another shape, and of parts of a tensor.

See also: ``tlmem/runtime/shaping.py``, ``tlmem/runtime/views.py``.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tlmem.compiler.passes.abstract import UNKNOWN, PlainType, TensorType
from tlmem.compiler.passes.rules_elements import (
    axes_of,
    common_dtype,
    fresh,
    tensor,
)
from tlmem.compiler.passes.shape_rules import EITHER, VIEW, NotKnown, Rule
from tlmem.runtime.errors import WrongShape
from tlmem.runtime.tensors.computing import broadcast
from tlmem.runtime.tensors.making import MOST_AXES
from tlmem.runtime.tensors.storage import Shape, shape_text


def viewed(base: TensorType, shape: Shape | None, contiguous: bool = False) -> TensorType:
    """A tensor of this shape in the memory of another."""
    if shape is not None and len(shape) > MOST_AXES:
        raise WrongShape(f"{MOST_AXES} axes are the most")
    return TensorType(shape, base.dtype, base.device, False, contiguous)


def lengths(given: tuple[Any, ...]) -> tuple[int, ...]:
    """Integers that are given one by one or as one sequence.

    Raises:
        NotKnown: one is not known. TypeError: one is no integer.
    """
    found = given[0] if len(given) == 1 and isinstance(given[0], tuple) else given
    if len(found) == 1 and found[0] is UNKNOWN:
        raise NotKnown
    kinds = [each.kind if isinstance(each, PlainType) else type(each) for each in found]
    if any(kind is not int for kind in kinds if kind is not type(UNKNOWN)):
        raise TypeError("a shape consists of integers")
    if any(type(each) is not int for each in found):
        raise NotKnown
    return tuple(found)


def reshape(tensor: Any, *shape: Any) -> TensorType:
    base, wanted = as_tensor(tensor), lengths(shape)
    if base.shape is None:
        whole = None if min(wanted, default=0) < 0 else wanted
        return viewed(base, whole, base.contiguous)
    size = prod(base.shape)
    known = prod(length for length in wanted if length != -1)
    if wanted.count(-1) == 1 and known and size % known == 0:
        wanted = tuple(size // known if length == -1 else length for length in wanted)
    if min(wanted, default=0) < 0 or prod(wanted) != size:
        raise WrongShape(f"{shape_text(base.shape)} cannot have shape {shape_text(wanted)}")
    return viewed(base, wanted, base.contiguous)


def flatten(tensor: Any) -> TensorType:
    base = as_tensor(tensor)
    return viewed(base, None if base.shape is None else (prod(base.shape),), base.contiguous)


def transpose(tensor: Any, *axes: Any) -> TensorType:
    base = as_tensor(tensor)
    if base.shape is None:
        raise NotKnown
    wanted = lengths(axes) if axes else tuple(range(len(base.shape)))[::-1]
    order = axes_of(base, wanted)
    if len(order) != len(base.shape):
        raise WrongShape(f"axes {order} are not those of {shape_text(base.shape)}")
    moved = [i for i in order if base.shape[i] != 1] != sorted(
        i for i in order if base.shape[i] != 1
    )
    return viewed(base, tuple(base.shape[i] for i in order), base.contiguous and not moved)


def permute(tensor: Any, *axes: Any) -> TensorType:
    base, wanted = as_tensor(tensor), lengths(axes)
    if base.shape and not wanted:
        raise WrongShape("permute takes each axis")
    return transpose(base, wanted) if wanted else transpose(base)


def swapaxes(tensor: Any, one: Any, other: Any) -> TensorType:
    base = as_tensor(tensor)
    first, second = (axes_of(base, axis)[0] for axis in (one, other))
    order = list(range(len(base.shape or ())))
    order[first], order[second] = second, first
    return transpose(base, tuple(order)) if order else viewed(base, ())


def squeeze(tensor: Any, axis: Any = None) -> TensorType:
    base = as_tensor(tensor)
    axes = axes_of(base, axis)
    shape = base.shape or ()
    if axis is None:
        axes = tuple(i for i in axes if shape[i] == 1)
    if any(shape[i] != 1 for i in axes):
        raise WrongShape(f"an axis of {axes} in {shape_text(shape)} has not length 1")
    return viewed(base, tuple(n for i, n in enumerate(shape) if i not in axes), base.contiguous)


def unsqueeze(tensor: Any, axis: Any) -> TensorType:
    base = as_tensor(tensor)
    if base.shape is None or axis is UNKNOWN or isinstance(axis, PlainType):
        raise NotKnown
    rank = len(base.shape)
    if not -rank - 1 <= axis <= rank:
        raise WrongShape(f"there is no place {axis} for an axis in {shape_text(base.shape)}")
    at = axis % (rank + 1)
    return viewed(base, (*base.shape[:at], 1, *base.shape[at:]), base.contiguous)


def broadcast_to(tensor: Any, *shape: Any) -> TensorType:
    base, wanted = as_tensor(tensor), lengths(shape)
    if base.shape is not None and (
        min(wanted, default=0) < 0 or broadcast(base.shape, wanted) != wanted
    ):
        raise WrongShape(f"{shape_text(base.shape)} does not broadcast to {shape_text(wanted)}")
    return viewed(base, wanted)


def parts(tensors: Any) -> list[TensorType]:
    """The tensors that are put together, one or more.

    Raises:
        NotKnown: what is given is not known. ValueError: there is none.
    """
    if not isinstance(tensors, tuple):
        raise NotKnown
    if not tensors:
        raise ValueError("one tensor at least is needed")
    return [tensor(each) for each in tensors]


def concat(tensors: Any, axis: Any = 0) -> TensorType:
    found = parts(tensors)
    dtype = common_dtype([each.dtype for each in found])
    shapes = [each.shape for each in found if each.shape is not None]
    if len(shapes) != len(found):
        return fresh(None, dtype, *found)
    (along,) = axes_of(found[0], axis)
    rest = {(*shape[:along], *shape[along + 1 :], len(shape)) for shape in shapes}
    if len(rest) != 1:
        raise WrongShape(f"shapes differ beside axis {along}")
    total = sum(shape[along] for shape in shapes)
    return fresh((*shapes[0][:along], total, *shapes[0][along + 1 :]), dtype, *found)


def stack(tensors: Any, axis: Any = 0) -> TensorType:
    found = parts(tensors)
    dtype = common_dtype([each.dtype for each in found])
    shapes = [each.shape for each in found if each.shape is not None]
    if len(shapes) != len(found) or type(axis) is not int:
        return fresh(None, dtype, *found)
    if len(set(shapes)) != 1:
        raise WrongShape("shapes differ")
    rank = len(shapes[0])
    if not -rank - 1 <= axis <= rank:
        raise WrongShape(f"there is no place {axis} for an axis")
    at = axis % (rank + 1)
    return fresh((*shapes[0][:at], len(found), *shapes[0][at:]), dtype, *found)


# ---- brackets ----


def getitem(tensor: Any, key: Any) -> TensorType:
    base = as_tensor(tensor)
    if base.shape is None:
        return viewed(base, None)
    places = key if isinstance(key, tuple) else (key,)
    if not all(map(is_plain, places)):
        return chosen(base, key)
    found = tuple(map(as_index, places))
    array = np.broadcast_to(np.empty((), np.int8), base.shape)
    part = array[found] if ... in found else array[(*found, ...)]
    return viewed(base, part.shape)


def is_plain(each: Any) -> bool:
    """Whether an index gives a view."""
    if isinstance(each, PlainType):
        return each.kind is int
    return each is None or each is ... or isinstance(each, slice) or type(each) is int


def as_index(each: Any) -> Any:
    """An index as NumPy takes it: one that is not known takes an axis away like any other.

    Raises:
        NotKnown: how long the part is hangs on it.
    """
    if isinstance(each, PlainType):
        return 0
    return each


def chosen(base: TensorType, key: Any) -> TensorType:
    """The elements that a list or tensor chooses; how many a mask chooses is not known."""
    if isinstance(key, TensorType) and key.dtype in ("int32", "int64") and key.shape is not None:
        if not base.shape:
            raise WrongShape("there is no axis to choose from")
        return fresh((*key.shape, *base.shape[1:]), base.dtype, base)
    if isinstance(key, TensorType) and key.dtype in ("float32", "float64"):
        raise TypeError(f"an index is of integers or bools, not {key.dtype}")
    return TensorType(None, base.dtype, base.device)


def detach(tensor: Any) -> TensorType:
    base = as_tensor(tensor)
    return viewed(base, base.shape, base.contiguous)


as_tensor = tensor
"""Under a name that arguments do not hide."""

RULES = {
    "reshape": Rule(reshape, EITHER),
    "flatten": Rule(flatten, EITHER),
    "transpose": Rule(transpose, VIEW),
    "T": Rule(transpose, VIEW),
    "permute": Rule(permute, VIEW),
    "swapaxes": Rule(swapaxes, VIEW),
    "squeeze": Rule(squeeze, VIEW),
    "unsqueeze": Rule(unsqueeze, VIEW),
    "broadcast_to": Rule(broadcast_to, VIEW),
    "concat": Rule(concat, out=True),
    "stack": Rule(stack, out=True),
    "getitem": Rule(getitem, EITHER),
    "detach": Rule(detach, VIEW, differentiable=False),
}
