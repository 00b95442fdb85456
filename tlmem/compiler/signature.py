"""What a specialisation knows of its arguments and of what it reads from outside, and the test that
a later call is of the same kind.

Known are shape, dtype, device and need of a gradient of tensors, the class of numbers, and small
constants. What is not known costs nothing but the planning: such values are computed as Python
would. Does not cover: what follows inside the function (``passes.shapes``).

Before there is a call, annotations say it: with ``x: "float32[4, 8]"`` a function can be planned
before its first call. With ``from __future__ import annotations`` the quotes are not needed; case
does not matter. ``Annotated[tlmem.Tensor, "float32[4, 8]"]`` keeps type checkers content.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Annotated, Any, get_args, get_origin

from tlmem.compiler import ir
from tlmem.compiler.backend import nodes
from tlmem.compiler.backend.nodes import name
from tlmem.compiler.passes.abstract import (
    UNKNOWN,
    PlainType,
    StructType,
    TensorType,
    abstract,
    is_contiguous,
)
from tlmem.compiler.passes.dataflow import Env
from tlmem.compiler.passes.shape_rules import EITHER, rule_of
from tlmem.compiler.walking import defines, operands_of, walk
from tlmem.runtime.core import CPU, engine, lib
from tlmem.runtime.dtypes import NAMES
from tlmem.runtime.ownership.struct import Struct
from tlmem.runtime.tensors.core_ops import needs
from tlmem.runtime.tensors.storage import Storage
from tlmem.runtime.tensors.tensor import Tensor

LONGEST_TUPLE = 8
GRAD_MODE, NEEDS = "%grad_mode", "%needs"
FITS, KINDS = "%fits", "%kinds"
PLAIN_CLASSES = (bool, int, float, str)
ANNOTATION = re.compile(rf"(?:\w+\.)*({'|'.join(NAMES)})\s*\[([\d\s,]*)\]", re.IGNORECASE)


@dataclass
class Signature:
    """What is known.

    Attributes:
        arguments: abstract value of each argument.
        captured: abstract value of each path that is read from outside.
        grad_mode: whether recording is on; None: it makes no difference.
        conditions: expressions that are all true for a call of this kind.
        helpers: what they read.
        asks_layout: whether it matters how the elements of a tensor lie.
        tensors: what is read of the call and is a tensor, with its kind: one question for all.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    captured: dict[str, Any] = field(default_factory=dict)
    grad_mode: bool | None = None
    conditions: list[ast.expr] = field(default_factory=list)
    helpers: dict[str, Any] = field(default_factory=dict)
    asks_layout: bool = False
    tensors: list[tuple[ast.expr, bytes]] = field(default_factory=list)


def signature_of(
    function: ir.Function,
    given: dict[str, Any],
    outside: Callable[[str], Any],
    general: frozenset[str] = frozenset(),
) -> Signature:
    """The signature of a call.

    Args:
        given: the arguments.
        outside: gives what a path from outside is now.
        general: integer arguments of which only the class is to be known.
    """
    recording = bool(lib.tlm_grad_mode_current())
    made = Signature(grad_mode=recording, asks_layout=asks_layout(function))
    chains = fields_read(function)
    for parameter in function.parameters:
        value = given[parameter.name]
        if parameter.name in general and type(value) is int:
            made.arguments[parameter.name] = PlainType(int)
            made.conditions.append(_is_class(name(parameter.name), "int", made, int))
            continue
        known = _known(value, chains.get(parameter.name, {}), name(parameter.name), made)
        made.arguments[parameter.name] = known
    for path in paths_read(function):
        value = outside(path)
        if isinstance(value, Storage | int | float | str | tuple | type(None)):
            made.captured[path] = _known(value, {}, nodes.path(path), made)
    _ask_of_tensors(made)
    if not _may_record(function, made):
        made.grad_mode = None
    elif NEEDS not in made.helpers:
        made.helpers[GRAD_MODE] = lib.tlm_grad_mode_current
        asked: ast.expr = ast.Call(name(GRAD_MODE), [], [])
        made.conditions.append(asked if made.grad_mode else ast.UnaryOp(ast.Not(), asked))
    return made


# ---- one value ----


