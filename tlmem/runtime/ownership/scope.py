"""Scopes: what is registered in one ends with it, last in first out, however the block is left.

Covers: the scopes of the running thread or asyncio task, what comes into them and what leaves them
before their end. Does not cover: scopes that are passed explicitly (``tensor_scope``), frames
(``frame``), what is not made by tlmem (``adopted``).

Nothing here knows the tensor class: a ``core.Reference`` is a name of one of our objects, and
anything else needs only ``handle``, ``escaped`` and ``mark_escaped``.
See also: docs/reference/runtime.md, "Scopes".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from threading import get_ident
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from tlmem.runtime import contexts, core
from tlmem.runtime.core import check, ffi, lib
from tlmem.runtime.errors import NotInScope, UnbalancedScope
from tlmem.runtime.ownership import adopted

Result = TypeVar("Result")
Thing = TypeVar("Thing")


@runtime_checkable
class ScopedTensor(Protocol):
    """What a scope needs of a thing. It calls ``free()`` at its end on a thing that has it."""

    @property
    def handle(self) -> Any:
        """A key of the thing's own; never taken for a pointer."""

    @property
    def escaped(self) -> bool:
        """Whether the thing has left its scope; a scope does not free it then."""

    def mark_escaped(self) -> None:
        """Called once when the thing leaves its scope by ``escape``."""


@dataclass(frozen=True, slots=True)
class ScopeStats:
    """What a scope has done; after its end ``allocations == frees + escaped + leaked``.

    Attributes:
        allocations: how many objects were registered in it.
        frees: how many of them it freed.
        escaped: how many left it before: escaped, promoted, unregistered, moved or pooled.
        leaked: how many were alive after its end because others hold them too.
        label: its name, or empty.
        id: its number, never used again.
    """

    allocations: int
    frees: int
    escaped: int
    leaked: int
    label: str
    id: int

    @classmethod
    def of(cls, found: Any) -> ScopeStats:
        """The statistics of the core."""
        text = core.label_text(found.label)
        return cls(found.allocations, found.frees, found.escaped, found.leaked, text, found.id)


