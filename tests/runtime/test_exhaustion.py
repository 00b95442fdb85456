"""No memory, at any request of any operation: a named error, and all is as it was before.

Covers: payloads (a device that fails its nth request) for operations that make several at once, and
the runtime's own bookkeeping (each allocation in turn). Does not cover: each function of elements,
see ``test_tensor_failures``; C programs, see ``tests/native``.

Bookkeeping memory comes in blocks that serve thousands of objects, and other tests have filled its
free lists; so each operation runs in a process of its own, a fork of one new interpreter, again and
again until a block is needed.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, __file__.rpartition("/runtime/")[0])

from runtime.things import Mock
from runtime.trace import live_objects, statistics

from tlmem.runtime import contexts, core
from tlmem.runtime.core import lib
from tlmem.runtime.device import LimitDevice, limit_device
from tlmem.runtime.errors import DeviceOutOfMemory
from tlmem.runtime.ownership.frame import arena_empty, frame, get_buffer
from tlmem.runtime.ownership.holders import acquire, move, release_safe
from tlmem.runtime.ownership.parameters import drop_parameter, parameter_names, register_parameter
from tlmem.runtime.ownership.pool import TensorPool
from tlmem.runtime.ownership.scope import escape, promote, register, scope, scope_depth, unregister
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.ownership.tensor_scope import TensorScope
from tlmem.runtime.ownership.vector import vec
from tlmem.runtime.tensors.factories import empty, from_pool, full, ones, randn, tensor, zeros
from tlmem.runtime.tensors.interop import from_numpy

# ---- payloads ----


def in_passed_scopes(device: LimitDevice) -> Any:
    with TensorScope("outer") as outer:
        kept = ones(2, device=device, scope=outer)
        inner = outer.sub_scope("inner")
        made = tensor([1, 2], device=device, scope=inner)
        return kept.tolist(), (made + kept).tolist()


def pooled(device: LimitDevice) -> Any:
    pool = TensorPool()
    first = zeros(3, device=device, pool=pool)
    pool.release(first)
    again = [ones(3, device=device, pool=pool) for _ in range(2)]
    return [each.tolist() for each in again], len(pool)


def built(device: LimitDevice) -> Any:
    model = struct({"w": full((2, 2), 2.0, device=device), "b": [zeros(2, device=device)]})
    model["w"] = model["w"] @ model["w"]
    return model["w"].tolist(), model["b"][0].tolist()


def handed_over(device: LimitDevice) -> Any:
    with scope("outer"):
        with scope("inner"):
            kept = promote(tensor([1, 2], device=device))
            kept = escape(register(kept) + 1)
        return move(kept * 2).tolist()


def trained(device: LimitDevice) -> Any:
    w = randn((3, 2), seed=1, device=device)
    for _ in range(2):
        with scope("step"):
            x = ones((4, 3), device=device)
            loss = ((x @ w).softmax() - 0.5).std(0)
            w -= loss * 0.1
    return w.tolist()


PAYLOADS: dict[str, Callable[[LimitDevice], Any]] = {
    "passed scopes": in_passed_scopes,
    "a pool": pooled,
    "a struct": built,
    "scopes": handed_over,
    "a training loop": trained,
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_device_that_fails_at_each_request_in_turn_leaves_nothing_behind(name: str) -> None:
    operation = PAYLOADS[name]
    before, depth = live_objects(), scope_depth()
    with limit_device() as device:
        expected = operation(device)
        failures = 0
        for nth in range(1, 60):
            device.fail_nth(nth)
            try:
                result = operation(device)
                break
            except DeviceOutOfMemory as error:
                failures += 1
                assert error.device == "limit(cpu)" and error.requested_bytes > 0
                assert f"no memory for {error.requested_bytes} bytes; free something" in str(error)
                assert str(error).startswith("cannot ")
            assert (live_objects(), scope_depth()) == (before, depth)
            assert device.stats().current_bytes == 0
        device.fail_nth(None)
        assert result == expected == operation(device)
    assert failures >= 2


def test_struct_keeps_its_field_when_the_new_value_finds_no_memory() -> None:
    with limit_device() as device:
        s = struct({"a": ones(2, device=device)})
        value, holders = s["a"], s["a"].holders()
        device.fail_nth(1)
        with pytest.raises(DeviceOutOfMemory):
            s["a"] = zeros(2, device=device)
        assert s["a"] is value and value.holders() == holders
        del s, value


def test_pool_that_has_nothing_gives_nothing_when_memory_is_out() -> None:
    pool = TensorPool()
    with limit_device() as device:
        assert from_pool(pool, (3,), "float32", device.number, None) is None
        device.fail_nth(1)
        with pytest.raises(DeviceOutOfMemory):
            zeros(3, device=device, pool=pool)
        assert (len(pool), pool.stats().misses) == (0, 2)


# ---- bookkeeping: each runs in a process of its own ----

kept: list[Any] = []
shared: dict[str, Any] = {}


def keep(make: Callable[[int], Any]) -> Callable[[int], None]:
    return lambda i: kept.append(make(i))


def in_scope(make: Callable[[int], Any]) -> Callable[[int], None]:
    def operation(i: int) -> None:
        if i == 0:
            shared["scope"] = scope("s").__enter__()
        kept.append(make(i))

    return operation


def on_tensor(use: Callable[[Any], Any]) -> Callable[[int], None]:
    def operation(i: int) -> None:
        if i == 0:
            shared["tensor"] = ones(3)
        kept.append(use(shared["tensor"]))

    return operation


def put(i: int) -> None:
    if i == 0:
        shared["pool"] = TensorPool(10**6)
    if i % 2 == 0:
        shared["next"] = empty(i // 2 % 50)  # that needs memory too, but none of the pool's
    shared["pool"].release(shared["next"])
    shared["next"] = empty(i // 2 % 50)


def write_field(i: int) -> None:
    if i == 0:
        shared["tensor"] = ones(3)
    if i % 4096 == 0:
        kept.append(struct([None] * 4096))
    kept[-1][i % 4096] = shared["tensor"]


def push(i: int) -> None:
    if i == 0:
        shared["tensor"] = ones(3)
        kept.append(vec())
    kept[-1].push(shared["tensor"])


def pop(i: int) -> None:
    if i == 0:
        shared["tensor"] = ones(3)
        kept.append(vec())
    kept[-1].extend([i, shared["tensor"]])
    kept[-1].pop(0)


def slot(i: int) -> None:
    if i == 0:
        shared["scope"] = frame(2, "f").__enter__()
    kept.append(get_buffer(i % 2, 8 * (i + 1)))


def passed(i: int) -> None:
    kept.append(TensorScope("t"))
    kept[-1].register(ones(1))


BOOKKEEPING: dict[str, Callable[[int], None]] = {
    "a tensor": keep(lambda i: empty(i % 3)),
    "a tensor in a scope": in_scope(lambda i: empty(0)),
    "a view": on_tensor(lambda t: t[1:]),
    "an operation": on_tensor(lambda t: t + 1),
    "an array": on_tensor(lambda t: t.numpy()),
    "an array taken in": keep(lambda i: from_numpy(np.zeros(1))),
    "a holder": on_tensor(lambda t: acquire(t, "x")),
    "a struct": on_tensor(lambda t: struct([t, None, t])),
    "a field": write_field,
    "a vector": on_tensor(lambda t: vec([t, None, t])),
    "an element": push,
    "elements that move up": pop,
    "a scope": keep(lambda i: scope(f"s{i % 7}").__enter__()),
    "a frame": keep(lambda i: frame(i % 40, "f").__enter__()),
    "a slot": slot,
    "the arena": in_scope(lambda i: arena_empty(2)),
    "a passed scope": passed,
    "a pool": keep(lambda i: TensorPool(3)),
    "what a pool has": put,
    "a thing": in_scope(lambda i: register(Mock())),
    "a task": keep(lambda i: contexts.TaskContext(Mock())),
    "a parameter": on_tensor(lambda t: register_parameter(f"p{len(kept)}", t)),
}
MAKING_BEFORE = ("what a pool has", "a passed scope", "elements that move up")
"""Operations that make something before they fail."""
UNFAILING: dict[str, Callable[[Any], Any]] = {
    "escape": escape,
    "unregister": unregister,
    "promote": promote,
    "move": move,
    "release_safe": release_safe,
    "free": lambda t: t.free(),
}


def state() -> Any:
    """What must not change: counters, scopes, and who holds the operand."""
    now = statistics()
    counts = (now.current_count, now.current_bytes, now.floating, now.total_count - now.freed_count)
    scopes = (lib.tlm_scope_depth(), lib.tlm_scope_current())
    operand = shared.get("tensor")
    records = shared["scope"].stats() if "scope" in shared else None
    held = None
    if operand is not None:  # a few names at the end: it may have tens of thousands of holders
        held = operand.count, core.holders_of(operand.handle)[-3:]
    return counts, scopes, records, held


def starve(name: str, nth: int) -> int:
    """Repeats the operation until the nth allocation that it makes has failed; how often."""
    operation, refused = BOOKKEEPING[name], 0
    operation(0)
    for i in range(1, 20_000 // nth**2):
        before = state()
        lib.tlm_own_fail_after(nth)
        try:
            operation(i)
        except MemoryError as error:
            lib.tlm_own_fail_after(0)
            refused += 1
            assert str(error).startswith(("cannot ", "no memory for ")), error
            if name not in MAKING_BEFORE:
                assert state() == before, (before, state())
            operation(i)
            break
    lib.tlm_own_fail_after(0)
    return refused


def finish() -> None:
    """Lets everything go, in the order in which that is allowed; nothing must be left."""
    each = None
    while kept:
        each = kept.pop()
        if hasattr(each, "_context"):
            each.__exit__(None, None, None)
        elif isinstance(each, TensorScope):
            each.close()
    if "scope" in shared:
        shared.pop("scope").__exit__(None, None, None)
    operand = shared.get("tensor")
    while operand is not None and operand.alive and operand.count > 1:
        others = [h for h in core.holders_of(operand.handle) if h >> 56 >= core.FOREIGN]
        if not others:
            break
        for holder in others:
            lib.tlm_release(operand.handle, holder)
    for parameter in parameter_names():
        drop_parameter(parameter)
    del operand
    shared.clear()
    del each
    assert live_objects() == set(), len(live_objects())
    assert statistics().floating == 0


def in_a_fork(name: str, nth: int) -> tuple[int, str]:
    """The exit code of one operation in a process of its own, and what it wrote."""
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                print("refused", starve(name, nth))
                finish()
                code = 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        return code, out.read().decode()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[int, str]]:
    """``NAME NTH`` -> exit code and output."""
    done = subprocess.run(
        [sys.executable, __file__], stdout=subprocess.PIPE, text=True, timeout=600
    )
    assert done.returncode == 0
    return {name: tuple(found) for name, found in json.loads(done.stdout).items()}


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("name", BOOKKEEPING)
@pytest.mark.xdist_group("exhaustion")
def test_bookkeeping_without_memory_is_a_memory_error_and_changes_nothing(
    name: str, nth: int, outcomes: dict[str, tuple[int, str]]
) -> None:
    code, said = outcomes[f"{name} {nth}"]

    assert code == 0, said
    assert said in ("refused 1\n", "refused 0\n") if nth > 1 else said == "refused 1\n"


@pytest.mark.parametrize("name", UNFAILING)
def test_what_hands_over_or_lets_go_needs_no_memory(name: str) -> None:
    with scope("s"):
        tensors = [ones(1) for _ in range(64)]
        lib.tlm_own_fail_after(1)
        try:
            results = [UNFAILING[name](each) for each in tensors]
        finally:
            lib.tlm_own_fail_after(0)
    if name in ("unregister", "promote"):
        assert all(each.alive for each in tensors)
        for each in tensors:
            release_safe(each)
    del results, tensors


if __name__ == "__main__":
    print(
        json.dumps(
            {f"{name} {nth}": in_a_fork(name, nth) for name in BOOKKEEPING for nth in (1, 2)}
        )
    )
