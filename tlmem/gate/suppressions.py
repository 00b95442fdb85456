"""Leaks that are known and accepted, in the file format of LeakSanitizer.

A line is ``leak:PATTERN``; ``#`` begins a comment. A leak is suppressed when the pattern is found
in the function, the file or the module of any frame of its stack: anywhere in it, ``*`` standing
for anything, ``^`` and ``$`` for its begin and end.

Covers: reading the files, matching, which patterns were used. Source: the LeakSanitizer manual,
"Suppressions".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tlmem.analysis.model import Finding, StackFrame
from tlmem.gate.budgets import BadOptions


@dataclass(frozen=True)
class Suppression:
    """One line of a file."""

    pattern: str
    origin: str

    def matches(self, finding: Finding) -> bool:
        """Whether it is about this leak."""
        found = _compiled(self.pattern)
        frames = [*finding.stack, *([finding.site] if finding.site else [])]
        return any(found.search(text) for frame in frames for text in texts_of(frame))


@dataclass(frozen=True)
class Used:
    """A suppression and what it suppressed: how many findings, objects and bytes."""

    suppression: Suppression
    findings: int
    objects: int
    bytes: int


def read(paths: Iterable[Path]) -> tuple[Suppression, ...]:
    """The lines of some files.

    Raises:
        BadOptions: a file cannot be read, or has a line that is none; the message has its number.
    """
    found = []
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise BadOptions(f"suppressions {path} cannot be read ({error.strerror}).") from None
        except UnicodeDecodeError:
            raise BadOptions(f"suppressions {path} are not a text.") from None
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            kind, colon, pattern = text.partition(":")
            if kind != "leak" or not colon or not pattern.strip():
                raise BadOptions(
                    f"{path}:{number}: {text!r} is not understood; write leak:PATTERN."
                )
            found.append(Suppression(pattern.strip(), f"{path}:{number}"))
    return tuple(found)


def apply(
    findings: Iterable[Finding], suppressions: tuple[Suppression, ...]
) -> tuple[list[Finding], list[Finding], list[Used]]:
    """Findings that are left, those that are suppressed, and what each suppression did.

    The first that matches counts. Unused ones are among the last, with zeros.
    """
    left: list[Finding] = []
    gone: list[Finding] = []
    counts = {suppression: [0, 0, 0] for suppression in suppressions}
    for finding in findings:
        first = next((one for one in suppressions if one.matches(finding)), None)
        if first is None:
            left.append(finding)
            continue
        gone.append(finding)
        counts[first][0] += 1
        if finding.kind == "growing-site":  # its class speaks of the same objects
            counts[first][1] += finding.count
            counts[first][2] += finding.bytes
    return left, gone, [Used(one, *counts[one]) for one in suppressions]


def texts_of(frame: StackFrame) -> tuple[str, str, str]:
    """Function, file and module of a frame."""
    return frame.function, frame.file, module_of(frame.file)


def module_of(file: str) -> str:
    """The dotted name that a file has below ``site-packages``, else below the root."""
    inside = re.split(r"/(?:site|dist)-packages/", file)[-1]
    dotted = inside.removesuffix(".py").strip("/").replace("/", ".")
    return dotted.removesuffix(".__init__")


def matches_site(pattern: str, finding: Finding) -> bool:
    """Whether a leak was made at a place such as ``model.py:30`` or ``Layer.forward``."""
    if finding.site is None:
        return False
    return matches_frame(pattern, finding.site)


def matches_frame(pattern: str, frame: StackFrame) -> bool:
    """Whether a pattern matches a place: its function, its file, or file and line."""
    found = _compiled(pattern)
    texts = (*texts_of(frame), f"{frame.file}:{frame.line}")
    return any(found.search(text) for text in texts)


def _compiled(pattern: str) -> re.Pattern[str]:
    begin, end = pattern.startswith("^"), pattern.endswith("$")
    inner = pattern[begin : len(pattern) - end]
    middle = ".*".join(re.escape(part) for part in inner.split("*"))
    return re.compile(("^" if begin else "") + middle + ("$" if end else ""))