def _known(value: Any, chains: dict[str, Any], tree: ast.expr, into: Signature) -> Any:
    """What is known of a value; the conditions for it are added."""
    if type(value) is Tensor:
        found = abstract(value)
        if not into.asks_layout:
            found = replace(found, contiguous=False)
        into.conditions.extend(_of_tensor(found, value, tree, into))
        return found
    if value is None or type(value) in (bool, int, str):
        into.conditions.append(_is_class(tree, type(value).__name__, into, type(value)))
        if value is not None:
            into.conditions.append(_equals(tree, value))
        return value
    if type(value) is float:
        into.conditions.append(_is_class(tree, "float", into, float))
        return PlainType(float)
    if type(value) is tuple:
        short = len(value) <= LONGEST_TUPLE
        if short and all(type(each) is int for each in value):
            into.conditions.append(_is_class(tree, "tuple", into, tuple))
            into.conditions.append(_equals(tree, value))
            return value
        return UNKNOWN
    if chains and (isinstance(value, Struct) or is_dataclass(value) or hasattr(value, "__dict__")):
        return _of_object(value, chains, tree, into)
    return UNKNOWN


def _of_tensor(
    found: TensorType, value: Any, tree: ast.expr, into: Signature
) -> Iterator[ast.expr]:
    """Conditions that a value is a tensor of this kind; of what the call reads, together with the
    others."""
    recorded = bool(found.grad and into.grad_mode)
    kind = engine.kind(value, 2 if recorded else int(bool(found.grad)), int(found.contiguous))
    if kind is not None and not isinstance(tree, ast.Attribute):
        into.tensors.append((tree, kind))
        if recorded:
            yield _of_gradient(found, tree, into)
        return
    yield _is_class(tree, "Tensor", into, Tensor)
    yield _equals(_attribute(tree, "shape"), found.shape)
    yield _equals(_attribute(tree, "dtype"), found.dtype)
    yield _equals(_attribute(tree, "_device"), found.device)
    yield _of_gradient(found, tree, into)
    if found.contiguous:
        into.helpers["%is_contiguous"] = is_contiguous
        own = ast.UnaryOp(ast.Not(), _attribute(tree, "_base_handle"))
        yield ast.BoolOp(ast.Or(), [own, nodes.call("%is_contiguous", tree)])


def _ask_of_tensors(into: Signature) -> None:
    """Puts the question for all tensors in front of the other conditions."""
    if not into.tensors:
        return
    into.helpers[FITS] = engine.fits
    into.helpers[KINDS] = b"".join(kind for _, kind in into.tensors)
    trees = [tree for tree, _ in into.tensors]
    into.conditions.insert(0, nodes.call(FITS, name(KINDS), *trees))


def _of_gradient(found: TensorType, tree: ast.expr, into: Signature) -> ast.expr:
    """Whether a tensor needs a gradient; where it is recorded, one question answers both."""
    if found.grad and into.grad_mode:
        into.helpers[NEEDS] = needs
        return nodes.call(NEEDS, tree)
    slot, leaf = _attribute(tree, "_slot"), _attribute(tree, "_requires_grad")
    either = ast.BoolOp(ast.Or(), [slot, leaf])
    return either if found.grad else ast.UnaryOp(ast.Not(), either)


def _of_object(value: Any, chains: dict[str, Any], tree: ast.expr, into: Signature) -> Any:
    kind = type(value)
    before = len(into.conditions)
    called = f"%class_{kind.__name__}_{len(into.helpers)}"
    into.conditions.append(_is_class(tree, called[1:], into, kind))
    fields = []
    for field_name, deeper in chains.items():
        try:
            part = getattr(value, field_name)
        except Exception:  # it will be raised again where the program reads it
            del into.conditions[before:]
            return UNKNOWN
        found = _known(part, deeper, _attribute(tree, field_name), into)
        fields.append((field_name, found))
    return StructType(kind.__name__, tuple(fields))


def _attribute(tree: ast.expr, attribute: str) -> ast.expr:
    return ast.Attribute(tree, attribute, ast.Load())


def _is_class(tree: ast.expr, called: str, into: Signature, kind: type) -> ast.expr:
    into.helpers[f"%{called}"] = kind
    return ast.Compare(_attribute(tree, "__class__"), [ast.Is()], [name(f"%{called}")])


def _equals(tree: ast.expr, value: Any) -> ast.expr:
    return ast.Compare(tree, [ast.Eq()], [nodes.constant(value)])


