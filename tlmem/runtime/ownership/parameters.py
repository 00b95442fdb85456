"""Parameters: tensors that live under a name until they are dropped, whatever scopes end meanwhile.

The registry is one for the process. It holds each tensor or struct by a count of its own.
See also: docs/reference/runtime.md, "Parameters".
"""

from __future__ import annotations

from threading import RLock
from typing import Any, TypeVar

from tlmem.runtime import core
from tlmem.runtime.core import check, lib
from tlmem.runtime.ownership.holders import is_alive
from tlmem.runtime.ownership.struct import Struct

Thing = TypeVar("Thing")

_parameters: dict[str, Any] = {}
_lock = RLock()  # may be entered again, by garbage collection


def register_parameter(name: str, thing: Thing) -> Thing:
    """Keeps a tensor or struct under a name: one more count, held by the registry.

    A name that is there already gets the new value; it is acquired before the old one is released.

    Returns:
        The same thing.
    Raises:
        TypeError: the name is not a text, or empty, or the thing is not tlmem's.
        UseAfterFree: the thing was freed.
    Source: TensorLogic V1 (S7).
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a parameter is a text that is not empty, not {name!r}")
    if not isinstance(thing, core.Reference):
        raise TypeError(
            f"cannot keep {type(thing).__name__} as parameter {name!r}; give a tensor or a struct"
        )
    thing._require("keep")  # type: ignore[attr-defined]
    holder = _holder(name)
    with _lock:
        former = _parameters.get(name)
        _parameters[name] = thing
        status = 0
        try:
            status = lib.tlm_acquire(thing.handle, holder)
        finally:  # after Ctrl-C too
            if status:
                _put_back(name, former)
            elif former is not None and is_alive(former.handle):
                lib.tlm_release(former.handle, holder)
    check(status, "keep", thing)
    return thing


def parameter(name: str) -> Any:
    """The tensor or struct of a name; borrowed, no event.

    Raises:
        KeyError: there is none.
    """
    try:
        return _parameters[name]
    except KeyError:
        raise _unknown(name) from None


def drop_parameter(name: str) -> None:
    """Takes a name out of the registry; with the last count its memory is freed.

    Raises:
        KeyError: there is none.
    """
    try:
        former = _parameters.pop(name)
    except KeyError:
        raise _unknown(name) from None
    _let_go(name, former)


def parameter_names() -> list[str]:
    """Names in the registry, in the order of their first registration."""
    return list(_parameters)


def parameters() -> list[Any]:
    """The registered tensors that require a gradient, and those in registered structs, each once.

    What an optimiser takes: ``tlmem.optim.SGD(tlmem.parameters(), lr=0.1)``.
    """
    found: dict[int, Any] = {}
    for thing in list(_parameters.values()):
        inside = thing.parameters() if isinstance(thing, Struct) else [thing]
        found.update({each.handle: each for each in inside if each.requires_grad})
    return list(found.values())


def _holder(name: str) -> int:
    return core.holder(core.REGISTRY, core.label(name))


def _put_back(name: str, former: Any) -> None:
    if former is None:
        del _parameters[name]
    else:
        _parameters[name] = former


def _let_go(name: str, former: Any) -> None:
    check(lib.tlm_release(former.handle, _holder(name)), f"drop parameter {name!r}:", former)


def _unknown(name: str) -> KeyError:
    known = ", ".join(map(repr, _parameters)) or "none"
    return KeyError(f"no parameter {name!r} is registered; registered are {known}")
