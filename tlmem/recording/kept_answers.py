"""What was worked out from a long recording, kept with its sums: the second command is at once.

An answer is kept for the very bytes of the recording, the question in words, and the code and
libraries that gave it. Covers: when one is kept and found again, and how it is written. Does not
cover: the file (``format.kept_sums``), what is asked (``Recording.kept``).
See also: docs/decisions/sums.md.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MethodType
from typing import Any

from tlmem.errors import TlmemError
from tlmem.recording.format.kept_sums import KeptSums
from tlmem.recording.format.remote import url_of
from tlmem.recording.format.segments import Source

Question = tuple[object, ...]
"""Words and numbers whose ``repr`` says which question it is."""
NOTHING = object()
"""Of a question whose answer is not kept."""
_LIBRARIES = ("numpy", "pandas", "scipy")
_CHUNK_BYTES = 1 << 20
_CHUNKS_OF_ONE_CORE = 64


class KeptAnswers:
    """The answers that are kept about one recording that has ended, as one reader sees it.

    Args:
        source: the recording.
        about: what answers depend on besides its bytes, its name and the current directory.

    An ``owner`` and its methods may be in answers, and are not written.
    """

    def __init__(self, source: Source, about: Question) -> None:
        self._source, self._about = source, about
        self._sums = KeptSums(Path(source.path), source.size())
        self._answers = self._sums.answers()
        # Each byte of a file in object storage would be fetched twice; it does not change.
        early = bool(self._answers) or not url_of(source.path)
        self._digest = self._digest_now() if early else ""

    def find(self, question: Question, owner: object) -> Any:
        """An answer; ``NOTHING`` when none is kept."""
        data = self._answers.get(self._key(question))
        if data is None:
            return NOTHING
        try:
            return _Reader(io.BytesIO(data), owner).load()
        except Exception:  # what older libraries have written may raise anything
            return NOTHING

    def keep(self, answers: Mapping[Question, object], owner: object) -> None:
        """Keeps short answers, provided the recording has not changed since it was read."""
        now = self._digest_now()
        self._digest = self._digest or now
        if not now or now != self._digest:
            return
        written = {}
        for question, answer in answers.items():
            data = io.BytesIO()
            try:
                _Writer(data, owner).dump(answer)
            except (pickle.PicklingError, AttributeError, TypeError):
                continue
            written[self._key(question)] = data.getvalue()
        self._sums.keep_answers(written)

    def _key(self, question: Question) -> str:
        return hashlib.blake2b(repr((self._digest, question)).encode(), digest_size=16).hexdigest()

    def _digest_now(self) -> str:
        """A digest of all that an answer depends on; empty where that cannot be read."""
        source, digest = self._source, hashlib.sha256()
        try:
            around = (os.fspath(source.path), str(Path.cwd()), sys.version, source.size())
            about = repr((around, self._about, _made_by()))
            digest.update(about.encode("utf-8", "surrogateescape"))
            for of_chunk in _digests(source):
                digest.update(of_chunk)
        except (TlmemError, OSError):
            return ""
        return digest.hexdigest()


def _digests(source: Source) -> Iterator[bytes]:
    """A digest of each chunk of a recording, made by all cores where it is long."""

    def digest(offset: int) -> bytes:
        return hashlib.sha256(source.read(offset, _CHUNK_BYTES)).digest()

    offsets = range(0, source.size(), _CHUNK_BYTES)
    if url_of(source.path) or len(offsets) < _CHUNKS_OF_ONE_CORE:
        yield from map(digest, offsets)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(digest, offsets)


class _Writer(pickle.Pickler):
    """Writes the owner, and its methods, by name."""

    def __init__(self, file: io.BytesIO, owner: object) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._owner = owner

    def persistent_id(self, value: object) -> str | None:
        """What stands for the owner and its methods; None for what is written itself."""
        if value is self._owner:
            return ""
        if isinstance(value, MethodType) and value.__self__ is self._owner:
            return value.__name__
        return None


class _Reader(pickle.Unpickler):
    """The reverse. What it reads has the keyed digest of this user, or it is not read at all."""

    def __init__(self, file: io.BytesIO, owner: object) -> None:
        super().__init__(file)
        self._owner = owner

    def persistent_load(self, name: str) -> object:
        """The owner, or a method of it."""
        return getattr(self._owner, name) if name else self._owner


@cache
def _made_by() -> tuple[str, ...]:
    """What the code and its libraries are: others may say something else."""
    digest = hashlib.blake2b(digest_size=16)
    versions = []
    try:
        for file in sorted(Path(__file__).parents[1].rglob("*.py")):
            digest.update(file.read_bytes())
        versions = [version(name) for name in _LIBRARIES]
    except (OSError, PackageNotFoundError):
        digest.update(os.urandom(16))
    return (digest.hexdigest(), *versions)
