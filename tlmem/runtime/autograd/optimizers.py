"""Optimisers, SGD and Adam: they update in place and take memory in their first step only.

Covers: which parameters there are, what is kept for each, errors. Does not cover: the arithmetic
(``native/ops/optimisers.c``) and the walk over the parameters (``native/python/tensor/pyoptim.c``).
See also: docs/reference/tape.md, "Optimisers". Public as ``tlmem.optim``.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from tlmem.runtime import core
from tlmem.runtime.core import NO_SCOPE, check, lib
from tlmem.runtime.errors import NotDifferentiable, WrongShape
from tlmem.runtime.ownership.holders import named
from tlmem.runtime.ownership.struct import Struct
from tlmem.runtime.tensors import core_ops, making
from tlmem.runtime.tensors.storage import Storage, shape_text


class Optimizer:
    """What SGD and Adam share: parameters, and tensors of the same shape that are kept for each.

    These are held by the holder ``optimizer`` from the first step in which their parameter has a
    gradient until the optimiser dies, whatever scopes end meanwhile.

    Attributes:
        parameters: the tensors that it updates, each once.
    """

    _kept: tuple[str, ...] = ()
    """Names of what is kept for each parameter."""

    def __init__(self, params: Any) -> None:
        self.parameters: tuple[Any, ...] = _gathered(params)
        self._state: list[tuple[Any, ...] | None] = [None] * len(self.parameters)
        self._without_state = len(self.parameters) if self._kept else 0

    def step(self) -> None:
        """Updates every parameter that has a gradient, in place; the others stay as they are.

        Raises:
            UseAfterFree: a parameter was freed; none was updated then.
            DeviceOutOfMemory: there is no room for what is kept; none was updated then.
        Source: docs/seed-map.md, S65 (updates without recording).
        """
        if self._without_state:
            self._make_states()
        failed = self._update()
        if failed is not None:
            self._fail(*failed)

    def state(self, parameter: Any) -> dict[str, Any]:
        """What is kept for a parameter, by name; empty before its first update. Borrowed.

        Raises:
            KeyError: it is not one of the parameters.
        """
        for place, each in enumerate(self.parameters):
            if each is parameter:
                return dict(zip(self._kept, self._state[place] or (), strict=False))
        raise KeyError(
            f"{core.subject_text(parameter)} is not one of the {len(self.parameters)} parameters "
            f"of {self!r}"
        )

    def clear_grads(self) -> None:
        """Lets go of the gradients of its parameters."""
        for each in self.parameters:
            each.grad = None

    def zero_grad(self) -> None:
        """Fills the gradients of its parameters with zeros; one others hold is let go of."""
        for each in self.parameters:
            each.zero_grad()

    def _update(self) -> tuple[int, int] | None:
        """Updates all; the status and the place of the parameter that could not be."""
        raise NotImplementedError

    def _make_states(self) -> None:
        for place, parameter in enumerate(self.parameters):
            if self._state[place] is None and core.engine.has_grad(parameter):
                self._state[place] = tuple(_kept_like(parameter) for _ in self._kept)
                self._without_state -= 1

    def _fail(self, status: int, place: int) -> NoReturn:
        parameter = self.parameters[place]
        about = f"update parameter {place} of {type(self).__name__},"
        gradient = None if status == lib.TLM_FREED else parameter.grad
        if gradient is not None and gradient.shape != parameter.shape:
            raise WrongShape(
                f"cannot {about} {core.subject_text(parameter)}: its gradient has shape "
                f"{shape_text(gradient.shape)}; give it one of its own shape"
            )
        parameter._require(about)
        core_ops.check(status, about, parameter)
        raise AssertionError(f"status {status}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.parameters)} parameters>"


class SGD(Optimizer):
    """Gradient descent: ``p -= lr * v`` with ``v = momentum * v + grad``.

    Args:
        params: tensors that require gradients, structs of them, or a mapping to them.
        lr: the learning rate, 0 or more.
        momentum: how much of the last velocity stays, 0 or more; 0 keeps nothing.
        weight_decay: this times the parameter is added to its gradient.
        nesterov: whether the step looks ahead along the velocity; needs momentum.
    Raises:
        TypeError: a parameter is not a tensor. ValueError: there is none, or a number out of range.
        NotDifferentiable: a parameter does not require a gradient, or is not a leaf.
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        self.lr = _at_least_zero("lr", lr)
        self.momentum = _at_least_zero("momentum", momentum)
        self.weight_decay = _at_least_zero("weight_decay", weight_decay)
        self.nesterov = bool(nesterov)
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum; give momentum=0.9")
        self._kept = ("velocity",) if self.momentum else ()
        super().__init__(params)

    def _update(self) -> tuple[int, int] | None:
        return core.engine.sgd_step(
            self.parameters,
            self._state,
            self.lr,
            self.momentum,
            self.weight_decay,
            self.nesterov,
        )


