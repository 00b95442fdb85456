"""Last uses that move: the new name takes over the count of the old one (S21), or the caller's
memory takes the result (S20).

Covers: which reads of a variable hand its count over; which results are computed into the caller's
``out``. Does not cover: which acquires and releases a policy leaves out then (``ownership``).

Source: docs/seed-map.md, S20, S21.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlmem.compiler import ir
from tlmem.compiler.passes.liveness import Liveness
from tlmem.compiler.passes.origins import Origins
from tlmem.compiler.passes.shape_rules import rule_of
from tlmem.compiler.passes.shapes import Shapes
from tlmem.compiler.passes.slots import makes_memory, meets_itself
from tlmem.compiler.walking import LOOPS, blocks_of, names_in, walk


@dataclass(frozen=True)
class LastUse:
    """A read that may move: the variable owns what it names, and is not read again.

    Attributes:
        number: of the statement.
        name: the variable.
        line: where it is written, from 1.
    """

    number: int
    name: str
    line: int


def last_uses(function: ir.Function, liveness: Liveness) -> tuple[LastUse, ...]:
    """The reads of a numbered function that may move.

    Those of plain variables only: what an argument, a field, a name from outside or a loop lends is
    not the function's to give away. Not of a variable that a loop uses and that was defined before
    it, and not of one that the same statement reads twice.
    """
    owned = owners(function)
    loops = loop_of(function)
    found = []
    for statement in walk(function.body):
        for name in handed_over(statement):
            if not liveness.is_last_use(statement.number, name):
                continue
            definitions = liveness.reaching.get(statement.number, {}).get(name, frozenset())
            inside = all(loops[d] == loops[statement.number] for d in definitions if d in loops)
            if definitions and definitions <= owned and inside:
                found.append(LastUse(statement.number, name, statement.place.line))
    return tuple(found)


def handed_over(statement: ir.Statement) -> tuple[str, ...]:
    """The variables whose objects get one more holder by a statement, each once."""
    if isinstance(statement, ir.Assign):
        names = names_in(statement.source)
    elif isinstance(statement, ir.MakeStruct):
        given = (*statement.operands, *(value for _, value in statement.options))
        names = tuple(name for operand in given for name in names_in(operand))
    elif isinstance(statement, ir.SetField):
        names = names_in(statement.value)
        if set(names) & set(names_in(statement.source)):
            return ()
    elif isinstance(statement, ir.Return):
        names = names_in(statement.value)
    else:
        return ()
    return tuple(name for name in dict.fromkeys(names) if names.count(name) == 1)


def owners(function: ir.Function) -> frozenset[int]:
    """The statements that give variables something of their own."""
    made: set[int] = set()
    for statement in walk(function.body):
        if isinstance(statement, (ir.Call, ir.MakeStruct, ir.Assign)):
            made.add(statement.number)
        elif isinstance(statement, ir.Op):
            rule = rule_of(statement.op)
            if rule is not None and rule.memory not in ("same", "plain"):
                made.add(statement.number)
    return frozenset(made) - borrowed_assignments(function)


def borrowed_assignments(function: ir.Function) -> frozenset[int]:
    """Assignments of constants, and of names from outside alone, which own nothing."""
    return frozenset(
        each.number
        for each in walk(function.body)
        if isinstance(each, ir.Assign) and not names_in(each.source)
    )


def loop_of(function: ir.Function) -> dict[int, int]:
    """For each statement the number of the loop it is in, 0 for none."""
    found: dict[int, int] = {}

    def visit(block: ir.Block, loop: int) -> None:
        for statement in block:
            found[statement.number] = loop
            inner = statement.number if isinstance(statement, LOOPS) else loop
            for each in blocks_of(statement):
                visit(each, inner)

    visit(function.body, 0)
    return found


# ---- destinations ----


@dataclass(frozen=True)
class Destinations:
    """How results come to the caller's ``out``.

    Attributes:
        direct: operations that compute straight into it. One may be computed while arguments are
            still read, so ``out`` must share no memory with them.
        copied: number of a return -> why its value is copied into ``out`` instead.
    """

    direct: frozenset[int]
    copied: dict[int, str]


def destinations(
    function: ir.Function, shapes: Shapes, liveness: Liveness, found: Origins
) -> Destinations:
    """Which operations of a numbered function can compute into the caller's ``out``."""
    ops = {each.number: each for each in walk(function.body) if isinstance(each, ir.Op)}
    direct: set[int] = set()
    copied: dict[int, str] = {}
    returns = [each for each in walk(function.body) if isinstance(each, ir.Return)]
    for statement in reversed(returns):
        env = found.objects.get(statement.number)
        if env is None:
            continue
        if not isinstance(statement.value, ir.Var):
            copied[statement.number] = "it is not the result of one operation"
            continue
        made = env.get(statement.value.name, frozenset())
        reasons = [indirect(ops.get(each), shapes, liveness, found) for each in sorted(made)]
        why = next((each for each in reasons if each), "" if made else "it is not a tensor")
        pairs = [(one, other) for one in made for other in direct | made if one != other]
        if not why and any(
            is_needed_at(one, ops[other], liveness, found)
            or is_needed_at(other, ops[one], liveness, found)
            for one, other in pairs
        ):
            why = "another result is in it"
        if why:
            copied[statement.number] = why
        else:
            direct |= made
    return Destinations(frozenset(direct), dict(sorted(copied.items())))


def indirect(op: ir.Op | None, shapes: Shapes, liveness: Liveness, found: Origins) -> str:
    """Why a result cannot be computed into ``out``; empty when it can."""
    if op is None or not makes_memory(op, found):
        return "it is not made here"
    rule, made = rule_of(op.op), shapes.tensor(op.number, op.target or "")
    if rule is None or not rule.out or any(name == "out" for name, _ in op.options):
        return f"{op.op} takes no destination"
    if made is None or made.grad is not False:
        return "it may need a gradient"
    if op.number in found.shared:
        return found.escaped[op.number]
    return meets_itself(op, liveness, found)


def is_needed_at(memory: int, op: ir.Op, liveness: Liveness, found: Origins) -> bool:
    """Whether computing an operation into ``out`` would overwrite a result that is needed."""
    rule, env = rule_of(op.op), found.before[op.number]
    names = liveness.after[op.number] - {op.target}
    if rule is None or not rule.elementwise:
        names |= liveness.before[op.number]
    return any(memory in env.get(name, frozenset()) for name in names)
