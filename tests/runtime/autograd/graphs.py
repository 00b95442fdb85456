"""Random programs of tensor operations, as data: what is computed from what.

A program runs on anything that has the functions of ``tlmem``: on tlmem itself (``graph_player``)
and on the reference, which also says while a program is made which shapes and values there are.
Values keep away from kinks, and are made smaller where they grow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from runtime.autograd import graph_reference
from runtime.autograd.gradients import Random

MOST_ELEMENTS = 240
LARGEST = 6.0
KINK = 1e-6


@dataclass(frozen=True)
class Step:
    """Makes one value: by a word, from values before it, from other things.

    ``inside`` are the steps of a part of its own, the last of which gives the value.
    """

    word: str
    inputs: tuple[int, ...] = ()
    others: tuple[Any, ...] = ()
    inside: tuple[Step, ...] = ()


class Reference:
    """The words of the reference; parts of a program are simply computed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(graph_reference, name)

    def leaf(self, array: np.ndarray, wanted: bool) -> Any:
        return graph_reference.Node(array)

    def index(self, array: np.ndarray) -> Any:
        return array

    def cube(self, x: Any) -> Any:
        return x * x * x

    def swing(self, x: Any, y: Any) -> Any:
        return x * graph_reference.sin(y)

    def fuse(self, x: Any) -> Any:
        return x * 1.0

    def checkpoint(self, function: Callable[..., Any], *inputs: Any) -> Any:
        return function(*inputs)

    def without_gradient(self, function: Callable[..., Any], *inputs: Any) -> Any:
        return function(*(each.detach() for each in inputs)).detach()


def evaluate(words: Any, steps: Sequence[Step], inputs: Sequence[Any] = ()) -> Any:
    """The last value."""
    values: list[Any] = []
    for step in steps:
        values.append(perform(words, step, [values[at] for at in step.inputs], inputs))
    return values[-1]


def perform(words: Any, step: Step, given: Sequence[Any], inputs: Sequence[Any] = ()) -> Any:
    """One step, from the values it reads."""
    if step.word == "input":
        return inputs[step.others[0]]
    if step.inside:
        part = getattr(words, step.word)
        return part(lambda *tensors: evaluate(words, step.inside, tensors), *given)
    if step.word == "leaf":
        return words.leaf(*step.others)
    return WORDS[step.word][0](words, *given, *step.others)


# ---- words: how they are computed, and how their inputs are chosen ----


class Draft:
    """A program while it is made."""

    def __init__(self, random: Random, wanted: float = 0.75) -> None:
        self.random = random
        self.wanted = wanted
        self.words = Reference()
        self.steps: list[Step] = []
        self.values: list[Any] = []
        self.read: set[int] = set()

    def add(self, step: Step, value: Any) -> int:
        """Appends a step whose value is known."""
        self.steps.append(step)
        self.values.append(value)
        self.read.update(step.inputs)
        return len(self.steps) - 1

    def leaf(self, shape: tuple[int, ...]) -> int:
        """A new leaf; one in four is a constant, and all are that make their own in a part."""
        array = self.random.normal(shape)
        step = Step("leaf", (), (np.asarray(array), self.random.chance(self.wanted)))
        return self.add(step, perform(self.words, step, ()))

    def any(self) -> int:
        """A value: mostly one that nothing has read yet."""
        unread = [at for at in range(len(self.values)) if at not in self.read]
        if unread and self.random.chance(0.7):
            return int(self.random.choice(unread))
        return self.random.below(len(self.values))

    def shape(self, at: int) -> tuple[int, ...]:
        return self.values[at].shape

    def fitting(self, shape: tuple[int, ...]) -> int:
        """A value that broadcasts with a shape: one that is there, else a new leaf."""
        there = [at for at in range(len(self.values)) if broadcasts(self.shape(at), shape)]
        if there and self.random.chance(0.85):
            return int(self.random.choice(there))
        return self.leaf(self.random.narrowed(shape))

    def twin(self, shape: tuple[int, ...]) -> int:
        """A value of exactly this shape."""
        there = [at for at in range(len(self.values)) if self.shape(at) == shape]
        return int(self.random.choice(there)) if there else self.leaf(shape)

    def try_step(self, word: str, inputs: Sequence[int], others: Sequence[Any]) -> bool:
        """Whether it computes something that is fit to go on with; it is appended then."""
        step = Step(word, tuple(inputs), tuple(others))
        given = [self.values[at] for at in inputs]
        near = WORDS[word][2]
        try:
            with np.errstate(all="ignore"):
                if near is not None and near(*(each.value for each in given), *others):
                    return False
                value = perform(self.words, step, given)
        except (ValueError, ZeroDivisionError):  # of reductions of nothing
            return False
        if value.value.size > MOST_ELEMENTS or not np.all(np.isfinite(value.value)):
            return False
        at = self.add(step, value)
        largest = float(np.max(np.abs(value.value), initial=0.0))
        if largest > LARGEST:
            smaller = Step("scale", (at,), (1 / largest,))
            self.add(smaller, perform(self.words, smaller, [value]))
        return True

    def part(self) -> None:
        """A part of its own: checkpointed, or computed without gradients."""
        inputs = [self.any() for _ in range(1 + self.random.below(3))]
        inner = Draft(self.random, 0.0)
        for number, at in enumerate(inputs):
            inner.add(Step("input", (), (number,)), self.values[at])
        for _ in range(1 + self.random.below(6)):
            inner.grow(parts=False)
        word = "checkpoint" if self.random.chance(0.7) else "without_gradient"
        step = Step(word, tuple(inputs), (), tuple(inner.steps))
        self.add(step, perform(self.words, step, [self.values[at] for at in inputs]))

    def grow(self, parts: bool = True) -> None:
        """One more step, or some that belong together."""
        if parts and self.random.chance(0.08):
            return self.part()
        for _ in range(20):
            word = self.random.choice(list(WORDS))
            choose = WORDS[word][1]
            chosen = choose(self)
            if chosen is not None and self.try_step(word, *chosen):
                return None
        return None


def broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes go together."""
    try:
        np.broadcast_shapes(one, other)
    except ValueError:
        return False
    return True


Chosen = tuple[Sequence[int], Sequence[Any]] | None
Choose = Callable[[Draft], Chosen]
Near = Callable[..., bool] | None


def one(draft: Draft) -> Chosen:
    return [draft.any()], []


def two(draft: Draft) -> Chosen:
    left = draft.any()
    pair = [left, draft.fitting(draft.shape(left))]
    return pair[:: 1 if draft.random.chance(0.5) else -1], []


def some_axes(draft: Draft) -> Chosen:
    at = draft.any()
    axis = draft.random.axes(len(draft.shape(at)))
    return [at], [axis, axis is not None and draft.random.chance(0.5)]


def an_axis(draft: Draft) -> Chosen:
    at = draft.any()
    axes = len(draft.shape(at))
    return ([at], [draft.random.below(axes)]) if axes else None


def product(draft: Draft) -> Chosen:
    at = draft.any()
    shape = draft.shape(at)
    if len(shape) < 2:
        return None
    width = 1 + draft.random.below(4)
    front = shape[:-2] if draft.random.chance(0.4) else ()
    return [at, draft.twin((*front, shape[-1], width))], []


def linear_layer(draft: Draft) -> Chosen:
    chosen = product(draft)
    if chosen is None:
        return None
    bias = draft.twin(draft.shape(chosen[0][1])[-1:])
    return [*chosen[0], bias], []


def condition(draft: Draft) -> Chosen:
    chosen = two(draft)
    assert chosen is not None
    shape = np.broadcast_shapes(*(draft.shape(at) for at in chosen[0]))
    return chosen[0], [draft.random.numbers.random(shape) < 0.5]


def rows(draft: Draft) -> Chosen:
    there = [at for at in range(len(draft.values)) if len(draft.shape(at)) == 2]
    if not there:
        return None
    at = int(draft.random.choice(there))
    count, classes = draft.shape(at)
    if not count or classes < 2:
        return None
    return [at], [draft.random.indices(classes, (count,))]


def last_axes(draft: Draft) -> Chosen:
    at = draft.any()
    shape = draft.shape(at)
    if not shape or shape[-1] < 2:
        return None
    return [at], [1 + draft.random.below(len(shape))]


def other_shape(draft: Draft) -> Chosen:
    at = draft.any()
    shape = [int(each) for each in draft.random.numbers.permutation(draft.shape(at))]
    if len(shape) > 1 and draft.random.chance(0.5):
        shape[:2] = [shape[0] * shape[1]]
    elif len(shape) < 5:
        shape.insert(draft.random.below(len(shape) + 1), 1)
    return [at], [tuple(shape)]


def order(draft: Draft) -> Chosen:
    at = draft.any()
    axes = len(draft.shape(at))
    return [at], [tuple(int(each) for each in draft.random.numbers.permutation(axes))]


def wider(draft: Draft) -> Chosen:
    at = draft.any()
    shape = draft.shape(at)
    longer = [2 + draft.random.below(2) if length == 1 else length for length in shape]
    front = [2] if len(shape) < 4 and draft.random.chance(0.5) else []
    return [at], [(*front, *longer)]


def key(draft: Draft) -> Chosen:
    at = draft.any()
    shape = draft.shape(at)
    found: list[Any] = []
    for length in shape[: draft.random.below(len(shape) + 1)]:
        if length and draft.random.chance(0.3):
            found.append(draft.random.below(2 * length) - length)
        else:
            step = draft.random.choice([1, 1, 2, -1])
            found.append(slice(None, None, step) if step < 0 else slice(length // 3, None, step))
    return ([at], [tuple(found)]) if found else None


def equals(draft: Draft) -> Chosen:
    at = draft.any()
    shape = draft.shape(at)
    if not shape or len(shape) > 4:
        return None
    return [at, draft.twin(shape), at][: 2 + draft.random.below(2)], [
        draft.random.below(len(shape))
    ]


def places(draft: Draft) -> Chosen:
    chosen = an_axis(draft)
    if chosen is None:
        return None
    (at,), (axis,) = chosen
    length = draft.shape(at)[axis]
    index = draft.random.indices(length, (1 + draft.random.below(4),)) if length else None
    return None if index is None else ([at], [index, axis])


def elements(draft: Draft) -> Chosen:
    chosen = an_axis(draft)
    if chosen is None or 0 in draft.shape(chosen[0][0]):
        return None
    (at,), (axis,) = chosen
    shape = list(draft.shape(at))
    length, shape[axis] = shape[axis], 1 + draft.random.below(3)
    return [at], [axis, draft.random.indices(length, tuple(shape))]


def additions(draft: Draft) -> Chosen:
    chosen = elements(draft)
    if chosen is None:
        return None
    (at,), (axis, index) = chosen
    return [at, draft.twin(index.shape)], [axis, index]


def between(*edges: float) -> Near:
    """Whether a value is about at an edge, but not exactly there."""

    def near(x: np.ndarray, *others: Any) -> bool:
        return any(bool(np.any((x != edge) & (np.abs(x - edge) < KINK))) for edge in edges)

    return near


def about_equal(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.any(np.abs(x - y) < KINK))


def tied(x: np.ndarray, axis: Any, keepdims: bool) -> bool:
    """Whether the largest or the smallest is there twice, or nearly."""
    for each in (x, -x):
        largest = each.max(axis, keepdims=True)
        if np.any((each > largest - KINK).sum(axis) > 1):
            return True
    return False


def number(least: float, most: float, choose: Choose = one) -> Choose:
    """One value and a number."""

    def chosen(draft: Draft) -> Chosen:
        found = choose(draft)
        return found and (found[0], [float(draft.random.numbers.uniform(least, most))])

    return chosen


WORDS: dict[str, tuple[Callable[..., Any], Choose, Near]] = {
    "add": (lambda m, a, b: a + b, two, None),
    "subtract": (lambda m, a, b: a - b, two, None),
    "multiply": (lambda m, a, b: a * b, two, None),
    "divide": (lambda m, a, b: a / (b * b + 1.0), two, None),
    "scale": (lambda m, a, n: a * n, number(-2, 2), None),
    "shift": (lambda m, a, n: n - a, number(-1, 1), None),
    "power 2": (lambda m, a: a**2.0, one, None),
    "power 1.5": (lambda m, a: (a * a + 0.5) ** 1.5, one, None),
    "negative": (lambda m, a: -a, one, None),
    "exp": (lambda m, a: m.exp(a * 0.5), one, None),
    "log": (lambda m, a: m.log(a * a + 0.7), one, None),
    "sqrt": (lambda m, a: m.sqrt(a * a + 0.3), one, None),
    "square": (lambda m, a: m.square(a), one, None),
    "sin": (lambda m, a: m.sin(a), one, None),
    "cos": (lambda m, a: m.cos(a), one, None),
    "tanh": (lambda m, a: m.tanh(a), one, None),
    "sigmoid": (lambda m, a: m.sigmoid(a), one, None),
    "gelu": (lambda m, a: m.gelu(a), one, None),
    "relu": (lambda m, a: m.relu(a), one, between(0.0)),
    "absolute": (lambda m, a: m.absolute(a), one, between(0.0)),
    "clip": (lambda m, a: m.clip(a, -0.7, 0.9), one, between(-0.7, 0.9)),
    "maximum": (lambda m, a, b: m.maximum(a, b), two, about_equal),
    "minimum": (lambda m, a, b: m.minimum(a, b), two, about_equal),
    "where": (lambda m, a, b, chosen: m.where(m.index(chosen), a, b), condition, None),
    "sum": (lambda m, a, axis, keep: m.sum(a, axis, keep), some_axes, None),
    "mean": (lambda m, a, axis, keep: m.mean(a, axis, keep), some_axes, None),
    "var": (lambda m, a, axis, keep: m.var(a, axis, keep, 0), some_axes, None),
    "max": (lambda m, a, axis, keep: m.max(a, axis, keep), some_axes, tied),
    "min": (lambda m, a, axis, keep: m.min(a, axis, keep), some_axes, tied),
    "softmax": (lambda m, a, axis: m.softmax(a, axis), an_axis, None),
    "log_softmax": (lambda m, a, axis: m.log_softmax(a, axis), an_axis, None),
    "cross_entropy": (lambda m, a, right: m.cross_entropy(a, m.index(right)), rows, None),
    "layer_norm": (lambda m, a, axes: m.layer_norm(a, axes=axes), last_axes, None),
    "matmul": (lambda m, a, b: a @ b, product, None),
    "linear": (lambda m, a, w, b: a @ w + b, linear_layer, None),
    "reshape": (lambda m, a, shape: m.reshape(a, shape), other_shape, None),
    "permute": (lambda m, a, axes: m.permute(a, axes), order, None),
    "broadcast_to": (lambda m, a, shape: m.broadcast_to(a, shape), wider, None),
    "slice": (lambda m, a, part: a[part], key, None),
    "concat": (lambda m, *given: m.concat(list(given[:-1]), given[-1]), equals, None),
    "stack": (lambda m, *given: m.stack(list(given[:-1]), given[-1]), equals, None),
    "take": (lambda m, a, index, axis: m.take(a, m.index(index), axis), places, None),
    "gather": (lambda m, a, axis, index: m.gather(a, axis, m.index(index)), elements, None),
    "scatter_add": (
        lambda m, a, source, axis, index: m.scatter_add(a, axis, m.index(index), source),
        additions,
        None,
    ),
    "detach": (lambda m, a: a.detach(), one, None),
    "cube": (lambda m, a: m.cube(a), one, None),
    "swing": (lambda m, a, b: m.swing(a, b), two, None),
    "fuse": (lambda m, a: m.fuse(a), one, None),
}


def program(random: Random, depth: int) -> tuple[Step, ...]:
    """About as many steps as ``depth`` says; the last is one number."""
    draft = Draft(random)
    for _ in range(1 + random.below(4)):
        draft.leaf(random.shape(0, 3, empty=random.chance(0.1)))
    while len(draft.steps) < depth:
        draft.grow()
    totals = []
    for at in [at for at in range(len(draft.steps)) if at not in draft.read]:
        assert draft.try_step("sum", [at], [None, False])
        totals.append(len(draft.steps) - 1)
    while len(totals) > 1:
        assert draft.try_step("add", [totals.pop(), totals.pop()], [])
        totals.append(len(draft.steps) - 1)
    return tuple(draft.steps)


def text(steps: Sequence[Step], indent: str = "") -> str:
    """A program, a line a step, for whoever looks for the mistake."""
    lines = []
    for number, step in enumerate(steps):
        read = ", ".join(f"v{at}" for at in step.inputs)
        others = ", ".join(
            f"array{each.shape}" if isinstance(each, np.ndarray) else repr(each)
            for each in step.others
        )
        given = ", ".join(part for part in (read, others) if part)
        lines.append(f"{indent}v{number} = {step.word}({given})")
        if step.inside:
            lines.append(text(step.inside, indent + "    "))
    return "\n".join(lines)
