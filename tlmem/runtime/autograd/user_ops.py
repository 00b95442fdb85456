"""Ops of the program: a forward in Python, and the rule that computes its gradients.

Covers: ``op``, what a forward may save, what a rule gets and gives. Does not cover: the ops that
tlmem has (``native/ops``), functions that are run again (``checkpointing``).

A call runs its forward with recording off and makes one record. The record holds what was saved, as
any other does, and this file's ``Call``, which has the rule and the context; both go when the
record goes. The C part is ``native/python/tensor/pyrules.c``.
See also: docs/reference/tape.md, "Ops of your own".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from tlmem.runtime import contexts, core
from tlmem.runtime.core import lib
from tlmem.runtime.dtypes import FLOATING
from tlmem.runtime.errors import NotDifferentiable, WrongDtype, WrongShape
from tlmem.runtime.tensors import core_ops
from tlmem.runtime.tensors.core_ops import MOST_OP_AXES
from tlmem.runtime.tensors.storage import Storage, shape_text

OUTPUT, EXTRA = -1, -2
"""What is saved when it is not an argument: the result, or another tensor."""


class Context:
    """What a forward leaves for its rule: tensors by ``save``, other values as attributes.

    Attributes:
        wants: for each argument, whether its gradient is wanted.
    """

    def __init__(self, name: str, wants: tuple[bool, ...]) -> None:
        self.wants = wants
        self._name = name
        self._saved: tuple[Any, ...] = ()

    def save(self, *tensors: Any) -> None:
        """Keeps tensors for the rule: the tape holds them until the rule has run.

        Only what the rule reads; ``wants`` says which gradients it will have to compute. A later
        call replaces an earlier one.

        Raises:
            TypeError: one is not a tensor.
            UseAfterFree: one was freed.
        """
        for tensor in tensors:
            if not isinstance(tensor, Storage):
                raise TypeError(
                    f"op {self._name!r} saves tensors, not {type(tensor).__name__}; keep other "
                    "values as attributes of the context"
                )
            tensor._require("save")
        self._saved = tensors

    @property
    def saved(self) -> tuple[Any, ...]:
        """The tensors that were saved. In a rule they are found not to have changed since."""
        return self._saved


class Call:
    """One call on a tape: called by the core with the gradient of its result.

    Attributes:
        shapes: for each argument, shape and dtype; None for one that is not a tensor.
    """

    __slots__ = ("context", "name", "rule", "shapes")

    def __init__(
        self, name: str, rule: Callable[..., Any], context: Context, args: tuple[Any, ...]
    ) -> None:
        self.name = name
        self.rule = rule
        self.context = context
        self.shapes = [
            (each.shape, each.dtype) if isinstance(each, Storage) else None for each in args
        ]

    def __call__(self, grad: Any, saved: tuple[Any, ...]) -> list[Any]:
        """The gradients of the tensors among the arguments, in their order."""
        self.context._saved = saved
        try:
            given = self.rule(self.context, grad)
        finally:
            self.context._saved = ()
        return self._checked(given)

    def _checked(self, given: Any) -> list[Any]:
        tensors = [place for place, shape in enumerate(self.shapes) if shape is not None]
        if not isinstance(given, tuple | list):
            given = [given if place == tensors[0] else None for place in range(len(self.shapes))]
            if len(tensors) > 1 or not tensors:
                raise self._wrong_count(1)
        elif len(given) != len(self.shapes):
            raise self._wrong_count(len(given))
        for place, gradient in enumerate(given):
            if gradient is not None:
                self._check_one(place, gradient)
        return [given[place] for place in tensors]

    def _check_one(self, place: int, gradient: Any) -> None:
        where = f"argument {place} of op {self.name!r}"
        expected = self.shapes[place]
        if not isinstance(gradient, Storage):
            raise TypeError(
                f"the gradient of {where} is a tensor or None, not {type(gradient).__name__}"
            )
        if expected is None:
            raise TypeError(f"{where} is not a tensor and has no gradient; return None for it")
        gradient._require("use as a gradient")
        if gradient.shape != expected[0]:
            raise WrongShape(
                f"the gradient of {where} has shape {shape_text(gradient.shape)}, and the argument "
                f"has {shape_text(expected[0])}; sum it over the axes that were repeated"
            )
        if gradient.dtype != expected[1]:
            raise WrongDtype(
                f"the gradient of {where} is {gradient.dtype}, and the argument is {expected[1]}; "
                f"return it as {expected[1]}"
            )

    def _wrong_count(self, count: int) -> TypeError:
        return TypeError(
            f"the rule of op {self.name!r} returned {count} gradient{'s' * (count != 1)} for "
            f"{len(self.shapes)} arguments; return a tuple with a gradient or None for each"
        )


class UserOp:
    """An op of the program; made by the decorator ``op``. Call it as the function it was.

    Attributes:
        name: what recordings, statistics and errors call it.
    """

    def __init__(self, forward: Callable[..., Any], rule: Callable[..., Any], name: str) -> None:
        self.name = name
        self._forward = forward
        self._rule = rule
        self._number = define(name)
        update_wrapper(self, forward)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for key, value in kwargs.items():
            if isinstance(value, Storage):
                raise TypeError(
                    f"op {self.name!r} takes tensors by position, not as {key}=: its rule gives "
                    "gradients by position"
                )
        contexts.settle()
        records = lib.tlm_grad_mode_current()
        try:
            lib.tlm_grad_mode(0)
            wants = tuple([records == 1 and needs_gradient(each) for each in args])
            context = Context(self.name, wants)
            result = self._forward(context, *args, **kwargs)
        finally:
            lib.tlm_grad_mode(records)
        return self._recorded(context, args, result) if True in wants else result

    def _recorded(self, context: Context, args: tuple[Any, ...], result: Any) -> Any:
        if not isinstance(result, Storage):
            raise TypeError(
                f"op {self.name!r} returned {type(result).__name__}; with gradients it has one "
                "tensor as its result"
            )
        if result.dtype not in FLOATING:  # as argmax: a result that has no gradient
            return result
        if needs_gradient(result) or is_among(result, args):
            result = core_ops.detached(result)
        for key, value in vars(context).items():
            if value is result:
                raise ValueError(
                    f"op {self.name!r} keeps its own result as context.{key}, which would hold it "
                    "for ever; use context.save(result), and context.saved in the rule"
                )
        return record(self._number, Call(self.name, self._rule, context, args), args, result)

    def __repr__(self) -> str:
        return f"<op {self.name!r}>"


def op(
    function: None = None, *, backward: Callable[..., Any] | None = None, name: str | None = None
) -> Callable[[Callable[..., Any]], UserOp]:
    """Makes an op of a function: ``@op(backward=rule)``.

    The function is ``forward(context, *args, **kwargs)``; it runs with recording off and returns
    one tensor. The rule is ``rule(context, grad)``; it gets the gradient of the result, reads
    ``context.saved``, and returns a tuple with a gradient or None for each argument, or one
    gradient when one argument is a tensor. It runs with recording off too. An exception in it
    passes out of ``backward()`` unchanged.

    Args:
        backward: the rule.
        name: what the op is called; the function's name by default.
    Raises:
        TypeError: there is no rule, or it is not a function.
    """
    if function is not None or not callable(backward):
        raise TypeError("an op is made with its rule: write @tlmem.op(backward=rule) above it")
    rule = backward

    def decorate(forward: Callable[..., Any]) -> UserOp:
        return UserOp(forward, rule, name or forward.__name__)

    return decorate


# ---- what records have in common ----


def define(name: str) -> int:
    """The number of an op whose rule is a ``Call``; each name has one.

    Raises:
        MemoryError: there is no memory for it.
    """
    if name not in _numbers:
        _numbers[name] = core.engine.define_op(name.encode("utf-8", "replace").decode())
    return _numbers[name]


def needs_gradient(thing: Any) -> bool:
    """Whether it is a tensor that a gradient is wanted of."""
    return isinstance(thing, Storage) and bool(thing._slot or thing._requires_grad)


def is_among(result: Any, args: tuple[Any, ...]) -> bool:
    """Whether it is one of these very things."""
    return any([result is each for each in args])  # noqa: C419 (short, and quicker so)


def record(number: int, call: Call, args: tuple[Any, ...], result: Any) -> Any:
    """Puts a call on the tape in force; returns its result, which needs a gradient from now on."""
    context = call.context
    saved, context._saved = context._saved, ()
    inputs = tuple([each for each in args if isinstance(each, Storage)])
    places = []
    for tensor in saved:
        place = OUTPUT if tensor is result else EXTRA
        for number_of_input, each in enumerate(inputs):
            if each is tensor:
                place = number_of_input
        places.append(place)
    for each in (result, *saved, *inputs):
        if each.ndim > MOST_OP_AXES:
            raise NotDifferentiable(
                f"cannot record op {call.name!r} on {core.subject_text(each)}: it has {each.ndim} "
                f"axes, and a tape knows {MOST_OP_AXES} at most; reshape it inside the op",
                object=each.handle,
                advice="reshape it inside the op",
            )
    status = core.engine.rule_record(number, call, inputs, tuple(places), saved, result)
    core_ops.check(status, f"record op {call.name!r} on", result)
    return result


_numbers: dict[str, int] = {}

core_ops.raise_stashed = core.engine.raise_stashed
