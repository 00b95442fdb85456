"""Plays a random program on tlmem, dropping, retaining and leaving scopes as a program might.

What is compared: values, gradients of leaves and of what retains them, with the reference; then
that nothing is left. How a program is played depends on a seed of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from runtime.autograd.gradients import Random, close
from runtime.autograd.graph_reference import gradients
from runtime.autograd.graphs import Reference, Step, perform

import tlmem

ROUNDED = 1e-9
ENDINGS = (
    "once",
    "once",
    "once",
    "twice, retained",
    "two roots",
    "a seed",
    "a rule that fails",
    "a rule that fails, retained",
    "without retaining",
    "never",
    "reset",
    "written to",
)


class Blown(Exception):
    """What a rule fails with."""


class Fuse:
    """Whether the rule of ``fuse`` fails, and how often it has run."""

    armed = False
    ran = 0


def burn(context: Any, gradient: Any) -> Any:
    """The gradient itself, unless armed."""
    Fuse.ran += 1
    if Fuse.armed:
        raise Blown
    return gradient


def cube_rule(context: Any, gradient: Any) -> Any:
    """Of x: 3 x x."""
    (x,) = context.saved
    return gradient * x * x * 3.0


def swing_rule(context: Any, gradient: Any) -> Any:
    """Of x: sin y; of y: x cos y. Sums over axes along which an input was repeated are ours."""
    x, y = context.saved
    return (
        fitting(gradient * tlmem.sin(y), x.shape),
        fitting(gradient * x * tlmem.cos(y), y.shape),
    )


def fitting(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Sums over axes along which a value of this shape was repeated."""
    for _ in range(gradient.ndim - len(shape)):
        gradient = gradient.sum(0)
    for axis, length in enumerate(shape):
        if length == 1 and gradient.shape[axis] != 1:
            gradient = gradient.sum(axis, keepdims=True)
    return gradient


@tlmem.op(backward=cube_rule)
def cube(context: Any, x: Any) -> Any:
    """An op of the program's that saves its input."""
    context.save(x)
    return x * x * x


@tlmem.op(backward=swing_rule)
def swing(context: Any, x: Any, y: Any) -> Any:
    """An op of the program's with two inputs."""
    context.save(x, y)
    return x * tlmem.sin(y)


@tlmem.op(backward=burn)
def fuse(context: Any, x: Any) -> Any:
    """An op of the program's that saves nothing."""
    return x * 1.0


class Words:
    """The words of tlmem, on a device."""

    cube, swing, fuse = staticmethod(cube), staticmethod(swing), staticmethod(fuse)

    def __init__(self, device: Any = None) -> None:
        self.device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(tlmem, name)

    def leaf(self, array: np.ndarray, wanted: bool) -> Any:
        return tlmem.tensor(array, "float64", requires_grad=wanted, device=self.device)

    def index(self, array: np.ndarray) -> Any:
        return tlmem.tensor(array, None, device=self.device)

    def without_gradient(self, function: Callable[..., Any], *inputs: Any) -> Any:
        with tlmem.no_grad():
            return function(*inputs)


