"""Structs: dataclasses, dicts, lists and tuples whose fields hold tensors, counted by the core.

Covers: making a struct, reading a field (borrowed: no event), overwriting one (the new value is
acquired before the old one is released), moving a value into one, the gradients under the names
of the fields. Does not cover: who owns the struct itself; that is as for tensors (``scope``,
``holders``).
See also: docs/reference/runtime.md, "Structs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from tlmem.runtime import contexts, core
from tlmem.runtime.core import check, ffi, lib
from tlmem.runtime.errors import DoubleFree, UseAfterMove
from tlmem.runtime.ownership.holders import is_alive
from tlmem.runtime.tensors.storage import Storage

_NOT_IN_NAMES = str.maketrans("{},", "___")


class _Blueprint(NamedTuple):
    """A container as it will be: nothing of the core has been touched yet."""

    type_name: str
    keys: tuple[Any, ...]
    members: list[Any]  # blueprints, references, plain values
    is_sequence: bool


class Struct(core.Reference):
    """An object whose fields hold tensors and structs, each under a name; made by ``struct``.

    Fields are read and written as attributes or items; a field named like an attribute of the class
    is reached as an item only. A value that is not a tensor, struct or container is kept as it is
    and owns nothing. A struct without fields is the null object: handle 0, no memory, no event.

    Attributes:
        fields: the names of the fields, or the indexes of a list or tuple.
        handle: its object, as a number.
        escaped: whether it was taken out of its scope by ``escape``.
    """

    __slots__ = ("_ended", "_is_sequence", "_made", "_places", "_type_name", "_values", "escaped")

    _type_name: str
    _places: dict[Any, int]
    _values: list[Any]
    _is_sequence: bool
    _made: core.Place | None
    _ended: core.Place | None
    escaped: bool

    # ---- fields ----

    @property
    def fields(self) -> tuple[Any, ...]:
        """Names of the fields, or indexes."""
        return tuple(self._places)

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or name not in self._places:
            raise AttributeError(f"{self._name()} has no field {name!r}", name=name, obj=self)
        return self._read(self._places[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            object.__setattr__(self, name, value)
        elif name in self._places:
            self._write(self._places[name], value)
        else:
            raise AttributeError(
                f"{self._name()} has no field {name!r}; fields are fixed when a struct is made",
                name=name,
                obj=self,
            )

    def __getitem__(self, key: Any) -> Any:
        return self._read(self._place(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._write(self._place(key), value)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        """Values of a list or tuple, names of anything else."""
        return iter(self._values if self._is_sequence else self._places)

    def __contains__(self, key: Any) -> bool:
        return key in (self._values if self._is_sequence else self._places)

    def _place(self, key: Any) -> int:
        if self._is_sequence and isinstance(key, int) and key < 0:
            key += len(self._values)
        try:
            return self._places[key]
        except KeyError:
            kind = IndexError if self._is_sequence else KeyError
            known = ", ".join(map(str, self._places)) or "no fields"
            raise kind(f"{self._name()} has no field {key!r}; it has {known}") from None

    def _read(self, place: int) -> Any:
        self._require("read")
        return self._values[place]

    def _write(self, place: int, value: Any) -> None:
        self._require("write to")
        blueprint = _blueprint_of(value, {})
        self._require_acyclic(blueprint)
        self._put(place, _make(blueprint, None, {}) if isinstance(blueprint, _Blueprint) else value)

    def _require_acyclic(self, value: Any) -> None:
        """Raises when a value or blueprint that is to come into it holds it."""
        if _holds(value, self.handle):
            raise ValueError(
                f"cannot write {self._name()} into itself: a cycle would hold it forever; break it"
            )

    def _put(self, place: int, value: Any) -> None:
        """The field takes the value."""
        self._hold(self.handle, place, value)
        self._values[place] = value

    def _hold(self, block: int, place: int, value: Any) -> None:
        """A field of a block takes the value: the count of a moved one, else one more."""
        if not isinstance(value, core.Reference):
            check(lib.tlm_struct_set(block, place, 0), "empty a field of", self)
        elif value._holder == core.FLOATING_HOLDER:
            moved = lib.tlm_struct_move(block, place, value.handle, core.FLOATING_HOLDER)
            check(moved, "move into a field of", self)
            value._holder = 0
        else:
            check(lib.tlm_struct_set(block, place, value.handle), "set a field of", self)

    # ---- gradients ----

    @property
    def grad(self) -> StructGrads:
        """The gradients of its tensors under the names of its fields, read when asked for.

        Raises:
            UseAfterFree: it is freed.
        """
        self._require("read the gradients of")
        return StructGrads(self)

    def parameters(self) -> list[Any]:
        """The tensors in it that require a gradient, and in the structs inside it, each once.

        Raises:
            UseAfterFree: it is freed.
        """
        self._require("read")
        found = {each.handle: each for each in parameters_in(self) if each.requires_grad}
        return list(found.values())

    # ---- its life ----

    @property
    def alive(self) -> bool:
        """Whether it may be used. Never an error, and no event."""
        return not self._moved and (self.handle == 0 or bool(self._described().alive))

    @property
    def count(self) -> int:
        """How many counts its holders have together; 0 when it is freed or null."""
        info = self._described()
        return int(info.count) if info.alive else 0

    def holders(self) -> list[str]:
        """Who holds it, one text for each count, such as ``scope 'epoch' #3``."""
        return [core.holder_text(holder) for holder in core.holders_of(self.handle)]

    def mark_escaped(self) -> None:
        """Says that it was taken out of its scope; ``escape`` does both."""
        self.escaped = True

    markEscaped = mark_escaped

    def escape(self) -> Struct:
        """Takes it out of its scope; its fields stay where they are. Outside any, nothing happens.

        Raises:
            UseAfterFree: it is freed.
        """
        self._require("escape")
        contexts.settle()
        if self._holder == 0 and lib.tlm_scope_current() != 0:
            check(core.escape_to_handle(self), "escape", self)
            self.mark_escaped()
        return self

    def free(self) -> None:
        """Ends it now, whatever holds it: its fields let go, depth first.

        Raises:
            DoubleFree: it was freed already.
            UseAfterMove: ``move`` gave it to another name.
        """
        if self._moved:
            self._require("free")
        if lib.tlm_free(self.handle):
            freed = self._freed_by()
            raise DoubleFree(
                f"cannot free {core.subject_text(self)} again: it was freed {freed or 'before'}; "
                "free it once, or leave it to its scope",
                object=self.handle,
                allocated=self._allocated_at(),
                freed=freed,
                advice="free it once, or leave it to its scope",
            )
        self._holder = 0
        self._ended = core.here()

    def _described(self) -> Any:
        info = ffi.new("tlm_object_info *")
        lib.tlm_object_describe(self.handle, info)
        return info

    def _require(self, doing: str) -> None:
        """Raises when it may not be used."""
        if self._moved:
            raise UseAfterMove(
                f"cannot {doing} {core.subject_text(self)}: this name of it was moved at "
                f"{core.place_text(self._ended)}; use the struct that move returned",
                object=self.handle,
                allocated=self._allocated_at(),
                freed=f"moved at {core.place_text(self._ended)}",
                advice="use the struct that move returned",
            )
        check(lib.tlm_check(self.handle), doing, self)

    def _twin(self) -> Struct:
        """Another handle of the same struct that takes this one's count."""
        twin = _blank(self._type_name, self.fields, self._is_sequence)
        twin._values, twin._made, twin.escaped = self._values, self._made, self.escaped
        twin._take_over(self)
        self._ended = core.here()
        return twin

    # ---- what errors say of it ----

    def _name(self) -> str:
        return f"struct {layout_of(self._type_name, self.fields, self._is_sequence)}"

    def _part_text(self, handle: int) -> str:
        """What the object of this handle is in it: ``field 'layer.w'``."""
        waiting: list[tuple[str, Any]] = [("", self)]
        seen = set()
        while waiting:
            path, each = waiting.pop()
            if handle in (each.handle, getattr(each, "_base_handle", 0)):
                return f"field {path!r}"
            if isinstance(each, Struct) and each.handle not in seen:
                seen.add(each.handle)
                before = f"{path}." if path else ""
                parts = zip(each.fields, each._values, strict=True)
                waiting += [(f"{before}{k}", v) for k, v in parts if isinstance(v, core.Reference)]
        return f"object {handle}"

    def _allocated_at(self) -> str:
        return core.place_text(self._made)

    def _freed_by(self) -> str:
        return core.ended_by_hand(self) or (core.freed_by(self.handle) if self.handle else "")

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot copy or pickle {self._name()}; make another one of its values")

    def __repr__(self) -> str:
        if not self.alive:
            return f"<{self._name()}, {'moved' if self._moved else 'freed'}>"
        shown = ", ".join(
            f"{key}={value!r}" for key, value in zip(self.fields, self._values, strict=True)
        )
        return f"{self._type_name}({shown})"


