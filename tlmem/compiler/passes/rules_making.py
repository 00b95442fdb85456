"""Rules of new tensors, of copies, and of what a tensor says of itself.

See also: ``tlmem/runtime/factories.py``, ``tlmem/runtime/tensor.py``.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

from tlmem.compiler.passes.abstract import UNKNOWN, PlainType, TensorType, is_known, kind_of
from tlmem.compiler.passes.rules_elements import tensor
from tlmem.compiler.passes.rules_products import shape_of_numbers
from tlmem.compiler.passes.shape_rules import EITHER, FRESH, PLAIN, SAME, NotKnown, Rule
from tlmem.runtime import core
from tlmem.runtime.dtypes import DEFAULT, WHOLE, dtype_name, kind_of_number, promoted
from tlmem.runtime.errors import WrongDtype
from tlmem.runtime.tensors.factories import shape_of
from tlmem.runtime.tensors.storage import Shape


def lengths(given: Any) -> Shape | None:
    """A shape; None when it is not known."""
    return shape_of(given) if is_known(given) else None


def named(dtype: Any) -> str | None:
    """The name of a dtype; None when it is not known."""
    return dtype_name(dtype) if isinstance(dtype, str) else None


def made(shape: Shape | None, dtype: str | None, where: dict[str, Any]) -> TensorType:
    """A new tensor where the arguments of a factory say.

    Raises:
        TypeError: a factory has no such argument. WrongDtype: it cannot have a gradient.
    """
    device, grad = where.pop("device", None), where.pop("requires_grad", False)
    scope, pool = where.pop("scope", None), where.pop("pool", None)
    if where:
        raise TypeError(f"a factory has no arguments {', '.join(where)}")
    if grad is True and dtype not in ("float32", "float64", None):
        raise WrongDtype(f"{dtype} cannot have a gradient")
    known = device is None and scope is None and pool is None
    return TensorType(
        shape, dtype, core.CPU if known else None, grad if type(grad) is bool else None, True
    )


def filled(shape: Any, dtype: Any = DEFAULT, **where: Any) -> TensorType:
    return made(lengths(shape), named(dtype), where)


def full(shape: Any, value: Any, dtype: Any = None, **where: Any) -> TensorType:
    kind = kind_of(value)
    if dtype is None:
        name = promoted(kind_of_number(kind())) if kind in (bool, int, float) else None
    else:
        name = named(dtype)
    if name in WHOLE and kind is float:
        raise WrongDtype(f"a float does not fit {name}")
    return made(lengths(shape), name, where)


def randn(shape: Any, dtype: Any = DEFAULT, *, seed: Any = None, **where: Any) -> TensorType:
    name = named(dtype)
    if name in WHOLE:
        raise WrongDtype(f"randn gives float32 or float64, not {name}")
    return made(lengths(shape), name, where)


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, **where: Any
) -> TensorType:
    begin, end = (0, start) if stop is None else (start, stop)
    kinds = {kind_of(each) for each in (begin, end, step)}
    name = named(dtype)
    if dtype is None and kinds <= {int, float}:
        name = DEFAULT if float in kinds else "int64"
    if not all(is_known(each) for each in (begin, end, step)) or not kinds <= {int, float}:
        return made(None, name, where)
    if step == 0:
        raise ValueError("the step of arange must not be 0")
    if name == "bool":
        raise WrongDtype("arange gives numbers, not bool")
    return made((max(0, ceil((end - begin) / step)),), name, where)


def of_data(data: Any, dtype: Any = DEFAULT, **where: Any) -> TensorType:
    name = named(dtype)
    if isinstance(data, TensorType):
        return made(data.shape, data.dtype if dtype is None else name, where)
    try:
        shape = shape_of_numbers(data, (bool, int, float))
    except NotKnown:
        return made(None, name, where)
    return made(shape, name, where)


def like(other: Any, dtype: Any = None, **where: Any) -> TensorType:
    found = tensor(other)
    new = made(found.shape, found.dtype if dtype is None else named(dtype), dict(where))
    return replace(new, device=found.device) if "device" not in where else new


# ---- copies, and the tensor itself ----


def copy(tensor: Any) -> TensorType:
    found = as_tensor(tensor)
    return TensorType(found.shape, found.dtype, found.device, False, True)


def astype(tensor: Any, dtype: Any) -> TensorType:
    return replace(copy(tensor), dtype=named(dtype))


def to(tensor: Any, device: Any) -> TensorType:
    found = as_tensor(tensor)
    return TensorType(found.shape, found.dtype, None, None, found.contiguous)


def contiguous(tensor: Any) -> TensorType:
    found = as_tensor(tensor)
    return TensorType(found.shape, found.dtype, found.device, None, True)


def itself(tensor: Any, *arguments: Any, **options: Any) -> TensorType:
    return as_tensor(tensor)


def filled_with(tensor: Any, value: Any) -> TensorType:
    found = as_tensor(tensor)
    if kind_of(value) is float and found.dtype in WHOLE:
        raise WrongDtype(f"a float does not fit {found.dtype}")
    return found


def leaf(tensor: Any, on: Any = True) -> TensorType:
    found = as_tensor(tensor)
    if on is True and found.dtype not in ("float32", "float64", None):
        raise WrongDtype(f"{found.dtype} cannot have a gradient")
    return replace(found, grad=on if type(on) is bool else None)


def item(tensor: Any, *arguments: Any) -> Any:
    dtype = as_tensor(tensor).dtype
    kinds = {"bool": bool, "int32": int, "int64": int, "float32": float, "float64": float}
    return UNKNOWN if dtype is None else PlainType(kinds[dtype])


def nothing(tensor: Any, *arguments: Any, **options: Any) -> None:
    return None


def anything(tensor: Any, *arguments: Any, **options: Any) -> Any:
    return UNKNOWN


as_tensor = tensor
"""Under a name that arguments do not hide."""

RULES = {
    **dict.fromkeys(("empty", "zeros", "ones"), Rule(filled, FRESH, differentiable=False)),
    **dict.fromkeys(
        ("empty_like", "zeros_like", "ones_like"), Rule(like, FRESH, differentiable=False)
    ),
    "full": Rule(full, FRESH, differentiable=False),
    "randn": Rule(randn, FRESH, differentiable=False),
    "arange": Rule(arange, FRESH, differentiable=False),
    "tensor": Rule(of_data, FRESH, differentiable=False),
    "copy": Rule(copy),
    "astype": Rule(astype),
    "to": Rule(to, EITHER),
    "contiguous": Rule(contiguous, EITHER),
    "fill": Rule(filled_with, SAME),
    "requires_grad_": Rule(leaf, SAME, differentiable=False, keeps=True),
    "escape": Rule(itself, SAME, keeps=True),
    "item": Rule(item, PLAIN),
    "tolist": Rule(anything, PLAIN),
    "backward": Rule(nothing, PLAIN, keeps=True),
    "zero_grad": Rule(nothing, PLAIN),
    "retain_grad": Rule(nothing, PLAIN, keeps=True),
    "clear_grads": Rule(nothing, PLAIN),
}
