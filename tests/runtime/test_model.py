"""Random sequences of all operations agree with a simple model after every step.

The model is a list of holders for each object and a stack of lists for scopes; whatever the runtime
counts, frees, lets float or refuses must be what the model says.
"""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from runtime.trace import live_objects, statistics

from tlmem.runtime import core
from tlmem.runtime.errors import (
    AlreadyPooled,
    DoubleFree,
    NotAHolder,
    NotInScope,
    NotRegistered,
    StillHeld,
    UseAfterFree,
)
from tlmem.runtime.factories import ones
from tlmem.runtime.holders import acquire, move, release, release_safe
from tlmem.runtime.parameters import drop_parameter, parameter_names, register_parameter
from tlmem.runtime.pool import TensorPool
from tlmem.runtime.scope import (
    escape,
    promote,
    register,
    scope,
    scope_depth,
    scope_tensor_count,
    unregister,
)
from tlmem.runtime.struct import Struct, struct

PER_KEY = 2
WORDS = {
    core.FLOATING: "floating",
    core.SCOPE: "scope",
    core.HANDLE: "handle",
    core.FIELD: "field",
    core.REGISTRY: "registry",
    core.POOL: "pool",
    core.FOREIGN: "cache",
}
which = st.integers(0, 10**6)


class Object:
    """What the model knows of one object: the name in the program, who holds it, its fields."""

    def __init__(self, name: Any, holder: str, scope: list[Object] | None) -> None:
        self.name = name
        self.handle = name.handle
        self.alive = True
        self.holders = Counter([holder])
        self.owned = holder == "handle"  # by the name, which also may own a floating count
        self.scope = scope
        self.fields: list[Object | None] = []

    def let_go(self, holder: str) -> None:
        """One count goes; with the last one the object and what its fields hold."""
        if not self.alive:
            return
        self.holders[holder] -= 1
        self.holders += Counter()
        if not self.holders:
            self.end()

    def end(self) -> None:
        self.alive, self.owned, self.scope = False, False, None
        self.holders.clear()
        fields, self.fields = self.fields, []
        for field in fields:
            if field is not None:
                field.let_go("field")

    def hand_over(self, to: str) -> None:
        """The program's own count goes to another holder; there is one."""
        self.holders[self.own()] -= 1
        self.holders[to] += 1
        self.holders += Counter()
        self.owned, self.scope = to == "handle", None

    def own(self) -> str:
        """The count that the program may hand over; empty when it has none."""
        for holder in ("handle", "scope", "floating"):
            if self.holders[holder] and (holder != "handle" or self.owned):
                return holder
        return ""