_OWN = frozenset([*Struct.__slots__, "_holder", "_scope", "_moved"])


def struct(value: Any, name: str | None = None) -> Struct:
    """A struct of a dataclass, dict, list or tuple; containers inside become structs of their own.

    Each tensor and struct gets one more count, held by its field; a value fresh from ``move`` gives
    its own. The struct belongs to the innermost scope, or outside any to its handle, and lets go of
    its fields when it is freed, depth first. One container that occurs twice is shared.

    Args:
        value: what it is made of; it is not kept and not changed.
        name: the type's name in recordings; the class name by default.
    Raises:
        TypeError: it is none of these.
        ValueError: a container contains itself.
        UseAfterFree: a tensor in it was freed; nothing was made then.
    """
    blueprint = _blueprint_of(value, {})
    if not isinstance(blueprint, _Blueprint):
        raise TypeError(
            f"cannot make a struct of {type(value).__name__}; give a dataclass, dict, list or tuple"
        )
    contexts.settle()
    made = _make(blueprint, name, {})
    if made.handle:
        check(made._adopt(made.handle, core.INNERMOST), "own", made)
    return made


def layout_of(type_name: str, keys: tuple[Any, ...], is_sequence: bool) -> str:
    """``Layer{weight,bias}``; an index is its own name and is left out: ``list{}``."""
    names = [] if is_sequence else map(str, keys)
    return f"{type_name}{{{','.join(text.translate(_NOT_IN_NAMES) for text in names)}}}"


