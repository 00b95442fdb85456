"""Memory that NumPy works on stays, whoever frees the tensor meanwhile."""

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from runtime.trace import Tracer

import tlmem
from tlmem._native import lib
from tlmem.runtime import core


@pytest.fixture
def another_thread() -> Iterator[None]:
    """A second thread that does nothing, while the test runs."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield
    done.set()
    thread.join()


def test_pinned_memory_is_given_back_by_the_last_unpin() -> None:
    device = tlmem.limit_device("cpu", limit_bytes=1 << 20)
    with device:
        tensor = tlmem.ones((1000,), "float64", device=device)
        pinned = core.ffi.new("tlm_object *")
        payload = lib.tlm_pin(tensor.handle, pinned)
        again = core.ffi.new("tlm_object *")
        lib.tlm_pin(tensor[10:].handle, again)
        tensor.free()
        held = device.stats().current_count
        lib.tlm_unpin(pinned[0])
        values = np.frombuffer(core.ffi.buffer(payload, 8000), "float64")

        assert not tensor.alive
        assert held == 1
        assert values.sum() == 1000.0

        del values
        lib.tlm_unpin(again[0])

        assert device.stats().current_count == 0


def test_what_is_freed_cannot_be_pinned() -> None:
    tensor = tlmem.ones((3,))
    tensor.free()
    pinned = core.ffi.new("tlm_object *")

    assert lib.tlm_pin(tensor.handle, pinned) == core.ffi.NULL
    assert pinned[0] == 0


def test_operations_beside_another_thread_have_the_same_results(another_thread: None) -> None:
    values = np.arange(24.0).reshape(4, 6)
    tensor = tlmem.from_numpy(values)
    views = [tensor, tensor[1:3], tensor[::-1, ::2], tensor.transpose(), tensor[2], tensor[0:0]]

    for view in views:
        expected = np.asarray(view.numpy()) * 2 + 1

        np.testing.assert_array_equal((view * 2 + 1).numpy(), expected)


def test_what_may_not_be_written_stays_so_beside_another_thread(another_thread: None) -> None:
    values = np.ones(4, "float32")
    values.setflags(write=False)
    tensor = tlmem.from_numpy(values)

    with pytest.raises((ValueError, TypeError, RuntimeError)):
        tensor += 1.0

    assert values.tolist() == [1.0] * 4


@pytest.mark.parametrize("round_number", range(3))
def test_a_scope_may_end_while_another_thread_computes(round_number: int) -> None:
    for _ in range(20):
        ready, over = threading.Event(), threading.Event()
        shared: list[tlmem.Tensor] = []

        def own(ready: threading.Event = ready, shared: list[tlmem.Tensor] = shared) -> None:
            with tlmem.scope("short"):
                shared.append(tlmem.ones((1 << 20,)))
                ready.set()
                time.sleep(0.001)

        owner = threading.Thread(target=own)
        owner.start()
        ready.wait()
        sums = []
        try:
            while not over.is_set():
                sums.append((shared[0] + 1.0).sum().item())
        except tlmem.UseAfterFree:
            over.set()
        owner.join()

        assert set(sums) <= {2.0 * (1 << 20)}


def test_use_after_free_beside_another_thread_is_one_misuse(
    trace: Tracer, another_thread: None
) -> None:
    with trace() as t:
        tensor = tlmem.ones((3,))
        t.name(a=tensor)
        tensor.free()
        with pytest.raises(tlmem.UseAfterFree):
            tensor.tolist()

    assert t.misuses() == [("a", "use after free")]


def test_an_array_without_elements_has_its_own_steps_beside_another_thread(
    another_thread: None,
) -> None:
    for values in (np.zeros((0, 3)), np.zeros((3, 0), order="F"), np.arange(6.0)[3:3]):
        assert tlmem.from_numpy(values).numpy().strides == values.strides
