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
DEFINITIONS = ("FunctionDef", "AsyncFunctionDef", "ClassDef")
FOR_EACH = ("map", "filter", "reduce", "starmap")
"""Functions that call what they are given for each item."""
EXITS = ("exit", "SystemExit")
"""What a console script gives the answer of its one function to."""
LARGEST = 200_000
"""Bytes of source that are looked at in all; 100 kB take about 30 ms."""
LONGEST = 60_000
"""Letters of the note; a recording has room for a few more."""
SITES = ("site-packages", "dist-packages")
INIT = "__init__.py"

Span = tuple[int, int]


class Import(NamedTuple):
    """A module by its name, what is taken from it, and how many packages up it is looked for."""

    module: str
    names: tuple[str, ...]
    level: int


class Source(NamedTuple):
    """What one file says of itself.

    Attributes:
        loops: first and last line of each, rising.
        called: the name behind each call, its first and its last line.
        defined: names of functions and classes.
        imports: all that are written down, in functions too.
        started: the module whose function gives the exit code; empty where the file does more.
    """

    loops: list[Span]
    called: list[tuple[str, int, int]]
    defined: set[str]
    imports: list[Import]
    started: str


class Known(NamedTuple):
    """What is known of a program before it begins.

    Attributes:
        note: loops and single calls of its files as JSON; empty where nothing is known.
        package: folder or file of the installed package that is the program; empty if it is none.
    """

    note: str
    package: str


def of_script(text: bytes, file: str, folder: str) -> Known:
    """What a script says, and what it imports.

    Args:
        file: as its code has it.
        folder: where its imports are looked for first.
    """
    main = read(text, file)
    if main is None:
        return Known("", "")
    package = installed(main.started) if main.started else ""
    known = Files(folder, package)
    known.keep(file, main, len(text))
    known.follow_imports()
    return Known(known.note(), package)


def of_module(name: str, folder: str) -> Known:
    """What a module says that is run by name, and what it imports.

    Args:
        folder: where it is looked for first.
    """
    package = "" if any(files_of(name, _own_folders(folder))) else installed(name)
    known = Files(folder, package)
    files = list(files_of(name, known.folders))
    if files and os.path.basename(files[-1]) == INIT:
        files.append(os.path.join(os.path.dirname(files[-1]), "__main__.py"))
    for file in files:
        known.read(file)
    known.follow_imports()
    return Known(known.note(), package)


class Files:
    """The files of a program that are known, the nearest first, as far as there is room.

    Args:
        folder: where modules are looked for first.
        package: the installed package that the program is, or empty.
    """

    def __init__(self, folder: str, package: str) -> None:
        self.package = package
        self.folders = _own_folders(folder)
        if package:
            self.folders.append(next(each for each in _libraries() if _is_below(package, each)))
        self.sources: dict[str, Source] = {}
        self.bytes = 0

    def keep(self, file: str, source: Source, size: int) -> None:
        """Adds what a file says."""
        self.sources[file] = source
        self.bytes += size

    def read(self, file: str) -> None:
        """Adds a file that is new and can be read, while there is room."""
        if file in self.sources:
            return
        try:
            if self.bytes + os.path.getsize(file) > LARGEST:
                return
            with open(file, "rb") as stream:
                text = stream.read(LARGEST)
        except OSError:
            return
        source = read(text, file)
        if source is not None:
            self.keep(file, source, len(text))

    def follow_imports(self) -> None:
        """Adds the user's files that the known ones import, and what these import."""
        waiting = list(self.sources)
        for file in waiting:  # grows while it is gone through
            for each in imported(file, self.sources[file], self.folders):
                if each not in self.sources and self.is_own(each):
                    self.read(each)
                    waiting += [each] if each in self.sources else []

    def is_own(self, file: str) -> bool:
        """Whether a file is the user's, or of the package that is the program."""
        is_programs = self.package and (file == self.package or _is_below(file, self.package))
        return bool(is_programs) or not any(_is_below(file, each) for each in _libraries())

    def note(self) -> str:
        """Loops and single calls of all files, as JSON; empty where there is too much to say.

        ``loops`` are pairs of lines, ``calls`` has for the name of each function or class that a
        file defines the lines outside of loops where it is called by name.
        """
        defined = {name for source in self.sources.values() for name in source.defined}
        files = {}
        for file, source in self.sources.items():
            calls: dict[str, list[int]] = {}
            for name, first, last in source.called:
                if name in defined and not any(a <= last and first <= b for a, b in source.loops):
                    calls.setdefault(name, []).extend(range(first, last + 1))
            lines = {name: sorted(set(found)) for name, found in calls.items()}
            files[file] = {"loops": [list(span) for span in source.loops], "calls": lines}
        note = _as_json(files) if files else ""
        return note if len(note) <= LONGEST else ""


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
        elif kind in DEFINITIONS:
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


def _own_folders(first: str) -> list[str]:
    """Where the user's own modules are looked for."""
    libraries = _libraries()
    return [first, *(os.path.abspath(each) for each in sys.path if each and each not in libraries)]


def _libraries() -> list[str]:
    standard = os.path.dirname(os.__file__)
    return [each for each in sys.path if each == standard or os.path.basename(each) in SITES]


def _is_below(file: str, folder: str) -> bool:
    return file.startswith(folder.rstrip(os.sep) + os.sep)


def installed(name: str) -> str:
    """The folder or file of an installed package, by the name of one of its modules.

    Packages without an ``__init__.py`` are only names: the first one below them is meant.
    """
    parts = name.split(".")
    for folder in _libraries():
        for count in range(1, len(parts) + 1):
            path = os.path.join(folder, *parts[:count])
            if os.path.isfile(os.path.join(path, INIT)):
                return path
            if os.path.isfile(f"{path}.py"):
                return f"{path}.py"
    return ""


def files_of(module: str, folders: Sequence[str]) -> Iterator[str]:
    """The files that are run when a module is imported: its packages' and its own."""
    for folder in folders:
        path, found = folder, False
        for part in module.split("."):
            path = os.path.join(path, part)
            for file in (os.path.join(path, INIT), f"{path}.py"):
                if os.path.isfile(file):
                    yield file
                    found = True
                    break
        if found:
            return


def imported(file: str, source: Source, folders: Sequence[str]) -> Iterator[str]:
    """The files that a file imports from these folders."""
    for each in source.imports:
        where = folders
        if each.level:
            above = file
            for _ in range(each.level):
                above = os.path.dirname(above)
            where = [above]
        if each.module:
            yield from files_of(each.module, where)
        for name in each.names:
            module = f"{each.module}.{name}" if each.module else name
            yield from list(files_of(module, where))[-1:]


# ---- JSON: the program may have a module json of its own ----


def _as_json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(k)}: {_as_json(v)}" for k, v in value.items()) + "}"
    return str(value)


def _quoted(text: str) -> str:
    letters = (
        f"\\u{ord(letter):04x}" if letter < " " or letter in '"\\' else letter for letter in text
    )
    return '"' + "".join(letters) + '"'
