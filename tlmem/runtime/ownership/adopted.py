"""Things that tlmem did not make, in scopes: known by identity, freed by their own ``free()``.

A registered thing gets an object of tlmem without memory, so that its history is recorded like that
of any other. While a scope has it, it is kept alive; once it has escaped, it is the program's and
only its end is noticed. PyTorch frees a tensor when its last reference goes: a scope keeps no
reference to it, and counts whether it was still alive when the scope ended.

Covers: what ``scope`` does for a thing without ``_holder``, and what its ``free()`` raised.
Does not cover: memory of others under a tensor (``interop``).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import ref

from tlmem.runtime import core
from tlmem.runtime.core import check, ffi, lib
from tlmem.runtime.errors import NotRegistered
from tlmem.runtime.ownership.holders import scope_of

NEEDED = ("handle", "escaped", "mark_escaped")
SPELLINGS = {"mark_escaped": "markEscaped"}
"""What an object written for ts-torch calls the same."""
_CALL = ffi.addressof(lib, "tlm_python_drop_call")
_DEVICE = lib.TLM_DEVICE_FOREIGN


class _Adopted:
    """The object of tlmem that stands for a thing, and what keeps the thing alive meanwhile."""

    __slots__ = ("holder", "key", "object", "thing", "weak")

    def __init__(self, thing: Any) -> None:
        self.key = id(thing)
        self.thing: Any = thing  # None: it has left, and its end is the program's
        self.holder = 0  # of its handle, once it has escaped
        self.weak: Any = None
        made = ffi.new("tlm_object *")
        ended = self.ended
        kept = lib.tlm_python_keep(id(ended))
        try:
            status = lib.tlm_object_adopt(_DEVICE, ffi.NULL, 0, _CALL, kept, made)
            if status:
                lib.tlm_python_drop_reference(kept)
                check(status, "register", thing)
            self.object = made[0]
            _known[self.key] = self
        except BaseException:  # Ctrl-C: nothing would hold the object
            self.thing = None
            lib.tlm_release(made[0], core.FLOATING_HOLDER)
            raise

    def ended(self) -> None:
        """The core calls it when the object is freed, from whatever thread."""
        if _known.get(self.key) is self:
            del _known[self.key]
        thing, self.thing = self.thing, None
        try:
            free = getattr(thing, "free", None)
            if free is not None and not thing.escaped:
                free()
        except BaseException as error:
            if _here.problems is None:
                raise
            _here.problems.append(error)

    def enter(self, scope: int) -> int:
        """Into a scope, from nowhere or from its handle; the status."""
        if self.holder:
            status = lib.tlm_register_from(scope, self.object, self.holder)
        else:
            status = lib.tlm_register_in(scope, self.object)
        return status

    def entered(self, thing: Any) -> None:
        """A scope has it now, and keeps it alive."""
        self.thing, self.holder, self.weak = thing, 0, None

    def escape(self) -> int:
        """Out of its scope, to a handle, which holds the object as long as the thing lives."""
        if self.holder:
            return lib.TLM_OK
        holder = core.new_holder(core.HANDLE)
        status = lib.tlm_escape(self.object, holder)
        if status:
            return status
        thing, self.holder = self.thing, holder
        try:
            self.weak = ref(thing, lambda _: self.forget())
        except TypeError:
            self.forget()
        self.thing = None
        return lib.TLM_OK

    def unregistered(self) -> None:
        """It has left its scope and is the program's."""
        self.forget()

    def forget(self) -> None:
        """Ends the object of tlmem, without an end for the thing; it floats or has escaped."""
        self.thing = None
        lib.tlm_release(self.object, self.holder or core.FLOATING_HOLDER)


class _Dropped(_Adopted):
    """The same for what is freed by dropping it, as a tensor of PyTorch: it is never kept alive.

    A handle holds the object from the beginning, as long as the thing lives. So what is alive when
    its scope ends outlives the scope, as a tensor of ours does that somebody else holds.
    """

    __slots__ = ()

    def __init__(self, thing: Any) -> None:
        super().__init__(thing)
        self.thing = None
        holder = core.new_holder(core.HANDLE)
        check(lib.tlm_acquire(self.object, holder), "register", thing)
        self.holder = holder
        self.weak = ref(thing, lambda _: self.forget())

    def enter(self, scope: int) -> int:
        """Into a scope, with one more count; the status."""
        return lib.tlm_register_in(scope, self.object)

    def entered(self, thing: Any) -> None:
        """A scope has it now, and so has its handle."""

    def escape(self) -> int:
        """Out of its scope; its handle stays."""
        status = lib.tlm_escape(self.object, self.holder)
        if status == lib.TLM_OK:
            status = lib.tlm_release(self.object, self.holder)
        return lib.TLM_OK if status == lib.TLM_NOT_REGISTERED else status

    def unregistered(self) -> None:
        """It has left its scope; its handle stays."""
        lib.tlm_release(self.object, core.FLOATING_HOLDER)

    def forget(self) -> None:
        """The thing is gone, and with it the object, whatever scope has it."""
        lib.tlm_free(self.object)


