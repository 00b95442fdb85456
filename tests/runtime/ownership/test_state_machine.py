"""Any sequence of operations, in any task: holders, counts and counters are those of the model.

Covers every operation: tensors, structs, parameters and pools, views and arrays that outlive their
tensors, frames and slots, the arena, tasks with scopes of their own, scopes left out of order and
from another task, scopes that are passed, things the program made, names that died, and uses of
what a pool has.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    precondition,
    rule,
    run_state_machine_as_test,
)
from runtime.ownership.machine import PER_KEY, TASKS, Name, label, number, size, task
from runtime.ownership.machine_rules import Making
from runtime.ownership.ownership_model import FLOATING, Thing
from runtime.things import Mock
from runtime.trace import live_objects

from tlmem.runtime import core
from tlmem.runtime import errors as e
from tlmem.runtime.ownership import adopted, parameters, struct
from tlmem.runtime.ownership.holders import acquire, move, release, release_safe
from tlmem.runtime.ownership.scope import escape, promote, register, unregister


class Everything(Making):
    """What changes hands, holds in fields, keeps in pools, and names."""

    # ---- hands ----

    @rule(where=task, at=number)
    @precondition(lambda self: self.names)
    def register(self, where: int, at: int) -> None:
        name, inner = self.pick(at), self.innermost[where]
        assert name is not None
        refusal = self.unusable(name) if inner else None
        self.expect(where, refusal, lambda: register(name.python))
        if refusal is None and inner is not None and name.thing.scope is None:
            self.model.register(name.thing, inner, name.own)
            name.own = None

    @rule(where=task, at=number, how=st.sampled_from([unregister, promote]))
    @precondition(lambda self: self.names)
    def let_float(self, where: int, at: int, how: Any) -> None:
        name = self.pick(at)
        assert name is not None
        refusal = self.unusable(name) or (None if name.thing.scope else e.NotRegistered)
        if refusal is None and (name.thing.in_arena or self.may_not_leave(name.thing)):
            refusal = e.InArena
        self.expect(where, refusal, lambda: how(name.python))
        if refusal is None:
            self.model.take_out(name.thing, FLOATING)

    @rule(where=task, at=number, by_method=st.booleans())
    @precondition(lambda self: self.names)
    def escape(self, where: int, at: int, by_method: bool) -> None:
        name = self.pick(at, "tensor", "taken", "view", "struct")
        if name is None:
            return
        thing, inner = name.thing, self.innermost[where]
        refusal = self.unreadable(name) if by_method else self.unusable(name)
        stays = (name.own and inner) or (by_method and (name.own or not inner))
        if refusal is None and not stays:
            if thing.scope is None:
                refusal = e.NotRegistered if inner else e.NotInScope
            elif thing.in_arena or self.ends_with(thing):
                refusal = e.InArena
        call = name.python.escape if by_method else lambda: escape(name.python)
        self.expect(where, refusal, call)
        if refusal is None and not stays:
            name.own = self.new_handle()
            self.model.take_out(thing, name.own)

    @rule(at=number, who=label)
    @precondition(lambda self: self.names)
    def acquire(self, at: int, who: str) -> None:
        name = self.pick(at)
        assert name is not None
        refusal = self.unusable(name)
        self.expect(0, refusal, lambda: acquire(name.python, who))
        if refusal is None:
            self.model.acquire(name.thing, ("foreign", who))

    @rule(at=number, who=label)
    @precondition(lambda self: self.names)
    def release(self, at: int, who: str) -> None:
        name = self.pick(at)
        assert name is not None
        holder = ("foreign", who)
        refusal = self.unusable(name) or (None if name.thing.held[holder] else e.NotAHolder)
        self.expect(0, refusal, lambda: release(name.python, who))
        if refusal is None:
            self.model.release(name.thing, holder)

    @rule(at=number)
    @precondition(lambda self: self.names)
    def release_safe(self, at: int) -> None:
        name = self.pick(at, "tensor", "taken", "view", "struct")
        if name is None:
            return
        thing = name.thing
        kept_in_arena = not name.own and not name.moved and thing.scope and thing.in_arena
        self.expect(0, e.InArena if kept_in_arena else None, lambda: release_safe(name.python))
        if kept_in_arena or name.moved:
            return
        own, name.own = name.own, None
        if own is None and thing.scope is not None:
            self.model.take_out(thing, FLOATING)
        self.model.release(thing, own or FLOATING)

    @rule(at=number)
    @precondition(lambda self: self.names)
    def move(self, at: int) -> None:
        name = self.pick(at, "tensor", "taken", "view", "struct")
        if name is None:
            return
        thing = name.thing
        refusal = self.unreadable(name)
        from_scope = not name.own and thing.scope is not None
        if refusal is None and from_scope and (thing.in_arena or self.may_not_leave(thing)):
            refusal = e.InArena
        if refusal is None and not from_scope and not thing.held[name.own or FLOATING]:
            refusal = e.NotAHolder
        made = self.expect(0, refusal, lambda: move(name.python))
        if refusal is not None:
            return
        if from_scope:
            self.model.take_out(thing, FLOATING)
        elif name.own:
            self.model.replace(thing, name.own, FLOATING)
        twin = Name(thing, made, FLOATING)
        twin.base, twin.values = name.base, name.values
        name.own, name.moved = None, True
        self.names.append(twin)

    @rule(at=number)
    @precondition(lambda self: self.names)
    def free(self, at: int) -> None:
        name = self.pick(at, "tensor", "taken", "view", "struct")
        if name is None:
            return
        refusal = self.unreadable(name) if name.moved else None
        if refusal is None and not name.thing.alive:
            refusal = e.DoubleFree
        elif refusal is None and self.is_lent(name.thing):
            refusal = e.StillHeld
        self.expect(0, refusal, name.python.free)
        if refusal is None:
            name.own = None
            self.model.free(name.thing)

    def is_lent(self, thing: Thing) -> bool:
        """Whether an array looks into its memory, also through a view."""
        return any(holder[0] == "export" for holder in thing.held)

    # ---- structs ----

    @rule(where=task, ats=st.lists(number, min_size=0, max_size=3))
    def make_struct(self, where: int, ats: list[int]) -> None:
        members = [self.pick(at, "tensor", "view", "struct") for at in ats]
        refusal = None
        for each in members:
            refusal = refusal or (each and self.unreadable(each))
        made = self.expect(
            where, refusal, lambda: struct.struct([each and each.python for each in members])
        )
        if refusal is not None or not members:
            assert refusal or made.handle == 0
            return
        name = self.add(where, "struct", made)
        name.thing.fields = [None] * len(members)
        name.values = [None] * len(members)
        for place, each in enumerate(members):
            self.put(name, place, each)

    @rule(at=number, place=st.integers(0, 2), value=st.none() | number)
    def write_field(self, at: int, place: int, value: int | None) -> None:
        name = self.pick(at, "struct")
        new = None if value is None else self.pick(value, "tensor", "view", "struct")
        if name is None:
            return
        place %= len(name.values)
        refusal = self.unusable(name) or (new and self.unreadable(new))
        if refusal is None and new and self.model.reaches(new.thing, name.thing):
            refusal = ValueError
        call = name.python.__setitem__
        self.expect(0, refusal, lambda: call(place, new and new.python))
        if refusal is None:
            self.put(name, place, new)

    def put(self, name: Name, place: int, value: Name | None) -> None:
        moved = value is not None and value.own == FLOATING
        self.model.set_field(name.thing, place, value and value.thing, moved)
        name.values[place] = value
        if value is not None and moved:
            value.own = None

    @rule(at=number, place=st.integers(0, 2))
    def read_field(self, at: int, place: int) -> None:
        name = self.pick(at, "struct")
        if name is None:
            return
        place %= len(name.values)
        found = self.expect(0, self.unusable(name), lambda: name.python[place])
        value = name.values[place]
        if value is not None and not self.unusable(name):
            assert found is value.python
            if value not in self.names:
                self.names.append(value)

    # ---- pool and parameters ----

    @rule(at=number)
    def put_in_pool(self, at: int) -> None:
        name = self.pick(at, "tensor", "taken", "view")
        if name is None:
            return
        thing = name.thing
        own = name.own or (("scope", thing.scope.id) if thing.scope else FLOATING)
        refusal = self.unreadable(name)
        if refusal is None:
            if thing.kind == "view":
                refusal = TypeError
            elif any(holder[0] == "pool" for holder in thing.held):
                refusal = e.AlreadyPooled
            elif thing.in_arena:
                refusal = e.InArena
            elif not thing.held[own] or thing.count > 1:
                refusal = e.StillHeld
        self.expect(0, refusal, lambda: self.pool.release(name.python))
        if refusal is not None:
            return
        name.own = None
        row = self.pooled.setdefault(str(name.python.shape) + name.python.dtype, [])
        if len(row) == PER_KEY:
            if thing.scope:
                thing.scope.frees += 1
                thing.scope.records.remove(thing)
                thing.scope = None
            self.model.release(thing, own)
            return
        if thing.scope:
            self.model.take_out(thing, ("pool",))
        else:
            self.model.replace(thing, own, ("pool",))
        row.append(name)

    @rule(where=task, n=size, wide=st.booleans())
    def take_from_pool(self, where: int, n: int, wide: bool) -> None:
        dtype = "float64" if wide else "float32"
        found = self.expect(where, None, lambda: self.pool.acquire((n,), dtype))
        row = self.pooled.get(f"({n},){dtype}", [])
        while row:
            name = row.pop()
            if not name.thing.alive or name.thing.count > 1:
                self.model.release(name.thing, ("pool",))
                continue
            assert found is name.python
            self.model.replace(name.thing, ("pool",), FLOATING)
            inner = self.innermost[where]
            if inner is not None:
                self.model.register(name.thing, inner, None)
            else:
                name.own = self.new_handle()
                self.model.replace(name.thing, FLOATING, name.own)
            if name not in self.names:
                self.names.append(name)
            return
        assert found is None

    @rule()
    @precondition(lambda self: any(self.pooled.values()))
    def clear_pool(self) -> None:
        self.expect(0, None, self.pool.clear)
        for row in self.pooled.values():
            for name in row:
                self.model.release(name.thing, ("pool",))
        self.pooled.clear()

    @rule(at=number, who=label)
    def keep_parameter(self, at: int, who: str) -> None:
        name = self.pick(at, "tensor", "view", "struct")
        if name is None:
            return
        refusal = self.unreadable(name)
        self.expect(0, refusal, lambda: parameters.register_parameter(who, name.python))
        if refusal is None:
            self.model.acquire(name.thing, ("registry", who))
            former = self.parameters.get(who)
            self.parameters[who] = name
            if former is not None:
                self.model.release(former.thing, ("registry", who))

    @rule(who=label)
    @precondition(lambda self: self.parameters)
    def drop_parameter(self, who: str) -> None:
        former = self.parameters.pop(who, None)
        refusal = KeyError if former is None else None
        if former is not None and not former.thing.alive:
            refusal = e.UseAfterFree
        self.expect(0, refusal, lambda: parameters.drop_parameter(who))
        if former is not None:
            self.model.release(former.thing, ("registry", who))

    # ---- things of the program ----

    @rule(where=task)
    @precondition(lambda self: any(self.innermost))
    def register_thing(self, where: int) -> None:
        inner, thing = self.innermost[where], Mock()
        self.expect(where, None, lambda: register(thing))
        if inner is not None:
            known = Thing(adopted._known[id(thing)].object, "thing")
            self.model.register(self.model.make(known, FLOATING), inner, None)
            self.things.append((thing, known))

    @rule(at=number)
    @precondition(lambda self: self.things)
    def take_thing_out(self, at: int) -> None:
        thing, known = self.things.pop(at % len(self.things))
        if not known.alive:
            assert thing.freed == 1
            return
        self.expect(0, None, lambda: unregister(thing))
        self.model.take_out(known, FLOATING)
        self.model.release(known, FLOATING)
        assert thing.freed == 0

    # ---- the end ----

    def teardown(self) -> None:
        for where in range(TASKS):
            while self.innermost[where] is not None:
                self.leave_innermost(where)
        while self.passed:
            self.close_scope(0)
        self.clear_pool()
        for who in list(self.parameters):
            self.drop_parameter(who)
        self.arrays_end()
        for thing in self.model.live():
            for who in ("a", "b"):
                while thing.held[("foreign", who)]:
                    holder = core.holder(core.FOREIGN, core.label(who))
                    core.lib.tlm_release(thing.handle, holder)
                    self.model.release(thing, ("foreign", who))
        self.names.clear()
        self.model_and_runtime_agree()
        for thing in self.model.live():  # what floats, and what only that holds
            if thing.alive and thing.held[FLOATING]:
                core.lib.tlm_free(thing.handle)
                self.model.free(thing)
        self.model_and_runtime_agree()
        assert live_objects() == self.before
        self.tasks.close()

    def arrays_end(self) -> None:
        while self.arrays:
            self.drop_array(0)

    def leave_innermost(self, where: int) -> None:
        inner = self.innermost[where]
        assert inner is not None
        python, _ = self.entered.pop(inner.id)
        self.do(where, lambda: python.__exit__(None, None, None))
        self.model.leave(inner)
        self.innermost[where] = inner.outer


@pytest.mark.parametrize("number", range(4))
def test_random_operations_agree_with_the_model_after_each_step(number: int) -> None:
    """2,500 steps and more for each seed, so 10,000 together."""
    before = Everything.steps
    Everything.done.clear()
    print(f"seed {number}")  # shown when it fails
    machine = seed(number)(Everything)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=80,
            stateful_step_count=100,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )

    print(Everything.steps - before, "steps:", dict(Everything.done))
    assert Everything.steps - before >= 2_500
    assert len(Everything.done) >= 60
