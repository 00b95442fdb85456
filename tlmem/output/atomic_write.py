"""How a file comes to be whole, or not at all.

Covers: writing beside the place and moving into it, refusing to overwrite, a folder of files,
``-`` as a name for standard output. Does not cover: what is written.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from tlmem.errors import TlmemError

STDOUT = "-"
"""The name of standard output, where a command takes the name of a file."""


class CannotWrite(TlmemError):
    """An output exists already, or its place cannot be written."""

    exit_code = 2


def write_file(path: str | os.PathLike[str], write: Callable[[Path], object], force: bool) -> None:
    """Makes one file: ``write`` is given a place beside it, which then takes its name.

    After an error nothing new is left, and what was there before is as it was. What is no regular
    file, such as /dev/stdout or a pipe, is written directly; ``-`` is standard output.

    Raises:
        CannotWrite: the file exists and ``force`` is not given, the disk is full, permission is
            denied, or binary data would go to a terminal.
    """
    if os.fspath(path) == STDOUT:
        _to_stdout(write)
        return
    target = Path(path)
    with _refusals(target):
        if _is_special(target):
            write(target)
            return
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        target = _free_place(target, force)
        with _own_folder(target) as folder:
            beside = folder / target.name
            write(beside)
            if target.exists():
                shutil.copymode(target, beside)
            os.replace(beside, target)


def write_folder(
    path: str | os.PathLike[str],
    write: Callable[[Path], object],
    force: bool,
    known: Collection[str],
) -> None:
    """Makes one folder: ``write`` is given an empty one beside it, which then takes its name.

    Args:
        path: the folder to make.
        write: puts the files into the folder that it is given.
        force: a folder that is there already may be replaced, when it holds nothing but files with
            the names in ``known``.
        known: names of files that an earlier call may have written.
    Raises:
        CannotWrite: the place is taken, the disk is full, or permission is denied.
    """
    if os.fspath(path) == STDOUT:
        raise CannotWrite("a folder of files cannot go to standard output; name one with -o.")
    target = Path(path)
    with _refusals(target):
        if target.name in ("", ".."):
            raise CannotWrite(
                f"{target} cannot be replaced by a folder of files; name one with -o."
            )
        target = _free_place(target, force)
        replaces = target.is_dir()
        strangers = sorted(set(os.listdir(target)) - set(known)) if replaces else []
        if strangers or (target.exists() and not replaces):
            what = f"holds '{strangers[0]}'" if strangers else "is not a folder"
            raise CannotWrite(
                f"{target} {what}, which this command did not write; choose another place with -o."
            )
        with _own_folder(target) as folder:
            beside = folder / target.name
            beside.mkdir()
            write(beside)
            if replaces:
                shutil.rmtree(target)
            os.replace(beside, target)


def _to_stdout(write: Callable[[Path], object]) -> None:
    """Lets a file be written to a place of our own and sends it to standard output."""
    with tempfile.TemporaryDirectory(prefix="tlmem-") as folder:
        beside = Path(folder) / "output"
        write(beside)
        written = beside.read_bytes()
    try:
        sys.stdout.flush()
        if sys.stdout.isatty() and not _is_text(written):
            raise CannotWrite(
                "this output is not text and would garble the terminal; name a file with -o, or "
                "send standard output to one."
            )
        sys.stdout.buffer.write(written)
        sys.stdout.buffer.flush()
    except OSError as error:
        # Python must not complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return
        raise CannotWrite(
            f"standard output cannot be written ({error.strerror or error}); name a file with -o."
        ) from None


def _is_text(written: bytes) -> bool:
    """Whether a terminal can show it."""
    try:
        written.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in written


@contextmanager
def _own_folder(target: Path) -> Iterator[Path]:
    """A folder beside the target that only we can look into, with a name that cannot be guessed.

    In a folder of all users another one could put a link where we are about to write.
    """
    folder = tempfile.mkdtemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_special(path: Path) -> bool:
    """Whether a path is there and neither a regular file nor a folder."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _free_place(target: Path, force: bool) -> Path:
    """Where to write: the file itself, also behind a link."""
    if target.exists() and not force:
        raise CannotWrite(
            f"{target} exists; overwrite it with -f, or choose another place with -o."
        )
    return target.resolve() if target.is_symlink() else target


@contextmanager
def _refusals(target: Path) -> Iterator[None]:
    """Turns what the operating system refuses into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CannotWrite(
                f"{target} needs more room than there is ({error.strerror}); nothing was left "
                "there: make room, or choose another place with -o."
            ) from None
        raise CannotWrite(
            f"{target} cannot be written ({error.strerror or error}); choose another place with -o."
        ) from None
