"""Rules of products and of the functions that learning needs.

See also: ``tlmem/runtime/linalg.py``, ``tlmem/runtime/functions.py``.
"""

from __future__ import annotations

from typing import Any

from tlmem.compiler.passes.abstract import UNKNOWN, TensorType, is_known, kind_of
from tlmem.compiler.passes.rules_elements import (
    common_device,
    common_dtype,
    fractions,
    fresh,
    is_none,
    tensor,
)
from tlmem.compiler.passes.shape_rules import FRESH, NotKnown, Rule
from tlmem.runtime.errors import WrongDtype, WrongShape
from tlmem.runtime.tensors.linalg import shape_of_product
from tlmem.runtime.tensors.storage import Shape


def matmul(left: Any, right: Any) -> TensorType:
    one, other = tensor(left), tensor(right)
    shape = None
    if one.shape is not None and other.shape is not None:
        shape = shape_of_product(one.shape, other.shape)
    return fresh(shape, common_dtype([one.dtype, other.dtype]), one, other)


def dot(left: Any, right: Any) -> TensorType:
    for each in (tensor(left), tensor(right)):
        if each.shape is not None and len(each.shape) != 1:
            raise WrongShape("dot needs two vectors")
    return matmul(left, right)


def linear(x: Any, weight: Any, bias: Any = None) -> TensorType:
    tensors = [tensor(each) for each in (x, weight, bias) if not is_none(each)]
    dtype = fractional(*tensors)
    shapes = [each.shape for each in tensors]
    shape = None
    if shapes[0] is not None and shapes[1] is not None:
        if len(shapes[1]) != 2:
            raise WrongShape("the weight of linear has 2 axes")
        shape = shape_of_product(shapes[0], shapes[1])
        if len(shapes) == 3 and shapes[2] is not None and shapes[2] != shapes[1][1:]:
            raise WrongShape("a bias has the last length of the weight")
    return fresh(shape, dtype, *tensors)


def fractional(*tensors: TensorType) -> str | None:
    """The common dtype of tensors that must all have fractions.

    Raises:
        WrongDtype: one has not.
    """
    for each in tensors:
        if each.dtype is not None:
            fractions(each.dtype)
    return common_dtype([each.dtype for each in tensors])


def gelu(x: Any, approximate: Any = "none") -> TensorType:
    found = tensor(x)
    if is_known(approximate) and approximate not in ("none", "tanh"):
        raise ValueError(f"gelu has no approximation {approximate!r}")
    return fresh(found.shape, fractional(found), found)


def dropout(x: Any, p: Any = 0.5, training: Any = True, *, seed: Any = None) -> TensorType:
    found = tensor(x)
    if type(p) in (int, float, bool) and not 0 <= p <= 1:
        raise ValueError(f"dropout has a probability from 0 to 1, not {p!r}")
    return TensorType(found.shape, fractional(found), found.device, None, found.contiguous)


def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, axes: Any = 1, eps: Any = 1e-5
) -> TensorType:
    tensors = [tensor(each) for each in (x, weight, bias) if not is_none(each)]
    dtype = fractional(*tensors)
    rows = tensors[0].shape
    if rows is None or type(axes) is not int:
        return fresh(None if rows is None else rows, dtype, *tensors)
    if not 0 < axes <= len(rows):
        raise WrongShape(f"layer_norm over {axes} axes of {len(rows)}")
    for each in tensors[1:]:
        if each.shape is not None and each.shape != rows[-axes:]:
            raise WrongShape("weight and bias have the shape of a row")
    return fresh(rows, dtype, *tensors)


def cross_entropy(logits: Any, target: Any, reduction: Any = "mean") -> TensorType:
    found = tensor(logits)
    dtype = fractional(found)
    if is_known(reduction) and reduction not in ("mean", "sum", "none"):
        raise ValueError(f"cross_entropy has no reduction {reduction!r}")
    classes = whole_numbers(target)
    if found.shape is not None and classes.shape is not None:
        without = () if len(found.shape) == 1 else (*found.shape[:1], *found.shape[2:])
        if not found.shape or without != classes.shape:
            raise WrongShape("the target is the logits without the axis of classes")
    if not is_known(reduction):
        raise NotKnown
    return fresh(classes.shape if reduction == "none" else (), dtype, found)


