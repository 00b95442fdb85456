"""Functions that are run again when their gradients are wanted, instead of saving what is inside.

Covers: ``checkpoint``. Does not cover: single ops that are computed again (``recomputing``), the
record and its rule (``user_ops``).
See also: docs/reference/tape.md, "Memory or time".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tlmem.runtime import core
from tlmem.runtime.autograd.grad_mode import enable_grad, is_grad_enabled, no_grad
from tlmem.runtime.autograd.user_ops import Call, Context, define, is_among, needs_gradient, record
from tlmem.runtime.core import engine
from tlmem.runtime.errors import BackwardRunning
from tlmem.runtime.tensors import core_ops, making, randomness
from tlmem.runtime.tensors.storage import Storage


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, of which only the arguments are kept for its gradient.

    The function runs with recording off. When a pass reaches its result it runs again, recorded,
    and the pass goes on through it: more computation, and no more memory than the arguments and, at
    the end, the inside of one such function at a time. What it draws at random without a seed is
    the same both times.

    Tensors that were computed must come in as arguments. Leaves, such as parameters, may be read
    from anywhere. The result needs a gradient when the function read something that does.

    Args:
        function: returns one tensor, and the same one for the same arguments.
    Raises:
        TypeError: the function returned something else, or a tensor is given by keyword.
    Source: contracts S62.
    """
    for key, value in kwargs.items():
        if isinstance(value, Storage):
            raise TypeError(
                f"checkpoint takes tensors by position, not as {key}=: what it keeps of a call are "
                "the tensors among its arguments"
            )
    if not is_grad_enabled():
        return function(*args, **kwargs)
    stream = randomness.new_stream()
    with no_grad(), randomness.in_stream(stream):
        outer = engine.watch_begin()
        try:
            result = function(*args, **kwargs)
        finally:
            read = engine.watch_end(outer)
    _require_tensor(result)
    if not read and not needs_gradient(result):
        return result
    if needs_gradient(result) or is_among(result, args):
        result = core_ops.detached(result)
    again = _Again(function, args, kwargs, stream)
    inputs = args if again.wanted else (*args, _anchor())
    context = Context("checkpoint", tuple(map(needs_gradient, inputs)))
    context.save(*(args[place] for place in again.tensors))
    return record(define("checkpoint"), Call("checkpoint", again, context, inputs), inputs, result)


class _Again:
    """The rule of one checkpoint: runs its function again and goes back through it."""

    __slots__ = ("function", "kwargs", "others", "stream", "tensors", "wanted")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        stream: int,
    ) -> None:
        self.function = function
        self.kwargs = kwargs
        self.stream = stream
        self.tensors = [i for i, each in enumerate(args) if isinstance(each, Storage)]
        self.wanted = [i for i in self.tensors if needs_gradient(args[i])]
        self.others: list[Any] = [None if isinstance(each, Storage) else each for each in args]

    def __call__(self, context: Context, grad: Any) -> list[Any]:
        args = list(self.others)
        for place, tensor in zip(self.tensors, context.saved, strict=True):
            args[place] = tensor
        for place in self.wanted:  # leaves of their own, so that the pass inside ends at them
            args[place].requires_grad_()
        with enable_grad(), randomness.in_stream(self.stream):
            result = self.function(*args, **self.kwargs)
        _require_tensor(result)
        gradients: list[Any] = [None] * len(context.wants)
        if any(result is each for each in args):
            gradients[next(i for i, each in enumerate(args) if each is result)] = grad
        elif needs_gradient(result):
            _go_back(result, grad)
            for place in self.wanted:
                gradients[place] = args[place].grad
        return gradients


def _go_back(result: Any, grad: Any) -> None:
    try:
        result.backward(grad)
    except BackwardRunning:
        raise BackwardRunning(
            "cannot go back through a checkpoint: its function reads a tensor that was computed "
            "outside it and needs a gradient, and that is no argument; hand it over as an argument"
        ) from None


def _anchor() -> Any:
    """A leaf of no elements: what a call hangs on whose arguments need no gradient."""
    return making.make((0,), "float32", core.CPU, core.NO_SCOPE).requires_grad_()


def _require_tensor(result: Any) -> None:
    """Raises TypeError for what a checkpoint cannot return."""
    if not isinstance(result, Storage):
        raise TypeError(
            f"a function under checkpoint returns one tensor, not {type(result).__name__}; stack "
            "or concatenate what it computes, or checkpoint each part"
        )
