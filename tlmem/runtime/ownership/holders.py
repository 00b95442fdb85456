"""Counts with a name: acquire and release say who holds, and a move hands a count over.

Covers: what a program says of its own tensors and structs. Does not cover: scopes (``scope``),
fields (``struct``), pools and parameters, which hold under names of their own.
See also: docs/reference/runtime.md, "Holders".
"""

from __future__ import annotations

from typing import Any, TypeVar

from tlmem.runtime import core
from tlmem.runtime.core import check, ffi, lib
from tlmem.runtime.tensors import storage

Thing = TypeVar("Thing")


def acquire(thing: Thing, holder: str = "cache") -> Thing:
    """One more count of a tensor or struct, for a holder of this name; one name may hold several.

    Returns:
        The same thing.
    Raises:
        UseAfterFree: it was freed.
    """
    check(lib.tlm_acquire(_handle(thing, "acquire"), named(holder)), "acquire", thing)
    return thing


def release(thing: Any, holder: str = "cache") -> None:
    """Takes one count of the holder away; with the last count of all the memory is freed.

    Raises:
        NotAHolder: no holder of this name has one.
        UseAfterFree: it was freed.
    """
    check(lib.tlm_release(_handle(thing, "release"), named(holder)), "release", thing)


def release_safe(thing: Any) -> None:
    """Drops the caller's own count: the handle's, else the scope's, else one that floats.

    The payload goes at once when that was the last count; a holder elsewhere keeps it. What is
    freed, moved, or held by others only stays as it is, so a repeat does nothing.

    Source: ``release_safe`` of TensorLogic (S31).
    """
    if isinstance(thing, core.Reference) and thing._moved:
        return
    handle = _handle(thing, "release")
    held = thing._holder
    thing._holder = 0
    if held:
        if is_alive(handle):
            lib.tlm_release(handle, held)
        return
    if scope_of(handle):
        check(lib.tlm_unregister(handle), "release", thing)
    if core.FLOATING_HOLDER in core.holders_of(handle):
        lib.tlm_release(handle, core.FLOATING_HOLDER)


def move(thing: Thing) -> Thing:
    """Gives the caller's own count to a new handle: no acquire, no release.

    The count leaves the scope or the old handle and floats with the new one: a field, a pool or a
    scope that is given the new handle takes it over; otherwise it ends with the handle.

    Returns:
        Another handle of the same object. The old one raises ``UseAfterMove`` from now on.
    Raises:
        NotAHolder: the caller owns nothing of it, others hold it.
        InArena: its memory, or that of a field of it, ends with its scope.
        UseAfterFree: it was freed.

    Source: the move at the last use of TensorLogic (S21).
    """
    handle = _handle(thing, "move")
    own: Any = thing
    own._require("move")
    if not own._holder:
        check(lib.tlm_may_leave(handle), "move", own)
    former, in_scope, floating = own._holder, scope_of(handle), core.FLOATING_HOLDER
    own._holder = floating if handle else 0  # before it does: Ctrl-C comes only after the call
    if not former and in_scope:
        status = lib.tlm_unregister(handle)
    else:
        status = lib.tlm_move(handle, former or floating, floating)
    if status:
        own._holder = former
        core.raise_for(status, "move", own)
    twin: Any = storage.moved(own) if isinstance(own, storage.Storage) else own._twin()
    return twin


def own_count(thing: Any) -> int:
    """The count a caller may hand over: its handle's, else its scope's, else one that floats."""
    if thing._holder:
        return thing._holder
    scope = scope_of(thing.handle)
    return core.holder(core.SCOPE, scope) if scope else core.FLOATING_HOLDER


def named(holder: str) -> int:
    """The holder of a name that the program chose."""
    if not isinstance(holder, str) or not holder:
        raise TypeError(f"a holder is a text that is not empty, not {holder!r}")
    return core.holder(core.FOREIGN, core.label(holder))


def describe(handle: int) -> Any:
    """``tlm_object_info`` of an object; one that is not alive when its slot has a new tenant."""
    info = ffi.new("tlm_object_info *")
    lib.tlm_object_describe(handle, info)
    return info


def is_alive(handle: int) -> bool:
    """Whether an object is alive; asking does not count as a use."""
    return bool(describe(handle).alive)


def scope_of(handle: int) -> int:
    """Number of the scope that an object is registered in; 0 for none."""
    return describe(handle).scope


def _handle(thing: Any, doing: str) -> int:
    if not isinstance(thing, core.Reference):
        raise TypeError(
            f"cannot {doing} {type(thing).__name__}: it is not an object of tlmem; give a "
            "tensor or a struct"
        )
    core.require_not_moved(thing, doing)
    return thing.handle
