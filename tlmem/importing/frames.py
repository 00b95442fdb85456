"""Stacks of a snapshot as call sites: equal stacks are one site, and callers are shared.

Covers: which frames are Python's, what is kept of stacks that have no others, codes, sites.
Does not cover: how they are written (``writer``).
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any, NamedTuple

from tlmem.events import CPLUSPLUS, ENGINE, WORKSPACE
from tlmem.recording.format.limits import LONGEST_NAME, MOST_STACK_DEPTH
from tlmem.recording.format.symbols import CUT_ROOT, FIRST_SITE, NO_STACK

MOST_SITES = 4_000_000
MOST_FRAMES = 200_000_000
"""Frames that are looked at; each entry's own stack counts."""
LIBRARY = re.compile(r"^(.*[/\\](?:site-packages|dist-packages|lib[/\\]python3\.\d+))[/\\]", re.I)
TORCH = re.compile(
    r"^((?:.*[/\\])?torch)[/\\](?:nn[/\\]modules[/\\]module|_tensor|autograd[/\\]graph|"
    r"optim[/\\]optimizer|utils[/\\]_contextlib)\.py$"
)
PLACED = re.compile(r"(.+)\((\d{1,8})\): (.+)")
"""A frame of torch.profiler has its place in its name."""
COMPILED = re.compile(r"^(.*[/\\]torchinductor_[^/\\]*)[/\\]")

NODE = re.compile(r"torch::autograd::(?:\w+::)*(\w+)(?:<.*>)?::apply\(")
"""A node of the autograd graph runs."""
OPERATOR = re.compile(r"at::_ops::(\w+)::call\(")
KEPT_FOR_CUBLAS = re.compile(r"at::cuda::get(?:New|CUDA)\w*Workspace|at::cuda::getCurrentCUDABlas")
"""What is allocated there belongs to no operation: each handle and stream keeps it for good."""
TAKES_THE_STACK = re.compile(r"unwind|^torch::CapturedTraceback|gather_with_cpp")
MACHINERY = re.compile(r"(?:^|\s)(?:std|c10|at::detail)::|::~")
"""Frames of C++ that allocate or free for others, or hold what is freed."""


class Means(IntEnum):
    """What a frame says."""

    PYTHON = 0
    OTHER = 1
    MACHINERY = 2
    NODE = 3
    OPERATOR = 4
    ENGINE = 5
    WORKSPACE = 6


class Frame(NamedTuple):
    """One frame."""

    file: str
    function: str
    line: int
    means: Means


ENGINE_FRAME = Frame(CPLUSPLUS, ENGINE, 0, Means.ENGINE)
"""The root of stacks of threads that run backward passes."""


