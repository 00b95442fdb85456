"""Things that scopes and pools take though tlmem did not make them."""

from __future__ import annotations

from typing import Any


class Mock:
    """The least that a scope needs, and ``free``; it writes down what happened to it."""

    def __init__(self, handle: Any = 4096, error: Exception | None = None) -> None:
        self.handle = handle
        self.escaped = False
        self.freed = 0
        self.error = error

    def mark_escaped(self) -> None:
        self.escaped = True

    def free(self) -> None:
        self.freed += 1
        if self.error:
            raise self.error


class Bare:
    """The least that a scope needs, without ``free`` and without weak references."""

    __slots__ = ("escaped", "handle")

    def __init__(self, handle: Any = "key") -> None:
        self.handle = handle
        self.escaped = False

    def mark_escaped(self) -> None:
        self.escaped = True


class Poolable:
    """The least that a pool needs, and ``free``."""

    def __init__(self, shape: tuple[int, ...] = (2,), dtype: Any = "float32") -> None:
        self.shape = shape
        self.dtype = dtype
        self.handle = object()
        self.freed = 0

    def free(self) -> None:
        self.freed += 1
