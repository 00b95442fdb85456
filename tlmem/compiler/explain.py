"""What a compiled function does about ownership, and what it need not do and why.

Covers: ``explain`` and what it gives. Does not cover: how that is decided (``passes``).
See also: docs/policies.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.compiled import Compiled
from tlmem.compiler.passes.ownership import Note
from tlmem.compiler.printer import statement_text
from tlmem.compiler.signature import Signature, arguments_of
from tlmem.compiler.specialising import (
    OwnedSpecialisation,
    Specialisation,
    specialised,
    specialised_owned,
)
from tlmem.compiler.walking import is_temporary, walk

COLUMNS = ("number", "line", "source", "statement", "name", "operation", "done", "reason")


@dataclass(frozen=True, slots=True)
class OwnershipRow:
    """One ownership operation of one statement, done or left out.

    Attributes:
        number: of the statement; arguments have 1 to n.
        line: of the file, 0 for arguments.
        source: that line.
        statement: in the words of the IR; empty for an argument.
        name: the variable, ``%1`` for one without a name.
        operation: ``acquire``, ``release``, ``register``, ``unregister``, ``promote``, ``slot``,
            ``allocate``, ``drop``, ``clear gradients``.
        done: whether it is done.
        reason: why it is left out, or what it is for.
    """

    number: int
    line: int
    source: str
    statement: str
    name: str
    operation: str
    done: bool
    reason: str


@dataclass(frozen=True)
class Explanation:
    """The ownership operations of a compiled function; made by ``explain``.

    Attributes:
        function: its name.
        policy: how its objects are owned.
        rows: one for each operation, in the order of the program.
        code: the statements that run, as Python.
    """

    function: str
    policy: str
    rows: tuple[OwnershipRow, ...]
    code: str

    def __str__(self) -> str:
        return self.text()

    @property
    def done(self) -> int:
        """How many operations there are."""
        return sum(each.done for each in self.rows)

    @property
    def left_out(self) -> int:
        """How many are left out."""
        return len(self.rows) - self.done

    def text(self) -> str:
        """The listing: each line of the program, its statements, and for each what is done (``+``)
        and what is left out (``-``), with the reason."""
        head = f"{self.function}, policy {self.policy}: {self.done} done, {self.left_out} left out"
        return "\n".join([head, *self._lines(), ""])

    def table(self) -> Any:
        """The rows as a ``pandas.DataFrame``, columns as the attributes of ``OwnershipRow``."""
        from pandas import DataFrame

        values = [[getattr(each, name) for name in COLUMNS] for each in self.rows]
        return DataFrame(values, columns=list(COLUMNS))

    def _lines(self) -> Iterator[str]:
        line, number = -1, -1
        for row in self.rows:
            if row.line != line:
                line = row.line
                yield f"{line:>5} | {row.source}" if line else "      | arguments"
            if row.number != number and row.statement:
                number = row.number
                yield f"        {number:>3}  {row.statement}"
            mark, word = ("+", "") if row.done else ("-", "no ")
            reason = f": {row.reason}" if row.reason else ""
            yield f"             {mark} {word}{row.operation} {row.name}{reason}"


def explain(function: Any) -> Explanation:
    """The ownership operations of a compiled function, those left out with their reason.

    It describes the specialisation that was made last; of a function that was never
    called, what can be said from the annotations of its arguments.

    Raises:
        TypeError: it was not compiled; decorate it with ``tlmem.compile``.
    Source: docs/seed-map.md, S19 to S22.
    """
    compiled = getattr(function, "compiled", None)
    if not isinstance(compiled, Compiled):
        given = getattr(function, "__qualname__", type(function).__name__)
        raise TypeError(
            f"explain takes a compiled function, and {given} is none; decorate it with "
            "@tlmem.compile"
        )
    found = latest(compiled)
    notes = found.notes if isinstance(found, OwnedSpecialisation) else of_handles(found)
    statements = {
        each.number: each for each in walk(found.ir.body) if not isinstance(each, ir.Owned)
    }
    loops = [each for each in statements.values() if getattr(each, "clears_grads", False)]
    latches = [
        Note(
            each.number,
            each.place.line,
            ", ".join(each.targets),
            "clear gradients",
            True,
            "at the end of each turn",
        )
        for each in loops
        if isinstance(each, ir.For)
    ]
    ordered = sorted([*notes, *latches], key=lambda note: note.number)
    rows = tuple(row_of(note, statements, found.ir) for note in ordered)
    return Explanation(compiled.ir.name, compiled.policy, rows, found.code)


def latest(compiled: Compiled) -> Specialisation:
    """The specialisation that was made last, or one that knows of the arguments what is written
    behind their colons."""
    if compiled.specialisations:
        return compiled.specialisations[-1]
    known = Signature(arguments=arguments_of(compiled.ir))
    if compiled.policy == "default":
        return specialised(compiled, known, False)
    return specialised_owned(compiled, known, False)


def of_handles(found: Specialisation) -> list[Note]:
    """The notes of the policy ``default``: memory that is planned, and names that end early."""
    plan = found.plan
    count = len(found.ir.parameters)
    notes = [
        Note(at, 0, each.name, "acquire", False, "borrowed")
        for at, each in enumerate(found.ir.parameters, 1)
    ]
    for each in walk(found.ir.body):
        line, number = each.place.line, each.number
        target = getattr(each, "target", None)
        if isinstance(each, ir.Drop):
            if not is_temporary(each.name):
                notes.append(Note(number, line, each.name, "drop", True, "its last use is past"))
        elif number <= count or not isinstance(target, str):
            continue
        elif number in plan.placed:
            notes.append(Note(number, line, target, "allocate", False, slot_words(found, number)))
        elif number in plan.direct:
            reason = "destination passed: it is the caller's out"
            notes.append(Note(number, line, target, "allocate", False, reason))
        elif number in plan.refused:
            notes.append(Note(number, line, target, "allocate", True, plan.refused[number]))
        elif isinstance(each, ir.Assign) and isinstance(each.source, ir.Var):
            reason = "the handle owns it, whatever it is called"
            notes.append(Note(number, line, each.source.name, "acquire", False, reason))
        elif isinstance(each, ir.GetField):
            notes.append(Note(number, line, target, "acquire", False, "borrowed"))
    return notes


def slot_words(found: Specialisation, number: int) -> str:
    """Where a planned result is, and with whom it shares that."""
    placed, layout = found.plan.placed, found.plan.layout
    own = placed[number]
    others = [
        each.name for each in placed.values() if each.slot == own.slot and each.number != number
    ]
    where = f" at byte {layout.offsets[number]} of {layout.nbytes}" if layout else ""
    shared = f", slot shared with {', '.join(dict.fromkeys(others))}" if others else ""
    return f"in the frame{where}{shared}"


def row_of(note: Note, statements: dict[int, ir.Statement], function: ir.Function) -> OwnershipRow:
    """A note with its statement and its line."""
    statement = statements.get(note.number)
    at = note.line - function.first_line
    source = function.source[at].strip() if 0 <= at < len(function.source) else ""
    words = statement_text(statement) if statement else ""
    return OwnershipRow(
        note.number, note.line, source, words, note.name, note.operation, note.done, note.reason
    )
