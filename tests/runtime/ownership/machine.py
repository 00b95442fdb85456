"""A state machine that does each operation to the runtime and to the model, in any of three tasks.

Covers: running an operation in a task, names that die, comparing runtime and model.
Does not cover: which operations there are (``machine_rules``, ``test_state_machine``), what they
mean (``ownership_model``).
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
)
from runtime.ownership.ownership_model import FLOATING, Holder, Ownership, Scope, Thing
from runtime.things import Mock
from runtime.trace import live_objects, statistics

from tlmem.runtime import contexts, core
from tlmem.runtime import errors as e
from tlmem.runtime.ownership import pool
from tlmem.runtime.ownership.scope import (
    current_scope_id,
    scope_depth,
    scope_tensor_count,
    stats_of,
)
from tlmem.runtime.ownership.tensor_scope import TensorScope

TASKS = 3
PER_KEY = 2
KINDS = {
    core.FLOATING: FLOATING,
    core.HANDLE: "handle",
    core.FIELD: "field",
    core.EXPORT: "export",
}
number = st.integers(0, 1 << 16)
size = st.integers(0, 4)
task = st.integers(0, TASKS - 1)
label = st.sampled_from(["a", "b"])


class Tasks:
    """Task 0 is the thread itself; the others are asyncio tasks that run what they are given."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.inboxes: list[asyncio.Queue[Any]] = []
        self.running = [self.loop.create_task(self.serve()) for _ in range(TASKS - 1)]
        self.loop.run_until_complete(asyncio.sleep(0))

    async def serve(self) -> None:
        inbox: asyncio.Queue[Any] = asyncio.Queue()
        self.inboxes.append(inbox)
        while (call := await inbox.get()) is not None:
            call()

    def run(self, where: int, call: Callable[[], None]) -> None:
        if where == 0:
            call()
            contexts.settle()
            return
        self.inboxes[where - 1].put_nowait(call)
        self.loop.run_until_complete(asyncio.sleep(0))
        contexts.settle()

    def close(self) -> None:
        for inbox in self.inboxes:
            inbox.put_nowait(None)
        self.loop.run_until_complete(asyncio.gather(*self.running))
        self.loop.close()
        self.running.clear()
        contexts.settle()


class Name:
    """A variable of the program: a Python object, and what the model says of its count."""

    def __init__(self, thing: Thing, handle: Any, own: Holder | None) -> None:
        self.thing, self.python, self.own = thing, handle, own
        self.moved = False
        self.base: Name | None = None  # kept by a view
        self.values: list[Name | None] = []  # kept by a struct


