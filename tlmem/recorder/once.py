"""Which lines of a program may run more than once: its loops, and the calls outside of them.

Sources are parsed before the program begins, by the compiler's own parser: the file that is run and
what it imports from the user's own files, as far as its imports are written down.

Covers: scripts and ``-m``; the package that a console script or ``-m`` starts. Does not cover: what
is imported by a name that is only known at run time, nor what the analysis concludes; see
``tlmem.analysis.leaks.one_call``.
"""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

ONLY_AST = 0x400
"""Flag of ``compile``: ``ast.PyCF_ONLY_AST``, without an import that the program would notice."""
LOOPS = ("For", "AsyncFor", "While", "ListComp", "SetComp", "DictComp", "GeneratorExp")
FUNCTIONS = ("FunctionDef", "AsyncFunctionDef")
FOR_EACH = ("map", "filter", "reduce", "starmap")
"""Functions that call what they are given for each item."""
EXITS = ("exit", "SystemExit")
"""What a console script gives the answer of its one function to."""
LARGEST = 200_000
"""Bytes of source that are looked at in all; 100 kB take about 30 ms."""
LONGEST = 60_000
"""Letters of the note; a recording has room for a few more."""
LIBRARIES = ("site-packages", "dist-packages")

Span = tuple[int, int]


class Import(NamedTuple):
    """A module by its name, what is taken from it, and how many packages up it is looked for."""

    module: str
    names: tuple[str, ...]
    level: int


class Source(NamedTuple):
    """What one file says of itself."""

    loops: list[Span]
    called: list[tuple[str, int, int]]
    defined: set[str]
    imports: list[Import]
    started: str
    """The module whose function is all that the file calls; empty where it does more."""


class Known(NamedTuple):
    """What is known of a program before it begins."""

    note: str
    """Loops and single calls of its files as JSON; empty where nothing is known."""
    package: str
    """Folder or file of the installed package that is the program; empty if it is none."""


def of_script(source: bytes, file: str, folder: str) -> Known:
    """What a script says, and what it imports.

    Args:
        file: as its code has it.
        folder: where its imports are looked for first.
    """
    main = read(source, file)
    if main is None:
        return Known("", "")
    package = installed(main.started) if main.started else ""
    return Known(_note(_all_of({file: main}, len(source), _folders(folder), package)), package)


def of_module(name: str, folder: str) -> Known:
    """What a module says that is run by name, and what it imports.

    Args:
        folder: where it is looked for first.
    """
    folders = _folders(folder)
    package = "" if next(files_of(name, folders), "") else installed(name)
    if package:
        folders = [*folders, _above(package, name)]
    files = list(files_of(name, folders))
    if files and os.path.basename(files[-1]) == "__init__.py":
        files += [path for path in [files[-1][: -len("__init__.py")] + "__main__.py"] if _is(path)]
    sources, used = _with({}, 0, files)
    return Known(_note(_all_of(sources, used, folders, package)), package)


