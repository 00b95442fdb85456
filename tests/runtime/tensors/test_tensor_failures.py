"""When memory runs out, at any point: a named error, and the state is what it was before."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from runtime.trace import live_objects, statistics

from tlmem.runtime.device import LimitDevice, limit_device
from tlmem.runtime.errors import DeviceOutOfMemory
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.tensors import elementwise, factories, reductions, shaping, views

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "zeros": lambda a, i: factories.zeros((4, 4), device=a._device),
    "tensor": lambda a, i: factories.tensor([[1, 2]], device=a._device),
    "copy": lambda a, i: a.copy(),
    "astype": lambda a, i: a.astype("float64"),
    "add": lambda a, i: a + a,
    "mixed": lambda a, i: a * i,
    "where": lambda a, i: elementwise.where(a > 2, a, -a),
    "sum": lambda a, i: a.sum(0),
    "mean of integers": lambda a, i: i.mean(1),
    "std": lambda a, i: a.std(0),
    "softmax": lambda a, i: a.softmax(),
    "log_softmax": lambda a, i: reductions.log_softmax(a),
    "argmax": lambda a, i: a.argmax(),
    "matmul": lambda a, i: a @ a.T,
    "matmul of two dtypes": lambda a, i: a @ i,
    "mask": lambda a, i: a.T[(a > 2).T],
    "take": lambda a, i: a.take([1, 1]),
    "gather": lambda a, i: a.T.gather(0, views.take(i, [0], 0) * 0),
    "reshape": lambda a, i: a.T.reshape(-1),
    "concat": lambda a, i: shaping.concat([a, i]),
    "stack": lambda a, i: shaping.stack([a, a]),
}


def operands(device: LimitDevice) -> tuple[Any, Any]:
    a = factories.arange(16, dtype="float32", device=device).reshape(4, 4)
    i = factories.arange(16, device=device).reshape(4, 4)
    return a, i


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("in_scope", [False, True], ids=["outside", "in a scope"])
def test_operation_without_memory_at_each_allocation_in_turn_changes_nothing(name, in_scope):
    operation = OPERATIONS[name]
    with limit_device() as device:
        a, i = operands(device)
        expected = operation(a, i).tolist()
        values = a.tolist(), i.tolist()
        failures = 0
        for nth in range(1, 20):
            if in_scope:
                with scope("s"):
                    failed = fails(operation, device, nth, a, i, in_scope)
            else:
                failed = fails(operation, device, nth, a, i, in_scope)
            if not failed:
                break
            failures += 1
            assert (a.tolist(), i.tolist()) == values
        assert operation(a, i).tolist() == expected
        del a, i

    assert failures >= 1 and not failed


def fails(operation: Any, device: LimitDevice, nth: int, a: Any, i: Any, in_scope: bool) -> bool:
    """Whether the operation fails when its nth request does; then nothing but views is new."""
    before, then = live_objects(), statistics()
    device.fail_nth(nth)
    try:
        operation(a, i)
    except DeviceOutOfMemory as error:
        assert error.device == "limit(cpu)" and error.requested_bytes > 0
        assert f"no memory for {error.requested_bytes} bytes" in str(error)
        failed = True
    else:
        failed = False
    finally:
        device.fail_nth(None)
    if failed:
        # What the operation was given is evaluated before it: in a scope those results stay there.
        left = live_objects() - before
        assert not left or in_scope
        assert statistics().current_bytes - then.current_bytes <= 256 * in_scope
    return failed


def test_limit_of_a_device_is_the_limit_of_tensors() -> None:
    with limit_device("cpu", limit_bytes=4096) as device:
        kept = [factories.zeros(256, device=device) for _ in range(4)]
        with pytest.raises(DeviceOutOfMemory, match=r"tensor float32\[1\].*no memory for 4 bytes"):
            factories.zeros(1, device=device)
        kept.pop()
        kept.append(factories.zeros(256, device=device))
        assert all(each[0].item() == 0 for each in kept)
        kept.clear()


STARVE = """
import contextlib
from runtime.trace import live_objects
from tlmem.runtime.tensors import factories
from tlmem.runtime.core import lib
from tlmem.runtime.ownership.scope import scope
before, refused = live_objects(), 0
with scope("s") if {in_scope} else contextlib.nullcontext():
    kept = []
    lib.tlm_own_fail_after({nth})
    for _ in range(30_000):
        try:
            kept.append(factories.empty(0))
        except MemoryError as error:
            assert str(error).startswith("cannot allocate tensor float32[0]: "), error
            refused += 1
    lib.tlm_own_fail_after(0)
    assert live_objects() == {{each.handle for each in kept}}
    kept.clear()
assert live_objects() == before
print(refused)
"""


@pytest.mark.parametrize("in_scope, nth", [(False, 1), (True, 1), (True, 3), (True, 4), (True, 5)])
def test_tensor_without_memory_for_bookkeeping_is_not_made_and_leaves_nothing(in_scope, nth):
    """Allocations of our own fail in turn, in a process that has none to spare yet."""
    result = subprocess.run(
        [sys.executable, "-c", STARVE.format(in_scope=in_scope, nth=nth)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    assert (result.returncode, result.stdout, result.stderr) == (0, "1\n", "")
