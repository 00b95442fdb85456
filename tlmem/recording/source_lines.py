"""The text of lines of the recorded program: what is in the recording, and files if asked for.

A recording names files, and whoever made it chose the names. So no file is opened because of it,
unless the reader of the report named a folder (``--source-root``); then only regular files below
that folder, of bounded size and not newer than the recording.

Covers: text of a line by file and line. Does not cover: how text comes into a recording, or what is
made plain (``format.symbols``).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tlmem.errors import MissingFile
from tlmem.recording.format.symbols import LONGEST_LINE, Code, source_text

LARGEST_FILE = 10_000_000
MOST_BYTES = 100_000_000
MOST_FILES = 2_000
"""Bounds of what is read below the folders: bytes of one file, bytes and files in all."""
_FLAGS = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")


class _Text:
    """A file and where its lines end."""

    def __init__(self, data: bytes) -> None:
        self._data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        ends = np.flatnonzero(np.frombuffer(self._data, np.uint8) == ord("\n"))
        self._starts = np.concatenate([[0], ends + 1])

    def line(self, number: int) -> str:
        if not 1 <= number <= len(self._starts):
            return ""
        start = int(self._starts[number - 1])
        piece = self._data[start : start + 4 * LONGEST_LINE].split(b"\n", 1)[0]
        return piece.decode("utf-8", "replace")


_NO_TEXT = _Text(b"")


class SourceLines:
    """Text of lines by file and line; empty where there is none.

    Args:
        codes, lines: the names of a recording.
        roots: folders below which files may be read.
        directory: where the program ran; relative to it, files are looked for below the folders.
        newest_ns: when the recording ended; a file that changed later shows other lines.

    Raises:
        MissingFile: a folder does not exist.
    """

    def __init__(
        self,
        codes: Mapping[int, Code],
        lines: Mapping[tuple[int, int], str],
        roots: Sequence[str | os.PathLike[str]] = (),
        directory: str = "",
        newest_ns: int = 0,
    ) -> None:
        self.refused: dict[str, str] = {}
        """File below a folder -> why it was not read."""
        self._recorded = _by_place(codes, lines)
        self._has_code = bool(codes)
        self._roots = real_folders(roots)
        self._directory = directory
        self._newest_ns = newest_ns
        self._files: dict[str, _Text] = {}
        self._bytes_left = MOST_BYTES

    @property
    def is_missing(self) -> bool:
        """Whether there is code, and nothing that its text could come from."""
        return self._has_code and not self._recorded and not self._roots

    def line(self, file: str, line: int, function: str = "") -> str:
        """The text of a line, without its indentation.

        Names that are no paths, as ``<string>``, several texts may have: there, it needs the name
        of the function.
        """
        text = self._recorded.get((file, "" if file.startswith("/") else function, line), "")
        if text or not self._roots or line < 1:
            return text
        if file not in self._files and len(self._files) < MOST_FILES:
            self._files[file] = self._read(file)
        return source_text(self._files.get(file, _NO_TEXT).line(line))

    def _read(self, file: str) -> _Text:
        for path, root in self._candidates(file):
            try:
                data = self._contents(path, root)
            except (OSError, ValueError):
                continue
            if data is not None:
                self._bytes_left -= len(data)
                return _Text(data)
        return _NO_TEXT

    def _candidates(self, file: str) -> Iterable[tuple[str, str]]:
        """Where the file may be: as it is named, or below a folder as it was below the program's.

        A compiler of C may have been given a relative path. Names that are no paths, as
        ``<string>``, have none.
        """
        if file.startswith("<") or "\0" in file:
            return
        relative = "" if file.startswith("/") else file
        if self._directory and file.startswith(self._directory.rstrip("/") + "/"):
            relative = file[len(self._directory.rstrip("/")) + 1 :]
        for root in self._roots:
            if file.startswith("/"):
                yield file, root
            if relative:
                yield os.path.join(root, relative), root

    def _contents(self, path: str, root: str) -> bytes | None:
        """The bytes of a file; None when it may not be read."""
        real = os.path.realpath(path)
        if not _is_below(real, root) or not stat.S_ISREG(os.lstat(real).st_mode):
            return None
        flags = os.O_RDONLY
        for name in _FLAGS:
            flags |= getattr(os, name, 0)
        fd = os.open(real, flags)
        with open(fd, "rb") as opened:
            now = os.fstat(fd)
            if not stat.S_ISREG(now.st_mode) or not _is_below(_path_of(fd, real), root):
                return None  # replaced since it was looked at
            if now.st_mtime_ns > self._newest_ns:
                self.refused[path] = "it is newer than the recording"
            elif now.st_size > LARGEST_FILE:
                self.refused[path] = f"it is larger than {LARGEST_FILE // 1_000_000} MB"
            elif now.st_size > self._bytes_left:
                self.refused[path] = f"{MOST_BYTES // 1_000_000} MB of others were read before it"
            else:
                return opened.read(now.st_size)
        return None


def _by_place(
    codes: Mapping[int, Code], lines: Mapping[tuple[int, int], str]
) -> dict[tuple[str, str, int], str]:
    """Text by file, function and line; without the function where the file is a path."""
    others = {number: code for number, code in codes.items() if not code.file.startswith("/")}
    for number, _ in lines:
        others.pop(number, None)
    unclear = {(code.file, code.function) for code in others.values()}
    found = {}
    for (number, line), text in lines.items():
        code = codes.get(number)
        if code is None or (code.file, code.function) in unclear:
            continue
        found[code.file, "" if code.file.startswith("/") else code.function, line] = text
    return found


def real_folders(roots: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """The folders, with every link followed.

    Raises:
        MissingFile: one does not exist.
    """
    found = []
    for root in roots:
        real = os.path.realpath(os.fspath(root))
        if not os.path.isdir(real):
            raise MissingFile(
                f"{os.fspath(root)} is not a folder; --source-root needs the folder that the "
                "program's source is in."
            )
        found.append(real)
    return tuple(found)


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")


def _path_of(fd: int, path: str) -> str:
    """Where an open file lies, where the system says it; otherwise ``path``."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return path
