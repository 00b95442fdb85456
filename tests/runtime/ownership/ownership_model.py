"""Who owns what, in plain Python: what the runtime must say after any sequence of operations.

An object is a handle, a kind and a multiset of holders; a scope is a list of objects and four
counters. Every function says what an operation does when it succeeds; when it is refused nothing
changes, which is why refusals are not here but in the test.
Covers: counts, holders, scopes, frames, structs, views, pools, parameters. Does not cover: bytes of
devices, values, events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

FLOATING = "floating"
Holder = tuple[Any, ...] | str
"""``"floating"``, or a kind and what tells holders of the kind apart."""


@dataclass(eq=False)
class Thing:
    """One object."""

    handle: int
    kind: str
    bytes: int = 0
    held: Counter[Holder] = field(default_factory=Counter)
    alive: bool = True
    scope: Scope | None = None
    in_arena: bool = False
    base: Thing | None = None
    fields: list[Thing | None] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.held.total()


@dataclass(eq=False)
class Scope:
    """A scope or frame that is entered, or one outside any context."""

    id: int
    outer: Scope | None = None
    slots: int | None = None  # of a frame
    records: list[Thing] = field(default_factory=list)
    frees: int = 0
    escaped: int = 0
    leaked: int = 0
    count: int = 0
    buffers: dict[int, tuple[Thing, int]] = field(default_factory=dict)
    replaced: list[Thing] = field(default_factory=list)


class Ownership:
    """All objects, and the counters of the process since the beginning."""

    def __init__(self) -> None:
        self.things: dict[int, Thing] = {}
        self.allocations = self.frees = self.acquires = self.releases = self.forced = 0

    def live(self) -> list[Thing]:
        return [each for each in self.things.values() if each.alive]

    # ---- counts ----

    def make(self, thing: Thing, holder: Holder) -> Thing:
        self.things[thing.handle] = thing
        self.allocations += 1
        thing.held[holder] = 1
        return thing

    def acquire(self, thing: Thing, holder: Holder) -> None:
        thing.held[holder] += 1
        self.acquires += 1

    def replace(self, thing: Thing, old: Holder, new: Holder) -> None:
        self._remove(thing, old)
        thing.held[new] += 1

    def release(self, thing: Thing, holder: Holder) -> None:
        """One count goes; with the last one the object. Of a dead object there is none."""
        if not thing.alive or not thing.held[holder]:
            return
        self._remove(thing, holder)
        self.releases += 1
        if thing.count == 0:
            self._end(thing)

    def free(self, thing: Thing) -> None:
        """The object goes, whoever holds it."""
        self.forced += thing.count
        thing.held.clear()
        self._end(thing)

    @staticmethod
    def _remove(thing: Thing, holder: Holder) -> None:
        assert thing.held[holder] > 0, (thing, holder)
        thing.held[holder] -= 1
        thing.held += Counter()

    def _end(self, thing: Thing) -> None:
        thing.alive = False
        self.frees += 1
        if thing.scope is not None:
            thing.scope.frees += 1
            thing.scope.records.remove(thing)
            thing.scope = None
        if thing.base is not None:
            self.release(thing.base, ("view", thing.handle))
        for place in reversed(range(len(thing.fields))):
            self.set_field(thing, place, None)

    # ---- scopes ----

    def register(self, thing: Thing, scope: Scope, own: Holder | None) -> None:
        """The scope takes a count that somebody gives it, one that floats, or one more."""
        holder = ("scope", scope.id)
        taken = own or (FLOATING if thing.held[FLOATING] else None)
        if taken:
            self.replace(thing, taken, holder)
        else:
            self.acquire(thing, holder)
        thing.scope = scope
        scope.records.append(thing)
        scope.count += 1

    def take_out(self, thing: Thing, to: Holder) -> None:
        """The scope's count goes to another holder."""
        scope = thing.scope
        assert scope is not None
        self.replace(thing, ("scope", scope.id), to)
        scope.records.remove(thing)
        scope.escaped += 1
        thing.scope = None

    def leave(self, scope: Scope) -> None:
        """Lets go of all records, the newest first, then of a frame's buffers."""
        for thing in reversed(scope.records[:]):
            if thing.scope is not scope:
                continue  # it went with one that held it
            scope.records.remove(thing)
            thing.scope = None
            if thing.count > 1 and not thing.in_arena:
                scope.leaked += 1
                self.release(thing, ("scope", scope.id))
                continue
            scope.frees += 1
            self._end_with(scope, thing, ("scope", scope.id))
        buffers = [scope.buffers[slot][0] for slot in sorted(scope.buffers, reverse=True)]
        for buffer in [*buffers, *reversed(scope.replaced)]:
            if buffer.alive:
                self._end_with(scope, buffer, ("frame", scope.id))

    def _end_with(self, scope: Scope, thing: Thing, holder: Holder) -> None:
        if thing.count == 1:
            self.release(thing, holder)
        else:
            self.free(thing)

    # ---- structs ----

    def set_field(
        self, struct: Thing, place: int, value: Thing | None, moved: bool = False
    ) -> None:
        """The field takes one more count, or one that floats, and then lets the old one go."""
        holder = ("field", struct.handle, place)
        if value is not None and moved:
            self.replace(value, FLOATING, holder)
        elif value is not None:
            self.acquire(value, holder)
        old, struct.fields[place] = struct.fields[place], value
        if old is not None:
            self.release(old, holder)

    def reaches(self, start: Thing | None, end: Thing) -> bool:
        return start is not None and (
            start is end or any(self.reaches(each, end) for each in start.fields)
        )
