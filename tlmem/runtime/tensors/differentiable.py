"""What a tensor offers for gradients: whether it needs one, what it is, and going back.

Covers: ``requires_grad``, ``is_leaf``, ``grad``, ``backward``, ``retain_grad``, ``detach``.
Does not cover: tapes and recording or not (``autograd``), errors of the tape (``core_ops``).
See also: docs/reference/tape.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tlmem.runtime import contexts, core
from tlmem.runtime.core import engine
from tlmem.runtime.dtypes import FLOATING
from tlmem.runtime.errors import NotDifferentiable, WrongDevice, WrongDtype, WrongShape
from tlmem.runtime.tensors import core_ops
from tlmem.runtime.tensors.core_ops import MOST_OP_AXES
from tlmem.runtime.tensors.storage import Storage, shape_text

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor


class Differentiable:
    """Gradients of a tensor."""

    __slots__ = ()

    @property
    def requires_grad(self: Any) -> bool:
        """Whether operations on it are recorded: it is a leaf that wants a gradient, or was
        computed from one. A leaf can be told either way; a result cannot.

        Raises:
            WrongDtype: it is set on a tensor that is not float32 or float64.
            NotDifferentiable: it is taken from a tensor that was computed; use ``detach``.
        Source: docs/seed-map.md, S59.
        """
        return bool(self._slot or self._requires_grad)

    @requires_grad.setter
    def requires_grad(self: Any, on: bool) -> None:
        self.requires_grad_(on)

    def requires_grad_(self: Any, on: bool = True) -> Tensor:
        """Says whether its gradient is wanted; the tensor itself. Errors as ``requires_grad``."""
        self._require("ask for the gradient of" if on else "take the gradient from")
        if on and self.dtype not in FLOATING:
            raise WrongDtype(
                f"{core.subject_text(self)} cannot have a gradient; only float32 and float64 can: "
                "use .astype('float32')"
            )
        if on and self.ndim > MOST_OP_AXES:
            raise WrongShape(
                f"{core.subject_text(self)} cannot have a gradient: it has {self.ndim} axes, and a "
                f"tape knows {MOST_OP_AXES} at most; reshape it"
            )
        if self._slot and not self._requires_grad:
            if not on:
                raise NotDifferentiable(
                    f"cannot take the gradient from {core.subject_text(self)}: it was computed "
                    "from tensors that need one; use t.detach()",
                    object=self.handle,
                    allocated=self._allocated_at(),
                    advice="use t.detach()",
                )
        elif self._requires_grad != bool(on):
            engine.require(self, bool(on))
        return self

    @property
    def is_leaf(self: Any) -> bool:
        """Whether it was not computed from a tensor that needs a gradient."""
        return bool(self._requires_grad or not self._slot)

    @property
    def grad(self: Any) -> Tensor | None:
        """Its gradient so far, of its shape and dtype; None before the first pass.

        The name that is returned holds the gradient, so it stays valid when the tape lets go of it.
        Set it to a tensor of the same shape and dtype, or to None.

        Raises:
            NotDifferentiable: it is set on a tensor that needs no gradient.
            WrongShape, WrongDtype, WrongDevice: it is set to what cannot be its gradient.
        Source: docs/seed-map.md, S24, S58, S60.
        """
        return engine.gradient(self._slot) if self._slot else None

    @grad.setter
    def grad(self: Any, gradient: Tensor | None) -> None:
        if gradient is None and not self._slot:
            return
        self._require("set the gradient of")
        if gradient is not None:
            require_gradient_of(self, gradient)
        slot = _slot_of(self, "set the gradient of")
        core_ops.check(engine.set_gradient(slot, gradient), "set the gradient of", self)

    def backward(self: Any, gradient: Tensor | None = None, retain_graph: bool = False) -> None:
        """Computes the gradients of the leaves it was computed from, and adds them to ``grad``.

        What was saved for this is let go of on the way, unless the graph is retained.

        Args:
            gradient: that of this tensor, of its shape and dtype; left out, 1 for the one element.
            retain_graph: whether another pass may follow.
        Raises:
            NotDifferentiable: it needs no gradient.
            WrongShape: it has several elements and no gradient is given, or one of another shape.
            SecondBackward: a pass has run before and did not retain the graph.
            InPlaceOnSaved: what a rule needs was written in place since.
            StaleSlot: its tape was reset. BackwardRunning: a pass is under way in another thread.
        Source: docs/seed-map.md, S33, S60, S61, S63, S66.
        """
        self._require("go back from")
        contexts.settle()
        slot = _slot_of(self, "go back from")
        if gradient is not None:
            require_gradient_of(self, gradient)
        elif self.size != 1:
            raise WrongShape(
                f"cannot go back from {core.subject_text(self)} without a gradient: it has "
                f"{self.size} elements, not one; give backward() a tensor of shape "
                f"{shape_text(self.shape)}, or use .sum() first"
            )
        status = engine.backward(slot, gradient, retain_graph)
        if status:
            core_ops.raise_for(status, "go back from", self)

    def retain_grad(self: Any) -> None:
        """Asks that its gradient be kept although it is not a leaf.

        Raises:
            NotDifferentiable: it needs no gradient. StaleSlot: its tape was reset.
        """
        slot = _slot_of(self, "keep the gradient of")
        if not self._requires_grad:
            status = core.lib.tlm_slot_retain_grad(slot)
            core_ops.check(status, "keep the gradient of", self)

    def detach(self: Any) -> Tensor:
        """The same memory under a name that needs no gradient: a view, recorded as a detach.

        Raises:
            UseAfterFree: it is freed.
        Source: docs/seed-map.md, S34.
        """
        return core_ops.detached(self)

    def zero_grad(self: Any) -> None:
        """Fills its gradient with zeros; lets go of one that others hold as well."""
        if self._slot:
            core_ops.check(engine.zero_gradient(self._slot), "zero the gradient of", self)


def _slot_of(tensor: Any, doing: str) -> int:
    slot = engine.slot(tensor)
    if not slot:
        raise NotDifferentiable(
            f"cannot {doing} {core.subject_text(tensor)}: it needs no gradient; set requires_grad "
            "on the tensors whose gradients are wanted, before computing with them",
            object=tensor.handle,
            allocated=tensor._allocated_at(),
            advice="set requires_grad on the tensors whose gradients are wanted",
        )
    return slot


def require_gradient_of(tensor: Any, gradient: Any) -> None:
    """Raises when something cannot be the gradient of a tensor."""
    if not isinstance(gradient, Storage):
        raise TypeError(f"a gradient is a tlmem.Tensor, not {type(gradient).__name__}")
    gradient._require("use as a gradient")
    about = f"the gradient of {core.subject_text(tensor)}"
    if gradient.shape != tensor.shape:
        raise WrongShape(f"{about} cannot have shape {shape_text(gradient.shape)}")
    if gradient.dtype != tensor.dtype:
        raise WrongDtype(f"{about} cannot be {gradient.dtype}; use .astype({tensor.dtype!r})")
    if gradient._device != tensor._device:
        raise WrongDevice(
            f"{about} cannot be on {gradient.device}; copy it: g.to({tensor.device!r})",
            object=gradient.handle,
        )