class Adam(Optimizer):
    """Adam: steps scaled by running means of the gradient and of its square, both bias-corrected.

    Args:
        params: tensors that require gradients, structs of them, or a mapping to them.
        lr: the learning rate, 0 or more.
        betas: how much of both means stays from step to step, each from 0 to below 1.
        eps: added to the root of the second mean, 0 or more.
        weight_decay: this times the parameter is added to its gradient.
    Raises:
        TypeError: a parameter is not a tensor. ValueError: there is none, or a number out of range.
        NotDifferentiable: a parameter does not require a gradient, or is not a leaf.
    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", algorithm 1.
    """

    _kept = ("mean", "square")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self.lr = _at_least_zero("lr", lr)
        self.betas = (_below_one("betas[0]", betas[0]), _below_one("betas[1]", betas[1]))
        self.eps = _at_least_zero("eps", eps)
        self.weight_decay = _at_least_zero("weight_decay", weight_decay)
        super().__init__(params)
        self._counts = array("q", bytes(8 * len(self.parameters)))

    def _update(self) -> tuple[int, int] | None:
        return core.engine.adam_step(
            self.parameters,
            self._state,
            self._counts,
            self.lr,
            *self.betas,
            self.eps,
            self.weight_decay,
        )


# ---- parameters ----


def tensors_in(thing: Any) -> Iterator[Any]:
    """The tensors in structs, mappings and other containers, in order."""
    if isinstance(thing, Storage):
        yield thing
    elif isinstance(thing, Struct):
        yield from thing.parameters()
    elif isinstance(thing, Mapping):
        yield from tensors_in(thing.values())
    elif isinstance(thing, Iterable) and not isinstance(thing, str | bytes):
        for each in thing:
            yield from tensors_in(each)
    else:
        raise TypeError(
            f"an optimiser updates tensors, not {type(thing).__name__}; give tensors, structs of "
            "tensors, or tlmem.parameters()"
        )


def _gathered(params: Any) -> tuple[Any, ...]:
    found: dict[int, Any] = {}
    for tensor in tensors_in(params):
        tensor._require("optimise")
        if not (tensor.requires_grad and tensor.is_leaf):
            wrong = "is not a leaf" if tensor.requires_grad else "does not require a gradient"
            raise NotDifferentiable(
                f"cannot optimise {core.subject_text(tensor)}: it {wrong}; make it with "
                "requires_grad=True, or call requires_grad_() on a tensor that was not computed"
            )
        found.setdefault(tensor.handle, tensor)
    if not found:
        raise ValueError("there are no parameters to optimise; give tensors that require gradients")
    return tuple(found.values())


def _kept_like(parameter: Any) -> Any:
    """Zeros like a parameter, held as ``optimizer``."""
    made = making.make(parameter.shape, parameter.dtype, parameter._device, NO_SCOPE)
    made._data().fill(0)
    handle, holder = made._holder, named("optimizer")
    made._holder = holder  # before it is: Ctrl-C comes only after the call
    status = lib.tlm_move(made.handle, handle, holder)
    if status:
        made._holder = handle
        check(status, "keep", made)
    return made


def _at_least_zero(name: str, value: float) -> float:
    number = float(value)
    if not 0 <= number < float("inf"):
        raise ValueError(f"{name} is 0 or more, not {value!r}")
    return number


def _below_one(name: str, value: float) -> float:
    number = float(value)
    if not 0 <= number < 1:
        raise ValueError(f"{name} is from 0 to below 1, not {value!r}")
    return number