class Ownership(RuleBasedStateMachine):
    """Drives the runtime and the model side by side."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.before, self.first = live_objects(), statistics()
        self.scopes: list[tuple[Any, list[Object]]] = []
        self.objects: list[Object] = []
        self.pool = TensorPool(PER_KEY)
        self.pooled: list[Object] = []
        self.parameters: dict[str, Object] = {}

    def pick(self, number: int) -> Object:
        """Some object that no pool has."""
        free = [each for each in self.objects if each not in self.pooled]
        return free[number % len(free)]

    def add(self, name: Any) -> Object:
        """What was just made: the innermost scope has it, or its handle."""
        inside = self.scopes[-1][1] if self.scopes else None
        made = Object(name, "scope" if self.scopes else "handle", inside)
        if inside is not None:
            inside.append(made)
        self.objects.append(made)
        return made

    def some(self) -> bool:
        return len(self.objects) > len(self.pooled)

    # ---- making, scopes ----

    @rule()
    def make(self) -> None:
        self.add(ones(2))

    @rule(numbers=st.lists(which, max_size=3))
    @precondition(some)
    def make_struct(self, numbers: list[int]) -> None:
        chosen = [self.pick(number) for number in numbers]
        if any(not each.alive for each in chosen):
            with pytest.raises(UseAfterFree):
                struct([each.name for each in chosen])
            return
        made = struct([each.name for each in chosen])
        if not chosen:
            assert made.handle == 0
            return
        for each in chosen:
            self.enter_field(each)
        self.add(made).fields = list(chosen)

    @staticmethod
    def enter_field(each: Object) -> None:
        """A field takes what was moved, and otherwise one count more."""
        if each.name._holder == 0 and each.holders["floating"] and each.owned:
            each.hand_over("field")
        else:
            each.holders["field"] += 1

    @rule(number=which, place=which, value=which, clear=st.booleans())
    @precondition(some)
    def write_field(self, number: int, place: int, value: int, clear: bool) -> None:
        target, new = self.pick(number), None if clear else self.pick(value)
        if not isinstance(target.name, Struct) or self.reaches(new, target):
            return
        place %= len(target.name)
        if not target.alive or (new is not None and not new.alive):
            with pytest.raises(UseAfterFree):
                target.name[place] = new and new.name
            return
        target.name[place] = new and new.name
        old, target.fields[place] = target.fields[place], new
        if new is not None:
            self.enter_field(new)
        if old is not None:
            old.let_go("field")

    def reaches(self, start: Object | None, end: Object) -> bool:
        """Whether a field of a field ... of one is the other: that would be a ring, and a leak."""
        return start is not None and (
            start is end or any(self.reaches(f, end) for f in start.fields)
        )

    @rule()
    def enter(self) -> None:
        if len(self.scopes) < 5:
            self.scopes.append((scope("s").__enter__(), []))

    @rule()
    @precondition(lambda self: self.scopes)
    def leave(self) -> None:
        entered, records = self.scopes.pop()
        entered.__exit__(None, None, None)
        for each in reversed(records):
            if each.scope is records:
                each.scope = None
                each.let_go("scope")
        done = entered.stats()
        assert done.allocations == done.frees + done.escaped + done.leaked == len(records)

    # ---- changing hands ----

    @rule(number=which)
    @precondition(some)
    def register(self, number: int) -> None:
        it = self.pick(number)
        if self.scopes and not it.alive:
            with pytest.raises(UseAfterFree):
                register(it.name)
            return
        assert register(it.name) is it.name
        if not self.scopes or it.scope is not None:
            return
        if it.own():
            it.hand_over("scope")
        else:
            it.holders["scope"] += 1
        it.scope = self.scopes[-1][1]
        it.scope.append(it)

    @rule(number=which, how=st.sampled_from([unregister, promote]))
    @precondition(some)
    def let_float(self, number: int, how: Any) -> None:
        it = self.pick(number)
        if it.alive and it.scope is not None:
            how(it.name)
            it.holders["scope"] -= 1
            it.holders["floating"] += 1
            it.scope = None
        else:
            with pytest.raises(NotRegistered if it.alive else UseAfterFree):
                how(it.name)

    @rule(number=which)
    @precondition(some)
    def escape(self, number: int) -> None:
        it = self.pick(number)
        if it.alive and it.scope is not None:
            it.holders["scope"] -= 1
            it.holders["handle"] += 1
            it.scope, it.owned = None, True
        elif not (it.alive and self.scopes and it.name._holder):
            kind = NotRegistered if self.scopes else NotInScope
            with pytest.raises(kind if it.alive else UseAfterFree):
                escape(it.name)
            return
        escape(it.name)

    @rule(number=which)
    @precondition(some)
    def move(self, number: int) -> None:
        it = self.pick(number)
        if it.alive and it.own():
            moved = move(it.name)
            with pytest.raises(UseAfterFree):
                move(it.name)
            it.hand_over("floating")
            it.name, it.owned = moved, True
        else:
            with pytest.raises(NotAHolder if it.alive else UseAfterFree):
                move(it.name)

    @rule(number=which)
    @precondition(some)
    def acquire(self, number: int) -> None:
        it = self.pick(number)
        if it.alive:
            acquire(it.name)
            it.holders["cache"] += 1
        else:
            with pytest.raises(UseAfterFree):
                acquire(it.name)

    @rule(number=which)
    @precondition(some)
    def release(self, number: int) -> None:
        it = self.pick(number)
        if it.holders["cache"]:
            release(it.name)
            it.let_go("cache")
        else:
            with pytest.raises(NotAHolder if it.alive else UseAfterFree):
                release(it.name)

    @rule(number=which)
    @precondition(some)
    def release_safe(self, number: int) -> None:
        it = self.pick(number)
        release_safe(it.name)
        own = it.own()
        if own:
            it.owned, it.scope = False, None
            it.let_go(own)

    @rule(number=which)
    @precondition(some)
    def free(self, number: int) -> None:
        it = self.pick(number)
        if it.alive:
            it.name.free()
            it.end()
        else:
            with pytest.raises(DoubleFree):
                it.name.free()

    # ---- pool and parameters ----

    @rule(number=which)
    @precondition(some)
    def put(self, number: int) -> None:
        it = self.pick(number)
        if isinstance(it.name, Struct):
            return
        if not it.alive:
            with pytest.raises(UseAfterFree):
                self.pool.release(it.name)
        elif not it.own() or it.holders.total() > 1:
            with pytest.raises(StillHeld):
                self.pool.release(it.name)
        else:
            self.pool.release(it.name)
            if len(self.pooled) == PER_KEY:
                it.end()
            else:
                it.hand_over("pool")
                self.pooled.append(it)

    @rule()
    def take(self) -> None:
        found = self.pool.acquire(2)
        if not self.pooled:
            assert found is None
            return
        with pytest.raises(AlreadyPooled):
            if len(self.pooled) == 1:
                raise AlreadyPooled("nothing left to try it with")
            self.pool.release(self.pooled[0].name)
        it = self.pooled.pop()
        assert found is it.name
        it.holders = Counter(["scope" if self.scopes else "handle"])
        it.owned, it.scope = not self.scopes, None
        if self.scopes:
            it.scope = self.scopes[-1][1]
            it.scope.append(it)

    @rule(number=which, name=st.sampled_from("ab"))
    @precondition(some)
    def register_parameter(self, number: int, name: str) -> None:
        it = self.pick(number)
        if not it.alive:
            with pytest.raises(UseAfterFree):
                register_parameter(name, it.name)
            return
        former = self.parameters.get(name)
        if former is not None and not former.alive:
            return  # it was freed under the registry; see drop_parameter
        register_parameter(name, it.name)
        it.holders["registry"] += 1
        self.parameters[name] = it
        if former is not None:
            former.let_go("registry")

    @rule(name=st.sampled_from("ab"))
    def drop_parameter(self, name: str) -> None:
        it = self.parameters.pop(name, None)
        if it is None or not it.alive:
            with pytest.raises(KeyError if it is None else UseAfterFree):
                drop_parameter(name)
            return
        drop_parameter(name)
        it.let_go("registry")

    # ---- what holds after every step ----

    @invariant()
    def the_runtime_is_what_the_model_says(self) -> None:
        Ownership.steps += 1
        for each in self.objects:
            assert each.name.alive == each.alive
            assert each.name.count == each.holders.total()
            found = [WORDS[holder >> 56] for holder in core.holders_of(each.handle)]
            assert Counter(found) == +each.holders
        alive = {each.handle for each in self.objects if each.alive}
        assert live_objects() - self.before == alive
        now = statistics()
        assert now.current_count == now.total_count - now.freed_count
        assert now.current_count - self.first.current_count == len(alive)
        floating = sum(each.holders["floating"] for each in self.objects)
        assert now.floating - self.first.floating == floating
        assert scope_depth() == len(self.scopes)
        assert scope_tensor_count() == (len(self.scopes[-1][1]) if self.scopes else 0)
        assert self.pool.stats().size == len(self.pooled)

    @staticmethod
    def forget(last: Object) -> None:
        """Drops what only a name in the program could drop."""
        for holder in core.holders_of(last.handle):
            if holder >> 56 == core.FOREIGN:
                release(last.name)
        if not last.name._holder:
            release_safe(last.name)

    def teardown(self) -> None:
        """Leaves nothing, whatever the model thinks: the next example begins with the same."""
        while self.scopes:
            self.scopes.pop()[0].__exit__(None, None, None)
        for name in parameter_names():
            with suppress(UseAfterFree):
                drop_parameter(name)
        self.pool.clear()
        while self.objects:
            self.forget(self.objects.pop())
        self.pooled.clear()
        self.parameters.clear()
        gc.collect()
        assert live_objects() == self.before


def test_random_sequences_of_all_operations_agree_with_the_model() -> None:
    chosen = settings(
        max_examples=200, stateful_step_count=80, suppress_health_check=[HealthCheck.too_slow]
    )
    Ownership.steps = 0
    run_state_machine_as_test(Ownership, settings=chosen)

    assert Ownership.steps >= 10_000
