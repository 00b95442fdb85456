"""A step with each request for memory failing in turn: a clear error, and nothing changed."""

from collections.abc import Callable
from typing import Any

import pytest
from runtime.trace import live_objects

import tlmem
from tlmem.optim import SGD, Adam
from tlmem.runtime.core import lib


def twice_rule(context: Any, grad: Any) -> Any:
    return grad * context.saved[0] * 2.0


@tlmem.op(backward=twice_rule)
def twice(context: Any, x: Any) -> Any:
    context.save(tlmem.ones_like(x) + 0.0)
    return x * 2.0


def block(x: Any) -> Any:
    return tlmem.tanh(tlmem.sin(x) * x)


def recomputed(x: Any) -> Any:
    with tlmem.recompute():
        return tlmem.exp(block(x)) * x


def train(name: str, x: Any) -> None:
    STEPS[name](x).sum().backward()


def is_refused(step: Callable[..., None], *args: Any) -> bool:
    """Whether the device had no memory for it."""
    try:
        step(*args)
    except tlmem.DeviceOutOfMemory as error:
        assert "has no memory for" in str(error)
        return True
    return False


STEPS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: block(x) + x,
    "an op of the program": lambda x: twice(tlmem.sin(twice(x))),
    "checkpoint": lambda x: tlmem.checkpoint(block, x * 2.0),
    "recompute": recomputed,
}


@pytest.mark.parametrize("name", STEPS)
def test_each_request_for_device_memory_may_fail(name: str) -> None:
    refused = 0
    with tlmem.limit_device("cpu") as limited:
        x = tlmem.full(16, 0.5, device=limited, requires_grad=True)
        for nth in range(1, 100):
            before, records = live_objects(), tlmem.tape().stats().records
            limited.fail_nth(nth)
            if not is_refused(train, name, x):
                break
            refused += 1
            assert x.grad is None
            assert live_objects() == before
            assert tlmem.tape().stats().records == records
            assert (tlmem.is_grad_enabled(), tlmem.scope_depth()) == (True, 0)
        limited.fail_nth(None)
        found = x.grad.tolist()
        del x
    plain = tlmem.full(16, 0.5, requires_grad=True)
    STEPS[name](plain).sum().backward()

    assert refused > 4
    assert found == plain.grad.tolist()


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_an_optimiser_whose_first_step_has_no_memory_changes_nothing(kind: Any) -> None:
    options = {"momentum": 0.9} if kind is SGD else {}
    with tlmem.limit_device("cpu") as limited:
        params = [tlmem.ones(16, device=limited, requires_grad=True) for _ in range(3)]
        optimizer = kind(params, lr=0.1, **options)
        for each in params:
            each.grad = tlmem.ones(16, device=limited)
        for nth in range(1, 100):
            limited.fail_nth(nth)
            if not is_refused(optimizer.step):
                break
            assert all(each.tolist() == [1.0] * 16 for each in params)
        limited.fail_nth(None)
        assert nth > 1
        assert all(each.tolist() == pytest.approx([0.9] * 16) for each in params)
        for each in params:
            each.grad = None
        del params, each, optimizer


def test_each_request_for_bookkeeping_memory_may_fail() -> None:
    x = tlmem.full(4, 0.5, requires_grad=True)
    refused = 0
    for nth in range(1, 40):
        before = live_objects()
        lib.tlm_own_fail_after(nth)
        try:
            with tlmem.Tape():
                for _ in range(300):  # more than a new tape has room for at first
                    kept = [twice(x) for _ in range(2)]
                (kept[0] * kept[1]).sum().backward()
        except MemoryError as error:
            lib.tlm_own_fail_after(0)
            refused += 1
            assert str(error).startswith(("cannot ", "no memory for "))
            error.__traceback__ = None
        lib.tlm_own_fail_after(0)
        kept = []
        assert live_objects() == before
        assert tlmem.is_grad_enabled()

    assert refused >= 1
