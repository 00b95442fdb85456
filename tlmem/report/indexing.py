"""Keeping sums of recordings, and what commands ask of them, ahead of need: ``tlmem index``.

Covers: one file, and many at once on several cores. Does not cover: the sums (``kept_sums``),
answers (``kept_answers``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tlmem.analysis import analyse
from tlmem.analysis.allocation_statistics import allocation_statistics
from tlmem.analysis.peak.explained import explain
from tlmem.errors import TlmemError
from tlmem.recording.format.kept_sums import KeptSums
from tlmem.recording.reader import read_for_command


@dataclass(frozen=True)
class Indexed:
    """What is kept of one file: sums of so many of its events, in ``place``, or an error."""

    path: str
    events: int = 0
    summed: int = 0
    place: str = ""
    place_bytes: int = 0
    error: str = ""
    exit_code: int = 0


def index(path: str) -> Indexed:
    """Reads a recording and asks what commands ask, which is kept where there are many events."""
    try:
        recording = read_for_command(path)
        events, summed = recording.event_count, recording.folded_events
        if recording.keeps_answers:
            analyse(recording, frugal=True)
            allocation_statistics(recording)
            for held in (False, True):  # by role, and by line with holders
                explain(recording, held=held)
    except TlmemError as error:
        return Indexed(path, error=str(error), exit_code=error.exit_code)
    for place in KeptSums(recording.path, 0).places:
        try:
            size = place.stat().st_size
        except OSError:
            continue
        return Indexed(path, events, summed, str(place), size)
    return Indexed(path, events)


def index_all(paths: Sequence[str], jobs: int) -> Iterator[Indexed]:
    """Each file in turn, ``jobs`` of them at a time in processes of their own."""
    if min(jobs, len(paths)) < 2:
        yield from map(index, paths)
        return
    with ProcessPoolExecutor(min(jobs, len(paths))) as pool:
        yield from pool.map(index, paths)
