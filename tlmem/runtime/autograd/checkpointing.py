"""Less memory for more time: what is computed again when gradients are wanted, instead of saved.

Covers: whole functions (``checkpoint``), and single ops inside a block (``recompute``). Does not
cover: the record and its rule (``user_ops``), how a tape computes again
(``native/tape/tape_replay.c``).
See also: docs/reference/tape.md, "Memory or time".
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

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
    Source: docs/seed-map.md, S62.
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
            "outside it, needs a gradient and is not an argument; hand it over as an argument"
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


# ---- single ops ----

_rows: ContextVar[bytes] = ContextVar("tlmem.recompute", default=b"")
"""For each op, by its row: 1 when its output is computed again. C reads it (``pyrules.c``)."""
_known: dict[str, tuple[int, bool]] = {}
"""Op -> its row, and whether its output can be computed again."""


class Recompute:
    """A choice for a block, in this thread or task; made by ``recompute``."""

    __slots__ = ("_chosen", "_outer", "names")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._chosen = _rows_of(names)
        self._outer: list[bytes] = []

    def __enter__(self) -> Self:
        outer = _rows.get().ljust(len(self._chosen), b"\0")
        chosen = bytes(a | b for a, b in zip(outer, self._chosen, strict=True))
        entered = len(self._outer)
        try:
            engine.recompute_count(_rows, 1)
            self._outer.append(outer)
            _rows.set(chosen)
        except BaseException:  # Ctrl-C: there will be no __exit__
            _rows.set(outer)
            del self._outer[entered:]
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        outer = self._outer[-1]
        del self._outer[-1]
        try:
            _rows.set(outer)
        finally:  # after Ctrl-C too
            engine.recompute_count(_rows, -1)

    def __repr__(self) -> str:
        return f"recompute({', '.join(map(repr, self.names))})"


def recompute(*ops: str) -> Recompute:
    """``with recompute("gelu"): ...``: results of these ops are not saved for rules.

    A record then holds what it takes to compute its result again: less memory until the gradients
    are there, one more computation for each rule that reads it. Gradients are the same to the bit.

    Args:
        ops: names of ops, as ``TapeStats.by_op`` has them; none: all that can be computed again.
    Raises:
        ValueError: there is no such op, or its result cannot be computed again.
    Source: docs/seed-map.md, S62.
    """
    return Recompute(ops)


def _rows_of(names: tuple[str, ...]) -> bytes:
    if not _known:
        rows: list[Any] = engine.rows()
        _known.update({name: (row, replays) for row, (name, replays, *_) in enumerate(rows)})
    chosen = bytearray(len(_known))
    for name in names or [name for name, (_, replays) in _known.items() if replays]:
        row, replays = _known.get(name, (0, False))
        if not replays:
            can = ", ".join(sorted(name for name, (_, replays) in _known.items() if replays))
            why = "cannot be computed again" if name in _known else "is not known"
            raise ValueError(f"op {name!r} {why}; those that can are {can}")
        chosen[row] = 1
    return bytes(chosen)
