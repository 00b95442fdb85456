"""What each thread of a program allocated, and what of it is alive.

Covers: sums by the thread that allocated. Does not cover: how it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import Places

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

FOLDED = "not known (events are folded)"


@dataclass(frozen=True)
class ThreadTotals:
    """One thread: what it allocated that is alive when the program is judged, and all it made.

    ``line`` is the line of it that holds most; where it holds nothing, the one that made most.
    """

    name: str
    alive_bytes: int
    alive_count: int
    made_bytes: int
    made_count: int
    line: StackFrame


def thread_totals(
    recording: Recording, moment_ns: int, places: Places | None = None
) -> list[ThreadTotals]:
    """The threads that allocated something, most bytes alive first, then most bytes made.

    Args:
        moment_ns: what counts as alive.
        places: those of the recording, where they are at hand.

    Of folded events only objects that stayed alive are known, and not their threads.
    """
    objects = recording.objects
    if objects.empty:
        return []
    places = places or Places.of(recording)
    folded = objects["folded"].to_numpy(bool)
    stride = int((recording.fold or {}).get("live_stride", 1) or 1)
    count = np.where(folded, stride, 1)
    size = objects["size_bytes"].to_numpy(np.int64) * count
    born, died = objects["born_ns"].to_numpy(np.int64), objects["died_ns"].to_numpy(np.int64)
    alive = (born <= moment_ns) & ((died < 0) | (died > moment_ns))
    site = objects["born_site"].to_numpy(np.int64)
    group = places.lines[np.where(site < len(places.lines), site, 0)].astype(np.int64)
    number = np.where(folded, 0, objects["born_thread"].to_numpy(np.int64))
    threads, row = np.unique(number, return_inverse=True)

    def sums(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        made = np.bincount(row[chosen], values[chosen], len(threads))
        return made.astype(np.int64)

    every = np.ones(len(objects), bool)
    columns = (sums(size, alive), sums(count, alive), sums(size, every), sums(count, every))
    lines = _largest_lines(row, group, np.where(alive, size, 0), len(threads))
    most_made = _largest_lines(row, group, size, len(threads))
    found = []
    for at, thread in enumerate(threads.tolist()):
        held, held_count, made, made_count = (int(column[at]) for column in columns)
        line = places.frames[int((lines if held else most_made)[at])]
        name = _name_of(recording, thread)
        found.append(ThreadTotals(name, held, held_count, made, made_count, line))
    return sorted(found, key=lambda each: (-each.alive_bytes, -each.made_bytes))


def _largest_lines(
    row: np.ndarray, group: np.ndarray, size: np.ndarray, threads: int
) -> np.ndarray:
    """The number of the line with most bytes, of each thread."""
    width = int(group.max(initial=0)) + 1
    keys, inverse = np.unique(row * width + group, return_inverse=True)
    bytes_of = np.bincount(inverse, size, len(keys))
    best = np.zeros(threads, np.int64)
    # In ascending order of bytes, so that the last one written for a thread is its largest.
    order = np.argsort(bytes_of, kind="stable")
    best[keys[order] // width] = keys[order] % width
    return best


def _name_of(recording: Recording, thread: int) -> str:
    """``loader (thread 3)``; 0 stands for what was folded."""
    if thread == 0:
        return FOLDED
    threads = recording.threads
    if thread not in threads.index:
        return f"thread {thread}"
    name = str(threads.at[thread, "name"])
    if not name:
        name = "main thread" if bool(threads.at[thread, "main"]) else ""
    return f"{name} (thread {thread})" if name else f"thread {thread}"