def _blueprint_of(value: Any, seen: dict[int, _Blueprint | None]) -> Any:
    """The blueprint of a container, or the value itself; every tensor in it is alive."""
    if isinstance(value, core.Reference):
        value._require("put into a struct")  # type: ignore[attr-defined]
        return value
    is_sequence = isinstance(value, list | tuple)
    keys: tuple[Any, ...]
    parts: list[Any]
    if is_sequence:
        keys, parts = tuple(range(len(value))), list(value)
    elif isinstance(value, dict):
        keys, parts = tuple(value), list(value.values())
    elif is_dataclass(value) and not isinstance(value, type):
        keys = tuple(field.name for field in fields(value))
        parts = [getattr(value, str(key)) for key in keys]
    else:
        return value
    known = seen.get(id(value), value)
    if known is None:
        raise ValueError(
            f"cannot make a struct of {type(value).__name__}: it contains itself, and its fields "
            "would hold it forever; break the cycle"
        )
    if known is not value:
        return known
    seen[id(value)] = None
    members = [_blueprint_of(part, seen) for part in parts]
    blueprint = seen[id(value)] = _Blueprint(type(value).__name__, keys, members, is_sequence)
    return blueprint


def _holds(value: Any, struct: int) -> bool:
    """Whether a struct is, or is in, a value or blueprint; what was freed holds nothing."""
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, Struct):
            if each.handle == struct:
                return True
            if each.handle not in seen and is_alive(each.handle):
                seen.add(each.handle)
                waiting += each._values
        elif isinstance(each, _Blueprint):
            waiting += each.members
    return False


def _make(blueprint: _Blueprint, name: str | None, made: dict[int, Struct]) -> Struct:
    """The struct of a blueprint; it floats with its handle until it is taken over."""
    if id(blueprint) in made:
        return made[id(blueprint)]
    found = made[id(blueprint)] = _blank(
        name or blueprint.type_name, blueprint.keys, blueprint.is_sequence
    )
    layout = core.label(layout_of(found._type_name, blueprint.keys, blueprint.is_sequence))
    created = ffi.new("tlm_object *")
    try:
        status = lib.tlm_struct_create(layout, len(blueprint.keys), created)
        if not created[0]:
            check(status, "make", found._name())
            return found
        found._name_object(created[0])
        found._holder = core.FLOATING_HOLDER
        for place, member in enumerate(blueprint.members):
            is_container = isinstance(member, _Blueprint)
            found._put(place, _make(member, None, made) if is_container else member)
    except BaseException:
        found._holder = 0
        lib.tlm_release(created[0], core.FLOATING_HOLDER)
        raise
    return found


def _blank(type_name: str, keys: tuple[Any, ...], is_sequence: bool) -> Struct:
    made = object.__new__(Struct)
    made._type_name = type_name
    made._places = {key: place for place, key in enumerate(keys)}
    made._values = [None] * len(keys)
    made._is_sequence = is_sequence
    made._made, made._ended, made.escaped = core.here(), None, False
    return made


# ---- gradients under the names of the fields ----


class StructGrads(Mapping[Any, Any]):
    """Field -> gradient of its tensor or None, or the gradients of its struct; read only.

    A field is read as an attribute or item, each time anew. Fields that are neither a tensor nor a
    struct are left out.
    """

    __slots__ = ("_struct",)

    def __init__(self, struct: Any) -> None:
        object.__setattr__(self, "_struct", struct)

    def __getitem__(self, key: Any) -> Any:
        value = self._struct[key]
        if not has_gradients(value):
            name = self._struct._name()
            raise KeyError(f"field {key!r} of {name} is neither a tensor nor a struct")
        return value.grad

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error.args[0]), name=name, obj=self) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"set the gradient of the tensor: struct.{name}.grad = ...", name=name, obj=self
        )

    def __iter__(self) -> Iterator[Any]:
        return (key for key in self._struct.fields if has_gradients(self._struct[key]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={self[key]!r}" for key in self)
        return f"StructGrads({shown})"


def has_gradients(value: Any) -> bool:
    """Whether a field's value has a gradient, or fields that may."""
    is_struct = isinstance(value, core.Reference) and hasattr(type(value), "parameters")
    return is_struct or isinstance(value, Storage)


def parameters_in(struct: Any) -> Iterator[Any]:
    """The tensors in a struct and in the structs inside it, in order; one that is shared, twice."""
    for key in struct.fields:
        value = struct[key]
        if isinstance(value, Storage):
            yield value
        elif has_gradients(value):
            yield from parameters_in(value)