class Scope:
    """One scope as a context manager; made by ``scope``.

    Attributes:
        id: number of the scope, 0 before it is entered; never used again.
        label: its name, or empty.
        depth: 1 for an outermost scope.
    """

    _word = "scope"

    __slots__ = ("_final", "_context", "_thread", "depth", "id", "label")

    def __init__(self, name: str | None = None) -> None:
        self.label = name or ""
        self.id = 0
        self.depth = 0
        self._final: Any = None  # the core's statistics at the end

    def __enter__(self) -> Self:
        if self.id and self._final is None:
            raise UnbalancedScope(
                f"cannot enter {self}: it is entered already; make another one with "
                f"tlmem.scope({self.label!r})"
            )
        contexts.settle()
        entered = ffi.new("uint64_t *")
        try:
            status = self._begin(core.label(self.label), entered)
            if status:
                core.raise_for(status, "enter", f"{self._word} {self.label!r}")
            self.id = entered[0]
            self.depth = lib.tlm_scope_depth()
            self._final = None
            self._context = contexts.in_force()
            self._thread = get_ident()
            core.remember_scope_left(self.id, self.label, None, self._word)
        except BaseException:  # Ctrl-C: there will be no __exit__
            self.id = 0
            if entered[0]:
                lib.tlm_scope_exit(entered[0], ffi.NULL)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Frees what is registered and not held by others.

        Raises:
            UnbalancedScope: an inner scope was still entered and was left first, this scope was
                left before, or it belongs to another thread.
            Exception: what ``free()`` of a registered thing raised; an ExceptionGroup of several.

        When the block itself failed, these become notes of its exception, which passes through.
        """
        if not self.id:
            raise UnbalancedScope(f"cannot leave {self}: it was not entered")
        is_here = False
        problems: list[BaseException]
        try:
            is_here = self._thread == get_ident()
            contexts.settle()
            context = contexts.in_force()
            is_here = is_here or (context is not None and context is self._context)
            if is_here:
                problems = self._leave()
            else:
                wrong = "was entered in another thread, and is still entered there"
                problems = [self._out_of_order(wrong)]
        except BaseException:  # Ctrl-C
            if is_here or self._thread == get_ident():
                self._leave_if_entered()
            raise
        if problems:
            adopted.report(problems, error, f"leaving {self}")

    @property
    def count(self) -> int:
        """How many objects were registered so far, escaped ones included."""
        return self.stats().allocations

    def stats(self) -> ScopeStats:
        """What the scope has done so far, or in all when it was left.

        Raises:
            NotInScope: it was not entered yet.
        """
        if self._final is not None:
            return ScopeStats.of(self._final)
        if not self.id:
            raise NotInScope(f"{self} was not entered yet; enter it with a with statement")
        return stats_of(self.id)

    def register(self, thing: Thing) -> Thing:
        """Registers a thing in this scope, whichever is the innermost; see ``register``.

        Raises:
            NotInScope: the scope is not entered.
            UseAfterFree: the thing was freed.
        """
        return register_in(self.id, thing)

    def __repr__(self) -> str:
        name = f"{self._word} {self.label!r}" if self.label else self._word
        return f"{name} (#{self.id})" if self.id else name

    # ---- what a frame does otherwise ----

    def _begin(self, label: int, out: Any) -> int:
        return lib.tlm_scope_enter(label, out)

    def _end(self, out: Any) -> int:
        return lib.tlm_scope_exit(self.id, out)

    # ---- leaving ----

    def _leave(self) -> list[BaseException]:
        """Ends the scope in the context where it was entered; what went wrong."""
        core.remember_scope_left(self.id, self.label, core.here(), self._word)
        found = ffi.new("tlm_scope_statistics *")
        before = adopted.begin_collecting()
        try:
            if self._context is contexts.in_force():
                status = self._end(found)
            else:
                with contexts.using(self._context):
                    status = self._end(found)
        finally:
            problems = adopted.end_collecting(before)
        self._final = found
        if status == lib.TLM_NOT_IN_SCOPE:
            found.id, found.label = self.id, core.label(self.label)
            problems.insert(0, self._out_of_order("was left already, or is just ending"))
        elif status:
            problems.insert(0, self._left_early())
        return problems

    def _leave_if_entered(self) -> None:
        """Ends the scope after an interrupt on the way to its end."""
        found = ffi.new("tlm_scope_statistics *")
        if lib.tlm_scope_stats(self.id, found) == lib.TLM_OK:
            with contexts.using(self._context):
                self._end(found)
        self._final = self._final or found

    def _left_early(self) -> UnbalancedScope:
        failure = ffi.new("tlm_failure *")
        lib.tlm_failure_last(failure)
        core.remember_scope_ended(failure.holder & core._NUMBER)
        innermost = core.holder_text(failure.holder)
        return self._out_of_order(
            f"was left while {innermost} inside it was still entered, which ended first"
        )

    def _out_of_order(self, wrong: str) -> UnbalancedScope:
        advice = "leave scopes where they were entered, in the reverse order"
        return UnbalancedScope(f"{self} {wrong}; {advice}", advice=advice)


def scope(name: str | None = None) -> Scope:
    """A scope to enter: ``with tlmem.scope("epoch") as s: ...``.

    Tensors that are made inside belong to it and end with it, though a variable still names them;
    using one after that raises ``UseAfterFree``. It belongs to the running thread or asyncio task.

    Args:
        name: its label in recordings and errors.
    """
    return Scope(name)


def run(function: Callable[[], Result], name: str | None = None) -> Result:
    """Calls a function inside a scope; its result or exception passes through unchanged.

    Source: the ``run`` of ts-torch (S36).
    """
    with Scope(name):
        return function()


async def run_async(function: Callable[[], Awaitable[Result]], name: str | None = None) -> Result:
    """Awaits what a function returns, in a scope that stays current across awaits, in this task.

    Tasks that are started inside begin at depth 0 and do not see the scope.

    Raises:
        TypeError: the function returned nothing that can be awaited; pass the coroutine function
            itself, not the coroutine.
    """
    if not callable(function):
        raise TypeError(
            f"run_async takes a function that returns a coroutine, not {type(function).__name__}; "
            "pass the function without calling it"
        )
    with Scope(name):
        return await function()


def register(thing: Thing) -> Thing:
    """Lets the innermost scope own a thing: its handle's count, or one that floats, or one more.

    Outside any scope nothing happens. A thing that a scope has already stays there; the attempt is
    recorded as misuse. A thing that is not of tlmem needs ``handle``, ``escaped`` and
    ``mark_escaped`` (or ``markEscaped``); it is known by its identity, and freed at the end if it
    has ``free()``. A tensor of PyTorch needs none of this: a scope does not keep it, and tells
    whether it was alive at the end.

    Returns:
        The same thing.
    Raises:
        UseAfterFree: it was freed.
        TypeError: it cannot be owned.
    """
    contexts.settle()
    innermost = lib.tlm_scope_current()
    return register_in(innermost, thing) if innermost else thing


def register_in(scope: int, thing: Thing) -> Thing:
    """The same in the scope of this number.

    Raises:
        NotInScope: there is none.
    """
    if not isinstance(thing, core.Reference):
        adopted.register(scope, thing)
        return thing
    core.require_not_moved(thing, "register")
    if thing._holder:
        status = lib.tlm_register_from(scope, thing.handle, thing._holder)
    else:
        status = lib.tlm_register_in(scope, thing.handle)
    if status == lib.TLM_ALREADY_REGISTERED:
        return thing
    check(status, "register", thing)
    thing._holder = 0
    thing._scope = scope
    return thing


def unregister(thing: Thing) -> Thing:
    """Takes a thing out of its scope; its count stays and floats until it is taken over.

    A struct leaves alone: its fields stay registered where they are. To return one, unregister it
    and let the caller register it.

    Raises:
        NotRegistered: no scope has it.
        InArena: its memory, or that of a field of it, ends with this scope.
        UseAfterFree: it was freed.
    """
    return _let_float(thing, lib.tlm_unregister, "unregister")


def promote(thing: Thing) -> Thing:
    """The same as ``unregister``, said at a function's return: the caller registers it.

    Who forgets that leaks it; reports say that it floats.
    """
    return _let_float(thing, lib.tlm_promote, "promote")


def _let_float(thing: Thing, function: Callable[[int], int], doing: str) -> Thing:
    if isinstance(thing, core.Reference):
        core.require_not_moved(thing, doing)
        check(lib.tlm_may_leave(thing.handle), doing, thing)
        check(function(thing.handle), doing, thing)
    else:
        adopted.leave(thing, function, doing)
    return thing


def escape(thing: Thing) -> Thing:
    """Takes a thing from its scope, an inner or an outer one, and gives it to the caller's handle.

    It is freed when that handle dies, or by who takes it then. It still counts in its scope. A
    tensor that its handle owns already stays as it is.

    Returns:
        The same thing.
    Raises:
        NotInScope: not currently in a scope.
        NotRegistered: no scope has it and neither has its handle.
        InArena: its memory, that of a view's base or of a field, however deep, ends with a scope
            or frame: it is in an arena or a slot. Nothing happened; copy it first.
        UseAfterFree: it was freed.
    """
    contexts.settle()
    if not isinstance(thing, core.Reference):
        if adopted.escape(thing):
            raise not_in_scope("escape", thing)
        return thing
    core.require_not_moved(thing, "escape")
    if thing._holder and lib.tlm_scope_current():
        check(lib.tlm_check(thing.handle), "escape", thing)
        return thing
    status = core.escape_to_handle(thing)
    if status == lib.TLM_NOT_IN_SCOPE:
        raise not_in_scope("escape", thing)
    check(status, "escape", thing)
    adopted.mark_escaped(thing)
    return thing


def not_in_scope(doing: str, thing: object) -> NotInScope:
    """The error of what can only be done inside a scope."""
    return NotInScope(
        f"cannot {doing} {core.subject_text(thing)}: not currently in a scope; enter one with "
        "tlmem.scope('name'), outside of any a tensor lives as long as its variable",
    )


def in_scope() -> bool:
    """Whether a scope is entered in the running thread or task."""
    contexts.settle()
    return lib.tlm_scope_current() != 0


def scope_depth() -> int:
    """How many scopes are entered; 0 outside any."""
    contexts.settle()
    return lib.tlm_scope_depth()


def scope_tensor_count() -> int:
    """How many objects were registered in the innermost scope, escaped ones too; 0 outside any."""
    contexts.settle()
    innermost = lib.tlm_scope_current()
    return stats_of(innermost).allocations if innermost else 0


def current_scope_id() -> int:
    """Number of the innermost scope, never used again; -1 outside any."""
    contexts.settle()
    return lib.tlm_scope_current() or -1


def scope_stats() -> ScopeStats:
    """What the innermost scope has done so far.

    Raises:
        NotInScope: not currently in a scope.
    """
    contexts.settle()
    innermost = lib.tlm_scope_current()
    if not innermost:
        raise not_in_scope("tell the statistics of", "a scope")
    return stats_of(innermost)


def stats_of(scope: int) -> ScopeStats:
    """What a scope has done so far.

    Raises:
        NotInScope: it is not entered.
    """
    found = ffi.new("tlm_scope_statistics *")
    check(lib.tlm_scope_stats(scope, found), "tell the statistics of", core.scope_text(scope))
    return ScopeStats.of(found)
