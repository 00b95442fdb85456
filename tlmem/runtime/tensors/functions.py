"""Functions that learning needs, each one op of the core with a rule of its own.

Covers: ``linear``, ``gelu``, ``layer_norm``, ``cross_entropy``, ``dropout``, ``embedding``,
``scatter_add``.
Does not cover: ``relu``, ``sigmoid``, ``tanh`` (``elementwise``), ``softmax`` (``reductions``).

They take float32 and float64 on at most 8 axes. What each saves for its gradient stands in
docs/reference/tape.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tlmem.runtime.errors import WrongDtype, WrongShape
from tlmem.runtime.tensors import randomness
from tlmem.runtime.tensors.core_ops import apply, apply_apart, apply_strictly, recorded, row
from tlmem.runtime.tensors.rows import by_row
from tlmem.runtime.tensors.shaping import RESHAPE, TRANSPOSE
from tlmem.runtime.tensors.storage import Storage, shape_text
from tlmem.runtime.tensors.views import index_array, index_tensor

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

GELU, LAYER_NORM, CROSS_ENTROPY = map(row, ("gelu", "layer_norm", "cross_entropy"))
DROPOUT, EMBEDDING, SCATTER_ADD = map(row, ("dropout", "embedding", "scatter_add"))
LINEAR = row("linear")
APPROXIMATIONS = {"none": 0, "tanh": 1}
REDUCTIONS = {"mean": 0, "sum": 1, "none": 2}


@by_row
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """``x`` times the chance that a normally distributed number is below it.

    Args:
        approximate: ``"none"`` for the exact function, ``"tanh"`` for the approximation by tanh.
    Raises:
        WrongDtype: the tensor is not float32 or float64.
        ValueError: there is no such approximation.
    """
    require_fractions("gelu", x)
    if approximate not in APPROXIMATIONS:
        raise ValueError(f"gelu has no approximation {approximate!r}; use 'none' or 'tanh'")
    return apply_strictly(GELU, 1, x, APPROXIMATIONS[approximate])


@by_row
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight + bias``, as one record.

    Args:
        x: ``[..., in]``.
        weight: ``[in, out]``.
        bias: ``[out]``; left out, 0.
    Raises:
        WrongShape: the lengths do not fit.
        WrongDtype: a tensor is not float32 or float64.
    """
    operands = (x, weight) if bias is None else (x, weight, bias)
    made = apply(LINEAR, len(operands), *operands)
    if made is not NotImplemented:
        return made
    require_fractions("linear", *operands)
    return recorded(LINEAR, "linear", operands)


@by_row
def layer_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    axes: int = 1,
    eps: float = 1e-5,
) -> Tensor:
    """Rows with mean 0 and variance 1, times a weight, plus a bias.

    Args:
        weight: of the shape of the last axes; left out, 1.
        bias: likewise; left out, 0.
        axes: how many last axes are a row.
        eps: what is added to the variance.
    Raises:
        WrongShape: the tensor has fewer axes, or weight or bias have another shape.
        WrongDtype: a tensor is not float32 or float64.
    """
    tensors = [each for each in (x, weight, bias) if each is not None]
    require_fractions("layer_norm", *tensors)
    if not 0 < axes <= len(x.shape):
        raise WrongShape(f"layer_norm over {axes} axes of a tensor {shape_text(x.shape)}")
    operands: tuple[Any, ...] = (x,)
    if weight is not None or bias is not None:
        operands = (x, 1.0 if weight is None else weight)
    if bias is not None:
        operands = (*operands, bias)
    return recorded(LAYER_NORM, "layer_norm", operands, axes, float(eps))


