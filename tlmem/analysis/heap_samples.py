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
LARGEST = 1e15
"""What a sample stands for at most, in bytes; a damaged file may say more."""
MEMORIES = {"native": "native memory", "python": "memory of Python objects"}
"""Kinds of memory that are sampled, in words."""
MOST_LINES = 100
"""So many lines of each have an estimate of their own."""
SHARES = ((1 - CONFIDENCE) / 2, 1 - (1 - CONFIDENCE) / 2)
"""Below the ends of an interval."""
HALVINGS = 30
"""Of the distance between two quantiles, in search of the one between."""
MOST_TIMES = 700.0
"""A block of so many times the rate, or more, counts as always sampled."""


def estimate(size: Numbers, weight: Numbers) -> Estimate:
    """What all blocks have of which these are a sample.

    A block stands for ``weight`` blocks of its size; the sum is unbiased, whatever the sizes. Its
    interval is the mid-p gamma interval of Fay and Kim for weighted sums of Poisson counts. That of
    Fay and Feuer, which holds the truth at least as often as it says, does so too often where
    samples are few.

    Source: Fay and Kim, "Confidence intervals for directly standardized rates using mid-p gamma
    intervals", 2017.
    """
    whole = float((size * weight).sum())
    variance = float((size**2 * weight * (weight - 1)).sum())
    if variance <= 0:
        return Estimate(whole, whole, whole, float(weight.sum()))
    one_more = float((size * (weight - 1)).max())
    low, high = (end(share, whole, variance, one_more) for share in SHARES)
    return Estimate(whole, low, high, float(weight.sum()))


def unseen(size: Numbers, rate: float) -> Estimate:
    """What blocks may have of which none was sampled, if each is as large as one of these.

    Args:
        rate: one block was sampled for so many bytes in the mean; 1: every block was.
    """
    if rate <= 1 or not len(size):
        return Estimate(0, 0, 0, 0)
    times = np.minimum(np.maximum(size, 1) / rate, MOST_TIMES)
    one_more = float((size / np.expm1(times)).max())
    return Estimate(0, 0, end(SHARES[1], 0, 0, one_more), 0)


def end(share: float, whole: float, variance: float, one_more: float) -> float:
    """The value below which the sum of all blocks lies with so large a chance.

    Half the chance is that of the gamma distribution with the mean and the variance of what was
    sampled, half of the one with another block sampled, the one that adds most.
    """
    means = np.array([whole, whole + one_more])
    variances = np.array([variance, variance + one_more**2])
    if variances[1] <= 0:
        return whole
    if variance <= 0:  # nothing was sampled: surely not less than nothing
        return gamma_end(2 * share - 1, one_more, one_more**2) if share > 0.5 else 0.0
    low, high = (
        gamma_end(share, mean, spread) for mean, spread in zip(means, variances, strict=True)
    )
    shapes, scales = means**2 / variances, variances / means
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if gamma_share(shapes, middle / scales) < share:
            low = middle
        else:
            high = middle
    return float((low + high) / 2)


def gamma_share(shapes: Numbers, values: Numbers) -> float:
    """The mean chance of a value below these, of gamma distributions of the scale 1."""
    from scipy.special import gammainc

    return float(gammainc(shapes, values).mean())


def gamma_end(share: float, mean: float, variance: float) -> float:
    """The value that so large a share of a gamma distribution lies below.

    It is that of ``scipy.stats.gamma``, which takes 0.7 s more to import.
    """
    from scipy.special import gammaincinv

    return float(variance / mean * gammaincinv(mean**2 / variance, share))


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

    def of_program(self, places: Places, cut_ns: int) -> Rows:
        """The rows of blocks that the program itself allocated until then, in order of birth."""
        rows = np.flatnonzero((self.born <= cut_ns) & ~places.importing[self.site])
        return rows[np.argsort(self.born[rows], kind="stable")]

    def stands_for(self, rows: Rows) -> Rows:
        """How many bytes these samples stand for."""
        return np.minimum(self.size[rows] * self.weight[rows], LARGEST).astype(np.int64)

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
