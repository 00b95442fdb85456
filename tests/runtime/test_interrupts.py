"""Ctrl-C between any two steps of an operation: no scope stays entered, and no object is lost.

CPython looks for signals when a function begins, when a call returns and when a loop turns. Each of
these places inside the runtime, one after another, gets a KeyboardInterrupt here. Two places cannot
be helped in Python: the first instruction of ``__exit__``, and any in ``function_exit``; the scope
around them ends what is left then.
"""

import dis
import functools
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from runtime.things import Mock
from runtime.trace import described, live_objects

from tlmem.runtime import core
from tlmem.runtime.ownership import pool, struct
from tlmem.runtime.ownership.frame import arena_empty, frame, get_buffer
from tlmem.runtime.ownership.holders import move
from tlmem.runtime.ownership.parameters import drop_parameter, parameter_names, register_parameter
from tlmem.runtime.ownership.scope import escape, register, scope, scope_depth
from tlmem.runtime.ownership.tensor_scope import TensorScope
from tlmem.runtime.ownership.vector import vec
from tlmem.runtime.tensors.factories import empty, ones
from tlmem.runtime.tensors.interop import from_numpy

RUNTIME = str(Path(core.__file__).parent)
JUMPS_BACK = {name for name in dis.opname if name.startswith(("JUMP_BACK", "POP_JUMP_BACK"))}


@functools.cache
def looks_for_signals(code: CodeType) -> frozenset[int]:
    """Instructions before which CPython may raise KeyboardInterrupt."""
    found, after_call = set(), False
    for each in dis.get_instructions(code):
        if each.opname == "CACHE":
            continue
        if after_call or each.opname == "RESUME" or each.opname in JUMPS_BACK:
            found.add(each.offset)
        after_call = each.opname.startswith("CALL")
    return frozenset(found)


class Interrupt:
    """Raises KeyboardInterrupt at the nth place that the block comes to."""

    def __init__(self, nth: int) -> None:
        self.left = nth
        self.place = ""

    def __enter__(self) -> "Interrupt":
        sys._getframe(1).f_trace_opcodes = True  # or 3.12 does not begin with the first function
        sys.settrace(self.on_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(RUNTIME):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.on_instruction

    def on_instruction(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and frame.f_lasti in looks_for_signals(frame.f_code):
            if frame.f_code.co_name == "__exit__" and is_first(frame):
                return self.on_instruction
            self.left -= 1
            if self.left == 0:
                code = frame.f_code
                self.place = f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}"
                raise KeyboardInterrupt
        return self.on_instruction


def is_first(frame: FrameType) -> bool:
    return frame.f_lasti == min(looks_for_signals(frame.f_code))


def in_scope(body: Callable[[], object]) -> Callable[[], None]:
    def operation() -> None:
        with scope("s"):
            body()

    return operation


def in_frame() -> None:
    with frame(2):
        get_buffer(0, 64).tensor((4,))


def pass_scopes() -> None:
    with TensorScope("t") as outer:
        outer.with_scope(lambda child: ones(3, scope=child))


def use_pool() -> None:
    kept = pool.TensorPool(2, name="kept")
    kept.release(ones(3))
    found = kept.acquire((3,))
    kept.release(found)


def overwrite_field() -> None:
    s = struct.struct({"a": None})
    s["a"] = empty(2)
    s["a"] = move(empty(2))


def use_vector() -> None:
    v = vec([empty(1)])
    for _ in range(4):  # it grows
        v.push(move(empty(1)))
    v.push([empty(1)])
    v.pop(1)
    v.pop()
    v.clear()


OPERATIONS: dict[str, Callable[[], object]] = {
    "a tensor in a scope": in_scope(lambda: ones(3)),
    "an outer tensor": in_scope(functools.partial(lambda: register(empty(1)))),
    "escape": in_scope(lambda: escape(empty(1))),
    "escape by method": in_scope(lambda: empty(1).escape()),
    "move into a struct": in_scope(lambda: struct.struct([move(empty(1))])),
    "move": lambda: move(empty(1)),
    "a nested struct": lambda: struct.struct({"a": empty(1), "b": [empty(1)]}),
    "a struct in a scope": in_scope(lambda: struct.struct({"a": empty(1), "b": [empty(1)]})),
    "fields": overwrite_field,
    "a vector": use_vector,
    "a vector in a scope": in_scope(use_vector),
    "a frame": in_frame,
    "the arena": in_scope(lambda: arena_empty(3)),
    "views and arrays": lambda: ones((2, 2)).T[0].numpy(),
    "an array taken in": in_scope(lambda: from_numpy(np.ones(3))),
    "a thing of the program": in_scope(lambda: register(Mock())),
    "scopes that are passed": pass_scopes,
    "a pool": use_pool,
    "a parameter": lambda: register_parameter("p", empty(1)),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupt_at_any_place_leaves_no_scope_entered_and_no_object_behind(name: str) -> None:
    operation = OPERATIONS[name]
    operation()
    what_is_left(set())
    lost = []
    interrupts = 0
    for nth in range(1, 1000):
        before, depth = live_objects(), scope_depth()
        with Interrupt(nth) as interrupt:
            try:
                operation()
            except KeyboardInterrupt:
                interrupts += 1
        left = what_is_left(before)
        if left or scope_depth() != depth:
            lost.append((interrupt.place, scope_depth() - depth, described(left)))
        if interrupt.left > 0:
            break

    assert lost == []
    assert interrupts >= (5 if sys.version_info < (3, 13) else 1)  # 3.13 traces fewer of them


def what_is_left(before: set[int]) -> set[int]:
    """Objects that are new, but for what is kept on purpose or in cycles with an exception."""
    for each in parameter_names():
        drop_parameter(each)
    left = live_objects() - before
    if left:
        gc.collect()
        left = live_objects() - before
    return left
