"""Stacks of a snapshot as call sites: equal stacks are one site, and callers are shared.

Covers: which frames are Python's, codes, sites. Does not cover: how they are written (``writer``).
"""

from __future__ import annotations

import re
from typing import Any

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

Frame = tuple[int, int]
"""Code and line."""


class Sites:
    """The call sites of a snapshot, numbered from 2 in the order in which they are met.

    Frames of C++ are left out. Of a stack that has no others, as those of threads that only run
    backward passes, they are kept, behind those that only take the stack.
    """

    def __init__(self) -> None:
        self.codes: dict[tuple[str, str], int] = {}
        self.sites: dict[tuple[int, int, int], int] = {}
        self.folders: set[str] = set()
        self.cut = False
        self._of_list: dict[int, int] = {}
        self._of_stack: dict[tuple[int, ...], int] = {}
        self._of_frame: dict[int, tuple[Frame, bool] | None] = {}
        self._of_values: dict[tuple[Any, Any, Any], tuple[Frame, bool] | None] = {}
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
        known = [self._frame(frame) for frame in frames]
        self._room -= len(known)
        found = [each[0] for each in known if each is not None and each[1]]
        if not found:
            found = [each[0] for each in known if each is not None]
        parent = NO_STACK
        if len(found) > MOST_STACK_DEPTH:
            found, parent = found[:MOST_STACK_DEPTH], CUT_ROOT
        if self._room < 0 or len(self.sites) > MOST_SITES:
            self.cut = True
            found, parent = found[:1], CUT_ROOT
        sites = self.sites
        for code, line in reversed(found):
            key = (parent, code, line)
            parent = sites.setdefault(key, len(sites) + FIRST_SITE)
        return parent

    def _frame(self, frame: Any) -> tuple[Frame, bool] | None:
        """Code and line of a frame, and whether it is Python's; None of what is not a frame."""
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

    def _read(self, file: Any, name: Any, line: Any) -> tuple[Frame, bool] | None:
        file = file[:LONGEST_NAME] if type(file) is str else ""
        name = name[:LONGEST_NAME] if type(name) is str else ""
        line = line if type(line) is int and 0 <= line < 2**32 else 0
        placed = PLACED.fullmatch(name) if file == "none" else None
        if placed is not None:
            file, name, line = placed[1], placed[3], int(placed[2])
        if not file and not name:
            return None
        is_python = file.endswith((".py", ".pyx")) or file.startswith("<")
        if not is_python and ("unwind" in name or name.startswith("torch::CapturedTraceback")):
            return None
        if is_python:
            self._note_folder(file)
        code = self.codes.setdefault((file, name), len(self.codes) + 1)
        return (code, line), is_python

    def _note_folder(self, file: str) -> None:
        """Remembers folders of libraries, so that what lies there is not taken for the user's."""
        for pattern in (LIBRARY, TORCH, COMPILED):
            found = pattern.match(file)
            if found:
                self.folders.add(found[1])