class Machine(RuleBasedStateMachine):
    """Does each operation to the runtime and to the model."""

    steps = 0
    done: Counter[str] = Counter()

    def __init__(self) -> None:
        super().__init__()
        if live_objects():
            gc.collect()  # of a machine that failed
        self.before, self.first = live_objects(), statistics()
        self.tasks = Tasks()
        self.model = Ownership()
        self.names: list[Name] = []
        self.known: list[Name] = []  # of which the Python object lives
        self.arrays: list[tuple[Any, Thing, int]] = []
        self.innermost: list[Scope | None] = [None] * TASKS
        self.entered: dict[int, tuple[Any, int]] = {}  # scope id -> object, task
        self.scopes: dict[int, Scope] = {}
        self.passed: list[tuple[TensorScope, Scope]] = []
        self.pool = pool.TensorPool(PER_KEY)
        self.pooled: dict[str, list[Name]] = {}
        self.parameters: dict[str, Name] = {}
        self.things: list[tuple[Mock, Thing]] = []
        self.serial = 0

    # ---- what follows from the model ----

    def ends_with(self, thing: Thing) -> list[Scope]:
        """The scopes with which memory ends that a composed thing consists of."""
        found: list[Scope] = []
        waiting, seen = [thing], set()
        while waiting:
            each = waiting.pop()
            if each.handle in seen or not each.alive:
                continue
            seen.add(each.handle)
            if each.kind == "buffer":
                found += [self.scopes[h[1]] for h in each.held if h[0] == "frame"]
            elif each.in_arena and each.scope:
                found.append(each.scope)
            waiting += [part for part in (each.base, *each.fields) if part]
        return found

    def may_not_leave(self, thing: Thing) -> bool:
        """Whether a view or struct consists of memory that ends with its own scope."""
        scope = thing.scope
        if thing.kind not in ("view", "struct") or scope is None:
            return False
        return any(self.is_inside(each, scope) for each in self.ends_with(thing))

    @staticmethod
    def is_inside(inner: Scope | None, outer: Scope) -> bool:
        while inner is not None and inner is not outer:
            inner = inner.outer
        return inner is outer

    # ---- doing ----

    def do(self, where: int, call: Callable[[], Any]) -> Any:
        """What the call gives in a task, or the class of what it raises; keeps no traceback."""
        found: list[Any] = []

        def guarded() -> None:
            try:
                found.append(call())
            except Exception as error:
                found.append(type(error))

        self.tasks.run(where, guarded)
        return found.pop()

    def expect(self, where: int, refusal: type | None, call: Callable[[], Any]) -> Any:
        got = self.do(where, call)
        caller = sys._getframe(1).f_code.co_name
        Machine.done[caller if refusal is None else f"{caller}: {refusal.__name__}"] += 1
        if refusal is e.UseAfterFree:  # of a view, its base may have been moved before it was freed
            assert got in (refusal, e.UseAfterMove), got
        elif refusal is not None:
            assert got is refusal, f"expected {refusal}, got {got}"
        else:
            assert not (isinstance(got, type) and issubclass(got, Exception)), got
        return got

    def pick(self, at: int, *kinds: str) -> Name | None:
        found = [each for each in self.names if not kinds or each.thing.kind in kinds]
        return found[at % len(found)] if found else None

    def add(self, where: int, kind: str, python: Any, **more: Any) -> Name:
        """What was just made by a task: its innermost scope has it, else the name."""
        thing = Thing(python.handle, kind, **more)
        self.serial += 1
        holder: Holder = ("handle", self.serial)
        self.model.make(thing, FLOATING)
        name = Name(thing, python, None)
        inner = self.innermost[where]
        if inner is not None:
            self.model.register(thing, inner, None)
        else:
            self.model.replace(thing, FLOATING, holder)
            name.own = holder
        self.names.append(name)
        return name

    def new_handle(self) -> Holder:
        self.serial += 1
        return ("handle", self.serial)

    def unusable(self, name: Name) -> type | None:
        """Why a use of a name is refused."""
        base = name.thing.base
        if name.moved:
            return e.UseAfterFree if base and not base.alive else e.UseAfterMove
        return None if name.thing.alive else e.UseAfterFree

    def unreadable(self, name: Name) -> type | None:
        """Why the memory behind a name cannot be used."""
        base = name.thing.base
        return self.unusable(name) if base is None or base.alive else e.UseAfterFree

    # ---- what must hold ----

    def let_dead_names_go(self) -> None:
        """A name ends when nothing in the program reaches its Python object."""
        waiting = [*self.names, *self.parameters.values()]
        waiting += [name for row in self.pooled.values() for name in row]
        reached: set[int] = set()
        while waiting:
            name = waiting.pop()
            if id(name) not in reached:
                reached.add(id(name))
                waiting += [each for each in (name.base, *name.values) if each is not None]
        for name in [each for each in self.known if id(each) not in reached]:
            self.known.remove(name)
            name.python, own, name.own = None, name.own, None
            name.base, name.values = None, []
            if own is not None:
                self.model.release(name.thing, own)

    @invariant()
    def model_and_runtime_agree(self) -> None:
        Machine.steps += 1
        self.pool.stats()  # lets go of names of what it does not have any more
        self.known = list({id(name): name for name in [*self.known, *self.names]}.values())
        self.let_dead_names_go()
        self.compare()

    def compare(self) -> None:
        live = self.model.live()
        assert live_objects() - self.before == {thing.handle for thing in live}
        for thing in live:
            held = Counter(map(self.seen, core.holders_of(thing.handle)))
            expected = Counter(map(self.expected, thing.held.elements()))
            assert held == expected, f"{thing.kind} {thing.handle}"
        for where in range(TASKS):
            self.tasks.run(where, lambda: self.check_scopes(where))  # noqa: B023
        for python, each in self.passed:
            assert python.stats().frees == each.frees
        self.check_counters(live)

    def check_scopes(self, where: int) -> None:
        inner, depth = self.innermost[where], 0
        assert current_scope_id() == (inner.id if inner else -1)
        assert scope_tensor_count() == (inner.count if inner else 0)
        while inner is not None:
            depth += 1
            now = stats_of(inner.id)
            assert (now.allocations, now.frees, now.escaped, now.leaked) == (
                inner.count,
                inner.frees,
                inner.escaped,
                inner.leaked,
            )
            inner = inner.outer
        assert scope_depth() == depth

    def check_counters(self, live: list[Thing]) -> None:
        now, model = statistics(), self.model
        assert now.total_count - self.first.total_count == model.allocations
        assert now.freed_count - self.first.freed_count == model.frees
        assert now.current_count - self.first.current_count == len(live)
        assert now.current_bytes - self.first.current_bytes == sum(each.bytes for each in live)
        assert now.acquires - self.first.acquires == model.acquires
        assert now.releases - self.first.releases == model.releases
        assert now.floating - self.first.floating == sum(each.held[FLOATING] for each in live)
        assert model.allocations + model.acquires - model.releases - model.forced == sum(
            each.count for each in live
        )

    @staticmethod
    def seen(value: int) -> Holder:
        kind, number = value >> 56, value & (1 << 56) - 1
        if kind in KINDS:
            return KINDS[kind]
        word = {
            core.SCOPE: "scope",
            core.VIEW: "view",
            core.REGISTRY: "registry",
            core.POOL: "pool",
            core.FRAME: "frame",
            core.FOREIGN: "foreign",
        }[kind]
        if kind == core.POOL:
            return ("pool",)
        named = kind in (core.REGISTRY, core.FOREIGN)
        return (word, core.label_text(number) if named else number)

    @staticmethod
    def expected(holder: Holder) -> Holder:
        return holder[0] if holder[0] in ("handle", "field", "export") else holder
