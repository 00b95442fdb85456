"""Reads pickled plain values without running anything that a pickle may ask for.

A pickle is a program for a small machine. Here the instruction that looks up a class or function is
refused, so that lists, dicts, texts and numbers are all that comes out. What an instruction may
take memory for is bounded too: a few bytes can ask for a table of sixteen gigabytes.

Covers: pickles, the same in gzip, and files of ``torch.save`` that hold one.
Does not cover: what the values mean (``snapshot``).
"""

from __future__ import annotations

import gzip
import io
import pickle
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tlmem.errors import TlmemError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MOST_BYTES = 8 << 30
"""Of a file. Values take five to ten times as much memory."""
MEMORY_BASE, MEMORY_PER_BYTE = 1 << 28, 40
"""Address space that reading a pickle may add, for each of its bytes and beside that."""
INFLATED_BASE, INFLATED_PER_BYTE = 64 << 20, 200
"""Bytes that a compressed file may inflate to."""
LARGE_FILE = b"version https://git-lfs."
NEXT_STEP = "write one with torch.cuda.memory._dump_snapshot('snapshot.pickle')"


class CannotImport(TlmemError):
    """A file cannot be read, or is not a snapshot."""

    exit_code = 2


class _NotPlain(Exception):
    """A pickle asks for a class or a function."""


class _Plain(pickle.Unpickler):
    """An unpickler that makes plain values only."""

    def find_class(self, module: str, name: str) -> Any:
        raise _NotPlain(f"{module}.{name}"[:100])

    def persistent_load(self, pid: Any) -> Any:
        raise _NotPlain("an object outside the file")


class _PlainInPython(pickle._Unpickler):
    """The same in Python: slower, and none of its tables is as long as an instruction says."""

    find_class = _Plain.find_class
    persistent_load = _Plain.persistent_load


def load(path: Path) -> Any:
    """The value in a file.

    Raises:
        CannotImport: it cannot be opened, is too large, is not a pickle, is cut or damaged, or asks
            for anything but plain values.
    """
    try:
        with open(path, "rb") as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            if size > MOST_BYTES:
                raise CannotImport(
                    f"{path} has {size} bytes, more than the {MOST_BYTES} that are read; record "
                    "with a smaller max_entries"
                )
            if not size:
                raise CannotImport(f"{path} is empty; {NEXT_STEP}")
            if file.read(len(LARGE_FILE)) == LARGE_FILE:
                raise CannotImport(
                    f"{path} stands for a file that Git LFS keeps elsewhere; fetch it with git lfs "
                    "pull"
                )
            file.seek(0)
            return _load(_unpacked(file, size, path), size, path)
    except FileNotFoundError:
        raise CannotImport(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise CannotImport(f"{path} cannot be read: {error.strerror or error}") from None


def _unpacked(file: BinaryIO, size: int, path: Path) -> BinaryIO:
    """The pickle in a file: the file itself, or what a compressed one holds."""
    begin = file.read(4)
    file.seek(0)
    most = INFLATED_BASE + INFLATED_PER_BYTE * size
    try:
        if begin[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=file) as packed:
                return io.BytesIO(_bounded(packed.read(most + 1), most, path))
        if begin == b"PK\x03\x04":
            with zipfile.ZipFile(file) as folder:
                names = [name for name in folder.namelist() if name.endswith("data.pkl")]
                if names:
                    with folder.open(names[0]) as packed:
                        return io.BytesIO(_bounded(packed.read(most + 1), most, path))
    except (zlib.error, zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError,
            RuntimeError, OverflowError) as error:  # fmt: skip
        raise CannotImport(f"{path} is compressed and damaged ({error}); {NEXT_STEP}") from None
    return file


def _bounded(data: bytes, most: int, path: Path) -> bytes:
    if len(data) > most:
        raise CannotImport(f"{path} inflates to more than {most} bytes: it is damaged or forged")
    return data


def _load(file: BinaryIO, size: int, path: Path) -> Any:
    kind = _Plain if _address_space() else _PlainInPython
    try:
        with _bounded_memory(MEMORY_BASE + MEMORY_PER_BYTE * size), _silence():
            return kind(file).load()
    except _NotPlain as error:
        raise CannotImport(
            f"{path} asks for {error} and is not a snapshot of plain values; nothing in it was "
            f"run: {NEXT_STEP}"
        ) from None
    except MemoryError:
        raise CannotImport(
            f"{path} asks for more memory than {size} bytes of a snapshot need: it is damaged or "
            "forged"
        ) from None
    except (EOFError, pickle.UnpicklingError) as error:
        reason = f"{error}"[:100] or "it ends too early"
        raise CannotImport(
            f"{path} is not a whole pickle ({reason.rstrip('.')}); {NEXT_STEP}"
        ) from None
    except Exception as error:  # an instruction met a value that it cannot be used with
        raise CannotImport(
            f"{path} is not a pickle, or is damaged ({type(error).__name__}); {NEXT_STEP}"
        ) from None


@contextmanager
def _bounded_memory(more: int) -> Iterator[None]:
    """Within the block the process may take so much more address space; then it may as before."""
    now = _address_space()
    if not now:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = now + more
    if any(bound <= most for bound in (soft, hard) if bound != resource.RLIM_INFINITY):
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing is printed behind our back.

    CPython up to 3.14 prints an error of its own where a file ends inside a bytearray, beside the
    one that it raises.
    """
    hook = sys.excepthook
    sys.excepthook = lambda *about: None
    try:
        yield
    finally:
        sys.excepthook = hook


def _address_space() -> int:
    """Bytes of address space of this process; 0 where that is not known or cannot be bounded."""
    if resource is None:
        return 0
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0
