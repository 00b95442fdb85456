"""Reports of long recordings that have ended, kept with their sums: the second one is at once.

A report is kept for the very bytes of all its recordings, the words it was asked for with, and the
code and libraries that made it. Covers: when one is kept and found again. Does not cover: the file
(``recording.format.kept_sums``).
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tlmem.errors import TlmemError
from tlmem.recording import family
from tlmem.recording.format.kept_sums import KeptSums
from tlmem.recording.format.segments import OPEN, Source, read_header

FORMATS = ("text", "json", "markdown")
"""Formats that say nothing but what is in the recordings; a page has pictures."""
_LIBRARIES = ("numpy", "pandas", "scipy", "ruptures")
_CHUNK_BYTES = 1 << 20


class KeptReport:
    """The report of some recordings in one format."""

    def __init__(self, sums: KeptSums, key: str) -> None:
        self._sums, self._key = sums, key

    @staticmethod
    def of(
        paths: Sequence[str], format: str, explain: bool, source_roots: Sequence[str]
    ) -> KeptReport | None:
        """What may be kept; None where there are no sums to keep it with, or it could change.

        Files that are still open may go on, and below ``source_roots`` are other files.
        """
        if format not in FORMATS or source_roots or not paths:
            return None
        sums = KeptSums(Path(paths[0]), 0)
        if not any(place.is_file() for place in sums.places):
            return None
        digest = hashlib.blake2b(digest_size=32)
        try:
            about = [*map(os.fspath, paths), format, explain, str(Path.cwd()), sys.version]
            digest.update(repr((about, _made_by())).encode("utf-8", "surrogateescape"))
            for path in paths:
                for member in (Path(path), *family.find(path)):
                    source = Source(member)
                    if read_header(source).state == OPEN:
                        return None
                    digest.update(repr((str(member), source.size())).encode())
                    for offset in range(0, source.size(), _CHUNK_BYTES):
                        digest.update(source.read(offset, _CHUNK_BYTES))
            return KeptReport(
                KeptSums(Path(paths[0]), Source(Path(paths[0])).size()), digest.hexdigest()
            )
        except (TlmemError, OSError):
            return None

    def find(self) -> str | None:
        """The report, if it was kept."""
        return (self._sums.texts() or {}).get(self._key)

    def keep(self, report: str) -> None:
        """Keeps the report."""
        self._sums.keep_text(self._key, report)


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
