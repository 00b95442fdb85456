"""What a pass says of ownership: each operation, done or left out, with its reason.

Covers: the form. Does not cover: what is said (``ownership``), how it is shown (``explain``).
"""

from __future__ import annotations

from dataclasses import dataclass

from tlmem.compiler import ir


@dataclass(frozen=True, slots=True)
class Note:
    """One ownership operation, done or left out.

    Attributes:
        number: of the statement.
        line: of the source, from 1.
        name: the variable.
        operation: ``acquire``, ``release``, ``register``, ``unregister``, ``promote``, ``move``,
            ``slot``, ``drop``, ``allocate`` or ``clear gradients``.
        done: whether it is done.
        reason: why it is left out, or what it is for.
    """

    number: int
    line: int
    name: str
    operation: str
    done: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Owning:
    """The function with its ownership operations, and the notes in the order of the program."""

    function: ir.Function
    notes: tuple[Note, ...]
