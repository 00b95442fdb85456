"""Blocks: the finished pieces of a recording, decoded and checked.

Covers: block headers, events blocks (plain and columnar), byte planes, meta records.
Does not cover: where blocks lie in the file (``segments``) or what their contents mean together.
See also: docs/format.md, "Block" and "Meta records".

No size in a block is trusted: each is compared with the largest the format allows before anything
is allocated, so that a damaged file costs no more memory than a sound one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tlmem.events import EVENT_DTYPE, LAST_KIND

SLOT_BYTES = 262144
SLOT_HEADER_BYTES = 128
SLOT_PAYLOAD_BYTES = SLOT_BYTES - SLOT_HEADER_BYTES
BLOCK_HEADER_BYTES = 128
EVENTS_PER_SLOT = 8184
LARGEST_COLUMN_BYTES = 16 * SLOT_BYTES

BLOCK_MAGIC = b"TLBK"
EVENTS_BLOCK, META_BLOCK, FOLD_BLOCK, INDEX_BLOCK = 1, 2, 3, 4
_HEADER = struct.Struct("<4sBBHQIIQQQII16II4x")
_RECORD = struct.Struct("<IIIB3x")
LAST_RECORD = 9
"""The highest type of meta records that there is; a reader ignores what is above it."""
_CHECKED_IN_DAMAGE = 4
"""Behind damage, so many times the length of the names is summed up in search of a sound one."""
_SHAPE_DTYPE = np.dtype(
    [("arg", "<u8"), ("site", "<u4"), ("count", "<u2"), ("kind", "u1"), ("device", "u1")]
)
EVENT_COLUMNS: dict[str, np.dtype] = {
    "ticks": np.dtype("u8"),
    "object": np.dtype("u8"),
    "arg": np.dtype("u8"),
    "site": np.dtype("u4"),
    "count": np.dtype("u2"),
    "kind": np.dtype("u1"),
    "device": np.dtype("u1"),
}
"""Events of a whole recording are kept as one array per field: a table needs columns, not rows."""


class BadBlock(Exception):
    """A block that cannot be used; the message says why, the caller where."""


@dataclass(frozen=True)
class BlockHeader:
    """The checked header of a block. ``columns`` are (stored_bytes, raw_bytes) pairs."""

    type: int
    codec: int
    part: int
    seq: int
    thread: int
    count: int
    thread_first: int
    ticks_begin: int
    ticks_end: int
    payload_bytes: int
    payload_crc: int
    columns: tuple[tuple[int, int], ...]

    @property
    def bytes(self) -> int:
        """Header, payload and padding."""
        return BLOCK_HEADER_BYTES + (self.payload_bytes + 7 & ~7)


def parse_header(data: bytes) -> BlockHeader:
    """The header at the start of ``data``.

    Raises:
        BadBlock: not a block, a wrong checksum, or sizes that cannot be.
    """
    if len(data) < BLOCK_HEADER_BYTES:
        raise BadBlock("the file ends inside its header")
    magic, kind, codec, part, seq, thread, count, first, begin, end, size, crc, *rest = (
        _HEADER.unpack_from(data)
    )
    if magic != BLOCK_MAGIC:
        raise BadBlock("no block begins here")
    if zlib.crc32(memoryview(data)[:120]) != rest.pop():
        raise BadBlock("its header has a wrong checksum")
    sizes = tuple(zip(rest[::2], rest[1::2], strict=True))
    header = BlockHeader(
        kind, codec, part, seq, thread, count, first, begin, end, size, crc, columns=sizes
    )
    if header.payload_bytes > SLOT_PAYLOAD_BYTES - BLOCK_HEADER_BYTES:
        raise BadBlock("its payload is larger than a slot")
    if sum(stored for stored, _ in sizes) != header.payload_bytes:
        raise BadBlock("its columns do not add up to its payload")
    if any(raw > LARGEST_COLUMN_BYTES for _, raw in sizes):
        raise BadBlock("a column is larger than any the format allows")
    return header


def payload_of(header: BlockHeader, data: bytes) -> memoryview:
    """The checked payload of the block at the start of ``data``.

    Raises:
        BadBlock: cut short, or a wrong checksum.
    """
    payload = memoryview(data)[BLOCK_HEADER_BYTES : BLOCK_HEADER_BYTES + header.payload_bytes]
    if len(payload) < header.payload_bytes:
        raise BadBlock("the file ends inside it")
    if zlib.crc32(payload) != header.payload_crc:
        raise BadBlock("its payload has a wrong checksum")
    return payload


def column(header: BlockHeader, payload: memoryview, number: int) -> bytes | memoryview:
    """One column of a block, inflated when it is stored compressed.

    Raises:
        BadBlock: the column does not inflate to the size it claims.
    """
    start = sum(stored for stored, _ in header.columns[:number])
    stored, raw = header.columns[number]
    piece = payload[start : start + stored]
    if stored == raw:
        return piece
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(piece, raw + 1)
    except zlib.error:
        raise BadBlock(f"column {number} does not inflate") from None
    if len(data) != raw or not inflater.eof:
        raise BadBlock(f"column {number} has not the size it claims")
    return data


def join_planes(data: bytes | memoryview, entry_bytes: int) -> np.ndarray:
    """Entries from byte planes, as an array of shape (entries, ``entry_bytes``)."""
    planes = np.frombuffer(data, np.uint8).reshape(entry_bytes, -1)
    return np.ascontiguousarray(planes.T)


def entries(header: BlockHeader, data: bytes, dtype: np.dtype) -> np.ndarray:
    """The entries of a fold or index block.

    Raises:
        BadBlock: wrong checksum, or not ``count`` entries of this size.
    """
    payload = payload_of(header, data)
    if header.columns[0][1] != header.count * dtype.itemsize:
        raise BadBlock("its entries have not the size they claim")
    if header.count == 0:
        return np.empty(0, dtype)
    joined = join_planes(column(header, payload, 0), dtype.itemsize)
    return joined.reshape(-1).view(dtype)


def decode_events(
    header: BlockHeader, data: bytes, time_shift: int, out: dict[str, np.ndarray], at: int
) -> int:
    """Decodes an events block into the columns ``out`` from position ``at``; returns the count.

    Raises:
        BadBlock: it does not decode; ``out`` may then hold rubbish from ``at`` on.
    """
    count = header.count
    if not 1 <= count <= EVENTS_PER_SLOT:
        raise BadBlock(f"it claims {count} events, a block has 1 to {EVENTS_PER_SLOT}")
    payload = payload_of(header, data)
    if header.codec == 0:
        if header.columns[0][1] != count * EVENT_DTYPE.itemsize:
            raise BadBlock("its events have not the size they claim")
        plain = np.frombuffer(column(header, payload, 0), EVENT_DTYPE)
        store_events(plain, time_shift, out, at)
    elif header.codec == 1:
        _decode_times(header, payload, time_shift, out["ticks"][at : at + count])
        _decode_shapes(header, payload, out, at)
        _decode_objects(header, payload, out["object"][at : at + count])
    else:
        raise BadBlock(f"its codec {header.codec} is unknown")
    kinds = out["kind"][at : at + count]
    if kinds.min() == 0 or kinds.max() > LAST_KIND:
        raise BadBlock("it holds an event of unknown kind")
    return count


def store_events(plain: np.ndarray, time_shift: int, out: dict[str, np.ndarray], at: int) -> None:
    """Puts events of ``EVENT_DTYPE`` into the columns ``out``, times quantised."""
    end = at + len(plain)
    for name, values in out.items():
        values[at:end] = plain[name]
    shift = np.uint64(time_shift)
    out["ticks"][at:end] >>= shift
    out["ticks"][at:end] <<= shift


def _decode_times(
    header: BlockHeader, payload: memoryview, time_shift: int, out: np.ndarray
) -> None:
    if header.columns[0][1] != header.count or header.columns[1][1] != header.count:
        raise BadBlock("its time columns have not one byte for each event")
    low = np.frombuffer(column(header, payload, 0), np.uint8)
    high = np.frombuffer(column(header, payload, 1), np.uint8)
    steps = low | (high.astype(np.uint16) << np.uint16(8))
    out[:] = steps
    escaped = np.flatnonzero(steps == 0xFFFF)
    if header.columns[2][1] != 8 * len(escaped):
        raise BadBlock("its long time steps are not as many as its events say")
    if len(escaped):
        out[escaped] = np.frombuffer(column(header, payload, 2), "<u8")
    out[0] += np.uint64(header.ticks_begin >> time_shift)
    np.cumsum(out, out=out)
    out <<= np.uint64(time_shift)


def _decode_shapes(
    header: BlockHeader, payload: memoryview, out: dict[str, np.ndarray], at: int
) -> None:
    shape_bytes = _SHAPE_DTYPE.itemsize
    if header.columns[4][1] % shape_bytes or header.columns[4][1] > shape_bytes * header.count:
        raise BadBlock("its shapes have not the size they claim")
    shapes = join_planes(column(header, payload, 4), shape_bytes).reshape(-1).view(_SHAPE_DTYPE)
    numbers = _decode_numbers(header, payload, 3, len(shapes)).astype(np.intp)
    end = at + header.count
    for name in _SHAPE_DTYPE.names or ():
        values, column_out = np.ascontiguousarray(shapes[name]), out[name][at:end]
        if (values[1:] == values[:-1]).all():
            column_out[:] = values[0]
        else:
            values.take(numbers, out=column_out, mode="clip")


def _decode_objects(header: BlockHeader, payload: memoryview, out: np.ndarray) -> None:
    if header.columns[6][1] % 8 or header.columns[6][1] > 8 * header.count:
        raise BadBlock("its objects have not the size they claim")
    zigzag = join_planes(column(header, payload, 6), 8).reshape(-1).view("<u8")
    steps = (zigzag >> np.uint64(1)) ^ (np.uint64(0) - (zigzag & np.uint64(1)))
    objects = np.cumsum(steps, dtype=np.uint64)
    objects.take(_decode_numbers(header, payload, 5, len(objects)), out=out, mode="clip")


def _decode_numbers(
    header: BlockHeader, payload: memoryview, number: int, known: int
) -> np.ndarray:
    """Recency codes to numbers below ``known``."""
    raw_bytes = header.columns[number][1]
    if raw_bytes not in (header.count, 2 * header.count):
        raise BadBlock(f"column {number} has not one code for each event")
    codes = np.frombuffer(column(header, payload, number), "u1")
    if raw_bytes != header.count:
        codes = codes[: header.count] | codes[header.count :].astype("u2") << np.uint16(8)
    fresh = codes == 0
    new: np.ndarray = np.cumsum(fresh, dtype=np.int32)
    numbers: np.ndarray = new - codes
    numbers -= fresh
    if new[-1] != known or numbers.min() < 0:
        raise BadBlock(f"column {number} does not fit its dictionary")
    return numbers


@dataclass(frozen=True)
class MetaRecord:
    """One name: ``type`` is 1 code, 2 site, 3 thread, 4 note, 5 label, 6 holding,
    7 line, 8 content, 9 state of an allocator."""

    type: int
    payload: bytes


def meta_records(data: bytes | memoryview) -> Iterator[MetaRecord | None]:
    """The records in ``data``, one after another; None for each stretch that cannot be used."""
    at, end = 0, len(data)
    view = memoryview(data)
    checked = _CHECKED_IN_DAMAGE * end
    while at + _RECORD.size <= end:
        record_bytes, payload_bytes, crc, kind = _RECORD.unpack_from(view, at)
        whole = (
            record_bytes >= _RECORD.size + payload_bytes
            and record_bytes % 8 == 0
            and at + record_bytes <= end
        )
        payload = view[at + _RECORD.size : at + _RECORD.size + payload_bytes] if whole else b""
        if whole and zlib.crc32(payload) == crc:
            yield MetaRecord(kind, bytes(payload))
            at += record_bytes
            continue
        yield None
        at, checked = _next_record(view, at + 8, checked)
    if at < end and any(view[at:end]):
        yield None


def _next_record(view: memoryview, at: int, checked: int) -> tuple[int, int]:
    """Where the next sound record begins after damage; the end when there is none.

    Args:
        checked: so many bytes may still be summed up for checksums. Without a bound, damage in
            which every place looks like the begin of a long record takes a minute for a megabyte.
    Returns:
        The place, and what is left of ``checked``.
    """
    for start in range(at, len(view) - _RECORD.size + 1, 8):
        record_bytes, payload_bytes, crc, kind = _RECORD.unpack_from(view, start)
        if (
            1 <= kind <= LAST_RECORD
            and record_bytes % 8 == 0
            and _RECORD.size + payload_bytes <= record_bytes <= len(view) - start
            and record_bytes - payload_bytes < _RECORD.size + 8
        ):
            checked -= payload_bytes
            if checked < 0:
                break
            payload = view[start + _RECORD.size : start + _RECORD.size + payload_bytes]
            if zlib.crc32(payload) == crc:
                return start, checked
    return len(view), checked
