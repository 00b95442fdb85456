"""Sampled blocks of the heap by the line that allocated them, and what all blocks of a line have.

Covers: which samples are alive at a moment, their lines, estimates with intervals. Does not cover:
whether a line grows; see ``growth.heap_lines``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.model import CONFIDENCE, Estimate, HeapLine, HeldHeap
from tlmem.analysis.places import Places

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]
MEMORIES = {"native": "native memory", "python": "memory of Python objects"}
"""Kinds of memory that are sampled, in words."""
MOST_LINES = 100
"""So many lines of each have an estimate of their own."""
MOST_TIMES = 700.0
"""A block of so many times the rate, or more, counts as always sampled."""


def is_sampled(recording: Recording) -> bool:
    """Whether blocks of the heap were sampled, if only there had been some."""
    return "heap.rate" in recording.info


def estimate(size: Numbers, weight: Numbers) -> Estimate:
    """What all blocks have of which these are a sample.

    A block stands for ``weight`` blocks of its size; the sum is unbiased, whatever the sizes. Its
    interval is the one of Fay and Feuer for weighted sums of Poisson counts: exact where all
    blocks are small, and as narrow as it must be where most are large and none is missed.

    Source: Fay and Feuer, "Confidence intervals for directly standardized rates", 1997.
    """
    whole = float((size * weight).sum())
    variance = float((size**2 * weight * (weight - 1)).sum())
    if variance <= 0:
        return Estimate(whole, whole, whole, float(weight.sum()))
    low = variance / (2 * whole) * chi_squared((1 - CONFIDENCE) / 2, 2 * whole**2 / variance)
    high = high_end(whole, variance, float((size * (weight - 1)).max()))
    return Estimate(whole, float(low), high, float(weight.sum()))


def unseen(size: Numbers, rate: float) -> Estimate:
    """What blocks may have of which none was sampled, if each is as large as one of these.

    Args:
        rate: one block was sampled for so many bytes in the mean; 1: every block was.
    """
    if rate <= 1 or not len(size):
        return Estimate(0, 0, 0, 0)
    times = np.minimum(np.maximum(size, 1) / rate, MOST_TIMES)
    return Estimate(0, 0, high_end(0, 0, float((size / np.expm1(times)).max())), 0)


def high_end(whole: float, variance: float, one_more: float) -> float:
    """The high end of an interval: if one more block had been sampled, the one that adds most."""
    whole_more, variance_more = whole + one_more, variance + one_more**2
    if variance_more <= 0:
        return whole
    degrees = 2 * whole_more**2 / variance_more
    share = 1 - (1 - CONFIDENCE) / 2
    return float(variance_more / (2 * whole_more) * chi_squared(share, degrees))


def chi_squared(share: float, degrees: float) -> float:
    """The value that so large a share of a chi-squared distribution lies below.

    It is that of ``scipy.stats.chi2``, which takes 0.7 s more to import.
    """
    from scipy.special import gammaincinv

    return float(2 * gammaincinv(degrees / 2, share))


@dataclass(frozen=True)
class Blocks:
    """Sampled blocks: of each its size, its weight, its site and the number of its line.

    ``born`` and ``died`` are when it was allocated and freed, in ns; -1 while alive.
    """

    size: Numbers
    weight: Numbers
    site: Rows
    line: Rows
    born: Rows
    died: Rows

    def __len__(self) -> int:
        return len(self.size)

    def about(self, rows: Rows) -> Estimate:
        """What all blocks have of which these rows are a sample."""
        return estimate(self.size[rows], self.weight[rows])

    def by_line(self) -> Iterator[tuple[int, Rows]]:
        """The lines and their rows, most bytes first."""
        order = np.argsort(self.line, kind="stable")
        lines, begins = np.unique(self.line[order], return_index=True)
        held = np.bincount(self.line, self.size * self.weight)[lines]
        ends = np.append(begins[1:], len(order))
        for k in np.argsort(-held, kind="stable").tolist():
            yield int(lines[k]), order[begins[k] : ends[k]]

    def main_site(self, rows: Rows) -> int:
        """The site that has most bytes of these rows."""
        sites, which = np.unique(self.site[rows], return_inverse=True)
        return int(sites[np.bincount(which, self.size[rows] * self.weight[rows]).argmax()])


def blocks_of(
    recording: Recording,
    places: Places,
    memory: str,
    alive_ns: int | None,
    since_ns: int | None = None,
) -> Blocks:
    """Blocks of one kind of memory.

    Args:
        alive_ns: only those that are alive at this moment; None: freed ones, too.
        since_ns: only those that were allocated from then on; None: all.
    """
    heap = recording.heap
    died, born = heap["died_ns"].to_numpy(np.int64), heap["born_ns"].to_numpy(np.int64)
    there = heap["is_python"].to_numpy(bool) == (memory == "python")
    if alive_ns is not None:
        there &= (born <= alive_ns) & ((died < 0) | (died > alive_ns))
    if since_ns is not None:
        there &= born >= since_ns
    rows = np.flatnonzero(there)
    site = heap["born_site"].to_numpy(np.int64)[rows]
    # A damaged event may name a site that the recording does not have, and a size below 0.
    site = np.where(site < len(places.group_of_site), site, 0)
    size = np.maximum(heap["size_bytes"].to_numpy(np.float64)[rows], 0)
    weight = heap["weight"].to_numpy(np.float64)[rows]
    line = places.group_of_site[site].astype(np.int64)
    return Blocks(size, weight, site, line, born[rows], died[rows])


def held_heap(
    recording: Recording, places: Places, alive_ns: int, most: int = MOST_LINES
) -> tuple[HeldHeap, ...]:
    """What each line has of the heap at a moment, native memory first; nothing without samples."""
    found = []
    for memory in MEMORIES if len(recording.heap) else ():
        blocks = blocks_of(recording, places, memory, alive_ns)
        if not len(blocks):
            continue
        lines = list(blocks.by_line())
        others = [rows for _, rows in lines[most:]]
        found.append(
            HeldHeap(
                memory=memory,
                whole=estimate(blocks.size, blocks.weight),
                lines=tuple(
                    HeapLine(places.frames[line], blocks.about(rows), len(rows))
                    for line, rows in lines[:most]
                ),
                others=len(others),
                rest=blocks.about(np.concatenate(others)) if others else None,
            )
        )
    return tuple(found)
