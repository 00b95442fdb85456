"""Bringing equal keys together, quickly, for tens of millions of them.

Covers: a stable order in which equal keys stand together, and where each group of them begins.
Does not cover: what the keys mean (``pairing``: addresses and handles; ``tables.ledger``: holders).

Sorting values is many times faster than sorting positions, so a hash of the key and the position
are packed into one number. Which hash comes first means nothing; keys that differ and have the same
hash are set apart afterwards.
"""

from __future__ import annotations

import numpy as np

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MOST_REPAIRS = 10_000


def group_order(*keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order that keeps positions with equal keys together, each group in its own order.

    Args:
        keys: the columns of the key, of whole numbers and of equal length.
    Returns:
        The order, and whether each position but the first continues the group before it.
    """
    count = len(keys[0])
    if count < 2:
        return np.arange(count), np.empty(0, bool)
    mask = np.uint64((1 << (count - 1).bit_length()) - 1)
    packed = keys[0].astype(np.uint64) * _MULTIPLIER
    for key in keys[1:]:
        packed += key.astype(np.uint64, copy=False)
        packed *= _MULTIPLIER
    packed &= ~mask
    packed |= np.arange(count, dtype=np.uint64)
    packed.sort()
    near = (packed[1:] ^ packed[:-1]) <= mask
    packed &= mask
    order = packed.view(np.int64)
    same = near & _equal_to_before(order, keys)
    mixed = near & ~same
    if mixed.any():
        return _set_apart(order, near, mixed, keys)
    return order, same


def _equal_to_before(order: np.ndarray, keys: tuple[np.ndarray, ...]) -> np.ndarray:
    """Whether each position of an order but the first has the key of the one before it."""
    same = np.ones(len(order) - 1, bool)
    for key in keys:
        in_order = key[order]
        same &= in_order[1:] == in_order[:-1]
    return same


def _set_apart(
    order: np.ndarray, near: np.ndarray, mixed: np.ndarray, keys: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Sorts the few stretches of equal hashes in which keys differ."""
    starts = np.concatenate([[0], np.flatnonzero(~near) + 1, [len(order)]])
    found = np.unique(np.searchsorted(starts, np.flatnonzero(mixed), side="right") - 1)
    if len(found) > _MOST_REPAIRS:
        order = np.lexsort(keys[::-1])
    else:
        for start, end in zip(starts[found].tolist(), starts[found + 1].tolist(), strict=True):
            members = order[start:end]
            inside = np.lexsort([key[members] for key in keys[::-1]])
            order[start:end] = members[inside]
    return order, _equal_to_before(order, keys)


def group_starts(same: np.ndarray) -> np.ndarray:
    """Where each group of a ``group_order`` begins; one for each position that has no equal."""
    return np.concatenate([[0], np.flatnonzero(~same) + 1])
