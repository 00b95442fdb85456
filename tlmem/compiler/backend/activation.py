"""One call of a function whose policy says who owns what: its scope, and the counts it has.

A count is that of the scope, for what was made in the call, or one that the call acquired for the
holder of a variable. Each belongs to a variable; a variable that gets a new value keeps the old
counts until they are released. Whatever is left ends with the call, however it is left.

Covers: what the ownership operations of the IR do. Does not cover: where they stand
(``passes.ownership``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from tlmem.compiler.front.names import is_compiled
from tlmem.compiler.policies import OVER_RETAINED
from tlmem.runtime import core
from tlmem.runtime.core import lib
from tlmem.runtime.ownership.frame import Frame, get_buffer
from tlmem.runtime.ownership.holders import acquire, describe, named
from tlmem.runtime.ownership.scope import Scope
from tlmem.runtime.ownership.struct import struct

FLOATING = core.FLOATING_HOLDER


class _Running(threading.local):
    """The calls that run in this thread.

    Attributes:
        calls: outermost first.
        by_scope: the same by the number of their scope.
    """

    def __init__(self) -> None:
        self.calls: list[Activation] = []
        self.by_scope: dict[int, Activation] = {}


_running = _Running()


class Count(NamedTuple):
    """One count that a call has.

    Attributes:
        holder: whom it was acquired for; empty for that of the scope.
    """

    thing: Any
    holder: str


Counts = list[Count]


class Activation:
    """One call. A context manager; it registers what is returned with the caller at its end.

    Args:
        name: of the function, the label of its scope.
        slots: how many slots its frame has; None for a scope without a frame.
        promotes: whether what is returned is promoted, not unregistered.
    """

    __slots__ = ("_counts", "_given", "_of_slots", "_owned", "_promotes", "_scope", "_views", "id")

    def __init__(self, name: str, slots: int | None, promotes: bool) -> None:
        self._scope = Scope(name) if slots is None else Frame(slots, name)
        self._promotes = promotes
        self._counts: dict[str, list[Counts]] = {}
        self._owned: set[int] = set()  # handles whose count of the scope belongs to a variable
        self._given: list[Any] = []
        self._views: dict[Any, Any] = {}
        self._of_slots: set[int] = set()
        self.id = 0

    def __enter__(self) -> Activation:
        self.id = self._scope.__enter__().id
        _running.calls.append(self)
        _running.by_scope[self.id] = self
        return self

    def __exit__(self, *ended: Any) -> None:
        try:
            for name in reversed(self._counts):
                for counts in reversed(self._counts[name]):
                    for count in reversed(counts):
                        if count.holder:
                            self._let_go(count)
        finally:
            _running.calls.remove(self)
            del _running.by_scope[self.id]
            self._scope.__exit__(*ended)
            for thing in self._given:
                hand_to_caller(thing)

    # ---- what the operations do ----

    def register(self, name: str, value: Any) -> None:
        """A variable has what an operation gave: what was made here is its own, the rest is
        acquired."""
        self._counts.setdefault(name, []).append(
            [self._own(thing, name) for thing in things_in(value) if self._is_counted(thing)]
        )

    def acquire(self, holder: str, value: Any) -> None:
        """One more count of each thing in a value, for the variable of this name."""
        self._counts.setdefault(holder, []).append(
            [self._acquired(each, holder) for each in things_in(value) if self._is_counted(each)]
        )

    def move(self, source: str, target: str, value: Any) -> None:
        """A variable hands its counts over to another one; what it only borrowed is acquired."""
        found = self._counts.get(source)
        if found and found[-1]:
            self._counts.setdefault(target, []).append(found.pop())
        else:
            self.acquire(target, value)

    def move_into(self, name: str, value: Any) -> None:
        """A variable hands its count over to the field that is given the value next."""
        found = self._counts.get(name)
        if not found or len(found[-1]) != 1 or found[-1][0].thing is not value:
            return
        (count,) = found[-1]
        if value._holder:
            return
        if count.holder:
            status = lib.tlm_move(value.handle, named(count.holder), FLOATING)
        elif describe(value.handle).scope == self.id:
            status = lib.tlm_unregister(value.handle)
            self._owned.discard(value.handle)
        else:
            return
        if not status:
            found.pop()
            value._holder = FLOATING

    def release(self, name: str, kept: int = 0) -> None:
        """A variable lets go of all it had but its latest ``kept`` values, in this order."""
        found = self._counts.get(name)
        while found and len(found) > kept:
            for count in found.pop(0):
                self._let_go(count)

    def over_retain(self, value: Any) -> None:
        """One more count that is never released (S23)."""
        for thing in things_in(value):
            if self._is_counted(thing):
                acquire(thing, OVER_RETAINED)

    def give(self, value: Any) -> None:
        """What is returned leaves the call: its count floats until the caller has it."""
        for thing in things_in(value):
            if not self._is_counted(thing) or any(each is thing for each in self._given):
                continue
            if thing._holder:  # its handle has a count already, which goes with it
                continue
            scope = describe(thing.handle).scope
            if scope == self.id:
                leave = lib.tlm_promote if self._promotes else lib.tlm_unregister
                if not leave(thing.handle):
                    self._owned.discard(thing.handle)
                    self._given.append(thing)
            elif not scope and self._let_float(thing):
                self._given.append(thing)

    def made(self, value: Any) -> Any:
        """A struct of the core for an object of a dataclass; its fields hold what they are given.

        Anything else is returned as it is.
        """
        if isinstance(value, type) or not is_dataclass(value):
            return value
        return struct(value)

    def lend(self, owner: Any, value: Any) -> Any:
        """A value that is put into something: an owner that is not an object of the core holds no
        counts, so the handle of the value owns it from now on."""
        if not isinstance(owner, core.Reference):
            self._escape(value)
        return value

    def lend_to(self, function: Any, values: tuple[Any, ...]) -> None:
        """Arguments of a function that may keep them; a compiled one borrows."""
        if not is_compiled(function):
            self._escape(values)

    def lend_method(self, receiver: Any, method: str, values: tuple[Any, ...]) -> None:
        """The same for a method."""
        self.lend_to(getattr(type(receiver), method, None), values)

    def slot(self, number: int, size: int, shape: tuple[int, ...], dtype: str) -> Any:
        """A tensor over the memory of a slot, the same one for each turn of a loop."""
        view = self._views.get((number, shape, dtype))
        if view is None:
            view = get_buffer(number, size).tensor(shape, dtype)
            self._views[number, shape, dtype] = view
            self._of_slots.add(view.handle)
        return view

    # ---- counts ----

    def _is_counted(self, thing: Any) -> bool:
        """Whether a thing has an object that lives; the tensors over slots belong to the frame."""
        handle = thing.handle
        return bool(handle and handle not in self._of_slots and describe(handle).alive)

    def _own(self, thing: Any, name: str) -> Count:
        handle = thing.handle
        if handle not in self._owned and describe(handle).scope == self.id:
            self._owned.add(handle)
            return Count(thing, "")
        return self._acquired(thing, name)

    def _acquired(self, thing: Any, holder: str) -> Count:
        acquire(thing, holder)
        return Count(thing, holder)

    def _let_go(self, count: Count) -> None:
        """Releases a count, unless another holder took it or the object ended meanwhile."""
        handle = count.thing.handle
        info = describe(handle)
        if not info.alive:
            return
        if count.holder:
            holder = named(count.holder)
            if holder in core.holders_of(handle):
                lib.tlm_release(handle, holder)
        elif info.scope == self.id and handle in self._owned:
            self._owned.discard(handle)
            if not lib.tlm_unregister(handle):
                lib.tlm_release(handle, FLOATING)

    def _let_float(self, thing: Any) -> bool:
        """Lets a count float that the call acquired of a thing; whether it has one."""
        for values in self._counts.values():
            for counts in values:
                for count in counts:
                    if count.thing.handle == thing.handle and count.holder:
                        counts.remove(count)
                        return not lib.tlm_move(thing.handle, named(count.holder), FLOATING)
        return False

    def _escape(self, value: Any) -> None:
        """Whatever a call owns of a value is its handle's from now on. That may be a call further
        out, which lent it to this one."""
        for thing in things_in(value):
            if not self._is_counted(thing):
                continue
            if thing._holder == FLOATING:  # it was moved out of its variable just now
                give_to_handle(thing)
            elif thing._holder:
                continue
            elif not (scope := describe(thing.handle).scope):
                if any(call._let_float(thing) for call in reversed(_running.calls)):
                    give_to_handle(thing)
            elif owner := _running.by_scope.get(scope):
                owner._owned.discard(thing.handle)
                core.check(core.escape_to_handle(thing), "escape", thing)


def hand_to_caller(thing: Any) -> None:
    """A thing that floats belongs to the innermost scope, or outside any to its handle."""
    scope = lib.tlm_scope_current()
    if scope:
        core.check(lib.tlm_register_in(scope, thing.handle), "register", thing)
        thing._scope = scope
        return
    give_to_handle(thing)


def give_to_handle(thing: Any) -> None:
    """The count of a thing that floats is its handle's from now on."""
    holder = core.new_holder(core.HANDLE)
    core.check(lib.tlm_move(thing.handle, FLOATING, holder), "own", thing)
    thing._holder = holder


def things_in(value: Any) -> Iterator[Any]:
    """The tensors and structs that a value is, or that its tuples and lists hold."""
    if isinstance(value, core.Reference):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from things_in(each)


def entering(name: str, slots: int | None, promotes: bool) -> Callable[[], Activation]:
    """What makes an activation for each call of a function."""
    return lambda: Activation(name, slots, promotes)
