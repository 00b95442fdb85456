"""Whether operations are recorded for gradients: off in ``no_grad``, on again in ``enable_grad``.

The mode belongs to the running thread or asyncio task, as scopes do: a task or thread that is
started inside begins with gradients on.

Covers: both as context managers and as decorators. Does not cover: which tape records (``tape``).
See also: docs/reference/tape.md, "Recording or not".
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from threading import get_ident
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from tlmem.runtime import contexts
from tlmem.runtime.core import lib

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def is_grad_enabled() -> bool:
    """Whether operations on tensors that need a gradient are recorded now, in this thread or task.

    Source: docs/seed-map.md, S59.
    """
    contexts.settle()
    return lib.tlm_grad_mode_current() == 1


class GradMode:
    """A mode for a block or, as a decorator, for each call of a function.

    Made by ``no_grad`` and ``enable_grad``. One object can be entered again while it is entered. A
    decorated generator has the mode while it runs, not while it waits for its caller.
    """

    __slots__ = ("_on", "_outer")

    def __init__(self, on: bool) -> None:
        self._on = on
        self._outer: list[tuple[int, contexts.TaskContext | None, int]] = []

    def __enter__(self) -> Self:
        contexts.settle()
        outer = lib.tlm_grad_mode_current()
        entered = len(self._outer)
        try:
            lib.tlm_grad_mode(self._on)
            self._outer.append((outer, contexts.in_force(), get_ident()))
        except BaseException:  # Ctrl-C: there will be no __exit__
            lib.tlm_grad_mode(outer)
            del self._outer[entered:]
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        entered = self._outer[-1]
        del self._outer[-1]
        try:
            self._leave(*entered)
        except BaseException:  # Ctrl-C
            self._leave(*entered)
            raise

    def _leave(self, mode: int, context: contexts.TaskContext | None, thread: int) -> None:
        contexts.settle()
        if context is contexts.in_force() and (context is not None or thread == get_ident()):
            lib.tlm_grad_mode(mode)
        elif context is not None:  # a generator that was begun in one task and ends in another
            with contexts.using(context):
                lib.tlm_grad_mode(mode)

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        """The function in this mode.

        Raises:
            TypeError: it is not a function, or an asynchronous generator, which enters it itself.
        """
        on, plain = self._on, _callable(function)
        made: Any
        if isasyncgenfunction(plain):
            raise TypeError(
                f"{plain.__qualname__} is an asynchronous generator, which its caller's mode would "
                "follow between two of its values; enter the mode inside it, with a with statement"
            )
        if iscoroutinefunction(plain):

            async def made(*args: Any, **kwargs: Any) -> Any:
                with GradMode(on):
                    return await plain(*args, **kwargs)

        elif isgeneratorfunction(plain):

            def made(*args: Any, **kwargs: Any) -> Any:
                return _in_mode(on, plain(*args, **kwargs))

        else:

            def made(*args: Any, **kwargs: Any) -> Any:
                with GradMode(on):
                    result = plain(*args, **kwargs)
                return result

        return wraps(plain)(made)

    def __repr__(self) -> str:
        return "enable_grad()" if self._on else "no_grad()"


@overload
def no_grad() -> GradMode: ...
@overload
def no_grad(function: Callable[Parameters, Result], /) -> Callable[Parameters, Result]: ...
def no_grad(function: Any = None, /) -> Any:
    """``with no_grad(): ...``: nothing inside is recorded, and in-place updates are allowed.

    Results need no gradient, whatever they are computed from. As a decorator: ``@no_grad()``, or
    ``@no_grad``.

    Raises:
        TypeError: what it decorates is not a function, or is an asynchronous generator.
    """
    return GradMode(False) if function is None else GradMode(False)(function)


@overload
def enable_grad() -> GradMode: ...
@overload
def enable_grad(function: Callable[Parameters, Result], /) -> Callable[Parameters, Result]: ...
def enable_grad(function: Any = None, /) -> Any:
    """``with enable_grad(): ...``: recorded again inside a ``no_grad``; as a decorator too.

    Raises:
        TypeError: what it decorates is not a function, or is an asynchronous generator.
    """
    return GradMode(True) if function is None else GradMode(True)(function)


def _callable(function: Any) -> Any:
    if not callable(function):
        raise TypeError(
            f"a mode decorates a function, not {type(function).__name__}; write @tlmem.no_grad "
            "above a function, or with tlmem.no_grad(): around a block"
        )
    return function


def _in_mode(on: bool, body: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """What a generator yields; the mode is in force only while it runs."""
    send: Callable[[Any], Any] = body.send
    value: Any = None
    try:
        while True:
            try:
                with GradMode(on):
                    made = send(value)
            except StopIteration as end:
                return end.value
            try:
                value = yield made
                send = body.send
            except GeneratorExit:
                raise
            except BaseException as error:
                value, send = error, body.throw
    finally:
        with GradMode(on):
            body.close()
