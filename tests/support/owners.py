"""A pretended runtime whose holders are known at every step: the truth of the ledger.

Covers: objects, views, scopes, moves, escapes, pools, tapes and forced frees, and the events that
the C library records for them (native/include/tlmem.h, native/include/tlmem_tape.h).
Does not cover: files (``support.writer``).
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from support.writer import EVENT

ALLOC, FREE, ACQUIRE, RELEASE, REGISTER, UNREGISTER, PROMOTE, ESCAPE = 1, 2, 4, 5, 6, 7, 8, 9
SCOPE_ENTER, SCOPE_EXIT, POOL_HIT, POOL_PUT, MISUSE, HOLDERS = 10, 11, 16, 18, 34, 35
TAPE_RECORD, TAPE_SAVE, TAPE_UNSAVE, BACKWARD_BEGIN, BACKWARD_END = 24, 25, 26, 27, 28
CPU = 16


def holder(kind: int, number: int) -> int:
    """Kind and number as one."""
    return kind << 56 | number


def of_tape(op: int, sequence: int) -> int:
    """The tape as a holder, for an op and a value."""
    return holder(9, op << 40 | sequence)


FLOATING, POOL = holder(1, 0), holder(7, 3)


@dataclass
class Thing:
    """One object: who holds it, and since which step."""

    handle: int
    size: int
    held: dict[int, deque[int]] = field(default_factory=dict)
    base: "Thing | None" = None

    @property
    def count(self) -> int:
        """The sum over its holders."""
        return sum(map(len, self.held.values()))


@dataclass
class Runtime:
    """Runs operations and keeps what they recorded and who held what: (handle, holder, begin, end).

    Steps number the events of all threads from 0; an end of -1 is still to come.
    """

    things: dict[int, Thing] = field(default_factory=dict)
    ledger: list[tuple[int, int, int, int]] = field(default_factory=list)
    rows: dict[int, list[tuple]] = field(default_factory=dict)
    scopes: list[int] = field(default_factory=list)
    steps: int = 0
    made: int = 0
    recorded: int = 0
    scopes_made: int = 0
    thread: int = 1

    def run(self, operations: list[tuple[int, int, int]]) -> "Runtime":
        """Runs (thread, action, choice) operations."""
        actions = [
            *(self.alloc, self.alloc, self.register, self.register, self.acquire, self.release),
            *(self.unregister, self.promote, self.escape, self.move, self.free, self.view),
            *(self.enter, self.exit, self.pool, self.op, self.op, self.backward),
        ]
        for thread, action, choice in operations:
            self.thread = thread
            actions[action % len(actions)](choice)
        return self

    def events(self) -> dict[int, np.ndarray]:
        """What each thread recorded."""
        return {thread: np.array(rows, EVENT) for thread, rows in sorted(self.rows.items())}

    def whole_ledger(self) -> list[tuple[int, int, int, int]]:
        """Rows that ended, and those that did not, in order."""
        rows = list(self.ledger)
        for thing in self.things.values():
            for who, begins in thing.held.items():
                rows += [(thing.handle, who, begin, -1) for begin in begins]
        return sorted(rows)

    # ---- how a step is recorded ----

    def record(self, kind: int, obj: int, arg: int, count: int, device: int = CPU) -> int:
        """Records an event and returns its step."""
        event = (1_000_000 + 4 * self.steps, obj, arg, 2, min(count, 65535), kind, device)
        self.rows.setdefault(self.thread, []).append(event)
        self.steps += 1
        return self.steps - 1

    def take(self, thing: Thing, who: int, step: int) -> None:
        thing.held.setdefault(who, deque()).append(step)

    def give(self, thing: Thing, who: int, step: int) -> None:
        begins = thing.held[who]
        self.ledger.append((thing.handle, who, begins.popleft(), step))
        if not begins:
            del thing.held[who]

    def pick(self, choice: int, wanted=lambda thing: True) -> Thing | None:
        found = [thing for thing in self.things.values() if wanted(thing)]
        return found[choice % len(found)] if found else None

    def scope_of(self, thing: Thing) -> int:
        return next((who for who in thing.held if who >> 56 == 2), 0)

    def named(self, thing: Thing, choice: int) -> int:
        """One of its holders that is neither nobody nor a scope; 0 when there is none."""
        found = [who for who in thing.held if who >> 56 not in (1, 2, 7, 9)]
        return found[choice % len(found)] if found else 0

    # ---- operations ----

    def alloc(self, choice: int, base: Thing | None = None) -> Thing:
        self.made += 1
        thing = Thing((self.made << 28) + 1 + self.made % 3, 0 if base else choice, base=base)
        if base is not None:
            who = holder(5, thing.handle)
            self.take(base, who, self.record(ACQUIRE, base.handle, who, base.count + 1))
        self.things[thing.handle] = thing
        self.take(thing, FLOATING, self.record(ALLOC, thing.handle, thing.size, 1))
        return thing

    def view(self, choice: int) -> None:
        base = self.pick(choice)
        if base is not None:
            self.alloc(0, base)

    def register(self, choice: int) -> None:
        thing = self.pick(choice, lambda thing: not self.scope_of(thing))
        if thing is None or not self.scopes:
            return
        who = holder(2, self.scopes[-1])
        if FLOATING in thing.held:
            step = self.record(REGISTER, thing.handle, who, thing.count)
            self.give(thing, FLOATING, step)
        else:
            step = self.record(ACQUIRE, thing.handle, who, thing.count + 1)
        self.take(thing, who, step)

    def acquire(self, choice: int) -> None:
        thing = self.pick(choice)
        if thing is not None:
            who = holder(3 + choice % 2, choice % 5)
            self.take(thing, who, self.record(ACQUIRE, thing.handle, who, thing.count + 1))

    def release(self, choice: int) -> None:
        thing = self.pick(choice, lambda thing: self.named(thing, 0) >> 56 in (3, 4))
        if thing is not None:
            self.let_go(thing, self.named(thing, 0))

    def let_go(self, thing: Thing, who: int) -> None:
        self.give(thing, who, self.record(RELEASE, thing.handle, who, thing.count - 1))
        if thing.count == 0:
            self.end(thing, 0)

    def end(self, thing: Thing, ended: int) -> None:
        """The view lets go of its base before it is gone itself."""
        del self.things[thing.handle]
        if thing.base is not None and thing.base.handle in self.things:
            self.let_go(thing.base, holder(5, thing.handle))
        step = self.record(FREE, thing.handle, ended, 0)
        for who in list(thing.held):
            while who in thing.held:
                self.give(thing, who, step)

    def free(self, choice: int) -> None:
        thing = self.pick(choice)
        if thing is not None and choice % 3 == 0:
            self.end(thing, thing.count)

    def float_again(self, choice: int, kind: int) -> None:
        thing = self.pick(choice, self.scope_of)
        if thing is not None:
            who = self.scope_of(thing)
            step = self.record(kind, thing.handle, who, thing.count)
            self.give(thing, who, step)
            self.take(thing, FLOATING, step)

    def unregister(self, choice: int) -> None:
        self.float_again(choice, UNREGISTER)

    def promote(self, choice: int) -> None:
        self.float_again(choice, PROMOTE)

    def escape(self, choice: int) -> None:
        thing = self.pick(choice, self.scope_of)
        if thing is not None:
            who = holder(3, 100 + choice % 5)
            step = self.record(ESCAPE, thing.handle, who, thing.count)
            self.give(thing, self.scope_of(thing), step)
            self.take(thing, who, step)

    def move(self, choice: int) -> None:
        thing = self.pick(choice, lambda thing: self.named(thing, 0) >> 56 in (3, 4))
        if thing is not None:
            self.hand_over(thing, self.named(thing, 0), holder(3, 200 + choice % 5))

    def hand_over(self, thing: Thing, old: int, new: int) -> None:
        if old != FLOATING:
            step = self.record(UNREGISTER, thing.handle, old, thing.count)
            self.give(thing, old, step)
            self.take(thing, FLOATING, step)
        if new != FLOATING:
            step = self.record(REGISTER, thing.handle, new, thing.count)
            self.give(thing, FLOATING, step)
            self.take(thing, new, step)

    def enter(self, choice: int) -> None:
        if len(self.scopes) < 4:
            self.scopes_made += 1
            self.scopes.append(self.scopes_made)
            self.record(SCOPE_ENTER, self.scopes[-1], 1 + choice % 2, len(self.scopes), 0)

    def exit(self, choice: int) -> None:
        if not self.scopes:
            return
        scope = self.scopes.pop()
        who, freed = holder(2, scope), 0
        for thing in list(self.things.values())[::-1]:
            if who in thing.held and thing.handle in self.things:
                freed += thing.count == 1
                self.let_go(thing, who)
        self.record(SCOPE_EXIT, scope, freed, 0, 0)

    def pool(self, choice: int) -> None:
        pooled = self.pick(choice, lambda thing: POOL in thing.held)
        sole = self.pick(choice, lambda thing: thing.count == 1 and POOL not in thing.held)
        if pooled is not None and choice % 2:
            self.hand_over(pooled, POOL, FLOATING)
            self.record(POOL_HIT, pooled.handle, POOL, pooled.count)
        elif sole is not None:
            (old,) = sole.held
            if old >> 56 == 5:
                return
            self.hand_over(sole, old, POOL)
            self.record(POOL_PUT, sole.handle, POOL, sole.count)

    def op(self, choice: int) -> None:
        """An operation with a new object as its output saves that, or inputs, one maybe twice."""
        self.recorded += 1
        output, number = self.alloc(choice), 16 + choice % 3
        inputs = [self.pick(choice + step) for step in range(choice % 4)]
        who = of_tape(number, self.recorded)
        told = number << 40 | self.recorded
        self.record(TAPE_RECORD, output.handle, told, len(inputs), CPU)
        for thing in inputs:
            self.record(TAPE_SAVE, thing.handle, who, thing.count, 0)
            self.take(thing, who, self.record(ACQUIRE, thing.handle, who, thing.count + 1))

    def backward(self, choice: int) -> None:
        """A pass lets go of everything that half of all operations saved, the newest first."""
        root = 1 << 56 | self.recorded
        self.record(BACKWARD_BEGIN, root, self.recorded, 0, 0)
        saved = sorted(
            {
                (who, thing.handle)
                for thing in self.things.values()
                for who in thing.held
                if who >> 56 == 9 and who % 2 == choice % 2
            }
        )
        for who, handle in saved[::-1]:
            while handle in self.things and who in self.things[handle].held:
                thing = self.things[handle]
                self.record(TAPE_UNSAVE, handle, who, thing.count, 0)
                self.let_go(thing, who)
        self.record(BACKWARD_END, root, len(saved), 0, 0)
