"""Memory runs out at each point of a training step: nothing is left, and the next step works.

Covers: memory of the device and of our own bookkeeping, in forward, backward and update. Does not
cover: random programs (``test_graph_stress``).
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from runtime.trace import described, live_objects

import tlmem
from tlmem.runtime.core import lib
from tlmem.runtime.device import limit_device

MOST_REQUESTS = 500


def rule(context: Any, grad: Any) -> Any:
    return grad * context.saved[0] * 2.0


@tlmem.op(backward=rule)
def squared(context: Any, x: Any) -> Any:
    context.save(x)
    return x * x


class Training:
    """A model, its optimiser and one step of it, with every kind of op that saves something."""

    def __init__(self, optimiser: Callable[[Any], Any], device: Any) -> None:
        self.device = device
        self.optimiser = optimiser
        self.first = tlmem.randn((4, 8), seed=1, device=device, requires_grad=True)
        self.bias = tlmem.zeros(8, device=device, requires_grad=True)
        self.last = tlmem.randn((8, 3), seed=2, device=device, requires_grad=True)
        self.x = tlmem.ones((5, 4), device=device)
        self.classes = tlmem.tensor([0, 1, 2, 0, 1], "int64", device=device)
        self.parameters = [self.first, self.bias, self.last]

    def step(self) -> None:
        """The optimiser is made in the step, so that memory can run out for what it keeps, too."""
        with tlmem.Tape("step"):
            chosen = self.optimiser(self.parameters)
            h = tlmem.layer_norm(tlmem.gelu(self.x @ self.first + self.bias))
            h = tlmem.checkpoint(lambda z: (z * z).tanh(), h)
            with tlmem.recompute():
                h = h.sigmoid().tanh()
            logits = squared(tlmem.dropout(h, 0.5) @ self.last)
            tlmem.cross_entropy(logits, self.classes).backward()
            chosen.step()

    def values(self) -> list[Any]:
        return [each.tolist() for each in self.parameters]

    def has_gradients(self) -> bool:
        return any(each.grad is not None for each in self.parameters)


def what_is_there() -> tuple[Any, ...]:
    found = tlmem.tape().stats()
    held = (found.records, found.grads, found.saved_bytes, found.saved_objects, found.grad_bytes)
    modes = (tlmem.tape().name, tlmem.is_grad_enabled(), lib.tlm_scope_depth())
    return (live_objects(), held, modes)


def fail_at_each(training: Training, arm: Callable[[int], object], kinds: Any) -> int:
    """Steps in which the nth request fails, until none does; how many failed."""
    training.step()
    for nth in range(1, MOST_REQUESTS):
        gc.collect()
        before, values = what_is_there(), training.values()
        arm(nth)
        try:
            training.step()
        except kinds:
            failed = True
        else:
            failed = False
        finally:
            arm(0)
        if what_is_there() != before:
            gc.collect()
        left = described(what_is_there()[0] - before[0])
        assert left == [], f"request {nth}"
        assert what_is_there()[1:] == before[1:], f"request {nth}"
        if not failed:
            return nth - 1
        assert training.values() == values, f"request {nth}"
        assert not training.has_gradients(), f"request {nth}"
        training.step()
        assert training.values() != values, f"request {nth}"
    raise AssertionError("a step that always fails")


OPTIMISERS = {
    "SGD": lambda parameters: tlmem.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: tlmem.optim.Adam(parameters),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_step_whose_device_fails_at_any_request_changes_nothing(name: str) -> None:
    with limit_device() as device:
        training = Training(OPTIMISERS[name], device)
        failures = fail_at_each(
            training, lambda nth: device.fail_nth(nth or None), tlmem.DeviceOutOfMemory
        )
        del training
        gc.collect()
        assert device.stats().current_bytes == 0
    assert failures > 20


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_step_without_memory_for_bookkeeping_changes_nothing(name: str) -> None:
    training = Training(OPTIMISERS[name], "cpu")
    failures = fail_at_each(
        training, lib.tlm_own_fail_after, (MemoryError, tlmem.DeviceOutOfMemory)
    )
    assert failures >= 1