# ---- what a function reads ----


def paths_read(function: ir.Function) -> list[str]:
    """Paths from outside whose values are operands, in order, each once."""
    found: dict[str, None] = {}

    def take(operand: Any) -> None:
        if isinstance(operand, ir.Captured):
            found[operand.path] = None
        elif isinstance(operand, ir.Group):
            for item in operand.items:
                take(item)

    for statement in walk(function.body):
        for operand in operands_of(statement):
            take(operand)
        if isinstance(statement, ir.Plain):
            found.update(dict.fromkeys(_paths_in(statement, function)))
    return list(found)


def _paths_in(statement: ir.Plain, function: ir.Function) -> Iterator[str]:
    for node in ast.walk(statement.expression):
        if isinstance(node, ast.Name) and node.id in function.captured:
            yield node.id


def asks_layout(function: ir.Function) -> bool:
    """Whether a function has operations that give a view or a copy as the elements lie."""
    ops = [each for each in walk(function.body) if isinstance(each, ir.Op)]
    return any((rule := rule_of(each.op)) is None or rule.memory == EITHER for each in ops)


def needing(function: ir.Function, found: Signature) -> list[ast.expr]:
    """Conditions that gradients are recorded because the same arguments need them; none when no
    argument does. They are enough for a function in which nothing else was planned."""
    made = []
    for parameter in function.parameters:
        known = found.arguments.get(parameter.name)
        if isinstance(known, TensorType) and known.grad and found.grad_mode:
            made.append(_of_gradient(known, name(parameter.name), found))
    return made


def fields_read(function: ir.Function) -> dict[str, dict[str, Any]]:
    """For each argument the fields that are read of it, and of these likewise.

    Only what stays as it is: arguments that keep their value, fields that the function does not
    set, in a function that calls nothing that might.
    """
    statements = list(walk(function.body))
    if any(isinstance(each, ir.Call) for each in statements):
        return {}
    set_here = {each.field for each in statements if isinstance(each, ir.SetField)}
    changed = {n for each in statements for n in defines(each)}
    chains: dict[str, dict[str, Any]] = {
        each.name: {} for each in function.parameters if each.name not in changed
    }
    known = dict(chains)
    once = [n for each in statements for n in defines(each)]
    for statement in statements:
        if isinstance(statement, ir.GetField) and isinstance(statement.source, ir.Var):
            source = known.get(statement.source.name)
            if source is None or statement.field in set_here or statement.is_item:
                continue
            deeper = source.setdefault(statement.field, {})
            if statement.target is not None and once.count(statement.target) == 1:
                known[statement.target] = deeper
    return chains


def _may_record(function: ir.Function, found: Signature) -> bool:
    """Whether it makes a difference that gradients are recorded."""

    def may(value: Any) -> bool:
        if isinstance(value, StructType):
            return any(may(each) for _, each in value.fields)
        return isinstance(value, TensorType) and value.grad is not False

    if any(map(may, [*found.arguments.values(), *found.captured.values()])):
        return True
    return any(
        isinstance(each, ir.Op)
        and (each.op == "requires_grad_" or "requires_grad" in dict(each.options))
        for each in walk(function.body)
    )


# ---- what annotations say ----


def annotated(annotation: Any) -> Any:
    """The abstract value that an annotation says; ``UNKNOWN`` when it says none.

    A tensor that is described by shape and dtype is on the CPU and needs no gradient; a call with
    another one plans anew.
    """
    if get_origin(annotation) is Annotated:
        described = (annotated(each) for each in get_args(annotation)[1:])
        return next((each for each in described if each is not UNKNOWN), UNKNOWN)
    if annotation in PLAIN_CLASSES:
        return PlainType(annotation)
    found = ANNOTATION.fullmatch(annotation.strip()) if isinstance(annotation, str) else None
    if found is None:
        return UNKNOWN
    lengths = tuple(int(each) for each in re.findall(r"\d+", found[2]))
    return TensorType(lengths, found[1].lower(), CPU, False, True)


def arguments_of(function: ir.Function) -> Env:
    """The abstract values of arguments that are annotated, by name."""
    found = {each.name: annotated(each.annotation) for each in function.parameters}
    return {name: value for name, value in found.items() if value is not UNKNOWN}
