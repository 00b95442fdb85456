"""Attacks on gradients: shared ones, threads that meddle in each other's passes, resets in between.

Covers: what a program could do to a tape that its promises do not name. Does not cover: memory that
runs out (``test_tape_failures``), Ctrl-C (``test_tape_interrupts``).
"""

from __future__ import annotations

import contextvars
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tlmem

ROUNDS = 2000
BIG = 3000
"""Elements of a gradient that several threads work on."""


# ---- gradients that are shared ----


def test_one_tensor_as_the_gradient_of_two_leaves_is_added_to_each_once() -> None:
    one, other = (tlmem.ones(3, requires_grad=True) for _ in range(2))
    shared = tlmem.full((3,), 10.0)
    one.grad = other.grad = shared
    del shared

    (one * other).sum().backward()

    assert one.grad.tolist() == other.grad.tolist() == [11.0] * 3


@pytest.mark.parametrize("keeps_a_name", [False, True])
def test_a_gradient_that_shows_one_element_often_is_added_to_as_what_it_shows(
    keeps_a_name: bool,
) -> None:
    leaf = tlmem.ones(3, requires_grad=True)
    name = tlmem.broadcast_to(tlmem.full((1,), 10.0), (3,))
    leaf.grad = name
    if not keeps_a_name:
        del name

    (leaf * tlmem.tensor([1.0, 2.0, 3.0])).sum().backward()

    assert leaf.grad.tolist() == [11.0, 12.0, 13.0]


def test_a_leaf_as_its_own_gradient_keeps_its_value() -> None:
    leaf = tlmem.ones(3, requires_grad=True)
    leaf.grad = leaf.detach()

    (leaf * 2.0).sum().backward()

    assert leaf.tolist() == [1.0] * 3
    assert leaf.grad.tolist() == [3.0] * 3
    leaf.grad = None


def test_a_gradient_in_an_arena_is_refused_and_the_old_one_stays() -> None:
    leaf = tlmem.ones(3, requires_grad=True)
    leaf.grad = tlmem.ones(3)
    with tlmem.scope("s"):
        with pytest.raises(tlmem.InArena, match=r"gradient of.*copy"):
            leaf.grad = tlmem.arena_empty(3)
    assert leaf.grad.tolist() == [1.0] * 3


def test_a_gradient_that_was_freed_by_hand_is_named_and_can_be_cleared() -> None:
    leaf = tlmem.ones(3, requires_grad=True)
    (leaf * leaf).sum().backward()
    handle = leaf.grad.handle
    leaf.grad.free()
    with pytest.raises(tlmem.UseAfterFree, match=f"object {handle} was freed"):
        _ = leaf.grad
    leaf.zero_grad()
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [2.0] * 3


# ---- more axes than a tape knows ----

NINE = (1,) * 8 + (2,)
NINE_AXES: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda leaf: leaf.reshape(NINE),
    "broadcast_to": lambda leaf: tlmem.broadcast_to(leaf, NINE),
    "unsqueeze": lambda leaf: tlmem.unsqueeze(leaf.reshape(NINE[1:]), 0),
    "an op of the program": lambda leaf: nine_axes(leaf),
    "what it saves": lambda leaf: saves_nine_axes(leaf),
}


@tlmem.op(backward=lambda context, grad: grad.reshape(2))
def nine_axes(context: Any, x: Any) -> Any:
    return x.reshape(NINE)


@tlmem.op(backward=lambda context, grad: grad)
def saves_nine_axes(context: Any, x: Any) -> Any:
    context.save(x.reshape(NINE))
    return x * 1.0


@pytest.mark.parametrize("name", NINE_AXES)
def test_nine_axes_lose_no_gradient_silently(name: str) -> None:
    leaf = tlmem.ones(2, requires_grad=True)
    with pytest.raises(tlmem.NotDifferentiable, match="tensor float32"):
        NINE_AXES[name](leaf)
    assert tlmem.reshape(leaf.detach(), NINE).shape == NINE


def test_a_tensor_of_nine_axes_is_no_leaf() -> None:
    tensor = tlmem.ones(NINE)
    with pytest.raises(tlmem.WrongShape, match="9 axes, and a tape knows 8"):
        tensor.requires_grad_()
    assert not tensor.requires_grad


# ---- tapes that end ----


def test_what_was_computed_on_a_tape_that_has_ended_is_stale() -> None:
    with tlmem.Tape("gone"):
        leaf = tlmem.ones(3, requires_grad=True)
        result = leaf * 2.0
    with pytest.raises(tlmem.StaleSlot, match="reset or has ended"):
        result * 2.0


