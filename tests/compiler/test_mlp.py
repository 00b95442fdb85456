"""A compiled forward pass: nothing is allocated after the first call, and its frame is tight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime.trace import statistics

import tlmem
from tlmem.runtime.tensors import making


def forward(x, w1, b1, w2, b2):
    h = tlmem.relu(x @ w1 + b1)
    return h @ w2 + b2


def deep(x, w1, b1, w2, b2):
    """Several layers of the same weights, unlike in size, and a value that lives long."""
    first = tlmem.tanh(x @ w1 + b1)
    h = first
    for _ in range(3):
        wide = h @ w1.T
        h = tlmem.sigmoid(wide @ w1 + b1)
    y = (h + first).reshape(x.shape[0], w1.shape[1])
    return y[:, :] @ w2 - b2 * 0.5


def weights(batch: int, inside: int, hidden: int, outside: int) -> tuple[Any, ...]:
    shapes = (batch, inside), (inside, hidden), (hidden,), (hidden, outside), (outside,)
    return tuple(tlmem.randn(shape, seed=i) for i, shape in enumerate(shapes))


SIZES = [(8, 16, 32, 4), (64, 100, 50, 10), (5, 7, 3, 2), (1, 1, 1, 1)]
each = pytest.mark.parametrize("sizes", SIZES, ids=str)


@pytest.mark.parametrize("written", [forward, deep])
@each
def test_results_are_those_of_eager_execution_to_the_bit(written, sizes) -> None:
    made, given = tlmem.compile(written), weights(*sizes)
    expected = written(*given)
    out = tlmem.empty(expected.shape)
    for _ in range(3):
        assert np.array_equal(made(*given).numpy(), expected.numpy())
        assert np.array_equal(made(*given, out=out).numpy(), expected.numpy())
        out.fill(7)


@pytest.mark.parametrize("written", [forward, deep])
@each
def test_a_steady_call_with_a_destination_makes_no_event_at_all(written, sizes, trace) -> None:
    made, given = tlmem.compile(written), weights(*sizes)
    out = made(*given)
    made(*given, out=out)
    before = statistics().total_count
    with trace() as t:
        for _ in range(5):
            made(*given, out=out)

    assert t.rows(driver=True) == []
    assert statistics().total_count == before


@each
def test_a_steady_call_without_one_makes_its_result_and_nothing_else(sizes, trace) -> None:
    made, given = tlmem.compile(forward), weights(*sizes)
    made(*given)
    with trace() as t:
        made(*given)

    assert t.of("object 1") == ["ALLOC", "REGISTER", "RELEASE", "FREE"]
    assert len(t.rows()) == 4
    assert t.bytes_of("ALLOC") == sizes[0] * sizes[3] * 4


@pytest.mark.parametrize("written", [forward, deep])
@each
def test_the_frame_is_nearly_the_least_that_there_can_be(written, sizes) -> None:
    made, given = tlmem.compile(written), weights(*sizes)
    made(*given, out=made(*given))
    for specialisation in made.compiled.specialisations:
        layout = specialisation.plan.layout
        assert layout.nbytes <= 1.02 * layout.lower_bound_bytes
        assert layout.nbytes <= layout.apart_bytes
        assert specialisation.frames.nbytes == layout.nbytes


def test_the_memory_of_a_function_does_not_grow_with_its_calls() -> None:
    made, given = tlmem.compile(forward), weights(8, 16, 32, 4)
    made(*given)
    before = statistics().current_bytes
    for _ in range(20):
        made(*given)
    assert statistics().current_bytes == before
    made.compiled.clear()
    assert statistics().current_bytes < before


def test_under_no_grad_weights_that_need_gradients_are_planned_as_well(trace) -> None:
    made, given = tlmem.compile(forward), weights(8, 16, 32, 4)
    for w in given[1:]:
        w.requires_grad_()
    expected = forward(*given).detach()
    with tlmem.no_grad():
        out = made(*given)
        made(*given, out=out)
        with trace() as t:
            made(*given, out=out)
    assert t.rows() == []
    assert np.array_equal(out.numpy(), expected.numpy())

    loss = made(*given).sum()  # recording is on again
    loss.backward()
    found = [w.grad.numpy().copy() for w in given[1:]]
    for w in given[1:]:
        w.grad = None
    forward(*given).sum().backward()
    assert all(np.array_equal(a, w.grad.numpy()) for a, w in zip(found, given[1:], strict=True))
    for w in given[1:]:
        w.grad = None


def test_checkpoint_finds_what_a_compiled_function_reads() -> None:
    made, given = tlmem.compile(forward), weights(8, 16, 32, 4)
    x, *others = given
    for w in others:
        w.requires_grad_()
    tlmem.checkpoint(lambda x: made(x, *others), x).sum().backward()
    found = [w.grad.numpy().copy() for w in others]
    for w in others:
        w.grad = None
    forward(*given).sum().backward()
    assert all(np.array_equal(a, w.grad.numpy()) for a, w in zip(found, others, strict=True))
    for w in others:
        w.grad = None


def test_inside_a_scope_the_frame_is_nobodys_and_the_result_is_the_scopes() -> None:
    made, given = tlmem.compile(forward), weights(8, 16, 32, 4)
    expected = forward(*given).numpy().copy()
    for _ in range(3):
        with tlmem.scope("step"):
            y = made(*given)
            assert tlmem.scope_tensor_count() == 1
            assert np.array_equal(y.numpy(), expected)
        with pytest.raises(tlmem.UseAfterFree):
            y.numpy()


def test_a_call_inside_a_call_has_a_frame_of_its_own() -> None:
    @tlmem.compile
    def down(x, n):
        h = x * 2 + 1
        if n == 0:
            return h + 0
        below = down(h * 0.5, n - 1)
        return below + h * 3

    def eager(x, n):
        h = x * 2 + 1
        return h + 0 if n == 0 else eager(h * 0.5, n - 1) + h * 3

    x = tlmem.randn((6, 6), seed=1)
    for n in (0, 1, 2, 7):
        assert np.array_equal(down(x, n).numpy(), eager(x, n).numpy())


def test_a_failure_in_the_middle_gives_the_frame_back() -> None:
    @tlmem.compile
    def sometimes(x, fail):
        h = x * 2 + 1
        if fail:
            raise KeyError("no")
        return h * h

    x = tlmem.randn((6, 6), seed=1)
    for _ in range(3):
        sometimes(x, False)
        with pytest.raises(KeyError, match="no"):
            sometimes(x, True)
    frames = [each.frames for each in sometimes.compiled.specialisations if each.frames]
    assert [len(each.free) for each in frames] == [1] * len(frames)


def test_no_memory_for_a_frame_is_said_and_leaves_nothing() -> None:
    @tlmem.compile
    def wide(x):
        return (x.reshape(4, 1) + x) * 2 + 1

    x = tlmem.randn((4,), seed=1)
    expected = wide.__wrapped__(x)
    wide(x)
    wide.compiled.clear()
    real = making.temporary

    def failing(*arguments: Any) -> Any:
        raise tlmem.DeviceOutOfMemory("no memory", requested_bytes=1, device="cpu")

    making.temporary = failing
    try:
        with pytest.raises(tlmem.DeviceOutOfMemory):
            wide(x)
    finally:
        making.temporary = real
    assert np.array_equal(wide(x).numpy(), expected.numpy())
