"""``tlmem plan MODULE:FUNCTION``: the memory that a compiled function plans, without calling it.

Covers: finding the function, arguments of given shapes, what its frame holds, in text and as JSON.
Does not cover: options (``cli.plan``), the plan itself (``tlmem.compiler``).
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tlmem.errors import TlmemError

SCHEMA = 1


class CannotPlan(TlmemError):
    """The function does not exist, or cannot be planned for these arguments."""


def is_function(target: str) -> bool:
    """Whether a word of the command line means a function and not a file."""
    return ":" in target and not os.path.exists(target)


def run(
    target: str,
    shapes: Sequence[str],
    values: Sequence[str],
    with_out: bool,
    format: str,
    out: str | None,
) -> int:
    """Writes the plan of a function, and returns the exit code.

    Args:
        target: ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``; a method by ``Class.method``.
        shapes: of its tensors, in order or by name: ``64x128``, ``x=64x128:float64``, ``scalar``.
        values: of other arguments, by name: ``steps=3``.
        with_out: as it is called with ``out=``.
    Raises:
        TlmemError: the function does not exist or cannot be compiled, or an argument does not fit.
    """
    from tlmem.report import write

    function = found(target)
    compiled = compiled_of(function, target)
    given = arguments(compiled, shapes, values)
    first = [each.name for each in compiled.ir.parameters if each.kind == "positional"]
    named = {name: value for name, value in given.items() if name not in first}
    made = compiled.plan(*(given[each] for each in first), out=with_out, **named)
    summary = to_dict(compiled, made, given)
    return write(json.dumps(summary, indent=2) + "\n" if format == "json" else text(summary), out)


def found(target: str) -> Any:
    """The function that is meant.

    Raises:
        CannotPlan: its module cannot be imported, or has no such name.
    """
    place, _, name = target.rpartition(":")
    value: Any = module_of(place, target)
    for part in name.split("."):
        if not hasattr(value, part):
            raise CannotPlan(f"{place} has no '{name}'; give MODULE:FUNCTION.")
        value = getattr(value, part)
    return value


def module_of(place: str, target: str) -> ModuleType:
    """A module by its name or its file, imported as the program would from this directory."""
    try:
        if not place.endswith(".py"):
            sys.path.insert(0, os.getcwd())
            return importlib.import_module(place)
        path = Path(place)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None or not path.exists():
            raise CannotPlan(f"{place} does not exist; give MODULE:FUNCTION or FILE.py:FUNCTION.")
        sys.path.insert(0, str(path.resolve().parent))
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except TlmemError:
        raise
    except Exception as error:  # whatever the program's own code raises
        why = f"{type(error).__name__}: {error}"
        raise CannotPlan(f"{target}: {place} cannot be imported ({why}).") from None


def compiled_of(function: Any, target: str) -> Any:
    """What belongs to a compiled function; one that is not compiled is compiled now.

    Raises:
        CannotPlan: it is not a function.
        NotCompilable: it has a construct that cannot be compiled.
    """
    from tlmem.compiler.compiled import compile

    if not hasattr(function, "compiled"):
        if not hasattr(function, "__code__"):
            raise CannotPlan(f"{target} is not a Python function; give one, decorated or not.")
        function = compile(function)
    return function.compiled


# ---- arguments ----


def arguments(compiled: Any, shapes: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    """A value for each parameter: tensors of the shapes, values, defaults, then what annotations
    such as ``x: "float32[64, 128]"`` say.

    Raises:
        CannotPlan: a parameter has no value, or one is named that is not there.
    """
    names = [parameter.name for parameter in compiled.ir.parameters]
    given: dict[str, Any] = {}
    for text in values:
        name, is_named, literal = text.partition("=")
        if not is_named:
            raise CannotPlan(f"'{text}' is not a value; write NAME=VALUE, for example steps=3.")
        given[known(name, names)] = value_of(literal)
    for text in shapes:
        name, is_named, shape = text.rpartition("=")
        if not is_named:
            name = next((each for each in names if each not in given), "")
        given[known(name, names, text)] = tensor_of(shape)
    defaults = {**compiled.annotated(), **defaults_of(compiled.function)}
    missing = [name for name in names if name not in given and name not in defaults]
    if missing:
        raise CannotPlan(
            f"{compiled.ir.name} needs {', '.join(missing)} too; give a shape for each tensor "
            '(--shapes 64x128, or an annotation such as "float32[64, 128]") and a value for '
            "each other argument (--values steps=3)."
        )
    return {name: given[name] if name in given else defaults[name] for name in names}


def known(name: str, names: list[str], text: str = "") -> str:
    """A name that is a parameter's."""
    if name not in names:
        what = f"'{name}'" if name else f"for the shape '{text}'"
        raise CannotPlan(f"there is no parameter {what}; they are {', '.join(names) or 'none'}.")
    return name