class Sites:
    """The call sites of a snapshot, numbered from 2 in the order in which they are met.

    Frames of C++ are left out. Of a stack that has no others, as those of threads that only run
    backward passes, the operator or the node of the graph is kept that was entered first; where
    there is neither, all but those that allocate for others. Stacks of the engine's threads have
    ``ENGINE`` as their root. What is kept for cuBLAS has no callers: the first operation that needs
    it only happens to be first.
    """

    def __init__(self) -> None:
        self.codes: dict[tuple[str, str], int] = {}
        self.sites: dict[tuple[int, int, int], int] = {}
        self.folders: set[str] = set()
        self.cut = False
        self.has_cplusplus = False
        self._of_list: dict[int, int] = {}
        self._of_stack: dict[tuple[int, ...], int] = {}
        self._of_frame: dict[int, Frame | None] = {}
        self._of_values: dict[tuple[Any, Any, Any], Frame | None] = {}
        self._kept: list[Any] = []
        self._room = MOST_FRAMES

    def of(self, frames: Any) -> int:
        """The site of a stack, innermost frame first; 0 where there is none.

        The list must live as long as this object: it is known again by its identity.
        """
        if type(frames) not in (list, tuple) or not frames:
            return NO_STACK
        site = self._of_list.get(id(frames))
        if site is None:
            key = tuple(map(id, frames))
            site = self._of_stack.get(key)
            if site is None:
                site = self._of_stack[key] = self._site(frames)
            self._of_list[id(frames)] = site
            self._kept.append(frames)
        return site

    def _site(self, frames: list[Any]) -> int:
        known = [each for each in map(self._frame, frames) if each is not None]
        self._room -= len(frames)
        if any(each.means == Means.WORKSPACE for each in known):
            return self.named(WORKSPACE)
        found = [each for each in known if each.means == Means.PYTHON] or _of_cplusplus(known)
        if any(each.means == Means.ENGINE for each in known):
            found.append(ENGINE_FRAME)
        parent = NO_STACK
        if len(found) > MOST_STACK_DEPTH:
            found, parent = found[:MOST_STACK_DEPTH], CUT_ROOT
        if self._room < 0 or len(self.sites) > MOST_SITES:
            self.cut = True
            found, parent = found[:1], CUT_ROOT
        sites = self.sites
        for each in reversed(found):
            code = self.codes.setdefault((each.file, each.function), len(self.codes) + 1)
            key = (parent, code, each.line)
            parent = sites.setdefault(key, len(sites) + FIRST_SITE)
        return parent

    def named(self, function: str) -> int:
        """The site of blocks that belong to no line of the program."""
        code = self.codes.setdefault((CPLUSPLUS, function), len(self.codes) + 1)
        return self.sites.setdefault((NO_STACK, code, 0), len(self.sites) + FIRST_SITE)

    def _frame(self, frame: Any) -> Frame | None:
        """What a frame says; None of what is not a frame, or only takes the stack."""
        number = id(frame)
        if number in self._of_frame:
            return self._of_frame[number]
        if type(frame) is not dict:
            return None
        values = frame.get("filename"), frame.get("name"), frame.get("line")
        try:
            made = self._of_values[values]
        except KeyError:
            made = self._of_values[values] = self._read(*values)
        except TypeError:  # a list, which has no hash
            made = self._read(*values)
        self._of_frame[number] = made
        return made

    def _read(self, file: Any, name: Any, line: Any) -> Frame | None:
        file = file[:LONGEST_NAME] if type(file) is str else ""
        name = name[:LONGEST_NAME] if type(name) is str else ""
        line = line if type(line) is int and 0 <= line < 2**32 else 0
        placed = PLACED.fullmatch(name) if file == "none" else None
        if placed is not None:
            file, name, line = placed[1], placed[3], int(placed[2])
        if not file and not name:
            return None
        if file.endswith((".py", ".pyx")) or file.startswith("<"):
            self._note_folder(file)
            return Frame(file, name, line, Means.PYTHON)
        self.has_cplusplus = True
        return None if TAKES_THE_STACK.search(name) else _frame_of_cplusplus(file, name, line)

    def _note_folder(self, file: str) -> None:
        """Remembers folders of libraries, so that what lies there is not taken for the user's."""
        for pattern in (LIBRARY, TORCH, COMPILED):
            found = pattern.match(file)
            if found:
                self.folders.add(found[1])


def _frame_of_cplusplus(file: str, name: str, line: int) -> Frame:
    """A frame of C++, by what its signature says."""
    if name.startswith(ENGINE):
        return ENGINE_FRAME
    if KEPT_FOR_CUBLAS.match(name):
        return Frame(CPLUSPLUS, WORKSPACE, 0, Means.WORKSPACE)
    for means, pattern, prefix in (
        (Means.NODE, NODE, ""),
        (Means.OPERATOR, OPERATOR, "aten::"),
    ):
        found = pattern.match(name)
        if found is not None:
            return Frame(CPLUSPLUS, prefix + found[1], 0, means)
    function = name.replace("(anonymous namespace)::", "").partition("(")[0]
    means = Means.MACHINERY if MACHINERY.search(function) else Means.OTHER
    if not line:
        file = CPLUSPLUS
    return Frame(file, function, line, means)


def _of_cplusplus(known: list[Frame]) -> list[Frame]:
    """What is kept of a stack without Python, innermost first, but for the engine itself."""
    for number, each in enumerate(known):
        if each.means == Means.ENGINE:  # what called it only starts a thread
            known = known[:number]
            break
    for each in reversed(known):
        if each.means in (Means.NODE, Means.OPERATOR):
            return [each]
    return [each for each in known if each.means == Means.OTHER] or list(known)
