"""Which file ``tlmem live`` follows: a path, the recording of a process, or the newest one here.

Covers: finding it, waiting for its first event, whether a process still runs. Does not cover:
following it (``following``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from tlmem.errors import MissingFile, TlmemError
from tlmem.recording.format.segments import OPEN, FileHeader, Source, read_header
from tlmem.recording.reader import read

from .glance import Glance, glance

SUFFIX = ".tlm"
WAIT_S = 0.05


def find_recording(target: str | None, folder: Path) -> Path:
    """The file that is meant.

    Args:
        target: a path, the number of a process, or None for the newest recording of ``folder`` that
            is still being written.
    Raises:
        MissingFile: there is none; the sentence says what to do.
    """
    if target is None:
        return _newest(folder)
    if not target.isdecimal() or Path(target).exists():
        return Path(target)
    mapped = _mapped_by(int(target))
    if mapped is not None:
        return mapped
    for path, header in _recordings(folder):
        if header.pid == int(target):
            return path
    raise MissingFile(
        f"process {target} writes no recording that can be found; name the file instead"
    )


def wait_for_events(path: Path, sleep: Callable[[float], None] = time.sleep) -> Glance:
    """A first look, once there is something to look at.

    Raises:
        TlmemError: the file is missing, no recording, damaged, or empty and its process has ended.
    """
    while True:
        try:
            read(path)
            return glance(path)
        except TlmemError as error:
            header = _header(path)
            if header is None or header.state != OPEN or not is_running(header.pid):
                raise error
        sleep(WAIT_S)


def is_running(pid: int) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except OSError:
        return True
    return True


def _newest(folder: Path) -> Path:
    written = [
        (path.stat().st_mtime_ns, path)
        for path, header in _recordings(folder)
        if header.state == OPEN and header.parent_pid == 0 and is_running(header.pid)
    ]
    if not written:
        raise MissingFile(
            f"no recording is being written in {folder}; "
            "name a FILE or a PID (tlmem live --help explains)"
        )
    return max(written)[1]


def _recordings(folder: Path) -> list[tuple[Path, FileHeader]]:
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        header = _header(path)
        if header is not None:
            found.append((path, header))
    return found


def _header(path: Path) -> FileHeader | None:
    try:
        return read_header(Source(path))
    except TlmemError:
        return None


def _mapped_by(pid: int) -> Path | None:
    """The recording that a process has mapped, where the system tells."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split(maxsplit=5)
        if len(words) == 6 and words[5].endswith(SUFFIX):
            header = _header(Path(words[5]))
            if header is not None and header.pid == pid:
                return Path(words[5])
    return None