@by_row
def cross_entropy(logits: Tensor, target: Any, reduction: str = "mean") -> Tensor:
    """Minus the logarithm of what softmax gives the right class.

    Args:
        logits: ``[N, C]``, ``[C]`` or ``[N, C, ...]``: a number for each of C classes.
        target: integers, the class of each row, from 0 to C - 1: ``[N]``, ``[]`` or ``[N, ...]``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one result a row.
    Raises:
        WrongShape: the shapes do not fit.
        WrongDtype: the logits are not float32 or float64, or the target is of no integers.
        IndexError: a target is no class.
        ValueError: there is no such reduction.
    """
    require_fractions("cross_entropy", logits)
    if reduction not in REDUCTIONS:
        raise ValueError(f"cross_entropy has no reduction {reduction!r}; use mean, sum or none")
    if len(logits.shape) == 2 and isinstance(target, Storage) and target.dtype == "int64":
        made = apply(CROSS_ENTROPY, 2, logits, target, REDUCTIONS[reduction])
        if made is not NotImplemented:
            return made
    places = index_array(target)
    if places.dtype != "int64":
        raise WrongDtype("cross_entropy needs classes as integers")
    shape = places.shape
    without = () if len(logits.shape) == 1 else (*logits.shape[:1], *logits.shape[2:])
    if without != shape or not logits.shape:
        raise WrongShape(
            f"cross_entropy of logits {shape_text(logits.shape)} cannot have a target "
            f"{shape_text(shape)}; the target is the logits without the axis of classes"
        )
    classes, wanted = index_tensor(target, places, logits), REDUCTIONS[reduction]
    if len(logits.shape) == 2:
        return apply_strictly(CROSS_ENTROPY, 2, logits, classes, wanted)
    rows = _rows_of_classes(logits)
    flat = apply_apart(RESHAPE, 1, classes, 1, rows.shape[0])
    made = apply_strictly(CROSS_ENTROPY, 2, rows, flat, wanted)
    return made.reshape(shape) if reduction == "none" else made


def _rows_of_classes(logits: Any) -> Any:
    """Logits as ``[rows, classes]``."""
    count = logits.shape[1 if len(logits.shape) > 1 else 0]
    if len(logits.shape) > 2:
        order = (0, *range(2, len(logits.shape)), 1)
        logits = apply_apart(TRANSPOSE, 1, logits, len(order), order)
    return apply_apart(RESHAPE, 1, logits, 2, logits.size // count if count else 0, count)


@by_row
def dropout(x: Tensor, p: float = 0.5, training: bool = True, *, seed: int | None = None) -> Tensor:
    """Each element with probability ``p`` becomes 0; the others are divided by ``1 - p``.

    Args:
        training: without it the tensor itself is the result.
        seed: the same seed gives the same choice; left out, each call chooses anew.
    Raises:
        ValueError: the probability is not from 0 to 1.
        WrongDtype: the tensor is not float32 or float64.
    """
    require_fractions("dropout", x)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout has a probability from 0 to 1, not {p!r}")
    if not training:
        return x
    first = (seed & (1 << 63) - 1, 0) if seed is not None else randomness.draw((x.size + 1) // 2)
    return apply_strictly(DROPOUT, 1, x, float(p), first)


@by_row
def embedding(weight: Tensor, indices: Any) -> Tensor:
    """The rows of a table that indices choose: ``result[i, ...] = weight[indices[i]]``.

    Args:
        weight: ``[V, D]``.
        indices: integers of any shape, as a tensor, array or list.
    Raises:
        IndexError: an index is out of range. WrongShape: the table has not two axes.
        WrongDtype: the table is not float32 or float64.
    """
    require_fractions("embedding", weight)
    if len(weight.shape) != 2:
        raise WrongShape(f"embedding needs a table of two axes, not {shape_text(weight.shape)}")
    places = index_array(indices)
    if places.dtype != "int64":
        raise WrongDtype("embedding needs integers as indices")
    return apply_strictly(EMBEDDING, 2, weight, index_tensor(indices, places, weight), 0)


@by_row
def scatter_add(x: Tensor, axis: int, index: Any, source: Tensor) -> Tensor:
    """``x`` with each element of ``source`` added at its place, which along ``axis`` is the index.

    The reverse of ``gather``; an index that occurs twice gets both. ``x`` is not changed.

    Args:
        index: integers of the shape of ``source``; negative ones count from the end.
    Raises:
        IndexError: an index is out of range. WrongShape: the shapes do not fit.
        WrongDtype: a tensor is not float32 or float64.
    """
    require_fractions("scatter_add", x, source)
    places = index_array(index)
    if places.dtype != "int64":
        raise WrongDtype("scatter_add needs integers as indices")
    if not -len(x.shape) <= axis < len(x.shape):
        raise WrongShape(f"there is no axis {axis} in shape {shape_text(x.shape)}")
    operands = (x, index_tensor(index, places, x), source)
    if x.dtype != source.dtype:
        raise WrongDtype(f"scatter_add of {source.dtype} to {x.dtype}; convert one with .astype")
    return apply_strictly(SCATTER_ADD, 3, *operands, axis)


def require_fractions(doing: str, *tensors: Any) -> None:
    """Raises when something is not a tensor of float32 or float64."""
    for each in tensors:
        if not isinstance(each, Storage):
            raise TypeError(f"{doing} needs a tlmem.Tensor, not {type(each).__name__}")
        if each.dtype not in ("float32", "float64"):
            raise WrongDtype(
                f"{doing} needs float32 or float64, not {each.dtype}; use .astype('float32')"
            )
