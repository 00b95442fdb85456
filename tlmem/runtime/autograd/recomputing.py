"""Which ops do not save their output but have it computed again when a rule reads it.

Covers: the choice for a block of the program. Does not cover: whole functions (``checkpointing``),
how a tape computes again (``native/tape/tape_replay.c``).
See also: docs/reference/tape.md, "Memory or time".
"""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

from tlmem.runtime import core

_rows: ContextVar[bytes] = ContextVar("tlmem.recompute", default=b"")
"""For each op, by its row: 1 when its output is computed again. C reads it (``pyrules.c``)."""
_known: dict[str, tuple[int, bool]] = {}
"""Op -> its row, and whether its output can be computed again."""


class Recompute:
    """A choice for a block, in this thread or task; made by ``recompute``."""

    __slots__ = ("_chosen", "_outer", "names")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._chosen = _rows_of(names)
        self._outer: list[bytes] = []

    def __enter__(self) -> Self:
        outer = _rows.get().ljust(len(self._chosen), b"\0")
        chosen = bytes(a | b for a, b in zip(outer, self._chosen, strict=True))
        entered = len(self._outer)
        try:
            core.engine.recompute_count(_rows, 1)
            self._outer.append(outer)
            _rows.set(chosen)
        except BaseException:  # Ctrl-C: there will be no __exit__
            _rows.set(outer)
            del self._outer[entered:]
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        outer = self._outer[-1]
        del self._outer[-1]
        try:
            _rows.set(outer)
        finally:  # after Ctrl-C too
            core.engine.recompute_count(_rows, -1)

    def __repr__(self) -> str:
        return f"recompute({', '.join(map(repr, self.names))})"


def recompute(*ops: str) -> Recompute:
    """``with recompute("gelu"): ...``: results of these ops are not saved for rules.

    A record then holds what it takes to compute its result again: less memory until the gradients
    are there, one more computation for each rule that reads it. Gradients are the same to the bit.

    Args:
        ops: names of ops, as ``TapeStats.by_op`` has them; none: all that can be computed again.
    Raises:
        ValueError: there is no such op, or its result cannot be computed again.
    Source: contracts S62.
    """
    return Recompute(ops)


def _rows_of(names: tuple[str, ...]) -> bytes:
    if not _known:
        rows: list[Any] = core.engine.rows()
        _known.update({name: (row, replays) for row, (name, replays, *_) in enumerate(rows)})
    chosen = bytearray(len(_known))
    for name in names or [name for name, (_, replays) in _known.items() if replays]:
        row, replays = _known.get(name, (0, False))
        if not replays:
            can = ", ".join(sorted(name for name, (_, replays) in _known.items() if replays))
            why = "cannot be computed again" if name in _known else "is not known"
            raise ValueError(f"op {name!r} {why}; those that can are {can}")
        chosen[row] = 1
    return bytes(chosen)
