"""Where objects lay: addresses for a viewer that draws memory as segments with blocks in them.

Covers: addresses for objects that have only handles, and segments around all that was used.
Does not cover: which objects there were; see ``memory_viz``.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

GRAIN_BYTES = 512
"""Made-up addresses are multiples of this, as those of PyTorch's own allocator are."""
FIRST_ADDRESS = 1 << 40
NEAR_BYTES = 1 << 20
"""Parts of memory that are so near to each other are one segment."""


def made_up(is_alloc: NDArray[np.bool_], row: Ints, size: Ints) -> Ints:
    """Addresses for objects without any, such that no two that live together overlap.

    Freed room is used again by the next object of its size, the latest first.

    Args:
        is_alloc: of each event in order of time, whether it allocates; else it frees.
        row: of each event, the row of its object.
        size: of each object, its bytes, more than 0.
    Returns:
        An address for each object, 0 for one without an event.
    """
    address = np.zeros(len(size), np.int64)
    free: dict[int, list[int]] = defaultdict(list)
    top = FIRST_ADDRESS
    grains = (size + GRAIN_BYTES - 1) // GRAIN_BYTES * GRAIN_BYTES
    for allocates, number in zip(is_alloc.tolist(), row.tolist(), strict=True):
        room = int(grains[number])
        if not allocates:
            free[room].append(int(address[number]))
        elif free[room]:
            address[number] = free[room].pop()
        else:
            address[number] = top
            top += room
    return address


def segments(address: Ints, size: Ints) -> list[tuple[int, int]]:
    """Begin and end of the segments around blocks of memory that may overlap, in order."""
    if len(address) == 0:
        return []
    order = np.argsort(address, kind="stable")
    begin, end = address[order], np.maximum.accumulate((address + size)[order])
    first = np.flatnonzero(begin[1:] > end[:-1] + NEAR_BYTES) + 1
    starts = np.concatenate(([0], first))
    stops = np.concatenate((first, [len(begin)])) - 1
    return list(zip(begin[starts].tolist(), end[stops].tolist(), strict=True))


def without_overlaps(address: Ints, size: Ints) -> NDArray[np.bool_]:
    """Which blocks to keep so that none overlap: of two that do, the one that came later.

    Two live blocks overlap only when the free of the first one was not recorded.
    """
    keep = np.ones(len(address), bool)
    order = np.argsort(address, kind="stable")
    last = -1
    for number in order.tolist():
        if last >= 0 and address[number] < address[last] + size[last]:
            loser = min(number, last)
            keep[loser] = False
            if loser == number:
                continue
        last = number
    return keep
