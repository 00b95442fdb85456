"""The ownership IR: what a compiled function does with its values, statement by statement.

It is structured (blocks, no jumps but ``Break``, ``Continue`` and ``Return``) and three-address: an
operand is a name or a constant, never an expression. All of it is immutable; a pass gives a new
function or facts about the old one, found by the number of a statement.

Covers: the statements. Does not cover: numbering and walking (``walking``), its text (``printer``),
how it is made of Python (``front``).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

# ---- operands ----


@dataclass(frozen=True, slots=True)
class Var:
    """A local variable: an argument, a name of the program, or a temporary ``%1``."""

    name: str


@dataclass(frozen=True, slots=True)
class Captured:
    """A name from outside, perhaps with attributes: ``ANTI``, ``model.head.weight``. Read at each
    call, always borrowed."""

    path: str


@dataclass(frozen=True, slots=True)
class Const:
    """A constant of the source: a number, text, ``None``, ``...``, or a slice of constants."""

    value: Any


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple or list display: ``(a, b)`` of a return, ``[a, b]`` of ``concat``.

    Attributes:
        kind: ``tuple`` or ``list``.
    """

    items: tuple[Operand, ...]
    kind: str = "tuple"


Operand = Var | Captured | Const | Group
Options = tuple[tuple[str, Operand], ...]
"""Arguments by name."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the file a statement stands: lines from 1, columns from 0."""

    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0


NOWHERE = Place(0)

# ---- statements ----


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What all statements have.

    Attributes:
        number: place in the order of the program (S10); arguments have 1 to n, 0 before numbering.
            An ownership operation has the number of the statement that it belongs to.
    """

    place: Place = NOWHERE
    number: int = 0


@dataclass(frozen=True)
class Op(Statement):
    """An operation that gives a tensor when an operand is one, and else what Python gives.

    Attributes:
        target: the name it defines; None for what is not used.
        op: the name of a public function of tlmem, such as ``add`` for ``a + b``, ``x.add(y)`` and
            ``tlmem.add``; ``getitem`` for ``x[key]``, whose key is the second operand.
        form: how it was written: ``operator``, ``method`` (the first operand is the receiver) or
            ``function``.
        callee: of a function, the name by which the program calls it: ``tlmem.relu``.
    """

    target: str | None
    op: str
    operands: tuple[Operand, ...]
    options: Options = ()
    form: str = "operator"
    callee: str = ""


@dataclass(frozen=True)
class Call(Statement):
    """A call of anything else: a compiled function or method, or what may do anything with its
    arguments.

    Attributes:
        function: what is called; of a method, its receiver.
        method: the name of a method, else empty.
        compiled: whether it was a compiled function when this one was decorated: it borrows.
    """

    target: str | None
    function: Operand
    operands: tuple[Operand, ...]
    options: Options = ()
    method: str = ""
    compiled: bool = False


@dataclass(frozen=True)
class Plain(Statement):
    """A Python expression that gives no tensor: numbers, shapes, texts, conditions.

    Attributes:
        expression: as in the source; temporaries in it are names, too.
        reads: the local variables in it.
    """

    target: str | None
    expression: ast.expr
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assign(Statement):
    """``target = source``: another name of the same thing."""

    target: str
    source: Operand


@dataclass(frozen=True)
class Unpack(Statement):
    """``a, b = source``."""

    targets: tuple[str, ...]
    source: Operand


@dataclass(frozen=True)
class MakeStruct(Statement):
    """A struct or an object of a dataclass; it holds each tensor that it is given.

    Attributes:
        maker: the class, or ``tlmem.struct`` by the name the program gives it.
    """

    target: str | None
    maker: Captured
    operands: tuple[Operand, ...]
    options: Options = ()


@dataclass(frozen=True)
class GetField(Statement):
    """``target = source.field``; ``is_item``: ``source["field"]``. Borrowed."""

    target: str | None
    source: Operand
    field: str
    is_item: bool = False


@dataclass(frozen=True)
class SetField(Statement):
    """``source.field = value``: the new value is taken first, then the old one let go."""

    source: Operand
    field: str
    value: Operand
    is_item: bool = False


@dataclass(frozen=True)
class SetItem(Statement):
    """``source[key] = value``: the values are written, nothing is held."""

    source: Operand
    key: Operand
    value: Operand


@dataclass(frozen=True)
class InPlace(Statement):
    """``x += y`` of a name: written in place when it is a tensor, as in Python.

    Attributes:
        op: as of ``Op``.
    """

    target: str
    op: str
    value: Operand


@dataclass(frozen=True)
class Forget(Statement):
    """``del x``, written by the program."""

    target: str


@dataclass(frozen=True)
class Raise(Statement):
    """``raise error``; ``assert test, error`` is an ``If`` around it."""

    error: Operand
    cause: Operand | None = None


# ---- structure ----

Block = tuple[Statement, ...]


@dataclass(frozen=True)
class If(Statement):
    """Two ways."""

    test: Operand
    then: Block
    orelse: Block = ()


@dataclass(frozen=True)
class For(Statement):
    """A loop over ``range(...)``, ``tlmem.steps(...)``, a tuple or a list.

    Attributes:
        target: the loop variable; several for an unpacked one.
        iterable: ``range``, ``steps`` or ``items``.
        operands: arguments of ``range`` or ``steps``, or what the items are from.
        callee: the name by which the program calls ``range`` or ``steps``.
        clears_grads: whether gradients are cleared at the latch (S24); a pass says so.
    """

    targets: tuple[str, ...]
    iterable: str
    operands: tuple[Operand, ...]
    body: Block
    options: Options = ()
    callee: str = ""
    clears_grads: bool = False


@dataclass(frozen=True)
class While(Statement):
    """A loop: ``condition`` computes ``test`` before each iteration."""

    condition: Block
    test: Operand
    body: Block


@dataclass(frozen=True)
class Break(Statement):
    """Leaves the innermost loop."""


@dataclass(frozen=True)
class Continue(Statement):
    """Goes on with the next iteration."""


@dataclass(frozen=True)
class Return(Statement):
    """Leaves the function."""

    value: Operand = Const(None)


# ---- ownership operations, which only passes insert ----


@dataclass(frozen=True)
class Owned(Statement):
    """An ownership operation on a variable."""

    name: str


@dataclass(frozen=True)
class Acquire(Owned):
    """One more count, for the holder of that name."""

    holder: str = "local"


@dataclass(frozen=True)
class Release(Owned):
    """A count of a holder goes; ``safe``: the caller's own count, whatever holds it (S31)."""

    holder: str = "local"
    safe: bool = False