class Play:
    """One program, played once."""

    def __init__(
        self,
        steps: Sequence[Step],
        seed: int,
        ending: str | None = None,
        device: Any = None,
        own_tape: bool | None = None,
    ) -> None:
        self.steps = steps
        self.random = Random(seed, 77)
        self.ending = ending or self.random.choice(ENDINGS)
        self.words, self.reference = Words(device), Reference()
        self.expected = self.compute()
        self.tensors: dict[int, Any] = {}
        self.leaves: dict[int, Any] = {}
        self.retained: dict[int, Any] = {}
        self.last = {at: number for number, step in enumerate(steps) for at in step.inputs}
        self.dropping = self.random.choice([0.0, 0.5, 1.0])
        self.scopes: list[tuple[ExitStack, set[int]]] = []
        self.lone = self.ends()
        self.own_tape = self.random.chance(0.3) if own_tape is None else own_tape

    def compute(self) -> list[Any]:
        """Every value, by the reference."""
        values: list[Any] = []
        for step in self.steps:
            values.append(perform(self.reference, step, [values[at] for at in step.inputs]))
        return values

    def ends(self) -> list[int]:
        """The roots: the last value and, for some endings, another one."""
        root = len(self.steps) - 1
        if self.ending == "two roots":
            return [self.random.below(root + 1), root]
        return [self.random.below(root + 1)] if self.ending == "a seed" else [root]

    # ---- forward ----

    def forward(self) -> None:
        """All steps, in and out of scopes."""
        for number, step in enumerate(self.steps):
            self.change_scopes(number)
            self.make(number, step)
            self.check_value(number)
            self.drop(number)
        while self.scopes:
            self.leave(len(self.steps))

    def change_scopes(self, number: int) -> None:
        """Enters one, or leaves the innermost."""
        if len(self.scopes) < 3 and self.random.chance(0.08):
            stack = ExitStack()
            stack.enter_context(tlmem.scope(f"part {number}"))
            self.scopes.append((stack, set()))
        elif self.scopes and self.random.chance(0.15):
            self.leave(number)

    def leave(self, number: int) -> None:
        """What is needed afterwards leaves the scope before it ends; what is not ends with it."""
        stack, mine = self.scopes.pop()
        for at in sorted(mine & set(self.tensors)):
            if self.needed(at, number):
                self.tensors[at].escape()
            else:
                self.forget(at)
        stack.close()

    def needed(self, at: int, number: int) -> bool:
        """Whether a step from ``number`` on reads it, or whoever looks at the end."""
        return self.last.get(at, -1) >= number or at in self.lone or at in self.retained

    def make(self, number: int, step: Step) -> None:
        """One step; one in eight with its values to be computed again."""
        given = [self.tensors[at] for at in step.inputs]
        with ExitStack() as stack:
            if self.random.chance(0.125):
                stack.enter_context(tlmem.recompute())
            made = perform(self.words, step, given)
        self.tensors[number] = made
        if self.scopes and step.word != "leaf":
            self.scopes[-1][1].add(number)
        if step.word == "leaf":
            if self.scopes:
                made.escape()
            if step.others[1]:
                self.leaves[number] = made
        elif made.requires_grad and self.random.chance(0.05):
            made.retain_grad()
            self.retained[number] = made

    def check_value(self, number: int) -> None:
        expected = self.expected[number].value
        found = self.tensors[number].detach().numpy()
        assert found.shape == expected.shape, f"v{number} has shape {found.shape}"
        assert close(np.array(found), expected, ROUNDED), f"the value of v{number} is wrong"

    def drop(self, number: int) -> None:
        """Handles that nothing reads any more; the tape has what rules need."""
        for at in self.steps[number].inputs:
            done = self.last[at] == number and not self.needed(at, number + 1)
            if done and at in self.tensors and self.random.chance(self.dropping):
                self.forget(at)

    def forget(self, at: int) -> None:
        """The program's name goes; that of a leaf stays where its gradient is looked up."""
        del self.tensors[at]

    # ---- back ----

    def run(self) -> None:
        """Forward, back in the way of the ending; a third on a tape that ends before the names."""
        with ExitStack() as stack:
            if self.own_tape:
                stack.enter_context(tlmem.Tape("own"))
            self.play()

    def play(self) -> None:
        """On the tape in force."""
        self.forward()
        roots = [self.tensors[at] for at in self.lone]
        if self.random.chance(0.5):
            self.tensors.clear()
        getattr(self, "end_" + self.ending.replace(", ", "_").replace(" ", "_"))(roots)

    def seed_for(self, root: Any) -> Any:
        """Ones, all of them the same element."""
        one = tlmem.ones((), "float64", device=self.words.device)
        return tlmem.broadcast_to(one, root.shape)

    def differentiable(self, root: Any) -> bool:
        """Whether there is anything to go back to; if not, tlmem says so."""
        if root.requires_grad:
            return True
        try:
            root.backward(self.seed_for(root))
        except tlmem.NotDifferentiable:
            return False
        raise AssertionError("backward of a constant was not refused")

    def check(self, times: float = 1.0, *, of: Sequence[int] = ()) -> None:
        """Gradients of leaves and of what retains them are those of the reference."""
        wanted: dict[Any, Any] = {}
        for at in of or self.lone:
            root = self.expected[at]
            for each, gradient in gradients(root, np.ones(root.shape)).items():
                wanted[each] = wanted.get(each, 0.0) + times * gradient
        for at, tensor in (self.leaves | self.retained).items():
            self.compare(at, tensor.grad, wanted.get(self.expected[at]))

    def compare(self, at: int, found: Any, wanted: Any) -> None:
        """A gradient that is not there counts as zeros, as the reference knows no constants."""
        expected = np.zeros(self.expected[at].shape) if wanted is None else np.asarray(wanted)
        actual = np.zeros(expected.shape) if found is None else np.array(found.numpy())
        assert actual.shape == expected.shape, f"the gradient of v{at} has shape {actual.shape}"
        assert close(actual, expected, ROUNDED), (
            f"the gradient of v{at} is {actual.tolist()}, not {expected.tolist()}"
        )

    def no_gradients(self) -> None:
        """No leaf has one."""
        assert [at for at, leaf in self.leaves.items() if leaf.grad is not None] == []

    def end_once(self, roots: list[Any]) -> None:
        if self.differentiable(roots[0]):
            roots[0].backward()
            self.check()
            with_error(tlmem.SecondBackward, roots[0].backward, unless_leaf(roots[0]))

    def end_twice_retained(self, roots: list[Any]) -> None:
        if self.differentiable(roots[0]):
            roots[0].backward(retain_graph=True)
            self.check()
            roots[0].backward()
            self.check(2.0)

    def end_two_roots(self, roots: list[Any]) -> None:
        done = []
        for at, root in zip(self.lone, roots, strict=True):
            if self.differentiable(root):
                root.backward(self.seed_for(root), retain_graph=not done)
                done.append(at)
        if done:
            self.check(of=done)

    def end_a_seed(self, roots: list[Any]) -> None:
        if self.differentiable(roots[0]):
            roots[0].backward(self.seed_for(roots[0]))
            self.check()

    def end_a_rule_that_fails(self, roots: list[Any], retain: bool = False) -> None:
        if not self.differentiable(roots[0]):
            return
        Fuse.armed, ran = True, Fuse.ran
        try:
            roots[0].backward(retain_graph=retain)
        except Blown:
            self.no_gradients()
            Fuse.armed = False
            if retain:
                roots[0].backward()
                self.check()
        else:
            assert Fuse.ran == ran, "a rule failed and backward did not"
            self.check()
        finally:
            Fuse.armed = False

    def end_a_rule_that_fails_retained(self, roots: list[Any]) -> None:
        self.end_a_rule_that_fails(roots, retain=True)

    def end_without_retaining(self, roots: list[Any]) -> None:
        """A value in the middle is still there after a pass, but cannot be gone back from."""
        if self.differentiable(roots[0]):
            roots[0].backward()
            before = {at: leaf.grad for at, leaf in self.leaves.items()}
            with_error(tlmem.SecondBackward, roots[0].backward, unless_leaf(roots[0]))
            if not roots[0].is_leaf:
                assert all(
                    leaf.grad is before[at] or leaf.grad.tolist() == before[at].tolist()
                    for at, leaf in self.leaves.items()
                    if before[at] is not None
                )

    def end_never(self, roots: list[Any]) -> None:
        self.no_gradients()

    def end_reset(self, roots: list[Any]) -> None:
        tlmem.tape().reset()
        assert tlmem.tape().stats().records == 0
        for root in roots:
            if root.requires_grad and not root.is_leaf:
                with_error(tlmem.StaleSlot, root.backward, True)
        self.no_gradients()

    def end_written_to(self, roots: list[Any]) -> None:
        """An optimiser's write is refused later, by whoever reads what was saved before it."""
        if not self.differentiable(roots[0]):
            return
        at = self.random.choice(sorted(self.leaves) or [len(self.steps) - 1])
        target = self.leaves.get(at, roots[0])
        with tlmem.no_grad():
            target += 1.0
        try:
            roots[0].backward()
        except tlmem.InPlaceOnSaved:
            self.no_gradients()
        else:
            self.check()


def unless_leaf(root: Any) -> bool:
    """A leaf has no record that could be spent."""
    return not root.is_leaf


def with_error(error: type[Exception], call: Callable[[], Any], expected: bool) -> None:
    """Calls what must fail."""
    if not expected:
        return
    try:
        call()
    except error:
        return
    raise AssertionError(f"{call} did not raise {error.__name__}")
