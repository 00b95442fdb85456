"""What a caching allocator had when a snapshot of it was taken, as rows in meta records.

Covers: the layout of the rows, reading them back. Does not cover: what they mean for users
(``tables.segments``) or where they come from (``tlmem.importing``).
See also: docs/format.md, "PyTorch".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

SEGMENTS, BLOCKS, PHASES, REQUESTED, USES = 1, 2, 3, 4, 5
"""Tables of the records."""
ACCELERATOR_BITS = 56
"""Bits of an object of device 5 below the number of its accelerator."""
PINNED_HOST = 255
"""Number of the accelerator that pinned memory of the host is listed under."""

EXPANDABLE, SMALL = 1, 2
"""Flags of a segment."""
INACTIVE, ALLOCATED, PENDING = 0, 1, 2
"""States of a block: free, in use, freed while another stream may still use it."""
UNKNOWN_TIME = 2**64 - 1
"""End of a phase that was under way when the trace ended."""
NEVER_REUSABLE = 2**64 - 1
"""``reusable`` of a block that was not given back to the allocator before the trace ended."""

SEGMENT_DTYPE = np.dtype(
    [
        ("address", "<u8"),
        ("total", "<u8"),
        ("allocated", "<u8"),
        ("active", "<u8"),
        ("requested", "<u8"),
        ("stream", "<i8"),
        ("pool_owner", "<i8"),
        ("pool_number", "<i8"),
        ("site", "<u4"),
        ("accelerator", "u1"),
        ("flags", "u1"),
        ("unused", "<u2"),
    ]
)
BLOCK_DTYPE = np.dtype(
    [
        ("address", "<u8"),
        ("size", "<u8"),
        ("requested", "<u8"),
        ("segment", "<u4"),
        ("site", "<u4"),
        ("state", "u1"),
        ("unused", "V7"),
    ]
)
PHASE_DTYPE = np.dtype(
    [
        ("begin", "<u8"),
        ("end", "<u8"),
        ("index", "<i8"),
        ("label", "<u4"),
        ("accelerator", "<u4"),
    ]
)
REQUESTED_DTYPE = np.dtype([("requested", "<u8")])
USE_DTYPE = np.dtype(
    [
        ("stream", "<i8"),
        ("pool_owner", "<i8"),
        ("pool_number", "<i8"),
        ("reusable", "<u8"),
    ]
)
"""``reusable``: how many allocations of the accelerator come before the block may serve again."""
DTYPES = {
    SEGMENTS: SEGMENT_DTYPE,
    BLOCKS: BLOCK_DTYPE,
    PHASES: PHASE_DTYPE,
    REQUESTED: REQUESTED_DTYPE,
    USES: USE_DTYPE,
}

_HEAD = struct.Struct("<IIII")

Parts = Mapping[tuple[int, int], bytes]
"""(Table, number of its first row) -> the rows of one record."""


def pack(table: int, first: int, rows: np.ndarray) -> bytes:
    """The payload of a record with these rows, the first of which has the number ``first``."""
    return _HEAD.pack(table, first, rows.dtype.itemsize, len(rows)) + rows.tobytes()


def unpack(payload: bytes) -> tuple[int, int, bytes]:
    """Table, number of the first row, and the rows in this version's layout.

    Raises:
        ValueError: the rows have not the size that they claim; of an unknown table none are kept.
    """
    table, first, row_bytes, count = _HEAD.unpack_from(payload)
    dtype = DTYPES.get(table)
    if dtype is None:
        return table, first, b""
    if row_bytes < dtype.itemsize or len(payload) - _HEAD.size != row_bytes * count:
        raise ValueError
    rows = np.frombuffer(payload, np.uint8, row_bytes * count, _HEAD.size)
    return table, first, rows.reshape(count, row_bytes)[:, : dtype.itemsize].tobytes()


def rows_of(parts: Parts, table: int) -> np.ndarray:
    """All rows of a table, in order; those behind one that is missing are left out."""
    dtype = DTYPES[table]
    found, expected = [], 0
    for (number, first), data in sorted(parts.items()):
        if number == table and first == expected:
            found.append(np.frombuffer(data, dtype))
            expected += len(found[-1])
    return np.concatenate(found) if found else np.empty(0, dtype)