@dataclass(frozen=True)
class Register(Owned):
    """The innermost scope takes it."""


@dataclass(frozen=True)
class Unregister(Owned):
    """Its record in the scope goes, its count floats; of a struct never its fields (S18)."""


@dataclass(frozen=True)
class Promote(Owned):
    """The same at a return: the caller registers it (S30)."""


@dataclass(frozen=True)
class Move(Owned):
    """``target = move(name)``: the count goes over, the old name may not be used."""

    target: str


@dataclass(frozen=True)
class Drop(Owned):
    """The variable ends here: ``del``."""


@dataclass(frozen=True)
class Slot(Owned):
    """The result of the statement of this number is computed into planned memory.

    Attributes:
        slot: number of the slot.
        offset: bytes from the begin of the frame.
        size: bytes.
    """

    slot: int
    offset: int = 0
    size: int = 0


# ---- functions ----


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument.

    Attributes:
        annotation: the object that the program wrote behind the colon, its text when that
            names nothing; None for none.
        kind: ``positional``, ``either`` or ``keyword``, as Python distinguishes them.
        has_default: its default is read from the program's function at each call.
    """

    name: str
    annotation: Any = None
    kind: str = "either"
    has_default: bool = False


@dataclass(frozen=True)
class Function:
    """One compiled function.

    Attributes:
        parameters: numbered 1 to n; statements go on from there.
        captured: first names of what it reads from outside, in the order of their first use.
        file: as the program's own tracebacks name it.
        source: its lines, for listings; ``source[0]`` is ``first_line``.
        temporaries: how many ``%n`` there are.
    """

    name: str
    qualname: str
    file: str
    first_line: int
    parameters: tuple[Parameter, ...]
    body: Block
    captured: tuple[str, ...] = ()
    source: tuple[str, ...] = field(default=(), repr=False)
    temporaries: int = 0
