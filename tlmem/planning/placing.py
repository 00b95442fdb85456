"""How much memory do simpler ways of placing objects need than a planner?

Covers: no reuse, a pool with size classes, slot sharing, linear scan with the first and with the
tightest gap. Does not cover: the planner (``planner``).

Every function takes the sections of objects, ``first`` to ``last``, both inclusive, in order of
``first``, and their sizes in bytes; it returns the bytes that are needed in all.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

SMALLEST_CLASS, SMALL_CLASSES_END = 64, 256
"""The size classes of tlmem's own buffers: steps of 64 bytes, then four to each power of two."""


def without_reuse(first: Ints, last: Ints, size: Ints) -> int:
    """Each object has memory of its own, for ever."""
    return int(size.sum())


def size_classes(first: Ints, last: Ints, size: Ints) -> int:
    """A pool that rounds sizes up to classes and keeps what is freed for others of its class."""
    if len(size) == 0:
        return 0
    rounded = class_bytes(size)
    count = len(size)
    classes = np.concatenate([rounded, rounded])
    # What ends in a section is freed after all that begins in it.
    moment = np.concatenate([2 * first, 2 * last + 1])
    change = np.repeat([1, -1], count)
    order = np.lexsort((moment, classes))
    alive = np.cumsum(change[order])
    begins = np.flatnonzero(np.diff(classes[order], prepend=-1))
    # All objects of a class have ended where the next one begins, so that the sum is 0 there.
    most = np.maximum.reduceat(alive, begins)
    return int((most * classes[order][begins]).sum())


def class_bytes(size: Ints) -> Ints:
    """Sizes rounded up to their class."""
    small = -(-size // SMALLEST_CLASS) * SMALLEST_CLASS
    power = np.frexp(np.maximum(size - 1, 1).astype(np.float64))[1].astype(np.int64) - 1
    step = np.left_shift(np.int64(1), np.maximum(power - 2, 0))
    large = -(-size // step) * step
    return np.where(size <= SMALL_CLASSES_END, np.maximum(small, SMALLEST_CLASS), large)


def slot_sharing(first: Ints, last: Ints, size: Ints) -> int:
    """Slots that serve one object after another, each as large as the largest that it serves.

    An object takes the free slot whose size is nearest, a new one when none is free.
    """
    slots: list[int] = []
    slot_of = np.zeros(len(size), np.int64)
    free: list[tuple[int, int]] = []
    endings = np.argsort(last, kind="stable").tolist()
    begins, ends, sizes = first.tolist(), last.tolist(), size.tolist()
    ended = 0
    for number, (begin, wanted) in enumerate(zip(begins, sizes, strict=True)):
        while ends[endings[ended]] < begin:
            slot = int(slot_of[endings[ended]])
            insort(free, (slots[slot], slot))
            ended += 1
        if not free:
            slot_of[number] = len(slots)
            slots.append(wanted)
            continue
        at = bisect_left(free, (wanted, -1))
        if at == len(free) or (at and wanted - free[at - 1][0] < free[at][0] - wanted):
            at -= 1
        slot = free.pop(at)[1]
        slots[slot] = max(slots[slot], wanted)
        slot_of[number] = slot
    return sum(slots)


@dataclass
class Gaps:
    """Free pieces below the top, in the order of their offsets."""

    offset: Ints = field(default_factory=lambda: np.zeros(64, np.int64))
    length: Ints = field(default_factory=lambda: np.zeros(64, np.int64))
    count: int = 0
    top: int = 0
    peak: int = 0

    def take(self, size: int, tightest: bool) -> int:
        """The offset of a piece for so many bytes: of the first or tightest gap, else the top."""
        fits = self.length[: self.count] >= size
        at = int(fits.argmax()) if self.count else 0
        if not self.count or not fits[at]:
            # What is free up to the top is a part of the piece.
            if self.count and self.end(self.count - 1) == self.top:
                self.count -= 1
                self.top = int(self.offset[self.count])
            self.top += size
            self.peak = max(self.peak, self.top)
            return self.top - size
        if tightest:
            at = int(np.where(fits, self.length[: self.count], np.iinfo(np.int64).max).argmin())
        offset = int(self.offset[at])
        self.offset[at] += size
        self.length[at] -= size
        if self.length[at] == 0:
            self.move(at + 1, -1)
        return offset

    def give(self, offset: int, size: int) -> None:
        """A piece is free again; it is joined with its free neighbours."""
        at = int(np.searchsorted(self.offset[: self.count], offset))
        joins_before = at > 0 and self.end(at - 1) == offset
        joins_after = at < self.count and self.offset[at] == offset + size
        if joins_before and joins_after:
            self.length[at - 1] += size + self.length[at]
            self.move(at + 1, -1)
        elif joins_before:
            self.length[at - 1] += size
        elif joins_after:
            self.offset[at] = offset
            self.length[at] += size
        else:
            self.move(at, 1)
            self.offset[at], self.length[at] = offset, size

    def end(self, at: int) -> int:
        """Where a gap ends."""
        return int(self.offset[at] + self.length[at])

    def move(self, at: int, by: int) -> None:
        """Moves the gaps from one on by a place, up or down."""
        if self.count + by > len(self.offset):
            self.offset = np.concatenate([self.offset, np.zeros_like(self.offset)])
            self.length = np.concatenate([self.length, np.zeros_like(self.length)])
        for values in (self.offset, self.length):
            values[at + by : self.count + by] = values[at : self.count].copy()
        self.count += by


def linear_scan(first: Ints, last: Ints, size: Ints, tightest: bool = False) -> int:
    """One block, in which each object in turn takes a gap between those that are alive."""
    gaps = Gaps()
    endings = np.argsort(last, kind="stable").tolist()
    begins, ends, sizes = first.tolist(), last.tolist(), size.tolist()
    offsets = [0] * len(sizes)
    ended = 0
    for number, (begin, wanted) in enumerate(zip(begins, sizes, strict=True)):
        while ends[endings[ended]] < begin:
            done = endings[ended]
            gaps.give(offsets[done], sizes[done])
            ended += 1
        offsets[number] = gaps.take(wanted, tightest)
    return gaps.peak


def best_fit(first: Ints, last: Ints, size: Ints) -> int:
    """``linear_scan`` with the tightest gap."""
    return linear_scan(first, last, size, tightest=True)


WAYS: dict[str, Callable[[Ints, Ints, Ints], int]] = {
    "without-reuse": without_reuse,
    "size-classes": size_classes,
    "slot-sharing": slot_sharing,
    "first-fit": linear_scan,
    "best-fit": best_fit,
}
"""Each way by the name that it has in JSON, the simplest first."""
