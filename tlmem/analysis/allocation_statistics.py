"""How a program allocates: how large, how often, and what it frees at once.

Covers: a histogram of sizes, sums by line, temporaries. Does not cover: what stays; see ``growth``
and ``leaks``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import Places
from tlmem.events import DEVICE_NAMES

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Ints = NDArray[np.int64]
TEMPORARY = 1
"""Freed before its thread allocates a second time: memray's meaning of the word, too."""


@dataclass(frozen=True)
class SizeClass:
    """Allocations of ``low`` to ``high`` bytes, both included; a power of two begins each class."""

    low: int
    high: int
    count: int
    bytes: int


@dataclass(frozen=True)
class LineStatistics:
    """What one blamed line allocated; ``temporary`` are those that were freed at once."""

    frame: StackFrame
    count: int
    bytes: int
    temporary_count: int
    temporary_bytes: int


@dataclass(frozen=True)
class AllocationStatistics:
    """How a program allocated, from its first event to its last.

    ``sizes`` and the temporaries are of the ``known`` allocations of which each one is known; sums
    by line and by device are of all. ``threshold`` is how many allocations of the same thread may
    come before the free of a temporary.
    """

    known: int
    sizes: tuple[SizeClass, ...]
    lines: tuple[LineStatistics, ...]
    devices: tuple[tuple[str, int, int], ...]
    threshold: int
    temporary_count: int
    temporary_bytes: int


def allocation_statistics(recording: Recording, threshold: int = TEMPORARY) -> AllocationStatistics:
    """The statistics of a recording; lines that allocated most bytes come first."""
    return recording.kept(
        ("allocation statistics", threshold), lambda: _statistics(recording, threshold), True
    )


def _statistics(recording: Recording, threshold: int) -> AllocationStatistics:
    recording.release_events()
    objects = recording.objects
    listed = ~objects["folded"].to_numpy(bool)
    made = listed & (objects["born_ns"].to_numpy(np.int64) >= 0)
    size = objects["size_bytes"].to_numpy(np.int64)
    is_temporary = made & temporaries(recording, threshold)
    return AllocationStatistics(
        known=int(made.sum()),
        sizes=size_classes(size[made]),
        lines=_lines(recording, is_temporary, size),
        devices=_devices(objects["device"].to_numpy(np.int64)[made], size[made]),
        threshold=threshold,
        temporary_count=int(is_temporary.sum()),
        temporary_bytes=int(size[is_temporary].sum()),
    )


def size_classes(size: Ints) -> tuple[SizeClass, ...]:
    """Classes from the smallest size to the largest, empty ones between them included."""
    if not len(size):
        return ()
    number = np.frexp(np.maximum(size, 0).astype(np.float64))[1].astype(np.int64)
    counts = np.bincount(number)
    sums = np.bincount(number, size)
    first = int(np.flatnonzero(counts)[0])
    return tuple(
        SizeClass(
            low=1 << each - 1 if each else 0,
            high=(1 << each) - 1,
            count=int(counts[each]),
            bytes=int(sums[each]),
        )
        for each in range(first, len(counts))
    )


def temporaries(recording: Recording, threshold: int = TEMPORARY) -> NDArray[np.bool_]:
    """Which objects were freed before their thread had allocated more than ``threshold`` others.

    Returns:
        A mask with the length of ``recording.objects``.
    """
    objects = recording.objects
    born, died = (objects[name].to_numpy(np.int64) for name in ("born_ns", "died_ns"))
    thread = objects["born_thread"].to_numpy(np.int64)
    found = np.zeros(len(objects), bool)
    for each in np.unique(thread):
        rows = np.flatnonzero(thread == each)
        times = np.sort(born[rows])
        # Of allocations at the very moment of the free, which came first is not known: they count.
        later = np.searchsorted(times, died[rows], "right")
        own = np.searchsorted(times, born[rows], "right")
        found[rows] = (died[rows] >= 0) & (later - own <= threshold)
    return found & ~objects["folded"].to_numpy(bool)


def _devices(device: Ints, size: Ints) -> tuple[tuple[str, int, int], ...]:
    counts, sums = np.bincount(device), np.bincount(device, size)
    rows = [
        (DEVICE_NAMES[each], int(counts[each]), int(sums[each]))
        for each in np.flatnonzero(counts).tolist()
    ]
    return tuple(sorted(rows, key=lambda row: -row[2]))


def _lines(
    recording: Recording, is_temporary: NDArray[np.bool_], size: Ints
) -> tuple[LineStatistics, ...]:
    places = Places.of(recording)
    group_of_site = places.group_of_site
    sums = np.zeros((4, places.count), np.int64)
    totals = recording.site_totals
    group = group_of_site[_within(totals.index.to_numpy(np.int64), len(group_of_site))]
    np.add.at(sums[0], group, totals["alloc_count"].to_numpy(np.int64))
    np.add.at(sums[1], group, totals["alloc_bytes"].to_numpy(np.int64))
    site = recording.objects["born_site"].to_numpy(np.int64)[is_temporary]
    group = group_of_site[_within(site, len(group_of_site))]
    np.add.at(sums[2], group, 1)
    np.add.at(sums[3], group, size[is_temporary])
    order = np.lexsort((-sums[0], -sums[1]))
    return tuple(
        LineStatistics(places.frames[each], *sums[:, each].tolist())
        for each in order.tolist()
        if sums[0, each]
    )


def _within(site: Ints, count: int) -> Ints:
    return np.where(site < count, site, 0)