def value_of(literal: str) -> Any:
    """A Python literal; what is none is a text."""
    try:
        return ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return literal


def tensor_of(text: str) -> Any:
    """A tensor of a shape such as ``64x128``, ``128``, ``scalar`` or ``64x128:float64``.

    Raises:
        CannotPlan: it is not a shape, the dtype is unknown, or memory does not suffice.
    """
    import tlmem

    shape, _, dtype = text.partition(":")
    if shape != "scalar" and not re.fullmatch(r"\d+(x\d+)*", shape):
        raise CannotPlan(f"'{text}' is not a shape; write 64x128, 128:float64 or scalar.")
    lengths = () if shape == "scalar" else tuple(int(length) for length in shape.split("x"))
    try:
        return tlmem.empty(lengths, dtype=dtype or "float32")
    except (TlmemError, TypeError, ValueError, MemoryError) as error:
        raise CannotPlan(f"'{text}' cannot be made: {error}") from None


def defaults_of(function: Any) -> dict[str, Any]:
    """Parameters that have a default."""
    code = function.__code__
    ordered = code.co_varnames[: code.co_argcount]
    count = len(function.__defaults__ or ())
    last = dict(zip(ordered[len(ordered) - count :], function.__defaults__ or (), strict=True))
    return {**last, **(function.__kwdefaults__ or {})}


# ---- what is planned ----


def to_dict(compiled: Any, made: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The plan of one specialisation as plain dicts, lists, texts and numbers."""
    from tlmem.compiler import ir
    from tlmem.compiler.walking import walk

    by_number: dict[int, Any] = {
        each.number: each for each in walk(made.ir.body) if not isinstance(each, ir.Owned)
    }
    layout = made.plan.layout

    def line(number: int) -> int:
        return by_number[number].place.line if number in by_number else compiled.ir.first_line

    def about(number: int) -> dict[str, Any]:
        op = by_number[number]
        return {"name": op.target, "op": op.op, "line": op.place.line}

    placed = sorted(made.plan.placed.values(), key=lambda each: each.number)
    return {
        "schema": SCHEMA,
        "function": compiled.ir.qualname,
        "file": compiled.ir.file,
        "arguments": {name: described(value) for name, value in given.items()},
        "frame_bytes": layout.nbytes if layout else 0,
        "lower_bound_bytes": layout.lower_bound_bytes if layout else 0,
        "apart_bytes": layout.apart_bytes if layout else 0,
        "planned": [
            about(each.number)
            | {
                "bytes": each.nbytes,
                "offset": layout.offsets[each.number],
                "first_line": line(each.life.first),
                "last_line": line(each.life.last),
            }
            for each in placed
        ],
        "outside": [
            about(number) | {"reason": why} for number, why in sorted(made.plan.refused.items())
        ],
    }


def described(value: Any) -> str:
    """An argument in a few words."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{'x'.join(map(str, value.shape)) or 'scalar'}:{value.dtype}"
    return repr(value)


def text(summary: dict[str, Any]) -> str:
    """The plan for people, with a line feed at its end."""
    from tlmem.report.text import wrap
    from tlmem.units import format_bytes, format_count

    frame, bound = summary["frame_bytes"], summary["lower_bound_bytes"]
    given = ", ".join(f"{name} {what}" for name, what in summary["arguments"].items())
    begin = summary["function"] + (f", given {given}," if given else "")
    count = len(summary["planned"])
    if not count:
        blocks = [wrap(f"{begin} has no result that can be planned.")]
    else:
        results = f"{format_count(count)} result{'s' if count != 1 else ''}"
        blocks = [
            wrap(
                f"{begin} computes {results} in a frame of {format_bytes(frame)}; no frame can be "
                f"smaller than {format_bytes(bound)} ({frame / bound:.3f}x), and apart they would "
                f"take {format_bytes(summary['apart_bytes'])}."
            )
        ]
        head = f"{'offset':>11} {'bytes':>11}  {'lines':>11}  result"
        blocks.append("\n".join(["The frame", head, *map(row_of, summary["planned"])]))
    if summary["outside"]:
        rows = [
            f"  line {each['line']}: {named(each)}: {each['reason']}" for each in summary["outside"]
        ]
        blocks.append("\n".join(["Results outside of the frame", *rows]))
    return "\n\n".join(blocks) + "\n"


def row_of(each: dict[str, Any]) -> str:
    """One planned result."""
    lines = f"{each['first_line']} to {each['last_line']}"
    return f"{each['offset']:>11} {each['bytes']:>11}  {lines:>11}  {named(each)}"


def named(each: dict[str, Any]) -> str:
    """A result as the program names it: a temporary has no name of its own."""
    name = each["name"] or ""
    return f"{name} = {each['op']}" if name and not name.startswith("%") else each["op"]
