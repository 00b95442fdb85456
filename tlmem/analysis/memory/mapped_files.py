"""Resident pages of mapped files that grew: no leak, as the kernel takes them back when it must.

Covers: files that the program maps (``np.memmap``, ``mmap``) and shared memory. Does not cover:
which files; a recording has sums by kind of mapping.
"""

from __future__ import annotations

from tlmem.analysis.model import Attribution, Change, Finding
from tlmem.units import format_bytes, format_seconds

LEAST_BYTES = 8_000_000
LEAST_SHARE = 0.15
"""Of resident memory: less is not worth a sentence."""


def mapped_file_findings(level: Attribution, growth: Change | None) -> list[Finding]:
    """One finding each for files and for shared memory that grew by a good part of ``level``."""
    if growth is None or not growth.parts.known:
        return []
    least = max(LEAST_BYTES, LEAST_SHARE * level.resident_bytes)
    seconds = (growth.end_s or 0.0) - (growth.begin_s or 0.0)
    return [
        Finding(
            kind="mapped-files",
            severity="info",
            count=0,
            bytes=grown,
            evidence=(
                f"Resident pages of {what} grew by {format_bytes(grown)} in "
                f"{format_seconds(seconds)}: {why}"
            ),
            slope_bytes_per_s=grown / seconds if seconds > 0 else None,
        )
        for what, why, grown in (
            (
                "mapped files (np.memmap, mmap)",
                "they are copies of what is on disk, which the kernel drops when memory is short, "
                "and no leak; files that are kept open and mapped are given back by deleting the "
                "arrays that map them.",
                growth.parts.file_bytes,
            ),
            (
                "shared memory",
                "it stays until every process has unmapped it and it is unlinked.",
                growth.parts.shared_bytes,
            ),
        )
        if grown >= least
    ]
