"""Which lines of a script may run more than once: its loops, and the calls outside of them.

The source is parsed before the program begins, by the compiler's own parser.

Covers: one file. Does not cover: other modules of the program, nor what the analysis concludes; see
``tlmem.analysis.leaks.one_call``.
"""

import warnings
from typing import Any

ONLY_AST = 0x400
"""Flag of ``compile``: ``ast.PyCF_ONLY_AST``, without an import that the program would notice."""
LOOPS = ("For", "AsyncFor", "While", "ListComp", "SetComp", "DictComp", "GeneratorExp")
FOR_EACH = ("map", "filter", "reduce", "starmap")
"""Functions that call what they are given for each item."""
LARGEST = 200_000
"""Bytes of source that are looked at; 100 kB take about 30 ms."""


def describe(source: bytes, file: str) -> str:
    """Loops and single calls of a source, as JSON; empty where it is too long or no source.

    ``loops`` are pairs of lines, ``calls`` has for the name of each function or class that the file
    defines the lines outside of loops where it is called by name.
    """
    if len(source) > LARGEST:
        return ""
    try:
        with warnings.catch_warnings():  # they were shown when it was compiled to be run
            warnings.simplefilter("ignore")
            tree = compile(source, file, "exec", ONLY_AST, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    loops: list[tuple[int, int]] = []
    called: list[tuple[str, int, int]] = []
    defined: set[str] = set()
    nodes: list[Any] = [tree]
    while nodes:
        node = nodes.pop()
        kind = type(node).__name__
        if kind in LOOPS:
            loops.append((node.lineno, node.end_lineno))
        elif kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            defined.add(node.name)
        elif kind == "Call":
            name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
            if name in FOR_EACH:
                loops.append((node.lineno, node.end_lineno))
            called.append((name, node.lineno, node.end_lineno))
        for field in node._fields:
            value = getattr(node, field, None)
            for each in value if isinstance(value, list) else (value,):
                if hasattr(each, "_fields"):
                    nodes.append(each)
    loops = merged(loops)
    calls: dict[str, list[int]] = {}
    for name, first, last in called:
        if name in defined and not any(a <= last and first <= b for a, b in loops):
            calls.setdefault(name, []).extend(range(first, last + 1))
    # The program may have a module json of its own; of names and numbers, only quotes differ.
    sorted_calls = {name: sorted(lines) for name, lines in calls.items()}
    return str({"loops": [list(span) for span in loops], "calls": sorted_calls}).replace("'", '"')


def merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same lines as spans that do not touch, rising."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
