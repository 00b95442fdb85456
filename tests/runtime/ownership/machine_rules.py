"""Rules of the state machine: making, views and arrays, scopes, frames, scopes that are passed.

Does not cover: changing hands, structs and pools (``test_state_machine``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import (
    precondition,
    rule,
)
from runtime.ownership.machine import Machine, Name, number, size, task
from runtime.ownership.ownership_model import FLOATING, Scope, Thing

from tlmem.runtime import errors as e
from tlmem.runtime.ownership.frame import arena_empty, frame, get_buffer
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.ownership.tensor_scope import TensorScope
from tlmem.runtime.tensors.factories import empty
from tlmem.runtime.tensors.interop import from_numpy


class Making(Machine):
    """What makes objects, and what ends them together."""

    # ---- making ----

    @rule(where=task, n=size)
    def make(self, where: int, n: int) -> None:
        made = self.expect(where, None, lambda: empty(n))
        self.add(where, "tensor", made, bytes=4 * n)

    @rule(where=task, n=size)
    @precondition(lambda self: any(self.innermost))
    def make_in_arena(self, where: int, n: int) -> None:
        refusal = None if self.innermost[where] else e.NotInScope
        made = self.expect(where, refusal, lambda: arena_empty(n))
        if refusal is None:
            self.add(where, "tensor", made, bytes=4 * n, in_arena=n > 0)

    @rule(where=task, n=size)
    def take_array_in(self, where: int, n: int) -> None:
        self.add(where, "taken", self.expect(where, None, lambda: from_numpy(np.ones(n))))

    @rule(where=task, at=number)
    @precondition(lambda self: self.names)
    def make_view(self, where: int, at: int) -> None:
        name = self.pick(at, "tensor", "taken", "view")
        if name is None:
            return
        refusal = self.unreadable(name)
        made = self.expect(where, refusal, lambda: name.python.reshape(-1))
        if refusal is None:
            self.add_view(where, made, name.thing.base or name.thing).base = name.base or name

    def add_view(self, where: int, made: Any, base: Thing) -> Name:
        self.model.acquire(base, ("view", made.handle))
        return self.add(where, "view", made, base=base)

    @rule(at=number)
    @precondition(lambda self: self.names)
    def lend(self, at: int) -> None:
        name = self.pick(at, "tensor", "taken", "view")
        if name is None:
            return
        refusal = self.unreadable(name)
        owner = name.thing.base or name.thing
        if refusal is None and (owner.in_arena or owner.kind == "buffer"):
            refusal = e.InArena
        array = self.expect(0, refusal, lambda: name.python.numpy())
        if refusal is None:
            self.serial += 1
            self.model.acquire(owner, ("export", self.serial))
            self.arrays.append((array, owner, self.serial))

    @rule(at=number)
    @precondition(lambda self: self.arrays)
    def drop_array(self, at: int) -> None:
        array, thing, serial = self.arrays.pop(at % len(self.arrays))
        del array
        self.model.release(thing, ("export", serial))

    @rule(at=number)
    @precondition(lambda self: self.names)
    def drop_name(self, at: int) -> None:
        del self.names[at % len(self.names)]

    # ---- scopes and frames ----

    @rule(where=task, slots=st.none() | st.integers(0, 2))
    def enter(self, where: int, slots: int | None) -> None:
        made = scope("s") if slots is None else frame(slots, "f")
        self.expect(where, None, made.__enter__)
        entered = Scope(made.id, self.innermost[where], slots)
        self.innermost[where] = self.scopes[made.id] = entered
        self.entered[made.id] = (made, where)

    @rule(where=task, at=number, any_of_them=st.integers(0, 3))
    @precondition(lambda self: self.entered)
    def leave(self, where: int, at: int, any_of_them: int) -> None:
        """Mostly the innermost one, from its own task; sometimes any, from any task."""
        ids = sorted(self.entered)
        leaving = ids[at % len(ids)]
        python, home = self.entered[leaving]
        if any_of_them:
            inner = self.innermost[home]
            assert inner is not None
            leaving, where = inner.id, home
            python, _ = self.entered[leaving]
        wanted = self.scopes[leaving]
        inner = self.innermost[home]
        refusal = None if inner is wanted else e.UnbalancedScope
        self.expect(where, refusal, lambda: python.__exit__(None, None, None))
        while True:
            inner = self.innermost[home]
            assert inner is not None
            self.model.leave(inner)
            self.innermost[home] = inner.outer
            del self.entered[inner.id]
            if inner is wanted:
                break
        final = python.stats()
        assert final.allocations == final.frees + final.escaped + final.leaked
        assert (final.frees, final.escaped, final.leaked) == (
            wanted.frees,
            wanted.escaped,
            wanted.leaked,
        )

    @rule(where=task, slot=st.integers(0, 2), n=st.integers(0, 300))
    @precondition(lambda self: any(self.innermost))
    def get_slot(self, where: int, slot: int, n: int) -> None:
        inner = self.innermost[where]
        while inner is not None and inner.slots is None:
            inner = inner.outer
        refusal = e.NoFrame if inner is None else None
        if inner is not None and slot >= (inner.slots or 0):
            refusal = e.BadSlot
        made = self.expect(where, refusal, lambda: get_buffer(slot, n))
        if refusal is not None or inner is None:
            return
        known, room = inner.buffers.get(slot, (None, -1))
        if known is not None and not known.alive:  # freed behind the frame's back: an empty slot
            known, room = None, -1
        if n > room:
            thing = Thing(made.handle, "buffer", n, in_arena=n > 0)
            self.model.make(thing, ("frame", inner.id))
            if known is not None:
                inner.replaced.append(known)
            inner.buffers[slot] = (thing, n)
        assert made.handle == inner.buffers[slot][0].handle
        self.names.append(Name(inner.buffers[slot][0], made, None))

    @rule(where=task, at=number)
    @precondition(lambda self: self.pick(0, "buffer"))
    def view_slot(self, where: int, at: int) -> None:
        name = self.pick(at, "buffer")
        if name is None:
            return
        refusal = self.unusable(name)
        made = self.expect(where, refusal, lambda: name.python.tensor(name.python.nbytes // 4))
        if refusal is None:
            self.add_view(where, made, name.thing)

    @rule(at=number, nested=st.booleans())
    def pass_scope(self, at: int, nested: bool) -> None:
        parent = self.passed[at % len(self.passed)] if nested and self.passed else None
        made = TensorScope("passed", parent=parent and parent[0])
        self.scopes[made.id] = Scope(made.id, parent and parent[1])
        self.passed.append((made, self.scopes[made.id]))

    @rule(at=number)
    @precondition(lambda self: self.passed)
    def close_scope(self, at: int) -> None:
        python, wanted = self.passed[at % len(self.passed)]
        self.expect(0, None, python.close)
        inside = [each for each in self.passed if self.is_inside(each[1], wanted)]
        for each in sorted(inside, key=lambda pair: self.order_of(pair[1]), reverse=True):
            self.model.leave(each[1])
            self.passed.remove(each)

    @staticmethod
    def order_of(scope: Scope) -> tuple[int, ...]:
        """Of scopes that end together, the greatest ends first: ids from the root to the scope."""
        ids: list[int] = []
        at: Scope | None = scope
        while at is not None:
            ids.insert(0, at.id)
            at = at.outer
        return tuple(ids)

    @rule(at=number, n=size)
    @precondition(lambda self: self.passed)
    def make_in_passed(self, at: int, n: int) -> None:
        python, into = self.passed[at % len(self.passed)]
        made = self.expect(0, None, lambda: empty(n, scope=python))
        thing = self.model.make(Thing(made.handle, "tensor", 4 * n), FLOATING)
        self.model.register(thing, into, None)
        self.names.append(Name(thing, made, None))
