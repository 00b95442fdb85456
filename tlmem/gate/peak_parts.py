"""Parts of the peak: the bytes of a role, or of modules of PyTorch, when most was alive.

Covers: one process, in each of its memories at that memory's own peak. Does not cover: budgets
(``measure``); roles and modules themselves (``analysis.peak``).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.peak.blocks import HOST
from tlmem.analysis.peak.modules import Modules
from tlmem.analysis.peak.roles import NAMES, Role
from tlmem.gate.budget_kinds import ROLES
from tlmem.gate.growth_rates import NotMeasured
from tlmem.gate.inputs import Judged
from tlmem.units import format_seconds

MOST_NAMED = 6
"""Modules that are named when none matches."""
OTHERS = (Role.NUMPY, Role.OBJECTS)
"""Roles of what is not PyTorch's."""


@dataclass(frozen=True)
class Part:
    """``bytes`` of the memory in which there are most, and a sentence that says where to look."""

    bytes: int
    sentence: str


def of_role(judged: Judged, name: str) -> Part:
    """The bytes of a role at the peak of its memory.

    Args:
        name: of ``ROLES``.
    Raises:
        NotMeasured: the role is PyTorch's, and the process has no memory of it.
    """
    role = ROLES[name]
    if role not in OTHERS:
        _has_torch(judged, NAMES[role])
    return _largest(judged, judged.blocks.role == role, "role")


def of_modules(judged: Judged, pattern: str) -> Part:
    """The bytes of modules, with those in them, at the peak of their memory.

    Args:
        pattern: of paths, as ``GPT/blocks.*``; the root may be left out where there is only one,
            as in reports, or a dot may follow it, as in JSON.
    Raises:
        NotMeasured: no module matches, or there is no memory of PyTorch.
    """
    _has_torch(judged, "modules")
    known = judged.blocks
    if not known.modules.paths:
        raise NotMeasured(
            f"no block in {judged.recording.path} has the path of a module; budget a role, as "
            "peak.activations, or leave the budget out"
        )
    chosen = {path for path in _prefixes(known.modules) if _matches(pattern, path, known.modules)}
    if not chosen:
        several = sorted(_prefixes(known.modules), key=lambda path: (len(path), path))
        there = ", ".join(map(_recorded, several[:MOST_NAMED]))
        more = ", ..." if several[MOST_NAMED:] else ""
        raise NotMeasured(
            f"no module matches '{pattern}'; modules are {there}{more}; tlmem peak "
            f"{shlex.quote(str(judged.recording.path))} --by module lists them"
        )
    within = [
        any(path[:depth] in chosen for depth in range(1, len(path) + 1))
        for path in known.modules.paths
    ]
    # Number -1, of blocks of no module, meets the last element.
    return _largest(judged, np.array([*within, False])[known.modules.path], "module")


def _largest(judged: Judged, mine: NDArray[np.bool_], by: str) -> Part:
    """Of all memories the one in which a part is largest at that memory's peak."""
    blocks, path = judged.blocks.blocks, judged.recording.path
    best = Part(0, "")
    for number, name in enumerate(blocks.memories):
        _, event = blocks.peaks[number]
        alive = mine & (blocks.memory == number) & blocks.alive(event)
        size = int(blocks.size[alive].sum())
        if size > best.bytes:
            when = format_seconds(blocks.time_of(event) / 1e9)
            of = "" if name == HOST else f" of {name}"
            memory = "" if len(blocks.memories) == 1 else f" --memory {shlex.quote(name)}"
            best = Part(
                size,
                f"The peak{of} is {when} after the start; tlmem peak {shlex.quote(str(path))} "
                f"--by {by}{memory} shows its parts.",
            )
    return best


def _has_torch(judged: Judged, what: str) -> None:
    """Checks that there is memory of PyTorch.

    Raises:
        NotMeasured: there is none.
    """
    if not judged.blocks.blocks.torch.any():
        raise NotMeasured(
            f"{judged.recording.path} has no memory of PyTorch, and {what} are known of that only; "
            "budget peak, or record a program that uses PyTorch"
        )


def _prefixes(modules: Modules) -> set[tuple[str, ...]]:
    """Every path, and the paths of all modules that one is in."""
    return {path[:depth] for path in modules.paths for depth in range(1, len(path) + 1)}


def _recorded(path: tuple[str, ...]) -> str:
    """A path as it was recorded: ``GPT/blocks.3.fc``."""
    return f"{path[0]}/{'.'.join(path[1:])}".rstrip("/")


def _matches(pattern: str, path: tuple[str, ...], modules: Modules) -> bool:
    """Whether a path matches as it was recorded, as JSON has it, or as reports write it."""
    written = (_recorded(path), ".".join(path), modules.text(path))
    return any(fnmatchcase(text, pattern) for text in written)