def whole_numbers(value: Any) -> TensorType:
    """Integers as a tensor, list or number of them.

    Raises:
        NotKnown: they come from what is not known. WrongDtype: they are no integers.
    """
    if isinstance(value, TensorType):
        if value.dtype not in ("int32", "int64", None):
            raise WrongDtype("integers are needed")
        return value
    if value is UNKNOWN:
        raise NotKnown
    return TensorType(shape_of_numbers(value), "int64", None, False)


def shape_of_numbers(value: Any, kinds: tuple[type, ...] = (int,)) -> Shape:
    """The shape of numbers of some kinds in tuples of equal lengths.

    Raises:
        NotKnown: they have no such shape, or are of another kind.
    """
    if isinstance(value, tuple):
        shapes = {shape_of_numbers(each, kinds) for each in value} or {()}
        if len(shapes) != 1:
            raise NotKnown
        return (len(value), *shapes.pop())
    if kind_of(value) not in kinds:
        raise NotKnown
    return ()


def embedding(weight: Any, indices: Any) -> TensorType:
    table, places = tensor(weight), whole_numbers(indices)
    dtype = fractional(table)
    if table.shape is None or places.shape is None:
        return fresh(None, dtype, table)
    if len(table.shape) != 2:
        raise WrongShape("embedding needs a table of two axes")
    return fresh((*places.shape, table.shape[1]), dtype, table)


def scatter_add(x: Any, axis: Any, index: Any, source: Any) -> TensorType:
    found, added, places = tensor(x), tensor(source), whole_numbers(index)
    dtypes = {fractional(found), fractional(added)}
    if len(dtypes) == 2 and None not in dtypes:
        raise WrongDtype("scatter_add needs one dtype")
    if found.shape is not None and type(axis) is int:
        require_chosen(found.shape, axis, places.shape)
    if added.shape is not None and places.shape is not None and added.shape != places.shape:
        raise WrongShape("the index of scatter_add has the shape of what is added")
    return fresh(found.shape, found.dtype, found, added)


def require_chosen(shape: Shape, axis: int, places: Shape | None) -> None:
    """Raises WrongShape when an index does not fit a tensor of which it chooses along an axis."""
    rank = len(shape)
    if not -rank <= axis < rank:
        raise WrongShape(f"there is no axis {axis}")
    if places is None:
        return
    if len(places) != rank:
        raise WrongShape(f"an index needs the {rank} axes of the tensor")
    pairs = enumerate(zip(places, shape, strict=True))
    if any(place > length for i, (place, length) in pairs if i != axis % rank):
        raise WrongShape("an index is longer along an axis that is not chosen from")


def take(tensor: Any, index: Any, axis: Any = 0) -> TensorType:
    found, places = as_tensor(tensor), whole_numbers(index)
    if found.shape is None or places.shape is None or type(axis) is not int:
        return fresh(None, found.dtype, found)
    rank = len(found.shape)
    if not -rank <= axis < rank:
        raise WrongShape(f"there is no axis {axis}")
    at = axis % rank
    common_device(found, places if isinstance(index, TensorType) else found)
    require_in_range(index, found.shape[at])
    return fresh((*found.shape[:at], *places.shape, *found.shape[at + 1 :]), found.dtype, found)


def require_in_range(value: Any, length: int) -> None:
    """Raises IndexError when a constant index is out of range."""
    if isinstance(value, tuple):
        for each in value:
            require_in_range(each, length)
    elif type(value) is int and not -length <= value < length:
        raise IndexError(f"index {value} is out of range for an axis of length {length}")


def gather(tensor: Any, axis: Any, index: Any) -> TensorType:
    found, places = as_tensor(tensor), whole_numbers(index)
    if found.shape is not None and type(axis) is int:
        require_chosen(found.shape, axis, places.shape)
    return fresh(places.shape, found.dtype, found)


as_tensor = tensor
"""Under a name that the arguments of ``take`` and ``gather`` do not hide."""

RULES = {
    "matmul": Rule(matmul, out=True),
    "dot": Rule(dot, out=True),
    "linear": Rule(linear),
    "gelu": Rule(gelu),
    "dropout": Rule(dropout, memory="either"),
    "layer_norm": Rule(layer_norm),
    "cross_entropy": Rule(cross_entropy),
    "embedding": Rule(embedding),
    "scatter_add": Rule(scatter_add),
    "take": Rule(take, FRESH, out=True),
    "gather": Rule(gather, FRESH, out=True),
}
