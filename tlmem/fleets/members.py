"""Which recordings a fleet consists of: folders, patterns and files become a list of files.

Covers: files below a folder, patterns that the shell left alone, children of a recorded process.
Does not cover: whether they can be read; see ``engine``.
"""

from __future__ import annotations

import glob
import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path

from tlmem.errors import MissingFile, TlmemError, TooManyEvents, TooManyFiles
from tlmem.recording import family
from tlmem.recording.format import remote
from tlmem.recording.format.live_file import gather, read_names
from tlmem.recording.format.segments import Scanner, Source
from tlmem.recording.format.symbols import NOTE
from tlmem.recording.identity import Identity, identity

MOST_FILES = 100_000
"""Of so many recordings the digests take 150 MB."""
MOST_NAMED = 8

AnyPath = str | os.PathLike[str]


class NoSuchProcess(TlmemError):
    """``--process`` names none of the recordings, or several."""


def absolute(path: AnyPath) -> str:
    """The path as another process finds it: a URL as it is."""
    return remote.url_of(path) or os.path.abspath(path)


def is_many(path: AnyPath) -> bool:
    """Whether a path names a folder or a pattern instead of one recording."""
    return os.path.isdir(path) or remote.is_folder(path) or is_pattern(path)


def is_pattern(path: AnyPath) -> bool:
    """Whether a path is a pattern such as ``run/*.tlm``; a file of this very name is none."""
    return glob.has_magic(os.fspath(path)) and not os.path.lexists(path)


def files_of(paths: AnyPath | Iterable[AnyPath]) -> list[Path]:
    """The recordings that paths name, each once, in the order of their names.

    Args:
        paths: files, each of which stands for its family too; folders, for every ``.tlm`` file in
            them and below; patterns, for what they match.
    Raises:
        MissingFile: a folder has no recordings, or a pattern matches nothing.
        TooManyEvents: there are more than ``MOST_FILES``.
    """
    given: Sequence[AnyPath] = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: dict[Path, None] = {}
    beside = _Beside()
    for path in given:
        for file in _named(path):
            found[file] = None
            if beside.may_have_children(file):
                found.update(dict.fromkeys(family.find(file)))
            if len(found) > MOST_FILES:
                raise TooManyEvents(
                    f"there are more than {MOST_FILES:,} recordings; name fewer of them"
                )
    unique: dict[Path, Path] = {}
    for file in found:
        unique.setdefault(Path(absolute(file)), file)
    return list(unique.values())


def identity_of(file: Path) -> Identity:
    """Who the process of a recording is, from its header and notes alone.

    Raises:
        TlmemError: it cannot be read.
    """
    source = Source(file)
    pieces = gather(source, Scanner(source))
    names = read_names(source, pieces.directory, [], only=NOTE)
    return identity(names.notes, pieces.header.pid)


def chosen(files: Iterable[Path], word: str) -> Path:
    """The recording of the process that a rank, a worker's name or a process id names.

    Raises:
        NoSuchProcess: none of the files is that of such a process, or several are.
        TooManyFiles: as ``Source``.
    """
    known: list[tuple[Path, Identity]] = []
    for file in files:
        try:
            known.append((file, identity_of(file)))
        except TooManyFiles:
            raise
        except TlmemError:
            continue  # damaged beyond use: it is not known whose it is
    of_rank = [pair for pair in known if word.isdecimal() and pair[1].rank == int(word)]
    found = of_rank or [pair for pair in known if word in (pair[1].worker, str(pair[1].pid))]
    if not found:
        some = ", ".join(who.short for _, who in sorted(known, key=_by_order)[:MOST_NAMED])
        raise NoSuchProcess(
            f"no process has the rank, worker's name or pid {word}; there are {some}"
        )
    if len(found) > 1:
        several = ", ".join(f"{who} in {file}" for file, who in found[:MOST_NAMED])
        raise NoSuchProcess(
            f"{len(found)} processes are called {word}: {several}; give a pid or FILE"
        )
    return found[0][0]


def _by_order(pair: tuple[Path, Identity]) -> tuple[object, ...]:
    return pair[1].order


def _named(path: AnyPath) -> list[Path]:
    """What one path stands for, without families."""
    url = remote.url_of(path)
    if url and is_many(path):
        found = remote.listed(url, family.SUFFIX)
        if not found:
            what = "has no recordings" if remote.is_folder(path) else "matches no file"
            raise MissingFile(f"{url} {what}; check the URL")
        return found
    if is_pattern(path):
        matched = sorted(glob.glob(os.fspath(path), recursive=True))
        files = [Path(name) for name in matched if os.path.isfile(name)]
        if not files:
            raise MissingFile(f"{os.fspath(path)} matches no file; check the pattern")
        return files
    if not os.path.isdir(path):
        return [Path(path)]
    files = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        files += [Path(folder, name) for name in sorted(names) if name.endswith(family.SUFFIX)]
        if len(files) > MOST_FILES:
            break
    if not files:
        raise MissingFile(
            f"{os.fspath(path)} has no recordings ({family.SUFFIX}) in it; record into it with "
            f"tlmem record -o {os.path.join(os.fspath(path), 'NAME')}{family.SUFFIX}"
        )
    return files


class _Beside:
    """Names in folders, each folder listed once: very many files have no children each."""

    def __init__(self) -> None:
        self._names: dict[Path, list[str]] = {}

    def may_have_children(self, file: Path) -> bool:
        """Whether a file beside this one is called like a child's."""
        folder = file.parent
        if folder not in self._names:
            try:
                self._names[folder] = sorted(os.listdir(folder))
            except OSError:
                self._names[folder] = []
        names, stem = self._names[folder], file.name.removesuffix(family.SUFFIX) + "."
        for name in names[bisect_left(names, stem) :]:
            if not name.startswith(stem):
                return False
            if name != file.name:
                return True
        return False