def is_dropped(thing: Any) -> bool:
    """Whether a thing is freed by dropping it: a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor)


_known: dict[int, _Adopted] = {}


def register(scope: int, thing: Any) -> None:
    """Lets a scope own a thing; one that a scope has already stays there.

    Raises:
        TypeError: it does not have what a scope needs.
        NotInScope: there is no such scope.
    """
    missing = [name for name in NEEDED if not has(thing, name)]
    if missing and not is_dropped(thing):
        raise TypeError(
            f"cannot register {type(thing).__name__}: it has no {', '.join(missing)}; a scope "
            f"needs {', '.join(NEEDED)} (or markEscaped)"
        )
    known = _known.get(id(thing))
    try:
        found = known or (_Dropped if is_dropped(thing) else _Adopted)(thing)
        status = found.enter(scope)
        if status == lib.TLM_ALREADY_REGISTERED:
            return
        check(status, "register", thing)
    except BaseException:  # also Ctrl-C anywhere in between
        fresh = _known.get(id(thing))
        if fresh is not None and fresh is not known and not scope_of(fresh.object):
            fresh.forget()
        raise
    found.entered(thing)


def leave(thing: Any, function: Callable[[int], int], doing: str) -> None:
    """Takes a thing out of its scope; after ``unregister`` it is the program's.

    Raises:
        NotRegistered: no scope has it.
    """
    found = _known.get(id(thing))
    if found is None:
        raise NotRegistered(
            f"cannot {doing} {core.subject_text(thing)}: no scope has it; register it first"
        )
    check(function(found.object), doing, thing)
    if doing == "unregister" or is_dropped(thing):
        found.unregistered()


def escape(thing: Any) -> int:
    """Gives a thing to the program; the status. One that no scope has is only marked."""
    found = _known.get(id(thing))
    if found is None:
        if not lib.tlm_scope_current():
            return lib.TLM_NOT_IN_SCOPE
    else:
        status = found.escape()
        if status:
            return status
    if not is_dropped(thing):
        mark_escaped(thing)
    return lib.TLM_OK


def has(thing: Any, name: str) -> bool:
    """Whether a thing has what a scope needs, under either spelling."""
    return hasattr(thing, name) or hasattr(thing, SPELLINGS.get(name, name))


def mark_escaped(thing: Any) -> None:
    """Tells a thing that it has left its scope."""
    mark = getattr(thing, "mark_escaped", None) or thing.markEscaped
    mark()


def give_up(thing: Any) -> None:
    """Takes a thing out of our hands, for a pool that will have it; nothing when it is not in."""
    found = _known.get(id(thing))
    if found is None:
        return
    if scope_of(found.object):
        lib.tlm_unregister(found.object)
        found.unregistered()
    elif not is_dropped(thing):
        found.forget()


# ---- what free() raised ----


class _Here(threading.local):
    """Of the calling thread: what was raised by ``free()`` while a scope ends; None: none does."""

    problems: list[BaseException] | None = None


_here = _Here()


def begin_collecting() -> list[BaseException] | None:
    """From now on exceptions of ``free()`` are kept; what ``end_collecting`` wants to have back."""
    before = _here.problems
    _here.problems = []
    return before


def end_collecting(before: list[BaseException] | None) -> list[BaseException]:
    """What was raised since the beginning."""
    found = _here.problems
    _here.problems = before
    return found or []


def report(problems: list[BaseException], error: BaseException | None, doing: str) -> None:
    """Raises problems, a group of several; with an error on its way they become notes of it."""
    if error is not None and not isinstance(error, GeneratorExit):
        for problem in problems:
            error.add_note(f"{doing} raised {type(problem).__name__}: {problem}")
        return
    if len(problems) == 1:
        raise problems[0]
    raise BaseExceptionGroup(f"{doing} raised {len(problems)} exceptions", problems)