def read(source: bytes, file: str) -> Source | None:
    """What a source says; None where it is too long or no source."""
    if len(source) > LARGEST:
        return None
    try:
        with warnings.catch_warnings():  # they are shown when it is compiled to be run
            warnings.simplefilter("ignore")
            tree = compile(source, file, "exec", ONLY_AST, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    loops: list[Span] = []
    called: list[tuple[str, int, int]] = []
    defined: set[str] = set()
    imports: list[Import] = []
    ends: list[str] = []
    nodes: list[Any] = [tree]
    while nodes:
        node = nodes.pop()
        kind = type(node).__name__
        if kind in LOOPS:
            loops.append((node.lineno, node.end_lineno))
        elif kind in FUNCTIONS or kind == "ClassDef":
            defined.add(node.name)
        elif kind == "Import":
            imports += [Import(each.name, (), 0) for each in node.names]
        elif kind == "ImportFrom":
            names = tuple(each.name for each in node.names)
            imports.append(Import(node.module or "", names, node.level))
        elif kind == "Call":
            name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
            if name in FOR_EACH:
                loops.append((node.lineno, node.end_lineno))
            elif name in EXITS and len(node.args) == 1 and type(node.args[0]).__name__ == "Call":
                ends.append(_first_name(node.args[0].func))
            called.append((name, node.lineno, node.end_lineno))
        for field in node._fields:
            value = getattr(node, field, None)
            for each in value if isinstance(value, list) else (value,):
                if hasattr(each, "_fields"):
                    nodes.append(each)
    started = ""
    if len(ends) == 1 and not loops and not defined:
        of = [each for each in imports if ends[0] in each.names or each.module == ends[0]]
        started = of[0].module if of else ""
    return Source(merged(loops), called, defined, imports, started)


def _first_name(node: Any) -> str:
    """``app`` of ``app.main``."""
    while hasattr(node, "value"):
        node = node.value
    return str(getattr(node, "id", ""))


def merged(spans: list[Span]) -> list[Span]:
    """The same lines as spans that do not touch, rising."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


# ---- files ----


def _is(path: str) -> bool:
    return os.path.isfile(path)


def _is_library(folder: str) -> bool:
    return os.path.basename(folder) in LIBRARIES or folder == os.path.dirname(os.__file__)


def _folders(first: str) -> list[str]:
    """Where the user's own modules are looked for."""
    others = (os.path.abspath(each) for each in sys.path if each and not _is_library(each))
    return [first, *others]


def installed(name: str) -> str:
    """The folder or file of an installed package, by the name of one of its modules.

    Packages without an ``__init__.py`` are only names: the first one below them is meant.
    """
    parts = name.split(".")
    for folder in filter(_is_library, sys.path):
        for count in range(1, len(parts) + 1):
            path = os.path.join(folder, *parts[:count])
            if _is(f"{path}/__init__.py"):
                return path
            if _is(f"{path}.py"):
                return f"{path}.py"
    return ""


def _above(package: str, name: str) -> str:
    """The folder in which a package is found by a name."""
    for part in name.split("."):
        parent, own = os.path.split(package)
        if own in (part, f"{part}.py"):
            return parent
    return os.path.dirname(package)


def files_of(module: str, folders: Sequence[str]) -> Iterator[str]:
    """The files that are run when a module is imported: its packages' and its own."""
    parts = module.split(".")
    for folder in folders:
        path, found = folder, False
        for part in parts:
            path = os.path.join(path, part)
            for file in (f"{path}/__init__.py", f"{path}.py"):
                if _is(file):
                    yield file
                    found = True
                    break
        if found:
            return


def _imported(file: str, source: Source, folders: Sequence[str]) -> Iterator[str]:
    """The files that a file imports from these folders."""
    for each in source.imports:
        where, module = folders, each.module
        if each.level:
            above = file
            for _ in range(each.level):
                above = os.path.dirname(above)
            where = [above]
        if module:
            yield from files_of(module, where)
        for name in each.names:
            yield from list(files_of(f"{module}.{name}" if module else name, where))[-1:]


def _with(
    known: dict[str, Source], used: int, files: Sequence[str]
) -> tuple[dict[str, Source], int]:
    """The same sources and those of more files, and their bytes in all."""
    known = dict(known)
    for path in files:
        if path in known:
            continue
        try:
            if used + os.path.getsize(path) > LARGEST:
                continue
            with open(path, "rb") as file:
                text = file.read(LARGEST)
        except OSError:
            continue
        source = read(text, path)
        used += len(text)
        if source is not None:
            known[path] = source
    return known, used


def _all_of(
    known: dict[str, Source], used: int, folders: Sequence[str], package: str
) -> dict[str, Source]:
    """The same sources and all that they import, the nearest first."""
    waiting = list(known)
    if package:
        folders = [*folders, os.path.dirname(package)]
    for path in waiting:  # grows while it is gone through
        found = [
            each
            for each in dict.fromkeys(_imported(path, known[path], folders))
            if not _is_library_file(each) or (package and each.startswith(package))
        ]
        more, used = _with(known, used, found)
        waiting += [each for each in more if each not in known]
        known = more
    return known


def _is_library_file(path: str) -> bool:
    return any(path.startswith(f"{folder}/") for folder in filter(_is_library, sys.path))


# ---- the note ----


def _note(sources: dict[str, Source]) -> str:
    """Loops and single calls of all files, as JSON.

    ``loops`` are pairs of lines, ``calls`` has for the name of each function or class that a file
    defines the lines outside of loops where it is called by name.
    """
    defined = {name for source in sources.values() for name in source.defined}
    files = {}
    for path, source in sources.items():
        calls: dict[str, list[int]] = {}
        for name, first, last in source.called:
            if name in defined and not any(a <= last and first <= b for a, b in source.loops):
                calls.setdefault(name, []).extend(range(first, last + 1))
        lines = {name: sorted(set(found)) for name, found in calls.items()}
        files[path] = {"loops": [list(span) for span in source.loops], "calls": lines}
    # The program may have a module json of its own.
    note = _as_json(files) if files else ""
    return note if len(note) <= LONGEST else ""


def _as_json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(k)}: {_as_json(v)}" for k, v in value.items()) + "}"
    return str(value)


def _quoted(text: str) -> str:
    """A text in the quotes of JSON; a path may have any letter."""
    letters = (
        f"\\u{ord(letter):04x}" if letter < " " or letter in '"\\' else letter for letter in text
    )
    return '"' + "".join(letters) + '"'
