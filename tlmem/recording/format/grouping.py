"""Bringing equal keys together, quickly, for tens of millions of them.

Covers: a stable order in which equal keys stand together, and where each group of them begins.
Does not cover: what the keys mean (``pairing``: addresses and handles; ``tables.ledger``: holders).

A number of 64 bits has a key above and its position below: no two are equal, so NumPy's quickest
sort leaves equal keys in their own order. Of a key there are only those bits in which any two
differ, or, where these need more room, the highest bits of its hash. Which key comes first means
nothing; keys that differ and have the same bits of the hash are set apart afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Spreads numbers that lie close together over the highest bits of their product."""
_PIECE = 1 << 19
"""Positions that are looked at a time, so that copies of them take little memory."""


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
    bits = (count - 1).bit_length()
    position = np.uint64((1 << bits) - 1)
    low = _lowest_of_few(keys, 64 - bits)
    packed = np.empty(count, np.uint64)
    for start in range(0, count, _PIECE):
        piece, stretch = packed[start : start + _PIECE], slice(start, start + _PIECE)
        if low is not None:
            np.right_shift(keys[0][stretch], np.uint64(low), out=piece)
            piece <<= np.uint64(bits)
        else:
            piece[:] = _hash([key[stretch] for key in keys])
            piece &= ~position
        piece |= np.arange(start, start + len(piece), dtype=np.uint64)
    packed.sort()
    near = np.empty(count - 1, bool)
    for start in range(0, count - 1, _PIECE):
        piece = packed[start : start + _PIECE + 1]
        np.less_equal(piece[1:] ^ piece[:-1], position, out=near[start : start + _PIECE])
    packed &= position
    order = packed.view(np.int64)
    if low is not None:
        return order, near
    same = _equal_to_before(order, keys)
    same &= near
    near ^= same
    if near.any():
        _set_apart(order, same, near, keys)
    return order, same


def _lowest_of_few(keys: Sequence[np.ndarray], room: int) -> int | None:
    """The lowest bit in which any two keys differ, where ``room`` bits from it on have them all."""
    if len(keys) > 1 or keys[0].dtype != np.uint64:
        return None
    differ = 0
    for start in range(0, len(keys[0]), _PIECE):
        differ |= int(np.bitwise_or.reduce(keys[0][start : start + _PIECE] ^ keys[0][0]))
    low = max((differ & -differ).bit_length() - 1, 0)
    return low if differ.bit_length() - low <= room else None


def _hash(keys: Sequence[np.ndarray]) -> np.ndarray:
    hashed = keys[0].astype(np.uint64)
    hashed *= MULTIPLIER
    for key in keys[1:]:
        hashed += key.astype(np.uint64, copy=False)
        hashed *= MULTIPLIER
    return hashed


def _equal_to_before(order: np.ndarray, keys: Sequence[np.ndarray]) -> np.ndarray:
    """Whether each position of an order but the first has the key of the one before it."""
    same = np.ones(len(order) - 1, bool)
    for start in range(0, len(same), _PIECE):
        stretch = same[start : start + _PIECE]
        positions = order[start : start + len(stretch) + 1]
        for key in keys:
            in_order = key.take(positions)
            stretch &= in_order[1:] == in_order[:-1]
    return same


def _set_apart(
    order: np.ndarray, same: np.ndarray, mixed: np.ndarray, keys: tuple[np.ndarray, ...]
) -> None:
    """Sorts the few stretches of equal hashes in which keys differ, and corrects ``same``.

    Args:
        mixed: whether each position but the first has the hash of the one before, and another key.
    """
    starts = np.concatenate([[0], np.flatnonzero(~(same | mixed)) + 1, [len(order)]])
    found = np.unique(np.searchsorted(starts, np.flatnonzero(mixed), side="right") - 1)
    lengths = starts[found + 1] - starts[found]
    stretch = np.repeat(np.arange(len(found)), lengths)
    begins = np.cumsum(lengths) - lengths
    places = np.arange(len(stretch)) + np.repeat(starts[found] - begins, lengths)
    members = order[places]
    members = members[np.lexsort([*(key[members] for key in keys[::-1]), stretch])]
    order[places] = members
    alike = stretch[1:] == stretch[:-1]
    for key in keys:
        in_order = key[members]
        alike &= in_order[1:] == in_order[:-1]
    same[places[1:] - 1] = alike


def group_starts(same: np.ndarray) -> np.ndarray:
    """Where each group of a ``group_order`` begins; one for each position that has no equal."""
    return np.concatenate([[0], np.flatnonzero(~same) + 1])
