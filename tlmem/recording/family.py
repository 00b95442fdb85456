"""The recordings of one family of processes: a program's and those of the children it started.

Covers: which files beside a recording are its children's. The child with process id P of the
recording ``X.tlm`` is ``X.P.tlm``, its child Q is ``X.P.Q.tlm``; headers confirm what names say.
P may have left no file, as one that only started Q does: then Q comes right below ``X.tlm``.
Does not cover: reading them (``recording``).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from tlmem.errors import TlmemError, TooManyEvents, TooManyFiles
from tlmem.recording.format.segments import FileHeader, Source, read_header

SUFFIX = ".tlm"
MOST_MEMBERS = 10_000
_MISSING = re.compile(r"(.+)\.([0-9]{1,10})", re.DOTALL)
_CHILD = re.compile(r"(.+)\.([0-9]{1,10})" + re.escape(SUFFIX), re.DOTALL)


def find(path: str | os.PathLike[str]) -> list[Path]:
    """Recordings of the children of a recorded process, and of theirs, each parent before its own.

    A file whose header names another parent, or that is older than its parent, is left from an
    earlier run and does not count.

    Raises:
        TooManyEvents: there are more than any program starts.
        TooManyFiles: one of them cannot be opened, because too many files are open.
    """
    path = Path(path)
    header = _header(path)
    if header is None:
        return []
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    children: dict[str, list[Child]] = {}
    present = {_stem(name) for name in names if name.endswith(SUFFIX)}
    for name in names:
        match = _CHILD.fullmatch(name)
        if match and name.startswith(_stem(path.name)):
            above, parent_pid = match[1], 0
            while above not in present and (gone := _MISSING.fullmatch(above)):
                parent_pid = parent_pid or int(gone[2])
                above = gone[1]
            children.setdefault(above, []).append(Child(int(match[2]), name, parent_pid))
    return _below(path, header, children)


class Child(NamedTuple):
    """A file that says by its name that it is a child's; ``parent_pid`` is 0, or that of a parent
    without a file."""

    pid: int
    name: str
    parent_pid: int


def _below(path: Path, parent: FileHeader, children: dict[str, list[Child]]) -> list[Path]:
    found: list[Path] = []
    waiting = [(path, parent)]
    while waiting:
        path, parent = waiting.pop()
        found.append(path)
        if len(found) > MOST_MEMBERS:
            raise TooManyEvents(
                f"{found[0]} and the processes that it started have more than {MOST_MEMBERS} "
                "recordings; move those that are not needed to another directory"
            )
        below = []
        for each in sorted(children.get(_stem(path.name), [])):
            child = path.with_name(each.name)
            header = _header(child)
            if (
                header is not None
                and header.pid == each.pid
                and header.parent_pid == (each.parent_pid or parent.pid)
                and header.created_unix_ns >= parent.created_unix_ns
            ):
                below.append((child, header))
        waiting.extend(reversed(below))
    return found[1:]


def _stem(name: str) -> str:
    return name.removesuffix(SUFFIX)


def _header(path: Path) -> FileHeader | None:
    try:
        return read_header(Source(path))
    except TooManyFiles:
        raise
    except TlmemError:
        return None
