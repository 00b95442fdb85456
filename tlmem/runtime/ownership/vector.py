"""Vectors: containers that grow, whose elements are tensors, structs and vectors.

An element is held like a field of a struct, because it is one: the vector's object has one field,
a block with room for more elements than there are. When the block is full a larger one acquires the
elements, takes its place, and the old one lets them go: elements and the vector's own object stay
the same, and nobody can have looked into the old block, so it is not kept as that of a slot is.

Covers: making, growing, reading, taking out. Does not cover: fields as such (``struct``).
See also: docs/reference/runtime.md, "Vectors".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tlmem.runtime import contexts, core
from tlmem.runtime.core import check, ffi, lib
from tlmem.runtime.ownership import struct as structs
from tlmem.runtime.ownership.holders import describe
from tlmem.runtime.ownership.struct import Struct

FIRST_ROOM = 4
TAKING = core.holder(core.FOREIGN, core.label("pop"))


class Vec(Struct):
    """A vector that grows at its end; made by ``vec``.

    It is a struct whose fields are ``0`` to ``len(v) - 1``: what takes a struct takes a vector, and
    owns it by the same rules. A value that is not a tensor, struct or container is kept as it is
    and owns nothing.

    Attributes:
        capacity: how many elements there is room for before it grows.
    """

    __slots__ = ("_block", "capacity")

    _block: int
    capacity: int

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Vec.__slots__:
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    # ---- growing ----

    def push(self, value: Any) -> None:
        """Adds an element at the end; it is acquired, or gives its count when it was moved.

        Args:
            value: a tensor or struct; a dataclass, dict, list or tuple becomes a struct.
        Raises:
            UseAfterFree: the vector or the element was freed; nothing was added.
            ValueError: the vector is in the element, and would hold itself.
            MemoryError: there is no room; the vector is as it was.
        """
        self._require("push to")
        blueprint = structs._blueprint_of(value, {})
        self._require_acyclic(blueprint)
        is_container = isinstance(blueprint, structs._Blueprint)
        made = structs._make(blueprint, None, {}) if is_container else value
        place = len(self._values)
        self._make_room(place + 1)
        self._put(place, made)

    def extend(self, values: Iterable[Any]) -> None:
        """``push`` of each value, in order; those before one that is refused are added."""
        for each in values:
            self.push(each)

    def _make_room(self, count: int) -> None:
        """A larger block takes the place of one that is full."""
        if count > self.capacity:
            self._hold_in(max(FIRST_ROOM, 2 * self.capacity, count), self._values)

    def _hold_in(self, capacity: int, values: list[Any]) -> None:
        """A block of this room that holds these elements takes the place of the one before."""
        made = ffi.new("tlm_object *")
        try:
            check(lib.tlm_struct_create(core.label("list{}"), capacity, made), "grow", self)
            for place, value in enumerate(values):
                if isinstance(value, core.Reference):
                    check(lib.tlm_struct_set(made[0], place, value.handle), "grow", self)
            status = lib.tlm_struct_move(self.handle, 0, made[0], core.FLOATING_HOLDER)
            check(status, "grow", self)
            self._block, self.capacity, self._values = made[0], capacity, values
        except BaseException:  # Ctrl-C as well
            if core.FLOATING_HOLDER in core.holders_of(made[0]):
                lib.tlm_release(made[0], core.FLOATING_HOLDER)
            elif made[0] and self._block != made[0]:
                self._block, self.capacity, self._values = made[0], capacity, values
            raise

    # ---- taking out ----

    def pop(self, at: int = -1) -> Any:
        """Takes an element out, those behind it move up, and returns it.

        Its count goes to the innermost scope, outside any to its handle; one that a scope has
        already, or that its handle owns, stays with them.

        Raises:
            IndexError: there is no such element. UseAfterFree: the vector was freed.
            MemoryError: there is none for the elements that move up; nothing happened.
        """
        self._require("pop from")
        place = self._place(at)
        value = self._values[place]
        is_counted = isinstance(value, core.Reference) and value.handle != 0
        contexts.settle()
        try:
            if is_counted:
                check(lib.tlm_acquire(value.handle, TAKING), "pop", value)
            if place == len(self._values) - 1:
                self._clear_from(place)
            else:
                rest = [*self._values[:place], *self._values[place + 1 :]]
                self._hold_in(self.capacity, rest)
            if is_counted:
                self._hand_out(value)
        except BaseException:
            if is_counted and TAKING in core.holders_of(value.handle):
                lib.tlm_release(value.handle, TAKING)
            raise
        return value

    def clear(self) -> None:
        """Lets go of all elements, the last one first; the room stays.

        Raises:
            UseAfterFree: the vector was freed.
        """
        self._require("clear")
        self._clear_from(0)

    def _clear_from(self, count: int) -> None:
        while len(self._values) > count:
            del self._values[-1]  # first: what the block still holds beyond them does no harm
            place = len(self._values)
            check(lib.tlm_struct_set(self._block, place, 0), "empty a field of", self)

    @staticmethod
    def _hand_out(value: Any) -> None:
        """Gives the count that ``pop`` acquired to a scope, or to a handle that has none."""
        if value._holder or describe(value.handle).scope:
            lib.tlm_release(value.handle, TAKING)
        elif scope := lib.tlm_scope_current():
            check(lib.tlm_register_from(scope, value.handle, TAKING), "register", value)
            value._scope = scope
        else:
            holder = core.new_holder(core.HANDLE)
            value._holder = holder  # before it has: Ctrl-C comes only after the call
            status = lib.tlm_move(value.handle, TAKING, holder)
            if status:
                value._holder = 0
                core.raise_for(status, "own", value)

    # ---- what differs from a struct ----

    @property
    def fields(self) -> tuple[int, ...]:
        """``0`` to ``len(v) - 1``."""
        return tuple(range(len(self._values)))

    def __iter__(self) -> Iterator[Any]:
        """The elements."""
        at = 0
        while at < len(self._values):
            yield self._read(at)
            at += 1

    def _place(self, key: Any) -> int:
        count = len(self._values)
        if isinstance(key, bool) or not isinstance(key, int):
            raise TypeError(f"an element of {self._name()} has a whole number, not {key!r}")
        if not -count <= key < count:
            raise IndexError(f"{self._name()} has no element {key}")
        return key % count

    def _put(self, place: int, value: Any) -> None:
        """The element takes the value; that behind the last one is a new element."""
        self._hold(self._block, place, value)
        if place == len(self._values):
            self._values.append(value)
        else:
            self._values[place] = value

    def _twin(self) -> Vec:
        twin = _blank()
        twin._values, twin._made, twin.escaped = self._values, self._made, self.escaped
        twin._block, twin.capacity = self._block, self.capacity
        twin._take_over(self)
        self._ended = core.here()
        return twin

    def _name(self) -> str:
        return f"vector of {len(self._values)}"

    def __repr__(self) -> str:
        if not self.alive:
            return f"<{self._name()}, {'moved' if self._moved else 'freed'}>"
        return f"Vec([{', '.join(map(repr, self._values))}])"


def vec(values: Iterable[Any] = ()) -> Vec:
    """A vector of these elements, each acquired, that grows by ``push``.

    It belongs to the innermost scope, or outside any to its handle, and lets go of its elements
    when it is freed, depth first, the last one first.

    Args:
        values: tensors, structs, or containers that become structs; others are kept as they are.
    Raises:
        UseAfterFree: an element was freed; nothing was made then.

    Source: docs/seed-map.md, S8.
    """
    blueprints = [structs._blueprint_of(each, {}) for each in values]
    contexts.settle()
    made, created = _blank(), ffi.new("tlm_object *")
    try:
        check(lib.tlm_struct_create(core.label("Vec{items}"), 1, created), "make", "a vector")
        made._name_object(created[0])
        made._holder = core.FLOATING_HOLDER
        made._make_room(max(FIRST_ROOM, len(blueprints)))
        for place, each in enumerate(blueprints):
            is_container = isinstance(each, structs._Blueprint)
            made._put(place, structs._make(each, None, {}) if is_container else each)
        check(made._adopt(made.handle, core.INNERMOST), "own", made)
    except BaseException:
        if core.FLOATING_HOLDER in core.holders_of(created[0]):
            made._holder = 0
            lib.tlm_release(created[0], core.FLOATING_HOLDER)
        raise
    return made


def _blank() -> Vec:
    made = object.__new__(Vec)
    made._type_name, made._places, made._values = "Vec", {}, []
    made._is_sequence, made._block, made.capacity = True, 0, 0
    made._made, made._ended, made.escaped = core.here(), None, False
    return made
