"""Ctrl-C between any two steps of recording: the mode, the tape and the policy are put back."""

from collections.abc import Callable
from typing import Any

import pytest
from runtime.test_interrupts import Interrupt, what_is_left
from runtime.trace import described, live_objects

import tlmem
from tlmem.optim import Adam
from tlmem.runtime import core
from tlmem.runtime.autograd import checkpointing


@tlmem.op(backward=lambda context, grad: grad * context.saved[0])
def scaled(context: Any, x: Any) -> Any:
    context.save(x)
    return x * 2.0


def leaf() -> Any:
    return tlmem.ones(2, requires_grad=True)


def without() -> None:
    with tlmem.no_grad():
        leaf() * 2
        with tlmem.enable_grad():
            leaf() * 2


def on_a_tape() -> None:
    with tlmem.Tape("t"):
        (leaf() * 2).sum().backward()


def again() -> None:
    with tlmem.recompute("exp"):
        x = leaf()
        (tlmem.exp(x) * x).sum().backward()


def train() -> None:
    x = leaf()
    optimizer = Adam([x])
    for _ in tlmem.steps(2):
        (x * x).sum().backward()
        optimizer.step()


OPERATIONS: dict[str, Callable[[], object]] = {
    "no_grad": without,
    "a decorated function": tlmem.no_grad()(lambda: leaf() * 2),
    "a tape": on_a_tape,
    "recompute": again,
    "an op of the program": lambda: scaled(scaled(leaf())).sum().backward(),
    "checkpoint": lambda: tlmem.checkpoint(lambda x: scaled(x) * x, leaf()).sum().backward(),
    "training": train,
}


def modes() -> tuple[Any, ...]:
    """What must be as it was."""
    return core.lib.tlm_grad_mode_current(), tlmem.tape().name, checkpointing._rows.get()


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupt_at_any_place_puts_everything_back(name: str) -> None:
    operation = OPERATIONS[name]
    operation()
    what_is_left(set())
    expected = modes()
    lost = []
    for nth in range(1, 2000):
        before = live_objects()
        with Interrupt(nth) as interrupt:
            try:
                operation()
            except KeyboardInterrupt:
                pass
        left = what_is_left(before)
        found = modes()
        if left or found != expected or tlmem.tape().stats().records:
            lost.append((interrupt.place, found, described(left)))
            core.lib.tlm_grad_mode(1)
        if interrupt.left > 0:
            break

    assert lost == []
    assert nth > 5
