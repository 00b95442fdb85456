"""Scopes that are passed explicitly: the maker of a tensor names the scope it lives in.

Such a scope belongs to no thread and no task; it ends when it is closed, its children before it.
Covers: ``TensorScope`` and the platform that has the outermost one. Does not cover: scopes that are
entered (``scope``), what becomes a tensor in one (``representation``).
See also: docs/reference/runtime.md, "Scopes that are passed".
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from tlmem.runtime import core
from tlmem.runtime.core import check, ffi, lib
from tlmem.runtime.errors import NotInScope
from tlmem.runtime.ownership import adopted
from tlmem.runtime.ownership.scope import ScopeStats, register_in, stats_of

Result = TypeVar("Result")
Thing = TypeVar("Thing")


class TensorScope:
    """A scope as a value: pass it on, make tensors in it with ``scope=``, close it.

    Args:
        name: its label in recordings and errors.
        parent: the scope that ends this one with itself.
        device: where representations put tensors of this scope; the parent's by default.
    Raises:
        NotInScope: the parent is closed.
        NoSuchDevice: there is no such device.

    Attributes:
        id: number of the scope, never used again.
        label: its name, or empty.
        parent: the scope around it, or None.
        device: name of its device.
    Source: the ``TensorScope`` type class of the Scala design (S68, S69, S75).
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        parent: TensorScope | None = None,
        device: str | None = None,
    ) -> None:
        self.label = name or ""
        self.parent = parent
        self.device: str = device or (parent.device if parent else "cpu")
        core.device_number(self.device)
        self._children: dict[int, TensorScope] = {}
        self._final: ScopeStats | None = None
        made = ffi.new("uint64_t *")
        status = lib.tlm_scope_create(core.label(self.label), parent.id if parent else 0, made)
        if status == lib.TLM_NOT_IN_SCOPE:
            raise NotInScope(f"cannot make a scope in {parent!r}: it is closed; make it in another")
        check(status, "make", f"scope {self.label!r}")
        self.id: int = made[0]
        if parent is not None:
            parent._children[self.id] = self

    # ---- its end ----

    @property
    def closed(self) -> bool:
        """Whether it has ended; nothing can be made in it any more."""
        return self._final is not None

    def close(self) -> None:
        """Ends its open children, the newest first, then frees what is registered in it.

        A second call does nothing.

        Raises:
            Exception: what ``free()`` of a registered thing raised; an ExceptionGroup of several.
        """
        self._close(None)

    def _close(self, error: BaseException | None) -> None:
        if self._final is not None:
            return
        before = adopted.begin_collecting()
        try:
            self._end()
        finally:
            problems = adopted.end_collecting(before)
        if problems:
            adopted.report(problems, error, f"closing {self!r}")

    def _end(self) -> None:
        for child in reversed(list(self._children.values())):
            child._end()
        if self._final is not None:
            return
        core.remember_scope_left(self.id, self.label, core.here())
        found = ffi.new("tlm_scope_statistics *")
        lib.tlm_scope_destroy(self.id, found)  # one that another thread has closed by now is gone
        self._final = ScopeStats.of(found)
        if self.parent is not None:
            self.parent._children.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close(error)

    # ---- what is in it ----

    def sub_scope(self, name: str | None = None) -> TensorScope:
        """A child: it ends when it is closed, at the latest with this one.

        Raises:
            NotInScope: this scope is closed.
        """
        return TensorScope(name, parent=self)

    def with_scope(
        self, function: Callable[[TensorScope], Result], name: str | None = None
    ) -> Result:
        """Calls a function with a child that is closed afterwards, also when the function raises.

        What the function returns passes through; a tensor of the child is freed by then.
        """
        with self.sub_scope(name) as child:
            return function(child)

    with_sub_scope = with_scope

    def register(self, thing: Thing) -> Thing:
        """Lets this scope own a thing; see ``tlmem.register``.

        Raises:
            NotInScope: the scope is closed.
            UseAfterFree: the thing was freed.
        """
        return register_in(self.id, thing)

    @property
    def count(self) -> int:
        """How many objects were registered so far, those that left again included."""
        return self.stats().allocations

    def stats(self) -> ScopeStats:
        """What it has done so far, or in all when it is closed."""
        return self._final or stats_of(self.id)

    def __repr__(self) -> str:
        name = f"scope {self.label!r} (#{self.id})" if self.label else f"scope #{self.id}"
        return f"{name}, closed" if self.closed else name


class TensorPlatform:
    """Where a program's long-lived tensors are: a device, and one root scope on it.

    Code that takes a platform, or a scope, runs on any of them.

    Args:
        device: name of the device.
        name: label of its root scope; the device by default.
    Raises:
        NoSuchDevice: there is no such device.
    Source: the ``TensorPlatform`` of the Scala design (S70, S72, S74).
    """

    def __init__(self, device: str = "cpu", name: str | None = None) -> None:
        core.device_number(device)
        self.device = device
        self.name = name or device
        self._root: TensorScope | None = None
        self._lock = Lock()

    def global_scope(self) -> TensorScope:
        """The one root scope; the same at each call until it is closed."""
        with self._lock:
            if self._root is None or self._root.closed:
                self._root = TensorScope(self.name, device=self.device)
            return self._root

    @property
    def open_roots(self) -> int:
        """1 while the root scope is open, else 0."""
        return int(self._root is not None and not self._root.closed)

    def with_global_scope(self, function: Callable[[TensorScope], Result]) -> Result:
        """Calls a function with a child of the root; both are closed afterwards.

        A root that was open before stays open, because something lives in it. A tensor that the
        function returns is freed by then.
        """
        opens = not self.open_roots
        root = self.global_scope()
        if not opens:
            return root.with_scope(function)
        with root:
            return root.with_scope(function)

    def close(self) -> None:
        """Closes the root, and with it everything that lives on this platform."""
        if self._root is not None:
            self._root.close()

    def __repr__(self) -> str:
        return f"platform {self.name!r} on {self.device}"
