"""The recordings of one family of processes: a program's and those of the children it started.

Covers: which files beside a recording are its children's. The child with process id P of the
recording ``X.tlm`` is ``X.P.tlm``, its child Q is ``X.P.Q.tlm``; headers confirm what names say.
Does not cover: reading them (``recording``).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tlmem.errors import TlmemError
from tlmem.recording.format.segments import FileHeader, Source, read_header

SUFFIX = ".tlm"


def find(path: str | os.PathLike[str]) -> list[Path]:
    """Recordings of the children of a recorded process, and of theirs, each parent before its own.

    A file whose header names another parent, or that is older than its parent, is left from an
    earlier run and does not count.
    """
    path = Path(path)
    header = _header(path)
    if header is None:
        return []
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    return _below(path, header, names)


def _below(path: Path, parent: FileHeader, names: list[str]) -> list[Path]:
    pattern = re.compile(re.escape(_stem(path.name)) + r"\.(\d+)" + re.escape(SUFFIX))
    found = []
    matches = filter(None, map(pattern.fullmatch, names))
    for match in sorted(matches, key=lambda match: int(match[1])):
        child = path.with_name(match[0])
        header = _header(child)
        if (
            header is not None
            and header.pid == int(match[1])
            and header.parent_pid == parent.pid
            and header.created_unix_ns >= parent.created_unix_ns
        ):
            found += [child, *_below(child, header, names)]
    return found


def _stem(name: str) -> str:
    return name.removesuffix(SUFFIX)


def _header(path: Path) -> FileHeader | None:
    try:
        return read_header(Source(path))
    except TlmemError:
        return None