def test_a_tape_of_a_generator_that_is_closed_in_another_context_ends() -> None:
    def values() -> Iterator[int]:
        with tlmem.Tape("of a generator"):
            yield 1

    generator = values()
    contextvars.Context().run(next, generator)
    generator.close()
    assert tlmem.tape().name == ""


def test_more_tapes_than_there_can_be_is_said() -> None:
    made: list[Any] = []
    with pytest.raises(tlmem.SizeOverflow, match="255 already"):
        while True:
            made.append(tlmem.Tape())
    for each in made:
        each.close()
    tlmem.Tape().close()


def test_an_op_of_the_program_that_returns_whole_numbers_has_no_gradient() -> None:
    @tlmem.op(backward=lambda context, grad: None)
    def rounded(context: Any, x: Any) -> Any:
        return x.astype("int64")

    result = rounded(tlmem.ones(2, requires_grad=True))
    assert result.tolist() == [1, 1]
    assert not result.requires_grad


# ---- threads ----


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*bodies: Callable[[], None]) -> list[str]:
    """Runs bodies in threads of their own; what went wrong in them."""
    failures: list[str] = []
    begin = threading.Barrier(len(bodies))

    def run(body: Callable[[], None]) -> None:
        try:
            begin.wait()
            body()
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@pytest.mark.usefixtures("eager_threads")
def test_a_gradient_that_others_look_at_during_a_pass_loses_no_addition() -> None:
    leaf = tlmem.zeros(BIG, requires_grad=True)
    done = threading.Event()

    def go_back() -> None:
        try:
            for _ in range(ROUNDS):
                leaf.sum().backward()
        finally:
            done.set()

    def look() -> None:
        while not done.is_set():
            name = leaf.grad
            assert name is None or float(name[0].item()) == int(name[0].item())
            del name

    assert together(go_back, look, look) == []
    assert leaf.grad.tolist() == [float(ROUNDS)] * BIG


@pytest.mark.usefixtures("eager_threads")
def test_threads_that_share_parameters_add_all_their_gradients() -> None:
    leaves = [tlmem.ones(BIG, requires_grad=True) for _ in range(3)]

    def train() -> None:
        for _ in range(ROUNDS // 10):
            total = leaves[0] + leaves[1] * 2.0 + leaves[2] * 3.0
            total.sum().backward()

    assert together(*[train] * 10) == []
    for number, leaf in enumerate(leaves, 1):
        assert leaf.grad.tolist() == [float(number * ROUNDS)] * BIG


MEDDLING: dict[str, Callable[[Any], object]] = {
    "reset": lambda leaf: tlmem.tape().reset(),
    "clear_grads": lambda leaf: tlmem.clear_grads(),
    "zero_grad": lambda leaf: tlmem.zero_grad(),
    "set": lambda leaf: setattr(leaf, "grad", tlmem.ones(BIG)),
    "take away": lambda leaf: setattr(leaf, "grad", None),
    "look": lambda leaf: leaf.grad,
    "statistics": lambda leaf: tlmem.tape().stats(),
}


@pytest.mark.parametrize("name", MEDDLING)
@pytest.mark.usefixtures("eager_threads")
def test_a_tape_that_another_thread_meddles_with_stays_whole(name: str) -> None:
    meddle = MEDDLING[name]
    leaf = tlmem.ones(BIG, requires_grad=True)
    done = threading.Event()

    def go_back() -> None:
        for _ in range(ROUNDS):
            try:
                (leaf * 2.0).sum().backward()
            except (tlmem.StaleSlot, tlmem.NotDifferentiable):
                assert name == "reset"

    def go_back_and_tell() -> None:
        try:
            go_back()
        finally:
            done.set()

    def others() -> None:
        while not done.is_set():
            try:
                meddle(leaf)
            except (tlmem.BackwardRunning, tlmem.StaleSlot):
                assert name in ("reset", "set", "take away")

    assert together(go_back_and_tell, go_back, others, others) == []
    tlmem.tape().reset()
    found = tlmem.tape().stats()
    assert (found.records, found.leaves, found.grads, found.grad_bytes) == (0, 0, 0, 0)
    assert (found.saved_bytes, found.saved_objects) == (0, 0)
    (leaf * 2.0).sum().backward()
    assert leaf.grad.tolist() == [2.0] * BIG
