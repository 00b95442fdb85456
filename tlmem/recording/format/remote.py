"""Recordings in object storage, read by ranges: ``s3://bucket/x.tlm`` and all that fsspec knows.

A path of the form ``s3:/bucket/x.tlm``, which ``pathlib`` makes of a URL, means the same.

Covers: which paths are URLs, ranges and how much is fetched ahead, folders and patterns there.
Does not cover: writing. A file in object storage never changes; its size is asked for once.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from tlmem.errors import DamagedRecording, MissingFile

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,3}(?=[^/])")
"""A scheme of two letters or more: one alone is a drive of Windows."""
CHUNK_BYTES = 262_144
"""The least that is fetched at once."""
MOST_AHEAD = 32
"""So many chunks at most are fetched at once, when one is read behind the other."""
MOST_CHUNKS = 96
"""Chunks that are kept: 25 MB."""


def url_of(path: object) -> str:
    """The URL that a path means; empty for a path of this machine."""
    found = _URL.match(str(path))
    if not found:
        return ""
    root = "/" if found[1].lower() == "file" else ""
    return f"{found[1]}://{root}{str(path)[found.end() :]}"


def filesystem(url: str) -> tuple[Any, str]:
    """The file system of fsspec for a URL, and the path in it.

    Raises:
        MissingFile: fsspec, or what it needs for this scheme, is not installed or not set up.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingFile(
            f"{url} needs fsspec, which is not installed; pip install 'tlmem[remote]'"
        ) from None
    try:
        found: tuple[Any, str] = url_to_fs(url)
    except ImportError as error:
        raise MissingFile(f"{url} cannot be opened: {error}") from None
    except Exception as error:
        raise MissingFile(f"{url} cannot be opened: {_reason(error)}") from None
    return found


def is_folder(path: object) -> bool:
    """Whether a URL names all recordings below it: it ends in ``/``."""
    return bool(url_of(path)) and str(path).endswith("/")


def listed(url: str, suffix: str) -> list[Path]:
    """The files of a pattern, or those with a suffix below a folder that ends in ``/``.

    Raises:
        MissingFile: the storage cannot be asked.
    """
    system, inside = filesystem(url)
    scheme = url.partition("://")[0]
    try:
        if url.endswith("/"):
            names = [name for name in system.find(inside) if name.endswith(suffix)]
        else:
            names = system.glob(inside)
    except Exception as error:
        raise MissingFile(f"{url} cannot be listed: {_reason(error)}") from None
    return [Path(f"{scheme}://{name.lstrip('/')}") for name in sorted(names)]


class Ranges:
    """A file in object storage: bytes from any offset, by few requests.

    Chunks that were fetched are kept, the latest ``MOST_CHUNKS``. What is read in order is fetched
    ahead, twice as much each time.

    Raises:
        MissingFile: there is no such file, or it cannot be opened.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests = 0
        self._system, self._inside = filesystem(url)
        self._chunks: OrderedDict[int, bytes] = OrderedDict()
        self._next, self._ahead = -1, 1
        self._lock = threading.Lock()
        try:
            about = self._system.info(self._inside)
        except FileNotFoundError:
            raise MissingFile(f"{url} does not exist; check the URL") from None
        except Exception as error:
            raise MissingFile(f"{url} cannot be opened: {_reason(error)}") from None
        if about.get("type") == "directory":
            raise MissingFile(f"{url} is a folder; end it in / for all recordings in it")
        self.size = int(about["size"] or 0)

    def read(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``offset``; fewer at the end of the file.

        Raises:
            DamagedRecording: the storage does not give them.
        """
        end = min(offset + count, self.size)
        if offset >= end:
            return b""
        first, last = offset // CHUNK_BYTES, (end - 1) // CHUNK_BYTES
        with self._lock:
            parts = [self._chunk(number, last) for number in range(first, last + 1)]
        whole = b"".join(parts)
        return whole[offset - first * CHUNK_BYTES : end - first * CHUNK_BYTES]

    def _chunk(self, number: int, last: int) -> bytes:
        if number not in self._chunks:
            self._fetch(number, last)
        self._chunks.move_to_end(number)
        return self._chunks[number]

    def _fetch(self, number: int, last: int) -> None:
        """Gets a chunk, those up to ``last``, and more where reading goes on in order."""
        self._ahead = min(2 * self._ahead, MOST_AHEAD) if number == self._next else 1
        stop = min(max(number + self._ahead, last + 1), -(-self.size // CHUNK_BYTES))
        stop = min(stop, number + MOST_CHUNKS)
        begin, end = number * CHUNK_BYTES, min(stop * CHUNK_BYTES, self.size)
        self.requests += 1
        try:
            data = self._system.cat_file(self._inside, start=begin, end=end)
        except Exception as error:
            raise DamagedRecording(f"{self.url} cannot be read: {_reason(error)}") from None
        if len(data) != end - begin:
            raise DamagedRecording(
                f"{self.url} cannot be read: {len(data)} bytes came instead of {end - begin}"
            )
        for each in range(number, stop):
            at = (each - number) * CHUNK_BYTES
            self._chunks[each] = data[at : at + CHUNK_BYTES]
        while len(self._chunks) > MOST_CHUNKS:
            self._chunks.popitem(last=False)
        self._next = stop


def _reason(error: Exception) -> str:
    """What an exception of a storage says, on one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text.rstrip(".")
